/* Buffers that the pool moves to make room, and free memory that goes back or is zeroed with time:
 * on a simulated device in this process. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/pool/pool.h"
#include "daemon/worker/serve/upkeep.h"
#include "daemon/worker/spill/spill_copy.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/worker/local.h"

#define LIMIT   ((uint64_t)16 << 20)
#define BYTES   ((uint64_t)512 << 10) /* a quarter of a page, and of what smaller ones share */
#define BUFFERS 28u
#define WANTED  ((uint64_t)8 << 20)

static const char *const SOURCES[] = {"speed=0,pages=off", "speed=0,pages=on"};

static struct local t;

static struct {
    struct backend backend; /* the device's, with copies that fail */
    struct backend_stream_ops ops;
    unsigned copies;
    uv_loop_t loop;
    struct upkeep upkeep;
    bool idle;
    unsigned kicks;
} own;

static int copy_refused(struct backend_stream *s, struct backend_ref dst, struct backend_ref src,
                        uint64_t size, struct err *e)
{
    (void)s;
    (void)dst;
    (void)src;
    (void)size;
    own.copies++;
    return err_set(e, ERR_IO, "no copy today");
}

static void start_with(const char *options, uint64_t limit, uint64_t spill_limit)
{
    memset(&own, 0, sizeof own);
    local_start(&t, "sim", options, limit, spill_limit);
}

static void start(const char *options, uint64_t limit)
{
    start_with(options, limit, 0);
}

static uint8_t *pattern(uint64_t id)
{
    static uint8_t bytes[BYTES];
    for (uint64_t i = 0; i < BYTES; i++) {
        bytes[i] = (uint8_t)(id * 31 + i * 7 + (i >> 9));
    }
    return bytes;
}

static struct buffer *make(uint64_t id)
{
    struct buffer *b = NULL;
    struct err e = ERR_INIT;
    const struct buffer_ask ask = {.id = id, .size = BYTES, .tenant = 1};
    ck_assert_msg(buffer_create(&t.buffers, &ask, &b, &e) == 0, "%s", e.text);
    ck_assert_int_eq(
        t.device.b->stream->write(t.device.service, b->piece.ref, pattern(id), BYTES, &e), 0);
    local_wait(&t, t.device.service);
    memory_cleaned(&b->piece);
    b->content = BUFFER_BYTES;
    return b;
}

/* Of each four that lie together one stays: three quarters are free, and no two MiB in a row. */
static void fragment(void)
{
    for (uint64_t id = 1; id <= BUFFERS; id++) {
        (void)make(id);
    }
    for (uint64_t id = 1; id <= BUFFERS; id++) {
        if (id % 4 != 0) {
            buffer_free(&t.buffers, buffer_find(&t.buffers, id, NULL));
        }
    }
}

static void check_contents(void)
{
    static uint8_t back[BYTES];
    struct err e = ERR_INIT;
    for (uint64_t id = 4; id <= BUFFERS; id += 4) {
        const struct buffer *b = buffer_find(&t.buffers, id, &e);
        ck_assert_ptr_nonnull(b);
        ck_assert(b->loss == BUFFER_WHOLE && b->filling == NULL);
        ck_assert_int_eq(t.device.b->stream->read(t.device.service, back, b->piece.ref, BYTES, &e),
                         0);
        local_wait(&t, t.device.service);
        ck_assert_msg(memcmp(back, pattern(id), BYTES) == 0, "buffer %u", (unsigned)id);
    }
}

/* Waits as a job without room does: tries again when the buffers that move have arrived. */
static int take(struct memory_piece *ret_piece, struct err *e)
{
    const struct memory_ask ask = {.size = WANTED, .tenant = 1, .stream = 0};
    int rc = memory_alloc(&t.device.memory, &ask, ret_piece, e);
    if (rc == ERR_DEVICE_MEMORY) {
        local_quiet(&t);
        *e = (struct err)ERR_INIT;
        rc = memory_alloc(&t.device.memory, &ask, ret_piece, e);
    }
    return rc;
}

static struct pool_stats stats(void)
{
    struct pool_stats s;
    pool_stats(t.device.memory.pool, &s);
    return s;
}

START_TEST(free_parts_are_put_together)
{
    struct memory_piece piece;
    struct err e = ERR_INIT;
    start(SOURCES[_i], LIMIT);
    fragment();
    ck_assert_uint_eq(stats().moves, 0);
    ck_assert_msg(take(&piece, &e) == 0, "%s", e.text);
    ck_assert_uint_gt(stats().moves, 0);
    ck_assert_uint_ge(piece.pool.size, WANTED);
    local_quiet(&t);
    check_contents();
    memory_free(&t.device.memory, &piece);
    local_stop(&t);
}
END_TEST

/* Jobs have their addresses: they stay, and so there is no room. */
START_TEST(buffers_in_use_keep_their_place)
{
    struct memory_piece piece;
    struct err e = ERR_INIT;
    struct backend_ref at[BUFFERS + 1];
    start(SOURCES[_i], LIMIT);
    fragment();
    for (uint64_t id = 4; id <= BUFFERS; id += 4) {
        struct buffer *b = buffer_find(&t.buffers, id, NULL);
        at[id] = b->piece.ref;
        buffer_pin(&t.buffers, b);
    }
    ck_assert_int_eq(take(&piece, &e), ERR_DEVICE_MEMORY);
    for (uint64_t id = 4; id <= BUFFERS; id += 4) {
        struct buffer *b = buffer_find(&t.buffers, id, NULL);
        ck_assert_ptr_eq(b->piece.ref.block, at[id].block);
        ck_assert_uint_eq(b->piece.ref.offset, at[id].offset);
        buffer_unpin(&t.buffers, b);
    }
    ck_assert_uint_eq(stats().moves, 0);
    check_contents();
    ck_assert_msg(take(&piece, &e) == 0, "%s", e.text);
    local_quiet(&t);
    check_contents();
    memory_free(&t.device.memory, &piece);
    local_stop(&t);
}
END_TEST

/* Nothing is lost by a copy that cannot be ordered, and it goes when it can. */
START_TEST(without_copies_it_is_refused)
{
    struct memory_piece piece;
    struct err e = ERR_INIT;
    start(SOURCES[_i], LIMIT);
    fragment();
    const struct backend *real = t.device.b;
    own.backend = *real;
    own.ops = *real->stream;
    own.ops.copy = copy_refused;
    own.backend.stream = &own.ops;
    t.device.b = &own.backend;
    ck_assert_int_eq(take(&piece, &e), ERR_DEVICE_MEMORY);
    ck_assert_uint_gt(own.copies, 0);
    ck_assert_uint_eq(stats().moves, 0);
    ck_assert(!t.device.memory.hung);
    check_contents();
    t.device.b = real;
    ck_assert_msg(take(&piece, &e) == 0, "%s", e.text);
    local_quiet(&t);
    check_contents();
    memory_free(&t.device.memory, &piece);
    local_stop(&t);
}
END_TEST

/* A buffer that is freed while it moves is destroyed when it has arrived. */
START_TEST(a_buffer_freed_while_it_moves)
{
    struct memory_piece piece;
    struct err e = ERR_INIT;
    const struct memory_ask ask = {.size = WANTED, .tenant = 1, .stream = 0};
    start("speed=0.05,pages=on", LIMIT);
    fragment();
    ck_assert_int_eq(memory_alloc(&t.device.memory, &ask, &piece, &e), ERR_DEVICE_MEMORY);
    ck_assert_uint_gt(t.spill.within, 0);
    for (uint64_t id = 4; id <= BUFFERS; id += 4) {
        buffer_free(&t.buffers, buffer_find(&t.buffers, id, NULL));
    }
    local_quiet(&t);
    e = (struct err)ERR_INIT;
    ck_assert_msg(memory_alloc(&t.device.memory, &ask, &piece, &e) == 0, "%s", e.text);
    memory_free(&t.device.memory, &piece);
    ck_assert_uint_eq(stats().used, 0);
    local_stop(&t);
}
END_TEST

static struct buffer *one_that_moves(void)
{
    struct buffer *b = NULL;
    for (uint64_t id = 4; id <= BUFFERS && (b == NULL || b->filling == NULL); id += 4) {
        b = buffer_find(&t.buffers, id, NULL);
    }
    ck_assert(b != NULL && b->filling != NULL);
    return b;
}

/* Buffers that were never written go without a copy, so one may have other memory before the worker
 * hears of the end of a move. That end says nothing about the new memory, which has another
 * tenant's bytes until its zeros are done. */
START_TEST(a_move_that_its_buffer_left_cleans_nothing)
{
    struct memory_piece piece;
    struct err e = ERR_INIT;
    const struct memory_ask wanted = {.size = WANTED, .tenant = 1, .stream = 0};
    const struct memory_ask again = {.size = BYTES, .tenant = 1};
    start("speed=0.05,pages=on", LIMIT);
    fragment();
    for (uint64_t id = 4; id <= BUFFERS; id += 4) {
        buffer_find(&t.buffers, id, NULL)->content = BUFFER_UNDEFINED;
    }
    ck_assert_int_eq(memory_alloc(&t.device.memory, &wanted, &piece, &e), ERR_DEVICE_MEMORY);
    struct buffer *b = one_that_moves();
    ck_assert_int_eq(spill_move_out(&t.spill, b, &e), 0);
    e = (struct err)ERR_INIT;
    ck_assert_msg(memory_alloc(&t.device.memory, &again, &b->piece, &e) == 0, "%s", e.text);
    memory_soiled(&b->piece);
    local_quiet(&t);
    ck_assert_uint_eq(t.spill.within, 0);
    ck_assert(b->piece.dirty);
    local_stop(&t);
}
END_TEST

static const struct backend_marker_ops *markers; /* the device's */

static bool is_of_a_move(const struct backend_marker *marker)
{
    bool found = false;
    for (uint64_t id = 4; id <= BUFFERS && !found; id += 4) {
        found = buffer_find(&t.buffers, id, NULL)->filling == marker;
    }
    return found;
}

static enum backend_state moves_fail(struct backend_marker *marker, struct err *e)
{
    enum backend_state state = markers->state(marker, e);
    if (state != BACKEND_DONE || !is_of_a_move(marker)) {
        return state;
    }
    (void)err_set(e, ERR_IO, "no copy today");
    return BACKEND_FAILED;
}

/* The pool takes the new place for the tenant's, although nothing has come there: the memory
 * is zeroed for its next user. */
START_TEST(a_copy_that_fails_leaves_what_was_there)
{
    struct memory_piece piece;
    struct err e = ERR_INIT;
    struct backend_marker_ops failing;
    unsigned broken = 0;
    start(SOURCES[_i], LIMIT);
    fragment();
    const struct backend *real = t.device.b;
    markers = real->marker;
    failing = *markers;
    failing.state = moves_fail;
    own.backend = *real;
    own.backend.marker = &failing;
    t.device.b = &own.backend;
    int rc = take(&piece, &e);
    local_quiet(&t);
    t.device.b = real;
    for (uint64_t id = 4; id <= BUFFERS; id += 4) {
        struct buffer *b = buffer_find(&t.buffers, id, NULL);
        bool lost = b->loss != BUFFER_WHOLE;
        ck_assert(b->piece.dirty == lost && b->piece.pool.foreign == lost);
        broken += lost;
    }
    ck_assert_uint_gt(broken, 0);
    if (rc == 0) {
        memory_free(&t.device.memory, &piece);
    }
    local_stop(&t);
}
END_TEST

/* ---- with time ------------------------------------------------------------------------------- */

#define LARGE ((uint64_t)1 << 30)

static bool is_idle(void *data)
{
    (void)data;
    return own.idle;
}

static void on_kick(void *data)
{
    (void)data;
    own.kicks++;
}

static void upkeep_start_on(const char *options)
{
    start(options, LARGE);
    own.idle = true;
    ck_assert_int_eq(uv_loop_init(&own.loop), 0);
    upkeep_init(&own.upkeep, &own.loop, &t.device, is_idle, on_kick, NULL);
}

static void upkeep_start(void)
{
    upkeep_start_on("speed=0,pages=on");
}

static void upkeep_stop(void)
{
    upkeep_finish(&own.upkeep);
    (void)uv_run(&own.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&own.loop), 0);
    local_stop(&t);
}

static void take_and_free(uint64_t bytes, uint64_t tenant, bool *ret_dirty)
{
    struct memory_piece piece;
    struct err e = ERR_INIT;
    const struct memory_ask ask = {.size = bytes, .tenant = tenant, .stream = 0};
    ck_assert_msg(memory_alloc(&t.device.memory, &ask, &piece, &e) == 0, "%s", e.text);
    *ret_dirty = piece.dirty;
    memory_cleaned(&piece);
    memory_free(&t.device.memory, &piece);
}

/* 512 MiB stay for a minute, then go by 256 MiB a second but for a sixteenth of the limit; then
 * the timer ends. */
START_TEST(unused_memory_goes_back)
{
    bool dirty;
    uint64_t now = 1000 * NS_PER_S;
    upkeep_start();
    ck_assert_int_eq(upkeep_turn(&own.upkeep, now), UPKEEP_STOP);
    take_and_free(LARGE / 2, 1, &dirty);
    upkeep_begin(&own.upkeep);
    ck_assert(uv_is_active((uv_handle_t *)&own.upkeep.timer));
    uint64_t before = stats().size;
    ck_assert_uint_ge(before, LARGE / 2);
    for (unsigned s = 1; s <= 55; s++) {
        now += NS_PER_S;
        ck_assert_int_eq(upkeep_turn(&own.upkeep, now), UPKEEP_LATER);
    }
    ck_assert_uint_eq(stats().size, before);
    unsigned turns = 0;
    uint64_t left = before;
    while (upkeep_turn(&own.upkeep, now += NS_PER_S) != UPKEEP_STOP) {
        uint64_t size = stats().size;
        ck_assert_uint_le(left - size, MEMORY_RATE);
        left = size;
        ck_assert_uint_lt(++turns, 20);
    }
    ck_assert_uint_eq(stats().size, LARGE / MEMORY_KEEP);
    ck_assert_uint_eq(stats().trimmed, before - LARGE / MEMORY_KEEP);
    upkeep_stop();
}
END_TEST

static unsigned idle_calls;

static void count_idle(struct backend_device *d)
{
    ck_assert_ptr_eq(d, t.device.d);
    idle_calls++;
}

/* A driver has work then: it writes out what kernels printed. */
START_TEST(the_back_end_is_called_when_nothing_runs)
{
    upkeep_start();
    struct backend_device_ops ops = *t.device.b->device;
    struct backend with_idle = *t.device.b;
    ops.idle = count_idle;
    with_idle.device = &ops;
    t.device.b = &with_idle;
    own.idle = false;
    ck_assert_int_eq(upkeep_turn(&own.upkeep, NS_PER_S), UPKEEP_LATER);
    ck_assert_uint_eq(idle_calls, 0);
    own.idle = true;
    (void)upkeep_turn(&own.upkeep, 2 * NS_PER_S);
    ck_assert_uint_eq(idle_calls, 1);
    upkeep_stop();
}
END_TEST

/* Where the device has little left for others it goes after a quarter of that time. */
START_TEST(where_the_device_is_full_it_goes_sooner)
{
    bool dirty;
    uint64_t now = 1000 * NS_PER_S;
    upkeep_start_on("speed=0,pages=on,memory=992M");
    ck_assert_int_eq(upkeep_turn(&own.upkeep, now), UPKEEP_STOP);
    take_and_free(LARGE / 16 * 15, 1, &dirty);
    upkeep_begin(&own.upkeep);
    uint64_t before = stats().size;
    for (unsigned s = 1; s <= 12; s++) {
        ck_assert_int_eq(upkeep_turn(&own.upkeep, now += NS_PER_S), UPKEEP_LATER);
    }
    ck_assert_uint_eq(stats().size, before);
    for (unsigned s = 13; s <= 20; s++) {
        (void)upkeep_turn(&own.upkeep, now += NS_PER_S);
    }
    ck_assert_uint_lt(stats().size, before);
    ck_assert_uint_eq(stats().size, stats().limit / MEMORY_KEEP); /* the limit is the device */
    upkeep_stop();
}
END_TEST

/* Memory in use does not keep the timer running, but running work does. */
START_TEST(the_timer_ends)
{
    bool dirty;
    struct memory_piece piece;
    struct err e = ERR_INIT;
    uint64_t now = NS_PER_S;
    const struct memory_ask ask = {.size = LARGE / 2, .tenant = 1, .stream = 0};
    upkeep_start();
    take_and_free(1 << 20, 1, &dirty);
    ck_assert_int_eq(memory_alloc(&t.device.memory, &ask, &piece, &e), 0);
    upkeep_begin(&own.upkeep);
    own.idle = false;
    for (unsigned s = 0; s < 500; s++) {
        ck_assert_int_ne(upkeep_turn(&own.upkeep, now += NS_PER_S), UPKEEP_STOP);
    }
    own.idle = true;
    unsigned turns = 0;
    while (upkeep_turn(&own.upkeep, now += NS_PER_S) != UPKEEP_STOP) {
        ck_assert_uint_lt(++turns, 130);
    }
    memory_free(&t.device.memory, &piece);
    upkeep_stop();
}
END_TEST

static void until_zeroed(uint64_t *now)
{
    const struct timespec pause = {0, 100000};
    while (upkeep_turn(&own.upkeep, *now += NS_PER_MS) == UPKEEP_SOON) {
        while (upkeep_busy(&own.upkeep)) {
            upkeep_poll(&own.upkeep);
            (void)nanosleep(&pause, NULL);
        }
    }
}

/* With one tenant nothing is zeroed ahead. With two, free memory of one is zeroed while nothing
 * runs, and the other gets it clean. */
START_TEST(free_memory_is_zeroed_ahead)
{
    static uint8_t bytes[4096];
    struct memory_piece piece;
    struct err e = ERR_INIT;
    bool dirty;
    uint64_t now = NS_PER_S;
    const struct memory_ask ask = {.size = 200u << 20, .tenant = 2, .stream = 0};
    upkeep_start();
    const struct memory_ask first = {.size = 200u << 20, .tenant = 1, .stream = 0};
    ck_assert_int_eq(memory_alloc(&t.device.memory, &first, &piece, &e), 0);
    memset(bytes, 0x5a, sizeof bytes);
    ck_assert_int_eq(
        t.device.b->stream->write(t.device.service, piece.ref, bytes, sizeof bytes, &e), 0);
    local_wait(&t, t.device.service);
    memory_cleaned(&piece);
    memory_free(&t.device.memory, &piece);
    until_zeroed(&now);
    ck_assert_uint_eq(stats().cleared, 0);
    (void)memory_number(&t.device.memory, 2);
    own.idle = false;
    until_zeroed(&now);
    ck_assert_uint_eq(stats().cleared, 0);
    own.idle = true;
    until_zeroed(&now);
    ck_assert_uint_ge(stats().cleared, 200u << 20);
    ck_assert_uint_gt(own.kicks, 1);
    ck_assert_int_eq(memory_alloc(&t.device.memory, &ask, &piece, &e), 0);
    ck_assert(!piece.dirty);
    ck_assert_int_eq(t.device.b->stream->read(t.device.service, bytes, piece.ref, sizeof bytes, &e),
                     0);
    local_wait(&t, t.device.service);
    for (unsigned i = 0; i < sizeof bytes; i++) {
        ck_assert_uint_eq(bytes[i], 0);
    }
    memory_free(&t.device.memory, &piece);
    take_and_free(100u << 20, 1, &dirty);
    ck_assert(dirty); /* and the other way round it was not done yet */
    upkeep_stop();
}
END_TEST

static void upkeep_start_with(const char *options)
{
    bool dirty;
    start(options, LIMIT);
    own.idle = true;
    ck_assert_int_eq(uv_loop_init(&own.loop), 0);
    upkeep_init(&own.upkeep, &own.loop, &t.device, is_idle, on_kick, NULL);
    (void)memory_number(&t.device.memory, 2);
    take_and_free(WANTED, 1, &dirty);
}

/* Zeros that did not arrive do no harm: the next user has the memory zeroed. After repeated
 * failures there are no more tries. */
START_TEST(zeros_that_fail_are_left_to_the_next_user)
{
    struct err e = ERR_INIT;
    bool dirty;
    uint64_t now = NS_PER_S;
    upkeep_start_with("speed=0,pages=on,script=fill:2+=fail");
    until_zeroed(&now);
    ck_assert_int_eq(memory_hung(&t.device.memory, &e), 0);
    ck_assert_uint_eq(own.upkeep.failures, UPKEEP_FAILURES);
    ck_assert_uint_eq(stats().cleared, 0);
    take_and_free(LIMIT, 2, &dirty); /* none of it is away */
    ck_assert(dirty);
    upkeep_stop();
}
END_TEST

START_TEST(one_that_fails_is_tried_again)
{
    bool dirty;
    uint64_t now = NS_PER_S;
    upkeep_start_with("speed=0,pages=on,script=fill:2=fail");
    until_zeroed(&now);
    ck_assert_uint_eq(own.upkeep.failures, 0);
    ck_assert_uint_ge(stats().cleared, WANTED);
    take_and_free(WANTED, 2, &dirty);
    ck_assert(!dirty);
    upkeep_stop();
}
END_TEST

START_TEST(a_device_lost_while_zeroing_ends_the_worker)
{
    struct err e = ERR_INIT;
    uint64_t now = NS_PER_S;
    upkeep_start_with("speed=0,pages=on,script=fill:2=lost");
    until_zeroed(&now);
    ck_assert_int_eq(memory_hung(&t.device.memory, &e), ERR_DEVICE_LOST);
    upkeep_stop();
}
END_TEST

/* A request gets memory that is being zeroed, as dirty as it was. */
START_TEST(memory_being_zeroed_is_not_refused)
{
    static uint8_t bytes[4096];
    struct memory_piece piece;
    struct err e = ERR_INIT;
    uint64_t now = NS_PER_S;
    const struct timespec pause = {0, 100000};
    const struct memory_ask all = {.size = WANTED, .tenant = 2, .stream = 0};
    upkeep_start_with("speed=0.001,pages=on");
    ck_assert_int_eq(upkeep_turn(&own.upkeep, now += NS_PER_MS), UPKEEP_SOON);
    ck_assert(upkeep_busy(&own.upkeep));
    ck_assert_msg(memory_alloc(&t.device.memory, &all, &piece, &e) == 0, "%s", e.text);
    ck_assert(piece.dirty && piece.waits);
    memset(bytes, 0x5a, sizeof bytes);
    ck_assert_int_eq(
        t.device.b->stream->write(t.device.stream[0], piece.ref, bytes, sizeof bytes, &e), 0);
    local_wait(&t, t.device.stream[0]); /* the bytes are read then */
    while (upkeep_busy(&own.upkeep)) {
        upkeep_poll(&own.upkeep);
        (void)nanosleep(&pause, NULL);
    }
    local_wait(&t, t.device.stream[0]); /* it reads them until then */
    memset(bytes, 0, sizeof bytes);
    ck_assert_int_eq(
        t.device.b->stream->read(t.device.stream[0], bytes, piece.ref, sizeof bytes, &e), 0);
    local_wait(&t, t.device.stream[0]);
    ck_assert_uint_eq(bytes[0], 0x5a); /* the zeros went before */
    memory_free(&t.device.memory, &piece);
    ck_assert_uint_eq(stats().cleared, 0);
    upkeep_stop();
}
END_TEST

/* ---- tenants --------------------------------------------------------------------------------- */

/* A tenant that shares a number with others has no limit there, and gets no report. Each other
 * tenant has a number of its own and keeps it. */
START_TEST(numbers_have_an_end)
{
    struct err e = ERR_INIT;
    struct memory_limits limits = {.device = POOL_QUOTA_NONE, .spilled = UINT64_MAX};
    start(SOURCES[0], LIMIT);
    for (uint64_t key = 1; key < POOL_TENANTS; key++) {
        limits.device.hard = LIMIT;
        ck_assert_uint_eq(memory_number(&t.device.memory, key), key - 1);
        ck_assert_int_eq(memory_quota(&t.device.memory, key, "one of many", &limits, &e), 0);
    }
    limits.device.hard = UINT64_MAX;
    ck_assert_int_eq(memory_quota(&t.device.memory, POOL_TENANTS, "one more", &limits, &e), 0);
    limits.device.hard = BYTES;
    ck_assert_int_eq(memory_quota(&t.device.memory, POOL_TENANTS, "one more", &limits, &e),
                     ERR_LIMIT);
    ck_assert_int_eq(memory_quota(&t.device.memory, POOL_TENANTS - 1, "last", &limits, &e), 0);
    local_stop(&t);
}
END_TEST

/* ---- beside the pool ------------------------------------------------------------------------- */

/* The double of a back end that has such memory: it is of the same device. */
static int alloc_apart(struct backend_device *d, uint64_t size, struct backend_block **ret_block,
                       struct err *e)
{
    return own.backend.memory->alloc(d, size, ret_block, e);
}

static void free_apart(struct backend_device *d, struct backend_block *block)
{
    own.backend.memory->free(d, block);
}

/* Asks until the room that is made for it has come, or cannot come. */
static int create_apart(struct buffer_ask ask, struct buffer **ret_buffer, struct err *e)
{
    struct buffer_clearing clearing = {.begun = 0};
    ask.clearing = &clearing;
    int rc;
    while ((rc = buffer_create(&t.buffers, &ask, ret_buffer, e)) == BUFFER_LATER) {
        local_quiet(&t);
    }
    return rc;
}

/* Tenant 1 may have a little more than it has: memory beside the pool comes from its own buffers,
 * or not at all. */
static void own_limit(bool exported)
{
    struct buffer *b = NULL;
    struct err e = ERR_INIT;
    struct pool_account a;
    uint64_t outs = t.spill.outs;
    pool_account(t.device.memory.pool, memory_number(&t.device.memory, 1), &a);
    const struct memory_limits limits = {.device = {.hard = a.mapped + BYTES, .soft = UINT64_MAX},
                                         .spilled = UINT64_MAX};
    ck_assert_int_eq(memory_quota(&t.device.memory, 1, "one", &limits, &e), 0);
    struct buffer_ask ask = {.id = 102,
                             .size = a.mapped + 2 * BYTES,
                             .tenant = 1,
                             .exported = exported,
                             .managed = !exported};
    ck_assert_int_eq(create_apart(ask, &b, &e), ERR_LIMIT);
    ck_assert_uint_eq(t.spill.outs, outs);
    ask.size = 3 * BYTES;
    e = (struct err)ERR_INIT;
    ck_assert_msg(create_apart(ask, &b, &e) == 0, "%s", e.text);
    ck_assert_uint_gt(t.spill.outs, outs);
    buffer_free(&t.buffers, b);
}

/* A device that cold buffers fill: what is exported or managed gets its room. */
START_TEST(room_is_made_beside_the_pool)
{
    static struct backend_memory_ops ops;
    struct buffer *b = NULL;
    struct err e = ERR_INIT;
    bool exported = _i % 2 == 0;
    start_with(_i < 2 ? "speed=0,pages=on,memory=16M" : "speed=0,pages=off,memory=16M", LIMIT,
               LIMIT);
    own.backend = *t.device.b;
    ops = *t.device.b->memory;
    ops.alloc_shared = alloc_apart;
    ops.alloc_managed = alloc_apart;
    ops.free_shared = free_apart;
    own.backend.memory = &ops;
    t.device.memory.b = &own.backend;
    t.device.memory.managed_limit = 4 * LIMIT;
    for (uint64_t id = 1; id <= BUFFERS; id++) {
        (void)make(id);
    }
    const struct buffer_ask ask = {
        .id = 100, .size = WANTED, .tenant = 2, .exported = exported, .managed = !exported};
    ck_assert_msg(create_apart(ask, &b, &e) == 0, "%s", e.text);
    ck_assert_ptr_nonnull(b->piece.ref.block);
    ck_assert_uint_gt(t.spill.bytes, 0);
    struct pool_account a;
    pool_account(t.device.memory.pool, memory_number(&t.device.memory, 2), &a);
    ck_assert_uint_ge(a.reserved, WANTED);
    for (uint64_t id = 4; id <= BUFFERS; id += 4) {
        struct buffer *old = buffer_find(&t.buffers, id, &e);
        buffer_pin(&t.buffers, old);
        ck_assert_msg(spill_return(&t.spill, old, &e) == 0, "%s", e.text);
        local_quiet(&t);
        buffer_unpin(&t.buffers, old);
    }
    check_contents();
    /* and no more than is possible: no buffer moves in vain */
    uint64_t outs = t.spill.outs;
    const struct buffer_ask more = {
        .id = 101, .size = LIMIT, .tenant = 2, .exported = exported, .managed = !exported};
    ck_assert_int_eq(create_apart(more, &b, &e), ERR_DEVICE_MEMORY);
    ck_assert_uint_eq(t.spill.outs, outs);
    own_limit(exported);
    buffer_free(&t.buffers, buffer_find(&t.buffers, 100, &e));
    local_stop(&t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mover");
    TCase *moving = tcase_create("moving");
    TCase *upkeep = tcase_create("upkeep");
    tcase_set_timeout(moving, 60);
    tcase_set_timeout(upkeep, 60);
    tcase_add_loop_test(moving, free_parts_are_put_together, 0, 2);
    tcase_add_loop_test(moving, buffers_in_use_keep_their_place, 0, 2);
    tcase_add_loop_test(moving, without_copies_it_is_refused, 0, 2);
    tcase_add_loop_test(moving, a_copy_that_fails_leaves_what_was_there, 0, 2);
    tcase_add_test(moving, a_buffer_freed_while_it_moves);
    tcase_add_test(moving, a_move_that_its_buffer_left_cleans_nothing);
    tcase_add_test(upkeep, unused_memory_goes_back);
    tcase_add_test(upkeep, where_the_device_is_full_it_goes_sooner);
    tcase_add_test(upkeep, the_back_end_is_called_when_nothing_runs);
    tcase_add_test(upkeep, the_timer_ends);
    tcase_add_test(upkeep, free_memory_is_zeroed_ahead);
    tcase_add_test(upkeep, zeros_that_fail_are_left_to_the_next_user);
    tcase_add_test(upkeep, one_that_fails_is_tried_again);
    tcase_add_test(upkeep, a_device_lost_while_zeroing_ends_the_worker);
    tcase_add_test(upkeep, memory_being_zeroed_is_not_refused);
    tcase_add_test(moving, numbers_have_an_end);
    tcase_add_loop_test(moving, room_is_made_beside_the_pool, 0, 4);
    suite_add_tcase(suite, moving);
    suite_add_tcase(suite, upkeep);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
