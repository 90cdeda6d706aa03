/* What journalctl is asked for the log. */
#include "gpuctl/ctl/logs.h"

#include <stdio.h>
#include <string.h>

#include <gpud/gpud.h>

#include "common/log.h"
#include "tests/unit/common/suite.h"

#define UNITS "journalctl -ugpud.service -ugpud-launcher.service -ugpud-nvidia.service "

/* The arguments with blanks between them. */
static const char *asked(const struct logs_request *r)
{
    static char text[2048];
    struct logs_arguments a;
    struct ctl_err e = {0};
    size_t used = 0;
    ck_assert_int_eq(logs_arguments(r, &a, &e), 0);
    for (unsigned i = 0; i < a.count; i++) {
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s%s", i > 0 ? " " : "", a.argv[i]);
    }
    ck_assert_ptr_null(a.argv[a.count]);
    return text;
}

START_TEST(all_of_it)
{
    ck_assert_str_eq(asked(&(struct logs_request){.format = "short", .level = -1}),
                     UNITS "--output=short");
}
END_TEST

START_TEST(of_one_job_tenant_and_device)
{
    const struct logs_request r = {.format = "json",
                                   .follow = true,
                                   .explain = true,
                                   .since = "-1h",
                                   .level = LOG_LEVEL_WARN,
                                   .limited = true,
                                   .lines = 20,
                                   .tenant = "a b",
                                   .by_device = true,
                                   .by_job = true,
                                   .job = UINT64_MAX};
    ck_assert_str_eq(asked(&r),
                     UNITS "--output=json --follow --catalog --since=-1h --lines=20 --priority=4 "
                           "GPUD_TENANT=a b GPUD_DEVICE=0 GPUD_JOB=18446744073709551615");
}
END_TEST

/* A value never becomes an option of journalctl. */
START_TEST(values_are_no_options)
{
    struct logs_arguments a;
    struct ctl_err e = {0};
    const struct logs_request r = {
        .format = "short", .level = -1, .since = "--rotate", .tenant = "--vacuum-size=1"};
    ck_assert_int_eq(logs_arguments(&r, &a, &e), 0);
    ck_assert_str_eq(a.argv[a.count - 2], "--since=--rotate");
    ck_assert_str_eq(a.argv[a.count - 1], "GPUD_TENANT=--vacuum-size=1");
}
END_TEST

START_TEST(long_values_are_refused)
{
    static char big[600];
    struct logs_arguments a;
    struct ctl_err e = {0};
    memset(big, 'x', sizeof big - 1);
    const struct logs_request r = {.format = "short", .level = -1, .tenant = big};
    ck_assert_int_eq(logs_arguments(&r, &a, &e), GPUD_ERR_INVALID);
}
END_TEST

SUITE_MAIN("logs", all_of_it, of_one_job_tenant_and_device, values_are_no_options,
           long_values_are_refused)
