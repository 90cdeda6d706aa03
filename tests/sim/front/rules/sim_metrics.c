/*
 * Collections of metrics, in pieces between the steps of the world, while tenants and domains come
 * and go: they have the ends of all jobs, and no counter of a row falls, whatever front counts.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/front/metrics/collect.h"
#include "tests/sim/front/sim.h"

#define PIECE 7u /* units */

static struct {
    struct collect collect;
    struct tallies *tallies; /* empty: sim_accounts.c sees the ends of jobs */
    struct figures *last;    /* of an earlier collection; NULL: none */
    uint64_t ends;           /* of jobs, when the collection began */
    void (*entry_removed)(struct front *f, const void *entry, const void *next);
} metrics;

static void on_entry_removed(struct front *f, const void *entry, const void *next)
{
    collect_skip(&metrics.collect, entry, next);
    metrics.entry_removed(f, entry, next);
}

static void no_kick(struct front *f)
{
    (void)f;
}

void metrics_follow(struct sim *s)
{
    metrics.entry_removed = s->f->hooks.entry_removed;
    s->f->hooks.entry_removed = on_entry_removed;
}

static uint64_t ends_of(const struct tenant_figures *t)
{
    return t->jobs[ACCOUNT_DONE] + t->jobs[ACCOUNT_FAILED] + t->jobs[ACCOUNT_CANCELLED] +
           t->jobs[ACCOUNT_LOST] + t->jobs[ACCOUNT_DEADLINE];
}

static void compare(struct sim *s, const struct figures *n)
{
    uint64_t ends = 0;
    for (unsigned row = 0; row < TENANT_ROWS; row++) {
        const struct tenant_figures *is = &n->tenant[row];
        const struct tenant_figures *was = metrics.last != NULL ? &metrics.last->tenant[row] : NULL;
        ends += ends_of(is);
        if (was != NULL && was->name[0] != '\0' &&
            (strcmp(was->name, is->name) != 0 || ends_of(is) < ends_of(was) ||
             is->to_device < was->to_device)) {
            sim_fail(s,
                     "metrics: row %u was of tenant %s, with %" PRIu64 " jobs; it is of %s, "
                     "with %" PRIu64,
                     row, was->name, ends_of(was), is->name, ends_of(is));
        }
    }
    if (ends < metrics.ends || ends > s->charged.ends) {
        sim_fail(s, "metrics: %" PRIu64 " jobs ended, of %" PRIu64 " to %" PRIu64, ends,
                 metrics.ends, s->charged.ends);
    }
}

/* Does a piece. The turn's own units stay as they were. */
static struct figures *piece(struct front *f)
{
    const struct turn_work work = f->work;
    void (*kick)(struct front *) = f->hooks.kick;
    f->hooks.kick = no_kick;
    turn_allow(f, PIECE);
    struct figures *n = collect_some(&metrics.collect, f, metrics.tallies);
    f->work = work;
    f->hooks.kick = kick;
    return n;
}

void metrics_check(struct sim *s)
{
    memory_outside();
    if (metrics.tallies == NULL) {
        metrics.tallies = calloc(1, sizeof *metrics.tallies);
    }
    if (metrics.collect.state == COLLECT_IDLE) {
        const struct turn_work work = s->f->work;
        metrics.ends = s->charged.ends;
        if (metrics.tallies == NULL ||
            collect_begin(&metrics.collect, s->f, metrics.tallies, NULL) != 0) {
            abort();
        }
        s->f->work = work;
    } else {
        struct figures *n = piece(s->f);
        if (n != NULL) {
            compare(s, n);
            figures_destroy(metrics.last);
            metrics.last = n;
        }
    }
    memory_inside();
}

/* killed: what is in no file is lost with the front. */
void metrics_front_ends(bool killed)
{
    collect_cancel(&metrics.collect);
    if (killed) {
        figures_destroy(metrics.last);
        metrics.last = NULL;
    }
}

void metrics_finish(void)
{
    metrics_front_ends(true);
    free(metrics.tallies);
    metrics.tallies = NULL;
}
