/* The table `kernels`: a row for each kind of device that a kernel is built for, or one row without
 * a device. */
#include "daemon/front/views/table_view.h"

#define KERNEL_COLUMNS(COLUMN, WIDE)                                                               \
    COLUMN(name, TEXT, k->name)                                                                    \
    COLUMN(module, TEXT, k->module != NULL ? k->module->name : "")                                 \
    COLUMN(kind, TEXT, loaded(k) ? "loaded" : k->module == NULL ? "operation" : "built-in")        \
    COLUMN(signature, TEXT, k->signature != NULL ? k->signature->text : "")                        \
    WIDE(handle, HANDLE, handle)                                                                   \
    WIDE(backend, TEXT, b != NULL ? b->backend : "")                                               \
    WIDE(arch, TEXT, b != NULL ? b->arch : "")                                                     \
    WIDE(registers, UINT, table_known(needs.registers != 0, needs.registers))                      \
    WIDE(item_memory, BYTES, table_known(needs.item_bytes != 0, needs.item_bytes))                 \
    WIDE(group_memory, BYTES, table_known(needs.group_bytes != 0, needs.group_bytes))              \
    WIDE(max_group, UINT, table_known(needs.max_group != 0, needs.max_group))                      \
    WIDE(group_multiple, UINT, table_known(needs.group_multiple != 0, needs.group_multiple))       \
    WIDE(occupancy, PPM, table_known(needs.occupancy != 0, needs.occupancy))

/* Did a client load the kernel, in a module of its tenant? */
static bool loaded(const struct kernel *k)
{
    return k->module != NULL && k->module->tenant != NULL;
}

/* b: NULL if the kernel is built for no kind of device. */
static void kernel_row(struct table *t, const struct kernel *k, uint64_t handle,
                       const struct build *b)
{
    struct resources needs = kernel_needs(k, b);
    TABLE_ROW(KERNEL_COLUMNS);
}

static const struct build *next_done(const struct build *b)
{
    while (b != NULL && b->state != BUILD_DONE) {
        b = b->next;
    }
    return b;
}

static void kernels_begin(struct table_query *q)
{
    struct table *t = &q->table;
    TABLE_HEADER(KERNEL_COLUMNS);
}

static bool kernels_next(struct table_query *q)
{
    uint64_t handle = 0;
    const struct kernel *k = idmap_next(&q->f->kernels, &q->cursor, &handle);
    if (k == NULL) {
        return false;
    }
    if (loaded(k) && (q->s == NULL || k->module->tenant != q->s->tenant)) {
        return true;
    }
    const struct build *b = next_done(k->module != NULL ? k->module->builds : NULL);
    do {
        turn_count(q->f, TABLE_ROW_UNITS);
        kernel_row(&q->table, k, handle, b);
        b = b != NULL ? next_done(b->next) : NULL;
    } while (b != NULL);
    return true;
}

const struct table_view view_kernels = {"kernels", kernels_begin, kernels_next, true};
