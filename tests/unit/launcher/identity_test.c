/* Becoming the workers' user, and signals to its processes. */
#include "daemon/launcher/identity.h"

#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/launcher/spawn.h"
#include "tests/unit/common/suite.h"

#define STRANGER "65531:65532"
#define OWN      65533u

static struct identity stranger(void)
{
    struct identity id;
    struct err e = ERR_INIT;
    ck_assert_int_eq(identity_find(STRANGER, &id, &e), 0);
    ck_assert_uint_eq(id.uid, 65531);
    ck_assert_uint_eq(id.gid, 65532);
    return id;
}

START_TEST(whom_the_daemon_trusts_is_no_stranger)
{
    static const char *const users[] = {"root", "0:1", "1:0", "0:0"};
    struct identity id;
    struct err e = ERR_INIT;
    for (size_t i = 0; i < sizeof users / sizeof users[0]; i++) {
        ck_assert_int_eq(identity_find(users[i], &id, &e), ERR_INVALID);
    }
    ck_assert_int_eq(identity_find("gpud-there-is-no-such-user", &id, &e), ERR_NOT_FOUND);
    ck_assert_int_eq(identity_find("-1:5", &id, &e), ERR_NOT_FOUND);
    ck_assert_int_eq(identity_find("4294967295:5", &id, &e), ERR_NOT_FOUND);
}
END_TEST

START_TEST(without_the_right_it_is_refused_at_the_start)
{
    struct identity id;
    struct err e = ERR_INIT;
    if (geteuid() == 0) {
        ck_assert_int_eq(setresuid(OWN, OWN, OWN), 0);
    }
    ck_assert_int_eq(identity_find(STRANGER, &id, &e), ERR_PERMISSION);
    ck_assert_ptr_nonnull(strstr(e.text, "CAP_SETUID"));
}
END_TEST

/* In the child: nothing of the former identity is left. */
static int become_and_look(const struct identity *id)
{
    uid_t uid[3];
    gid_t gid[3];
    if (!identity_become(id)) {
        return 10;
    }
    if (getresuid(&uid[0], &uid[1], &uid[2]) != 0 || getresgid(&gid[0], &gid[1], &gid[2]) != 0) {
        return 11;
    }
    for (int i = 0; i < 3; i++) {
        if (uid[i] != id->uid || gid[i] != id->gid) {
            return 12;
        }
    }
    if (getgroups(0, NULL) != id->group_count || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) {
        return 13;
    }
    return setresuid(OWN, OWN, OWN) == 0 || setresuid(0, 0, 0) == 0 ? 14 : 0;
}

START_TEST(nothing_is_left_of_what_it_was)
{
    if (geteuid() != 0) {
        return;
    }
    struct identity id = stranger();
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(become_and_look(&id));
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}
END_TEST

/* As in the installed unit: not root, and with two capabilities. */
static void be_launcher(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    const unsigned both = 1u << CAP_SETUID | 1u << CAP_SETGID;
    const struct __user_cap_data_struct data[2] = {{.effective = both, .permitted = both}};
    ck_assert_int_eq(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0), 0);
    ck_assert_int_eq(setresuid(OWN, OWN, OWN), 0);
    ck_assert_int_eq((int)syscall(SYS_capset, &head, data), 0);
}

START_TEST(its_processes_are_ended_without_a_right_to_end_others)
{
    if (geteuid() != 0) {
        return;
    }
    struct identity id = stranger();
    int go[2];
    char byte;
    int status = 0;
    ck_assert_int_eq(pipe(go), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (!identity_become(&id) || write(go[1], "1", 1) != 1) {
            _exit(1);
        }
        for (;;) {
            (void)pause();
        }
    }
    ck_assert_int_eq(read(go[0], &byte, 1), 1);
    be_launcher();
    ck_assert_int_ne(kill(pid, 0), 0);
    ck_assert_int_eq(identity_kill(&id, pid, SIGKILL), 0);
    ck_assert_uint_eq(geteuid(), OWN);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}
END_TEST

START_TEST(why_a_child_could_not_become_it_is_said)
{
    const struct identity none = {.uid = 65531, .gid = 65532, .group_count = INT_MAX};
    char *argv[] = {NULL};
    const struct spawn s = {.program = STDIN_FILENO,
                            .name = "child",
                            .argv = argv,
                            .identity = &none,
                            .journal = "/there/is/no/journal"};
    struct err e = ERR_INIT;
    pid_t pid = 0;
    const char *why = strerror(geteuid() == 0 ? EINVAL : EPERM);
    ck_assert_int_eq(spawn_process(&s, &pid, &e), ERR_IO);
    ck_assert_msg(strstr(e.text, why) != NULL, "%s", e.text);
}
END_TEST

SUITE_MAIN("identity", whom_the_daemon_trusts_is_no_stranger,
           without_the_right_it_is_refused_at_the_start, nothing_is_left_of_what_it_was,
           its_processes_are_ended_without_a_right_to_end_others,
           why_a_child_could_not_become_it_is_said)
