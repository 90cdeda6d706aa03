#include "daemon/worker/spill/spill_host.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "common/clock.h"
#include "common/log.h"

struct spill_chunk {
    struct registration registration;
    struct release release;
    struct spill_host *host;
};

static int pin(void *user, void *memory, uint64_t bytes, struct err *e)
{
    const struct spill_host *h = user;
    return h->device->b->memory->register_host(h->device->d, memory, (size_t)bytes, true, e);
}

static void unpin(void *user, void *memory, uint64_t bytes)
{
    const struct spill_host *h = user;
    h->device->b->memory->unregister_host(h->device->d, memory, (size_t)bytes);
}

/* ---- chunks that come -------------------------------------------------------------------------*/

static void on_come(struct registration *x)
{
    struct spill_chunk *c = x->owner;
    struct spill_host *h = c->host;
    h->coming = NULL;
    if (x->e.code == 0) {
        h->there = c;
    } else {
        log_say(LOG_SPILL_FAILED, "host memory for spilled buffers: %s", x->e.text);
        h->refused_ns = clock_now_ns();
        h->refused_bytes = x->size;
        h->refusal = x->e;
        (void)munmap(x->data, (size_t)x->size);
        free(c);
    }
    if (h->news != NULL) {
        h->news(h->data);
    }
}

static int order(struct spill_host *h, uint64_t bytes, struct err *e)
{
    struct spill_chunk *c = calloc(1, sizeof *c);
    void *memory =
        c == NULL ? MAP_FAILED
                  : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        free(c);
        return err_set(e, ERR_DEVICE_MEMORY, "no %" PRIu64 " bytes of host memory", bytes);
    }
    c->host = h;
    c->registration =
        (struct registration){.data = memory, .size = bytes, .done = on_come, .owner = c};
    h->coming = c;
    h->ordered_ns = clock_now_ns();
    registrar_add(h->registrar, &c->registration, 0);
    return 0;
}

static bool is_refused(const struct spill_host *h, uint64_t bytes)
{
    return h->refused_ns != 0 && bytes >= h->refused_bytes &&
           clock_now_ns() - h->refused_ns < SPILL_HOST_AGAIN_NS;
}

static void chunk_go(struct spill_chunk *c);

static int make(void *user, struct pool_host *pool, uint64_t bytes, void **ret_memory,
                struct err *e)
{
    struct spill_host *h = user;
    struct spill_chunk *c = h->there;
    int rc = 0;
    if (c != NULL && c->registration.size == bytes) {
        *ret_memory = c->registration.data;
        h->there = NULL;
        free(c);
        return 0;
    }
    if (h->registrar == NULL || h->now) {
        return pool_host_make(pool, bytes, ret_memory, e);
    }
    if (h->coming == NULL && is_refused(h, bytes)) {
        return err_set(e, h->refusal.code, "%s", h->refusal.text);
    }
    if (h->coming == NULL && c != NULL) { /* the limit has changed: it has a size of before */
        h->there = NULL;
        pool->bytes += c->registration.size;
        chunk_go(c);
    }
    if (h->coming == NULL) {
        rc = order(h, bytes, e);
    }
    return rc != 0 ? rc
                   : err_set(e, ERR_BUSY, "%" PRIu64 " bytes of host memory are on their way",
                             h->coming->registration.size);
}

bool spill_host_grows(const struct spill_host *h)
{
    return h->coming != NULL && clock_now_ns() - h->ordered_ns < SPILL_HOST_NS;
}

/* ---- chunks that go ---------------------------------------------------------------------------*/

static void release(void *item);

static void on_gone(struct registration *x)
{
    struct spill_chunk *c = x->owner;
    if (registration_left(x)) {
        release(c);
        return;
    }
    pool_host_gone(&c->host->pool, x->size);
    free(c);
}

static void release(void *item)
{
    struct spill_chunk *c = item;
    struct registration *x = &c->registration;
    if (c->host->registrar != NULL) {
        registrar_remove(c->host->registrar, x, 0);
    } else {
        pool_host_drop(&c->host->pool, x->data, x->size);
        free(c);
    }
}

static void chunk_go(struct spill_chunk *c)
{
    c->registration.done = on_gone;
    release_put(c->host->device->memory.releases, &c->release, c->registration.size, release, c);
}

/* Without memory for the entry the chunk is freed at once. */
static void later(void *user, struct pool_host *pool, void *memory, uint64_t bytes)
{
    struct spill_host *h = user;
    struct spill_chunk *c = h->device->memory.releases != NULL ? malloc(sizeof *c) : NULL;
    if (c == NULL) {
        pool_host_drop(pool, memory, bytes);
        return;
    }
    *c = (struct spill_chunk){.host = h,
                              .registration = {.data = memory,
                                               .size = bytes,
                                               .known = pool->options.pin != NULL ? bytes : 0,
                                               .owner = c}};
    chunk_go(c);
}

int spill_host_init(struct spill_host *h, struct device *device, struct registrar *registrar,
                    uint64_t chunk, struct err *e)
{
    bool pins = device->b->memory->register_host != NULL;
    const struct pool_host_options options = {.chunk = chunk,
                                              .pin = pins ? pin : NULL,
                                              .unpin = pins ? unpin : NULL,
                                              .make = make,
                                              .later = later,
                                              .user = h};
    *h = (struct spill_host){.device = device, .registrar = registrar};
    return pool_host_init(&h->pool, &options, e);
}

void spill_host_finish(struct spill_host *h)
{
    struct spill_chunk *c = h->there;
    if (c != NULL) {
        h->there = NULL;
        h->pool.bytes += c->registration.size;
        pool_host_drop(&h->pool, c->registration.data, c->registration.size);
        free(c);
    }
}
