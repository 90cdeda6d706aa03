/* The processes of a storm: clients, probes, and the daemon's own as they come and go. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/storm/client.h"
#include "tests/storm/storm.h"
#include "tests/storm/witness.h"

#define TICK        (20 * MS)
#define FRONT_PAUSE (100 * MS) /* as systemd has it */

void storm_clients_start(struct storm *s)
{
    static struct client_start start[CLIENTS];
    static struct probe probes[PROBE_COUNT];
    atomic_store(&s->l->stop, false);
    s->probes_gone = false;
    for (unsigned i = 0; i < CLIENTS; i++) {
        start[i] = (struct client_start){s->l, s->d.url, i, s->seed, s->compiles};
        s->client[i] = process_start(client_work, &start[i]);
    }
    for (unsigned i = 0; i < PROBE_DEVICE + s->devices; i++) {
        if (i == PROBE_COMPILER && !s->compiles) {
            continue;
        }
        probes[i] = (struct probe){s->l, s->d.url, i};
        s->probe[i] = process_start(probe_work, &probes[i]);
    }
}

static unsigned at_work(const struct storm *s)
{
    unsigned count = 0;
    for (unsigned i = 0; i < CLIENTS; i++) {
        count += s->client[i] != 0;
    }
    for (unsigned i = 0; i < PROBE_COUNT; i++) {
        count += s->probe[i] != 0;
    }
    return count;
}

static void end_clients(struct storm *s)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        if (s->client[i] != 0) {
            const char *call = atomic_load(&s->l->place[i].call);
            ledger_break(s->l, BREACH_HANG, "client %u does not end: in %s", i,
                         call != NULL ? call : "no call");
            (void)kill(s->client[i], SIGKILL);
        }
    }
    for (unsigned i = 0; i < PROBE_COUNT; i++) {
        if (s->probe[i] != 0) {
            ledger_break(s->l, BREACH_HANG, "probe %u does not end", i);
            (void)kill(s->probe[i], SIGKILL);
        }
    }
}

void storm_clients_stop(struct storm *s)
{
    atomic_store(&s->l->stop, true);
    uint64_t end_ns = now_ns() + 2 * PATIENCE;
    bool ended = false;
    s->probes_gone = true;
    while (at_work(s) > 0) {
        storm_tick(s);
        mishaps_turn(s, false);
        if (now_ns() > end_ns && !ended) {
            end_clients(s);
            ended = true;
        }
    }
}

/* ---- children ----------------------------------------------------------------------------- */

#define STATUS_SETTINGS 2 /* of a front that finds bad settings when it begins */

static void front_ended(struct storm *s, int status)
{
    bool misread = s->front_misreads && WIFEXITED(status) && WEXITSTATUS(status) == STATUS_SETTINGS;
    if (!s->front_explained && !misread) {
        ledger_break(s->l, BREACH_CRASH, "the front ended with status %d, signal %d",
                     WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                     WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    }
    s->front_end_ns = now_ns();
    s->d.pid = 0;
}

static void child_ended(struct storm *s, pid_t pid, int status)
{
    if (pid == s->d.pid) {
        front_ended(s, status);
        return;
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        if (pid == s->client[i]) {
            s->client[i] = 0;
            if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
                ledger_break(s->l, BREACH_CRASH, "client %u ended with wait status %d", i, status);
            }
        }
    }
    for (unsigned i = 0; i < PROBE_COUNT; i++) {
        s->probe[i] = pid == s->probe[i] ? 0 : s->probe[i];
    }
    s->launcher = pid == s->launcher ? 0 : s->launcher;
}

static void reap_all(struct storm *s)
{
    int status = 0;
    pid_t pid = 0;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        child_ended(s, pid, status);
    }
}

static void respawn(struct storm *s)
{
    if (s->d.pid == 0 && now_ns() - s->front_end_ns > FRONT_PAUSE) {
        s->front_explained = false;
        s->front_misreads = s->settings_bad;
        s->front_begin_ns = now_ns();
        daemon_spawn(&s->d);
    }
}

/* ---- time --------------------------------------------------------------------------------- */

static void watch_calls(struct storm *s, uint64_t quiet_ns)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        const struct place *p = &s->l->place[i];
        uint64_t serial = atomic_load(&p->serial);
        uint64_t began_ns = atomic_load(&p->quiet_ns);
        const char *call = atomic_load(&p->call);
        if (s->client[i] == 0 || serial == 0 || serial == s->places[i] || began_ns > quiet_ns ||
            quiet_ns - began_ns <= atomic_load(&s->l->hang_ns[atomic_load(&p->deed)]) ||
            atomic_load(&p->serial) != serial) {
            continue;
        }
        s->places[i] = serial;
        ledger_break(s->l, BREACH_HANG, "client %u is in %s for %.1f s of quiet time", i, call,
                     (double)(quiet_ns - began_ns) / 1e9);
        if (!s->witnessed) {
            s->witnessed = true;
            witness(&s->d);
        }
    }
}

/* A host that is too busy to let this process run gives clients no time either: a tick counts for
 * two at most. */
void storm_tick(struct storm *s)
{
    pause_ms(TICK / MS);
    uint64_t now = now_ns();
    uint64_t passed = now - s->tick_ns;
    s->tick_ns = now;
    reap_all(s);
    respawn(s);
    if (mishaps_quiet(s)) {
        uint64_t quiet_ns = passed < 2 * TICK ? passed : 2 * TICK;
        watch_calls(s, atomic_fetch_add(&s->l->quiet_ns, quiet_ns) + quiet_ns);
    }
}

/* ---- victims ------------------------------------------------------------------------------ */

pid_t storm_victim(struct storm *s, enum victim victim, uint64_t choice)
{
    static const char *const names[VICTIM_COUNT] = {[VICTIM_WORKER] = "gpud-worker",
                                                    [VICTIM_COMPILER] = "gpud-compile",
                                                    [VICTIM_PREPARED] = "gpud-prepared"};
    pid_t found[32];
    unsigned count = 0;
    if (victim == VICTIM_FRONT) {
        return s->d.pid;
    }
    if (s->launcher == 0) {
        s->launcher = daemon_launcher(&s->d);
    }
    if (victim == VICTIM_LAUNCHER || s->launcher == 0) {
        return s->launcher;
    }
    count = daemon_children(s->launcher, names[victim], found, sizeof found / sizeof found[0]);
    return count == 0 ? 0 : found[choice % count];
}
