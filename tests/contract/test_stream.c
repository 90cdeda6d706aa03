#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "contract.h"

#define SPAN 4096u

static void count_up(uint8_t *data, size_t size, unsigned seed)
{
    for (size_t i = 0; i < size; i++) {
        data[i] = (uint8_t)(i * 31 + seed + (i >> 8));
    }
}

/* Odd places and sizes; what lies around stays as it was. */
START_TEST(writes_and_reads_anywhere)
{
    static const uint64_t places[][2] = {{0, 1}, {1, 1}, {3, 5}, {255, 257}, {256, 512}, {1, 4094}};
    uint8_t model[SPAN];
    uint8_t data[SPAN];
    uint8_t back[SPAN];
    struct backend_block *b = block_new(SPAN);
    count_up(model, SPAN, 0);
    put(at(b, 0), model, SPAN);
    for (unsigned i = 0; i < sizeof places / sizeof places[0]; i++) {
        uint64_t offset = places[i][0];
        uint64_t size = places[i][1];
        count_up(data, size, 100 + i);
        memcpy(model + offset, data, size);
        put(at(b, offset), data, size);
        get(back, at(b, offset), size);
        ck_assert_mem_eq(back, data, size);
        get(back, at(b, 0), SPAN);
        ck_assert_mem_eq(back, model, SPAN);
    }
    block_free(b);
}
END_TEST

START_TEST(copies_between_and_within_blocks)
{
    uint8_t model[SPAN];
    uint8_t back[SPAN];
    struct backend_block *x = block_new(SPAN);
    struct backend_block *y = block_new(SPAN);
    count_up(model, SPAN, 3);
    put(at(x, 0), model, SPAN);
    put(at(y, 0), model, SPAN);
    ok(bench.b->stream->copy(bench.stream, at(y, 17), at(x, 101), 999, e));
    ok(bench.b->stream->copy(bench.stream, at(x, 2048), at(x, 1), 1023, e));
    drain(bench.stream);
    get(back, at(y, 17), 999);
    ck_assert_mem_eq(back, model + 101, 999);
    get(back, at(y, 0), 17);
    ck_assert_mem_eq(back, model, 17);
    get(back, at(y, 1016), SPAN - 1016);
    ck_assert_mem_eq(back, model + 1016, SPAN - 1016);
    get(back, at(x, 2048), 1023);
    ck_assert_mem_eq(back, model + 1, 1023);
    fails(ERR_INVALID, bench.b->stream->copy(bench.stream, at(x, 10), at(x, 0), 20, e));
    block_free(x);
    block_free(y);
}
END_TEST

START_TEST(fills_with_all_patterns)
{
    static const size_t sizes[] = {1, 2, 4, 8, 16};
    uint8_t model[SPAN];
    uint8_t back[SPAN];
    uint8_t pattern[16];
    struct backend_block *b = block_new(SPAN);
    count_up(pattern, sizeof pattern, 77);
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t n = sizes[i];
        memset(model, 0xEE, SPAN);
        put(at(b, 0), model, SPAN);
        for (size_t k = 0; k < 33 * n; k++) {
            model[3 * n + k] = pattern[k % n];
        }
        ok(bench.b->stream->fill(bench.stream, at(b, 3 * n), pattern, n, 33 * n, e));
        get(back, at(b, 0), SPAN);
        ck_assert_mem_eq(back, model, SPAN);
    }
    fails(ERR_INVALID, bench.b->stream->fill(bench.stream, at(b, 0), pattern, 3, 9, e));
    fails(ERR_INVALID, bench.b->stream->fill(bench.stream, at(b, 0), pattern, 4, 6, e));
    fails(ERR_INVALID, bench.b->stream->fill(bench.stream, at(b, 2), pattern, 4, 8, e));
    block_free(b);
}
END_TEST

/* Long ones may be made otherwise: of whole patterns, up to the last one and not further. */
START_TEST(fills_much_with_all_patterns)
{
    enum { MOST = 300 << 10, ROOM = MOST + 64 };
    static const size_t patterns[] = {1, 2, 4, 8, 16};
    static const uint64_t sizes[] = {1 << 16, (1 << 16) - 16, (1 << 16) + 16, (1 << 17) + 48, MOST};
    uint8_t *model = malloc(ROOM);
    uint8_t *back = malloc(ROOM);
    uint8_t pattern[16];
    ck_assert(model && back);
    struct backend_block *b = block_new(ROOM);
    count_up(pattern, sizeof pattern, 77);
    for (unsigned i = 0; i < 25; i++) {
        size_t n = patterns[i % 5];
        uint64_t size = sizes[i / 5];
        memset(model, 0xEE, ROOM);
        put(at(b, 0), model, ROOM);
        for (uint64_t k = 0; k < size; k++) {
            model[n + k] = pattern[k % n];
        }
        ok(bench.b->stream->fill(bench.stream, at(b, n), pattern, n, size, e));
        get(back, at(b, 0), ROOM);
        ck_assert_msg(memcmp(back, model, ROOM) == 0, "%llu bytes with a pattern of %zu",
                      (unsigned long long)size, n);
    }
    block_free(b);
    free(model);
    free(back);
}
END_TEST

START_TEST(refuses_what_lies_outside)
{
    uint8_t data[64] = {0};
    struct backend_block *b = block_new(SPAN);
    struct backend_stream *s = bench.stream;
    fails(ERR_RANGE, bench.b->stream->write(s, at(b, SPAN - 63), data, 64, e));
    fails(ERR_RANGE, bench.b->stream->read(s, data, at(b, SPAN + 1), 1, e));
    fails(ERR_RANGE, bench.b->stream->read(s, data, at(b, UINT64_MAX), 2, e));
    fails(ERR_RANGE, bench.b->stream->copy(s, at(b, 0), at(b, SPAN / 2), SPAN, e));
    fails(ERR_RANGE, bench.b->stream->fill(s, at(b, SPAN), data, 1, 1, e));
    fails(ERR_RANGE, bench.b->stream->write(s, at(b, 0), data, 0, e));
    drain(s);
    block_free(b);
}
END_TEST

START_TEST(keeps_order_within_a_stream)
{
    enum { ROUNDS = 64 };
    static uint32_t in[ROUNDS];
    static uint32_t out[ROUNDS];
    const struct backend_stream_ops *o = bench.b->stream;
    struct backend_block *x = block_new(4);
    struct backend_block *y = block_new(4);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint32_t wrong = ~i;
        in[i] = i * 1000003u;
        ok(o->write(bench.stream, at(x, 0), &in[i], 4, e));
        ok(o->copy(bench.stream, at(y, 0), at(x, 0), 4, e));
        ok(o->fill(bench.stream, at(x, 0), &wrong, 4, 4, e));
        ok(o->read(bench.stream, &out[i], at(y, 0), 4, e));
    }
    drain(bench.stream);
    ck_assert_mem_eq(in, out, sizeof in);
    block_free(x);
    block_free(y);
}
END_TEST

START_TEST(waits_for_another_stream)
{
    enum { BYTES = 8 << 20 };
    const struct backend_stream_ops *o = bench.b->stream;
    uint8_t *in = malloc(BYTES);
    uint8_t *out = calloc(1, BYTES);
    struct backend_stream *other = NULL;
    ck_assert(in && out);
    count_up(in, BYTES, 5);
    struct backend_block *x = block_new(BYTES);
    struct backend_block *y = block_new(BYTES);
    ok(o->create(bench.device, 0, &other, e));
    ok(o->write(bench.stream, at(x, 0), in, BYTES, e));
    ok(o->copy(bench.stream, at(y, 0), at(x, 0), BYTES, e));
    struct backend_marker *m = mark(bench.stream);
    ok(o->wait(other, m, e));
    ok(o->read(other, out, at(y, 0), BYTES, e));
    drain(other);
    ck_assert(memcmp(in, out, BYTES) == 0);
    ck_assert_int_eq(settle(m, NULL), BACKEND_DONE);
    /* a marker that is done may be waited for as well */
    ok(o->wait(other, m, e));
    drain(other);
    bench.b->marker->release(m);
    o->destroy(other);
    block_free(x);
    block_free(y);
    free(in);
    free(out);
}
END_TEST

/* A marker belongs to one stream: it is done while the other stream, which waits for nothing, is
 * not. */
START_TEST(markers_of_streams_are_independent)
{
    const struct backend_stream_ops *o = bench.b->stream;
    uint32_t a = 1;
    uint32_t b = 2;
    struct backend_stream *other = NULL;
    struct backend_block *x = block_new(8);
    ok(o->create(bench.device, 0, &other, e));
    ok(o->write(other, at(x, 4), &b, 4, e));
    ok(o->write(bench.stream, at(x, 0), &a, 4, e));
    struct backend_marker *ma = mark(bench.stream);
    struct backend_marker *mb = mark(other);
    ck_assert_int_eq(settle(mb, NULL), BACKEND_DONE);
    ck_assert_int_eq(settle(ma, NULL), BACKEND_DONE);
    bench.b->marker->release(ma);
    bench.b->marker->release(mb);
    o->destroy(other);
    block_free(x);
}
END_TEST

START_TEST(a_done_marker_stays_done)
{
    uint32_t v = 9;
    struct backend_block *x = block_new(4);
    ok(bench.b->stream->write(bench.stream, at(x, 0), &v, 4, e));
    struct backend_marker *m = mark(bench.stream);
    struct err why = ERR_INIT;
    ck_assert_int_eq(settle(m, &why), BACKEND_DONE);
    for (int i = 0; i < 10; i++) {
        drain(bench.stream);
        ck_assert_int_eq(bench.b->marker->state(m, &why), BACKEND_DONE);
    }
    ck_assert_int_eq(why.code, 0);
    bench.b->marker->release(m);
    block_free(x);
}
END_TEST

START_TEST(a_marker_of_nothing_is_done)
{
    struct backend_marker *m[3];
    for (int i = 0; i < 3; i++) {
        m[i] = mark(bench.stream);
    }
    for (int i = 2; i >= 0; i--) {
        ck_assert_int_eq(settle(m[i], NULL), BACKEND_DONE);
        bench.b->marker->release(m[i]);
    }
}
END_TEST

/* Each marker wakes once; the test's own limit ends it where one does not come. */
START_TEST(a_marker_wakes_once)
{
    enum { MARKERS = 20 };
    const struct timespec pause = {0, 100000};
    uint32_t v = 9;
    struct backend_block *x = block_new(4);
    if (!bench.b->device->wakes(bench.device)) {
        block_free(x);
        return;
    }
    for (int i = 0; i < MARKERS; i++) {
        ok(bench.b->stream->write(bench.stream, at(x, 0), &v, 4, e));
        drain(bench.stream);
    }
    while (atomic_load(&bench.wakes) < MARKERS) {
        nanosleep(&pause, NULL);
    }
    ck_assert_uint_eq(atomic_load(&bench.wakes), MARKERS);
    block_free(x);
}
END_TEST

/* One that wakes only if it is asked to. */
static struct backend_marker *mark_silent(void)
{
    struct backend_marker *m = NULL;
    if (bench.b->stream->mark_quiet) {
        ok(bench.b->stream->mark_quiet(bench.stream, &m, e));
        ok(bench.b->stream->flush(bench.stream, e));
        return m;
    }
    return mark(bench.stream);
}

/* One that does not wake by itself and was asked to: also where it was done before. */
START_TEST(an_armed_marker_wakes_once)
{
    const struct timespec pause = {0, 100000};
    uint32_t v = 9;
    bool silent = bench.b->stream->mark_quiet || !bench.b->device->wakes(bench.device);
    if (!bench.b->marker->arm || !silent) {
        return;
    }
    struct backend_block *x = block_new(4);
    for (unsigned i = 1; i <= 4; i++) {
        ok(bench.b->stream->write(bench.stream, at(x, 0), &v, 4, e));
        struct backend_marker *m = mark_silent();
        if (i % 2 == 0) {
            ck_assert_int_eq(settle(m, NULL), BACKEND_DONE);
        }
        ok(bench.b->marker->arm(m, e));
        while (atomic_load(&bench.wakes) < i) {
            nanosleep(&pause, NULL);
        }
        ck_assert_int_eq(settle(m, NULL), BACKEND_DONE);
        bench.b->marker->release(m);
    }
    struct backend_marker *last = mark_silent();
    ck_assert_int_eq(settle(last, NULL), BACKEND_DONE);
    bench.b->marker->release(last);
    ck_assert_uint_eq(atomic_load(&bench.wakes), 4);
    block_free(x);
}
END_TEST

/* Gathered commands begin at flush at the latest, in their order. Each marker has its own end, and
 * only the last one, which was armed, wakes the loop. */
START_TEST(gathered_commands_run_in_order)
{
    enum { COMMANDS = 40 };
    const struct timespec pause = {0, 100000};
    struct backend_marker *m[COMMANDS];
    uint32_t value[COMMANDS];
    uint32_t seen = 0;
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t last = 0;
    struct backend_block *x = block_new(4);
    const struct backend_stream_ops *ops = bench.b->stream;
    for (unsigned round = 1; round <= 3; round++) {
        if (ops->gather) {
            ops->gather(bench.stream);
            ops->gather(bench.stream); /* twice is once */
        }
        for (uint32_t i = 0; i < COMMANDS; i++) {
            value[i] = round * 1000 + i;
            ok(ops->write(bench.stream, at(x, 0), &value[i], 4, e));
            ok((ops->mark_quiet ? ops->mark_quiet : ops->mark)(bench.stream, &m[i], e));
        }
        if (ops->mark_quiet) {
            ok(bench.b->marker->arm(m[COMMANDS - 1], e));
        }
        ok(ops->flush(bench.stream, e));
        while (ops->mark_quiet && atomic_load(&bench.wakes) < round) {
            nanosleep(&pause, NULL);
        }
        for (unsigned i = 0; i < COMMANDS; i++) {
            ck_assert_int_eq(settle(m[i], NULL), BACKEND_DONE);
            bench.b->marker->times(m[i], &begin, &end);
            ck_assert_uint_le(begin, end);
            ck_assert_uint_le(last, end);
            last = end;
            bench.b->marker->release(m[i]);
        }
        ck_assert(!ops->mark_quiet || atomic_load(&bench.wakes) == round);
    }
    get(&seen, at(x, 0), 4);
    ck_assert_uint_eq(seen, value[COMMANDS - 1]);
    block_free(x);
}
END_TEST

/* The device's clock is converted to the host's: one that is not is years off, and a busy host may
 * stand still between two looks at both. */
START_TEST(times_follow_the_host_clock)
{
    enum { ROUNDS = 50 };
    const uint64_t slack = 2 * NS_PER_S;
    uint64_t last = 0;
    uint8_t data[SPAN] = {0};
    struct backend_block *x = block_new(SPAN);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t before = clock_now_ns();
        ok(bench.b->stream->write(bench.stream, at(x, 0), data, SPAN, e));
        ok(bench.b->stream->read(bench.stream, data, at(x, 0), SPAN, e));
        struct backend_marker *m = mark(bench.stream);
        ck_assert_int_eq(settle(m, NULL), BACKEND_DONE);
        uint64_t after = clock_now_ns();
        uint64_t begin = 0;
        uint64_t end = 0;
        bench.b->marker->times(m, &begin, &end);
        ck_assert_uint_le(begin, end);
        ck_assert_uint_le(before, begin + slack);
        ck_assert_uint_le(end, after + slack);
        ck_assert_uint_le(last, end + slack);
        last = end;
        bench.b->marker->release(m);
    }
    block_free(x);
}
END_TEST

/* More pieces than one call of a driver takes, of odd sizes at odd places, all apart: they come
 * behind what the stream had before them, and have no order among themselves. */
START_TEST(writes_a_batch)
{
    enum { PIECES = BACKEND_WRITES_MAX, EACH = 37 };
    const struct backend_stream_ops *ops = bench.b->stream;
    const struct backend_memory_ops *memory = bench.b->memory;
    static _Alignas(4096) uint8_t host[8192];
    struct backend_write w[PIECES];
    uint8_t model[PIECES * EACH];
    uint8_t back[PIECES * EACH];
    ck_assert_uint_le(sizeof model, sizeof host);
    if (ops->write_batch == NULL) {
        return;
    }
    struct backend_block *b = block_new(sizeof model);
    memset(model, 7, sizeof model);
    count_up(host, sizeof host, 3);
    if (memory->register_host != NULL) {
        ok(memory->register_host(bench.device, host, sizeof host, true, e));
    }
    ok(ops->fill(bench.stream, at(b, 0), model, 1, sizeof model, e));
    for (unsigned i = 0; i < PIECES; i++) {
        uint64_t offset = (uint64_t)(PIECES - 1 - i) * EACH; /* the last one first */
        w[i] = (struct backend_write){at(b, offset), host + offset, 1 + i % EACH};
        memcpy(model + offset, host + offset, w[i].size);
    }
    ok(ops->write_batch(bench.stream, w, PIECES, e));
    get(back, at(b, 0), sizeof back);
    ck_assert_mem_eq(back, model, sizeof model);
    ok(ops->write_batch(bench.stream, w, 1, e));
    w[PIECES - 1].dst.offset = sizeof model - 1;
    w[PIECES - 1].size = 2;
    fails(ERR_RANGE, ops->write_batch(bench.stream, w, PIECES, e));
    drain(bench.stream);
    if (memory->register_host != NULL) {
        memory->unregister_host(bench.device, host, sizeof host);
    }
    block_free(b);
}
END_TEST

void contract_stream(Suite *suite)
{
    TCase *t = tcase_create("stream");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, bench_open, bench_close);
    tcase_add_test(t, writes_and_reads_anywhere);
    tcase_add_test(t, copies_between_and_within_blocks);
    tcase_add_test(t, fills_with_all_patterns);
    tcase_add_test(t, fills_much_with_all_patterns);
    tcase_add_test(t, refuses_what_lies_outside);
    tcase_add_test(t, keeps_order_within_a_stream);
    tcase_add_test(t, waits_for_another_stream);
    tcase_add_test(t, markers_of_streams_are_independent);
    tcase_add_test(t, a_done_marker_stays_done);
    tcase_add_test(t, a_marker_of_nothing_is_done);
    tcase_add_test(t, a_marker_wakes_once);
    tcase_add_test(t, an_armed_marker_wakes_once);
    tcase_add_test(t, gathered_commands_run_in_order);
    tcase_add_test(t, times_follow_the_host_clock);
    tcase_add_test(t, writes_a_batch);
    suite_add_tcase(suite, t);
}
