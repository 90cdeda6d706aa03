/* What a page of device memory costs at the driver, call by call: what remapping of the pool's
 * pages has to be worth. And plain allocation beside it. */
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "tests/gpu/direct.h"
#include "tests/gpu/items.h"
#include "tests/gpu/measure.h"
#include "tests/gpu/record.h"

enum { CREATE, MAP, ACCESS, UNMAP, DESTROY, CALLS };

static const char *const call_name[CALLS] = {"cuMemCreate", "cuMemMap", "cuMemSetAccess",
                                             "cuMemUnmap", "cuMemRelease"};

struct pages {
    struct bench b;
    const struct backend_page_ops *ops;
    struct backend_block *range;
    uint64_t bytes; /* of a page */
    unsigned count;
    uint64_t *page;
    struct samples call[CALLS];
};

#define timed(p, which, action)                                                                    \
    do {                                                                                           \
        uint64_t timed_ns = clock_now_ns();                                                        \
        action;                                                                                    \
        samples_add(&(p)->call[which], clock_now_ns() - timed_ns);                                 \
    } while (0)

/* Each page made, mapped, opened, taken away and given back by itself. */
static void single(struct pages *p)
{
    struct backend_device *d = p->b.device;
    for (unsigned i = 0; i < p->count; i++) {
        uint64_t at = i * p->bytes;
        timed(p, CREATE, must_ok(p->ops->create(d, p->bytes, &p->page[i], e)));
        timed(p, MAP, must_ok(p->ops->map(d, p->range, at, p->page[i], p->bytes, e)));
        timed(p, ACCESS, must_ok(p->ops->access(d, p->range, at, p->bytes, e)));
    }
    for (unsigned i = 0; i < p->count; i++) {
        timed(p, UNMAP, must_ok(p->ops->unmap(d, p->range, i * p->bytes, p->bytes, e)));
        timed(p, DESTROY, p->ops->destroy(d, p->page[i], p->bytes));
    }
}

/* Pages that are there already, moved to other addresses at once, opened by one call: a remap.
 * Nanoseconds per page. */
static double moved(struct pages *p, unsigned together)
{
    struct backend_device *d = p->b.device;
    uint64_t spent_ns = 0;
    unsigned moves = 0;
    for (unsigned i = 0; i < together; i++) {
        must_ok(p->ops->create(d, p->bytes, &p->page[i], e));
        must_ok(p->ops->map(d, p->range, i * p->bytes, p->page[i], p->bytes, e));
    }
    must_ok(p->ops->access(d, p->range, 0, together * p->bytes, e));
    for (unsigned round = 0; round < 8; round++) {
        uint64_t from = round % 2 == 0 ? 0 : together * p->bytes;
        uint64_t to = round % 2 == 0 ? together * p->bytes : 0;
        uint64_t begin_ns = clock_now_ns();
        for (unsigned i = 0; i < together; i++) {
            must_ok(p->ops->unmap(d, p->range, from + i * p->bytes, p->bytes, e));
            must_ok(p->ops->map(d, p->range, to + i * p->bytes, p->page[i], p->bytes, e));
        }
        must_ok(p->ops->access(d, p->range, to, together * p->bytes, e));
        spent_ns += clock_now_ns() - begin_ns;
        moves += together;
    }
    for (unsigned i = 0; i < together; i++) {
        must_ok(p->ops->unmap(d, p->range, i * p->bytes, p->bytes, e));
        p->ops->destroy(d, p->page[i], p->bytes);
    }
    return (double)spent_ns / moves;
}

/* A block of one page, by cuMemAlloc and cuMemFree. */
static void plain(struct direct *d, uint64_t bytes, unsigned count, struct record *r)
{
    struct samples alloc;
    struct samples release;
    samples_init(&alloc, count);
    samples_init(&release, count);
    for (unsigned i = 0; i < count; i++) {
        CUdeviceptr at = 0;
        uint64_t begin_ns = clock_now_ns();
        must(d->cu.MemAlloc(&at, bytes));
        uint64_t middle_ns = clock_now_ns();
        must(d->cu.MemFree(at));
        samples_add(&alloc, middle_ns - begin_ns);
        samples_add(&release, clock_now_ns() - middle_ns);
    }
    record_figure(r, "cuMemAlloc", samples_us(&alloc, 0.5), "us");
    record_figure(r, "cuMemFree", samples_us(&release, 0.5), "us");
    samples_finish(&alloc);
    samples_finish(&release);
}

static void measure(struct pages *p, struct direct *d, struct record *r)
{
    p->bytes = p->ops->page_bytes(p->b.device);
    p->count = record_effort(64, 256);
    p->page = calloc(p->count, sizeof *p->page);
    if (p->page == NULL) {
        perror("pages");
        exit(EXIT_FAILURE);
    }
    for (unsigned i = 0; i < CALLS; i++) {
        samples_init(&p->call[i], p->count);
    }
    must_ok(p->ops->reserve(p->b.device, 2 * p->count * p->bytes, &p->range, e));
    single(p);
    for (unsigned i = 0; i < CALLS; i++) {
        record_figure(r, call_name[i], samples_us(&p->call[i], 0.5), "us");
        samples_finish(&p->call[i]);
    }
    record_figure(r, "a page moved", moved(p, 1) / 1e3, "us");
    record_figure(r, "a page of 32 moved", moved(p, 32) / 1e3, "us");
    plain(d, p->bytes, p->count, r);
    record_note(r, "pages of %llu KiB, medians of %u", (unsigned long long)(p->bytes >> 10),
                p->count);
    p->ops->release(p->b.device, p->range);
    free(p->page);
}

void item_pages(void)
{
    struct pages p = {.range = NULL};
    struct direct d;
    struct record r;
    direct_open(&d);
    bench_open(&p.b, "");
    record_begin(&r, "pages");
    p.ops = p.b.b->pages;
    if (p.ops == NULL || p.ops->page_bytes(p.b.device) == 0) {
        record_skipped(&r, "this device has no virtual-memory calls");
    } else {
        measure(&p, &d, &r);
        (void)record_end(&r);
    }
    bench_close(&p.b);
    direct_close(&d);
}
