#include "common/stamp.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/common/suite.h"

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(another_file_has_another_stamp)
{
    char path[] = "/tmp/gpud-stamp-XXXXXX";
    char stamp[PATH_MAX + 64];
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    write_file(path, "one");
    ck_assert_str_eq(strchr(stamp_make(path, stamp, sizeof stamp), ' ') + 1, path);
    ck_assert(!stamp_changed(stamp));
    write_file(path, "three");
    ck_assert(stamp_changed(stamp));
    ck_assert_int_eq(unlink(path), 0);
    ck_assert(!stamp_changed(stamp));
}
END_TEST

START_TEST(what_has_no_stamp_never_changes)
{
    char stamp[16];
    ck_assert_str_eq(stamp_make("/nonexistent", stamp, sizeof stamp), "");
    ck_assert_str_eq(stamp_make("relative", stamp, sizeof stamp), "");
    ck_assert_str_eq(stamp_make(NULL, stamp, sizeof stamp), "");
    ck_assert_str_eq(stamp_make("/proc/self/exe", stamp, sizeof stamp), ""); /* does not fit */
    ck_assert(!stamp_changed(""));
    ck_assert(!stamp_changed("nonsense"));
}
END_TEST

SUITE_MAIN("stamp", another_file_has_another_stamp, what_has_no_stamp_never_changes)
