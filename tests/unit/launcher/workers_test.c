/* Workers and prepared ones: real processes, the launcher's own functions, a clock of the test. */
#include "daemon/launcher/workers.h"

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "proto/codec.h"
#include "tests/unit/common/suite.h"

#define WAIT_MS 60000

static struct children children;
static struct workers w;
static struct identity self; /* no other user */

static void setup(void)
{
    children_init(&children);
    w = (struct workers){.children = &children, .slots = {.common = &self}};
    for (unsigned i = 0; i < SLOTS_MAX; i++) {
        w.slots.slot[i].lock_fd = -1;
    }
    w.program = open(GPUD_HELPER, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(w.program, 0);
}

static void reap(struct child *child)
{
    siginfo_t info;
    ck_assert_int_eq(waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOWAIT), 0);
    children_reap(&children);
}

static void teardown(void)
{
    for (unsigned i = 0; i < CHILDREN_MAX; i++) {
        struct child *child = &children.child[i];
        if (child->kind != CHILD_FREE && child->pid > 0) {
            child_signal(child, SIGKILL);
            reap(child);
        }
        if (child->kind != CHILD_FREE) {
            child_remove(child);
        }
    }
    (void)close(w.program);
}

/* As if the front had asked for it. */
static struct child *ask(uint64_t id, const char *mode, const char *device, bool prepare)
{
    struct err e = ERR_INIT;
    struct capbuf words;
    struct capbuf frame;
    struct proto_word word = {.text = bytes_str(mode)};
    struct frame_fds fds = {.count = 3};
    capbuf_init(&words, 1024);
    capbuf_init(&frame, 4096);
    ck_assert_int_eq(proto_list_add(&schema_word, &word, &words, NULL), 0);
    struct msg_l_worker msg = {.id = id,
                               .args = proto_list_of(&words, 1),
                               .device = bytes_str(device),
                               .prepare = prepare};
    ck_assert_int_eq(proto_encode(&schema_msg_l_worker, &msg, &frame, &e), 0);
    for (int i = 0; i < 3; i++) {
        fds.fd[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
        ck_assert_int_ge(fds.fd[i], 0);
    }
    struct child *child = children_add(&children, CHILD_WORKER, id);
    ck_assert_ptr_nonnull(child);
    int rc = workers_start(&w, child, &msg, capbuf_view(&frame), &fds, &e);
    ck_assert_msg(rc == 0 && child->code == 0, "%s%s", e.text, child->text);
    ck_assert_int_eq(fds.count, 0);
    ck_assert_uint_eq(child->owed, OWED_STARTED);
    child->owed = 0;
    capbuf_finish(&words);
    capbuf_finish(&frame);
    return child;
}

static struct child *prepared(void)
{
    struct child *found = NULL;
    for (unsigned i = 0; i < CHILDREN_MAX; i++) {
        bool is = children.child[i].kind == CHILD_PREPARED && !children.child[i].timed_out;
        ck_assert(!is || found == NULL);
        found = is ? &children.child[i] : found;
    }
    return found;
}

/* Some time after `child` started. */
static uint64_t later(const struct child *child, uint64_t ms)
{
    return ns_add(child->prepare_at, ms * NS_PER_MS);
}

/* Its worker is asked for and its successor is there; the pid of the latter. */
static pid_t pair(const char *mode, const char *device)
{
    struct child *child = ask(1, mode, device, true);
    ck_assert_ptr_null(prepared());
    ck_assert_uint_eq(workers_tend(&w, 0, true), child->prepare_at);
    ck_assert_ptr_null(prepared()); /* not yet */
    (void)workers_tend(&w, later(child, 0), false);
    ck_assert_ptr_null(prepared()); /* the launcher ends */
    ck_assert_uint_eq(workers_tend(&w, later(child, 0), true), NS_NEVER);
    struct child *next = prepared();
    ck_assert_ptr_nonnull(next);
    ck_assert_uint_eq(next->owed, 0); /* the front hears nothing of it */
    ck_assert_ptr_null(children_find(&children, 0));
    return next->pid;
}

static void kill_first(void)
{
    struct child *child = children_find(&children, 1);
    ck_assert_int_eq(kill(child->pid, SIGKILL), 0);
    reap(child);
    ck_assert_int_eq(child->pid, 0);
}

static void check_echo(const struct child *child)
{
    struct err e = ERR_INIT;
    char back[16];
    size_t size = 0;
    struct pollfd p = {.fd = child->fd[CHILD_CHANNEL], .events = POLLIN};
    ck_assert_int_eq(seqpacket_send(p.fd, "hello", 5, NULL, &e), 0);
    ck_assert_int_eq(poll(&p, 1, WAIT_MS), 1);
    ck_assert_int_eq(seqpacket_recv(p.fd, back, sizeof back, &size, NULL, &e), 0);
    ck_assert_uint_eq(size, 5);
}

START_TEST(the_next_worker_is_the_prepared_one)
{
    pid_t next = pair("echo", "device");
    kill_first();
    struct child *child = ask(2, "echo", "device", true);
    ck_assert_int_eq(child->pid, next);
    ck_assert_int_eq(child->number, next);
    ck_assert_ptr_null(prepared());
    ck_assert_ptr_eq(children_find(&children, 2), child);
    check_echo(child);
    (void)workers_tend(&w, later(child, 0), true);
    ck_assert_ptr_nonnull(prepared()); /* and the next one after it */
}
END_TEST

START_TEST(a_prepared_worker_has_only_what_it_is_given)
{
    (void)setenv("SECRET_OF_THE_LAUNCHER", "1", 1);
    (void)setenv("GPUD_LOG", "info", 1);
    struct child *first = ask(1, "check", "device", true);
    (void)workers_tend(&w, later(first, 0), true);
    reap(first);
    ck_assert_int_eq(first->status, 0);
    (void)unsetenv("SECRET_OF_THE_LAUNCHER");
    pid_t next = prepared()->pid;
    struct child *child = ask(2, "check", "device", true);
    ck_assert_int_eq(child->pid, next);
    reap(child);
    ck_assert_msg(WIFEXITED(child->status) && WEXITSTATUS(child->status) == 0, "check %d",
                  WEXITSTATUS(child->status));
}
END_TEST

/* The driver's choice of devices, limits, and the owner's folder are in the arguments. */
START_TEST(others_do_not_get_it)
{
    pid_t next = pair("echo", "device");
    struct child *child = ask(2, "echo", "another device", true);
    ck_assert_int_ne(child->pid, next);
    child = ask(3, "hang", "device", true);
    ck_assert_int_ne(child->pid, next);
    ck_assert_int_eq(prepared()->pid, next);
}
END_TEST

START_TEST(without_its_worker_it_ends)
{
    pid_t next = pair("echo", "device");
    struct child *child = prepared();
    (void)workers_tend(&w, 20 * NS_PER_S, true);
    (void)children_expire(&children, NS_NEVER - 1);
    ck_assert_ptr_eq(prepared(), child);
    kill_first();
    uint64_t now = 30 * NS_PER_S;
    (void)workers_tend(&w, now, true);
    uint64_t at = children_expire(&children, now);
    ck_assert_uint_gt(at, now);
    (void)workers_tend(&w, at - 1, true);
    (void)children_expire(&children, at - 1);
    ck_assert_ptr_eq(prepared(), child);
    (void)workers_tend(&w, at, true);
    (void)children_expire(&children, at);
    ck_assert_ptr_null(prepared());
    struct child *fresh = ask(2, "echo", "device", true); /* not one that is being ended */
    ck_assert_int_ne(fresh->pid, next);
    reap(child);
    (void)workers_tend(&w, at, true);
    ck_assert_int_eq(child->kind, CHILD_FREE);
}
END_TEST

/* Whatever its arguments: they may have changed since. */
START_TEST(a_drained_device_has_none)
{
    (void)pair("echo", "device");
    struct child *mine = prepared();
    struct child *other = ask(2, "echo", "another device", true);
    kill_first();
    mine->timed_out = true; /* hides it from prepared() */
    (void)workers_tend(&w, later(other, 0), true);
    struct child *another = prepared();
    ck_assert_ptr_nonnull(another);
    mine->timed_out = false;
    ck_assert_uint_eq(workers_vacate(&w, bytes_str("device")), 0);
    ck_assert_int_eq(mine->kind, CHILD_FREE);
    ck_assert_ptr_eq(prepared(), another);
    ck_assert_uint_eq(workers_vacate(&w, bytes_str("device")), 0);
    struct child *fresh = ask(3, "echo", "device", true);
    ck_assert_int_ne(fresh->pid, another->pid);
    check_echo(fresh);
}
END_TEST

START_TEST(a_worker_that_comes_back_keeps_it)
{
    (void)pair("echo", "device");
    kill_first();
    uint64_t now = 30 * NS_PER_S;
    (void)workers_tend(&w, now, true);
    ck_assert_uint_ne(prepared()->kill_at, NS_NEVER);
    struct child *child = prepared();
    (void)ask(2, "hang", "device", true);
    (void)workers_tend(&w, now, true);
    ck_assert_uint_ne(child->kill_at, NS_NEVER); /* that is another one */
    struct child *like = children_add(&children, CHILD_WORKER, 3);
    ck_assert_int_eq(child_keep(&like->frame, child->frame), 0);
    ck_assert_int_eq(child_keep(&like->device, child->device), 0);
    like->pid = children_find(&children, 2)->pid;
    (void)workers_tend(&w, now, true);
    ck_assert_uint_eq(child->kill_at, NS_NEVER);
    like->pid = 0;
}
END_TEST

START_TEST(the_settings_want_none)
{
    pid_t next = pair("echo", "device");
    struct child *child = ask(2, "echo", "device", false);
    ck_assert_int_ne(child->pid, next);
    ck_assert_uint_eq(child->prepare_at, NS_NEVER);
    ck_assert_ptr_null(prepared());
    ck_assert(!workers_yield(&w)); /* there is none */
}
END_TEST

START_TEST(a_lost_one_is_replaced_by_a_start)
{
    pid_t next = pair("echo", "device");
    struct child *lost = prepared();
    ck_assert_int_eq(kill(next, SIGKILL), 0);
    siginfo_t info; /* it has ended, and the launcher does not know yet */
    ck_assert_int_eq(waitid(P_PID, (id_t)next, &info, WEXITED | WNOWAIT), 0);
    struct child *child = ask(2, "echo", "device", true);
    ck_assert_int_ne(child->pid, next);
    check_echo(child);
    children_reap(&children);
    (void)workers_tend(&w, clock_now_ns(), false);
    ck_assert_int_eq(lost->kind, CHILD_FREE);
}
END_TEST

static void end_it(pid_t pid)
{
    siginfo_t info;
    ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    children_reap(&children);
}

START_TEST(a_killed_one_is_replaced)
{
    pid_t next = pair("echo", "device");
    const struct child *worker = children_find(&children, 1);
    ck_assert_int_eq(kill(next, SIGKILL), 0);
    end_it(next);
    uint64_t now = clock_now_ns();
    uint64_t at = workers_tend(&w, now, true);
    ck_assert_ptr_null(prepared());
    ck_assert_uint_gt(at, now); /* not at once: its end may come from what it does */
    ck_assert_uint_ne(at, NS_NEVER);
    ck_assert_uint_eq(at, worker->prepare_at);
    ck_assert_uint_eq(workers_tend(&w, at, true), NS_NEVER);
    ck_assert_ptr_nonnull(prepared());
    ck_assert_int_ne(prepared()->pid, next);
}
END_TEST

/* As where the back end gains nothing. */
START_TEST(one_that_ends_by_itself_is_not_replaced)
{
    (void)pair("echo", "device");
    struct child *child = prepared();
    (void)close(child->fd[CHILD_INPUT]);
    child->fd[CHILD_INPUT] = -1;
    end_it(child->pid);
    ck_assert_int_le(child->pid, 0);
    ck_assert_uint_eq(workers_tend(&w, clock_now_ns(), true), NS_NEVER);
    ck_assert_ptr_null(prepared());
    ck_assert_int_eq(child->kind, CHILD_FREE);
}
END_TEST

START_TEST(it_stays_when_the_front_ends)
{
    pid_t next = pair("echo", "device");
    children_orphan(&children);
    kill_first();
    struct child *child = ask(2, "echo", "device", true);
    ck_assert_int_eq(child->pid, next);
    check_echo(child);
}
END_TEST

START_TEST(users_of_a_pool_are_for_workers_first)
{
    w.slots.users = 4;
    struct child *first = ask(1, "echo", "device", true);
    (void)workers_tend(&w, later(first, 0), true);
    struct child *waits = prepared();
    ck_assert_ptr_nonnull(waits);
    (void)ask(2, "echo", "second", true);
    struct child *third = ask(3, "echo", "third", true);
    (void)workers_tend(&w, later(third, 0), true);
    ck_assert_ptr_eq(prepared(), waits);  /* no other: half of the users have a process */
    (void)ask(4, "echo", "fourth", true); /* gets its user */
    ck_assert_ptr_null(prepared());
    ck_assert_int_eq(waits->kind, CHILD_FREE);
}
END_TEST

SUITE_MAIN_IN("launcher workers", setup, teardown, the_next_worker_is_the_prepared_one,
              a_prepared_worker_has_only_what_it_is_given, others_do_not_get_it,
              without_its_worker_it_ends, a_drained_device_has_none,
              a_worker_that_comes_back_keeps_it, the_settings_want_none,
              a_lost_one_is_replaced_by_a_start, a_killed_one_is_replaced,
              one_that_ends_by_itself_is_not_replaced, it_stays_when_the_front_ends,
              users_of_a_pool_are_for_workers_first)
