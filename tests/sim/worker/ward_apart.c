/*
 * Memory of the simulated device outside the worker's pool: exported memory, which other processes
 * map; managed memory, which the driver moves; the variables of modules.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/worker/ward_front.h"

static int take(struct backend_device *d, uint64_t bytes, bool managed,
                struct backend_block **ret_block, struct err *e)
{
    struct ward *w = d->w;
    ward_call(w, ward_while(w, w->params.call_ns));
    uint64_t needs = managed ? 0 : bytes; /* managed memory may be on the host */
    if (ward_refuses(w, w->params.refuse_memory) ||
        d->used + d->foreign + needs > w->params.memory_kib << 10) {
        return err_set(e, ERR_DEVICE_MEMORY, "the device has no %" PRIu64 " bytes", bytes);
    }
    struct ward_mem *m = ward_mem_make(d, bytes, NULL);
    m->elsewhere = managed;
    d->used -= managed ? bytes : 0;
    *ret_block = ward_block_of(d, m);
    (*ret_block)->kind = managed ? WARD_MANAGED : WARD_EXPORTED;
    return 0;
}

static int alloc_exported(struct backend_device *d, uint64_t bytes,
                          struct backend_block **ret_block, struct err *e)
{
    return take(d, bytes, false, ret_block, e);
}

static int alloc_managed(struct backend_device *d, uint64_t bytes, struct backend_block **ret_block,
                         struct err *e)
{
    return take(d, bytes, true, ret_block, e);
}

static void free_exported(struct backend_device *d, struct backend_block *b)
{
    if (b->kind != WARD_EXPORTED) {
        ward_broken(d->w, "handle", "a block that is not exported ends as if it were");
    }
    ward_block_free(d, b);
}

/* Another process sees all of the block from now on. */
static int share(struct backend_device *d, struct backend_block *b, int *ret_fd,
                 uint64_t *ret_bytes, struct err *e)
{
    const struct ward_mem *m = b->page[0].mem;
    if (b->kind != WARD_EXPORTED) {
        ward_broken(d->w, "handle", "a block that was not made for it is exported");
    }
    for (uint64_t i = 0; i < (m->bytes + WARD_GRAIN - 1) / WARD_GRAIN; i++) {
        if (m->seen[i] == 0) {
            ward_broken(d->w, "foreign",
                        "memory is exported whose byte %" PRIu64 " was never written",
                        i * WARD_GRAIN);
        }
    }
    if (d->dead.code != 0) {
        return err_set(e, ERR_DEVICE_LOST, "the device does not answer");
    }
    *ret_fd = dup(d->w->front->input.fd);
    *ret_bytes = b->bytes;
    return 0;
}

void ward_apart_ops(const struct ward_params *p, struct backend_memory_ops *m)
{
    if (p->exports > 0) {
        m->alloc_shared = alloc_exported;
        m->free_shared = free_exported;
        m->share = share;
    }
    if (p->manages > 0) {
        m->alloc_managed = alloc_managed;
    }
}

struct backend_block *ward_variable_make(struct backend_device *d)
{
    struct ward_mem *m = ward_mem_make(d, WARD_VARIABLE, NULL);
    memset(m->data, 0, m->bytes); /* its module says so */
    memset(m->seen, 1, m->bytes / WARD_GRAIN);
    memset(m->grain, 0, m->bytes / WARD_GRAIN * sizeof *m->grain);
    struct backend_block *b = ward_block_of(d, m);
    b->kind = WARD_VARIABLES;
    return b;
}
