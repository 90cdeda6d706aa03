#include <stdlib.h>

#include "daemon/backend/sim/sim.h"

#define MIB         (UINT64_C(1) << 20)
#define SLICE_BYTES (16 * MIB)

static void memory_give(struct backend_device *d, uint64_t size)
{
    pthread_mutex_lock(&d->lock); /* because the page table is another thread's */
    d->used -= size;
    pthread_mutex_unlock(&d->lock);
}

static int memory_take(struct backend_device *d, uint64_t size, struct err *e)
{
    pthread_mutex_lock(&d->lock);
    int rc = sim_action_error(script_next(&d->config.script, SIM_ALLOC), SIM_ALLOC, e);
    if (rc == 0 && size > d->config.memory - d->used) {
        rc = err_set(e, ERR_DEVICE_MEMORY, "%llu bytes wanted, %llu free", (unsigned long long)size,
                     (unsigned long long)(d->config.memory - d->used));
    }
    d->used += rc == 0 ? size : 0;
    pthread_mutex_unlock(&d->lock);
    return rc;
}

static int memory_alloc(struct backend_device *d, uint64_t size, struct backend_block **ret_block,
                        struct err *e)
{
    if (size == 0) {
        return err_set(e, ERR_INVALID, "a block of 0 bytes");
    }
    int rc = memory_take(d, size, e);
    if (rc != 0) {
        return rc;
    }
    struct backend_block *b = calloc(1, sizeof *b);
    uint8_t *data =
        aligned_alloc(BACKEND_ALIGN, (size + BACKEND_ALIGN - 1) / BACKEND_ALIGN * BACKEND_ALIGN);
    if (!b || !data) {
        free(b);
        free(data);
        memory_give(d, size);
        return err_set(e, ERR_DEVICE_MEMORY, "the host has no room for %llu simulated bytes",
                       (unsigned long long)size);
    }
    b->size = size;
    b->data = data;
    *ret_block = b;
    return 0;
}

static void memory_free(struct backend_device *d, struct backend_block *b)
{
    if (!b) {
        return;
    }
    memory_give(d, b->size);
    free(b->data);
    free(b);
}

static int memory_room(struct backend_device *d, uint64_t *ret_bytes, struct err *e)
{
    (void)e;
    pthread_mutex_lock(&d->lock);
    *ret_bytes = d->config.memory - d->used;
    pthread_mutex_unlock(&d->lock);
    return 0;
}

/* The entry of registered memory; data NULL: a free entry. NULL: there is none. The caller has
 * the lock. */
static void **host_slot(struct backend_device *d, const void *data)
{
    unsigned i = 0;
    while (i < SIM_HOST_MAX && d->host[i] != data) {
        i++;
    }
    return i < SIM_HOST_MAX ? &d->host[i] : NULL;
}

/* `data` and `size` are of one slice. */
static int slice_register(struct backend_device *d, void *data, size_t size, struct err *e)
{
    void **slot = NULL;
    pthread_mutex_lock(&d->lock); /* because any thread may call */
    bool known = data != NULL && host_slot(d, data) != NULL;
    slot = known || data == NULL || size == 0 ? NULL : host_slot(d, NULL);
    if (slot != NULL) {
        *slot = data;
    }
    pthread_mutex_unlock(&d->lock);
    if (known) {
        return err_set(e, ERR_EXISTS, "%zu bytes of host memory are registered already", size);
    }
    return slot != NULL
               ? 0
               : err_set(e, ERR_LIMIT, "%zu bytes of host memory cannot be registered", size);
}

static void slice_unregister(struct backend_device *d, const void *data)
{
    pthread_mutex_lock(&d->lock);
    void **slot = host_slot(d, data);
    if (slot == NULL) {
        abort(); /* not registered: an error of the caller */
    }
    *slot = NULL;
    pthread_mutex_unlock(&d->lock);
}

static uint64_t host_slice(const struct backend_device *d, const void *data, uint64_t size,
                           uint64_t at)
{
    (void)d;
    (void)data;
    return size - at < SLICE_BYTES ? size - at : SLICE_BYTES;
}

static void unregister_host(struct backend_device *d, void *data, size_t size)
{
    for (uint64_t at = 0, n; at < size; at += n) {
        n = host_slice(d, data, size, at);
        sim_linger(d, (n + MIB - 1) / MIB * d->config.host_us);
        slice_unregister(d, (uint8_t *)data + at);
    }
}

static int register_host(struct backend_device *d, void *data, size_t size, bool writes,
                         struct err *e)
{
    int rc = data == NULL || size == 0 ? slice_register(d, data, size, e) : 0;
    uint64_t at = 0;
    (void)writes;
    while (at < size && rc == 0) {
        uint64_t n = host_slice(d, data, size, at);
        sim_linger(d, (n + MIB - 1) / MIB * d->config.host_us);
        rc = slice_register(d, (uint8_t *)data + at, (size_t)n, e);
        at += rc == 0 ? n : 0;
    }
    if (rc != 0) {
        unregister_host(d, data, at);
    }
    return rc;
}

/* Simulated devices compute on the host, so its memory serves as theirs. */
static int import_host(struct backend_device *d, void *data, size_t size,
                       struct backend_block **ret_block, uint64_t *ret_align, struct err *e)
{
    struct backend_block *b = calloc(1, sizeof *b);
    (void)d;
    if (!b) {
        return err_set(e, ERR_NOMEM, "no memory for a block of host memory");
    }
    b->size = size;
    b->data = data;
    *ret_block = b;
    *ret_align = sizeof(uint64_t);
    return 0;
}

static void release_host(struct backend_device *d, struct backend_block *b)
{
    (void)d;
    free(b);
}

const struct backend_memory_ops sim_memory_ops = {
    .alloc = memory_alloc,
    .free = memory_free,
    .room = memory_room,
    .register_host = register_host,
    .unregister_host = unregister_host,
    .host_slice = host_slice,
    .import_host = import_host,
    .release_host = release_host,
};
