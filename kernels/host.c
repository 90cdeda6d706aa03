#include "kernels/host.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "kernels/host_int.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#else
#define __sanitizer_start_switch_fiber(save, bottom, size)  ((void)(save), (void)(bottom))
#define __sanitizer_finish_switch_fiber(save, bottom, size) ((void)(save), (void)(bottom))
#endif

#define GROUP_MAX   1024u
#define STACK_BYTES (64u * 1024u)

/* A work item as a coroutine, which stops at barriers. */
struct host_fiber {
    ucontext_t context;
    struct host_item item;
    struct host_group *group;
    unsigned char *stack;
    void *fake_stack; /* the address sanitizer's */
    bool done;
};

/* One group in execution: its items take turns until all have ended. */
struct host_group {
    const struct host_code *code;
    ucontext_t scheduler;
    const void *scheduler_stack; /* for the address sanitizer */
    size_t scheduler_size;
    struct host_fiber *fiber;
    unsigned count;
    unsigned char *stacks;
};

/* The fiber for a new context, because makecontext passes only ints. */
static _Thread_local struct host_fiber *starting;

static void fiber_leave(struct host_fiber *f, bool last)
{
    struct host_group *g = f->group;
    __sanitizer_start_switch_fiber(last ? NULL : &f->fake_stack, g->scheduler_stack,
                                   g->scheduler_size);
    swapcontext(&f->context, &g->scheduler);
    __sanitizer_finish_switch_fiber(f->fake_stack, &g->scheduler_stack, &g->scheduler_size);
}

static void fiber_main(void)
{
    struct host_fiber *f = starting;
    __sanitizer_finish_switch_fiber(NULL, &f->group->scheduler_stack, &f->group->scheduler_size);
    f->group->code->item(&f->item);
    f->done = true;
    fiber_leave(f, true);
}

void host_barrier(const struct host_item *item)
{
    fiber_leave(item->fiber, false);
}

static void fiber_enter(struct host_fiber *f)
{
    void *fake_stack = NULL;
    starting = f;
    __sanitizer_start_switch_fiber(&fake_stack, f->stack, STACK_BYTES);
    swapcontext(&f->group->scheduler, &f->context);
    __sanitizer_finish_switch_fiber(fake_stack, NULL, NULL);
}

static int group_init(struct host_group *g, const struct host_code *code, unsigned count,
                      struct err *e)
{
    *g = (struct host_group){.code = code, .count = count};
    g->fiber = calloc(count, sizeof(*g->fiber));
    g->stacks = mmap(NULL, (size_t)count * STACK_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (g->fiber == NULL || g->stacks == MAP_FAILED) {
        free(g->fiber);
        if (g->stacks != MAP_FAILED) {
            munmap(g->stacks, (size_t)count * STACK_BYTES);
        }
        return err_set(e, ERR_NOMEM, "no memory for stacks of %u work items", count);
    }
    return 0;
}

static void group_finish(struct host_group *g)
{
    free(g->fiber);
    munmap(g->stacks, (size_t)g->count * STACK_BYTES);
}

static int fiber_prepare(struct host_group *g, unsigned index, const struct host_item *item,
                         struct err *e)
{
    struct host_fiber *f = &g->fiber[index];
    f->group = g;
    f->item = *item;
    f->item.fiber = f;
    f->done = false;
    f->fake_stack = NULL;
    f->stack = g->stacks + (size_t)index * STACK_BYTES;
    if (getcontext(&f->context) != 0) {
        return err_errno(e, ERR_INTERNAL, "work item");
    }
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = STACK_BYTES;
    f->context.uc_link = NULL;
    makecontext(&f->context, fiber_main, 0);
    return 0;
}

/* Sets the item's position in its group from its index; x varies fastest. */
static void item_place(struct host_item *item, uint64_t index)
{
    item->lid[0] = index % item->group[0];
    item->lid[1] = index / item->group[0] % item->group[1];
    item->lid[2] = index / item->group[0] / item->group[1];
}

static int group_run(struct host_group *g, struct host_item *item, struct err *e)
{
    unsigned running = g->count;
    for (unsigned f = 0; f < g->count; f++) {
        item_place(item, f);
        int r = fiber_prepare(g, f, item, e);
        if (r != 0) {
            return r;
        }
    }
    while (running > 0) {
        for (unsigned f = 0; f < g->count; f++) {
            if (!g->fiber[f].done) {
                fiber_enter(&g->fiber[f]);
                running -= g->fiber[f].done;
            }
        }
    }
    return 0;
}

static int run_groups(const struct host_code *code, struct host_item *item, unsigned items,
                      struct err *e)
{
    struct host_group g = {0};
    bool together = code->barriers;
    int r = together ? group_init(&g, code, items, e) : 0;
    if (r != 0) {
        return r;
    }
    uint64_t count = item->groups[0] * item->groups[1] * item->groups[2];
    for (uint64_t n = 0; r == 0 && n < count; n++) {
        item->gid[0] = n % item->groups[0];
        item->gid[1] = n / item->groups[0] % item->groups[1];
        item->gid[2] = n / item->groups[0] / item->groups[1];
        if (together) {
            r = group_run(&g, item, e);
            continue;
        }
        for (unsigned f = 0; f < items; f++) {
            item_place(item, f);
            code->item(item);
        }
    }
    if (together) {
        group_finish(&g);
    }
    return r;
}

static int check_sizes(const struct host_code *code, const uint64_t global[3],
                       const uint64_t local[3], struct host_item *item, struct err *e)
{
    uint64_t groups = 1, items = 1;
    for (int axis = 0; axis < 3; axis++) {
        uint64_t size = local[axis] == 0 ? 1 : local[axis];
        if (global[axis] % size != 0 || size > GROUP_MAX) {
            return err_set(e, ERR_LAUNCH, "%s: %llu work items in groups of %llu", code->entry,
                           (unsigned long long)global[axis], (unsigned long long)size);
        }
        item->group[axis] = size;
        item->groups[axis] = global[axis] / size;
        items *= size;
        if (__builtin_mul_overflow(groups, item->groups[axis], &groups)) {
            return err_set(e, ERR_LAUNCH, "%s: too many groups", code->entry);
        }
    }
    if (items > GROUP_MAX) {
        return err_set(e, ERR_LAUNCH, "%s: a group has at most %u work items", code->entry,
                       GROUP_MAX);
    }
    return 0;
}

int host_run(const struct host_code *code, const uint64_t global[3], const uint64_t local[3],
             void *const *args, unsigned arg_count, struct err *e)
{
    struct host_item item = {.args = args};
    if (arg_count != code->arg_count) {
        return err_set(e, ERR_ARG_COUNT, "%s takes %u arguments, not %u", code->entry,
                       code->arg_count, arg_count);
    }
    int r = check_sizes(code, global, local, &item, e);
    if (r != 0) {
        return r;
    }
    if (code->local_bytes != 0) {
        item.memory = calloc(1, code->local_bytes);
        if (item.memory == NULL) {
            return err_set(e, ERR_NOMEM, "%s: local memory", code->entry);
        }
    }
    unsigned items = (unsigned)(item.group[0] * item.group[1] * item.group[2]);
    r = run_groups(code, &item, items, e);
    free(item.memory);
    return r;
}

const struct host_kernel *host_kernel_find(const char *entry)
{
    for (unsigned k = 0; k < host_table_count; k++) {
        if (strcmp(host_table[k].entry, entry) == 0) {
            return &host_table[k];
        }
    }
    return NULL;
}

unsigned host_kernel_count(void)
{
    return host_table_count;
}

const struct host_kernel *host_kernel_at(unsigned index)
{
    return index < host_table_count ? &host_table[index] : NULL;
}
