#include "daemon/pool/host.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#define CHUNK_MIN (UINT64_C(64) << 10)

/* Touches all pages at once, so that a lack of memory is an error here and not a signal later.
 * Large pages where the system has some: a worker makes 16 MiB when it starts, which take 5 ms in
 * pages of 4 KiB, and 1 ms in large ones. false: no memory. */
static bool touch(void *memory, uint64_t bytes)
{
    (void)madvise(memory, bytes, MADV_HUGEPAGE);
    /* errors but ENOMEM: a kernel that does not know the call; the pages come with their first use
     */
    return madvise(memory, bytes, MADV_POPULATE_WRITE) == 0 || errno != ENOMEM;
}

int pool_host_make(struct pool_host *h, uint64_t bytes, void **ret_memory, struct err *e)
{
    const struct pool_host_options *o = &h->options;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || !touch(memory, bytes)) {
        int rc =
            err_errno(e, ERR_DEVICE_MEMORY, "%llu bytes of host memory", (unsigned long long)bytes);
        if (memory != MAP_FAILED) {
            (void)munmap(memory, bytes);
        }
        return rc;
    }
    int rc = o->pin != NULL ? o->pin(o->user, memory, bytes, e) : 0;
    if (rc != 0) {
        (void)munmap(memory, bytes);
        return rc;
    }
    *ret_memory = memory;
    return 0;
}

static int chunk_alloc(void *user, uint64_t bytes, void **ret_block, struct err *e)
{
    struct pool_host *h = user;
    const struct pool_host_options *o = &h->options;
    int rc = o->make != NULL ? o->make(o->user, h, bytes, ret_block, e)
                             : pool_host_make(h, bytes, ret_block, e);
    h->bytes += rc == 0 ? bytes : 0;
    return rc;
}

void pool_host_gone(struct pool_host *h, uint64_t bytes)
{
    h->bytes -= bytes;
}

void pool_host_drop(struct pool_host *h, void *memory, uint64_t bytes)
{
    if (h->options.unpin != NULL) {
        h->options.unpin(h->options.user, memory, bytes);
    }
    (void)munmap(memory, bytes);
    pool_host_gone(h, bytes);
}

static void chunk_free(void *user, void *block, uint64_t bytes)
{
    struct pool_host *h = user;
    if (h->options.later != NULL) {
        h->options.later(h->options.user, h, block, bytes);
    } else {
        pool_host_drop(h, block, bytes);
    }
}

/* New chunks are zeros already. */
static int chunk_clear(void *user, void *range, uint64_t at, uint64_t bytes, struct err *e)
{
    (void)user;
    (void)range;
    (void)at;
    (void)bytes;
    (void)e;
    return 0;
}

int pool_host_init(struct pool_host *h, const struct pool_host_options *options, struct err *e)
{
    uint64_t chunk = options->chunk;
    if (chunk < CHUNK_MIN || (chunk & (chunk - 1)) != 0 ||
        (options->pin == NULL) != (options->unpin == NULL)) {
        return err_set(e, ERR_INVALID, "host memory in chunks of %llu bytes, %s",
                       (unsigned long long)chunk,
                       (options->pin == NULL) != (options->unpin == NULL) ? "half pinned" : "ok");
    }
    *h = (struct pool_host){.options = *options};
    h->blocks = (struct pool_blocks){.alloc = chunk_alloc, .free = chunk_free, .chunk = chunk};
    h->source = (struct pool_source){.user = h, .blocks = &h->blocks, .clear = chunk_clear};
    return 0;
}
