/* Memory shared with the daemon: what uses it, how much of it there is, what is left of it after a
 * restart. Claims are answered here (linked with --wrap). */
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/src/objects/arena.h"
#include "client/src/wire/shm.h"
#include "common/clock.h"
#include "tests/unit/client/fixture.h"

#define MIB           (1u << 20)
#define STAGED_MAX    (64u * MIB)    /* of one client */
#define LONG_NS       (9 * NS_PER_S) /* below what a claim has on its own */
#define NO_TIME_NS    NS_PER_MS
#define LARGE         (256u * 1024u) /* elements: 1 MiB */
#define CROWD         8u
#define CROWD_ELEMENT (5u * MIB / 2u) /* elements: 10 MiB */

/* What becomes of claims. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool wait;            /* until this is taken back */
    int code;             /* they fail with */
    unsigned failing;     /* the next ones fail with it; UINT_MAX: all */
    unsigned waiting;     /* there now */
    unsigned ended;       /* threads of the test that need none any more */
    uint64_t patience_ns; /* of the last one */
} claims = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

int __wrap_shm_claim(const char *path, struct bytes nonce, const struct frame_fds *given, int want,
                     uint64_t deadline_ns, struct frame_fds *ret_fds, struct err *e);

int __wrap_shm_claim(const char *path, struct bytes nonce, const struct frame_fds *given, int want,
                     uint64_t deadline_ns, struct frame_fds *ret_fds, struct err *e)
{
    (void)nonce;
    (void)given;
    (void)pthread_mutex_lock(&claims.lock);
    claims.patience_ns = deadline_ns - clock_now_ns();
    claims.waiting++;
    (void)pthread_cond_broadcast(&claims.changed);
    while (claims.wait) {
        (void)pthread_cond_wait(&claims.changed, &claims.lock);
    }
    claims.waiting--;
    int code = claims.failing > 0 ? claims.code : 0;
    claims.failing -= claims.failing > 0 && claims.failing < UINT_MAX;
    (void)pthread_mutex_unlock(&claims.lock);
    if (code != 0) {
        return err_set(e, code, "no claim at %s", path);
    }
    ret_fds->count = want;
    for (int i = 0; i < want; i++) {
        ret_fds->fd[i] = memfd_create("arena", MFD_CLOEXEC); /* grows where its pages are taken */
    }
    return 0;
}

static void claims_set(bool wait, int code)
{
    (void)pthread_mutex_lock(&claims.lock);
    claims.wait = wait;
    claims.code = code;
    claims.failing = UINT_MAX;
    (void)pthread_cond_broadcast(&claims.changed);
    (void)pthread_mutex_unlock(&claims.lock);
}

static void begin(void)
{
    fake = fake_start(NULL);
    fake_share(fake);
    claims_set(false, 0);
    OK(gpud_open(fake_url(fake), NULL, &client));
}

/* Bytes of the arenas of a kind that the daemon has, or that it has not. */
static uint64_t arena_bytes(enum arena_kind kind, bool known)
{
    uint64_t bytes = 0;
    (void)pthread_mutex_lock(&client->lock);
    for (unsigned i = 0; i < client->arena_count; i++) {
        const struct arena *a = client->arenas[i];
        bytes += a->kind == kind && (a->object.daemon != 0) == known ? a->bytes : 0;
    }
    (void)pthread_mutex_unlock(&client->lock);
    return bytes;
}

static void *host_memory(size_t bytes)
{
    void *memory = NULL;
    OK(gpud_host_alloc(client, bytes, &memory));
    return memory;
}

/* Until the daemon has heard of all that was given up. */
static void await_arenas(uint64_t count)
{
    while (fake_arenas(fake) != count) {
        OK(gpud_ping(client, NULL));
    }
}

/* For the next calls; the library gives each client one for its whole life. */
static void timeout(uint64_t ns)
{
    client->timeout_ns = ns;
}

/* ---- who uses it ---------------------------------------------------------------------------- */

/* A program that reads a buffer into memory, which no argument of its jobs names. */
START_TEST(jobs_use_what_their_program_names)
{
    gpud_program *p = NULL;
    gpud_job *job = NULL;
    gpud_buffer b = make(16);
    float *named = host_memory(64);
    float *beside = host_memory(64);
    OK(gpud_program_create(client, "p", &p));
    ck_assert_int_eq(gpud_program_read_to(p, gpud_host_out(named, 16, GPUD_F32), gpud_in(b)), 0);
    OK(gpud_program_seal(p));
    fake_mode(fake, FAKE_HOLD);
    OK(gpud_submit(client, p, NULL, 0, NULL, &job));
    fake_wait_held(fake, 1);
    gpud_program_free(p);
    timeout(NO_TIME_NS);
    FAILS(gpud_host_free(client, named), GPUD_ERR_TIMEOUT);
    OK(gpud_host_free(client, beside));
    timeout(NS_NEVER);
    fake_release(fake, false);
    OK(gpud_host_free(client, named));
    ck_assert(gpud_job_done(job));
    gpud_job_free(job);
}
END_TEST

/* Memory that is not shared gets a job's output at the job's end. */
START_TEST(jobs_use_memory_that_is_not_shared)
{
    claims_set(false, ERR_UNSUPPORTED);
    gpud_job *job = NULL;
    gpud_kernel k = find();
    float *output = host_memory(8 * MIB); /* more than a client keeps: it is unmapped */
    float *beside = host_memory(64);
    gpud_arg args[] = {gpud_f32(1), gpud_host_inout(output, 16, GPUD_F32)};
    memset(output, 0, 16 * sizeof *output);
    fake_mode(fake, FAKE_HOLD);
    OK(gpud_launch(client, k, args, 2, NULL, NULL, &job));
    fake_wait_held(fake, 1);
    timeout(NO_TIME_NS);
    FAILS(gpud_host_free(client, output), GPUD_ERR_TIMEOUT);
    OK(gpud_host_free(client, beside));
    timeout(NS_NEVER);
    fake_release(fake, false);
    OK(gpud_host_free(client, output));
    ck_assert(gpud_job_done(job));
    gpud_job_free(job);
}
END_TEST

/* ---- who may still use it ------------------------------------------------------------------- */

#define PIECE 16u /* elements */

/* Two pieces of one chunk, and a job that writes the first one. */
struct writer {
    float *named;
    float *beside;
    gpud_job *job;
};

static void writer_begin(struct writer *w)
{
    gpud_kernel k = find();
    w->named = host_memory(PIECE * sizeof(float));
    w->beside = host_memory(PIECE * sizeof(float));
    ck_assert_ptr_eq(arena_at(client, w->named, 1), arena_at(client, w->beside, 1));
    gpud_arg args[] = {gpud_f32(1), gpud_host_inout(w->named, PIECE, GPUD_F32)};
    gpud_submit_options o = {.size = sizeof o, .flags = GPUD_SUBMIT_HELD};
    memset(w->named, 0, PIECE * sizeof(float));
    OK(gpud_launch(client, k, args, 2, NULL, &o, &w->job));
}

/* Frees the memory that the job named, and allocates as much. */
static float *writer_replace(struct writer *w)
{
    OK(gpud_host_free(client, w->named));
    return host_memory(PIECE * sizeof(float));
}

/* The chunk's memory is not used again: it goes when its last piece is freed. */
static void writer_check_closed(struct writer *w)
{
    uint64_t arenas = fake_arenas(fake);
    const float *next = writer_replace(w);
    ck_assert_ptr_ne(arena_at(client, next, 1), arena_at(client, w->beside, 1));
    ck_assert_uint_eq(fake_arenas(fake), arenas + 1);
    OK(gpud_host_free(client, w->beside));
    await_arenas(arenas);
    ck_assert_ptr_nonnull(arena_at(client, next, 1));
    gpud_job_free(w->job);
}

/* The library ends the jobs of a connection that does not come back. The daemon has one of them. */
START_TEST(memory_of_a_job_without_an_answer_is_not_used_again)
{
    struct writer w;
    fake_mode(fake, FAKE_HOLD);
    writer_begin(&w);
    fake_wait_held(fake, 1);
    client->reconnect_ns = NO_TIME_NS;
    fake_mode(fake, FAKE_REFUSE);
    fake_drop(fake);
    FAILS(gpud_wait(w.job, NS_NEVER), GPUD_ERR_CONNECT);
    client->reconnect_ns = NS_NEVER;
    fake_mode(fake, FAKE_SERVE);
    writer_check_closed(&w);
}
END_TEST

/* The daemon's threads may take the request that fills a gap behind a later one. */
static void wait_for_fillers(void)
{
    uint64_t until = ns_add(clock_now_ns(), 10 * NS_PER_S);
    OK(gpud_ping(client, NULL));
    while (fake_gaps(fake) > 0 && clock_now_ns() < until) {
        (void)poll(NULL, 0, 1);
    }
    ck_assert_uint_eq(fake_gaps(fake), 0);
}

/* The session that got the job first is over. Another one runs it again. */
START_TEST(memory_of_a_job_of_two_sessions_is_not_used_again)
{
    struct writer w;
    fake_mode(fake, FAKE_HOLD);
    writer_begin(&w);
    fake_wait_held(fake, 1);
    fake_mode(fake, FAKE_SERVE);
    fake_restart(fake, false);
    OK(gpud_wait(w.job, NS_NEVER));
    writer_check_closed(&w);
}
END_TEST

/* FAULT other: the daemon was away for longer than sessions live, and a job is unanswered
 * required: a job that adds in place to memory of the client is not sent again: CLOSED,
 *   `effects = maybe`
 * defence: `client/src/session/session.c`: outlived; `client/src/objects/job.c`: jobs_meet
 * mutants: job-forgotten-again */
/* The daemon has ended the session, and with it what it knew of the job: the job may have run. One
 * that writes nothing that it reads goes to the next session. */
START_TEST(a_job_that_adds_in_place_is_not_sent_to_a_session_that_came_too_late)
{
    struct writer w;
    gpud_job *reader = NULL;
    gpud_kernel k = find();
    fake_linger(fake, 0);
    fake_drop(fake);
    OK(gpud_ping(client, NULL));
    fake_mode(fake, FAKE_HOLD);
    writer_begin(&w);
    gpud_submit_options o = {.size = sizeof o, .flags = GPUD_SUBMIT_HELD};
    gpud_arg args[] = {gpud_f32(1), gpud_host_in(w.beside, PIECE, GPUD_F32)};
    OK(gpud_launch(client, k, args, 2, NULL, &o, &reader));
    fake_wait_held(fake, 2);
    fake_mode(fake, FAKE_SERVE);
    fake_restart(fake, false);
    FAILS(gpud_wait(w.job, NS_NEVER), GPUD_ERR_CLOSED);
    gpud_error e = {.size = sizeof e};
    OK(gpud_job_error(w.job, &e));
    ck_assert_int_eq(e.effects, GPUD_EFFECTS_MAYBE);
    OK(gpud_wait(reader, NS_NEVER));
    gpud_job_free(reader);
    wait_for_fillers();
    writer_check_closed(&w);
}
END_TEST

enum { SAME_LAUNCHER, OTHER_LAUNCHER, OTHER_LAUNCHER_RESUMED, UP_FOR_LONG, MEETINGS };

/* FAULT 22: launcher, workers and front end at once, or a client that was stopped meanwhile finds a
 *   daemon that has run for longer than sessions live
 * required: a job that adds in place to memory of the client is not sent again: CLOSED,
 *   `effects = maybe`. While the launcher lives it is, since its record tells the next front
 * defence: `client/src/objects/job.c`: jobs_meet; `daemon/launcher/front.c`: send_hello
 * mutants: job-lineage, job-up */
START_TEST(a_job_that_adds_in_place_goes_to_daemons_that_know_whether_it_ran)
{
    struct writer w;
    fake_lineage(fake, 5);
    fake_drop(fake);
    OK(gpud_ping(client, NULL));
    fake_mode(fake, FAKE_HOLD);
    writer_begin(&w);
    fake_wait_held(fake, 1);
    fake_mode(fake, FAKE_SERVE);
    bool other = _i == OTHER_LAUNCHER || _i == OTHER_LAUNCHER_RESUMED;
    fake_lineage(fake, other ? 6 : 5);
    fake_up(fake, _i == UP_FOR_LONG ? 10 * NS_PER_S : NS_PER_S);
    fake_restart(fake, _i == OTHER_LAUNCHER_RESUMED);
    if (_i == SAME_LAUNCHER) {
        OK(gpud_wait(w.job, NS_NEVER));
    } else {
        FAILS(gpud_wait(w.job, NS_NEVER), GPUD_ERR_CLOSED);
        gpud_error e = {.size = sizeof e};
        OK(gpud_job_error(w.job, &e));
        ck_assert_int_eq(e.effects, GPUD_EFFECTS_MAYBE);
    }
    wait_for_fillers();
    writer_check_closed(&w);
}
END_TEST

/* The daemon says so before the device is done with the job, or its worker may be about to end. */
START_TEST(memory_of_a_job_that_runs_on_is_not_used_again)
{
    static const int codes[] = {ERR_TIME_LIMIT, ERR_DEADLINE, ERR_WORKER_LOST};
    struct writer w;
    fake_fail(fake, codes[_i], true);
    writer_begin(&w);
    FAILS(gpud_wait(w.job, NS_NEVER), codes[_i]);
    writer_check_closed(&w);
}
END_TEST

/* No device had the job, or the device is done with it. */
START_TEST(memory_of_other_jobs_is_used_again)
{
    static const int codes[] = {ERR_DEADLINE, ERR_CANCELLED, ERR_KERNEL_FAULT};
    struct writer w;
    fake_fail(fake, codes[_i], codes[_i] != ERR_DEADLINE);
    writer_begin(&w);
    FAILS(gpud_wait(w.job, NS_NEVER), codes[_i]);
    ck_assert_ptr_eq(writer_replace(&w), w.named);
    gpud_job_free(w.job);
}
END_TEST

/* ---- how much there is ---------------------------------------------------------------------- */

static void *one_of_the_crowd(void *data)
{
    const gpud_kernel *k = data;
    uint32_t *x = calloc(CROWD_ELEMENT, sizeof *x);
    gpud_arg args[] = {gpud_f32(1), gpud_host(x, CROWD_ELEMENT, GPUD_U32)};
    int rc = x != NULL ? gpud_call(client, *k, args, 2, NULL) : GPUD_ERR_NOMEM;
    free(x);
    (void)pthread_mutex_lock(&claims.lock);
    claims.ended++;
    (void)pthread_cond_broadcast(&claims.changed);
    (void)pthread_mutex_unlock(&claims.lock);
    return (void *)(intptr_t)rc;
}

/* All ask before one has been given any: those that are too many go without. */
START_TEST(staging_memory_of_many_threads_has_a_limit)
{
    pthread_t thread[CROWD];
    gpud_kernel k = find();
    claims_set(true, 0);
    for (unsigned i = 0; i < CROWD; i++) {
        ck_assert_int_eq(pthread_create(&thread[i], NULL, one_of_the_crowd, &k), 0);
    }
    (void)pthread_mutex_lock(&claims.lock);
    while (claims.waiting + claims.ended < CROWD) {
        (void)pthread_cond_wait(&claims.changed, &claims.lock);
    }
    (void)pthread_mutex_unlock(&claims.lock);
    claims_set(false, 0);
    for (unsigned i = 0; i < CROWD; i++) {
        void *rc = NULL;
        ck_assert_int_eq(pthread_join(thread[i], &rc), 0);
        ck_assert_ptr_null(rc);
    }
    ck_assert_uint_eq(arena_bytes(ARENA_STAGING, true), STAGED_MAX);
    ck_assert_uint_eq(fake_executed(fake), CROWD);
}
END_TEST

/* Where the daemon's socket leads nowhere, one chunk of plain memory is enough, too. */
START_TEST(without_shared_memory_chunks_are_filled)
{
    claims_set(false, ERR_UNSUPPORTED);
    for (unsigned i = 0; i < 10; i++) {
        (void)host_memory(1000);
    }
    ck_assert_uint_eq(arena_bytes(ARENA_USER, false), MIB);
    await_arenas(0);
}
END_TEST

/* ---- after a restart ------------------------------------------------------------------------ */

static int call_large(gpud_kernel k, uint32_t *data)
{
    gpud_arg args[] = {gpud_f32(1), gpud_host(data, LARGE, GPUD_U32)};
    return gpud_call(client, k, args, 2, NULL);
}

/* An array of the next job must not lie where the device may still write for this one. */
START_TEST(staging_memory_of_a_job_that_runs_on_is_not_used_again)
{
    uint32_t *data = calloc(LARGE, sizeof *data);
    gpud_kernel k = find();
    ck_assert_ptr_nonnull(data);
    OK(call_large(k, data));
    ck_assert_uint_eq(fake_arenas(fake), 1);
    fake_fail(fake, ERR_TIME_LIMIT, true);
    FAILS(call_large(k, data), GPUD_ERR_TIME_LIMIT);
    await_arenas(0);
    OK(call_large(k, data));
    ck_assert_uint_eq(fake_arenas(fake), 1);
    free(data);
}
END_TEST

/* Nothing more comes from memory that the next daemon did not take. */
START_TEST(memory_that_was_not_taken_is_used_up)
{
    uint32_t *data = calloc(LARGE, sizeof *data);
    gpud_kernel k = find();
    void *before = host_memory(1000);
    ck_assert_ptr_nonnull(data);
    OK(call_large(k, data));
    uint64_t staged = arena_bytes(ARENA_STAGING, true);
    ck_assert_uint_gt(staged, 0);
    claims_set(false, ERR_NOMEM);
    fake_restart(fake, false);
    OK(gpud_ping(client, NULL));
    ck_assert_uint_eq(arena_bytes(ARENA_STAGING, true) + arena_bytes(ARENA_USER, true), 0);
    claims_set(false, 0);
    void *after = host_memory(1000);
    ck_assert_ptr_nonnull(arena_at(client, after, 1000));
    ck_assert_ptr_null(arena_at(client, before, 1000));
    OK(call_large(k, data));
    ck_assert_uint_eq(arena_bytes(ARENA_STAGING, true), staged);
    ck_assert_uint_eq(arena_bytes(ARENA_STAGING, false), 0);
    OK(gpud_host_free(client, before));
    ck_assert_uint_eq(arena_bytes(ARENA_USER, false), 0);
    free(data);
}
END_TEST

static void claims_fail(int code, unsigned count)
{
    claims_set(false, code);
    (void)pthread_mutex_lock(&claims.lock);
    claims.failing = count;
    (void)pthread_mutex_unlock(&claims.lock);
}

/* FAULT other: a new front is stopped, or has no processor, while clients bring it their memory,
 *   or it has no descriptor for it
 * required: libgpud brings it again, and the daemon keeps one arena
 * defence: `client/src/objects/arena.c`: arena_comes_again, arenas_free_vain
 * mutants: arena-slow */
START_TEST(a_slow_daemon_takes_memory_later)
{
    void *memory = host_memory(1000);
    claims_fail(_i == 0 ? ERR_TIMEOUT : ERR_BUSY, 3);
    fake_restart(fake, false);
    OK(gpud_ping(client, NULL));
    ck_assert_ptr_nonnull(arena_at(client, memory, 1000));
    await_arenas(2); /* one of each daemon */
    OK(gpud_host_free(client, memory));
}
END_TEST

/* It is asked so often only. */
START_TEST(a_daemon_that_takes_no_memory_is_asked_no_more)
{
    void *memory = host_memory(1000);
    claims_fail(ERR_TIMEOUT, ARENA_TRIES);
    fake_restart(fake, false);
    OK(gpud_ping(client, NULL));
    ck_assert_ptr_null(arena_at(client, memory, 1000));
    await_arenas(1); /* of the former daemon */
    OK(gpud_host_free(client, memory));
}
END_TEST

/* It is freed while yet another daemon is asked to take it. */
START_TEST(memory_is_freed_while_it_is_restored)
{
    void *memory = host_memory(8 * MIB);
    claims_set(false, ERR_NOMEM);
    fake_restart(fake, false);
    OK(gpud_ping(client, NULL));
    ck_assert_uint_gt(arena_bytes(ARENA_USER, false), 0);
    fake_mode(fake, FAKE_SILENT);
    fake_restart(fake, false);
    while (client->session.state != SESSION_RESTORE) {
        struct pollfd p = {.fd = gpud_fd(client), .events = POLLIN};
        ck_assert_int_ge(poll(&p, 1, -1), 0);
        OK(gpud_dispatch(client));
    }
    fake_wait_held(fake, 1);
    OK(gpud_host_free(client, memory));
    fake_release(fake, false);
    OK(gpud_ping(client, NULL));
    ck_assert_uint_eq(arena_bytes(ARENA_USER, false), 0);
}
END_TEST

/* ---- time ----------------------------------------------------------------------------------- */

/* A claim has what is left of the call's time. */
START_TEST(claims_end_with_the_call)
{
    gpud_buffer b = make(16);
    gpud_export_desc desc = {.size = sizeof desc};
    void *memory = NULL;
    timeout(LONG_NS);
    OK(gpud_host_alloc(client, 1000, &memory));
    ck_assert_uint_le(claims.patience_ns, LONG_NS);
    claims.patience_ns = NS_NEVER;
    int fd = memfd_create("own", MFD_CLOEXEC);
    ck_assert_int_eq(ftruncate(fd, 4096), 0);
    OK(gpud_host_import(client, fd, &memory, NULL));
    ck_assert_uint_le(claims.patience_ns, LONG_NS);
    claims.patience_ns = NS_NEVER;
    OK(gpud_buffer_export(client, b, &desc));
    ck_assert_uint_le(claims.patience_ns, LONG_NS);
    (void)close(desc.fd);
    (void)close(fd);
}
END_TEST

/* The time is over before there is staging memory: the job has none of its own on top. */
START_TEST(a_run_has_one_deadline)
{
    uint32_t *data = calloc(LARGE, sizeof *data);
    gpud_buffer b = make(16);
    gpud_program *p = NULL;
    gpud_job *job = NULL;
    ck_assert_ptr_nonnull(data);
    OK(gpud_program_create(client, "p", &p));
    gpud_arg x = gpud_program_param(p, "x", GPUD_PARAM_DATA, gpud_shape_1d(GPUD_U32, LARGE));
    ck_assert_int_eq(gpud_program_write(p, gpud_out(b), x), 0);
    OK(gpud_program_seal(p));
    gpud_arg args[] = {gpud_host_in(data, LARGE, GPUD_U32)};
    fake_mode(fake, FAKE_SILENT);
    timeout(NO_TIME_NS);
    FAILS(gpud_run(client, p, args, 1, NULL, &job), GPUD_ERR_TIMEOUT);
    ck_assert_ptr_null(job);
    timeout(NS_NEVER);
    fake_wait_held(fake, 1);
    fake_release(fake, false);
    OK(gpud_run(client, p, args, 1, NULL, &job));
    ck_assert_uint_eq(fake_executed(fake), 1);
    gpud_job_free(job);
    gpud_program_free(p);
    free(data);
}
END_TEST

/* The daemon makes memory for who has stopped waiting for it: it is told that nobody wants it. */
START_TEST(memory_that_came_late_goes_back)
{
    void *memory = NULL;
    fake_mode(fake, FAKE_SILENT);
    timeout(NO_TIME_NS);
    FAILS(gpud_host_alloc(client, 1000, &memory), GPUD_ERR_TIMEOUT);
    timeout(NS_NEVER);
    fake_wait_held(fake, 1);
    fake_release(fake, false);
    ck_assert_uint_eq(fake_arenas(fake), 1);
    await_arenas(0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("host");
    TCase *t = tcase_create("host");
    (void)setenv("GPUD_LANE", "nng", 1);
    tcase_add_checked_fixture(t, begin, stop);
    tcase_set_timeout(t, 100);
    tcase_add_test(t, jobs_use_what_their_program_names);
    tcase_add_test(t, jobs_use_memory_that_is_not_shared);
    tcase_add_test(t, memory_of_a_job_without_an_answer_is_not_used_again);
    tcase_add_test(t, memory_of_a_job_of_two_sessions_is_not_used_again);
    tcase_add_test(t, a_job_that_adds_in_place_is_not_sent_to_a_session_that_came_too_late);
    tcase_add_loop_test(t, a_job_that_adds_in_place_goes_to_daemons_that_know_whether_it_ran, 0,
                        MEETINGS);
    tcase_add_loop_test(t, memory_of_a_job_that_runs_on_is_not_used_again, 0, 3);
    tcase_add_loop_test(t, memory_of_other_jobs_is_used_again, 0, 3);
    tcase_add_test(t, staging_memory_of_a_job_that_runs_on_is_not_used_again);
    tcase_add_test(t, staging_memory_of_many_threads_has_a_limit);
    tcase_add_test(t, without_shared_memory_chunks_are_filled);
    tcase_add_test(t, memory_that_was_not_taken_is_used_up);
    tcase_add_loop_test(t, a_slow_daemon_takes_memory_later, 0, 2);
    tcase_add_test(t, a_daemon_that_takes_no_memory_is_asked_no_more);
    tcase_add_test(t, memory_is_freed_while_it_is_restored);
    tcase_add_test(t, claims_end_with_the_call);
    tcase_add_test(t, a_run_has_one_deadline);
    tcase_add_test(t, memory_that_came_late_goes_back);
    suite_add_tcase(suite, t);
    return run_tests(suite);
}
