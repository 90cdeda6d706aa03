#include "common/idmap.h"

#include "tests/unit/common/suite.h"

static int things[5000];

START_TEST(a_handle_finds_its_value)
{
    struct idmap m;
    idmap_init(&m, 5000, 1);
    uint64_t handles[5000];
    for (int i = 0; i < 5000; i++) {
        handles[i] = idmap_add(&m, &things[i]);
        ck_assert_uint_ne(handles[i], 0);
    }
    ck_assert_uint_eq(idmap_add(&m, &things[0]), 0);
    for (int i = 0; i < 5000; i++) {
        ck_assert_ptr_eq(idmap_get(&m, handles[i]), &things[i]);
    }
    ck_assert_uint_eq(m.live, 5000);
    idmap_finish(&m);
}
END_TEST

START_TEST(freed_handles_are_stale_and_strange_ones_unknown)
{
    struct idmap m;
    idmap_init(&m, 10, 5);
    uint64_t a = idmap_add(&m, &things[0]);
    ck_assert_int_eq(idmap_state(&m, a), IDMAP_LIVE);
    ck_assert_ptr_eq(idmap_remove(&m, a), &things[0]);
    ck_assert_ptr_null(idmap_remove(&m, a));
    ck_assert_ptr_null(idmap_get(&m, a));
    ck_assert_int_eq(idmap_state(&m, a), IDMAP_STALE);

    uint64_t b = idmap_add(&m, &things[1]);
    ck_assert_uint_ne(a, b);
    ck_assert_ptr_eq(idmap_get(&m, b), &things[1]);
    ck_assert_ptr_null(idmap_get(&m, a));

    ck_assert_int_eq(idmap_state(&m, 0), IDMAP_UNKNOWN);
    ck_assert_int_eq(idmap_state(&m, b + idmap_handle(1, 0)), IDMAP_UNKNOWN);
    ck_assert_int_eq(idmap_state(&m, idmap_handle(5, 10)), IDMAP_UNKNOWN);
    ck_assert_int_eq(idmap_state(&m, UINT64_MAX), IDMAP_UNKNOWN);
    ck_assert_ptr_null(idmap_get(&m, UINT64_MAX));
    idmap_finish(&m);
}
END_TEST

START_TEST(handles_from_before_a_restart_are_stale)
{
    struct idmap before;
    struct idmap after;
    idmap_init(&before, 10, 1);
    idmap_init(&after, 10, 2);
    uint64_t old = idmap_add(&before, &things[0]);
    ck_assert_int_eq(idmap_state(&after, old), IDMAP_STALE);
    uint64_t new = idmap_add(&after, &things[1]);
    ck_assert_uint_ne(old, new);
    ck_assert_int_eq(idmap_state(&after, old), IDMAP_STALE);
    idmap_finish(&before);
    idmap_finish(&after);
}
END_TEST

/* A daemon that made and freed one buffer for a second, as fast as its clients can, is followed by
 * another: no handle of the first may be one of the second's. */
START_TEST(a_later_start_is_never_outrun)
{
    enum { FREED = 200000 }; /* 5 us for each of a second */
    struct idmap before;
    struct idmap after;
    uint64_t start = UINT64_C(1700000000) * 1000000000;
    idmap_init(&before, IDMAP_MAX, idmap_generation_at(start));
    idmap_init(&after, IDMAP_MAX, idmap_generation_at(start + 1000000000));
    uint64_t last = 0;
    for (int i = 0; i < FREED; i++) {
        last = idmap_add(&before, &things[0]);
        ck_assert_ptr_eq(idmap_remove(&before, last), &things[0]);
    }
    uint64_t first = idmap_add(&after, &things[1]);
    ck_assert_uint_lt(idmap_generation(last), idmap_generation(first));
    ck_assert_int_eq(idmap_state(&after, last), IDMAP_STALE);
    ck_assert_uint_ge(idmap_generation_at(0), 1);
    ck_assert_uint_le(idmap_generation_at(UINT64_MAX), IDMAP_GENERATION_MAX);
    idmap_finish(&before);
    idmap_finish(&after);
}
END_TEST

START_TEST(restored_handles_live_again)
{
    struct idmap m;
    idmap_init(&m, 100, 7);
    uint64_t old = idmap_handle(3, 42);
    ck_assert(idmap_restore(&m, old, &things[0]));
    ck_assert_ptr_eq(idmap_get(&m, old), &things[0]);
    ck_assert_msg(!idmap_restore(&m, old, &things[1]), "a live slot was taken");
    ck_assert(!idmap_restore(&m, idmap_handle(4, 42), &things[1]));
    ck_assert(!idmap_restore(&m, idmap_handle(3, 100), &things[1]));
    ck_assert(!idmap_restore(&m, 42, &things[1]));

    uint64_t seen[99];
    for (int i = 0; i < 99; i++) {
        seen[i] = idmap_add(&m, &things[i + 1]);
        ck_assert_uint_ne(seen[i], 0);
        ck_assert_uint_ne(seen[i] & (IDMAP_MAX - 1), 42);
        for (int j = 0; j < i; j++) {
            ck_assert_uint_ne(seen[i], seen[j]);
        }
    }
    ck_assert_uint_eq(idmap_add(&m, &things[0]), 0);
    ck_assert_ptr_eq(idmap_get(&m, old), &things[0]);

    ck_assert_ptr_eq(idmap_remove(&m, old), &things[0]);
    uint64_t next = idmap_add(&m, &things[0]);
    ck_assert_uint_eq(next & (IDMAP_MAX - 1), 42);
    ck_assert_uint_eq(idmap_generation(next), 7);
    ck_assert_int_eq(idmap_state(&m, old), IDMAP_STALE);
    ck_assert(!idmap_left_behind(&m, old));
    ck_assert(!idmap_left_behind(&m, next));
    ck_assert(!idmap_left_behind(&m, 42));
    ck_assert(idmap_left_behind(&m, idmap_handle(2, 42)));
    ck_assert(idmap_left_behind(&m, idmap_handle(6, 99)));
    ck_assert(!idmap_left_behind(&m, idmap_handle(6, 100)));
    idmap_finish(&m);
}
END_TEST

START_TEST(iteration_sees_each_once_and_allows_removal)
{
    struct idmap m;
    idmap_init(&m, 100, 1);
    for (int i = 0; i < 50; i++) {
        things[i] = 0;
        ck_assert_uint_ne(idmap_add(&m, &things[i]), 0);
    }
    uint32_t cursor = 0;
    uint64_t handle = 0;
    int *thing;
    while ((thing = idmap_next(&m, &cursor, &handle)) != NULL) {
        ++*thing;
        if ((thing - things) % 2 == 0) {
            ck_assert_ptr_eq(idmap_remove(&m, handle), thing);
        }
    }
    for (int i = 0; i < 50; i++) {
        ck_assert_int_eq(things[i], 1);
    }
    ck_assert_uint_eq(m.live, 25);
    cursor = 0;
    int left = 0;
    while (idmap_next(&m, &cursor, NULL) != NULL) {
        left++;
    }
    ck_assert_int_eq(left, 25);
    idmap_finish(&m);
}
END_TEST

START_TEST(generations_never_come_to_zero)
{
    struct idmap m;
    idmap_init(&m, 1, IDMAP_GENERATION_MAX);
    uint64_t a = idmap_add(&m, &things[0]);
    ck_assert_uint_eq(idmap_generation(a), IDMAP_GENERATION_MAX);
    ck_assert_ptr_nonnull(idmap_remove(&m, a));
    uint64_t b = idmap_add(&m, &things[0]);
    ck_assert_uint_ne(idmap_generation(b), 0);
    idmap_finish(&m);

    idmap_init(&m, 1, 0);
    ck_assert_uint_ne(idmap_add(&m, &things[0]), 0);
    idmap_finish(&m);
}
END_TEST

/* As many as an adopted worker may hold, from the free list's far end to its near one and back: if
 * a restore went along the list the test would not end within the suite's limit. */
START_TEST(many_are_restored_in_any_order)
{
    enum { MANY = 196608, STEP = 131071 }; /* STEP has no factor of MANY's */
    struct idmap m;
    idmap_init(&m, IDMAP_MAX, 1000);
    for (uint32_t i = 0; i < MANY; i++) {
        uint32_t slot = (uint32_t)((uint64_t)i * STEP % MANY);
        ck_assert(idmap_restore(&m, idmap_handle(7, slot), &things[0]));
    }
    ck_assert_uint_eq(m.live, MANY);
    ck_assert_uint_eq(m.used, MANY);
    ck_assert_uint_eq(m.first_free, 0);
    for (uint32_t slot = 0; slot < MANY; slot += 2) {
        ck_assert_ptr_nonnull(idmap_remove(&m, idmap_handle(7, slot)));
    }
    for (uint32_t slot = 0; slot < MANY; slot += 4) { /* from the middle of the free list */
        ck_assert(idmap_restore(&m, idmap_handle(9, slot), &things[1]));
    }
    for (uint32_t i = 0; i < MANY / 4; i++) { /* each that is left is given once */
        ck_assert_uint_ne(idmap_add(&m, &things[2]), 0);
    }
    ck_assert_uint_eq(m.first_free, 0);
    ck_assert_uint_eq(m.live, MANY);
    ck_assert_uint_eq(m.used, MANY);
    idmap_finish(&m);
}
END_TEST

START_TEST(others_do_not_hear_of_a_freed_handle)
{
    struct idmap m;
    int value = 0;
    idmap_init(&m, 10, 100);
    uint64_t a = idmap_add(&m, &value);
    ck_assert(!idmap_freed_of(&m, a, 7)); /* live */
    idmap_disown(&m, a, 7);
    ck_assert(idmap_freed_of(&m, a, 7)); /* still in use */
    ck_assert(!idmap_freed_of(&m, a, 8));
    ck_assert_ptr_eq(idmap_remove(&m, a), &value);
    ck_assert(idmap_freed_of(&m, a, 7));
    ck_assert(!idmap_freed_of(&m, a, 8));
    uint64_t b = idmap_add(&m, &value); /* its slot is given again */
    ck_assert(idmap_freed_of(&m, a, 7));
    ck_assert(!idmap_freed_of(&m, a, 8));
    idmap_disown(&m, b, 8);
    ck_assert_ptr_eq(idmap_remove(&m, b), &value);
    ck_assert(!idmap_freed_of(&m, a, 7)); /* not known any more */
    ck_assert(!idmap_freed_of(&m, a, 8));
    ck_assert(idmap_freed_of(&m, b, 8));
    ck_assert(!idmap_freed_of(&m, idmap_handle(200, 0), 8));
    ck_assert(!idmap_freed_of(&m, 0, 8));
    idmap_finish(&m);
}
END_TEST

SUITE_MAIN("idmap", a_handle_finds_its_value, freed_handles_are_stale_and_strange_ones_unknown,
           handles_from_before_a_restart_are_stale, a_later_start_is_never_outrun,
           restored_handles_live_again, iteration_sees_each_once_and_allows_removal,
           generations_never_come_to_zero, many_are_restored_in_any_order,
           others_do_not_hear_of_a_freed_handle)
