/* Host memory that the simulated device knows: registered, or a block that kernels reach. */
#include <inttypes.h>
#include <stdlib.h>

#include "tests/sim/worker/ward.h"

#define SLICE_BYTES ((uint64_t)1 << 20)

struct ward_host {
    struct ward_host *next;
    const uint8_t *data;
    uint64_t bytes;
};

static void host_add(struct backend_device *d, const uint8_t *data, uint64_t bytes)
{
    struct ward_host *h = calloc(1, sizeof *h);
    *h = (struct ward_host){.next = d->hosts, .data = data, .bytes = bytes};
    d->hosts = h;
}

static int register_host(struct backend_device *d, void *data, size_t size, bool writes,
                         struct err *e)
{
    (void)writes;
    if (ward_refuses(d->w, d->w->params.refuse_host)) {
        return err_set(e, ERR_DEVICE_MEMORY, "the device registers nothing now");
    }
    host_add(d, data, size);
    return 0;
}

/* Where memory is registered in slices, several may end at once, or a part of what one call
 * registered. */
static void unregister_host(struct backend_device *d, void *data, size_t size)
{
    const uint8_t *from = data;
    const uint8_t *to = from + size;
    uint64_t found = 0;
    ward_wait_for_all(d, "the end of a registration");
    for (struct ward_host **at = &d->hosts; *at != NULL;) {
        struct ward_host *h = *at;
        const uint8_t *end = h->data + h->bytes;
        bool exact = h->data == from && h->bytes == size;
        if (h->data >= to || end <= from || (!exact && !d->w->params.slices)) {
            at = &h->next;
            continue;
        }
        *at = h->next;
        found += (uint64_t)((end < to ? end : to) - (h->data > from ? h->data : from));
        if (h->data < from) {
            host_add(d, h->data, (uint64_t)(from - h->data));
        }
        if (end > to) {
            host_add(d, to, (uint64_t)(end - to));
        }
        free(h);
    }
    if (found != size) {
        ward_broken(d->w, "registered", "%zu bytes of the host end, %" PRIu64 " were registered",
                    size, found);
    }
}

static uint64_t host_slice(const struct backend_device *d, const void *data, uint64_t size,
                           uint64_t at)
{
    (void)d;
    (void)data;
    return size - at < SLICE_BYTES ? size - at : SLICE_BYTES;
}

static int import_host(struct backend_device *d, void *data, size_t size,
                       struct backend_block **ret_block, uint64_t *ret_align, struct err *e)
{
    if (ward_refuses(d->w, d->w->params.refuse_host)) {
        return err_set(e, ERR_UNSUPPORTED, "the device does not reach this memory");
    }
    *ret_block = ward_block_of(d, ward_mem_make(d, size, data));
    *ret_align = 64;
    return 0;
}

static void release_host(struct backend_device *d, struct backend_block *block)
{
    ward_block_end(d, block);
}

void ward_host_ops(const struct ward_params *p, struct backend_memory_ops *m)
{
    if (p->registers != 0) {
        m->register_host = register_host;
        m->unregister_host = unregister_host;
        m->host_slice = p->slices != 0 ? host_slice : NULL;
    }
    if (p->imports != 0) {
        m->import_host = import_host;
        m->release_host = release_host;
    }
}
