/* Two processes with a context each on one device: the cost of alternating, and the share of each
 * when both want the device all the time. Workers of two domains stand to each other like this. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/gpu/direct.h"
#include "tests/gpu/items.h"
#include "tests/gpu/measure.h"
#include "tests/gpu/record.h"

/* What a side is asked, one letter and a number; it answers with a number. */
enum ask {
    ASK_NOTHING = 'n', /* answers only */
    ASK_LAUNCH = 'l',  /* an empty kernel, waited for */
    ASK_TUNE = 't',    /* rounds of `work` that take so many ns */
    ASK_WORK = 'w',    /* for so many ns launches `work`; how many were done */
    ASK_ROUNDS = 'r',  /* `work` is of so many rounds from now on */
    ASK_QUIT = 'q',
};

#define WARM_NS (200 * NS_PER_MS)

struct question {
    uint64_t ask, value;
};

struct side {
    pid_t pid;
    int ask, answer;
};

/* ---- a side ---------------------------------------------------------------------------------- */

static uint64_t work_ns(struct direct *d, CUfunction work, uint64_t rounds)
{
    uint64_t begin_ns = clock_now_ns();
    direct_launch(d, work, 1, rounds);
    direct_wait(d);
    return clock_now_ns() - begin_ns;
}

static uint64_t work_for(struct direct *d, CUfunction work, uint64_t rounds, uint64_t ns)
{
    uint64_t end_ns = clock_now_ns() + ns;
    uint64_t done = 0;
    while (clock_now_ns() < end_ns) {
        (void)work_ns(d, work, rounds);
        done++;
    }
    return done;
}

/* An idle device is slow: what takes a millisecond at its clocks takes a fraction of it later. */
static uint64_t tune(struct direct *d, CUfunction work, uint64_t want_ns)
{
    uint64_t rounds = 1000;
    (void)work_for(d, work, rounds, WARM_NS);
    while (work_ns(d, work, rounds) < want_ns && rounds < UINT64_C(1) << 32) {
        rounds *= 2;
    }
    return rounds;
}

static uint64_t answer(struct direct *d, const struct question *q)
{
    static uint64_t rounds = 1;
    CUfunction work = direct_kernel(d, "work");
    switch ((enum ask)q->ask) {
    case ASK_LAUNCH:
        direct_launch(d, direct_kernel(d, "nothing"), 0, 0);
        direct_wait(d);
        return 0;
    case ASK_TUNE:
        rounds = tune(d, work, q->value);
        return rounds;
    case ASK_ROUNDS:
        rounds = q->value;
        return 0;
    case ASK_WORK:
        return work_for(d, work, rounds, q->value);
    default:
        return 0;
    }
}

static _Noreturn void serve(int ask, int tell)
{
    struct direct d;
    struct question q;
    direct_open(&d);
    while (read(ask, &q, sizeof q) == (ssize_t)sizeof q && q.ask != ASK_QUIT) {
        uint64_t value = answer(&d, &q);
        if (write(tell, &value, sizeof value) != (ssize_t)sizeof value) {
            exit(EXIT_FAILURE);
        }
    }
    direct_close(&d);
    exit(EXIT_SUCCESS);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static _Noreturn void die(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

static void side_start(struct side *s)
{
    int to[2];
    int from[2];
    if (pipe(to) != 0 || pipe(from) != 0) {
        die("pipe");
    }
    s->pid = fork();
    if (s->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)close(to[1]);
        (void)close(from[0]);
        serve(to[0], from[1]);
    }
    if (s->pid < 0) {
        die("fork");
    }
    (void)close(to[0]);
    (void)close(from[1]);
    s->ask = to[1];
    s->answer = from[0];
}

static void side_ask(struct side *s, enum ask ask, uint64_t value)
{
    const struct question q = {(uint64_t)ask, value};
    if (write(s->ask, &q, sizeof q) != (ssize_t)sizeof q) {
        die("a side has ended");
    }
}

static uint64_t side_answer(struct side *s)
{
    uint64_t value = 0;
    if (read(s->answer, &value, sizeof value) != (ssize_t)sizeof value) {
        (void)fputs("a side has ended\n", stderr);
        exit(EXIT_FAILURE);
    }
    return value;
}

static void side_stop(struct side *s)
{
    int status = 0;
    side_ask(s, ASK_QUIT, 0);
    if (waitpid(s->pid, &status, 0) != s->pid || status != 0) {
        (void)fputs("a side has failed\n", stderr);
        exit(EXIT_FAILURE);
    }
    (void)close(s->ask);
    (void)close(s->answer);
}

/* Round trips, by one side alone or by both in turns; the median in microseconds. */
static double trips(struct side side[2], bool both, enum ask ask)
{
    struct samples s;
    unsigned count = record_effort(500, 4000);
    samples_init(&s, count);
    for (unsigned i = 0; i < count; i++) {
        struct side *one = &side[both ? i % 2 : 0];
        uint64_t begin_ns = clock_now_ns();
        side_ask(one, ask, 0);
        (void)side_answer(one);
        samples_add(&s, clock_now_ns() - begin_ns);
    }
    double us = samples_us(&s, 0.5);
    samples_finish(&s);
    return us;
}

static void alternate(struct side side[2])
{
    struct record r;
    record_begin(&r, "turns, alternating");
    record_note(&r, "an empty kernel, asked for over a pipe; price: what it takes longer when "
                    "the other context had the device before");
    (void)trips(side, true, ASK_LAUNCH);
    double alone = trips(side, false, ASK_LAUNCH);
    double both = trips(side, true, ASK_LAUNCH);
    double pipe_alone = trips(side, false, ASK_NOTHING);
    double pipe_both = trips(side, true, ASK_NOTHING);
    record_figure(&r, "one context", alone, "us");
    record_figure(&r, "in turns", both, "us");
    record_figure(&r, "the pipe alone", pipe_alone, "us");
    record_figure(&r, "the pipes in turns", pipe_both, "us");
    record_figure(&r, "price of a switch", (both - pipe_both) - (alone - pipe_alone), "us");
    (void)record_end(&r);
}

/* Both want the device all the time: their throughput together, and how long a small kernel of the
 * other one waits. */
static void compete(struct side side[2])
{
    struct record r;
    struct samples s;
    uint64_t ns = record_effort(1, 3) * NS_PER_S;
    record_begin(&r, "turns, competing");
    side_ask(&side[0], ASK_TUNE, NS_PER_MS);
    uint64_t rounds = side_answer(&side[0]);
    side_ask(&side[1], ASK_ROUNDS, rounds);
    (void)side_answer(&side[1]);
    side_ask(&side[0], ASK_WORK, ns);
    uint64_t alone = side_answer(&side[0]);
    side_ask(&side[0], ASK_WORK, ns);
    side_ask(&side[1], ASK_WORK, ns);
    uint64_t first = side_answer(&side[0]);
    uint64_t second = side_answer(&side[1]);
    record_note(&r, "kernels of %llu rounds, one after the other", (unsigned long long)rounds);
    record_figure(&r, "a kernel alone", alone > 0 ? (double)ns / (double)alone / 1e6 : 0, "ms");
    record_figure(&r, "alone", (double)alone / ((double)ns / 1e9), "kernels/s");
    record_figure(&r, "both, first", (double)first / ((double)ns / 1e9), "kernels/s");
    record_figure(&r, "both, second", (double)second / ((double)ns / 1e9), "kernels/s");
    record_figure(&r, "both to alone", (double)(first + second) / (double)alone, "x");

    samples_init(&s, 100000);
    side_ask(&side[0], ASK_WORK, ns);
    for (uint64_t end_ns = clock_now_ns() + ns; clock_now_ns() + ns / 10 < end_ns;) {
        uint64_t begin_ns = clock_now_ns();
        side_ask(&side[1], ASK_LAUNCH, 0);
        (void)side_answer(&side[1]);
        samples_add(&s, clock_now_ns() - begin_ns);
    }
    (void)side_answer(&side[0]);
    record_figure(&r, "small kernel beside it, p50", samples_us(&s, 0.5), "us");
    record_figure(&r, "small kernel beside it, p99", samples_us(&s, 0.99), "us");
    samples_finish(&s);
    (void)record_end(&r);
}

/* This process opens no device: drivers do not survive a fork. */
void item_turns(void)
{
    struct side side[2];
    side_start(&side[0]);
    side_start(&side[1]);
    alternate(side);
    compete(side);
    side_stop(&side[0]);
    side_stop(&side[1]);
}
