/* The runtime folder and its lock. */
#include "common/runtime.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/common/suite.h"

static char base[64];
static char dir[96];
static char lock[128];

static void begin(void)
{
    (void)strcpy(base, "/tmp/gpud-runtime-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(base));
    (void)snprintf(dir, sizeof dir, "%s/run", base);
    (void)snprintf(lock, sizeof lock, "%s/lock", dir);
}

static void end(void)
{
    (void)unlink(lock);
    (void)unlink(dir);
    (void)rmdir(dir);
    ck_assert_int_eq(rmdir(base), 0);
}

static int take(int *ret_fd, struct err *e)
{
    *e = ERR_INIT;
    return runtime_lock(dir, "lock", "gpud", ret_fd, e);
}

START_TEST(one_at_a_time)
{
    struct err e;
    struct stat st;
    int first = -1;
    int second = -5;
    begin();
    ck_assert_int_eq(take(&first, &e), 0);
    ck_assert_int_eq(stat(dir, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777u & ~0750u, 0);
    ck_assert_int_eq(take(&second, &e), ERR_EXISTS);
    ck_assert_int_eq(second, -5);
    ck_assert_ptr_nonnull(strstr(e.text, "another gpud serves"));
    ck_assert_ptr_nonnull(strstr(e.text, "--runtime-dir"));
    ck_assert_int_eq(close(first), 0);
    ck_assert_int_eq(take(&second, &e), 0);
    ck_assert_int_eq(close(second), 0);
    end();
}
END_TEST

/* As the other threads of a process whose first one is gone. */
START_TEST(one_that_ends_is_waited_for)
{
    struct err e;
    int first = -1;
    int second = -1;
    begin();
    ck_assert_int_eq(take(&first, &e), 0);
    pid_t child = fork();
    if (child == 0) {
        (void)usleep(100000);
        _exit(0);
    }
    ck_assert_int_gt(child, 0);
    ck_assert_int_eq(close(first), 0);
    ck_assert_int_eq(take(&second, &e), 0);
    ck_assert_int_eq(close(second), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    end();
}
END_TEST

START_TEST(a_folder_that_others_write_into_is_refused)
{
    static const mode_t modes[] = {0770, 0702, 0777, 01777};
    struct err e;
    int fd = -1;
    begin();
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        ck_assert_int_eq(chmod(dir, modes[i]), 0);
        ck_assert_int_eq(take(&fd, &e), ERR_PERMISSION);
        ck_assert_ptr_nonnull(strstr(e.text, "chmod go-w"));
    }
    ck_assert_int_ne(access(lock, F_OK), 0);
    end();
}
END_TEST

START_TEST(a_folder_of_another_user_is_refused)
{
    struct err e;
    int fd = -1;
    if (geteuid() != 0) {
        return; /* only root can give one away */
    }
    begin();
    ck_assert_int_eq(mkdir(dir, 0755), 0);
    ck_assert_int_eq(chown(dir, 65533, 65533), 0);
    ck_assert_int_eq(take(&fd, &e), ERR_PERMISSION);
    ck_assert_ptr_nonnull(strstr(e.text, "belongs to user 65533"));
    end();
}
END_TEST

/* FAULT other: a runtime folder that belongs to another user or is writable by others; a link in
 *   place of the lock; a launcher of another user
 * required: refused, with a hint at the remedy
 * defence: `common/runtime.c`; `front/workers/launcher_link.c`: greet
 * also: `common_runtime_test`; `front_launcher_link_test`:
 *   a_launcher_of_another_user_is_refused
 * mutants: runtime-owner, runtime-mode, runtime-link, launcher-uid */
START_TEST(links_are_not_followed)
{
    struct err e;
    char other[128];
    int fd = -1;
    begin();
    (void)snprintf(other, sizeof other, "%s/other", base);
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    ck_assert_int_eq(symlink(other, lock), 0);
    ck_assert_int_eq(take(&fd, &e), ERR_IO);
    ck_assert_int_ne(access(other, F_OK), 0);
    ck_assert_int_eq(unlink(lock), 0);
    ck_assert_int_eq(rename(dir, other), 0);
    ck_assert_int_eq(symlink(other, dir), 0);
    ck_assert_int_eq(take(&fd, &e), ERR_IO);
    ck_assert_int_eq(rmdir(other), 0);
    end();
}
END_TEST

SUITE_MAIN("runtime", one_at_a_time, one_that_ends_is_waited_for,
           a_folder_that_others_write_into_is_refused, a_folder_of_another_user_is_refused,
           links_are_not_followed)
