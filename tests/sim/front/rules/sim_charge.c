/* Device time that jobs are charged: their own, divided by the streams that had jobs meanwhile
 * (docs/operating.md). The simulation counts streams by itself, in worlds whose jobs have no
 * pauses and whose workers do not lie. */
#include <inttypes.h>
#include <stdlib.h>

#include "daemon/front/model/flight.h"
#include "tests/sim/front/rules/sim_shares.h"

#define OFF    0.03              /* of what is charged */
#define OFF_NS (200 * NS_PER_US) /* turns of the loop */

/* A job in a worker. */
struct charge_entry {
    uint64_t id, worker, since_ns;
    double since;
    bool waits; /* for memory, when this was last looked at */
    bool again; /* it was sent twice: its time is the sum of both */
    UT_hash_handle hh;
};

struct charge_book {
    uint64_t at_ns;
    struct {
        unsigned streams; /* that have jobs */
        double parts;     /* the integral of 1 / streams, in ns */
    } device[DEVICES_MAX];
    struct charge_entry *entry; /* uthash, by id */
    uint64_t era;
};

static bool is_world(const struct sim *s)
{
    return s->p.special == WORLD_SHARES || s->p.special == WORLD_RIVALS ||
           s->p.special == WORLD_DOMAINS || s->p.special == WORLD_DUE;
}

static void drop_all(struct charge_book *b)
{
    struct charge_entry *x;
    struct charge_entry *next;
    HASH_ITER(hh, b->entry, x, next)
    {
        HASH_DEL(b->entry, x);
        free(x);
    }
}

void charge_begin(struct sim *s)
{
    s->charges = is_world(s) ? calloc(1, sizeof *s->charges) : NULL;
}

void charge_finish(struct sim *s)
{
    if (s->charges != NULL) {
        drop_all(s->charges);
    }
    free(s->charges);
    s->charges = NULL;
}

static unsigned count_streams(const struct device *d)
{
    unsigned bits = 0;
    for (const struct job *j = d->inflight; j != NULL; j = j->device_next) {
        bits |= j->wait != WAIT_MEMORY ? 1u << j->stream : 0;
    }
    return (unsigned)__builtin_popcount(bits);
}

/* A job that waits for memory is in no stream: its part of the device counts from the end of the
 * wait. */
static void pass_waits(struct sim *s)
{
    struct charge_entry *x;
    struct charge_entry *next;
    HASH_ITER(hh, s->charges->entry, x, next)
    {
        const struct job *j = job_find(s->f->jobs, x->id);
        if (x->waits && j != NULL && j->device != NULL) {
            x->since_ns = s->now_ns;
            x->since = s->charges->device[device_shown(j->device)].parts;
        }
        x->waits = j != NULL && j->wait == WAIT_MEMORY;
    }
}

/* Counts the time until now with the streams that had jobs. */
static void pass(struct sim *s)
{
    struct charge_book *b = s->charges;
    for (unsigned i = 0; i < s->f->device_count; i++) {
        unsigned streams = b->device[i].streams;
        b->device[i].parts += streams > 0 ? (double)(s->now_ns - b->at_ns) / streams : 0;
        streams = count_streams(s->f->device[i]);
        for (const struct device *d = s->f->device[i]->domains; d != NULL; d = d->domain_next) {
            streams += count_streams(d);
        }
        b->device[i].streams = streams;
    }
    b->at_ns = s->now_ns;
    pass_waits(s);
}

void charge_step(struct sim *s)
{
    if (s->charges == NULL || s->f == NULL) {
        return;
    }
    if (s->charges->era != s->era) {
        drop_all(s->charges);
        s->charges->era = s->era;
        s->charges->at_ns = s->now_ns;
    }
    pass(s);
}

/* The front sends the job to the worker of `d`. */
void charge_sent(struct sim *s, const struct device *d, uint64_t job)
{
    struct charge_entry *x = NULL;
    if (s->charges == NULL) {
        return;
    }
    charge_step(s);
    HASH_FIND(hh, s->charges->entry, &job, sizeof job, x);
    if (x == NULL) {
        x = calloc(1, sizeof *x);
        x->id = job;
        HASH_ADD(hh, s->charges->entry, id, sizeof x->id, x);
    } else {
        x->again = true;
    }
    x->worker = d->worker;
    x->since_ns = s->now_ns;
    x->since = s->charges->device[device_shown(d)].parts;
}

/* Of its device, with that of the job, which has just left. */
static unsigned streams_with(const struct sim *s, const struct job *j)
{
    return s->charges->device[device_shown(j->device)].streams +
           (j->device->stream_load[j->stream] == 0);
}

static void check(struct sim *s, const struct job *j, const struct charge_entry *x)
{
    unsigned device = device_shown(j->device);
    double ran = (double)job_ran_ns(j, s->now_ns);
    double time = (double)(s->now_ns - x->since_ns);
    double part =
        time > 0 ? (s->charges->device[device].parts - x->since) / time : 1.0 / streams_with(s, j);
    double due = ran * (part < 1 ? part : 1);
    double off =
        (double)j->device_ns > due ? (double)j->device_ns - due : due - (double)j->device_ns;
    if (off > OFF * due + OFF_NS) {
        sim_fail(s,
                 "charge: job %" PRIu64 " ran for %.0f us beside others, is charged for %.0f, and "
                 "had %.0f of the device",
                 j->id, ran / 1e3, (double)j->device_ns / 1e3, due / 1e3);
    }
}

/* The job has ended, and is charged. */
void charge_ended(struct sim *s, const struct job *j)
{
    struct charge_entry *x = NULL;
    if (s->charges == NULL || s->charges->era != s->era) {
        return;
    }
    HASH_FIND(hh, s->charges->entry, &j->id, sizeof j->id, x);
    if (x == NULL) {
        return;
    }
    charge_step(s);
    bool plain = j->state == JOB_DONE && !x->again && j->tenant != NULL && j->device != NULL &&
                 !job_adopted(j) && s->now_ns > s->stalled_ns + NS_PER_S && !memory_failed() &&
                 s->p.pauses == 0;
    if (plain) {
        check(s, j, x);
    }
    HASH_DEL(s->charges->entry, x);
    free(x);
}
