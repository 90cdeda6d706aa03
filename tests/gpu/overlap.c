/* Copies in both directions beside a kernel, on streams of their own: how much of the copies' time
 * lies within the kernels', by the back end's recorded times. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/items.h"
#include "tests/gpu/measure.h"
#include "tests/gpu/record.h"

#define BYTES  (UINT64_C(64) << 20)
#define ROUNDS 6u

enum { WRITE, SPIN, READ, KINDS };

struct span {
    uint64_t begin_ns, end_ns;
};

struct overlap {
    struct bench b;
    struct backend_module *module;
    struct backend_stream *stream[KINDS];
    struct backend_block *block[2];
    void *host[2];
    uint64_t spin_ns;
};

static void enqueue(struct overlap *o, unsigned kind, struct backend_stream *s)
{
    const struct backend_stream_ops *ops = o->b.b->stream;
    if (kind == SPIN) {
        bench_spin(&o->b, s, o->module, o->spin_ns);
    } else if (kind == WRITE) {
        must_ok(ops->write(s, (struct backend_ref){o->block[0], 0}, o->host[0], BYTES, e));
    } else {
        must_ok(ops->read(s, o->host[1], (struct backend_ref){o->block[1], 0}, BYTES, e));
    }
}

/* The rounds on three streams, or all on the first one; when each piece ran. */
static void run(struct overlap *o, bool apart, struct span ret_span[KINDS][ROUNDS])
{
    struct backend_marker *marker[KINDS][ROUNDS];
    for (unsigned i = 0; i < ROUNDS; i++) {
        for (unsigned k = 0; k < KINDS; k++) {
            struct backend_stream *s = o->stream[apart ? k : 0];
            enqueue(o, k, s);
            marker[k][i] = bench_mark(&o->b, s);
        }
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        for (unsigned k = 0; k < KINDS; k++) {
            bench_settle(&o->b, marker[k][i], &ret_span[k][i].begin_ns, &ret_span[k][i].end_ns);
        }
    }
}

static uint64_t total(struct span span[KINDS][ROUNDS])
{
    struct span all = {UINT64_MAX, 0};
    for (unsigned k = 0; k < KINDS; k++) {
        for (unsigned i = 0; i < ROUNDS; i++) {
            all.begin_ns = span[k][i].begin_ns < all.begin_ns ? span[k][i].begin_ns : all.begin_ns;
            all.end_ns = span[k][i].end_ns > all.end_ns ? span[k][i].end_ns : all.end_ns;
        }
    }
    return all.end_ns - all.begin_ns;
}

static uint64_t length(const struct span span[ROUNDS])
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        sum += span[i].end_ns - span[i].begin_ns;
    }
    return sum;
}

/* Spans of one stream do not meet, so their common parts with another stream's add up. */
static double within(const struct span a[ROUNDS], const struct span b[ROUNDS])
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        for (unsigned k = 0; k < ROUNDS; k++) {
            uint64_t from = a[i].begin_ns > b[k].begin_ns ? a[i].begin_ns : b[k].begin_ns;
            uint64_t to = a[i].end_ns < b[k].end_ns ? a[i].end_ns : b[k].end_ns;
            sum += to > from ? to - from : 0;
        }
    }
    uint64_t whole = length(a);
    return whole > 0 ? (double)sum / (double)whole : 0;
}

static void open_all(struct overlap *o)
{
    bench_open(&o->b, "");
    o->module = bench_module(&o->b);
    for (unsigned k = 0; k < KINDS; k++) {
        o->stream[k] = bench_stream(&o->b);
    }
    for (unsigned i = 0; i < 2; i++) {
        o->host[i] = aligned_alloc(4096, BYTES);
        if (o->host[i] == NULL) {
            perror("memory to copy");
            exit(EXIT_FAILURE);
        }
        memset(o->host[i], 1, BYTES);
        must_ok(o->b.b->memory->register_host(o->b.device, o->host[i], BYTES, true, e));
        must_ok(o->b.b->memory->alloc(o->b.device, BYTES, &o->block[i], e));
    }
}

static void close_all(struct overlap *o)
{
    for (unsigned i = 0; i < 2; i++) {
        o->b.b->memory->free(o->b.device, o->block[i]);
        o->b.b->memory->unregister_host(o->b.device, o->host[i], BYTES);
        free(o->host[i]);
    }
    for (unsigned k = 0; k < KINDS; k++) {
        o->b.b->stream->destroy(o->stream[k]);
    }
    o->b.b->module->unload(o->module);
    bench_close(&o->b);
}

void item_overlap(void)
{
    static struct span one[KINDS][ROUNDS];
    static struct span apart[KINDS][ROUNDS];
    struct overlap o = {.spin_ns = 1000};
    struct record r;
    open_all(&o);
    run(&o, false, one); /* warm, and how long a copy takes */
    o.spin_ns = length(one[WRITE]) / ROUNDS;
    run(&o, false, one);
    run(&o, true, apart);
    record_begin(&r, "overlap");
    record_note(&r, "%u times: 64 MiB to the device, a kernel of the same length, 64 MiB back",
                ROUNDS);
    record_figure(&r, "one stream", (double)total(one) / 1e6, "ms");
    record_figure(&r, "three streams", (double)total(apart) / 1e6, "ms");
    record_figure(&r, "gain", (double)total(one) / (double)total(apart), "x");
    record_target(&r, "writes beside kernels", within(apart[WRITE], apart[SPIN]), "",
                  RECORD_AT_LEAST, 0.5);
    record_target(&r, "reads beside kernels", within(apart[READ], apart[SPIN]), "", RECORD_AT_LEAST,
                  0.5);
    record_figure(&r, "writes beside reads", within(apart[WRITE], apart[READ]), "");
    (void)record_end(&r);
    close_all(&o);
}
