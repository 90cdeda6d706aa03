#include "daemon/worker/spill/spill_host.h"

#include <stdlib.h>

struct chunk {
    struct release release;
    struct pool_host *host;
    void *memory;
    uint64_t bytes;
};

static int pin(void *user, void *memory, uint64_t bytes, struct err *e)
{
    struct device *dev = user;
    return dev->b->memory->register_host(dev->d, memory, (size_t)bytes, true, e);
}

static void unpin(void *user, void *memory, uint64_t bytes)
{
    struct device *dev = user;
    dev->b->memory->unregister_host(dev->d, memory, (size_t)bytes);
}

static void release(void *item)
{
    struct chunk *c = item;
    pool_host_drop(c->host, c->memory, c->bytes);
    free(c);
}

/* Without memory for the entry the chunk is freed at once. */
static void later(void *user, struct pool_host *h, void *memory, uint64_t bytes)
{
    struct device *dev = user;
    struct chunk *c = dev->memory.releases != NULL ? malloc(sizeof *c) : NULL;
    if (c == NULL) {
        pool_host_drop(h, memory, bytes);
        return;
    }
    *c = (struct chunk){.host = h, .memory = memory, .bytes = bytes};
    release_put(dev->memory.releases, &c->release, bytes, release, c);
}

int spill_host_init(struct pool_host *h, struct device *device, uint64_t chunk, struct err *e)
{
    bool pins = device->b->memory->register_host != NULL;
    const struct pool_host_options options = {.chunk = chunk,
                                              .pin = pins ? pin : NULL,
                                              .unpin = pins ? unpin : NULL,
                                              .later = pins ? later : NULL,
                                              .user = device};
    return pool_host_init(h, &options, e);
}
