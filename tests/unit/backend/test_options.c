#include <check.h>
#include <stdlib.h>

#include "daemon/backend/options.h"

START_TEST(reads_values)
{
    struct err e = ERR_INIT;
    const char *text = "memory=4M,speed=0.5,svm=off,platform=Portable Computing,memory=2K";
    char part[32] = "";
    uint64_t memory = 0;
    double speed = 0;
    bool svm = true;
    ck_assert_int_eq(options_check(text, "platform memory speed svm", &e), 0);
    ck_assert(option_text(text, "platform", part, sizeof part));
    ck_assert_str_eq(part, "Portable Computing");
    ck_assert_int_eq(option_u64(text, "memory", 1, UINT64_MAX, &memory, &e), 0);
    ck_assert_uint_eq(memory, 2048);
    ck_assert_int_eq(option_double(text, "speed", 0, 10, &speed, &e), 0);
    ck_assert_double_eq(speed, 0.5);
    ck_assert_int_eq(option_bool(text, "svm", &svm, &e), 0);
    ck_assert(!svm);
}
END_TEST

START_TEST(leaves_what_is_absent)
{
    uint64_t memory = 7;
    char part[8] = "as was";
    ck_assert_int_eq(option_u64("memor=3,emory=4", "memory", 1, 9, &memory, NULL), 0);
    ck_assert_uint_eq(memory, 7);
    ck_assert(!option_text("", "platform", part, sizeof part));
    ck_assert_str_eq(part, "as was");
}
END_TEST

START_TEST(cuts_long_text)
{
    char part[5];
    ck_assert(option_text("a=12345678", "a", part, sizeof part));
    ck_assert_str_eq(part, "1234");
}
END_TEST

START_TEST(refuses_other_forms)
{
    static const char *const bad[] = {"m=",   "m=x",  "m=-1", "m=1KB",
                                      "m= 1", "m=+1", "m=0x", "m=1,m=99999999999999999999999"};
    static const char *const unknown[] = {"x=1", "m", "=1", "m=1,,m=2", "m=1,M=2", "mm=1"};
    struct err e = ERR_INIT;
    uint64_t value = 7;
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(option_u64(bad[i], "m", 0, UINT64_MAX, &value, &e) != 0 || value == 7, "%s",
                      bad[i]);
    }
    for (unsigned i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        ck_assert_msg(options_check(unknown[i], "m", &e) == ERR_INVALID, "%s", unknown[i]);
    }
    ck_assert_int_eq(option_u64("m=10", "m", 0, 9, &value, &e), ERR_RANGE);
    ck_assert_int_eq(option_u64("m=17179869184G", "m", 0, UINT64_MAX, &value, &e), ERR_RANGE);
    ck_assert_uint_eq(value, 7);
    double d = 7;
    ck_assert_int_eq(option_double("m=nan", "m", 0, 9, &d, &e), ERR_RANGE);
    ck_assert_int_eq(option_double("m=fast", "m", 0, 9, &d, &e), ERR_INVALID);
    bool b = true;
    ck_assert_int_eq(option_bool("m=maybe", "m", &b, &e), ERR_INVALID);
    ck_assert(d > 6 && b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("options");
    TCase *t = tcase_create("options");
    tcase_add_test(t, reads_values);
    tcase_add_test(t, leaves_what_is_absent);
    tcase_add_test(t, cuts_long_text);
    tcase_add_test(t, refuses_other_forms);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
