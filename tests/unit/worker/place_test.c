/* Buffers that go to the host and come back, some to the addresses that they had: on a simulated
 * device and on the CUDA driver's double, in this process. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pool/place.h"
#include "tests/unit/worker/local.h"

#define LIMIT   ((uint64_t)16 << 20)
#define PAGE    ((uint64_t)2 << 20)
#define BUFFERS 6u
#define ROUNDS  4u

static const struct {
    const char *backend, *options;
    bool places;
} ON[] = {
    {"sim", "speed=0,pages=on", true}, {"sim", "speed=0,pages=off", false}, {"cuda", "", true}};

#define KINDS ((int)(sizeof ON / sizeof ON[0]))

static struct local t;
static uint64_t size; /* of each buffer */

static bool start(int which, uint64_t bytes)
{
    if (backend_find(ON[which].backend) == NULL) { /* is not built */
        return false;
    }
    size = bytes;
    local_start(&t, ON[which].backend, ON[which].options, LIMIT, LIMIT * 4);
    return true;
}

static uint8_t *pattern(uint64_t id, unsigned round)
{
    static uint8_t bytes[4 * PAGE];
    for (uint64_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)(id * 31 + round * 17 + i * 7 + (i >> 9));
    }
    return bytes;
}

/* Brings a buffer as a job does. With `wait` nothing is under way then. */
static struct buffer *bring(uint64_t id, bool wait)
{
    struct err e = ERR_INIT;
    struct buffer *b = buffer_find(&t.buffers, id, &e);
    ck_assert_ptr_nonnull(b);
    buffer_pin(&t.buffers, b);
    int rc = spill_return(&t.spill, b, &e);
    if (spill_short(rc)) { /* what goes has to be gone first */
        local_quiet(&t);
        e = (struct err)ERR_INIT;
        rc = spill_return(&t.spill, b, &e);
    }
    ck_assert_msg(rc == 0, "%s", e.text);
    if (wait) {
        local_quiet(&t);
    }
    b->content = BUFFER_BYTES;
    return b;
}

static void put(struct buffer *b, unsigned round)
{
    struct err e = ERR_INIT;
    ck_assert_int_eq(
        t.device.b->stream->write(t.device.service, b->piece.ref, pattern(b->id, round), size, &e),
        0);
    local_wait(&t, t.device.service);
    memory_cleaned(&b->piece);
}

static void look(const struct buffer *b, unsigned round)
{
    static uint8_t back[4 * PAGE];
    struct err e = ERR_INIT;
    ck_assert_int_eq(t.device.b->stream->read(t.device.service, back, b->piece.ref, size, &e), 0);
    local_wait(&t, t.device.service);
    ck_assert_msg(memcmp(back, pattern(b->id, round), size) == 0, "buffer %u, round %u",
                  (unsigned)b->id, round);
}

static void make(uint64_t id)
{
    struct buffer *b = NULL;
    struct err e = ERR_INIT;
    const struct buffer_ask ask = {.id = id, .size = size, .tenant = 1 + id % 2};
    ck_assert_msg(buffer_create(&t.buffers, &ask, &b, &e) == 0, "%s", e.text);
    b = bring(id, true);
    put(b, 0);
    buffer_unpin(&t.buffers, b);
}

static struct pool_stats stats(void)
{
    struct pool_stats s;
    pool_stats(t.device.memory.pool, &s);
    return s;
}

/* More than the device holds, of whole pages each: every one of them is where it was first, in each
 * round, with what was written into it last. */
START_TEST(buffers_come_back_to_their_addresses)
{
    uint64_t at[BUFFERS + 1];
    if (!start(_i, 2 * PAGE)) {
        return;
    }
    for (uint64_t id = 1; id <= BUFFERS; id++) {
        make(id);
        at[id] = buffer_find(&t.buffers, id, NULL)->piece.ref.offset;
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (uint64_t n = 0; n < BUFFERS; n++) {
            uint64_t id = 1 + (n * 5 + round) % BUFFERS;
            struct buffer *b = bring(id, true);
            ck_assert(!ON[_i].places || b->piece.ref.offset == at[id]);
            look(b, round);
            put(b, round + 1);
            buffer_unpin(&t.buffers, b);
        }
    }
    ck_assert_uint_gt(t.spill.outs, BUFFERS);
    ck_assert(ON[_i].places ? stats().came_back >= ROUNDS : stats().came_back == 0);
    ck_assert_uint_eq(stats().given_up, 0);
    local_stop(&t);
}
END_TEST

/* All at once, nothing waited for: they come wherever they can, and have their bytes. */
START_TEST(buffers_come_back_while_others_go)
{
    if (!start(_i, 2 * PAGE)) {
        return;
    }
    for (uint64_t id = 1; id <= BUFFERS; id++) {
        make(id);
    }
    for (unsigned n = 0; n < 5 * BUFFERS; n++) {
        struct buffer *b = bring(1 + n * (n % 7 + 1) % BUFFERS, false);
        look(b, 0);
        buffer_unpin(&t.buffers, b);
    }
    ck_assert(!ON[_i].places || stats().came_back > 0);
    local_stop(&t);
}
END_TEST

/* Smaller than a page, and not of whole pages. */
START_TEST(others_come_back_anywhere)
{
    static const uint64_t SIZES[] = {PAGE / 2, PAGE + PAGE / 2, 3 * PAGE - 1000};
    for (unsigned k = 0; k < 3; k++) {
        if (!start(_i, SIZES[k])) {
            return;
        }
        uint64_t count = LIMIT / SIZES[k] + 3;
        for (uint64_t id = 1; id <= count; id++) {
            make(id);
        }
        for (uint64_t n = 0; n < 2 * count; n++) {
            struct buffer *b = bring(1 + n % count, true);
            look(b, 0);
            buffer_unpin(&t.buffers, b);
        }
        ck_assert_uint_gt(t.spill.backs, 0);
        ck_assert(SIZES[k] > PAGE || stats().came_back == 0);
        local_stop(&t);
    }
}
END_TEST

/* One that is freed while it is on the host leaves its place. */
START_TEST(a_place_ends_with_its_buffer)
{
    if (!start(_i, 4 * PAGE)) {
        return;
    }
    for (uint64_t id = 1; id <= BUFFERS; id++) {
        make(id);
    }
    local_quiet(&t);
    ck_assert(!ON[_i].places || stats().vacant == (BUFFERS - 2) * 4 * PAGE);
    for (uint64_t id = 1; id <= BUFFERS; id++) {
        buffer_free(&t.buffers, buffer_find(&t.buffers, id, NULL));
    }
    ck_assert_uint_eq(stats().vacant, 0);
    ck_assert_uint_eq(stats().used, 0);
    local_stop(&t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("places of buffers");
    TCase *tc = tcase_create("places");
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, buffers_come_back_to_their_addresses, 0, KINDS);
    tcase_add_loop_test(tc, buffers_come_back_while_others_go, 0, KINDS);
    tcase_add_loop_test(tc, others_come_back_anywhere, 0, KINDS);
    tcase_add_loop_test(tc, a_place_ends_with_its_buffer, 0, KINDS);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
