/* Tenants take turns. */
#include <check.h>
#include <stdbool.h>

#include "daemon/worker/memory/turns.h"
#include "tests/unit/common/suite.h"

static struct turn x[10];
static struct turns t;

/* Serves the first entry once; whether it is over then. Returns its index. */
static int serve(bool over)
{
    struct turn *first = t.first;
    if (first == NULL) {
        return -1;
    }
    turns_pass(&t);
    if (over) {
        turns_remove(&t, first);
    }
    return (int)(first - x);
}

static void order_is(const int *order, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        ck_assert_int_eq(serve(true), order[i]);
    }
    ck_assert_ptr_null(t.first);
    turns_pass(&t); /* of no entry */
}

START_TEST(each_tenant_in_its_order)
{
    static const int order[] = {0, 3, 5, 1, 4, 2};
    for (unsigned i = 0; i < 6; i++) {
        turns_add(&t, &x[i], i < 3 ? 7 : i < 5 ? 1 : 9);
    }
    order_is(order, 6);
}
END_TEST

/* Entry 0 takes several turns. */
START_TEST(a_long_entry_delays_others_by_a_turn)
{
    turns_add(&t, &x[0], 1);
    turns_add(&t, &x[1], 1);
    ck_assert_int_eq(serve(false), 0);
    turns_add(&t, &x[2], 2);
    turns_add(&t, &x[3], 2);
    ck_assert_int_eq(serve(false), 0);
    ck_assert_int_eq(serve(true), 2);
    ck_assert_int_eq(serve(false), 0);
    ck_assert_int_eq(serve(true), 3);
    ck_assert_int_eq(serve(true), 0);
    ck_assert_int_eq(serve(true), 1);
    ck_assert_int_eq(serve(true), -1);
}
END_TEST

/* The first, one in the middle and the last of a tenant. */
START_TEST(entries_leave_from_anywhere)
{
    static const int rest[][3] = {{4, 1, 2}, {0, 4, 2}, {0, 4, 1}};
    for (unsigned gone = 0; gone < 3; gone++) {
        for (unsigned i = 0; i < 3; i++) {
            turns_add(&t, &x[i], 1);
        }
        turns_add(&t, &x[4], 2);
        turns_remove(&t, &x[gone]);
        if (gone == 0) {
            ck_assert_int_eq(serve(false), 1); /* in its place */
        }
        order_is(rest[gone], 3);
    }
    turns_add(&t, &x[0], 1);
    turns_add(&t, &x[1], 2);
    turns_remove(&t, &x[1]);
    ck_assert_int_eq(serve(true), 0);
    ck_assert_ptr_null(t.first);
}
END_TEST

SUITE_MAIN("turns", each_tenant_in_its_order, a_long_entry_delays_others_by_a_turn,
           entries_leave_from_anywhere)
