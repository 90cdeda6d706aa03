/*
 * A strike follows from the end of a worker, and the end of one is a strike against each tenant at
 * most once. It follows if the worker ended by itself, but not as its device was lost; if a kernel
 * failed; or if the front ended it for a turn that overran, or for the settings' limit of time. A
 * limit that a client chose costs no other tenant anything, and so does not count. Only a turn
 * counts where tenants have workers of their own.
 */
#include "tests/sim/front/rules/sim_conduct.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/front/model/domain.h"
#include "daemon/front/model/tenant.h"
#include "daemon/front/sched/conduct.h"
#include "tests/sim/front/sim.h"

struct earned {
    uint64_t tenant; /* its key */
    unsigned ends;   /* of workers that had a job of it */
    uint64_t worker; /* the last one */
    UT_hash_handle hh;
};

static struct earned *all; /* uthash */
static unsigned unsure;    /* ends of workers whose jobs the front may not know yet */

void conduct_anew(void)
{
    struct earned *e;
    struct earned *next;
    HASH_ITER(hh, all, e, next)
    {
        HASH_DEL(all, e);
        free(e);
    }
    unsure = 0;
}

static const struct device *device_of(const struct sim *s, const struct sim_worker *x)
{
    const struct device *d;
    for (unsigned at = 0; s->f != NULL && (d = front_next_device(s->f, &at)) != NULL;) {
        if (d->worker == x->id) {
            return d;
        }
    }
    return NULL;
}

static void count(const struct tenant *t, const struct sim_worker *x)
{
    struct earned *e = NULL;
    HASH_FIND(hh, all, &t->key, sizeof t->key, e);
    if (e == NULL) {
        e = calloc(1, sizeof *e);
        e->tenant = t->key;
        HASH_ADD(hh, all, tenant, sizeof e->tenant, e);
    }
    e->ends += e->worker != x->id;
    e->worker = x->id;
}

/* The end of the worker may be a strike against those that have jobs there. A reload may take a
 * worker of its own from a tenant. */
static void may_strike(struct sim *s, const struct device *d, struct sim_worker *x, bool turn)
{
    bool own = d != NULL && d->owner != NULL && s->p.special != WORLD_DOMAINS;
    if (x->struck || (own && !turn)) {
        return;
    }
    x->struck = true;
    unsure += x->lied || x->began_ns < s->opened_ns;
    for (const struct job *j = d != NULL ? d->inflight : NULL; j != NULL; j = j->device_next) {
        if (j->tenant != NULL) {
            count(j->tenant, x);
        }
    }
}

void conduct_fault(struct sim *s, struct sim_worker *x)
{
    may_strike(s, device_of(s, x), x, false);
}

void conduct_killed(struct sim *s, const struct device *d, struct sim_worker *x)
{
    double limit_s = 0;
    bool apart = strstr(d->ending, "beside it is the cause") != NULL;
    bool turn = strncmp(d->ending, "a job ran for", 13) == 0 && !apart;
    bool any = sscanf(d->ending, "a job passed its time limit of %lf s", &limit_s) == 1 && !apart;
    bool usual = any && limit_s * 1e3 > (double)s->p.time_limit_ms - 1;
    if (turn || usual || x->deaf) { /* a deaf one is given up, as if it had ended by itself */
        may_strike(s, d, x, turn);
    }
}

void conduct_ended(struct sim *s, struct sim_worker *x, int status)
{
    bool outside = status == SIGKILL || status == SIGTERM;
    bool lost = x->lost_era == s->era && !x->cut;
    if (!outside && !lost) {
        may_strike(s, device_of(s, x), x, false);
    }
}

void conduct_check_strikes(struct sim *s)
{
    for (const struct tenant *t = s->f->tenants; t != NULL; t = t->hh.next) {
        unsigned strikes = conduct_strikes(&t->conduct, s->now_ns);
        struct earned *e = NULL;
        HASH_FIND(hh, all, &t->key, sizeof t->key, e);
        unsigned most = unsure + (e != NULL ? e->ends : 0);
        if (strikes > most && !memory_failed()) {
            sim_fail(s,
                     "conduct: tenant %s has %u strikes, and %u workers ended that had jobs of it, "
                     "in ways that cost others anything",
                     t->name, strikes, most);
        }
    }
}
