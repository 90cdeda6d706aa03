/*
 * Collections of metrics, in pieces between the steps of the world, while tenants and domains come
 * and go: they have the ends of all jobs, and no counter of a row falls, whatever front counts.
 * Each tenant that was there all the time is in them, the first 200 with a row of their own. A
 * piece is as long as it may be. The text of the numbers is valid.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/front/metrics/collect.h"
#include "daemon/front/tenants/accounts.h"
#include "tests/sim/front/rules/sim_exposition.h"

#define TEXTS_ONE_IN 16u /* collections */

static struct {
    struct collect collect;
    struct tallies *tallies; /* empty: sim_accounts.c sees the ends of jobs */
    struct figures *last;    /* of an earlier collection; NULL: none */
    uint64_t ends;           /* of jobs, when the collection began */
    void (*entry_removed)(struct front *f, const void *entry, const void *next);
    struct stayer {
        const struct tenant *tenant; /* NULL: it has left meanwhile */
        char name[PROTO_NAME_MAX + 1];
    } * stayers; /* owned; tenants that were there when the collection began */
    unsigned stayer_count;
    unsigned accounts; /* that were there, too */
    uint64_t complete; /* collections */
} metrics;

static void on_entry_removed(struct front *f, const void *entry, const void *next)
{
    for (unsigned i = 0; i < metrics.stayer_count; i++) {
        struct stayer *x = &metrics.stayers[i];
        x->tenant = x->tenant == entry ? NULL : x->tenant;
    }
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

static const struct tenant_figures *row_named(const struct figures *n, const char *name)
{
    for (unsigned row = 1; row < TENANT_ROWS; row++) {
        if (strcmp(n->tenant[row].name, name) == 0) {
            return &n->tenant[row];
        }
    }
    return &n->tenant[0];
}

/* Each tenant has a weight. */
static void check_stayers(struct sim *s, const struct figures *n)
{
    for (unsigned i = 0; i < metrics.stayer_count; i++) {
        const struct stayer *x = &metrics.stayers[i];
        if (x->tenant != NULL && row_named(n, x->name)->weight == 0) {
            sim_fail(s, "metrics: tenant %s was there, and is not in them", x->name);
        }
    }
}

/* The first account is of those that have none. */
static void check_rows(struct sim *s, const struct figures *n)
{
    unsigned rows = 0;
    for (unsigned row = 1; row < TENANT_ROWS; row++) {
        rows += n->tenant[row].name[0] != '\0';
    }
    unsigned wanted = metrics.accounts > 0 ? metrics.accounts - 1 : 0;
    wanted = wanted < TENANTS_SHOWN ? wanted : TENANTS_SHOWN;
    if (rows < wanted) {
        sim_fail(s, "metrics: %u tenants have rows of their own, of %u", rows, wanted);
    }
}

static void stayers_begin(struct sim *s)
{
    unsigned count = HASH_COUNT(s->f->tenants);
    free(metrics.stayers);
    metrics.stayers = calloc(count + 1, sizeof *metrics.stayers);
    metrics.stayer_count = metrics.accounts = 0;
    while (accounts_at(s->f->accounts, metrics.accounts) != NULL) {
        metrics.accounts++;
    }
    for (const struct tenant *t = s->f->tenants; t != NULL; t = t->hh.next) {
        struct stayer *x = &metrics.stayers[metrics.stayer_count++];
        x->tenant = t;
        (void)snprintf(x->name, sizeof x->name, "%s", t->name);
    }
}

/* Does a piece. The turn's own units stay as they were. */
static struct figures *piece(struct sim *s)
{
    struct front *f = s->f;
    const struct turn_work work = f->work;
    void (*kick)(struct front *) = f->hooks.kick;
    uint64_t visit = 1 + metrics.collect.figures->device_count / 8;
    uint64_t units = visit * (1 + chance_mix(s->steps) % 4) * (1 + metrics.stayer_count / 16);
    f->hooks.kick = no_kick;
    turn_allow(f, units);
    struct figures *n = collect_some(&metrics.collect, f, metrics.tallies);
    if (f->work.done - work.done > units) {
        sim_fail(s, "metrics: a piece has %" PRIu64 " units instead of %" PRIu64,
                 f->work.done - work.done, units);
    }
    f->work = work;
    f->hooks.kick = kick;
    return n;
}

static void complete(struct sim *s, struct figures *n)
{
    compare(s, n);
    check_stayers(s, n);
    check_rows(s, n);
    if (metrics.complete++ % TEXTS_ONE_IN == 0) {
        exposition_check(s, n, metrics.complete / TEXTS_ONE_IN % 2 == 0);
    }
    figures_destroy(metrics.last);
    metrics.last = n;
}

/* Among few tenants it takes its time, so that some of them leave meanwhile. */
static bool rests(const struct sim *s)
{
    return metrics.collect.state == COLLECT_TENANTS && metrics.stayer_count <= 32 &&
           chance_mix(s->steps ^ 5) % 4 != 0 && !s->settled;
}

void metrics_check(struct sim *s)
{
    if (rests(s)) {
        return;
    }
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
        stayers_begin(s);
    } else {
        struct figures *n = piece(s);
        if (n != NULL) {
            complete(s, n);
        }
    }
    memory_inside();
}

/* killed: what is in no file is lost with the front. */
void metrics_front_ends(bool killed)
{
    collect_cancel(&metrics.collect);
    metrics.stayer_count = 0;
    if (killed) {
        figures_destroy(metrics.last);
        metrics.last = NULL;
    }
}

void metrics_finish(void)
{
    metrics_front_ends(true);
    metrics.complete = 0;
    free(metrics.tallies);
    free(metrics.stayers);
    metrics.tallies = NULL;
    metrics.stayers = NULL;
}
