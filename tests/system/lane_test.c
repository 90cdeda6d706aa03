/* Jobs over the ring lane, through the real daemon: threads and loops, messages too long for a
 * ring, numbers of running jobs, fork, other transports. */
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/system/harness/harness.h"

#define THREADS 4
#define JOBS    200

static struct daemon d;

static gpud_client *begin(const char *sim)
{
    ck_assert_int_eq(setenv("GPUD_LANE", "ring", 1), 0);
    return daemon_begin(&d, "--backend", "sim", "--backend-options", sim, NULL);
}

static gpud_program *null_program(gpud_client *c)
{
    gpud_program *p = NULL;
    ck_gpud_ok(gpud_program_create(c, "null", &p));
    ck_gpud_ok(gpud_program_seal(p));
    return p;
}

/* ---- without memory -------------------------------------------------------------------------- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);

static _Thread_local unsigned fail_at; /* 0: none */

static bool fails(void)
{
    return fail_at > 0 && --fail_at == 0;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

/* What the daemon has open. */
static unsigned daemon_descriptors(void)
{
    char path[64];
    unsigned count = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)d.pid);
    DIR *dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    while (readdir(dir) != NULL) {
        count++;
    }
    (void)closedir(dir);
    return count;
}

/* FAULT 23: host allocation fails
 * required: typed error, nothing leaked; without memory on one side, both sides give up the
 *   lane
 * defence: every allocation on a job's way; `front/clients/lane.c`: take_one, send_or_wait
 * also: `front_alloc_test`; `test_client_alloc`; `front_lane_test`:
 *   without_memory_the_lane_ends, a_lane_that_was_given_up_ends; `test_system_lane`:
 *   an_answer_without_memory
 * mutants: nomem-op, nomem-answer */
/* Each allocation of a call fails once: it says so or does without, and what follows is served, by
 * the ring or without one. A lane that was given up is given up by the daemon, too. */
START_TEST(each_allocation_fails)
{
    gpud_client *c = begin("speed=0");
    unsigned before = daemon_descriptors();
    bool failed = true;
    unsigned n = 0;
    while (failed) {
        gpud_options o = {.size = sizeof o, .connect_timeout_ns = PATIENCE};
        gpud_client *other = NULL;
        ck_gpud_ok(gpud_open(d.url, &o, &other));
        gpud_program *p = null_program(other);
        ck_gpud_ok(gpud_run(other, p, NULL, 0, NULL, NULL));
        fail_at = ++n;
        int rc = gpud_run(other, p, NULL, 0, NULL, NULL);
        failed = fail_at == 0;
        fail_at = 0;
        ck_assert(rc == 0 || rc == GPUD_ERR_NOMEM);
        ck_gpud_ok(gpud_run(other, p, NULL, 0, NULL, NULL));
        gpud_program_free(p);
        gpud_close(other);
    }
    ck_assert_uint_gt(n, 2);
    ck_until(daemon_descriptors() <= before);
    daemon_end(&d, c);
}
END_TEST

/* The answer finds no memory: the call goes on over the socket, and both sides close the lane. */
START_TEST(an_answer_without_memory)
{
    gpud_client *c = begin("speed=0");
    gpud_program *p = null_program(c);
    ck_gpud_ok(gpud_run(c, p, NULL, 0, NULL, NULL));
    unsigned before = daemon_descriptors();
    unsigned n = 1;
    bool lived;
    do { /* until an allocation is that of an answer, which the call lives through */
        fail_at = n++;
        int rc = gpud_run(c, p, NULL, 0, NULL, NULL);
        ck_assert_msg(fail_at == 0, "no allocation ended the lane");
        ck_assert(rc == 0 || rc == GPUD_ERR_NOMEM);
        lived = rc == 0;
    } while (!lived);
    ck_until(daemon_descriptors() < before);
    ck_gpud_ok(gpud_run(c, p, NULL, 0, NULL, NULL));
    gpud_program_free(p);
    daemon_end(&d, c);
}
END_TEST

/* ---- threads and loops ---------------------------------------------------------------------- */

struct shared {
    gpud_client *c;
    gpud_program *p;
    unsigned ended; /* in the loop's thread */
};

static void *run_some(void *arg)
{
    const struct shared *s = arg;
    for (unsigned i = 0; i < JOBS; i++) {
        if (gpud_run(s->c, s->p, NULL, 0, NULL, NULL) != 0) {
            return "run";
        }
    }
    return NULL;
}

static void *submit_some(void *arg)
{
    const struct shared *s = arg;
    gpud_submit_options o = {.size = sizeof o, .flags = GPUD_SUBMIT_BLOCK};
    gpud_job *job[16] = {NULL};
    for (unsigned i = 0; i < JOBS; i++) {
        gpud_job **at = &job[i % 16];
        if (*at != NULL && gpud_wait(*at, GPUD_FOREVER) != 0) {
            return "wait";
        }
        gpud_job_free(*at);
        if (gpud_submit(s->c, s->p, NULL, 0, &o, at) != 0) {
            return "submit";
        }
    }
    for (unsigned i = 0; i < 16; i++) {
        if (gpud_wait(job[i], GPUD_FOREVER) != 0) {
            return "wait";
        }
        gpud_job_free(job[i]);
    }
    return NULL;
}

START_TEST(threads)
{
    struct shared s = {.c = begin("speed=0")};
    pthread_t thread[2 * THREADS];
    s.p = null_program(s.c);
    for (unsigned i = 0; i < 2 * THREADS; i++) {
        ck_assert_int_eq(pthread_create(&thread[i], NULL, i % 2 ? run_some : submit_some, &s), 0);
    }
    for (unsigned i = 0; i < 2 * THREADS; i++) {
        void *failed = NULL;
        ck_assert_int_eq(pthread_join(thread[i], &failed), 0);
        ck_assert_msg(failed == NULL, "%s", (const char *)failed);
    }
    ck_assert_uint_eq(query_value(s.c, "status", NULL, "done"), 2 * THREADS * JOBS + 1);
    gpud_program_free(s.p);
    daemon_end(&d, s.c);
}
END_TEST

static void on_done(gpud_job *job, int code, void *user)
{
    struct shared *s = user;
    s->ended += code == 0;
    gpud_job_free(job);
}

/* The client polls only when the descriptor is readable; no answer may be left behind. */
START_TEST(loop)
{
    struct shared s = {.c = begin("speed=0")};
    gpud_submit_options o = {.size = sizeof o, .done = on_done, .user = &s};
    s.p = null_program(s.c);
    for (unsigned i = 0; i < JOBS; i++) {
        struct pollfd p = {.fd = gpud_fd(s.c), .events = POLLIN};
        gpud_job *job = NULL;
        ck_gpud_ok(gpud_submit(s.c, s.p, NULL, 0, &o, &job));
        while (s.ended <= i) {
            ck_assert_int_eq(poll(&p, 1, (int)(PATIENCE / MS)), 1);
            ck_gpud_ok(gpud_dispatch(s.c));
        }
    }
    gpud_program_free(s.p);
    daemon_end(&d, s.c);
}
END_TEST

/* ---- messages that do not fit
 * ----------------------------------------------------------------- */

/* Requests and answers of all lengths, in order: long ones go over the socket. */
START_TEST(long_ones_and_short_ones)
{
    static float in[3][8192];
    static float out[3][8192];
    static const uint64_t length[] = {1, 8192, 64};
    gpud_client *c = begin("speed=0");
    gpud_kernel axpy = kernel_find(c, "axpy");
    gpud_submit_options o = {.size = sizeof o, .flags = GPUD_SUBMIT_BLOCK};
    for (unsigned round = 0; round < 20; round++) {
        gpud_job *job[3];
        for (unsigned k = 0; k < 3; k++) {
            for (uint64_t i = 0; i < length[k]; i++) {
                in[k][i] = (float)(i + round);
                out[k][i] = 1;
            }
            gpud_arg args[] = {gpud_f32(2), gpud_host_in(in[k], length[k], GPUD_F32),
                               gpud_host_inout(out[k], length[k], GPUD_F32)};
            ck_gpud_ok(gpud_launch(c, axpy, args, 3, NULL, &o, &job[k]));
        }
        for (unsigned k = 0; k < 3; k++) {
            ck_gpud_ok(gpud_wait(job[k], PATIENCE));
            gpud_job_free(job[k]);
            for (uint64_t i = 0; i < length[k]; i++) {
                ck_assert(out[k][i] == 2 * (float)(i + round) + 1);
            }
        }
    }
    daemon_end(&d, c);
}
END_TEST

/* A short request with a long answer: it is asked for over the socket, and runs once. */
START_TEST(long_answers)
{
    gpud_client *c = begin("speed=0");
    gpud_buffer b = {0};
    gpud_program *p = NULL;
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_U8, 100000), GPUD_BUFFER_ZERO, NULL, &b));
    ck_gpud_ok(gpud_program_create(c, "reader", &p));
    ck_gpud_ok(gpud_program_read(p, gpud_in(b)));
    ck_gpud_ok(gpud_program_seal(p));
    uint64_t before = query_value(c, "status", NULL, "done");
    for (unsigned i = 0; i < 10; i++) {
        gpud_job *job = NULL;
        const void *data = NULL;
        size_t bytes = 0;
        ck_gpud_ok(gpud_run(c, p, NULL, 0, NULL, &job));
        ck_gpud_ok(gpud_job_output(job, 0, 0, &data, &bytes));
        ck_assert_uint_eq(bytes, 100000);
        gpud_job_free(job);
    }
    ck_assert_uint_eq(query_value(c, "status", NULL, "done"), before + 10);
    gpud_program_free(p);
    daemon_end(&d, c);
}
END_TEST

/* More than a ring holds: the rest goes over the socket, and all of it is done. */
START_TEST(more_than_the_ring_holds)
{
    static gpud_job *job[250];
    gpud_client *c = begin("speed=0");
    gpud_submit_options o = {.size = sizeof o, .label = "a label that makes it longer"};
    gpud_program *p = null_program(c);
    for (unsigned i = 0; i < 250; i++) {
        ck_gpud_ok(gpud_submit(c, p, NULL, 0, &o, &job[i]));
    }
    for (unsigned i = 0; i < 250; i++) {
        ck_gpud_ok(gpud_wait(job[i], PATIENCE));
        gpud_job_free(job[i]);
    }
    gpud_program_free(p);
    daemon_end(&d, c);
}
END_TEST

/* The answers are not read meanwhile, so the rings are full in both directions, and requests over
 * the socket must not run too far ahead of those in the rings. */
START_TEST(many_frees_in_a_row)
{
    enum { MANY = 3000 };
    static gpud_buffer made[MANY];
    gpud_client *c = begin("speed=0");
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < MANY; i++) {
            ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_U8, 64), 0, NULL, &made[i]));
        }
        for (unsigned i = 0; i < MANY; i++) {
            ck_gpud_ok(gpud_buffer_free(c, made[i]));
        }
    }
    ck_gpud_ok(gpud_flush(c, PATIENCE));
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_U8, 64), 0, NULL, &made[0]));
    daemon_end(&d, c);
}
END_TEST

/* ---- jobs under way ------------------------------------------------------------------------- */

/* Its id is asked for; the queued one is cancelled, the one that runs is not. */
START_TEST(cancel)
{
    gpud_client *c = begin("items=1000");
    gpud_kernel fill = kernel_find(c, "fill");
    gpud_buffer b = {0};
    gpud_job *job[2];
    char why[256];
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 4000), GPUD_BUFFER_ZERO, NULL, &b));
    for (unsigned i = 0; i < 2; i++) {
        gpud_arg args[] = {gpud_f32(1), gpud_out(b)};
        ck_gpud_ok(gpud_launch(c, fill, args, 2, NULL, NULL, &job[i]));
    }
    ck_until(gpud_dispatch(c) == 0 && gpud_job_id(job[0]) != 0);
    ck_gpud_ok(gpud_explain(c, gpud_job_id(job[0]), why, sizeof why));
    ck_gpud_ok(gpud_cancel(job[1]));
    ck_gpud_ok(gpud_wait(job[0], PATIENCE));
    int code = gpud_wait(job[1], PATIENCE); /* the worker may have had it already */
    ck_assert_uint_ne(gpud_job_id(job[1]), 0);
    ck_assert(code == 0 || code == GPUD_ERR_CANCELLED);
    gpud_job_free(job[0]);
    gpud_job_free(job[1]);
    daemon_end(&d, c);
}
END_TEST

/* One that waits for the very job that is to be cancelled does not keep that from it. */
START_TEST(cancel_before_one_that_waits_for_room)
{
    ck_assert_int_eq(setenv("GPUD_LANE", "ring", 1), 0);
    gpud_client *c =
        daemon_begin(&d, "--backend", "sim", "--backend-options", "speed=0,script=launch:3=hang",
                     "--set", "jobs.queue_max=1", "--set", "jobs.time_limit_ms=1000000", NULL);
    gpud_program *p = null_program(c);
    gpud_kernel fill = kernel_find(c, "fill");
    gpud_submit_options o = {.size = sizeof o, .flags = GPUD_SUBMIT_BLOCK};
    gpud_buffer b = {0};
    gpud_job *job[2];
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 4), GPUD_BUFFER_ZERO, NULL, &b));
    gpud_arg args[] = {gpud_f32(1), gpud_out(b)};
    ck_gpud_ok(gpud_call(c, fill, args, 2, NULL));
    ck_gpud_ok(gpud_launch(c, fill, args, 2, NULL, NULL, &job[0]));
    ck_until(query_value(c, "status", NULL, "in_flight") == 1);
    ck_gpud_ok(gpud_submit(c, p, NULL, 0, &o, &job[1]));
    ck_gpud_ok(gpud_cancel(job[0]));
    ck_assert_int_eq(kill(daemon_worker(&d, 0), SIGKILL), 0); /* it would not end by itself */
    int code = gpud_wait(job[0], PATIENCE);
    ck_assert(code == GPUD_ERR_WORKER_LOST || code == GPUD_ERR_CANCELLED); /* it had not begun */
    ck_gpud_ok(gpud_wait(job[1], PATIENCE));
    gpud_job_free(job[0]);
    gpud_job_free(job[1]);
    gpud_program_free(p);
    daemon_end(&d, c);
}
END_TEST

/* A job that waits for room, and one behind it that was not admitted yet, are cancelled at once;
 * later requests continue. */
START_TEST(cancel_what_waits_for_room)
{
    ck_assert_int_eq(setenv("GPUD_LANE", _i == 0 ? "ring" : "nng", 1), 0);
    gpud_client *c =
        daemon_begin(&d, "--backend", "sim", "--backend-options", "speed=0,script=launch:3=hang",
                     "--set", "jobs.queue_max=1", "--set", "jobs.time_limit_ms=1000000", NULL);
    gpud_program *p = null_program(c);
    gpud_kernel fill = kernel_find(c, "fill");
    gpud_submit_options o = {.size = sizeof o, .flags = GPUD_SUBMIT_BLOCK};
    gpud_buffer b = {0};
    gpud_job *job[3];
    gpud_buffer_desc desc = {.size = sizeof desc};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 4), GPUD_BUFFER_ZERO, NULL, &b));
    gpud_arg args[] = {gpud_f32(1), gpud_out(b)};
    ck_gpud_ok(gpud_call(c, fill, args, 2, NULL));
    ck_gpud_ok(gpud_launch(c, fill, args, 2, NULL, NULL, &job[0]));
    ck_until(query_value(c, "status", NULL, "in_flight") == 1);
    ck_gpud_ok(gpud_submit(c, p, NULL, 0, &o, &job[1]));
    ck_gpud_ok(gpud_submit(c, p, NULL, 0, &o, &job[2]));
    for (unsigned i = 2; i > 0; i--) {
        ck_gpud_ok(gpud_cancel(job[i]));
        ck_gpud_err(gpud_wait(job[i], PATIENCE), GPUD_ERR_CANCELLED);
    }
    ck_gpud_ok(gpud_buffer_info(c, b, &desc));
    ck_assert(!gpud_job_done(job[0]));
    ck_assert_int_eq(kill(daemon_worker(&d, 0), SIGKILL), 0);
    ck_gpud_err(gpud_wait(job[0], PATIENCE), GPUD_ERR_WORKER_LOST);
    for (unsigned i = 0; i < 3; i++) {
        gpud_job_free(job[i]);
    }
    gpud_program_free(p);
    daemon_end(&d, c);
}
END_TEST

/* ---- processes ------------------------------------------------------------------------------ */

static int child_work(void *data)
{
    gpud_client *c = data;
    int code = gpud_dispatch(c);
    gpud_close(c);
    return code == GPUD_ERR_FORKED ? 0 : 1;
}

/* What a child gives up is the parent's still. */
START_TEST(forked)
{
    gpud_client *c = begin("speed=0");
    gpud_program *p = null_program(c);
    for (unsigned i = 0; i < 5; i++) {
        ck_gpud_ok(gpud_run(c, p, NULL, 0, NULL, NULL));
        ck_assert_int_eq(process_wait(process_start(child_work, c)), 0);
        ck_gpud_ok(gpud_run(c, p, NULL, 0, NULL, NULL));
    }
    gpud_program_free(p);
    daemon_end(&d, c);
}
END_TEST

/* Sessions that came and went leave nothing behind in the daemon. */
START_TEST(many_come_and_go)
{
    gpud_client *c = begin("speed=0");
    for (unsigned i = 0; i < 50; i++) {
        gpud_client *other = client_open(d.url);
        gpud_program *p = null_program(other);
        ck_gpud_ok(gpud_run(other, p, NULL, 0, NULL, NULL));
        gpud_program_free(p);
        gpud_close(other);
    }
    ck_until(query_value(c, "status", NULL, "sessions") == 1);
    daemon_end(&d, c);
}
END_TEST

START_TEST(other_settings)
{
    gpud_client *c = begin("speed=0");
    gpud_client *other = NULL;
    gpud_options o = {.size = sizeof o, .connect_timeout_ns = PATIENCE};
    ck_assert_int_eq(setenv("GPUD_LANE", "nng", 1), 0);
    ck_gpud_ok(gpud_open(d.url, &o, &other));
    gpud_program *p = null_program(other);
    ck_gpud_ok(gpud_run(other, p, NULL, 0, NULL, NULL));
    gpud_program_free(p);
    gpud_close(other);
    ck_assert_int_eq(setenv("GPUD_LANE", "pigeon", 1), 0);
    ck_gpud_err(gpud_open(d.url, &o, &other), GPUD_ERR_INVALID);
    daemon_end(&d, c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lane");
    suite_add(suite, each_allocation_fails);
    suite_add(suite, an_answer_without_memory);
    suite_add(suite, threads);
    suite_add(suite, loop);
    suite_add(suite, long_ones_and_short_ones);
    suite_add(suite, long_answers);
    suite_add(suite, more_than_the_ring_holds);
    suite_add(suite, many_frees_in_a_row);
    suite_add(suite, cancel);
    suite_add(suite, cancel_before_one_that_waits_for_room);
    suite_add_loop(suite, cancel_what_waits_for_room, 2);
    suite_add(suite, forked);
    suite_add(suite, many_come_and_go);
    suite_add(suite, other_settings);
    return system_main(suite);
}
