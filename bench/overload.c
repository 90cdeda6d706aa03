/*
 * bench_overload: null jobs that are done in a second while clients keep ten times as many in
 * flight as the daemon has room for, against as many as it has room for. A job that is refused is
 * sent again after the pause that the refusal asks for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/common/bench.h"
#include "bench/common/echo.h"
#include "bench/common/partner.h"
#include "common/clock.h"

#define CLIENTS 16u
#define ROOM    256u /* jobs that wait in the daemon, at most */
#define TIMES   10u
#define MOST    (TIMES * ROOM / CLIENTS)

struct load {
    const char *url;
    unsigned jobs; /* in flight, or refused and waiting, at once */
    uint64_t ns;
};

struct told {
    uint64_t done, refused;
};

struct slot {
    gpud_job *job; /* NULL: none in flight */
    uint64_t again_ns;
};

static void must(int rc, const char *what)
{
    if (rc != 0) {
        bench_die("%s: %s", what, gpud_last_error()->text);
    }
}

static void take_answer(struct slot *s, struct told *t)
{
    gpud_error e = {.size = sizeof e};
    int rc = gpud_wait(s->job, 0);
    must(gpud_job_error(s->job, &e), "a job");
    if (rc != 0 && rc != GPUD_ERR_BUSY) {
        bench_die("a job: %s", e.text);
    }
    t->done += rc == 0;
    t->refused += rc != 0;
    s->again_ns = rc != 0 ? clock_now_ns() + e.retry_after_ns : 0;
    gpud_job_free(s->job);
    s->job = NULL;
}

/* Takes the slots' answers, and fills slots that may be filled. False: nothing was to be done. */
static bool go_round(gpud_client *c, gpud_program *p, struct slot *slot, unsigned count,
                     struct told *t)
{
    bool any = false;
    uint64_t now_ns = clock_now_ns();
    must(gpud_dispatch(c), "answers");
    for (unsigned i = 0; i < count; i++) {
        if (slot[i].job != NULL && gpud_job_done(slot[i].job)) {
            take_answer(&slot[i], t);
            any = true;
        }
        if (slot[i].job == NULL && slot[i].again_ns <= now_ns) {
            must(gpud_submit(c, p, NULL, 0, NULL, &slot[i].job), "submitting");
            any = true;
        }
    }
    return any;
}

/* Waits for an answer, or for the pause of a refused job. */
static void wait_some(const struct slot *slot, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (slot[i].job != NULL) {
            (void)gpud_wait(slot[i].job, NS_PER_MS);
            return;
        }
    }
    (void)usleep(1000);
}

/* Runs until a byte comes, then a while that counts. */
static void load_on(const void *load, int in, int out)
{
    static struct slot slot[MOST];
    const struct load *l = load;
    struct told t = {0};
    gpud_client *c = NULL;
    gpud_program *p = NULL;
    char byte;
    must(gpud_open(l->url, NULL, &c), "a client");
    must(gpud_program_create(c, "null", &p), "a program");
    must(gpud_program_seal(p), "a program");
    if (read(in, &byte, 1) != 1) {
        _Exit(EXIT_FAILURE);
    }
    uint64_t begin_ns = clock_now_ns() + l->ns / 4; /* until the load is what it will be */
    uint64_t end_ns = begin_ns + l->ns;
    bool counts = false;
    for (uint64_t now_ns = 0; now_ns < end_ns; now_ns = clock_now_ns()) {
        if (!counts && now_ns >= begin_ns) {
            counts = true;
            t = (struct told){0};
        }
        if (!go_round(c, p, slot, l->jobs, &t)) {
            wait_some(slot, l->jobs);
        }
    }
    if (write(out, &t, sizeof t) != sizeof t) {
        _Exit(EXIT_FAILURE);
    }
    _Exit(EXIT_SUCCESS); /* what is in flight is cancelled */
}

static void one(struct bench *b, const struct gpud *g, const char *what, unsigned times)
{
    struct partner client[CLIENTS];
    struct told sum = {0};
    struct load l = {.url = g->url,
                     .jobs = times * ROOM / CLIENTS,
                     .ns = bench_scale(b, 2 * NS_PER_S, NS_PER_S / 10)};
    for (unsigned i = 0; i < CLIENTS; i++) {
        partner_start(&client[i], load_on, &l);
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        partner_signal(&client[i]);
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct told t;
        partner_read(&client[i], &t, sizeof t);
        partner_end(&client[i]);
        sum.done += t.done;
        sum.refused += t.refused;
    }
    double seconds = (double)l.ns / 1e9;
    const char *part = placement_name(PLACE_ANY);
    report_add(&b->report, part, what, "goodput", "jobs/s", (double)sum.done / seconds);
    report_add(&b->report, part, what, "refused", "jobs/s", (double)sum.refused / seconds);
}

int main(int argc, char **argv)
{
    struct bench b;
    struct gpud g;
    const char *const args[] = {"--set", "jobs.queue_max=256", NULL};
    bench_begin(&b, "overload",
                "Null jobs done in a second while clients keep ten times as many in flight as the\n"
                "daemon has room for, against as many as it has room for.",
                5, argc, argv);
    bench_gpud(&b, &g, args);
    for (unsigned i = 0; i < b.repeat; i++) {
        one(&b, &g, "as many as there is room for", 1);
        one(&b, &g, "ten times as many", TIMES);
    }
    report_against(&b.report, placement_name(PLACE_ANY), "ten times as many", "goodput",
                   "as many as there is room for");
    gpud_stop(&g);
    return bench_end(&b);
}
