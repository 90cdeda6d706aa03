/* Landlock in this process: each test is a process of its own. */
#include "daemon/confine/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/common/suite.h"

static char dir[] = "/tmp/gpud-test-landlock.XXXXXX";
static struct landlock l;
static struct err e = ERR_INIT;

static const char *at(const char *name)
{
    static char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static int opens(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600);
    int error = fd < 0 ? errno : 0;
    if (fd >= 0) {
        (void)close(fd);
    }
    return error;
}

/* False: this kernel has none. */
static bool begin(void)
{
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(mkdir(at("read"), 0700), 0);
    ck_assert_int_eq(mkdir(at("all"), 0700), 0);
    ck_assert_int_eq(opens(at("read/file"), O_WRONLY | O_CREAT), 0);
    ck_assert_int_eq(opens(at("secret"), O_WRONLY | O_CREAT), 0);
    ck_assert_int_eq(landlock_begin(&l, &e), 0);
    if (l.abi == 0) {
        (void)fprintf(stderr, "skipped: this kernel has no Landlock\n");
    }
    return l.abi > 0;
}

static void enforce(void)
{
    ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ck_assert_int_eq(landlock_enforce(&l), 0);
    ck_assert_int_lt(l.fd, 0);
}

/* Removed by a process that is not confined. */
static void in_child(void (*look)(void))
{
    int status = 0;
    const char *remove[] = {"rm", "-rf", dir, NULL};
    pid_t pid = fork();
    if (pid == 0) {
        enforce();
        look();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    pid = fork();
    if (pid == 0) {
        (void)execvp(remove[0], (char *const *)(uintptr_t)remove);
        _exit(1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
}

static void look_at_files(void)
{
    ck_assert_int_eq(opens(at("read/file"), O_RDONLY), 0);
    ck_assert_int_eq(opens(at("read/file"), O_WRONLY), EACCES);
    ck_assert_int_eq(opens(at("read/new"), O_WRONLY | O_CREAT), EACCES);
    ck_assert_int_eq(opens(at("all/new"), O_RDWR | O_CREAT), 0);
    ck_assert_int_eq(opens(at("secret"), O_RDONLY), EACCES);
    ck_assert_int_eq(opens("/proc/1/environ", O_RDONLY), EACCES);
}

START_TEST(what_no_rule_names_is_refused)
{
    if (!begin()) {
        return;
    }
    ck_assert_int_eq(landlock_allow(&l, at("read"), LANDLOCK_READ), 0);
    ck_assert_int_eq(landlock_allow(&l, at("all"), LANDLOCK_ALL), 0);
    ck_assert_int_eq(landlock_allow(&l, at("missing"), LANDLOCK_ALL), 0);
    in_child(look_at_files);
}
END_TEST

static void look_at_lists(void)
{
    ck_assert_int_eq(opens(at("read/file"), O_RDONLY), 0);
    ck_assert_int_eq(opens(at("secret"), O_RDONLY), EACCES);
}

/* No rule is made for a relative path, as any process may have chosen the working folder. */
START_TEST(a_list_of_paths)
{
    char list[256];
    if (!begin()) {
        return;
    }
    (void)snprintf(list, sizeof list, "::%s/missing:secret:%s/read/file", dir, dir);
    ck_assert_int_eq(chdir(dir), 0);
    ck_assert_int_eq(landlock_allow_list(&l, list, ":", false, LANDLOCK_READ), 0);
    ck_assert_int_eq(landlock_allow_list(&l, NULL, ":", false, LANDLOCK_READ), 0);
    in_child(look_at_lists);
}
END_TEST

static void look_at_programs(void)
{
    pid_t pid = fork();
    int status = 0;
    if (pid == 0) {
        (void)execl("/bin/true", "true", NULL);
        _exit(errno == EACCES ? 77 : 1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(WEXITSTATUS(status), 77);
    ck_assert_int_eq(opens("/usr/bin/env", O_RDONLY), 0);
    ck_assert_int_eq(opens("/etc/passwd", O_RDONLY), EACCES);
    ck_assert_int_eq(opens("/dev/null", O_RDWR), 0);
}

START_TEST(programs_are_read_and_not_started)
{
    if (!begin()) {
        return;
    }
    ck_assert_int_eq(landlock_allow_system(&l, "", LANDLOCK_READ), 0);
    in_child(look_at_programs);
}
END_TEST

SUITE_MAIN("landlock", what_no_rule_names_is_refused, a_list_of_paths,
           programs_are_read_and_not_started)
