/* The copy queues, on a simulated device in this process. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/worker/copy/copies.h"
#include "tests/unit/common/suite.h"

static struct {
    struct device device;
    struct copies copies;
    uv_loop_t loop;
    unsigned wakes;
    struct memory_piece piece;
    const struct copy *order[8]; /* as they were done */
    struct err error[8];
    unsigned done;
} t;

#define SPACE ((uint64_t)64 << 20)

static void on_wake(void *data)
{
    (void)data;
    t.wakes++;
}

static void no_wake(void *data)
{
    (void)data;
}

static void start(const char *options)
{
    struct err e = ERR_INIT;
    struct device_options o = {.backend = "sim", .options = options, .streams = 1, .wake = no_wake};
    ck_assert_int_eq(uv_loop_init(&t.loop), 0);
    ck_assert_msg(device_open(&t.device, &o, &e) == 0, "%s", e.text);
    copies_init(&t.copies, &t.device, &t.loop, on_wake, NULL);
    const struct memory_ask ask = {.size = SPACE};
    ck_assert_int_eq(memory_alloc(&t.device.memory, &ask, &t.piece, &e), 0);
}

static void stop(void)
{
    memory_free(&t.device.memory, &t.piece);
    copies_finish(&t.copies);
    device_close(&t.device);
    (void)uv_run(&t.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&t.loop), 0);
}

static void on_done(struct copy *c, const struct err *e)
{
    t.order[t.done] = c;
    t.error[t.done++] = *e;
}

static void turn(void)
{
    const struct timespec pause = {0, 100000};
    copies_poll(&t.copies);
    (void)uv_run(&t.loop, UV_RUN_NOWAIT);
    (void)nanosleep(&pause, NULL);
}

static void run_until(unsigned done)
{
    while (t.done < done) {
        turn();
    }
}

static struct copy copy_of(enum copy_direction direction, uint8_t *host, uint64_t at, uint64_t size)
{
    return (struct copy){.direction = direction,
                         .ref = {t.piece.ref.block, t.piece.ref.offset + at},
                         .host = host,
                         .size = size,
                         .registered = true,
                         .done = on_done};
}

static uint8_t *bytes_new(uint64_t size, bool filled)
{
    uint8_t *p = malloc((size_t)size);
    ck_assert_ptr_nonnull(p);
    for (uint64_t i = 0; i < size; i++) {
        p[i] = filled ? (uint8_t)(i * 7 + (i >> 13)) : 0xee;
    }
    return p;
}

/* Sizes around a chunk's, of memory that the device knows and of memory that it does not. */
START_TEST(bytes_arrive_there_and_back)
{
    static const uint64_t SIZES[] = {1,          4096,           COPY_CHUNK - 1,
                                     COPY_CHUNK, COPY_CHUNK + 1, 9 * COPY_CHUNK + 12345};
    start("speed=0");
    for (unsigned i = 0; i < 2 * sizeof SIZES / sizeof SIZES[0]; i++) {
        uint64_t size = SIZES[i / 2];
        uint8_t *from = bytes_new(size, true);
        uint8_t *to = bytes_new(size + 1, false);
        struct copy in = copy_of(COPY_TO_DEVICE, from, 64, size);
        struct copy out = copy_of(COPY_FROM_DEVICE, to, 64, size);
        in.registered = out.registered = i % 2 == 0;
        t.done = 0;
        copies_add(&t.copies, &in);
        run_until(1);
        copies_add(&t.copies, &out);
        run_until(2);
        ck_assert_int_eq(t.error[0].code, 0);
        ck_assert_int_eq(t.error[1].code, 0);
        ck_assert_int_eq(memcmp(from, to, (size_t)size), 0);
        ck_assert_uint_eq(to[size], 0xee);
        ck_assert(copy_enqueued(&in) && in.last == NULL && in.end_ns >= in.begin_ns);
        free(from);
        free(to);
    }
    ck_assert_uint_gt(t.wakes, 0); /* threads filled and emptied its pieces */
    ck_assert_uint_eq(t.copies.count, 0);
    stop();
}
END_TEST

/* Two chunks of the bulk copy are under way when the others come: they overtake the rest of it, the
 * urgent one before the usual one. */
START_TEST(urgent_copies_wait_for_chunks_only)
{
    start("speed=0");
    uint8_t *host = bytes_new(SPACE, true);
    struct copy bulk = copy_of(COPY_TO_DEVICE, host, 0, 16 * COPY_CHUNK);
    struct copy usual = copy_of(COPY_TO_DEVICE, host, 0, 1);
    struct copy urgent = copy_of(COPY_TO_DEVICE, host, 0, 1);
    struct copy other = copy_of(COPY_TO_DEVICE, host, 0, 1);
    bulk.priority = -1000;
    urgent.priority = 100;
    copies_add(&t.copies, &bulk);
    copies_poll(&t.copies);
    uint64_t begun = bulk.begun;
    ck_assert_uint_le(begun, 16 * COPY_CHUNK);
    copies_add(&t.copies, &usual);
    copies_add(&t.copies, &other);
    copies_add(&t.copies, &urgent);
    ck_assert_ptr_eq(t.copies.queue[COPY_TO_DEVICE].waiting, &urgent);
    ck_assert_ptr_eq(urgent.next, &usual);
    ck_assert_ptr_eq(usual.next, &other);
    if (bulk.begun < bulk.size) {
        ck_assert_ptr_eq(other.next, &bulk);
    }
    run_until(4);
    if (begun < bulk.size - 4 * COPY_CHUNK) {
        ck_assert_ptr_eq(t.order[0], &urgent);
        ck_assert_ptr_eq(t.order[1], &usual);
        ck_assert_ptr_eq(t.order[2], &other);
    }
    free(host);
    stop();
}
END_TEST

/* A level of priority is worth COPY_LEVEL_NS: a copy that has waited longer is not overtaken. */
START_TEST(no_copy_waits_for_ever)
{
    start("speed=0");
    uint8_t byte = 0;
    struct copy low = copy_of(COPY_TO_DEVICE, &byte, 0, 1);
    struct copy high = copy_of(COPY_TO_DEVICE, &byte, 0, 1);
    low.priority = 0;
    high.priority = 1;
    copies_add(&t.copies, &low);
    low.rank -= COPY_LEVEL_NS; /* it came so much earlier */
    copies_add(&t.copies, &high);
    ck_assert_ptr_eq(t.copies.queue[COPY_TO_DEVICE].waiting, &low);
    run_until(2);
    stop();
}
END_TEST

/* The directions do not wait for each other: a copy that hangs holds up its own only. */
START_TEST(directions_are_independent)
{
    uint8_t byte = 0;
    start("speed=0,script=write:2=hang"); /* the first is the device's check */
    struct copy in = copy_of(COPY_TO_DEVICE, &byte, 0, 1);
    struct copy out = copy_of(COPY_FROM_DEVICE, &byte, 8, 1);
    copies_add(&t.copies, &in);
    copies_add(&t.copies, &out);
    run_until(1);
    ck_assert_ptr_eq(t.order[0], &out);
    ck_assert_uint_eq(t.copies.count, 1);
    /* the copy that hangs is never over: the device is left as it is */
}
END_TEST

static struct err cancelled(void)
{
    struct err e = ERR_INIT;
    (void)err_set(&e, ERR_CANCELLED, "by the test");
    return e;
}

/* A copy that is stopped, before it began or amid its chunks, is over when its chunks are, and
 * writes no more. */
START_TEST(a_stopped_copy_begins_no_more)
{
    start("bandwidth=64M");
    struct err why = cancelled();
    uint8_t *host = bytes_new(SPACE, false);
    struct copy bulk = copy_of(COPY_FROM_DEVICE, host, 0, SPACE);
    struct copy never = copy_of(COPY_FROM_DEVICE, host, 0, COPY_CHUNK);
    bulk.registered = _i == 0;
    copies_add(&t.copies, &bulk);
    turn();
    copies_add(&t.copies, &never);
    copies_stop(&t.copies, &never, &why);
    copies_stop(&t.copies, &bulk, &why);
    copies_stop(&t.copies, &bulk, &why); /* again: nothing happens */
    ck_assert_uint_eq(t.done, 0);        /* not from within the call */
    run_until(2);
    ck_assert_uint_lt(bulk.begun, bulk.size);
    ck_assert_int_eq(t.error[0].code, ERR_CANCELLED);
    ck_assert_int_eq(t.error[1].code, ERR_CANCELLED);
    ck_assert_uint_eq(host[bulk.begun], 0xee);
    ck_assert_uint_eq(t.copies.count, 0);
    free(host);
    stop();
}
END_TEST

/* Each chunk in turn fails: its copy gets the error, and the copies before and after it do not. */
START_TEST(a_chunk_fails)
{
    char script[64];
    (void)snprintf(script, sizeof script, "speed=0,script=write:%d=fail", _i + 3);
    start(script);
    uint8_t *host = bytes_new(SPACE, true);
    struct copy before = copy_of(COPY_TO_DEVICE, host, 0, 1);
    struct copy failing = copy_of(COPY_TO_DEVICE, host, 0, 4 * COPY_CHUNK);
    struct copy after = copy_of(COPY_TO_DEVICE, host, 0, 1);
    failing.registered = _i % 2 == 0;
    copies_add(&t.copies, &before);
    copies_add(&t.copies, &failing);
    copies_add(&t.copies, &after);
    run_until(3);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(t.error[i].code, t.order[i] == &failing ? ERR_IO : 0);
    }
    ck_assert_uint_eq(t.copies.count, 0);
    free(host);
    stop();
}
END_TEST

/* The end of a chunk without a marker can never be known. */
START_TEST(a_chunk_without_a_marker_is_a_lost_device)
{
    static uint8_t byte;
    start("speed=0,script=mark:3=fail");
    struct copy c = copy_of(COPY_TO_DEVICE, &byte, 0, 1);
    copies_add(&t.copies, &c);
    run_until(1);
    ck_assert_int_eq(t.error[0].code, ERR_DEVICE_LOST);
    /* the copy may still run: the device is left as it is */
}
END_TEST

/* Pieces are used in turn, however many copies there are, and each gets its own bytes. */
START_TEST(pieces_are_used_again)
{
    start("speed=0");
    uint8_t *from[4];
    uint8_t *to[4];
    struct copy in[4];
    struct copy out[4];
    uint64_t size = 3 * COPY_CHUNK + 17;
    for (unsigned i = 0; i < 4; i++) {
        from[i] = bytes_new(size, true);
        from[i][0] = (uint8_t)i;
        to[i] = bytes_new(size, false);
        in[i] = copy_of(COPY_TO_DEVICE, from[i], i * 4 * COPY_CHUNK, size);
        out[i] = copy_of(COPY_FROM_DEVICE, to[i], i * 4 * COPY_CHUNK, size);
        in[i].registered = i == 2; /* one among them goes directly */
        out[i].registered = i == 1;
        copies_add(&t.copies, &in[i]);
    }
    run_until(4);
    for (unsigned i = 0; i < 4; i++) {
        copies_add(&t.copies, &out[i]);
    }
    run_until(8);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_int_eq(memcmp(from[i], to[i], (size_t)size), 0);
        free(from[i]);
        free(to[i]);
    }
    stop();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("copies");
    TCase *tcase = tcase_create("copies");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, bytes_arrive_there_and_back);
    tcase_add_test(tcase, urgent_copies_wait_for_chunks_only);
    tcase_add_test(tcase, no_copy_waits_for_ever);
    tcase_add_test(tcase, directions_are_independent);
    tcase_add_loop_test(tcase, a_stopped_copy_begins_no_more, 0, 2);
    tcase_add_loop_test(tcase, a_chunk_fails, 0, 4);
    tcase_add_test(tcase, a_chunk_without_a_marker_is_a_lost_device);
    tcase_add_test(tcase, pieces_are_used_again);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
