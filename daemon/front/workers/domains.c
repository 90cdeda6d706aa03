#include "daemon/front/workers/domains.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/saturate.h"
#include "daemon/front/model/about.h"
#include "daemon/front/model/domain.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/workers/command.h"
#include "daemon/front/workers/departing.h"
#include "daemon/front/workers/lease.h"
#include "daemon/front/workers/places.h"
#include "daemon/front/workers/record.h"
#include "daemon/front/workers/rest.h"
#include "daemon/front/workers/worker.h"
#include "daemon/front/workers/worker_end.h"

#define JOBS_A_UNIT 16u /* that are looked at in a unit of work */

#define LOOK_NS  NS_PER_S        /* between two looks for idle domains */
#define SPARE_NS (10 * NS_PER_S) /* after a spare worker made room, until the next one */

/* ---- memory ---------------------------------------------------------------------------------- */

/* What the shared worker must keep for the guarantees of the tenants that share it. */
static uint64_t reserved(const struct front *f, uint64_t whole)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < f->rules.count; i++) {
        const struct tenant_rule *r = &f->rules.rule[i];
        bool shares = r->tenant != NULL && !r->tenant->apart;
        sum = shares ? sat_add(sum, amount_of(&r->limits.guaranteed, whole)) : sum;
    }
    return sum;
}

/* granted: bytes of the device, to other domains. */
static uint64_t grant_beside(const struct front *f, const struct tenant *t, struct device *base,
                             uint64_t granted)
{
    uint64_t whole = device_whole(base);
    uint64_t least = amount_of(&t->limits.guaranteed, whole);
    uint64_t most = amount_of(&t->limits.hard, whole);
    uint64_t room = sat_sub(whole, sat_add(granted, lease_floor(whole, reserved(f, whole))));
    uint64_t grant = percent_of(whole, f->config.domain_percent);
    grant = grant > most ? most : grant;
    grant = grant < least ? least : grant;
    return grant <= room ? grant : lease_floor(whole, least) <= room ? room : 0;
}

uint64_t domain_floor(const struct front *f, const struct device *d)
{
    uint64_t whole = device_whole(d);
    return lease_floor(whole, d->owner != NULL ? amount_of(&d->owner->limits.guaranteed, whole)
                                               : reserved(f, whole));
}

uint64_t domain_most(const struct front *f, const struct tenant *t, struct device *base)
{
    uint64_t whole = device_whole(base);
    uint64_t hard = amount_of(&t->limits.hard, whole);
    uint64_t floors = domain_floor(f, base);
    for (const struct device *d = base->domains; d != NULL; d = d->domain_next) {
        bool comes = d->wanted && (d->grant > 0 || d->lease.wanted > 0); /* it has a place */
        bool stays = d->state != DEVICE_RESTING || comes;
        floors = sat_add(floors, stays && d->owner != t ? domain_floor(f, d) : 0);
    }
    uint64_t most = sat_sub(whole, floors);
    return most < hard ? most : hard;
}

uint64_t domain_grant(const struct front *f, const struct tenant *t, struct device *base)
{
    return grant_beside(f, t, base, base->granted);
}

/* Bytes of the device that come back when workers have ended, which do so now. */
static uint64_t coming(const struct device *base)
{
    uint64_t bytes = 0;
    for (const struct device *d = base->domains; d != NULL; d = d->domain_next) {
        bytes += d->state == DEVICE_RESTING && d->worker != 0 ? d->grant : 0;
    }
    return bytes;
}

static void grant_change(struct front *f, struct device *d, uint64_t grant)
{
    struct device *base = d->base;
    if (d->grant == grant) {
        return;
    }
    record_set_lease(d->record, grant);
    base->granted = base->granted - d->grant + grant;
    d->grant = d->memory_limit = grant;
    f->hooks.budget_changed(f, base);
}

static uint64_t idle_at(const struct front *f, const struct device *d)
{
    return ns_add(place_used_ns(d), f->config.domain_idle_s * NS_PER_S);
}

/* ---- what goes with a domain ----------------------------------------------------------------- */

static void detach(struct device *d, struct job *j)
{
    if (j->device == d) {
        j->device = d->base;
        j->epoch = 0; /* of no worker */
    }
}

/* Ended jobs may be asked about, and tell their device, as long as they are listed. The domain has
 * no others (may_go). */
static void detach_jobs(struct front *f, struct device *d)
{
    unsigned count = f->history_count + d->owner->kept_count;
    for (struct job *j = f->leaving; j != NULL; j = j->ended_next, count++) {
        detach(d, j);
    }
    for (struct job *j = f->history; j != NULL; j = j->ended_next) {
        detach(d, j);
    }
    for (struct job *j = d->owner->kept; j != NULL; j = j->kept_next) {
        detach(d, j);
    }
    turn_count(f, count / JOBS_A_UNIT);
}

/* Its record says which requests must not run again, until their answers are acknowledged. */
static bool may_go(const struct device *d, const struct device_set *any)
{
    return d->state == DEVICE_RESTING && d->worker == 0 && !d->wanted && !d->losing &&
           d->jobs == 0 && !device_set_has(any, d->index) && d->restoring == NULL &&
           record_used(d->record) == 0 && d->input_range.used == 0 && d->output_range.used == 0;
}

static void drop(struct front *f, struct device *d)
{
    struct device **at = &d->base->domains;
    detach_jobs(f, d);
    f->hooks.device_removed(f, d);
    while (*at != d) {
        at = &(*at)->domain_next;
    }
    *at = d->domain_next;
    turn_forget(&d->base->turn, d);
    if (f->fault_device == d) {
        f->fault_device = NULL;
    }
    if (d->base->growth.wanter == d) {
        d->base->growth.wanter = NULL;
    }
    d->owner->use[d->index] = (struct tenant_use){.asked = 0};
    d->owner->domains--;
    f->device[d->index] = NULL;
    f->domain_count--;
    while (f->domain_end > DEVICES_MAX && f->device[f->domain_end - 1] == NULL) {
        f->domain_end--;
    }
    worker_forget(d);
    free(d);
    f->hooks.device_added(f);
}

/* ---- making ---------------------------------------------------------------------------------- */

/* The device's spare domain; NULL: none. */
static struct device *spare_of(const struct front *f, const struct device *base)
{
    struct device *d = base->domains;
    while (d != NULL && !place_is_spare(f, d)) {
        d = d->domain_next;
    }
    return d;
}

static int refuse(const struct front *f, const struct tenant *t, const struct device *base,
                  struct err *e)
{
    if (f->config.domains_max == 0) {
        return err_set(
            e, ERR_LIMIT,
            "tenant %s needs a worker of its own on device %u, and there may be none "
            "([domains] per_device_max): mark it as trusted, or forbid it to load kernels",
            t->name, base->index);
    }
    return err_set(e, ERR_LIMIT,
                   "tenant %s needs a worker of its own on device %u, and of its %" PRIu64
                   " bytes of memory %" PRIu64
                   " are given to such workers and the others guaranteed: lower [domains] "
                   "memory_percent, or its memory_guaranteed",
                   t->name, base->index, device_whole(base), base->granted);
}

/* The memory of a device that has not been opened is not known yet. On a full device the domain
 * gets what the one leaves that it follows. */
static bool has_memory(const struct front *f, const struct tenant *t, struct device *base)
{
    uint64_t others = sat_sub(base->granted, coming(base));
    uint64_t whole = device_whole(base);
    uint64_t floor = lease_floor(whole, amount_of(&t->limits.guaranteed, whole));
    return places_used(base) >= f->config.domains_max || base->memory == 0 ||
           grant_beside(f, t, base, others) > 0 || domain_most(f, t, base) >= floor;
}

/* false: the device has no spare domain that has yet to get a worker. */
static bool spare_yields(struct front *f, struct device *base)
{
    struct device *d = spare_of(f, base);
    if (d == NULL || d->state != DEVICE_RESTING || !d->wanted) {
        return false;
    }
    d->wanted = false;
    if (d->worker == 0) {
        grant_change(f, d, 0);
    }
    base->spare_ns = ns_add(front_now(f), SPARE_NS);
    return true;
}

/* May the device have one more domain that wants a worker? For its memory the least used idle ones
 * rest, the spare one first. */
static int make_room(struct front *f, struct tenant *t, struct device *base, struct err *e)
{
    if (f->config.domains_max == 0) {
        return refuse(f, t, base, e);
    }
    while (!has_memory(f, t, base)) {
        if (spare_yields(f, base)) {
            continue;
        }
        struct device *out = place_least_used(f, base);
        if (out == NULL) {
            return refuse(f, t, base, e);
        }
        rest_begin(f, out, "another tenant needs the device");
    }
    return place_check(f, t, base, e);
}

static struct device *create(struct front *f, struct tenant *t, struct device *base)
{
    unsigned place = DEVICES_MAX;
    while (place < PLACES_MAX && f->device[place] != NULL) {
        place++;
    }
    struct device *d = place < PLACES_MAX ? calloc(1, sizeof *d) : NULL;
    if (d == NULL) {
        return NULL;
    }
    d->front = f;
    d->index = place;
    d->base = base;
    d->owner = t;
    d->input = d->output = MEMFD_NONE;
    d->streams = 1;
    d->used_ns = front_now(f);
    device_set_state(d, DEVICE_RESTING, "nothing wants it");
    d->domain_next = base->domains;
    base->domains = d;
    f->device[place] = d;
    f->domain_count++;
    f->domain_end = place >= f->domain_end ? place + 1 : f->domain_end;
    t->domains++;
    base->line.joined = false; /* its jobs for any device may run here now */
    f->hooks.device_added(f);
    return d;
}

int domain_want(struct front *f, struct device *d, struct err *e)
{
    if (device_drains(d)) {
        return device_refuse_drained(d, e);
    }
    if (d->owner == NULL) {
        return 0;
    }
    d->used_ns = front_now(f);
    if (d->state != DEVICE_RESTING || d->wanted) {
        d->wanted = d->wanted || device_yields(d); /* its next worker is wanted */
        return 0;
    }
    if (rest_evacuates(d) && places_used(d->base) < f->config.domains_max) {
        rest_stay(f, d);
        return 0;
    }
    int rc = make_room(f, d->owner, d->base, e);
    if (rc == 0) {
        place_ask(f, d);
        d->absences = 0;
        if (d->worker == 0 && place_free(f, d)) { /* else `start` does */
            grant_change(f, d, domain_grant(f, d->owner, d->base));
        }
    }
    return rc;
}

/* A tenant that came back waits for a place, or the settings have fewer now. */
static bool too_many(const struct front *f, const struct device *base)
{
    return places_used(base) > f->config.domains_max;
}

static bool has_worker(const struct device *d)
{
    bool up = d->state == DEVICE_STARTING || d->state == DEVICE_OPENED ||
              d->state == DEVICE_PROBING || d->state == DEVICE_READY;
    return up && d->worker != 0 && d->killed_ns == 0 && d->lease.taken == 0 && !d->losing;
}

static void change_owner(struct front *f, struct device *d, struct tenant *t)
{
    d->owner->use[d->index] = t->use[d->index] = (struct tenant_use){.asked = 0};
    d->owner->domains--;
    t->domains++;
    d->owner = t;
    d->used_ns = front_now(f);
    d->base->line.joined = false; /* its jobs for any device may run here now */
}

/* Does a tenant wait for a place, which the spare worker is to give? */
static bool some_wait(const struct front *f, const struct device *base)
{
    bool some = false;
    for (const struct device *d = base->domains; d != NULL; d = d->domain_next) {
        some = some || (!place_is_spare(f, d) && place_waits(f, d));
    }
    return some;
}

/* The launcher knows before the worker gets anything of the tenant: a next front would take it for
 * a spare one else. */
static struct device *take_spare(struct front *f, struct tenant *t, struct device *base)
{
    struct err e = ERR_INIT;
    struct device *d = spare_of(f, base);
    bool may = d != NULL && has_worker(d) && !some_wait(f, base) && !too_many(f, base);
    uint64_t grant = may ? grant_beside(f, t, base, base->granted - d->grant) : 0;
    if (grant == 0 || grant > d->grant) { /* others would have to give that back first */
        return NULL;
    }
    change_owner(f, d, t);
    place_taken(f, d);
    grant_change(f, d, grant);
    if (worker_name(f, d, &e) != 0) {
        worker_end(f, d, NULL, e.text);
        return d;
    }
    log_about(LOG_DOMAIN, about_device(base), "device %u: the spare worker is tenant %s's now",
              base->index, t->name);
    if (d->state == DEVICE_READY && f->hooks.worker_opened(f, d)) { /* else it does so when it is */
        f->hooks.device_changed(f, d);
        f->hooks.worker_takes(f, d);
        f->hooks.kick(f);
    }
    wake_at(f, front_now(f)); /* for another one */
    return d;
}

static int no_domain(const struct front *f, struct err *e)
{
    int rc = err_set(e, f->domain_count < DOMAINS_MAX ? ERR_NOMEM : ERR_BUSY,
                     "%u workers are of single tenants, or have buffers on the host, or are waited "
                     "for, at most %u: try later",
                     f->domain_count, DOMAINS_MAX);
    e->retry_after_ns = LOOK_NS;
    return rc;
}

int domain_obtain(struct front *f, struct tenant *t, struct device *base,
                  struct device **ret_device, struct err *e)
{
    struct device *d = domain_of(t, base);
    if (device_drains(base)) {
        return device_refuse_drained(base, e);
    }
    d = d == NULL ? take_spare(f, t, base) : d;
    int rc = d == NULL ? make_room(f, t, base, e) : 0;
    if (rc == 0 && d == NULL) {
        d = create(f, t, base);
        rc = d != NULL ? 0 : no_domain(f, e);
    }
    rc = rc == 0 ? domain_want(f, d, e) : rc;
    *ret_device = rc == 0 ? d : NULL;
    return rc;
}

int domain_obtain_any(struct front *f, struct tenant *t, struct err *e)
{
    struct device *best = NULL;
    for (unsigned i = 0; t->apart && i < f->device_count; i++) {
        struct device *base = f->device[i];
        struct device *d = domain_of(t, base);
        if (device_drains(base)) {
            continue;
        }
        if (d != NULL && tenant_may_use(t, i) && device_hopeful(d) &&
            (d->state != DEVICE_RESTING || d->wanted)) {
            d->used_ns = front_now(f);
            return 0;
        }
        bool better =
            tenant_may_use(t, i) && (best == NULL || places_used(base) < places_used(best));
        best = device_hopeful(base) && better ? base : best;
    }
    struct device *ignored = NULL;
    return best != NULL ? domain_obtain(f, t, best, &ignored, e) : 0;
}

struct device *domain_adopt(struct front *f, struct tenant *t, struct device *base)
{
    t->apart = true;
    base->proven = true; /* else there would be no domain on it */
    struct device *d = domain_of(t, base);
    d = d != NULL ? d : create(f, t, base);
    if (d != NULL) {
        place_taken(f, d);
    }
    return d;
}

void domain_keep(struct front *f, struct device *d, uint64_t grant)
{
    if (d->owner == NULL) {
        return;
    }
    grant_change(f, d, grant);
    if (grant == 0) { /* else the next worker would have no limit */
        device_set_state(d, DEVICE_RESTING, "its former worker could not be taken over");
    }
}

/* ---- time ------------------------------------------------------------------------------------ */

/* A worker that is to end still has the memory that the domain lacks which starts. It may take
 * long, as it copies its buffers first. */
static bool must_end_first(const struct device *d, uint64_t grant)
{
    bool some = false;
    for (const struct device *o = d->base->domains; o != NULL; o = o->domain_next) {
        some = some || (o->state == DEVICE_RESTING && o->worker != 0);
    }
    return some && grant == 0;
}

/* Others give a part of theirs (lease.h). */
static void wait_for_lease(struct front *f, struct device *d)
{
    uint64_t now = front_now(f);
    uint64_t whole = device_whole(d);
    device_set_state(d, DEVICE_RESTING, "no memory of the device is left for its worker");
    if (d->lease.wanted == 0) {
        d->lease.wanted = lease_floor(whole, amount_of(&d->owner->limits.guaranteed, whole));
        d->lease.since_ns = d->lease.since_ns != 0 ? d->lease.since_ns : now;
    }
    wake_at(f, ns_add(now, LOOK_NS));
}

/* Has the shared worker given back what this lease begins with? What it could not give it keeps. */
static bool has_come(struct front *f, struct device *d)
{
    struct device *base = d->base;
    uint64_t owed = base->worker != 0 ? base->lease.owed : 0;
    if (owed > 0 && owed <= sat_sub(d->grant, domain_floor(f, d))) {
        grant_change(f, d, d->grant - owed);
        owed = base->lease.owed;
    }
    if (owed > 0) {
        device_set_state(d, DEVICE_RESTING, "the memory for its worker has yet to come back");
        wake_at(f, ns_add(front_now(f), LOOK_NS));
        wake_for_pool(f, base);
    }
    return owed == 0;
}

/* Its turn has yet to come: until then it keeps no memory. */
static bool has_place(struct front *f, struct device *d)
{
    if (place_free(f, d)) {
        return true;
    }
    place_say_waits(f, d);
    d->lease = (struct lease){.wanted = 0};
    grant_change(f, d, 0);
    return false;
}

/* The worker opens the same device, with the same options, as the shared worker. */
static void start(struct front *f, struct device *d)
{
    struct device *base = d->base;
    (void)snprintf(d->backend, sizeof d->backend, "%s", base->backend);
    (void)snprintf(d->pin, sizeof d->pin, "%s", base->pin);
    d->number = base->number;
    bool may = base->proven && base->memory > 0 && device_hopeful(base) && !d->losing &&
               !departing_has(f, d) && device_gets_worker(d);
    uint64_t grant = d->grant > 0 ? d->grant : domain_grant(f, d->owner, base);
    if (place_is_spare(f, d) && (!may || grant == 0)) {
        (void)spare_yields(f, base);
        base->spare_ns = ns_add(front_now(f), LOOK_NS);
        return;
    }
    if (!may || !has_place(f, d) || must_end_first(d, grant)) {
        return; /* the start of the device, or the end of a worker, is the next occasion */
    }
    grant_change(f, d, grant);
    if (grant == 0) {
        wait_for_lease(f, d);
        return;
    }
    if (!has_come(f, d)) {
        return;
    }
    d->lease = (struct lease){.wanted = 0};
    d->proven = true;
    d->wanted = false;
    place_taken(f, d);
    log_about(LOG_DOMAIN, about_device(d), "device %u: a worker for tenant %s starts", base->index,
              d->owner->name);
    worker_start(f, d);
}

/* Ends idle workers, and removes domains that have nothing. */
static void look(struct front *f, uint64_t now)
{
    struct survey s;
    survey_make(f, &s);
    for (unsigned place = DEVICES_MAX; place < f->domain_end; place++) {
        struct device *d = f->device[place];
        bool idle =
            d != NULL && !place_is_spare(f, d) && place_is_quiet(f, d) && now >= idle_at(f, d);
        if (idle && survey_keeper(f, &s, d) == KEEPER_NONE && !device_set_has(&s.asked, d->index)) {
            rest_begin(f, d, "it is idle");
        } else if (d != NULL && may_go(d, &s.any)) {
            drop(f, d);
        }
    }
}

/* When there may be something to end or to remove; NS_NEVER: the next change is the occasion. */
static uint64_t look_at(const struct front *f, const struct device *d)
{
    bool rests = d->state == DEVICE_RESTING && d->worker == 0 && !d->wanted;
    return rests ? 0 : place_is_quiet(f, d) && !place_is_spare(f, d) ? idle_at(f, d) : NS_NEVER;
}

/* Ends, grants and starts that are due. */
static void watch_one(struct front *f, struct device *d, uint64_t now)
{
    if (rest_evacuates(d)) {
        rest_go_on(f, d, now);
    }
    bool bare = d->state == DEVICE_RESTING && d->worker == 0;
    if (bare && d->wanted) {
        start(f, d);
    } else if (bare) {
        grant_change(f, d, 0); /* its worker may have ended before its buffers had gone */
    }
}

void domain_lost(struct front *f, struct device *d)
{
    if (d->owner != NULL && d->state == DEVICE_RESTING && !d->wanted) {
        grant_change(f, d, 0);
    }
}

/* ---- spare workers --------------------------------------------------------------------------- */

static bool memory_wanted(const struct device *base)
{
    bool wanted = base->growth.wanter != NULL || base->lease.wanted > 0;
    for (const struct device *d = base->domains; d != NULL; d = d->domain_next) {
        wanted = wanted || d->lease.wanted > 0;
    }
    return wanted;
}

/* Nothing has to be recalled for as much as a domain begins with. */
static bool memory_free(const struct front *f, const struct device *base)
{
    uint64_t whole = device_whole(base);
    uint64_t floor = domain_floor(f, base);
    uint64_t used = base->pool.size > floor ? base->pool.size : floor;
    uint64_t grant = percent_of(whole, f->config.domain_percent);
    return base->memory > 0 && sat_add(sat_add(base->granted, grant), used) <= whole;
}

static bool spare_allowed(const struct front *f, const struct device *base)
{
    return f->config.domain_spare > 0 && f->config.domains_max > 0 && f->life == FRONT_SERVING &&
           base->proven && device_serves(base) && !memory_wanted(base) && !too_many(f, base);
}

static bool spare_due(const struct front *f, const struct device *base, uint64_t now)
{
    return spare_allowed(f, base) && now >= base->spare_ns && memory_free(f, base) &&
           places_used(base) < f->config.domains_max;
}

static void spare_start(struct front *f, struct device *base, struct device *d)
{
    struct tenant *t = f->spare != NULL ? f->spare : tenant_named(&f->spare, DOMAIN_SPARE);
    d = d == NULL && t != NULL ? create(f, t, base) : d;
    base->spare_ns = ns_add(front_now(f), LOOK_NS);
    if (d != NULL) { /* else without memory */
        t->limits = TENANT_UNLIMITED;
        t->apart = true;
        d->wanted = true;
        wake_at(f, front_now(f));
    }
}

/* The memory that it has given to others is missing where it becomes a tenant's. */
static bool spare_shrank(const struct front *f, const struct device *d)
{
    return d->grant < percent_of(device_whole(d->base), f->config.domain_percent);
}

static void spare_make(struct front *f, struct device *base, struct device *d, uint64_t now)
{
    if (spare_due(f, base, now)) {
        spare_start(f, base, d);
    } else if (spare_allowed(f, base)) {
        wake_at(f, now < base->spare_ns ? base->spare_ns : ns_add(now, LOOK_NS));
    }
}

static void spare_watch(struct front *f, struct device *base, uint64_t now)
{
    struct device *d = spare_of(f, base);
    if (d == NULL || (d->state == DEVICE_RESTING && d->worker == 0 && !d->wanted)) {
        spare_make(f, base, d, now);
    } else if (spare_allowed(f, base) && (d->worker == 0 || !spare_shrank(f, d))) {
        return;
    } else if (!spare_yields(f, base) && place_is_quiet(f, d)) {
        base->spare_ns = ns_add(now, SPARE_NS);
        rest_begin(f, d,
                   too_many(f, base)                           ? "its place is wanted"
                   : memory_wanted(base) || spare_shrank(f, d) ? "memory is wanted"
                                                               : "no spare one is wanted");
    }
}

void domains_watch(struct front *f, uint64_t now)
{
    uint64_t at_ns = NS_NEVER;
    for (unsigned i = 0; i < f->device_count; i++) {
        spare_watch(f, f->device[i], now);
        places_watch(f, f->device[i], now);
    }
    for (unsigned place = DEVICES_MAX; place < f->domain_end; place++) {
        struct device *d = f->device[place];
        if (d != NULL) {
            watch_one(f, d, now);
        }
        uint64_t look_ns = d != NULL ? look_at(f, d) : NS_NEVER;
        at_ns = look_ns < at_ns ? look_ns : at_ns;
    }
    if (at_ns != NS_NEVER && now >= at_ns && now >= f->look_ns) {
        f->look_ns = ns_add(now, LOOK_NS);
        look(f, now);
    }
    if (at_ns != NS_NEVER) {
        wake_at(f, at_ns > f->look_ns ? at_ns : f->look_ns);
    }
}

void domains_give_up(struct front *f, struct device *base,
                     void (*give_up)(struct front *f, struct device *d))
{
    for (struct device *d = base->domains; d != NULL; d = d->domain_next) {
        if (d->state == DEVICE_RESTING && d->wanted) {
            d->wanted = false;
            device_set_state(d, DEVICE_RESTING, base->reason);
            give_up(f, d);
        }
    }
}
