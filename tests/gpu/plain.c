/* Copies to the device from memory that the driver does not know, behind a kernel of their stream:
 * how long each call holds up its caller, and what becomes of several in one call, which gpud never
 * asks for. That may end the context, so this is a process of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "daemon/backend/cuda/driver/error.h"
#include "tests/gpu/direct.h"
#include "tests/gpu/items.h"
#include "tests/gpu/record.h"

#define KERNEL_NS (50 * NS_PER_MS)
#define PIECES    64u
#define PIECE     ((size_t)4096)
#define MOST      ((size_t)1 << 20)

struct plain {
    struct direct d;
    CUfunction spin;
    CUdeviceptr memory;
    uint8_t *host;
};

static void single(struct plain *p, size_t bytes, const char *name, struct record *r)
{
    direct_launch(&p->d, p->spin, 0, KERNEL_NS);
    uint64_t begin_ns = clock_now_ns();
    must(p->d.cu.MemcpyHtoDAsync(p->memory, p->host, bytes, p->d.stream));
    record_figure(r, name, (double)(clock_now_ns() - begin_ns) / 1e6, "ms");
    direct_wait(&p->d);
}

/* The driver's word on the call, on its work, and on whatever comes after that. */
struct words {
    CUresult call, work, after;
};

/* false: the driver has no such call. */
static bool together(struct plain *p, struct words *ret_words, struct record *r)
{
#if CUDA_VERSION >= 12080
    CUdeviceptr dst[PIECES];
    CUdeviceptr src[PIECES];
    size_t size[PIECES];
    size_t first = 0;
    size_t failed = 0;
    CUmemcpyAttributes how = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    if (p->d.cu.MemcpyBatchAsync == NULL) {
        return false;
    }
    for (unsigned i = 0; i < PIECES; i++) { /* no neighbours */
        dst[i] = p->memory + i * PIECE;
        src[i] = (CUdeviceptr)(uintptr_t)(p->host + (PIECES - 1 - i) * PIECE);
        size[i] = PIECE;
    }
    direct_launch(&p->d, p->spin, 0, KERNEL_NS);
    uint64_t begin_ns = clock_now_ns();
    ret_words->call =
        p->d.cu.MemcpyBatchAsync(dst, src, size, PIECES, &how, &first, 1, &failed, p->d.stream);
    record_figure(r, "64 of 4 KiB in one call", (double)(clock_now_ns() - begin_ns) / 1e6, "ms");
    ret_words->work = p->d.cu.StreamSynchronize(p->d.stream);
    ret_words->after = p->d.CtxSynchronize();
    return true;
#else
    (void)p, (void)ret_words, (void)r;
    return false;
#endif
}

static const char *said(CUresult rc)
{
    return rc == CUDA_SUCCESS ? "succeeded" : cuda_error_name(rc);
}

static bool arrived(struct plain *p)
{
    static uint8_t back[PIECES * PIECE];
    bool same = true;
    must(p->d.cu.MemcpyDtoHAsync(back, p->memory, sizeof back, p->d.stream));
    direct_wait(&p->d);
    for (size_t i = 0; i < PIECES; i++) {
        same = same && memcmp(back + i * PIECE, p->host + (PIECES - 1 - i) * PIECE, PIECE) == 0;
    }
    return same;
}

void item_plain(void)
{
    struct plain p = {.host = malloc(MOST)};
    struct words w = {CUDA_SUCCESS, CUDA_SUCCESS, CUDA_SUCCESS};
    struct record r;
    if (p.host == NULL) {
        perror("plain memory");
        exit(EXIT_FAILURE);
    }
    for (size_t i = 0; i < MOST; i++) {
        p.host[i] = (uint8_t)(i >> 8);
    }
    direct_open(&p.d);
    p.spin = direct_kernel(&p.d, "spin");
    must(p.d.cu.MemAlloc(&p.memory, MOST));
    record_begin(&r, "copies of plain memory");
    single(&p, PIECE, "4 KiB", &r);
    single(&p, (size_t)64 << 10, "64 KiB", &r);
    single(&p, MOST, "1 MiB", &r);
    if (!together(&p, &w, &r)) {
        record_note(&r, "behind a kernel of 50 ms; there is no call for several");
    } else {
        bool dead = w.after != CUDA_SUCCESS;
        record_note(&r,
                    "behind a kernel of 50 ms; several: the call: %s, its work: %s, whatever comes "
                    "then: %s%s",
                    said(w.call), said(w.work), said(w.after),
                    dead                     ? ""
                    : w.call != CUDA_SUCCESS ? ", nothing arrived"
                    : arrived(&p)            ? ", all arrived"
                                             : ", others arrived");
        record_figure(&r, "several, the context lost", dead, "");
        (void)record_end(&r);
        if (dead) {
            return; /* nothing can be tidied up any more */
        }
    }
    must(p.d.cu.MemFree(p.memory));
    direct_close(&p.d);
    free(p.host);
}
