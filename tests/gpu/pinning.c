/* Host memory is pinned in one thread: how long calls of another one wait for that, where pinning
 * brings the pages and where they are there before, as gpud does it. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/gpu/direct.h"
#include "tests/gpu/items.h"
#include "tests/gpu/record.h"

struct pinning {
    struct direct d;
    CUfunction nothing;
    size_t size; /* bytes */
    void *data;
    bool before; /* the pages are there before */
    double ms;   /* that the call took */
    atomic_bool ended;
};

static void *memory_make(size_t size)
{
    int fd = memfd_create("gpu-pinning", MFD_CLOEXEC);
    void *data = fd >= 0 && ftruncate(fd, (off_t)size) == 0
                     ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                     : MAP_FAILED;
    if (data == MAP_FAILED) {
        perror("memory to pin");
        exit(EXIT_FAILURE);
    }
    (void)close(fd);
    return data;
}

static void *in_thread(void *arg)
{
    struct pinning *p = arg;
    must(p->d.cu.CtxSetCurrent(p->d.context));
    if (p->before && madvise(p->data, p->size, MADV_POPULATE_WRITE) != 0) {
        perror("madvise");
    }
    uint64_t begin_ns = clock_now_ns();
    must(p->d.cu.MemHostRegister(p->data, p->size, 0));
    p->ms = (double)(clock_now_ns() - begin_ns) / 1e6;
    atomic_store(&p->ended, true);
    return NULL;
}

static void longest(double *most_ms, uint64_t begin_ns)
{
    double ms = (double)(clock_now_ns() - begin_ns) / 1e6;
    *most_ms = ms > *most_ms ? ms : *most_ms;
}

static void one(struct pinning *p, bool before, const char *const name[3], struct record *r)
{
    pthread_t thread;
    double ask_ms = 0;
    double launch_ms = 0;
    p->data = memory_make(p->size);
    p->before = before;
    atomic_store(&p->ended, false);
    if (pthread_create(&thread, NULL, in_thread, p) != 0) {
        (void)fputs("no thread\n", stderr);
        exit(EXIT_FAILURE);
    }
    do {
        size_t unused = 0;
        size_t total = 0;
        uint64_t begin_ns = clock_now_ns();
        must(p->d.cu.MemGetInfo(&unused, &total));
        longest(&ask_ms, begin_ns);
        begin_ns = clock_now_ns();
        direct_launch(&p->d, p->nothing, 1, 0);
        direct_wait(&p->d);
        longest(&launch_ms, begin_ns);
    } while (!atomic_load(&p->ended));
    (void)pthread_join(thread, NULL);
    must(p->d.cu.MemHostUnregister(p->data));
    (void)munmap(p->data, p->size);
    record_figure(r, name[0], p->ms, "ms");
    record_figure(r, name[1], ask_ms, "ms");
    record_figure(r, name[2], launch_ms, "ms");
}

void item_pinning(void)
{
    static const char *const fresh[] = {"cuMemHostRegister", "cuMemGetInfo meanwhile",
                                        "empty kernel meanwhile"};
    static const char *const there[] = {"cuMemHostRegister, pages there before",
                                        "cuMemGetInfo meanwhile, pages there before",
                                        "empty kernel meanwhile, pages there before"};
    struct pinning p = {.size = record_effort(256, 1024) * ((size_t)1 << 20)};
    struct record r;
    direct_open(&p.d);
    p.nothing = direct_kernel(&p.d, "nothing");
    record_begin(&r, "pinning beside calls");
    one(&p, false, fresh, &r);
    one(&p, true, there, &r);
    record_note(&r, "%zu MiB of shared memory; the longest of what another thread asked for",
                p.size >> 20);
    (void)record_end(&r);
    direct_close(&p.d);
}
