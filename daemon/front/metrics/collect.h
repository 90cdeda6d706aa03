/*
 * Collects the numbers of a scrape, in pieces: a turn of the loop visits as many accounts and
 * tenants as it has units. One collection runs at a time. The numbers are those that tables and
 * accounts have anyway. Thread: the loop's.
 */
#ifndef FRONT_METRICS_COLLECT_H
#define FRONT_METRICS_COLLECT_H

#include "daemon/front/metrics/figures.h"

enum collect_state { COLLECT_IDLE, COLLECT_ACCOUNTS, COLLECT_TENANTS, COLLECT_DOMAINS };

struct collect {
    enum collect_state state;
    struct figures *figures;     /* owned; NULL: idle */
    unsigned account;            /* the next one */
    const struct tenant *tenant; /* the next one; NULL: none follows */
    unsigned place;              /* of the next domain */
};

/* Begins one; idle before. ERR_NOMEM. */
int collect_begin(struct collect *c, struct front *f, const struct tallies *t, struct err *e);
/* Goes on for as long as the turn has room. The finished numbers, which the caller owns; NULL: it
 * continues in the next turn, which is asked for. */
struct figures *collect_some(struct collect *c, struct front *f, const struct tallies *t);
/* The tenant leaves its table. next: the one behind it. */
void collect_skip(struct collect *c, const void *tenant, const void *next);
void collect_cancel(struct collect *c);

#endif
