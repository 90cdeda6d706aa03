#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/backend/sim/sim.h"

/*
 * A device's pages are pieces of one file in memory, and a range is reserved address space. A page
 * therefore keeps its bytes when it is mapped elsewhere or at several places. An access to
 * addresses without a page ends the process, as on a device.
 */

#define PAGE       (UINT64_C(2) << 20)
#define MEMORY_MIN (UINT64_C(64) << 20) /* bytes: smaller devices have no pages, */
#define MEMORY_MAX (UINT64_C(1) << 40)  /* nor have larger ones: addresses are limited */

static uint64_t page_bytes(struct backend_device *d)
{
    bool fits = d->config.memory >= MEMORY_MIN && d->config.memory <= MEMORY_MAX;
    return d->config.pages && fits ? PAGE : 0;
}

static int file_open(struct backend_device *d, struct err *e)
{
    uint64_t count = d->config.memory / PAGE;
    int fd = memfd_create("gpud-sim", MFD_CLOEXEC);
    bool *in_use = calloc(count, sizeof *in_use);
    if (fd < 0 || !in_use || ftruncate(fd, (off_t)(count * PAGE)) != 0) {
        int rc =
            err_errno(e, ERR_NOMEM, "a file for %llu simulated pages", (unsigned long long)count);
        free(in_use);
        if (fd >= 0) {
            (void)close(fd);
        }
        return rc;
    }
    d->page_file = fd;
    d->page_in_use = in_use;
    return 0;
}

void sim_pages_finish(struct backend_device *d)
{
    if (d->page_in_use) {
        (void)close(d->page_file);
        free(d->page_in_use);
    }
}

static int reserve(struct backend_device *d, uint64_t bytes, struct backend_block **ret_range,
                   struct err *e)
{
    int rc = d->page_in_use ? 0 : file_open(d, e);
    if (rc != 0) {
        return rc;
    }
    struct backend_block *b = calloc(1, sizeof *b);
    void *data = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!b || data == MAP_FAILED) {
        rc = err_errno(e, ERR_NOMEM, "%llu bytes of addresses", (unsigned long long)bytes);
        free(b);
        return rc;
    }
    b->size = bytes;
    b->data = data;
    *ret_range = b;
    return 0;
}

static void release(struct backend_device *d, struct backend_block *range)
{
    (void)d;
    (void)munmap(range->data, range->size);
    free(range);
}

static int create(struct backend_device *d, uint64_t *ret_page, struct err *e)
{
    pthread_mutex_lock(&d->lock);
    enum sim_action action = script_next(&d->config.script, SIM_ALLOC);
    pthread_mutex_unlock(&d->lock);
    int rc = sim_action_error(action, SIM_ALLOC, e);
    if (rc != 0) {
        return rc;
    }
    if (PAGE > d->config.memory - d->used) {
        return err_set(e, ERR_DEVICE_MEMORY, "no page is left of %llu bytes",
                       (unsigned long long)d->config.memory);
    }
    uint64_t page = d->page_next;
    while (d->page_in_use[page]) {
        page = (page + 1) % (d->config.memory / PAGE);
    }
    d->page_next = page;
    d->page_in_use[page] = true;
    d->used += PAGE;
    *ret_page = page + 1;
    return 0;
}

static void destroy(struct backend_device *d, uint64_t page)
{
    d->page_in_use[page - 1] = false;
    d->page_next = page - 1;
    d->used -= PAGE;
}

static int map(struct backend_device *d, struct backend_block *range, uint64_t at, uint64_t page,
               struct err *e)
{
    void *data = mmap(range->data + at, PAGE, PROT_NONE, MAP_SHARED | MAP_FIXED, d->page_file,
                      (off_t)((page - 1) * PAGE));
    return data != MAP_FAILED ? 0 : err_errno(e, ERR_NOMEM, "map a simulated page");
}

static int unmap(struct backend_device *d, struct backend_block *range, uint64_t at, struct err *e)
{
    (void)d;
    void *data = mmap(range->data + at, PAGE, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return data != MAP_FAILED ? 0 : err_errno(e, ERR_NOMEM, "unmap a simulated page");
}

static int allow(struct backend_device *d, struct backend_block *range, uint64_t at, uint64_t bytes,
                 struct err *e)
{
    (void)d;
    return mprotect(range->data + at, bytes, PROT_READ | PROT_WRITE) == 0
               ? 0
               : err_errno(e, ERR_NOMEM, "access to simulated pages");
}

const struct backend_page_ops sim_page_ops = {
    .page_bytes = page_bytes,
    .reserve = reserve,
    .release = release,
    .create = create,
    .destroy = destroy,
    .map = map,
    .unmap = unmap,
    .access = allow,
    .aliases = true,
};
