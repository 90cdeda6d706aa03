/* Pages as the pool moves them: mapped until 90 % of the memory is in use, and moved beside a
 * kernel, with their contents checked. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "tests/gpu/direct.h"
#include "tests/gpu/items.h"
#include "tests/gpu/record.h"

#define BATCH  1000u
#define MOVED  64u
#define ROUNDS 16u

struct area {
    struct direct d;
    CUmemAllocationProp prop;
    size_t page; /* bytes */
    CUdeviceptr base;
    unsigned room; /* pages of address space */
    CUmemGenericAllocationHandle *handle;
};

static void area_open(struct area *a, unsigned room)
{
    a->room = room;
    a->handle = calloc(room, sizeof *a->handle);
    if (a->handle == NULL) {
        perror("pages");
        exit(EXIT_FAILURE);
    }
    must(a->d.cu.MemAddressReserve(&a->base, room * a->page, 0, 0, 0));
}

static void area_prepare(struct area *a)
{
    direct_open(&a->d);
    a->prop =
        (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                              .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = a->d.device}};
    must(a->d.cu.MemGetAllocationGranularity(&a->page, &a->prop,
                                             CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
}

static void area_close(struct area *a)
{
    must(a->d.cu.MemAddressFree(a->base, a->room * a->page));
    free(a->handle);
    direct_close(&a->d);
}

static CUdeviceptr place(const struct area *a, unsigned index)
{
    return a->base + (uint64_t)index * a->page;
}

static void map(struct area *a, unsigned page, unsigned index)
{
    const CUmemAccessDesc access = {.location = a->prop.location,
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    must(a->d.cu.MemMap(place(a, index), a->page, 0, a->handle[page], 0));
    must(a->d.cu.MemSetAccess(place(a, index), a->page, &access, 1));
}

/* ---- until 90 % is taken --------------------------------------------------------------------- */

struct batches {
    double first_ms, last_ms, most_ms;
    unsigned pages;
};

static void fill(struct area *a, unsigned count, struct batches *b)
{
    uint64_t begin_ns = clock_now_ns();
    for (b->pages = 0; b->pages < count;) {
        if (a->d.cu.MemCreate(&a->handle[b->pages], a->page, &a->prop, 0) != CUDA_SUCCESS) {
            break; /* other processes use memory, too: as far as it goes */
        }
        map(a, b->pages, b->pages);
        b->pages++;
        if (b->pages % BATCH == 0) {
            b->last_ms = (double)(clock_now_ns() - begin_ns) / 1e6;
            b->most_ms = b->last_ms > b->most_ms ? b->last_ms : b->most_ms;
            b->first_ms = b->pages == BATCH ? b->last_ms : b->first_ms;
            begin_ns = clock_now_ns();
        }
    }
}

void item_filling(void)
{
    struct area a = {.page = 0};
    struct batches b = {.pages = 0};
    struct record r;
    size_t unused = 0;
    size_t total = 0;
    area_prepare(&a);
    record_begin(&r, "pool to 90 %");
    must(a.d.cu.MemGetInfo(&unused, &total));
    unsigned count = (unsigned)(unused / 10 * 9 / a.page);
    if (record_is_double() && count > 2 * BATCH) {
        count = 2 * BATCH; /* its memory is the host's */
    }
    area_open(&a, count);
    fill(&a, count, &b);
    uint64_t begin_ns = clock_now_ns();
    for (unsigned i = 0; i < b.pages; i++) {
        must(a.d.cu.MemUnmap(place(&a, i), a.page));
        must(a.d.cu.MemRelease(a.handle[i]));
    }
    double back_ms = (double)(clock_now_ns() - begin_ns) / 1e6;
    record_figure(&r, "pages", b.pages, "");
    record_figure(&r, "the first 1,000", b.first_ms, "ms");
    record_figure(&r, "the last 1,000", b.last_ms, "ms");
    record_figure(&r, "1,000 at most", b.most_ms, "ms");
    record_figure(&r, "given back, 1,000", b.pages > 0 ? back_ms * BATCH / b.pages : 0, "ms");
    record_note(&r, "of %zu KiB: created, mapped and made accessible one by one", a.page >> 10);
    if (b.pages == count) {
        (void)record_end(&r);
    } else {
        record_failed(&r, "the device was full before 90 % of what was free was taken");
    }
    area_close(&a);
}

/* ---- beside a kernel ------------------------------------------------------------------------- */

/* Every page holds its own number, wherever it lies; how many do not. */
static unsigned wrong_pages(struct area *a, unsigned half, CUstream stream, uint32_t *data)
{
    unsigned wrong = 0;
    for (unsigned i = 0; i < MOVED; i++) {
        must(a->d.cu.MemcpyDtoHAsync(data, place(a, half * MOVED + i), a->page, stream));
        must(a->d.cu.StreamSynchronize(stream));
        bool same = true;
        for (size_t k = 0; k < a->page / sizeof *data; k++) {
            same = same && data[k] == 0x5eed0000u + i;
        }
        wrong += !same;
    }
    return wrong;
}

void item_remaps(void)
{
    struct area a = {.page = 0};
    struct record r;
    CUstream copies = NULL;
    unsigned wrong = 0;
    uint64_t spent_ns = 0;
    area_prepare(&a);
    area_open(&a, 2 * MOVED);
    uint32_t *data = malloc(a.page);
    CUfunction spin = direct_kernel(&a.d, "spin");
    must(a.d.cu.StreamCreateWithPriority(&copies, CU_STREAM_NON_BLOCKING, 0));
    if (data == NULL) {
        perror("a page");
        exit(EXIT_FAILURE);
    }
    record_begin(&r, "remaps beside kernels");
    for (unsigned i = 0; i < MOVED; i++) {
        must(a.d.cu.MemCreate(&a.handle[i], a.page, &a.prop, 0));
        map(&a, i, i);
        must(a.d.cu.MemsetD32Async(place(&a, i), 0x5eed0000u + i, a.page / 4, copies));
    }
    must(a.d.cu.StreamSynchronize(copies));
    for (unsigned round = 1; round <= ROUNDS; round++) {
        direct_launch(&a.d, spin, 0, UINT64_C(20000000));
        uint64_t begin_ns = clock_now_ns();
        for (unsigned i = 0; i < MOVED; i++) {
            must(a.d.cu.MemUnmap(place(&a, (round + 1) % 2 * MOVED + i), a.page));
            map(&a, i, round % 2 * MOVED + i);
        }
        spent_ns += clock_now_ns() - begin_ns;
        wrong += wrong_pages(&a, round % 2, copies, data);
        direct_wait(&a.d);
    }
    for (unsigned i = 0; i < MOVED; i++) {
        must(a.d.cu.MemUnmap(place(&a, ROUNDS % 2 * MOVED + i), a.page));
        must(a.d.cu.MemRelease(a.handle[i]));
    }
    record_figure(&r, "moves", ROUNDS * MOVED, "");
    record_figure(&r, "a move", (double)spent_ns / 1e3 / (ROUNDS * MOVED), "us");
    record_figure(&r, "pages with other bytes", wrong, "");
    if (wrong == 0) {
        (void)record_end(&r);
    } else {
        record_failed(&r, "a page that was moved beside a kernel holds other bytes");
    }
    free(data);
    must(a.d.cu.StreamDestroy(copies));
    area_close(&a);
}
