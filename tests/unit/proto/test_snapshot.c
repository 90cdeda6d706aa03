/* Pictures of a pool: what a worker could get wrong, or make wrong. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "proto/snapshot.h"

#define METERS 3u
#define EVENTS 4u
#define PIECES 5u

static void *make(size_t *ret_size)
{
    *ret_size = (size_t)snapshot_bytes(METERS, EVENTS, PIECES);
    void *data = calloc(1, *ret_size);
    ck_assert_ptr_nonnull(data);
    struct snapshot_room room = snapshot_room(data, METERS, EVENTS);
    *room.head = (struct snapshot_head){.version = SNAPSHOT_VERSION,
                                        .meters = METERS,
                                        .events = EVENTS,
                                        .pieces = PIECES,
                                        .pieces_all = PIECES};
    room.head->numbers.used = 77;
    for (uint32_t i = 0; i < METERS; i++) {
        room.meters[i] =
            (struct snapshot_meter){.scope = SNAPSHOT_TIER, .index = i, .total = 10 + i};
    }
    for (uint32_t i = 0; i < EVENTS; i++) {
        room.events[i] = (struct snapshot_event){.at = i, .size = 1, .kind = (uint8_t)i};
    }
    for (uint32_t i = 0; i < PIECES; i++) {
        room.pieces[i] =
            (struct snapshot_piece){.at = 256 * i, .size = 256, .state = 3, .owner = i};
    }
    return data;
}

START_TEST(what_is_written_is_read)
{
    size_t size;
    struct snapshot_view v;
    void *data = make(&size);
    ck_assert_int_eq(snapshot_open(data, size, &v, NULL), 0);
    ck_assert_uint_eq(v.head.numbers.used, 77);
    ck_assert_uint_eq(snapshot_meter(&v, 2).total, 12);
    ck_assert_uint_eq(snapshot_event(&v, 3).at, 3);
    ck_assert_uint_eq(snapshot_piece(&v, 4).owner, 4);
    ck_assert_uint_eq(snapshot_piece(&v, 4).at, 1024);
    free(data);
}
END_TEST

/* Hostile values: each is refused, and the view keeps its state. */
START_TEST(heads_that_promise_too_much)
{
    static const struct snapshot_head heads[] = {
        {.version = SNAPSHOT_VERSION + 1},
        {.version = 0},
        {.version = SNAPSHOT_VERSION, .meters = SNAPSHOT_METERS_MAX + 1},
        {.version = SNAPSHOT_VERSION, .events = SNAPSHOT_EVENTS_MAX + 1},
        {.version = SNAPSHOT_VERSION, .pieces = SNAPSHOT_PIECES_MAX + 1},
        {.version = SNAPSHOT_VERSION,
         .meters = UINT32_MAX,
         .events = UINT32_MAX,
         .pieces = UINT32_MAX},
        {.version = SNAPSHOT_VERSION, .meters = METERS, .events = EVENTS, .pieces = PIECES + 1},
        {.version = SNAPSHOT_VERSION, .meters = METERS + 1, .events = EVENTS, .pieces = PIECES},
    };
    size_t size;
    void *data = make(&size);
    struct snapshot_view v = {.data = NULL};
    struct err e = ERR_INIT;
    *(struct snapshot_head *)data = heads[_i];
    ck_assert_int_eq(snapshot_open(data, size, &v, &e), ERR_PROTOCOL);
    ck_assert_ptr_null(v.data);
    ck_assert_ptr_nonnull(strstr(e.text, "snapshot"));
    free(data);
}
END_TEST

START_TEST(memory_that_ends_early)
{
    size_t size;
    void *data = make(&size);
    struct snapshot_view v;
    for (size_t n = 0; n < size; n++) {
        void *part = malloc(n > 0 ? n : 1); /* so that a look behind it is seen */
        memcpy(part, data, n);
        ck_assert_int_eq(snapshot_open(part, n, &v, NULL), ERR_PROTOCOL);
        free(part);
    }
    free(data);
}
END_TEST

START_TEST(entries_out_of_range_are_brought_into_it)
{
    size_t size;
    struct snapshot_view v;
    void *data = make(&size);
    struct snapshot_room room = snapshot_room(data, METERS, EVENTS);
    room.pieces[0] = (struct snapshot_piece){
        .at = UINT64_MAX - 10, .size = UINT64_MAX, .state = 255, .kind = 200};
    room.events[0] = (struct snapshot_event){.at = 5, .size = UINT64_MAX, .kind = 255};
    ck_assert_int_eq(snapshot_open(data, size, &v, NULL), 0);
    struct snapshot_piece p = snapshot_piece(&v, 0);
    ck_assert_uint_eq(p.size, 10);
    ck_assert_uint_lt(p.state, SNAPSHOT_STATES);
    ck_assert_uint_eq(p.kind, SNAPSHOT_NOBODY);
    struct snapshot_event event = snapshot_event(&v, 0);
    ck_assert_uint_eq(event.size, UINT64_MAX - 5);
    ck_assert_uint_lt(event.kind, SNAPSHOT_EVENT_KINDS);
    free(data);
}
END_TEST

/* The counts are the checked ones, whatever the worker writes afterwards. */
START_TEST(later_writes_change_no_counts)
{
    size_t size;
    struct snapshot_view v;
    void *data = make(&size);
    ck_assert_int_eq(snapshot_open(data, size, &v, NULL), 0);
    ((struct snapshot_head *)data)->meters = 1000;
    ck_assert_uint_eq(v.head.meters, METERS);
    ck_assert_uint_eq(snapshot_piece(&v, 4).owner, 4);
    free(data);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("snapshot");
    TCase *tc = tcase_create("snapshot");
    tcase_add_test(tc, what_is_written_is_read);
    tcase_add_loop_test(tc, heads_that_promise_too_much, 0, 8);
    tcase_add_test(tc, memory_that_ends_early);
    tcase_add_test(tc, entries_out_of_range_are_brought_into_it);
    tcase_add_test(tc, later_writes_change_no_counts);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
