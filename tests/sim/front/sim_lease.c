/* Leases: workers answer for their budgets, and have jobs that wait for more. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/front/model/tenant.h"
#include "daemon/front/workers/lease.h"
#include "tests/sim/front/sim.h"

#define LONG_NS (90 * NS_PER_S) /* some recalls, and the end of a worker that hangs */

#define RECALL_NS (2 * NS_PER_S) /* the front's, after the deadline of a recall */
#define GRACE_NS  (4 * NS_PER_S) /* after the deadline of a recall, until its worker is ended */

static uint64_t memory_of(const struct sim *s)
{
    return s->p.memory_kib * 1024;
}

bool lease_is_slow(const struct sim *s, const struct sim_worker *x, uint64_t salt)
{
    return s->p.slow > 0 && !s->settling && chance_mix(x->id * 64 + salt) % 100 < s->p.slow;
}

uint64_t lease_fat(const struct sim *s, const struct sim_worker *x)
{
    return s->p.slow > 0 && x->id % 3 == 0 && !s->settling ? x->lease.limit / 4 * 3 : 0;
}

/* Bytes that workers of the same hardware may still have. */
static uint64_t held_beside(struct sim *s, const struct sim_worker *x, bool *ret_sure)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < s->workers; i++) {
        const struct sim_worker *y = s->worker[i];
        bool there = y != x && y->state == WORKER_RUNS &&
                     worker_hardware(s, y->number) == worker_hardware(s, x->number);
        sum += there ? y->lease.held : 0;
        *ret_sure = *ret_sure && !(there && (y->silent || y->cut || y->killed || y->lied));
    }
    return sum;
}

/* A worker whose lease grows has nothing that another still has. */
static void check_growth(struct sim *s, const struct sim_worker *x, uint64_t limit)
{
    bool sure = !memory_failed() && !x->lied;
    uint64_t others = held_beside(s, x, &sure);
    if (sure && others + limit > memory_of(s)) {
        sim_fail(s,
                 "lease: worker %" PRIu64 " may have %" PRIu64 " bytes, and others still have "
                 "%" PRIu64 " of %" PRIu64,
                 x->id, limit, others, memory_of(s));
    }
}

void lease_begin(struct sim *s, const struct sim_worker *x, const char *const *args)
{
    for (; *args != NULL && x->number >= DEVICES_MAX; args++) {
        if (strcmp(*args, "--memory-limit") == 0) {
            check_growth(s, x, strtoull(args[1], NULL, 10));
        }
    }
}

void lease_tick(struct sim *s, struct sim_worker *x)
{
    struct sim_lease *l = &x->lease;
    if (l->missing > 0 && s->now_ns > l->fed_ns + 3 * NS_PER_S) {
        l->missing = 0;
        l->held = l->limit;
    }
}

static void on_answer(struct sim *s, const struct hap *h)
{
    struct sim_worker *x = h->actor;
    if (x->state != WORKER_RUNS || x->epoch != h->a || x->lease.asked != h->b) {
        return; /* another budget came before the answer */
    }
    const struct msg_w_budget m = {.asked = x->lease.limit,
                                   .limit = x->lease.limit,
                                   .size = x->lease.limit + x->lease.missing,
                                   .missing = x->lease.missing};
    x->lease.held = x->lease.limit + x->lease.missing;
    x->lease.recalled_ns = 0;
    worker_send(s, x, &schema_msg_w_budget, &m, NULL);
}

static void check_budget(struct sim *s, const struct sim_worker *x, uint64_t limit)
{
    if (limit == 0 || limit > memory_of(s)) {
        sim_fail(s, "lease: worker %" PRIu64 " gets a budget of %" PRIu64 " bytes", x->id, limit);
    }
    if (x->lease.limit != 0 && limit > x->lease.held) {
        check_growth(s, x, limit);
    }
}

static uint64_t floor_of(const struct sim *s, const struct device *d)
{
    bool ruled =
        d->owner != NULL && settings_section(d->owner->name) != SECTION_OTHERS && d->owner->ruled;
    uint64_t guaranteed = ruled ? memory_of(s) / 100 * s->p.guaranteed : 0;
    return guaranteed > memory_of(s) / 64 ? guaranteed : memory_of(s) / 64;
}

static unsigned holders_of(const struct device *base)
{
    unsigned holders = 1;
    for (const struct device *o = base->domains; o != NULL; o = o->domain_next) {
        holders += o->grant > 0 || o->wanted;
    }
    return holders;
}

/* Nobody gives what it is guaranteed, or a 64th. A worker with jobs gives what it does not use, or
 * has beyond an equal part. */
static void check_kept(struct sim *s, const struct device *d, const struct sim_worker *x,
                       const struct msg_f_budget *m)
{
    const struct device *base = d->base != NULL ? d->base : d;
    if (memory_failed() || base->memory == 0) {
        return; /* a new front does not know the device before its shared worker has reported */
    }
    if (m->limit < floor_of(s, d)) {
        sim_fail(s, "lease: worker %" PRIu64 " is to keep %" PRIu64 " bytes, of at least %" PRIu64,
                 x->id, m->limit, floor_of(s, d));
    }
    if (d->base != NULL && d->inflight_count > 0 && m->limit < d->pool.used &&
        m->limit + LEASE_UNIT < memory_of(s) / holders_of(base)) {
        sim_fail(s,
                 "lease: worker %" PRIu64 " has jobs and uses %" PRIu64 " bytes, and is to keep "
                 "%" PRIu64,
                 x->id, d->pool.used, m->limit);
    }
}

static bool waits_longer(const struct sim *s, const struct device *d, const struct device *wanter)
{
    return d != wanter && d->lease.wanted > 0 && s->now_ns >= d->lease.denied_ns &&
           (d->base == NULL || d->grant > 0 || d->wanted) &&
           d->lease.since_ns < wanter->lease.since_ns;
}

/* Memory is recalled for the worker that waits for longest. */
static void check_oldest(struct sim *s, const struct device *d)
{
    const struct device *base = d->base != NULL ? d->base : d;
    const struct device *wanter = base->growth.wanter;
    const struct device *x = base;
    uint64_t begun_ns = base->growth.until_ns - s->f->config.recall_ms * NS_PER_MS - RECALL_NS;
    if (wanter == NULL || d->lease.taken == 0 || begun_ns != s->now_ns) {
        return; /* it shrinks for another reason, or the choice was made before */
    }
    for (; x != NULL; x = x == base ? base->domains : x->domain_next) {
        if (waits_longer(s, x, wanter)) {
            sim_fail(s,
                     "lease: memory is recalled for the worker %" PRIu64 ", and worker %" PRIu64
                     " waits for longer",
                     wanter->worker, x->worker);
        }
    }
}

/* A tenant's worker that gives nothing back is ended. */
static void check_answered(struct sim *s)
{
    uint64_t late = s->f->config.recall_ms * NS_PER_MS + GRACE_NS;
    const struct device *d;
    for (unsigned at = DEVICES_MAX; (d = front_next_device(s->f, &at)) != NULL;) {
        const struct sim_worker *x =
            d->worker != 0 ? worker_of_device(s, worker_slot_of(s, d)) : NULL;
        uint64_t since = x != NULL ? x->lease.recalled_ns : 0;
        since = since > s->stalled_ns || since == 0 ? since : s->stalled_ns;
        if (since > s->opened_ns && s->now_ns > since + late && d->lease.taken > 0 && !x->killed) {
            sim_fail(s, "lease: worker %" PRIu64 " gives nothing back for %" PRIu64 " ms", x->id,
                     (s->now_ns - since) / NS_PER_MS);
        }
    }
}

/* The lease of a tenant's own worker shrinks only when another gets what it gives: also under the
 * next front, which goes on from it. */
void lease_sent(struct sim *s, const struct device *d, struct sim_worker *x,
                const struct msg_f_budget *m)
{
    if (d->base != NULL && m->limit < x->lease.sent && d->lease.taken == 0 && !memory_failed()) {
        sim_fail(s,
                 "lease: worker %" PRIu64 " is recalled from %" PRIu64 " to %" PRIu64
                 " bytes, for no other",
                 x->id, x->lease.sent, m->limit);
    }
    bool recalls = m->limit < x->lease.sent;
    if (recalls) {
        check_kept(s, d, x, m);
        check_oldest(s, d);
    }
    x->lease.owes = x->lease.owes || recalls;
    x->lease.recalled_ns = recalls ? s->now_ns : 0;
    x->lease.sent = m->limit;
}

/* The front ends while a worker gives back. */
static void on_crash(struct sim *s, const struct hap *h)
{
    const struct course_event e = {.kind = COURSE_CRASH};
    struct chance r = chance_of(s->now_ns, 1);
    (void)h;
    front_event(s, &e, &r);
}

/* A recall takes its time. Some workers cannot give all, and one in some never answers. Returns the
 * time that this one takes. */
static uint64_t give_back(struct sim *s, struct sim_worker *x, uint64_t bytes)
{
    struct sim_lease *l = &x->lease;
    uint64_t chance = (x->id * 31 + l->asked * 17) % 64;
    bool slow = lease_is_slow(s, x, l->asked);
    bool mute = chance == 9 || (slow && chance % 4 == 1);
    l->missing = slow && chance % 4 == 0 ? bytes : chance < 8 ? bytes / 2 : 0;
    l->mute = l->mute || (mute && !s->settling && x->number >= DEVICES_MAX);
    if (slow && chance % 8 == 2 && s->p.slow % 3 == 0) {
        sim_at(s, s->now_ns + NS_PER_MS, on_crash, NULL, 0, 0);
    }
    return (1 + chance) * (slow ? 100 : 1) * NS_PER_MS;
}

void lease_budget(struct sim *s, struct sim_worker *x, const struct msg_f_budget *m)
{
    struct sim_lease *l = &x->lease;
    uint64_t ns = NS_PER_MS;
    check_budget(s, x, m->limit);
    l->asked++;
    l->missing = 0;
    if (m->limit < l->limit) {
        ns = give_back(s, x, l->limit - m->limit);
    }
    l->limit = m->limit;
    l->most = m->most;
    l->held = l->held > m->limit ? l->held : m->limit;
    l->fed_ns = s->now_ns;
    if (!l->mute) {
        sim_at(s, s->now_ns + ns, on_answer, x, x->epoch, l->asked);
    }
    for (struct sim_worker_job *j = x->job; j != NULL; j = j->next) {
        j->told = false;
    }
    exec_more(s, x);
}

static void tell(struct sim *s, struct sim_worker *x, struct sim_worker_job *j, bool waits)
{
    const struct msg_w_waiting m = {
        .job = j->id, .waits = waits, .bytes = waits ? j->needs - x->lease.limit : 0};
    j->told = j->waited = true;
    worker_send(s, x, &schema_msg_w_waiting, &m, NULL);
}

/* Some jobs need more than their worker has when they come. */
static void appetite(struct sim *s, const struct sim_worker *x, struct sim_worker_job *j)
{
    uint64_t limit = x->lease.limit;
    bool some = s->p.special == WORLD_DOMAINS && !s->settling && limit > 0 && j->id % 3 == 0;
    j->needs = some ? limit + memory_of(s) / 64 * (1 + j->id % 24) : UINT64_MAX;
    j->hungry_ns = s->now_ns;
}

static void check_wait(struct sim *s, const struct sim_worker *x, const struct sim_worker_job *j)
{
    uint64_t since_ns = j->hungry_ns > s->stalled_ns ? j->hungry_ns : s->stalled_ns;
    if (s->now_ns > since_ns + LONG_NS && !x->silent) {
        sim_fail(s, "lease: job %" PRIu64 " waits for memory, and hears nothing", j->id);
    }
}

/* Does the job wait for its worker's lease to grow? Where that grows no further, its buffers make
 * room. */
bool lease_hungers(struct sim *s, struct sim_worker *x, struct sim_worker_job *j)
{
    const struct sim_lease *l = &x->lease;
    if (j->needs == 0) {
        appetite(s, x, j);
    }
    if (j->needs == UINT64_MAX) {
        return false;
    }
    if (j->needs <= l->limit || j->needs > l->most || l->most <= l->limit) {
        if (j->hungry_ns < s->now_ns) {
            tell(s, x, j, false);
        }
        j->needs = UINT64_MAX;
        return false;
    }
    check_wait(s, x, j);
    if (!j->told) {
        tell(s, x, j, true);
        s->hungry++;
    }
    return true;
}

bool lease_waited(struct sim *s, const struct device *d, uint64_t job)
{
    struct sim_worker *x = worker_of_device(s, worker_slot_of(s, d));
    struct sim_worker_job *j = NULL;
    if (x != NULL) {
        HASH_FIND(hh, x->by_id, &job, sizeof job, j);
    }
    return j != NULL && j->waited;
}

/* All leases of a device together are the device. */
void lease_check(struct sim *s, const struct device *d)
{
    if (d->base == NULL) {
        check_answered(s);
    }
    if (d->base != NULL || d->pool_limit == 0 || d->progress < WORKER_UP || d->link == NULL) {
        return;
    }
    if (d->pool_limit + d->granted != memory_of(s) && !memory_failed() && !s->lies) {
        sim_fail(s, "lease: device %u leases %" PRIu64 " and %" PRIu64 " bytes of %" PRIu64,
                 d->index, d->pool_limit, d->granted, memory_of(s));
    }
}
