#include <check.h>
#include <string.h>

#include "daemon/pool/records.h"

struct thing {
    uint32_t link;
    uint32_t keeps;
};

static struct records records;

static struct thing *thing(uint32_t i)
{
    return records_at(&records, i);
}

START_TEST(all_can_be_taken_and_no_more)
{
    ck_assert_int_eq(records_init(&records, sizeof(struct thing), 3, NULL), 0);
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t index = records_take(&records);
        ck_assert_uint_eq(index, i);
        ck_assert_uint_eq(thing(index)->keeps, 0);
        *thing(index) = (struct thing){i, i + 10};
    }
    ck_assert_uint_eq(records_take(&records), RECORD_NONE);
    ck_assert_uint_eq(records.live, 3);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(thing(i)->link, i); /* no two share a byte */
    }
    records_finish(&records);
}
END_TEST

START_TEST(what_was_given_back_comes_again_with_what_it_held)
{
    ck_assert_int_eq(records_init(&records, sizeof(struct thing), 4, NULL), 0);
    for (uint32_t i = 0; i < 4; i++) {
        *thing(records_take(&records)) = (struct thing){0, i + 10};
    }
    records_give(&records, 1);
    records_give(&records, 3);
    ck_assert_uint_eq(records.live, 2);
    ck_assert_uint_eq(records_take(&records), 3);
    ck_assert_uint_eq(records_take(&records), 1);
    ck_assert_uint_eq(thing(1)->keeps, 11);
    ck_assert_uint_eq(thing(3)->keeps, 13);
    ck_assert_uint_eq(records_take(&records), RECORD_NONE);
    records_finish(&records);
}
END_TEST

START_TEST(no_address_space_is_an_error)
{
    struct err e = ERR_INIT;
    ck_assert_int_eq(records_init(&records, (size_t)1 << 40, 1u << 20, &e), ERR_NOMEM);
    records_finish(&(struct records){0}); /* a zeroed table is allowed */
}
END_TEST

int main(void)
{
    Suite *s = suite_create("records");
    TCase *t = tcase_create("records");
    tcase_add_test(t, all_can_be_taken_and_no_more);
    tcase_add_test(t, what_was_given_back_comes_again_with_what_it_held);
    tcase_add_test(t, no_address_space_is_an_error);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
