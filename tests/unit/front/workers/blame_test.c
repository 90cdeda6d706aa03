/* What the log says when a worker ends, and how soon the next one starts. */
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "daemon/front/sched/dispatch.h"
#include "daemon/front/workers/blame.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

static struct fake *k;

static struct job *launch(const char *label, const char *entry)
{
    struct job *j = fake_job(k, 0);
    (void)snprintf(j->label, sizeof j->label, "%s", label);
    fake_launches(k, j, entry);
    (void)fake_submit(k, j);
    return j;
}

START_TEST(the_culprit_is_named_with_all_that_is_known)
{
    char text[BLAME_MAX];
    k = fake_create();
    (void)snprintf(k->session->name, sizeof k->session->name, "camera");
    struct job *bad = launch("frame 7", "blur");
    struct job *good = launch("", "sum");
    fake_turn(k);
    blame_text(&k->device[0], text);
    ck_assert_str_eq(text, "with job 1 \"frame 7\" (kernel blur; session 1 \"camera\", tenant "
                           "uid:1000), job 2 (kernel sum; session 1 \"camera\", tenant uid:1000) "
                           "sent to it");
    job_set_state(good, JOB_RUNNING, fake_now());
    blame_text(&k->device[0], text);
    ck_assert_str_eq(text, "while job 2 (kernel sum; session 1 \"camera\", tenant uid:1000) ran");
    k->device[0].culprit = bad;
    blame_text(&k->device[0], text);
    ck_assert_str_eq(text, "while job 1 \"frame 7\" (kernel blur; session 1 \"camera\", tenant "
                           "uid:1000) ran");
    k->device[0].culprit = NULL;
    fake_done(k, bad, 0);
    fake_done(k, good, 0);
    blame_text(&k->device[0], text);
    ck_assert_str_eq(text, "without a job");
    fake_destroy(k);
}
END_TEST

START_TEST(many_jobs_are_counted_and_the_text_is_cut)
{
    char text[BLAME_MAX];
    k = fake_create();
    k->f.config.window = 8;
    struct job *j[5];
    for (unsigned i = 0; i < 5; i++) {
        j[i] = launch("l", "k");
    }
    fake_turn(k);
    blame_text(&k->device[0], text);
    ck_assert_msg(strstr(text, " and 2 more sent to it") != NULL, "%s", text);
    memset(k->session->name, 'n', sizeof k->session->name - 1);
    memset(j[0]->label, 'l', sizeof j[0]->label - 1);
    memset(j[1]->label, 'l', sizeof j[1]->label - 1);
    memset(j[2]->label, 'l', sizeof j[2]->label - 1);
    blame_text(&k->device[0], text);
    ck_assert_uint_eq(strlen(text), sizeof text - 1);
    for (unsigned i = 0; i < 5; i++) {
        fake_done(k, j[i], 0);
    }
    fake_destroy(k);
}
END_TEST

START_TEST(kernels_are_told_once_each)
{
    char text[64];
    k = fake_create();
    struct job *j = fake_job(k, 0);
    static const char *const entries[] = {"a", "b", "a", "c", "d"};
    blame_kernels(j, -1, text, sizeof text);
    ck_assert_str_eq(text, "");
    for (unsigned i = 0; i < 5; i++) {
        fake_launches(k, j, entries[i]);
        j->work.steps[i].step = i;
    }
    blame_kernels(j, -1, text, sizeof text);
    ck_assert_str_eq(text, "a, b, c, …");
    blame_kernels(j, 4, text, sizeof text);
    ck_assert_str_eq(text, "d");
    job_destroy(j);
    fake_destroy(k);
}
END_TEST

/* A kernel that ends its worker is convicted by name, and one overdue told by name. */
START_TEST(the_jobs_error_names_the_kernel)
{
    k = fake_create();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct job *slow = fake_job(k, 0);
    fake_launches(k, slow, "slow");
    uint64_t id = fake_submit(k, slow);
    fake_turn(k);
    k->device[0].culprit = slow;
    fake_lose(k, 0, true);
    ck_assert_str_eq(k->error[id].text, "kernel slow: ran longer than its time limit of 1.000 s");
    struct job *writer = fake_job(k, 0);
    fake_writes(writer, b, 0, 64);
    fake_launches(k, writer, "writes");
    id = fake_submit(k, writer);
    fake_turn(k);
    fake_lose(k, 0, false);
    ck_assert_int_eq(k->error[id].code, ERR_WORKER_LOST);
    ck_assert_msg(strncmp(k->error[id].text, "kernel writes: the worker ended while", 37) == 0,
                  "%s", k->error[id].text);
    fake_destroy(k);
}
END_TEST

START_TEST(pauses)
{
    struct device d = {.progress = WORKER_UP};
    for (unsigned i = 0; i < 100; i++) { /* it crashes after each job it did */
        d.progress = WORKER_PRODUCTIVE;
        device_ended(&d, false);
        ck_assert_uint_eq(device_pause_ns(&d), 0);
    }
    d.progress = WORKER_UP;
    static const uint64_t up[] = {0, 100, 200, 400, 500, 500};
    for (unsigned i = 0; i < 6; i++) { /* it comes up and does nothing */
        device_ended(&d, false);
        ck_assert_uint_eq(device_pause_ns(&d), up[i] * NS_PER_MS);
    }
    device_ended(&d, true);
    ck_assert_uint_eq(device_pause_ns(&d), 0);
    d.progress = WORKER_STARTED;
    uint64_t before = 0;
    for (unsigned i = 0; i < 20; i++) { /* it does not even come up */
        device_ended(&d, true);
        ck_assert_uint_ge(device_pause_ns(&d), before);
        before = device_pause_ns(&d);
    }
    ck_assert_uint_eq(before, 30 * NS_PER_S);
}
END_TEST

SUITE_MAIN("blame", the_culprit_is_named_with_all_that_is_known,
           many_jobs_are_counted_and_the_text_is_cut, kernels_are_told_once_each,
           the_jobs_error_names_the_kernel, pauses)
