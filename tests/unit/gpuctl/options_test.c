#include <stdio.h>
#include <string.h>

#include "gpuctl/ctl/options.h"
#include "tests/unit/common/suite.h"

enum { ARG = 1, DRY, CL };
static const struct option own[] = {
    {"arg", 'a', true, ARG}, {"dry-run", 'n', false, DRY}, {"-cl-", 0, true, CL}, {0}};

/* Reads all of a command line into one text: "id=value id …". */
static void read_all(const char *const *words, char *out, size_t size)
{
    char copy[16][64];
    char *argv[16];
    int argc = 0;
    for (; words[argc] != NULL; argc++) {
        snprintf(copy[argc], sizeof copy[argc], "%s", words[argc]);
        argv[argc] = copy[argc];
    }
    struct options o;
    struct ctl_err e = {0};
    options_init(&o, argc, argv);
    size_t used = 0;
    out[0] = '\0';
    for (;;) {
        const char *value = NULL;
        int id = options_next(&o, own, &value, &e);
        if (id == OPTION_END) {
            return;
        }
        used += (size_t)snprintf(out + used, size - used, "%d", id);
        if (value != NULL) {
            used += (size_t)snprintf(out + used, size - used, "=%s", value);
        }
        used += (size_t)snprintf(out + used, size - used, " ");
        if (id == OPTION_BAD) {
            ck_assert_int_eq(e.code, CTL_USAGE);
            return;
        }
    }
}

struct row {
    const char *words[8];
    const char *want;
};

START_TEST(options_stand_anywhere)
{
    static const struct row rows[] = {
        {{NULL}, ""},
        {{"a", "b", NULL}, "-1=a -1=b "},
        {{"--arg", "x", "w", NULL}, "1=x -1=w "},
        {{"w", "--arg=x=y", NULL}, "-1=w 1=x=y "},
        {{"--arg=", NULL}, "1= "},
        {{"-ax", "-a", "x", NULL}, "1=x 1=x "},
        {{"-nax", "-n", NULL}, "2 1=x 2 "},
        {{"--arg", "-5", NULL}, "1=-5 "},
        {{"--arg", "--dry-run", NULL}, "1=--dry-run "},
        {{"--dry-run", "--", "--arg", "-n", NULL}, "2 -1=--arg -1=-n "},
        {{"-", NULL}, "-1=- "},
        {{"", NULL}, "-1= "},
        {{"-cl-mad-enable", "-n", "-cl-", NULL}, "3=-cl-mad-enable 2 3=-cl- "},
        {{"--", "-cl-mad-enable", NULL}, "-1=-cl-mad-enable "},
        {{"-o", "json", "-u", "x", NULL}, "1002=json 1001=x "},
        {{"--output=csv", "--help", "-V", NULL}, "1002=csv 1003 1004 "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char got[256];
        read_all(rows[i].words, got, sizeof got);
        ck_assert_str_eq(got, rows[i].want);
    }
}
END_TEST

START_TEST(what_is_no_option_is_refused)
{
    static const struct row rows[] = {
        {{"--expr", "x", NULL}, "-2 "},
        {{"--arg", NULL}, "-2 "},
        {{"-a", NULL}, "-2 "},
        {{"-x", NULL}, "-2 "},
        {{"--dry-run=yes", NULL}, "-2 "},
        {{"--ar", "x", NULL}, "-2 "},
        {{"--=x", NULL}, "-2 "},
        {{"-nx", NULL}, "2 -2 "},
        {{"w", "--argument=1", NULL}, "-1=w -2 "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char got[256];
        read_all(rows[i].words, got, sizeof got);
        ck_assert_str_eq(got, rows[i].want);
    }
}
END_TEST

SUITE_MAIN("options", options_stand_anywhere, what_is_no_option_is_refused)
