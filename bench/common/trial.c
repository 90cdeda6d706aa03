#include "bench/common/trial.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/common/samples.h"
#include "common/clock.h"

#define SESSIONS_MAX 64u

/* ---- servers ------------------------------------------------------------------------------- */

void server_start(struct server *s, const struct echo_kind *kind, const char *dir)
{
    *s = (struct server){.kind = kind};
    (void)snprintf(s->address, sizeof s->address, "%s/%s.sock", dir, kind->name);
    s->pid = fork();
    if (s->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        kind->serve(s->address);
        bench_die("%s: the server ended", kind->name);
    }
    if (s->pid < 0) {
        bench_die("fork: %s", strerror(errno));
    }
}

void server_stop(struct server *s)
{
    if (s->pid > 0) {
        (void)kill(s->pid, SIGKILL);
        (void)waitpid(s->pid, NULL, 0);
        (void)unlink(s->address);
        s->pid = 0;
    }
}

/* ---- a client ------------------------------------------------------------------------------ */

struct outcome { /* sent by a client at its end */
    double p50_us;
    double p99_us;
    uint64_t cpu_ns;
    uint64_t switches;
};

struct client {
    pid_t pid;
    int to;   /* the pipe to the child */
    int from; /* the pipe from the child */
};

static void put(int fd, const void *data, size_t size)
{
    if (write(fd, data, size) != (ssize_t)size) {
        bench_die("a pipe of the benchmark: %s", strerror(errno));
    }
}

static void get(int fd, void *data, size_t size)
{
    ssize_t n;
    do {
        n = read(fd, data, size);
    } while (n < 0 && errno == EINTR);
    if (n != (ssize_t)size) {
        bench_die("a client of the benchmark ended early");
    }
}

static void used(uint64_t *ret_cpu_ns, uint64_t *ret_switches)
{
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u);
    *ret_cpu_ns = (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NS_PER_S +
                  (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * (NS_PER_S / 1000000);
    *ret_switches = (uint64_t)u.ru_nvcsw;
}

/* Makes `count` round trips in a sliding window of `outstanding`. samples may be NULL. */
static void trips(const struct trial *t, struct echo *c, unsigned count, struct samples *samples)
{
    uint64_t begun[ECHO_SLOTS];
    for (unsigned i = 0; i < count + t->outstanding; i++) {
        unsigned slot = i % t->outstanding;
        if (i >= t->outstanding) {
            t->kind->take(c, slot);
            if (samples != NULL) {
                samples_add(samples, (double)(clock_now_ns() - begun[slot]) / 1e3);
            }
        }
        if (i < count) {
            begun[slot] = clock_now_ns();
            t->kind->send(c, slot);
        }
    }
}

static _Noreturn void be_client(const struct trial *t, int in, int out)
{
    struct samples samples;
    struct outcome outcome;
    uint64_t cpu_ns;
    uint64_t switches;
    char byte = 0;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    machine_pin_client(t->place, getpid());
    if (t->lane != NULL && setenv("GPUD_LANE", t->lane, 1) != 0) {
        bench_die("no memory");
    }
    samples_init(&samples);
    struct echo *c = t->kind->open(t->address, t->outstanding);
    trips(t, c, t->warm, NULL);
    put(out, &byte, 1);
    get(in, &byte, 1);
    used(&cpu_ns, &switches);
    trips(t, c, t->count, &samples);
    used(&outcome.cpu_ns, &outcome.switches);
    outcome.cpu_ns -= cpu_ns;
    outcome.switches -= switches;
    outcome.p50_us = samples_median(&samples);
    outcome.p99_us = samples_at(&samples, 0.99);
    put(out, &outcome, sizeof outcome);
    get(in, &byte, 1);
    t->kind->close(c);
    samples_finish(&samples);
    _Exit(EXIT_SUCCESS);
}

static void client_start(const struct trial *t, struct client *c)
{
    int to[2];
    int from[2];
    if (pipe(to) != 0 || pipe(from) != 0) {
        bench_die("pipes: %s", strerror(errno));
    }
    c->pid = fork();
    if (c->pid == 0) {
        (void)close(to[1]);
        (void)close(from[0]);
        be_client(t, to[0], from[1]);
    }
    if (c->pid < 0) {
        bench_die("fork: %s", strerror(errno));
    }
    (void)close(to[0]);
    (void)close(from[1]);
    c->to = to[1];
    c->from = from[0];
}

static void client_end(struct client *c)
{
    int status = 0;
    (void)close(c->to);
    (void)close(c->from);
    if (waitpid(c->pid, &status, 0) != c->pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        bench_die("a client of the benchmark ended with status %#x", (unsigned)status);
    }
}

/* ---- all clients --------------------------------------------------------------------------- */

static void tell_all(struct client *client, unsigned count)
{
    char byte = 0;
    for (unsigned i = 0; i < count; i++) {
        put(client[i].to, &byte, 1);
    }
}

static uint64_t served(const struct trial *t)
{
    return t->served_cpu_ns != NULL ? t->served_cpu_ns(t->server) : 0;
}

void trial_run(const struct trial *t, struct trial_result *ret_result)
{
    struct client client[SESSIONS_MAX];
    struct outcome outcome;
    struct samples p50;
    struct samples p99;
    char byte;
    if (t->sessions > SESSIONS_MAX || t->outstanding > ECHO_SLOTS || t->outstanding == 0) {
        bench_die("%u sessions with %u outstanding", t->sessions, t->outstanding);
    }
    samples_init(&p50);
    samples_init(&p99);
    for (unsigned i = 0; i < t->sessions; i++) {
        client_start(t, &client[i]);
    }
    for (unsigned i = 0; i < t->sessions; i++) {
        get(client[i].from, &byte, 1);
    }
    struct trial_result r = {.p50_us = 0};
    uint64_t cpu_ns = served(t);
    uint64_t begin_ns = clock_now_ns();
    tell_all(client, t->sessions);
    for (unsigned i = 0; i < t->sessions; i++) {
        get(client[i].from, &outcome, sizeof outcome);
        samples_add(&p50, outcome.p50_us);
        samples_add(&p99, outcome.p99_us);
        r.client_us += (double)outcome.cpu_ns / 1e3;
        r.client_switches += (double)outcome.switches;
    }
    double all = (double)t->count * (double)t->sessions;
    r.rate = all / ((double)(clock_now_ns() - begin_ns) / 1e9);
    r.served_us = (double)(served(t) - cpu_ns) / 1e3 / all;
    r.client_us /= all;
    r.client_switches /= all;
    r.p50_us = samples_median(&p50);
    r.p99_us = samples_median(&p99);
    tell_all(client, t->sessions);
    for (unsigned i = 0; i < t->sessions; i++) {
        client_end(&client[i]);
    }
    samples_finish(&p50);
    samples_finish(&p99);
    *ret_result = r;
}
