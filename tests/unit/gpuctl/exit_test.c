#include <stdio.h>
#include <string.h>

#include "gpuctl/ctl/ctl.h"
#include "tests/unit/common/suite.h"

struct row {
    int code;
    int exit;
};

START_TEST(codes_have_their_exit_codes)
{
    static const struct row rows[] = {
        {0, 0},
        {CTL_USAGE, 2},
        {GPUD_ERR_CONNECT, 3},
        {GPUD_ERR_VERSION, 3},
        {GPUD_ERR_PERMISSION, 4},
        {GPUD_ERR_BUSY, 75},
        {GPUD_ERR_DRAINING, 75},
        {GPUD_ERR_TIMEOUT, 124},
        {GPUD_ERR_TIME_LIMIT, 124},
        {GPUD_ERR_DEADLINE, 124},
    };
    for (int code = -45; code < 0; code++) {
        int want = 1;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            want = rows[i].code == code ? rows[i].exit : want;
        }
        ck_assert_int_eq(ctl_exit_code(code), want);
    }
    ck_assert_int_eq(ctl_exit_code(0), 0);
    ck_assert_int_eq(ctl_exit_code(CTL_USAGE), 2);
}
END_TEST

START_TEST(errors_grow_to_the_left_and_never_overflow)
{
    struct ctl_err e;
    ck_assert_int_eq(ctl_err_set(&e, GPUD_ERR_RANGE, "%d", 7), GPUD_ERR_RANGE);
    ck_assert_int_eq(ctl_err_wrap(&e, "a %s", "b"), GPUD_ERR_RANGE);
    ck_assert_str_eq(e.text, "a b: 7");
    for (int i = 0; i < 1000; i++) {
        ctl_err_wrap(&e, "level %d", i);
    }
    ck_assert_uint_eq(strlen(e.text), sizeof e.text - 1);
    ck_assert_int_eq(strncmp(e.text, "level 999: level 998: ", 22), 0);
}
END_TEST

START_TEST(commands_are_found_by_one_or_two_words)
{
    ck_assert_str_eq(command_find("ping", NULL)->name, "ping");
    ck_assert_str_eq(command_find("job", "show")->name, "job show");
    ck_assert_str_eq(command_find("pool", NULL)->name, "pool");
    ck_assert_str_eq(command_find("pool", "trim")->name, "pool trim");
    ck_assert_ptr_null(command_find("job", NULL));
    ck_assert_ptr_null(command_find("job", "shown"));
    ck_assert_ptr_null(command_find("jo", NULL));
    ck_assert_ptr_null(command_find("ping", "pong"));
    ck_assert_ptr_null(command_find("", NULL));
    ck_assert(command_is_group("job"));
    ck_assert(command_is_group("pool"));
    ck_assert(!command_is_group("jobs"));
    ck_assert(!command_is_group("ping"));
}
END_TEST

START_TEST(every_command_is_complete_and_found)
{
    for (const struct command *c = commands; c->name != NULL; c++) {
        char first[32];
        snprintf(first, sizeof first, "%s", c->name);
        char *space = strchr(first, ' ');
        if (space != NULL) {
            *space = '\0';
        }
        ck_assert_ptr_eq(command_find(first, space != NULL ? space + 1 : NULL), c);
        ck_assert_ptr_nonnull(c->run);
        ck_assert_uint_gt(strlen(c->summary), 0);
        ck_assert_ptr_nonnull(c->help);
    }
}
END_TEST

SUITE_MAIN("exit", codes_have_their_exit_codes, errors_grow_to_the_left_and_never_overflow,
           commands_are_found_by_one_or_two_words, every_command_is_complete_and_found)
