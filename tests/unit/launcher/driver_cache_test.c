/* PoCL's kernels in our folder: the ones not used for long go, whole programs at a time. */
#include "daemon/launcher/driver_cache.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/common/suite.h"
#include "tests/unit/front/scratch.h"

#define PROGRAM_BYTES 40960u

static char dir[SCRATCH_PATH];

static const char *at(const char *name)
{
    static char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void folder(const char *name)
{
    ck_assert_int_eq(mkdir(at(name), 0700), 0);
}

static void file(const char *name, unsigned size, time_t used)
{
    char *data = calloc(1, size);
    ck_assert_ptr_nonnull(data);
    scratch_write(at(name), data, size);
    free(data);
    const struct timespec times[2] = {{.tv_sec = used}, {.tv_sec = used}};
    ck_assert_int_eq(utimensat(AT_FDCWD, at(name), times, 0), 0);
}

static bool there(const char *name)
{
    struct stat st;
    return lstat(at(name), &st) == 0;
}

/* Three programs; AA/one was used last although it was made first. */
static void fill(void)
{
    scratch_make(dir);
    folder(".cache");
    folder(".cache/pocl");
    folder(".cache/pocl/kcache");
    folder(".cache/pocl/kcache/AA");
    folder(".cache/pocl/kcache/BB");
    folder(".cache/pocl/kcache/AA/one");
    folder(".cache/pocl/kcache/AA/one/kernel");
    folder(".cache/pocl/kcache/AA/two");
    folder(".cache/pocl/kcache/BB/three");
    file(".cache/pocl/kcache/AA/one/program.bc", 10, 1000);
    file(".cache/pocl/kcache/AA/one/last_accessed", 1, 9000);
    file(".cache/pocl/kcache/AA/one/kernel/k.so", PROGRAM_BYTES, 1000);
    file(".cache/pocl/kcache/AA/two/k.so", PROGRAM_BYTES, 2000);
    file(".cache/pocl/kcache/BB/three/k.so", PROGRAM_BYTES, 3000);
    file(".cache/pocl/kcache/tempfile_x", 5, 100);
    file("kernel.bin", PROGRAM_BYTES, 1); /* ours: another cache's business */
}

START_TEST(within_the_bound_nothing_goes)
{
    fill();
    ck_assert_uint_eq(driver_cache_trim(dir, UINT64_MAX), 0);
    ck_assert(there(".cache/pocl/kcache/tempfile_x"));
    ck_assert(there(".cache/pocl/kcache/AA/two/k.so"));
    scratch_remove(dir);
}
END_TEST

START_TEST(the_longest_unused_go_first)
{
    fill();
    uint64_t gone = driver_cache_trim(dir, 2 * PROGRAM_BYTES + 20000);
    ck_assert_uint_ge(gone, PROGRAM_BYTES);
    ck_assert_uint_lt(gone, 2 * PROGRAM_BYTES);
    ck_assert(!there(".cache/pocl/kcache/tempfile_x"));
    ck_assert(!there(".cache/pocl/kcache/AA/two"));
    ck_assert(there(".cache/pocl/kcache/AA/one/kernel/k.so"));
    ck_assert(there(".cache/pocl/kcache/BB/three/k.so"));
    (void)driver_cache_trim(dir, 0);
    ck_assert(!there(".cache/pocl/kcache/AA/one"));
    ck_assert(!there(".cache/pocl/kcache/BB/three"));
    ck_assert(there(".cache/pocl/kcache"));
    ck_assert(there("kernel.bin"));
    scratch_remove(dir);
}
END_TEST

/* A link is removed, not followed. */
START_TEST(links_lead_nowhere)
{
    fill();
    folder("elsewhere");
    file("elsewhere/keep", 10, 1);
    ck_assert_int_eq(symlink("../../../../elsewhere", at(".cache/pocl/kcache/AA/link")), 0);
    (void)driver_cache_trim(dir, 0);
    ck_assert(!there(".cache/pocl/kcache/AA/link"));
    ck_assert(there("elsewhere/keep"));
    scratch_remove(dir);
}
END_TEST

START_TEST(where_there_is_none)
{
    scratch_make(dir);
    ck_assert_uint_eq(driver_cache_trim(dir, 0), 0);
    scratch_remove(dir);
}
END_TEST

SUITE_MAIN("driver cache", within_the_bound_nothing_goes, the_longest_unused_go_first,
           links_lead_nowhere, where_there_is_none)
