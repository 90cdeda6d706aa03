#include <check.h>
#include <stdbool.h>
#include <string.h>

#include "daemon/pool/marks.h"

#define LIMIT 600000u /* two words of the last level */

static struct marks marks;
static bool model[LIMIT];

static void start(void)
{
    struct err e = ERR_INIT;
    memset(model, 0, sizeof model);
    ck_assert_int_eq(marks_init(&marks, LIMIT, &e), 0);
}

static uint64_t last(uint64_t number)
{
    while (!model[number]) {
        if (number-- == 0) {
            return MARKS_NONE;
        }
    }
    return number;
}

static uint64_t next(uint64_t number)
{
    while (number < LIMIT && !model[number]) {
        number++;
    }
    return number < LIMIT ? number : MARKS_NONE;
}

static void compare(uint64_t number)
{
    ck_assert_uint_eq(marks_last(&marks, number), last(number));
    ck_assert_uint_eq(marks_next(&marks, number), next(number));
}

START_TEST(an_empty_set_has_no_number)
{
    start();
    compare(0);
    compare(LIMIT - 1);
    marks_finish(&marks);
}
END_TEST

START_TEST(the_nearest_numbers_are_found)
{
    uint64_t state = 1 + (uint64_t)_i;
    start();
    for (unsigned i = 0; i < 400; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint64_t number = (state >> 33) % LIMIT >> (state >> 60); /* small ones are likelier */
        model[number] = !model[number] || i % 3 != 0;
        (model[number] ? marks_add : marks_remove)(&marks, number);
        compare(number);
        compare((state >> 20) % LIMIT);
        compare(number > 0 ? number - 1 : 0);
        compare(number + 1 < LIMIT ? number + 1 : number);
    }
    marks_finish(&marks);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("marks of the pool");
    TCase *t = tcase_create("marks");
    tcase_add_test(t, an_empty_set_has_no_number);
    tcase_add_loop_test(t, the_nearest_numbers_are_found, 0, 4);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
