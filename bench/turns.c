/*
 * bench_turns: how long other clients wait while one user puts the most load on the daemon's loop:
 * jobs that each read 256 buffers, queued in many sessions; a job after them that writes all of
 * these buffers, and its cancellation; and tables of all these jobs.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/common/bench.h"
#include "bench/common/echo.h"
#include "bench/common/partner.h"
#include "common/clock.h"

#define SESSIONS 15u
#define BUFFERS  256u

struct pings {
    uint64_t count;
    uint64_t longest_ns;
};

struct side {
    gpud_client *client;
    gpud_program *program;
    gpud_job **jobs; /* owned */
};

static void must(int rc, const char *what)
{
    if (rc < 0) {
        bench_die("gpud: %s: %s", what, gpud_last_error()->text);
    }
}

/* ---- the client that waits ------------------------------------------------------------------ */

static uint64_t ping(gpud_client *c)
{
    uint64_t begin = clock_now_ns();
    must(gpud_ping(c, NULL), "a ping");
    return clock_now_ns() - begin;
}

/* Pings all the time. Each byte ends a phase and begins the next: the answer is the phase's pings.
 * The end of the pipe ends the process. */
static void ping_on(const void *url, int in, int out)
{
    gpud_client *c = NULL;
    struct pings p = {0};
    char byte = 0;
    if (fcntl(in, F_SETFL, O_NONBLOCK) != 0) {
        bench_die("a pipe: %s", strerror(errno));
    }
    must(gpud_open(url, NULL, &c), "the pinging client");
    for (;;) {
        ssize_t n = read(in, &byte, 1); /* the pipe is non-blocking */
        if (n == 0) {
            gpud_close(c);
            _Exit(EXIT_SUCCESS);
        }
        if (n == 1 && write(out, &p, sizeof p) != (ssize_t)sizeof p) {
            _Exit(EXIT_FAILURE);
        }
        p = n == 1 ? (struct pings){0} : p;
        uint64_t ns = ping(c);
        p.count++;
        p.longest_ns = ns > p.longest_ns ? ns : p.longest_ns;
    }
}

/* The pings since the last call. */
static struct pings pings_seen(const struct partner *pinger)
{
    struct pings seen = {0};
    partner_signal(pinger);
    partner_read(pinger, &seen, sizeof seen);
    return seen;
}

/* ---- the load ------------------------------------------------------------------------------- */

static gpud_job *submit(const struct side *s)
{
    gpud_job *job = NULL;
    must(gpud_submit(s->client, s->program, NULL, 0, NULL, &job), "a job");
    return job;
}

/* Waits until the daemon has accepted the job. */
static void admitted(const struct side *s, const gpud_job *job)
{
    while (gpud_job_id(job) == 0 && !gpud_job_done(job)) {
        must(gpud_dispatch(s->client), "waiting");
        (void)usleep(20);
    }
    if (gpud_job_id(job) == 0) {
        bench_die("gpud: a job was refused: %s", gpud_err_name(gpud_job_error(job, NULL)));
    }
}

static uint64_t status(gpud_client *c, const char *column)
{
    gpud_table *t = NULL;
    must(gpud_query(c, "status", NULL, &t), "status");
    int at = gpud_table_find(t, column);
    uint64_t value = at >= 0 ? gpud_table_value(t, 0, (uint32_t)at) : UINT64_MAX;
    gpud_table_free(t);
    return value;
}

static void open_buffers(gpud_client *c, gpud_buffer *b, bool make)
{
    for (unsigned i = 0; i < BUFFERS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "b%u", i);
        if (make) {
            must(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 16), GPUD_BUFFER_ZERO, NULL, &b[i]),
                 "a buffer");
            must(gpud_buffer_publish(c, b[i], name, GPUD_INOUT, 0), "a name");
        } else {
            must(gpud_buffer_open(c, name, &b[i]), "a buffer");
        }
    }
}

static gpud_program *reader(gpud_client *c, const gpud_buffer *b)
{
    gpud_program *p = NULL;
    must(gpud_program_create(c, "reader", &p), "a program");
    gpud_arg temp = gpud_program_temp(p, gpud_shape_1d(GPUD_F32, 16));
    for (unsigned i = 0; i < BUFFERS; i++) {
        must(gpud_program_copy(p, gpud_arg_with(temp, GPUD_OUT), gpud_in(b[i])), "a step");
    }
    must(gpud_program_seal(p), "a program");
    return p;
}

static gpud_program *writer(gpud_client *c, const gpud_buffer *b)
{
    gpud_program *p = NULL;
    must(gpud_program_create(c, "writer", &p), "a program");
    for (unsigned i = 0; i < BUFFERS; i++) {
        must(gpud_program_fill(p, gpud_out(b[i]), gpud_f32(1)), "a step");
    }
    must(gpud_program_seal(p), "a program");
    return p;
}

/* Blocks the device: by its options, its second launch hangs, which is this job. */
static gpud_job *block(gpud_client *c)
{
    gpud_kernel fill;
    gpud_buffer b;
    gpud_job *job = NULL;
    must(gpud_kernel_find(c, "fill", &fill), "a kernel");
    must(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 4), GPUD_BUFFER_ZERO, NULL, &b), "a buffer");
    gpud_arg args[] = {gpud_f32(1), gpud_out(b)};
    must(gpud_launch(c, fill, args, 2, NULL, NULL, &job), "the job in front");
    while (status(c, "in_flight") != 1) {
        (void)usleep(1000);
    }
    return job;
}

/* ---- the figures ---------------------------------------------------------------------------- */

/* Adds the figures of a phase. took_ns: the time of the load's request; 0: several requests. */
static void add_figures(struct bench *b, const struct partner *p, const char *part,
                        uint64_t took_ns)
{
    struct pings seen = pings_seen(p);
    if (took_ns > 0) {
        report_add(&b->report, part, "the request", "time", "ms", (double)took_ns / 1e6);
    }
    report_add(&b->report, part, "a ping beside it", "longest", "ms",
               (double)seen.longest_ns / 1e6);
}

static void storm(struct bench *b, const struct partner *p, struct side *sides,
                  const struct side *w, unsigned each)
{
    for (unsigned i = 0; i < each; i++) {
        for (unsigned k = 0; k < SESSIONS; k++) {
            sides[k].jobs[i] = submit(&sides[k]);
        }
    }
    for (unsigned k = 0; k < SESSIONS; k++) {
        for (unsigned i = 0; i < each; i++) {
            admitted(&sides[k], sides[k].jobs[i]);
        }
    }
    add_figures(b, p, "SUBMIT of the readers", 0);
    uint64_t begin = clock_now_ns();
    gpud_job *job = submit(w);
    admitted(w, job);
    add_figures(b, p, "SUBMIT of the writer", clock_now_ns() - begin);
    begin = clock_now_ns();
    gpud_table *t = NULL;
    must(gpud_query(w->client, "jobs", NULL, &t), "the table of jobs");
    add_figures(b, p, "QUERY of all jobs", clock_now_ns() - begin);
    gpud_table_free(t);
    begin = clock_now_ns();
    must(gpud_cancel(job), "CANCEL");
    add_figures(b, p, "CANCEL of the writer", clock_now_ns() - begin);
    gpud_job_free(job);
}

static void leave(struct bench *b, const struct partner *p, gpud_client *c, struct side *sides,
                  unsigned each)
{
    for (unsigned k = 0; k < SESSIONS; k++) {
        gpud_close(sides[k].client);
    }
    while (status(c, "queued") > 0) {
        (void)usleep(1000);
    }
    add_figures(b, p, "their sessions end", 0);
    report_add(&b->report, "all of it", "the loop", "longest turn", "units",
               (double)status(c, "longest_turn"));
    for (unsigned k = 0; k < SESSIONS; k++) {
        for (unsigned i = 0; i < each; i++) {
            gpud_job_free(sides[k].jobs[i]);
        }
        gpud_program_free(sides[k].program);
        free(sides[k].jobs);
    }
}

static void repetition(struct bench *b, const struct gpud *g)
{
    struct side sides[SESSIONS];
    struct side w = {0};
    struct partner p;
    gpud_client *c = NULL;
    gpud_buffer buffers[BUFFERS];
    const unsigned each = bench_scale(b, 250u, 4u);
    partner_start(&p, ping_on, g->url); /* before this process has threads */
    must(gpud_open(g->url, NULL, &c), "opening");
    must(gpud_open(g->url, NULL, &w.client), "opening");
    gpud_job *blocker = block(c);
    open_buffers(w.client, buffers, true);
    w.program = writer(w.client, buffers);
    for (unsigned k = 0; k < SESSIONS; k++) {
        must(gpud_open(g->url, NULL, &sides[k].client), "opening");
        open_buffers(sides[k].client, buffers, false);
        sides[k].program = reader(sides[k].client, buffers);
        sides[k].jobs = calloc(each, sizeof *sides[k].jobs);
        if (sides[k].jobs == NULL) {
            bench_die("no memory");
        }
    }
    (void)pings_seen(&p);
    storm(b, &p, sides, &w, each);
    leave(b, &p, c, sides, each);
    partner_end(&p);
    gpud_program_free(w.program);
    gpud_close(w.client);
    (void)kill(g->worker[0], SIGKILL); /* otherwise gpud waits for the job that hangs */
    (void)gpud_wait(blocker, GPUD_FOREVER);
    gpud_job_free(blocker);
    gpud_close(c);
}

int main(int argc, char **argv)
{
    static const char *const settings[] = {"--backend",
                                           "sim",
                                           "--backend-options",
                                           "speed=0,script=launch:2=hang",
                                           "--set",
                                           "jobs.window=2",
                                           "--set",
                                           "jobs.time_limit_ms=1000000",
                                           NULL};
    struct bench b;
    bench_begin(&b, "turns",
                "How long a client waits beside another one that makes the daemon's loop do as\n"
                "much as one can: thousands of jobs that each use 256 buffers.",
                3, argc, argv);
    for (unsigned i = 0; i < b.repeat; i++) {
        struct gpud g;
        gpud_start(&g, settings);
        repetition(&b, &g);
        gpud_stop(&g);
    }
    return bench_end(&b);
}
