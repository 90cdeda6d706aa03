/* Private places of programs: on a simulated device and on the CUDA driver's double, in this
 * process. */
#include <check.h>
#include <stdlib.h>

#include "daemon/worker/memory/places.h"
#include "tests/unit/worker/local.h"

#define MIB   ((uint64_t)1 << 20)
#define PAGE  (2 * MIB)
#define LIMIT (64 * MIB)

static const struct {
    const char *backend, *options;
} ON[] = {{"sim", "speed=0,pages=on"}, {"cuda", ""}};

#define KINDS ((int)(sizeof ON / sizeof ON[0]))

static struct local t;
static struct places *places;

static bool start(int which)
{
    if (backend_find(ON[which].backend) == NULL) { /* is not built */
        return false;
    }
    local_start(&t, ON[which].backend, ON[which].options, LIMIT, LIMIT);
    places = &t.device.places;
    return true;
}

/* As a job does it: a run of the program gets its memory. */
static struct memory_piece begin(uint64_t program, uint64_t size, unsigned stream)
{
    struct memory_piece piece = {.ref = {.block = NULL}};
    struct pool_place place;
    struct err e = ERR_INIT;
    struct memory_ask ask = {
        .size = size, .tenant = 1, .stream = stream, .place = &place, .align = PAGE};
    places_take(places, program, &ask, &place);
    ck_assert_msg(memory_alloc(&t.device.memory, &ask, &piece, &e) == 0, "%s", e.text);
    places_taken(places, &place, &piece);
    memory_cleaned(&piece);
    return piece;
}

static void end(uint64_t program, struct memory_piece *piece)
{
    places_leave(places, program, piece, 0, 0);
    ck_assert_ptr_null(piece->ref.block);
}

static struct memory_piece other(uint64_t size)
{
    struct memory_piece piece = {.ref = {.block = NULL}};
    struct err e = ERR_INIT;
    const struct memory_ask ask = {.size = size, .tenant = 2};
    ck_assert_msg(memory_alloc(&t.device.memory, &ask, &piece, &e) == 0, "%s", e.text);
    memory_cleaned(&piece);
    return piece;
}

static struct places_use use(void)
{
    struct places_use u;
    struct err e = ERR_INIT;
    ck_assert_msg(pool_check(t.device.memory.pool, &e) == 0, "%s", e.text);
    places_use(places, &u);
    return u;
}

/* Programs of random sizes run in a random order, each with all of the memory in turn: each finds
 * its first addresses again. */
START_TEST(runs_have_the_same_addresses)
{
    enum { PROGRAMS = 5, ROUNDS = 60 };
    uint64_t at[PROGRAMS] = {0};
    uint64_t size[PROGRAMS];
    if (!start(_i)) {
        return;
    }
    srand(7);
    for (unsigned p = 0; p < PROGRAMS; p++) {
        size[p] = (uint64_t)(8 + rand() % 20) * PAGE;
    }
    for (unsigned n = 0; n < ROUNDS; n++) {
        unsigned p = n < PROGRAMS ? n : (unsigned)rand() % PROGRAMS;
        struct memory_piece run = begin(p + 1, size[p], 0);
        ck_assert_msg(n < PROGRAMS || run.ref.offset == at[p], "run %u of program %u", n, p);
        at[p] = run.ref.offset;
        end(p + 1, &run);
        struct memory_piece more = other(LIMIT - PAGE); /* others use the memory meanwhile */
        memory_free(&t.device.memory, &more);
    }
    ck_assert_uint_eq(places->returns, ROUNDS - PROGRAMS);
    ck_assert_uint_eq(places->others, PROGRAMS);
    ck_assert_uint_eq(use().count, PROGRAMS);
    local_stop(&t);
}
END_TEST

/* As many as are in flight have a place each, up to a limit. */
START_TEST(runs_at_once_have_a_place_each)
{
    struct memory_piece run[PLACES_EACH + 1];
    uint64_t at[PLACES_EACH + 1];
    if (!start(_i)) {
        return;
    }
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i <= PLACES_EACH; i++) {
            run[i] = begin(9, 4 * MIB, 0);
            ck_assert(round == 0 || i == PLACES_EACH || run[i].ref.offset == at[i]);
            at[i] = run[i].ref.offset;
        }
        for (unsigned i = 0; i <= PLACES_EACH; i++) {
            end(9, &run[i]);
        }
        ck_assert_uint_eq(use().count, PLACES_EACH);
        ck_assert_uint_eq(use().bytes, PLACES_EACH * 4 * MIB);
    }
    ck_assert_uint_eq(places->returns, 2 * PLACES_EACH);
    local_stop(&t);
}
END_TEST

/* A run does not wait for another stream because of a place. */
START_TEST(a_place_that_another_stream_uses_is_passed_over)
{
    struct timeline *line = &t.device.memory.timeline;
    if (!start(_i)) {
        return;
    }
    struct memory_piece run = begin(9, 4 * MIB, 0);
    uint64_t at = run.ref.offset;
    line->stream[0].last = 5;
    places_leave(places, 9, &run, 0, 5);
    run = begin(9, 4 * MIB, 1);
    ck_assert_uint_ne(run.ref.offset, at);
    ck_assert(!run.waits);
    end(9, &run);
    run = begin(9, 4 * MIB, 0); /* its own stream */
    ck_assert_uint_eq(run.ref.offset, at);
    places_leave(places, 9, &run, 0, 5);
    line->stream[0].done = 5;
    pool_advance(t.device.memory.pool, 0, 5);
    struct memory_piece first = begin(9, 4 * MIB, 1);
    struct memory_piece second = begin(9, 4 * MIB, 1);
    ck_assert(first.ref.offset == at || second.ref.offset == at);
    end(9, &first);
    end(9, &second);
    local_stop(&t);
}
END_TEST

START_TEST(places_come_to_an_end)
{
    if (!start(_i)) {
        return;
    }
    for (uint64_t p = 1; p <= PLACES_PROGRAMS + 1; p++) { /* the first gives its place up */
        struct memory_piece run = begin(p, PAGE, 0);
        end(p, &run);
    }
    ck_assert_uint_eq(places->programs, PLACES_PROGRAMS);
    struct pool_place place;
    const struct memory_ask ask = {.size = PAGE};
    places_take(places, 1, &ask, &place);
    ck_assert_uint_eq(place.size, 0);
    places_take(places, 2, &ask, &place);
    ck_assert_uint_eq(place.size, PAGE);
    places_back(places, 2, &place); /* the request failed */
    places_take(places, 2, &(struct memory_ask){.size = 2 * PAGE}, &place);
    ck_assert_uint_eq(place.size, 0); /* it has another size now */
    places_end(places, 2);
    places_end(places, 2);
    ck_assert_uint_eq(places->programs, PLACES_PROGRAMS - 1);
    uint64_t kept = use().count; /* at most a quarter of the addresses is kept */
    ck_assert_uint_gt(kept, 0);
    ck_assert_uint_eq(use().bytes, kept * PAGE);
    places_end_all(places);
    ck_assert_uint_eq(use().count, 0);
    struct pool_stats s;
    pool_stats(t.device.memory.pool, &s);
    ck_assert_uint_eq(s.vacant, 0);
    local_stop(&t);
}
END_TEST

/* Whole pages where that costs little, and only where places exist. */
START_TEST(what_has_a_place)
{
    start(0);
    ck_assert_uint_eq(places_bytes(places, 0), 0);
    ck_assert_uint_eq(places_bytes(places, UINT64_MAX), 0);
    ck_assert_uint_eq(places_bytes(places, 1000), 0);
    ck_assert_uint_eq(places_bytes(places, PAGE), PAGE);
    ck_assert_uint_eq(places_bytes(places, PAGE + 1), 0);
    ck_assert_uint_eq(places_bytes(places, 7 * PAGE + 1), 0);
    ck_assert_uint_eq(places_bytes(places, 9 * PAGE - MIB), 9 * PAGE);
    local_stop(&t);
    local_start(&t, "sim", "speed=0,pages=off", LIMIT, LIMIT);
    ck_assert_uint_eq(places_bytes(&t.device.places, PAGE), 0);
    local_stop(&t);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("places of programs");
    TCase *c = tcase_create("places");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, runs_have_the_same_addresses, 0, KINDS);
    tcase_add_loop_test(c, runs_at_once_have_a_place_each, 0, KINDS);
    tcase_add_loop_test(c, a_place_that_another_stream_uses_is_passed_over, 0, KINDS);
    tcase_add_loop_test(c, places_come_to_an_end, 0, KINDS);
    tcase_add_test(c, what_has_a_place);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? 0 : 1;
}
