/* How a worker ended, and what ended it. The worker is a process of the test's. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/seqpacket.h"
#include "daemon/front/clients/processes.h"
#include "daemon/front/workers/worker.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

#define WORKER 7u

static struct fake *k;
static uv_loop_t loop;
static pid_t worker;
static bool lost;

static int on_kill(struct launcher_link *l, uint64_t id, int signal, struct err *e)
{
    (void)l;
    (void)e;
    ck_assert_uint_eq(id, WORKER);
    ck_assert_int_eq(kill(worker, signal), 0); /* it is there, and be it as a zombie */
    uv_stop(&loop);
    return 0;
}

static void on_lost(struct front *f, struct device *d, bool external, const char *why)
{
    (void)f;
    (void)d;
    (void)why;
    ck_assert(external);
    lost = true;
}

static void on_changed(struct front *f, struct device *d)
{
    (void)f;
    (void)d;
}

/* One that does nothing until it is killed. Its other end of the channel. */
static int begin(void)
{
    struct err e = ERR_INIT;
    int fd[2];
    k = fake_create();
    k->f.io.kill = on_kill;
    lost = false;
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    k->f.loop = &loop;
    k->f.hooks.worker_lost = on_lost;
    k->f.hooks.device_changed = on_changed;
    worker = fork();
    ck_assert_int_ge(worker, 0);
    if (worker == 0) {
        for (;;) {
            (void)pause();
        }
    }
    ck_assert_int_eq(seqpacket_pair(fd, &e), 0);
    k->device[0].link = NULL;
    k->device[0].worker = WORKER;
    ck_assert(worker_started(&k->f, WORKER, worker, fd[0], 0, ""));
    return fd[1];
}

/* Its channel closes, the front ends it, and hears of its end. */
static void end(int far_end)
{
    int status = 0;
    (void)close(far_end);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(waitpid(worker, &status, 0), worker);
    ck_assert(worker_ended(&k->f, WORKER, status));
    ck_assert(lost);
    ck_assert(process_ends(worker)); /* there is none any more */
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
}

START_TEST(one_that_was_killed)
{
    siginfo_t info;
    int far_end = begin();
    ck_assert_int_eq(kill(worker, SIGKILL), 0);
    ck_assert_int_eq(waitid(P_PID, (id_t)worker, &info, WEXITED | WNOWAIT), 0);
    ck_assert(process_ends(worker));
    end(far_end);
    ck_assert_msg(strstr(k->device[0].fault, "not by gpud") != NULL, "%s", k->device[0].fault);
    fake_destroy(k);
}
END_TEST

START_TEST(one_that_hangs_up_and_stays)
{
    int far_end = begin();
    ck_assert(!process_ends(worker));
    end(far_end);
    ck_assert_str_eq(k->device[0].fault, "its worker was ended: its channel closed");
    fake_destroy(k);
}
END_TEST

/* Its staging memory serves the device's next worker. */
START_TEST(one_whose_record_cannot_be_taken)
{
    struct err e = ERR_INIT;
    struct memfd small;
    int channel[2];
    k = fake_create();
    k->f.io.kill = on_kill;
    k->f.hooks.worker_lost = on_lost;
    k->f.hooks.device_changed = on_changed;
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    k->f.loop = &loop;
    worker = fork();
    ck_assert_int_ge(worker, 0);
    if (worker == 0) {
        (void)pause();
        _exit(0);
    }
    struct device *d = &k->device[0];
    d->link = NULL;
    d->state = DEVICE_STARTING; /* as in a front that has just begun */
    worker_forget(d);
    ck_assert_int_eq(seqpacket_pair(channel, &e), 0);
    ck_assert_int_eq(memfd_create_sealed("record", 64, &small, &e), 0);
    struct memfd input;
    struct memfd output;
    ck_assert_int_eq(memfd_create_sealed("input", FAKE_STAGING, &input, &e), 0);
    ck_assert_int_eq(memfd_create_sealed("output", FAKE_STAGING, &output, &e), 0);
    const struct launcher_inventory inventory = {
        .id = WORKER,
        .pid = worker,
        .channel = channel[0],
        .fd = {dup(input.fd), dup(output.fd), dup(small.fd)}};
    worker_adopt(&k->f, d, &inventory);
    ck_assert_uint_eq(range_largest_free(&d->input_range), FAKE_STAGING);
    ck_assert_uint_eq(range_largest_free(&d->output_range), FAKE_STAGING);
    memfd_finish(&input);
    memfd_finish(&output);
    memfd_finish(&small);
    end(channel[1]);
    fake_destroy(k);
}
END_TEST

SUITE_MAIN("worker_end", one_that_was_killed, one_that_hangs_up_and_stays,
           one_whose_record_cannot_be_taken)
