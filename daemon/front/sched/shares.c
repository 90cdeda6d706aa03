#include "daemon/front/sched/shares.h"

#include "daemon/front/model/share.h"
#include "daemon/front/model/wake.h"

#define VIRTUAL_UNIT UINT64_C(1024) /* of virtual time, for a nanosecond at the greatest weight */
#define MEAN_PART    4u             /* a job counts for so much of the mean */

/* ---- tenants in lines ------------------------------------------------------------------------ */

bool shares_reserve(struct front *f, struct tenant *t, const struct job *j)
{
    bool there = true;
    for (unsigned i = 0; i < f->device_count; i++) {
        if (j->device == NULL || j->device == f->device[i]) {
            there = share_join(&t->share, f->device[i]) && there;
        }
    }
    return there;
}

/* A tenant that had no ready jobs goes on where the line is. */
static void stand(struct device *d, struct stake *k, unsigned class)
{
    struct stake_class *of = &k->of[class];
    uint64_t clock = d->line.clock[class];
    if (of->entry.in) {
        return;
    }
    if (of->served < clock) {
        of->served = clock;
        of->refund_ns = 0;
    }
    heap_put(&d->line.stakes[class], &of->entry, of->served, k->share->key, k);
}

/* false: no memory. */
static bool stand_any(struct device *d, struct share *s, unsigned class)
{
    if (!share_join(s, d)) {
        return false;
    }
    stand(d, s->stake[d->index], class);
    return true;
}

/* The tenants with ready jobs for any device join the line of a new one. */
static void join_all(struct front *f, struct device *d)
{
    d->line.joined = true;
    for (struct tenant *t = f->tenants; t != NULL; t = t->hh.next) {
        for (unsigned class = 0; class < CLASS_COUNT; class ++) {
            bool ready = runs_first(&t->share.any[class]) != NULL;
            d->line.joined = (!ready || stand_any(d, &t->share, class)) && d->line.joined;
        }
    }
    if (!d->line.joined) {
        front_try_again(f);
    }
}

static struct runs *runs_of(const struct job *j)
{
    struct share *s = &j->tenant->share;
    unsigned class = job_rank_class(j);
    return j->device != NULL ? &s->stake[j->device->index]->of[class].ready : &s->any[class];
}

void shares_put(struct front *f, struct job *j)
{
    struct tenant *t = j->tenant;
    unsigned class = job_rank_class(j);
    if (t == NULL || j->sched.ready.in) { /* the daemon's own jobs stand in no line */
        return;
    }
    uint64_t key = (uint64_t)j->sched.rank ^ (UINT64_C(1) << 63); /* sorts as the rank does */
    runs_put(runs_of(j), &j->sched.ready, key, j->id, j);
    if (j->device != NULL) {
        j->device->line.bound++;
        stand(j->device, t->share.stake[j->device->index], class);
        return;
    }
    f->any_ready++;
    for (unsigned i = 0; i < f->device_count; i++) {
        struct device *d = f->device[i];
        d->line.joined = d->line.joined && stand_any(d, &t->share, class);
    }
}

void shares_drop(struct front *f, struct job *j)
{
    if (!j->sched.ready.in) {
        return;
    }
    runs_drop(runs_of(j), &j->sched.ready);
    if (j->device != NULL) {
        j->device->line.bound--;
    } else {
        f->any_ready--;
    }
}

bool shares_wait(const struct front *f, const struct device *d)
{
    return f->any_ready + d->line.bound > 0;
}

unsigned shares_ahead(const struct job *j, unsigned max)
{
    unsigned ahead = 0;
    struct share *s = &j->tenant->share;
    for (unsigned class = 0; class <= job_rank_class(j) && j->sched.ready.in; class ++) {
        const struct runs *r =
            j->device != NULL ? &s->stake[j->device->index]->of[class].ready : &s->any[class];
        ahead += runs_ahead(r, &j->sched.ready, max - ahead);
    }
    return ahead;
}

/* ---- the next job ---------------------------------------------------------------------------- */

static struct job *head_of(const struct stake *k, unsigned class)
{
    const struct heap_entry *own = runs_first(&k->of[class].ready);
    const struct heap_entry *any = runs_first(&k->share->any[class]);
    const struct heap_entry *first =
        any == NULL || (own != NULL && heap_before(own, any)) ? own : any;
    return first != NULL ? first->what : NULL;
}

/* The tenant that has had least. Entries are brought up to date when they come first: `served` has
 * grown since, or the jobs went to other devices. */
static struct job *class_head(struct device *d, unsigned class)
{
    struct heap *stakes = &d->line.stakes[class];
    while (stakes->first != NULL) {
        struct stake *k = stakes->first->what;
        struct stake_class *of = &k->of[class];
        struct job *j = head_of(k, class);
        if (j != NULL && of->entry.key == of->served) {
            return j;
        }
        heap_drop(stakes, &of->entry);
        if (j != NULL) {
            heap_put(stakes, &of->entry, of->served, k->share->key, k);
        }
    }
    return NULL;
}

static bool others_fly(const struct line *l)
{
    unsigned flying = 0;
    for (unsigned class = 0; class < CLASS_BATCH; class ++) {
        flying += l->flying[class];
    }
    return flying > 0;
}

bool shares_hold_batch(struct front *f, const struct device *d)
{
    const struct line *l = &d->line;
    bool lively = l->lively_ns != 0 && turn_now(f) < ns_add(l->lively_ns, LIVELY_NS);
    return l->flying[CLASS_BATCH] > 0 && (lively || others_fly(l));
}

/* Whether the device may have one more batch job in flight. If not, the end of a job is the
 * occasion for the next try, or the end of the time in which the device counts as lively. */
static bool batch_may(struct front *f, struct device *d)
{
    if (!shares_hold_batch(f, d)) {
        return true;
    }
    if (!others_fly(&d->line)) {
        f->pressed = true;
        wake_at(f, ns_add(d->line.lively_ns, LIVELY_NS));
    }
    return false;
}

/* Whether batch jobs are owed this one, and those in flight. */
static bool batch_due(const struct line *l, const struct stake *k)
{
    uint64_t each = k->of[CLASS_BATCH].mean_ns;
    return l->owed_ns > 0 && (uint64_t)l->owed_ns >= each * (l->flying[CLASS_BATCH] + 1);
}

struct job *shares_head(struct front *f, struct device *d)
{
    struct line *l = &d->line;
    if (!shares_wait(f, d)) {
        return NULL;
    }
    if (!l->joined) {
        join_all(f, d);
    }
    struct job *batch = l->stakes[CLASS_BATCH].first != NULL ? class_head(d, CLASS_BATCH) : NULL;
    if (batch != NULL && batch_due(l, batch->tenant->share.stake[d->index])) {
        return batch;
    }
    for (unsigned class = 0; class < CLASS_BATCH; class ++) {
        struct job *j = l->stakes[class].first != NULL ? class_head(d, class) : NULL;
        if (j != NULL) {
            return j;
        }
    }
    return batch != NULL && batch_may(f, d) ? batch : NULL;
}

/* ---- what a job costs ------------------------------------------------------------------------ */

static uint64_t virtual_of(const struct share *s, uint64_t ns)
{
    uint64_t weight = s->weight != 0 ? s->weight : TENANT_WEIGHT_USUAL;
    return ns * (VIRTUAL_UNIT * TENANT_WEIGHT_MAX / weight);
}

void shares_taken(struct front *f, struct job *j)
{
    struct line *l = &j->device->line;
    unsigned class = job_rank_class(j);
    struct job_charge *c = &j->sched.charge;
    if (j->tenant == NULL) {
        return;
    }
    struct share *s = &j->tenant->share;
    struct stake_class *of = &s->stake[j->device->index]->of[class];
    line_pass(l, turn_now(f));
    *c = (struct job_charge){.of = of,
                             .class = class,
                             .ns = of->mean_ns,
                             .portion = l->portion,
                             .since_ns = l->portion_ns};
    uint64_t back = of->refund_ns < c->ns ? of->refund_ns : c->ns;
    l->clock[class] = of->served > l->clock[class] ? of->served : l->clock[class];
    of->refund_ns -= back;
    of->served += virtual_of(s, c->ns - back);
    of->flying++;
    l->flying[class]++;
}

/* The job's part of the device while it was there. */
static uint64_t cost_of(struct line *l, const struct job_charge *c, uint64_t ran_ns, uint64_t now)
{
    line_pass(l, now);
    uint64_t time = now - c->since_ns;
    uint64_t part = time > 0 ? (l->portion - c->portion) / time : PORTION_UNIT;
    return part < PORTION_UNIT ? ran_ns * part / PORTION_UNIT : ran_ns;
}

/* What batch jobs are owed while they wait behind others, and what they get of it. */
static void owe(const struct front *f, struct line *l, unsigned class, uint64_t cost)
{
    uint64_t percent = f->config.batch_percent;
    if (class == CLASS_BATCH) {
        l->owed_ns -= (int64_t)cost;
    } else if (l->stakes[CLASS_BATCH].first != NULL) {
        l->owed_ns += (int64_t)(cost * percent / (100 - percent));
    } else {
        l->owed_ns = 0;
    }
    l->owed_ns = l->owed_ns > OWED_MAX ? OWED_MAX : l->owed_ns < -OWED_MAX ? -OWED_MAX : l->owed_ns;
}

void shares_left(struct front *f, struct job *j, uint64_t ran_ns)
{
    struct job_charge *c = &j->sched.charge;
    struct stake_class *of = c->of;
    if (of == NULL) {
        return;
    }
    struct line *l = &j->device->line;
    struct share *s = &j->tenant->share;
    uint64_t cost = cost_of(l, c, ran_ns, turn_now(f));
    of->flying--;
    l->flying[c->class]--;
    if (c->class != CLASS_BATCH) {
        l->lively_ns = turn_now(f);
    }
    if (cost >= c->ns) {
        of->served += virtual_of(s, cost - c->ns);
    } else {
        of->refund_ns += c->ns - cost;
    }
    if (ran_ns > 0) {
        of->mean_ns =
            of->mean_ns == 0 ? cost : of->mean_ns - of->mean_ns / MEAN_PART + cost / MEAN_PART;
    }
    s->device_ns += cost;
    owe(f, l, c->class, cost);
    c->of = NULL;
}
