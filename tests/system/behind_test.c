/* What a session goes on asking for behind a job of its own that takes long: thousands of answers,
 * on each way, and with a front that is started anew meanwhile. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/system/harness/harness.h"

struct behind {
    const char *lane;
    uint32_t flags;   /* of the long job */
    unsigned many;    /* requests behind it */
    const char *keep; /* bytes of answers that are kept */
};

/* More than the daemon keeps answers of, more than a client may have unanswered at once. */
static const struct behind cases[] = {
    {"nng", 0, 26000, "jobs.keep_results_bytes=1000000"},
    {"nng", GPUD_SUBMIT_HELD, 18000, "jobs.keep_results_bytes=1000000"},
    {"nng", GPUD_SUBMIT_HELD, 1000, "jobs.keep_results_bytes=10000"},
    {"ring", 0, 60000, "jobs.keep_results_bytes=1000000"},
};
#define CASES ((int)(sizeof cases / sizeof cases[0]))

static void ask(gpud_client *c, gpud_buffer b, unsigned count)
{
    gpud_buffer_desc desc = {.size = sizeof desc};
    for (unsigned i = 0; i < count; i++) {
        int rc = gpud_buffer_info(c, b, &desc);
        ck_assert_msg(rc == 0, "request %u of %u: %s", i, count, gpud_last_error()->text);
    }
}

START_TEST(a_long_job)
{
    const struct behind *k = &cases[_i];
    struct daemon d;
    (void)setenv("GPUD_LANE", k->lane, 1);
    gpud_client *c =
        daemon_begin(&d, "--backend", "sim", "--backend-options", "speed=0,script=launch:2=hang",
                     "--set", "jobs.time_limit_ms=1000000", "--set", k->keep, NULL);
    gpud_buffer x = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 4), GPUD_BUFFER_ZERO, NULL, &x));
    gpud_arg args[] = {gpud_f32(1), gpud_out(x)};
    gpud_submit_options o = {.size = sizeof o, .flags = k->flags};
    gpud_job *job = NULL;
    ck_gpud_ok(gpud_launch(c, kernel_find(c, "fill"), args, 2, NULL, &o, &job));
    ck_until(query_value(c, "status", NULL, "in_flight") == 1);
    ask(c, x, k->many);
    daemon_hand_over(&d);
    daemon_spawn(&d);
    ask(c, x, k->many / 4);
    ck_assert(!gpud_job_done(job));
    ck_assert_int_eq(kill(daemon_worker(&d, 0), SIGKILL), 0);
    ck_gpud_err(gpud_wait(job, PATIENCE), GPUD_ERR_WORKER_LOST);
    gpud_job_free(job);
    daemon_end(&d, c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("behind");
    suite_add_loop(suite, a_long_job, CASES);
    return system_main(suite);
}
