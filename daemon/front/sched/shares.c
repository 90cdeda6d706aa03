#include "daemon/front/sched/shares.h"

#include <utlist.h>

#include "common/saturate.h"
#include "daemon/front/model/domain.h"
#include "daemon/front/model/flight.h"
#include "daemon/front/model/share.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/sched/cap.h"
#include "daemon/front/sched/predict.h"

#define MEAN_PART 4u                /* a job counts for so much of the mean */
#define PEAK_PART 16u               /* and takes so much of the peak away */
#define RISK_NS   (100 * NS_PER_MS) /* of a tenant's jobs in flight, where others wait */
#define LEAD_NS   (20 * NS_PER_MS)  /* of a tenant that goes before one that may not go */

/* ---- tenants in lines ------------------------------------------------------------------------ */

bool shares_reserve(struct front *f, struct tenant *t, const struct job *j)
{
    bool there = true;
    for (unsigned i = 0; i < f->device_count; i++) {
        if (j->device == NULL || device_base(j->device) == f->device[i]) {
            there = share_join(&t->share, t, f->device[i]) && there;
        }
    }
    return there;
}

/* A tenant that had no ready jobs goes on where the line is. */
static void stand(struct device *d, struct stake *k, unsigned class)
{
    struct stake_class *of = &k->of[class];
    uint64_t clock = d->line.clock[class];
    if (tournament_has(&d->line.stakes[class], of->seat) || k->due.in) {
        return;
    }
    of->served = of->served < clock ? clock : of->served;
    tournament_put(&d->line.stakes[class], of->seat, of->served, k->tenant->key, k);
}

/* The tenant's jobs for any device may run on this one, but for a tenant that has no domain there.
 * false: no memory. */
static bool stand_any(struct device *d, struct tenant *t, unsigned class)
{
    if (domain_of(t, d) == NULL || !tenant_may_use(t, d->index)) {
        return true;
    }
    if (!share_join(&t->share, t, d)) {
        return false;
    }
    stand(d, t->share.stake[d->index], class);
    return true;
}

/* The tenants with ready jobs for any device join the line of a new one. */
static void join_all(struct front *f, struct device *d)
{
    d->line.joined = true;
    for (struct tenant *t = f->tenants; t != NULL; t = t->hh.next) {
        for (unsigned class = 0; class < CLASS_COUNT; class ++) {
            bool ready = runs_first(&t->share.any[class]) != NULL;
            d->line.joined = (!ready || stand_any(d, t, class)) && d->line.joined;
        }
    }
    if (!d->line.joined) {
        front_try_again(f);
    }
}

/* Where ready jobs of the class are that may run where `j` may. */
static struct runs *runs_of(const struct job *j, unsigned class)
{
    struct share *s = &j->tenant->share;
    return j->device != NULL ? &s->stake[device_shown(j->device)]->of[class].ready : &s->any[class];
}

void shares_put(struct front *f, struct job *j)
{
    struct tenant *t = j->tenant;
    unsigned class = job_rank_class(j);
    if (t == NULL || j->sched.ready.in) { /* the daemon's own jobs stand in no line */
        return;
    }
    uint64_t key = (uint64_t)j->sched.rank ^ (UINT64_C(1) << 63); /* sorts as the rank does */
    runs_put(runs_of(j, class), &j->sched.ready, key, j->id, j);
    predict_ready(f, j);
    if (j->device != NULL) {
        struct device *base = device_base(j->device);
        base->line.bound++;
        stand(base, t->share.stake[base->index], class);
        return;
    }
    f->any_ready++;
    for (unsigned i = 0; i < f->device_count; i++) {
        struct device *d = f->device[i];
        d->line.joined = d->line.joined && stand_any(d, t, class);
    }
}

void shares_drop(struct front *f, struct job *j)
{
    if (!j->sched.ready.in) {
        return;
    }
    const struct heap_entry *next = runs_next(&j->sched.ready);
    if (next != NULL) {
        job_fetch(job_of_ready(next));
    }
    runs_drop(runs_of(j, job_rank_class(j)), &j->sched.ready);
    predict_taken(f, j);
    if (j->device != NULL) {
        device_line(j->device)->bound--;
    } else {
        f->any_ready--;
    }
}

bool shares_wait(const struct front *f, struct device *d)
{
    return f->any_ready + device_line(d)->bound > 0;
}

unsigned shares_ahead(const struct job *j, unsigned max)
{
    unsigned ahead = 0;
    for (unsigned class = 0; j->sched.ready.in && class <= job_rank_class(j); class ++) {
        ahead += runs_ahead(runs_of(j, class), &j->sched.ready, max - ahead);
    }
    return ahead;
}

/* ---- the next job ---------------------------------------------------------------------------- */

/* Jobs for any device go to none that is drained. */
static struct job *head_of(const struct stake *k, const struct device *base, unsigned class)
{
    const struct heap_entry *own = runs_first(&k->of[class].ready);
    bool may = tenant_may_use(k->tenant, k->device) && !device_drains(base);
    const struct heap_entry *any = may ? runs_first(&k->tenant->share.any[class]) : NULL;
    const struct heap_entry *first =
        any == NULL || (own != NULL && heap_before(own, any)) ? own : any;
    struct job *j = first != NULL ? first->what : NULL;
    if (j != NULL) {
        job_fetch(j);
    }
    return j;
}

static uint64_t virtual_of(const struct tenant *t, uint64_t ns)
{
    return (ns * TENANT_WEIGHT_USUAL + t->limits.weight - 1) / t->limits.weight;
}

/* A tenant must not fill all streams with long jobs before the first of them is charged: others
 * would wait for all of them. */
static bool risky(const struct device *d, const struct stake_class *of)
{
    unsigned streams = device_usual_streams(d);
    return of->flying >= (streams > 1 ? streams - 1 : 1) &&
           (of->mean_ns == 0 || of->peak_ns * of->flying > RISK_NS);
}

struct device *shares_goal(const struct job *j, struct device *base)
{
    return j->device != NULL ? j->device : domain_of(j->tenant, base);
}

/* Tenants that were at their caps come back to the line. */
static void come_back(struct front *f, struct device *base)
{
    struct stake *k;
    while ((k = agenda_due(&base->line.capped, turn_now(f))) != NULL) {
        agenda_drop(&base->line.capped, &k->due);
        for (unsigned class = 0; class < CLASS_COUNT; class ++) {
            if (head_of(k, base, class) != NULL) {
                stand(base, k, class);
            }
        }
    }
    wake_at(f, agenda_next_ns(&base->line.capped)); /* the timer fired for the first only */
}

/* Whether all that the worker has in flight has outstayed its turn. */
static bool outstays(const struct device *d)
{
    const struct job *j = d->inflight;
    while (j != NULL && turn_outstays(d, j)) {
        j = j->device_next;
    }
    return d->inflight != NULL && j == NULL;
}

/* Whether all that the workers of a device have in flight has outstayed its turn. No domain. */
static bool all_outstay(const struct device *base)
{
    bool all = base->inflight == NULL || outstays(base);
    for (const struct device *d = base->domains; d != NULL && all; d = d->domain_next) {
        all = d->inflight == NULL || outstays(d);
    }
    return all;
}

/* Takes tenants out of the line that have no ready job, whose worker takes none now, that are at
 * their caps, or that may have no more in flight beside others, until the first one has none of
 * this. Returns its job; *ret_passed: those that have ready jobs, without those at their caps. */
static struct job *search(struct front *f, struct device *base, unsigned class,
                          struct stake **ret_passed)
{
    struct tournament *stakes = &base->line.stakes[class];
    for (struct stake *k; (k = tournament_first(stakes)) != NULL;) {
        struct job *j = head_of(k, base, class);
        const struct device *goal = j != NULL ? shares_goal(j, base) : NULL;
        bool others =
            *ret_passed != NULL || stakes->count > 1 || device_flying(base) > k->of[class].flying;
        bool capped = goal != NULL && cap_holds(f, k);
        if (goal != NULL && !capped && !goal->shut && !(others && risky(goal, &k->of[class]))) {
            return j;
        }
        tournament_drop(stakes, k->of[class].seat);
        if (goal != NULL && !capped) {
            k->away = (goal->shut && !device_takes(goal)) || outstays(goal);
            k->passed = *ret_passed;
            *ret_passed = k;
        }
    }
    return NULL;
}

/* A tenant goes back to its place. One that is away saves nothing up. */
static void put_back(struct line *l, struct stake *k, unsigned class)
{
    struct stake_class *of = &k->of[class];
    of->served = k->away && of->served < l->clock[class] ? l->clock[class] : of->served;
    tournament_put(&l->stakes[class], of->seat, of->served, k->tenant->key, k);
}

static bool stream_idle(const struct device *d)
{
    bool idle = false;
    for (unsigned i = 0; i < device_usual_streams(d) && !idle; i++) {
        idle = d->stream_load[i] == 0;
    }
    return idle;
}

static uint64_t served_of(const struct job *j, const struct device *base, unsigned class)
{
    return j->tenant->share.stake[base->index]->of[class].served;
}

/* The job of the tenant that has had least. Before a tenant that may have no more in flight another
 * one goes, as long as it is no more than LEAD_NS ahead, or a stream would be idle. *ret_waits:
 * there is such a tenant. No tenant waits for a worker that does not serve, nor for one whose jobs
 * have outstayed their turn. */
static struct job *class_head(struct front *f, struct device *base, unsigned class, bool *ret_waits)
{
    struct stake *passed = NULL;
    struct job *found = search(f, base, class, &passed);
    if (found == NULL && passed != NULL && passed->passed == NULL) {
        /* those beside it had no ready job any more, and are in the line no longer */
        put_back(&base->line, passed, class);
        passed = NULL;
        found = search(f, base, class, &passed);
    }
    uint64_t due = found != NULL ? served_of(found, base, class) : UINT64_MAX;
    for (; passed != NULL; passed = passed->passed) {
        put_back(&base->line, passed, class);
        *ret_waits = *ret_waits || !passed->away;
        due = !passed->away && passed->of[class].served < due ? passed->of[class].served : due;
        if (found != NULL && !passed->away && !stream_idle(shares_goal(found, base)) &&
            served_of(found, base, class) >
                passed->of[class].served + virtual_of(found->tenant, LEAD_NS)) {
            found = NULL;
        }
    }
    base->line.due[class] = due;
    return found;
}

static bool others_fly(const struct line *l)
{
    unsigned flying = 0;
    for (unsigned class = 0; class < CLASS_BATCH; class ++) {
        flying += l->flying[class];
    }
    return flying > 0;
}

bool shares_hold_batch(struct front *f, struct device *d)
{
    const struct line *l = device_line(d);
    bool lively = l->lively_ns != 0 && turn_now(f) < ns_add(l->lively_ns, LIVELY_NS);
    return l->flying[CLASS_BATCH] > 0 && (lively || others_fly(l)) && !all_outstay(device_base(d));
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

/* Whether batch jobs have had less than their part. While one is in flight the cost of the next
 * must be known, since it is charged at once. */
static bool batch_due(const struct device *d, const struct stake *k)
{
    const struct line *l = &d->line;
    unsigned flying = l->flying[CLASS_BATCH];
    return l->owed_ns > 0 &&
           (flying == 0 || (k->of[CLASS_BATCH].mean_ns > 0 && flying <= device_usual_streams(d)));
}

static struct job *head_in(struct front *f, struct device *d, unsigned class, bool *ret_waits)
{
    return d->line.stakes[class].count > 0 ? class_head(f, d, class, ret_waits) : NULL;
}

/* Of the classes before batch. */
static struct job *head_before_batch(struct front *f, struct device *d, bool *ret_waits)
{
    struct job *j = NULL;
    for (unsigned class = 0; class < CLASS_BATCH && j == NULL; class ++) {
        j = head_in(f, d, class, ret_waits);
    }
    return j;
}

struct job *shares_head(struct front *f, struct device *d)
{
    if (!shares_wait(f, d)) {
        return NULL;
    }
    if (!d->line.joined) {
        join_all(f, d);
    }
    if (d->line.capped.heap.first != NULL) {
        come_back(f, d);
    }
    bool waits = false;
    bool ignored = false;
    struct job *batch = head_in(f, d, CLASS_BATCH, &ignored);
    if (batch != NULL && batch_due(d, batch->tenant->share.stake[d->index])) {
        return batch;
    }
    struct job *j = head_before_batch(f, d, &waits);
    if (j != NULL && predict_elsewhere(f, d, j)) {
        return NULL;
    }
    bool held = j == NULL && (waits || batch == NULL || !batch_may(f, d));
    return j != NULL ? j : held ? NULL : batch;
}

unsigned shares_class(struct front *f, struct device *d)
{
    bool ignored = false;
    const struct job *j = head_before_batch(f, d, &ignored);
    return j != NULL ? job_rank_class(j) : CLASS_BATCH;
}

/* A domain has the jobs of one tenant. */
static struct job *domain_head(struct front *f, struct device *d)
{
    struct stake *k = d->owner->share.stake[device_shown(d)];
    struct job *j = NULL;
    if (k != NULL && cap_holds(f, k)) {
        return NULL;
    }
    for (unsigned class = 0; k != NULL && class < CLASS_COUNT && j == NULL; class ++) {
        j = head_of(k, d->base, class);
        bool held =
            j != NULL &&
            (risky(d, &k->of[class]) ||
             (class == CLASS_BATCH ? !batch_may(f, d->base) : predict_elsewhere(f, d->base, j)));
        if (held) {
            return NULL;
        }
    }
    return j;
}

struct job *shares_own_head(struct front *f, struct device *d)
{
    if (d->owner != NULL) {
        return domain_head(f, d);
    }
    for (struct device *x = d->domains; x != NULL; x = x->domain_next) {
        x->shut = true;
    }
    return shares_head(f, d);
}

bool shares_any(struct front *f, struct device *d)
{
    bool any = false;
    for (unsigned class = 0; class < CLASS_COUNT && !any; class ++) {
        struct stake *passed = NULL;
        any = search(f, d, class, &passed) != NULL;
        for (; passed != NULL; passed = passed->passed) {
            put_back(&d->line, passed, class);
        }
    }
    return any;
}

/* ---- what a job costs ------------------------------------------------------------------------ */

/* The tenant's place in the line follows. */
static void serve(struct line *l, struct stake *k, unsigned class, uint64_t served)
{
    struct stake_class *of = &k->of[class];
    of->served = served;
    if (tournament_has(&l->stakes[class], of->seat)) {
        tournament_put(&l->stakes[class], of->seat, served, k->tenant->key, k);
    }
}

void shares_pay(const struct job *j, struct device *base, uint64_t ns)
{
    unsigned class = job_rank_class(j);
    struct stake *k = j->tenant->share.stake[base->index];
    serve(&base->line, k, class, k->of[class].served + virtual_of(k->tenant, ns));
}

/* Whether other classes want more of the device than they have. What they leave, a stream or all
 * of it, is no part of what batch jobs are owed: it would be missing from that later. */
static bool contended(struct front *f, struct device *d)
{
    bool waits = false;
    struct device *base = device_base(d);
    return (others_fly(&base->line) && !stream_idle(d)) ||
           head_before_batch(f, base, &waits) != NULL || waits;
}

/* For the cap of the tenant. */
static int64_t expected_ns(const struct job_charge *c)
{
    return (int64_t)(c->ns > 0 ? c->ns : RISK_NS);
}

/* A job of a tenant at `served` is taken. In a turn that tenant may not be the one that is due:
 * tenants that come back stand beside those that wait. */
static void pass_clock(struct line *l, unsigned class, uint64_t served)
{
    uint64_t now = l->due[class] < served ? l->due[class] : served;
    l->clock[class] = now > l->clock[class] ? now : l->clock[class];
}

void shares_taken(struct front *f, struct job *j)
{
    struct line *l = device_line(j->device);
    unsigned class = job_rank_class(j);
    struct job_charge *c = &j->sched.charge;
    if (j->tenant == NULL) {
        return;
    }
    struct stake *k = j->tenant->share.stake[device_shown(j->device)];
    struct stake_class *of = &k->of[class];
    struct estimate cost = predict_cost(j, j->device);
    uint64_t now = turn_now(f);
    line_pass(l, now);
    l->until_ns = (l->until_ns > now ? l->until_ns : now) + cost.ns;
    *c = (struct job_charge){.stake = k,
                             .class = class,
                             .owed = class == CLASS_BATCH && contended(f, j->device),
                             .sure = cost.sure,
                             .ns = cost.ns,
                             .ends_ns = cost.ns > 0 ? l->until_ns : 0,
                             .served = virtual_of(k->tenant, cost.ns),
                             .expected_ns = cost.sure          ? cost.ns
                                            : of->mean_ns == 0 ? RISK_NS
                                                               : of->peak_ns,
                             .portion = l->portion,
                             .since_ns = l->portion_ns,
                             .spent = {0, l->portion, l->portion_ns}};
    cap_charge(f, k, expected_ns(c));
    l->owed_ns -= c->owed ? (int64_t)c->ns : 0;
    pass_clock(l, class, of->served);
    serve(l, k, class, of->served + c->served);
    of->flying++;
    l->flying[class]++;
    l->unsure += !c->sure;
}

void shares_adopted(struct front *f, struct job *j)
{
    struct line *l = device_line(j->device);
    line_pass(l, turn_now(f));
    j->sched.charge = (struct job_charge){
        .portion = l->portion, .since_ns = l->portion_ns, .spent = {0, l->portion, l->portion_ns}};
}

/* A job's part of `ns`: as much of it as it had of the line since `since_ns`, when the line's
 * portion was `portion`. The front may hear of its begin and its end in one turn. */
static uint64_t part_of(struct line *l, uint64_t portion, uint64_t since_ns, uint64_t ns,
                        uint64_t now)
{
    line_pass(l, now);
    uint64_t time = now - since_ns;
    uint64_t streams = l->streams > 0 ? l->streams : 1;
    uint64_t part = time > 0 ? (l->portion - portion) / time : PORTION_UNIT / streams;
    return part < PORTION_UNIT ? ns * part / PORTION_UNIT : ns;
}

/* The job's part of the device while it was there. What it ran before it was adopted has the same
 * part. */
static uint64_t cost_of(struct line *l, const struct job_charge *c, uint64_t ran_ns, uint64_t now)
{
    return part_of(l, c->portion, c->since_ns, ran_ns, now);
}

/* How long the job's worker kept the device for it, where workers take turns, though nothing ran:
 * since its turn's first job began, since the job came, and since the one before it ended. */
static uint64_t kept_ns(const struct job *j)
{
    const struct device *d = j->device;
    const struct device *base = device_base(j->device);
    uint64_t since =
        j->dispatched_ns > base->turn.first_ns ? j->dispatched_ns : base->turn.first_ns;
    since = d->stream_ns[j->stream] > since ? d->stream_ns[j->stream] : since;
    return base->domains != NULL && base->turn.first_ns != 0 ? sat_sub(j->started_ns, since) : 0;
}

/* What batch jobs are owed beside others, and what they get of it. */
static void owe(const struct front *f, struct line *l, const struct job_charge *c, uint64_t cost)
{
    uint64_t percent = f->config.batch_percent;
    int64_t most = l->stakes[CLASS_BATCH].count > 0 ? OWED_MAX : 0;
    if (c->owed) {
        l->owed_ns += (int64_t)c->ns - (int64_t)cost;
    } else if (c->class != CLASS_BATCH) {
        l->owed_ns += (int64_t)(cost * percent / (100 - percent));
    }
    l->owed_ns = l->owed_ns > most ? most : l->owed_ns;
}

static void learn(struct stake_class *of, uint64_t cost)
{
    uint64_t mean = of->mean_ns - of->mean_ns / MEAN_PART + cost / MEAN_PART;
    uint64_t peak = of->peak_ns - of->peak_ns / PEAK_PART;
    mean = of->mean_ns == 0 ? cost : mean;
    of->mean_ns = mean > 0 ? mean : 1;
    of->peak_ns = cost > peak ? cost : peak;
}

/* Since when its stream was the job's: a job behind another one has no part of the device. */
static struct stream_left begin_of(const struct job *j, uint64_t since_ns, uint64_t portion)
{
    const struct stream_left *before = &j->device->stream_left[j->stream];
    return before->ns > since_ns ? *before : (struct stream_left){since_ns, portion};
}

/* The next job of its stream has it since the end of this one, of which the front hears somewhat
 * later. */
static void pass_stream(struct line *l, const struct job *j, uint64_t now)
{
    const struct job_charge *c = &j->sched.charge;
    struct stream_left b = begin_of(j, c->since_ns, c->portion);
    uint64_t end = j->ended_ns > b.ns && j->ended_ns < now ? j->ended_ns : now;
    double part = now > b.ns ? (double)(end - b.ns) / (double)(now - b.ns) : 1;
    j->device->stream_left[j->stream] = (struct stream_left){
        .ns = end, .portion = b.portion + (uint64_t)((double)(l->portion - b.portion) * part)};
}

/* What the job has taken since this was last counted, by its part of the device since then: all
 * parts together are the device at every time. */
static void spend(struct line *l, const struct job *j, struct job_charge *c, uint64_t ran_ns,
                  uint64_t now)
{
    struct stake *k = j->tenant->share.stake[device_shown(j->device)];
    struct stream_left b = begin_of(j, c->spent.at_ns, c->spent.portion);
    uint64_t time = sat_sub(now, b.ns); /* its worker may tell late that it began */
    uint64_t more = sat_sub(ran_ns, c->spent.ran_ns);
    uint64_t ns = part_of(l, b.portion, b.ns, more < time ? more : time, now);
    c->spent.ran_ns = ran_ns;
    c->spent.portion = l->portion;
    c->spent.at_ns = now;
    if (k == NULL || ns == 0) {
        return; /* an adopted job of a tenant that has sent no other */
    }
    if (k->spent_ns == 0) {
        DL_APPEND2(l->spenders, k, spender_prev, spender_next);
    }
    k->spent_ns += ns;
}

void shares_spend(struct front *f, struct device *d)
{
    uint64_t now = turn_now(f);
    for (struct job *j = d->inflight; j != NULL; j = j->device_next) {
        struct job_charge *c = &j->sched.charge;
        if (c->since_ns != 0 && j->tenant != NULL) {
            spend(device_line(d), j, c, job_ran_ns(j, now), now);
        }
    }
}

/* Its tenant's place in the line follows from what it took. What is expected of the device is wrong
 * by as much as jobs took less or more, until it has none. */
static void refund(struct front *f, struct line *l, const struct job_charge *c, uint64_t ran_ns,
                   uint64_t cost, uint64_t kept_ns)
{
    struct stake *k = c->stake;
    struct stake_class *of = &k->of[c->class];
    of->flying--;
    l->flying[c->class]--;
    l->unsure -= !c->sure;
    bool flies = others_fly(l) || l->flying[CLASS_BATCH] > 0;
    l->until_ns = flies ? sat_sub(l->until_ns + cost, c->ns) : turn_now(f);
    if (c->class != CLASS_BATCH) {
        l->lively_ns = turn_now(f);
    }
    serve(l, k, c->class, of->served + virtual_of(k->tenant, cost + kept_ns) - c->served);
    cap_charge(f, k, (int64_t)cost - expected_ns(c));
    if (ran_ns > 0) {
        learn(of, cost);
    }
    owe(f, l, c, cost);
}

uint64_t shares_left(struct front *f, struct job *j, uint64_t ran_ns)
{
    struct job_charge *c = &j->sched.charge;
    if (c->since_ns == 0 || j->tenant == NULL) {
        return 0;
    }
    struct line *l = device_line(j->device);
    uint64_t cost = cost_of(l, c, ran_ns, turn_now(f));
    spend(l, j, c, ran_ns, turn_now(f));
    if (c->stake != NULL) {
        refund(f, l, c, ran_ns, cost, cost_of(l, c, kept_ns(j), turn_now(f)));
    }
    pass_stream(l, j, turn_now(f));
    c->stake = NULL;
    c->since_ns = 0;
    return cost;
}
