#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "daemon/backend/sim/sim.h"

/*
 * A device's handles are parts of one file in memory, and a range is reserved address space. A
 * handle therefore keeps its bytes when it is mapped elsewhere or at several places. An access to
 * addresses without a handle ends the process, as on a device.
 *
 * The file has a section as large as the device for each size of handle, so that a handle is one
 * row of bytes however the others lie. Only what is used has memory behind it.
 */

#define PAGE       (UINT64_C(2) << 20)
#define MEMORY_MIN (UINT64_C(64) << 20) /* bytes: smaller devices have no handles, */
#define MEMORY_MAX (UINT64_C(1) << 40)  /* nor have larger ones: addresses are limited */

static uint64_t page_bytes(struct backend_device *d)
{
    bool fits = d->config.memory >= MEMORY_MIN && d->config.memory <= MEMORY_MAX;
    return d->config.pages && fits ? PAGE : 0;
}

static uint64_t handle_max(struct backend_device *d)
{
    (void)d;
    return PAGE << (SIM_HANDLE_SIZES - 1);
}

static unsigned size_of(uint64_t bytes)
{
    return (unsigned)__builtin_ctzll(bytes / PAGE);
}

static uint64_t section(const struct backend_device *d)
{
    return d->config.memory / PAGE * PAGE;
}

static int file_open(struct backend_device *d, struct err *e)
{
    uint64_t count = d->config.memory / PAGE;
    int fd = memfd_create("gpud-sim", MFD_CLOEXEC);
    bool *in_use = calloc(SIM_HANDLE_SIZES * count, sizeof *in_use);
    if (fd < 0 || !in_use || ftruncate(fd, (off_t)(SIM_HANDLE_SIZES * section(d))) != 0) {
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

/* The caller has the lock. */
static bool runs_since(const struct backend_device *d, uint64_t begun)
{
    bool any = false;
    for (unsigned i = 0; i < SIM_SLOTS_MAX; i++) {
        any = any || (d->running[i] != 0 && d->running[i] <= begun);
    }
    return any;
}

void sim_linger(struct backend_device *d, uint64_t us)
{
    const struct timespec t = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
    if (us == 0) {
        return;
    }
    pthread_mutex_lock(&d->lock);
    uint64_t begun = d->begun;
    pthread_mutex_unlock(&d->lock);
    (void)nanosleep(&t, NULL);
    pthread_mutex_lock(&d->lock);
    while (runs_since(d, begun)) {
        pthread_cond_wait(&d->changed, &d->lock);
    }
    pthread_mutex_unlock(&d->lock);
}

/* Names are 1 + the number of a PAGE of the file. */
static int create(struct backend_device *d, uint64_t bytes, uint64_t *ret_handle, struct err *e)
{
    unsigned size = size_of(bytes);
    uint64_t count = section(d) / bytes;
    sim_linger(d, d->config.map_us);
    pthread_mutex_lock(&d->lock);
    int rc = sim_action_error(script_next(&d->config.script, SIM_ALLOC), SIM_ALLOC, e);
    if (rc == 0 && (bytes > d->config.memory - d->used || count == 0)) {
        rc = err_set(e, ERR_DEVICE_MEMORY, "no %llu bytes are left of %llu",
                     (unsigned long long)bytes, (unsigned long long)d->config.memory);
    }
    if (rc == 0) {
        bool *in_use = d->page_in_use + size * (section(d) / PAGE);
        uint64_t n = d->handle_next[size];
        while (in_use[n]) {
            n = (n + 1) % count;
        }
        in_use[n] = true;
        d->handle_next[size] = n;
        d->used += bytes;
        *ret_handle = (size * section(d) + n * bytes) / PAGE + 1;
    }
    pthread_mutex_unlock(&d->lock);
    return rc;
}

/* Pages keep their bytes for the next user, as on a device; larger handles give their memory back:
 * the file would keep several times the device's. */
static void destroy(struct backend_device *d, uint64_t handle, uint64_t bytes)
{
    unsigned size = size_of(bytes);
    uint64_t at = (handle - 1) * PAGE;
    uint64_t n = (at - size * section(d)) / bytes;
    sim_linger(d, d->config.map_us);
    if (size > 0) {
        (void)fallocate(d->page_file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at,
                        (off_t)bytes);
    }
    pthread_mutex_lock(&d->lock);
    d->page_in_use[size * (section(d) / PAGE) + n] = false;
    d->handle_next[size] = n;
    d->used -= bytes;
    pthread_mutex_unlock(&d->lock);
}

static int map(struct backend_device *d, struct backend_block *range, uint64_t at, uint64_t handle,
               uint64_t bytes, struct err *e)
{
    sim_linger(d, d->config.map_us);
    void *data = mmap(range->data + at, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, d->page_file,
                      (off_t)((handle - 1) * PAGE));
    return data != MAP_FAILED ? 0 : err_errno(e, ERR_NOMEM, "map simulated memory");
}

static int unmap(struct backend_device *d, struct backend_block *range, uint64_t at, uint64_t bytes,
                 struct err *e)
{
    sim_linger(d, d->config.map_us);
    void *data = mmap(range->data + at, bytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return data != MAP_FAILED ? 0 : err_errno(e, ERR_NOMEM, "unmap simulated memory");
}

static int allow(struct backend_device *d, struct backend_block *range, uint64_t at, uint64_t bytes,
                 struct err *e)
{
    sim_linger(d, d->config.map_us);
    return mprotect(range->data + at, bytes, PROT_READ | PROT_WRITE) == 0
               ? 0
               : err_errno(e, ERR_NOMEM, "access to simulated pages");
}

const struct backend_page_ops sim_page_ops = {
    .page_bytes = page_bytes,
    .handle_max = handle_max,
    .reserve = reserve,
    .release = release,
    .create = create,
    .destroy = destroy,
    .map = map,
    .unmap = unmap,
    .access = allow,
};
