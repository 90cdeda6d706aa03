#include "daemon/front/sched/predict.h"

#include <stdlib.h>

#include "common/saturate.h"
#include "daemon/front/model/domain.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/sched/cap.h"
#include "daemon/front/sched/hazard.h"
#include "daemon/front/sched/transit.h"

/* ---- what a job costs ------------------------------------------------------------------------ */

struct estimate predict_cost(const struct job *j, const struct device *d)
{
    struct tenant *t = j->tenant;
    struct estimate x = {0};
    if (t == NULL) {
        return x;
    }
    if (t->forecast.entry != NULL) {
        x = forecast_find(&t->forecast, forecast_key(j->sched.kind, d->forecast_id));
    }
    const struct stake *k = t->share.stake[device_shown(d)];
    if (x.ns == 0 && k != NULL) {
        x.ns = k->of[job_rank_class(j)].mean_ns;
    }
    return x;
}

/* On the mean device of those that serve: all of them together run `count` such jobs in this time.
 */
static struct estimate cost_anywhere(const struct front *f, const struct job *j)
{
    double rate = 0;
    unsigned count = 0;
    bool sure = true;
    if (f->device_count == 1) {
        return predict_cost(j, f->device[0]);
    }
    for (unsigned i = 0; i < f->device_count; i++) {
        const struct device *d = domain_of(j->tenant, f->device[i]);
        struct estimate x = d != NULL ? predict_cost(j, d) : (struct estimate){0};
        count += x.ns > 0;
        rate += x.ns > 0 ? 1.0 / (double)x.ns : 0;
        sure = sure && (x.sure || d == NULL || !device_serves(d));
    }
    return count > 0 ? (struct estimate){.ns = (uint64_t)(count / rate), .sure = sure}
                     : (struct estimate){0};
}

struct estimate predict_time(const struct front *f, const struct job *j)
{
    return j->device != NULL ? predict_cost(j, j->device) : cost_anywhere(f, j);
}

void predict_learn(const struct job *j, uint64_t ns)
{
    const struct job_charge *c = &j->sched.charge;
    struct device *d = j->device;
    if (j->tenant == NULL || d == NULL || ns == 0) {
        return;
    }
    if (c->sure) {
        accuracy_note(&d->accuracy, c->ns, ns);
    }
    forecast_learn(&j->tenant->forecast, forecast_key(j->sched.kind, d->forecast_id), ns);
}

/* ---- what is ready --------------------------------------------------------------------------- */

/* The deadline that alone decides about its place: its own, or that of a job that waits for it, if
 * it has the rank of that one. NS_NEVER: none does. */
static uint64_t due_of(const struct job *j)
{
    bool inherits = j->sched.rank >= 0 && j->sched.rank != job_rank(j);
    uint64_t due = inherits ? (uint64_t)(j->sched.rank % CLASS_RANKS) : j->deadline_ns;
    bool ranks = (inherits || j->priority == 0) && due < ns_add(j->submitted_ns, RANK_SPAN_NS);
    return ranks ? due : NS_NEVER;
}

/* The ready jobs that it stands among. Its place is reserved. */
static struct backlog *backlog_of(const struct job *j, unsigned class)
{
    struct share *s = &j->tenant->share;
    return j->device != NULL ? &s->stake[device_shown(j->device)]->of[class].work
                             : &s->any_work[class];
}

static struct ready_sum *sum_of(struct front *f, const struct job *j, unsigned class)
{
    return j->device != NULL ? &device_line(j->device)->ready[class] : &f->any[class];
}

void predict_ready(struct front *f, struct job *j)
{
    unsigned class = job_rank_class(j);
    struct backlog *b = backlog_of(j, class);
    struct ready_sum *sum = sum_of(f, j, class);
    struct estimate cost = predict_time(f, j);
    uint64_t now = turn_now(f);
    if (b->jobs == 0) {
        b->weight = j->tenant->limits.weight;
        sum->since_ns = sum->weight == 0 ? now : sum->since_ns;
        sum->weight += b->weight;
    }
    uint64_t due = due_of(j);
    if (due != NS_NEVER) {
        backlog_pass(b, now);
    }
    backlog_add(b, &j->sched.work, due, now, cost.ns, cost.sure);
    sum->ns += cost.ns;
    sum->unsure += !cost.sure;
}

void predict_taken(struct front *f, struct job *j)
{
    unsigned class = job_rank_class(j);
    struct backlog *b = backlog_of(j, class);
    struct ready_sum *sum = sum_of(f, j, class);
    sum->ns -= j->sched.work.ns;
    sum->unsure -= !j->sched.work.sure;
    backlog_drop(b, &j->sched.work);
    sum->weight -= b->jobs == 0 ? b->weight : 0;
}

/* ---- when a job will begin ------------------------------------------------------------------- */

/* What is before a job, in the time of the devices that may run it. */
struct ahead {
    double flying_ns;  /* until the device is done with what it has in flight */
    double earlier_ns; /* ready jobs of earlier classes */
    double own_ns;     /* of the tenant, before the job */
    double others_ns;  /* of others in its class, and what they may send meanwhile */
    double pace;       /* of the tenant's own jobs: how long they take beside those of others */
    double parts;      /* devices that divide this among them; the times above are of each */
    unsigned unsure;   /* jobs of the tenant whose times are unknown */
    double cap_ns;     /* until the tenant's cap lets it go */
    double cap_pace;   /* how long its own jobs take at its cap; 0: it has none */
};

static double beside(const struct ahead *a, double own_ns)
{
    double more = own_ns * (a->pace - 1);
    return own_ns + (more < a->others_ns ? more : a->others_ns);
}

/* Beside earlier classes batch jobs have a part of the device all the same. */
static double earlier(const struct front *f, const struct ahead *a, unsigned class, double own_ns)
{
    double percent = (double)f->config.batch_percent;
    double most = class == CLASS_BATCH && percent > 0
                      ? beside(a, own_ns) * (100 - percent) / percent
                      : a->earlier_ns;
    return most < a->earlier_ns ? most : a->earlier_ns;
}

static double wait_of(const struct front *f, const struct ahead *a, unsigned class)
{
    double ns = a->flying_ns + earlier(f, a, class, a->own_ns) + beside(a, a->own_ns);
    double capped_ns = a->cap_ns + a->own_ns * a->cap_pace;
    return ns > capped_ns ? ns : capped_ns;
}

/* Where the tenant's work for the device is done. NULL: nowhere, or that worker does not serve. */
static const struct device *serving_at(const struct tenant *t, struct device *base)
{
    const struct device *d = domain_of(t, base);
    return d != NULL && device_serves(d) ? d : NULL;
}

/* The devices that the tenant's jobs for any device may run on now. */
static unsigned serving(const struct front *f, const struct tenant *t)
{
    unsigned count = 0;
    for (unsigned i = 0; i < f->device_count; i++) {
        count += serving_at(t, f->device[i]) != NULL;
    }
    return count;
}

static bool may_begin(const struct front *f, const struct job *j)
{
    return j->device != NULL ? device_takes(j->device) : serving(f, j->tenant) > 0;
}

/* Others that have been in line for some time are expected to remain for as long. */
static double to_come(const struct ready_sum *sum, bool others, uint64_t now)
{
    return others ? (double)sat_sub(now, sum->since_ns) : 0;
}

/* Adds what the device has of its own. */
static void add_device(struct ahead *a, const struct device *d, const struct job *j, uint64_t now)
{
    static const struct backlog none;
    const struct stake *k = j->tenant->share.stake[device_shown(d)];
    const struct line *l = d->base != NULL ? &d->base->line : &d->line;
    unsigned class = job_rank_class(j);
    a->flying_ns += (double)sat_sub(l->until_ns, now);
    for (unsigned c = 0; c < class; c++) {
        a->earlier_ns += (double)l->ready[c].ns;
    }
    const struct ready_sum *sum = &l->ready[class];
    const struct backlog *own = k != NULL ? &k->of[class].work : &none;
    bool others = sum->weight > (own->jobs > 0 ? own->weight : 0);
    a->others_ns += (double)(sum->ns - own->ns) + to_come(sum, others, now);
}

/* The tenant's jobs before it in a backlog: its own, or the other one that competes with it. all:
 * also those behind it. */
static double own_ns(struct backlog *b, const struct job *j, uint64_t now, bool mine, bool all)
{
    const struct backlog_place *p = &j->sched.work;
    if (due_of(j) != NS_NEVER) {
        backlog_pass(b, now);
    }
    uint64_t ns = all             ? b->ns
                  : mine && p->in ? backlog_before(b, p, due_of(j))
                                  : backlog_before_new(b, due_of(j));
    return (double)ns;
}

/* What is before any job of that class, for any device. */
static void add_any(const struct front *f, struct ahead *a, const struct job *j, uint64_t now,
                    double parts)
{
    unsigned class = job_rank_class(j);
    const struct backlog *own = &j->tenant->share.any_work[class];
    for (unsigned c = 0; c < class; c++) {
        a->earlier_ns += (double)f->any[c].ns / parts;
    }
    bool others = f->any[class].weight > (own->jobs > 0 ? own->weight : 0);
    a->others_ns +=
        (double)(f->any[class].ns - own->ns) / parts + to_come(&f->any[class], others, now);
}

static struct ahead ahead_bound(struct front *f, const struct job *j, struct device *d, bool all)
{
    struct ahead a = {.parts = 1};
    struct backlog none = {.jobs = 0};
    unsigned class = job_rank_class(j);
    unsigned count = serving(f, j->tenant);
    double parts = count > 0 ? count : 1;
    uint64_t now = turn_now(f);
    struct stake *k = j->tenant->share.stake[device_shown(d)];
    struct backlog *bound = k != NULL ? &k->of[class].work : &none;
    struct backlog *any = &j->tenant->share.any_work[class];
    uint64_t weights = f->any[class].weight + device_line(d)->ready[class].weight;
    add_device(&a, d, j, now);
    a.own_ns = own_ns(bound, j, now, true, all) + own_ns(any, j, now, false, false) / parts;
    a.unsure = bound->unsure + any->unsure;
    add_any(f, &a, j, now, parts);
    weights -= (bound->jobs > 0 ? bound->weight : 0) + (any->jobs > 0 ? any->weight : 0);
    a.pace = 1 + (double)weights / (double)j->tenant->limits.weight;
    return a;
}

/* A device with what it has of its own before a job. */
struct stock {
    struct ahead own;
    double ns;
};

static int by_ns(const void *a, const void *b)
{
    const struct stock *x = a;
    const struct stock *y = b;
    return (x->ns > y->ns) - (x->ns < y->ns);
}

static unsigned list_stocks(struct front *f, const struct job *j, struct stock ret[DEVICES_MAX])
{
    unsigned count = 0;
    for (unsigned i = 0; i < f->device_count; i++) {
        const struct device *d = serving_at(j->tenant, f->device[i]);
        struct stock *x = &ret[count];
        if (d != NULL) {
            *x = (struct stock){.ns = 0};
            add_device(&x->own, d, j, turn_now(f));
            x->ns = x->own.flying_ns + x->own.earlier_ns + x->own.others_ns;
            count++;
        }
    }
    qsort(ret, count, sizeof *ret, by_ns);
    return count;
}

/* What any device may run goes to those that have the least of their own, until all have as much.
 * So a job waits for the least time that any number of these would take. */
static struct ahead ahead_anywhere(struct front *f, const struct job *j, bool all)
{
    struct stock stock[DEVICES_MAX];
    struct ahead sum = {.parts = 0};
    struct ahead best = {.parts = 1, .pace = 1};
    unsigned class = job_rank_class(j);
    unsigned count = list_stocks(f, j, stock);
    struct backlog *any = &j->tenant->share.any_work[class];
    double weights = (double)(f->any[class].weight - (any->jobs > 0 ? any->weight : 0));
    double own = own_ns(any, j, turn_now(f), true, all);
    double least_ns = 0;
    for (unsigned i = 0; i < count; i++) {
        double parts = i + 1;
        sum.flying_ns += stock[i].own.flying_ns;
        sum.earlier_ns += stock[i].own.earlier_ns;
        sum.others_ns += stock[i].own.others_ns;
        struct ahead a = {.flying_ns = sum.flying_ns / parts,
                          .earlier_ns = sum.earlier_ns / parts,
                          .own_ns = own / parts,
                          .others_ns = sum.others_ns / parts,
                          .unsure = any->unsure,
                          .pace = 1 + weights / (double)j->tenant->limits.weight,
                          .parts = parts};
        add_any(f, &a, j, turn_now(f), parts);
        double ns = wait_of(f, &a, class);
        if (i == 0 || ns < least_ns) {
            best = a;
            least_ns = ns;
        }
    }
    return best;
}

uint64_t predict_cap_ns(struct front *f, const struct job *j)
{
    uint64_t least = NS_NEVER;
    for (unsigned i = 0; j->tenant != NULL && i < f->device_count; i++) {
        bool may = j->device != NULL ? device_shown(j->device) == i
                                     : tenant_may_use(j->tenant, i) &&
                                           serving_at(j->tenant, f->device[i]) != NULL;
        uint64_t ns = may ? cap_wait_ns(j->tenant->share.stake[i], turn_now(f)) : NS_NEVER;
        least = ns < least ? ns : least;
    }
    return least != NS_NEVER ? least : 0;
}

/* all: before the last of the tenant's jobs of its class. */
static struct ahead ahead_of(struct front *f, const struct job *j, bool all)
{
    struct ahead a =
        j->device != NULL ? ahead_bound(f, j, j->device, all) : ahead_anywhere(f, j, all);
    unsigned percent = j->tenant->limits.device_share;
    if (percent > 0) {
        a.cap_ns = (double)predict_cap_ns(f, j);
        a.cap_pace = 100.0 / percent;
    }
    return a;
}

static struct prediction on_device(struct front *f, const struct job *j)
{
    const struct job_charge *c = &j->sched.charge;
    uint64_t now = turn_now(f);
    struct prediction p = {0};
    if (c->stake != NULL && c->ends_ns > 0 && j->wait != WAIT_MEMORY) {
        p.end_ns = c->ends_ns > now ? c->ends_ns : now;
        p.begin_ns = j->started_ns != 0 ? j->started_ns : sat_sub(p.end_ns, c->ns);
        p.sure = c->sure;
    }
    return p;
}

#define BESIDE_MAX 64u /* jobs that are looked at; behind more, nothing is sure */

/* What readers of the buffer take that wait for the same way and came before: they go first, and
 * stand in no line meanwhile. */
static struct estimate ahead_on_way(const struct front *f, const struct work_use *u)
{
    struct estimate sum = {.sure = true};
    const struct buffer_use *x = u->entry != NULL ? hazard_ahead(u->entry) : NULL;
    unsigned count = 0;
    for (; x != NULL && hazard_beside(x, u->entry) && sum.sure; x = hazard_ahead(x)) {
        bool waits = x->job->state == JOB_QUEUED && x->job->wait == WAIT_RESTORE;
        struct estimate cost = waits ? predict_time(f, x->job) : (struct estimate){.sure = true};
        sum.ns += cost.ns;
        sum.sure = cost.sure && ++count < BESIDE_MAX;
    }
    return sum;
}

/* Of all its buffers the one that most wait for counts. */
static struct estimate first_on_way(const struct front *f, const struct job *j)
{
    struct estimate most = {.sure = true};
    for (unsigned i = 0; i < j->work.use_count; i++) {
        struct estimate x = ahead_on_way(f, &j->work.uses[i]);
        most.ns = x.ns > most.ns ? x.ns : most.ns;
        most.sure = most.sure && x.sure;
    }
    return most;
}

/* Its turn came, and then its buffers went on their way. Others run meanwhile. */
static struct prediction on_way(struct front *f, const struct job *j)
{
    struct prediction p = {0};
    struct estimate cost = predict_time(f, j);
    if (cost.ns > 0 && may_begin(f, j) && transit_began(j)) {
        struct ahead a = ahead_of(f, j, false);
        struct estimate way = transit_of(f, j, turn_now(f));
        uint64_t wait_ns = (uint64_t)wait_of(f, &a, job_rank_class(j));
        struct estimate first = first_on_way(f, j);
        p.begin_ns = ns_add(turn_now(f), way.ns > wait_ns ? way.ns : wait_ns);
        p.begin_ns = ns_add(p.begin_ns, first.ns);
        p.end_ns = ns_add(p.begin_ns, cost.ns);
        p.sure = cost.sure && a.unsure == 0 && way.sure && first.sure;
    }
    return p;
}

struct prediction predict_job(struct front *f, const struct job *j)
{
    struct prediction p = {0};
    if (j->tenant == NULL || job_ended(j)) {
        return p;
    }
    if (j->state != JOB_QUEUED) {
        return on_device(f, j);
    }
    if (j->sched.ready.in && j->sched.work.ns > 0 && may_begin(f, j)) {
        struct ahead a = ahead_of(f, j, false);
        struct estimate way = transit_of(f, j, turn_now(f));
        p.begin_ns = ns_add(turn_now(f), (uint64_t)wait_of(f, &a, job_rank_class(j)));
        p.begin_ns = ns_add(p.begin_ns, way.ns);
        p.end_ns = ns_add(p.begin_ns, j->sched.work.ns);
        p.sure = j->sched.work.sure && a.unsure == 0 && way.sure;
    } else if (j->wait == WAIT_RESTORE) {
        p = on_way(f, j);
    }
    return p;
}

struct prediction predict_behind(struct front *f, const struct job *j, uint64_t from_ns,
                                 uint64_t work_ns)
{
    struct prediction p = {0};
    struct estimate cost = predict_time(f, j);
    if (cost.ns > 0 && may_begin(f, j)) {
        struct ahead a = ahead_of(f, j, false);
        uint64_t ready_ns = ns_add(turn_now(f), (uint64_t)wait_of(f, &a, job_rank_class(j)));
        p.begin_ns = ns_add(from_ns, (uint64_t)beside(&a, (double)work_ns));
        p.begin_ns = p.begin_ns < ready_ns ? ready_ns : p.begin_ns;
        p.end_ns = ns_add(p.begin_ns, cost.ns);
        p.sure = cost.sure && a.unsure == 0;
    }
    return p;
}

/* ---- which device ---------------------------------------------------------------------------- */

#define ENOUGH_NS (2 * NS_PER_MS) /* for a device to have in flight */

bool predict_busy(struct front *f, struct device *d)
{
    const struct line *l = device_line(d);
    uint64_t ns = sat_sub(l->until_ns, turn_now(f));
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        ns += l->ready[c].ns;
    }
    return ns > ENOUGH_NS;
}

/* Are the times of all jobs known that the device has in flight, or that go before others? */
static bool all_known(struct front *f, struct device *d, unsigned class)
{
    const struct line *l = device_line(d);
    unsigned flying = 0;
    unsigned unsure = l->unsure;
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        flying += l->flying[c];
        unsure += c <= class ? l->ready[c].unsure + f->any[c].unsure : 0;
    }
    bool late = flying > 0 && l->until_ns <= turn_now(f); /* they take longer than expected */
    return unsure == 0 && !late &&
           flying == device_flying(device_base(d)); /* else an earlier front sent some */
}

struct estimate predict_wait(struct front *f, const struct job *j, struct device *d)
{
    unsigned class = job_rank_class(j);
    struct ahead a = ahead_bound(f, j, d, false);
    return (struct estimate){.ns = (uint64_t)wait_of(f, &a, class),
                             .sure = a.unsure == 0 && all_known(f, d, class)};
}

/* When all devices would be done with the jobs that any may run, and the earliest end of the job on
 * another one: from now, in ns. */
struct choice {
    double all_ns;
    double best_ns;
};

static struct choice choice_of(struct front *f, const struct device *d, const struct job *j)
{
    struct choice c = {.best_ns = (double)NS_NEVER};
    uint64_t now = turn_now(f);
    unsigned count = 0;
    for (unsigned i = 0; i < CLASS_COUNT; i++) {
        c.all_ns += (double)f->any[i].ns;
    }
    for (unsigned i = 0; i < f->device_count; i++) {
        const struct line *l = &f->device[i]->line;
        const struct device *o = serving_at(j->tenant, f->device[i]);
        struct estimate x = o != NULL ? predict_cost(j, o) : (struct estimate){0};
        bool capped = cap_wait_ns(j->tenant->share.stake[i], now) > 0;
        if (o == NULL || o->exclusive || !x.sure || capped) {
            continue;
        }
        double busy = (double)sat_sub(l->until_ns, now);
        for (unsigned k = 0; k < CLASS_COUNT; k++) {
            busy += (double)l->ready[k].ns;
        }
        count++;
        c.all_ns += busy * (double)j->sched.work.ns / (double)x.ns;
        double end = busy + (double)x.ns;
        c.best_ns = o != d && end < c.best_ns ? end : c.best_ns;
    }
    c.all_ns /= count > 0 ? count : 1;
    return c;
}

bool predict_elsewhere(struct front *f, struct device *base, const struct job *j)
{
    struct line *l = &base->line;
    if (f->device_count < 2 || j->device != NULL || l->bound > 0 ||
        job_rank_class(j) == CLASS_BATCH) {
        return false;
    }
    const struct device *d = domain_of(j->tenant, base);
    struct estimate x = predict_cost(j, d);
    uint64_t now = turn_now(f);
    uint64_t busy = sat_sub(l->until_ns, now);
    double end = (double)busy + (double)x.ns;
    if (x.sure && busy > ENOUGH_NS && d->inflight_count > device_usual_streams(d)) {
        return true; /* the end of a job is the occasion for the next try */
    }
    if (!x.sure || end * f->device_count <= (double)f->any[job_rank_class(j)].ns) {
        return false;
    }
    struct choice c = choice_of(f, d, j);
    bool leaves = end > c.all_ns && end > c.best_ns;
    if (leaves && l->left_job != j->id) {
        l->left_job = j->id;
        l->left_ns = now;
    }
    leaves = leaves && now < ns_add(l->left_ns, x.ns);
    if (leaves) { /* the device is asked again when that time is over */
        f->pressed = true;
        wake_at(f, ns_add(l->left_ns, x.ns));
    }
    return leaves;
}

/* ---- deadlines ------------------------------------------------------------------------------- */

/* A wait is taken to be longer by this part of it, so that jobs which are admitted begin in time
 * though the times of jobs vary. */
#define MARGIN (1.0 / 8)

bool predict_late(uint64_t wait_ns, uint64_t left_ns)
{
    return wait_ns > 0 && (double)wait_ns * (1 + MARGIN) > (double)left_ns;
}

static int refuse(struct front *f, const struct job *j, double wait_ns, double moves_ns,
                  uint64_t cost_ns, struct err *e)
{
    uint64_t left_ns = sat_sub(j->deadline_ns, turn_now(f));
    if (moves_ns > 0) {
        return err_set(
            e, ERR_DEADLINE,
            "it would begin in about %.3f ms and end in about %.3f ms, its deadline to begin "
            "is in %.3f ms: refused, as its buffers need %.3f ms to move to device %u",
            wait_ns / 1e6, (wait_ns + (double)cost_ns) / 1e6, (double)left_ns / 1e6, moves_ns / 1e6,
            device_shown(j->device));
    }
    return err_set(
        e, ERR_DEADLINE,
        "it would begin in about %.3f ms and end in about %.3f ms, its deadline to begin "
        "is in %.3f ms: refused, as other work is before it",
        wait_ns / 1e6, (wait_ns + (double)cost_ns) / 1e6, (double)left_ns / 1e6);
}

/* Jobs of its tenant that are due later were admitted: they go behind it, and must not miss their
 * deadlines for it. */
static int check_others(struct front *f, const struct job *j, uint64_t cost_ns, struct err *e)
{
    if (due_of(j) == NS_NEVER) {
        return 0;
    }
    const struct backlog *b = backlog_of(j, job_rank_class(j));
    struct ahead a = ahead_of(f, j, true);
    double own = (double)b->ns / a.parts;
    const struct backlog_pace pace = {.times = a.pace,
                                      .others_ns = a.others_ns * a.parts,
                                      .least = a.cap_pace,
                                      .part = (1 + MARGIN) / a.parts};
    uint64_t now = turn_now(f);
    uint64_t late = 0;
    double begin = a.flying_ns + earlier(f, &a, job_rank_class(j), own);
    begin = begin > a.cap_ns ? begin : a.cap_ns;
    if (backlog_fits(b, due_of(j), cost_ns, now, ns_add(now, (uint64_t)begin), &pace, &late)) {
        return 0;
    }
    return err_set(e, ERR_DEADLINE,
                   "it would take %.3f ms before jobs of its tenant that begin by their deadlines "
                   "else; the first of these is in %.3f ms",
                   (double)cost_ns / 1e6, (double)sat_sub(late, now) / 1e6);
}

int predict_room(struct front *f, const struct job *j, uint64_t with_ns, struct err *e)
{
    struct estimate cost = predict_time(f, j);
    return may_begin(f, j) && cost.sure ? check_others(f, j, ns_add(cost.ns, with_ns), e) : 0;
}

int predict_admit(struct front *f, const struct job *j, struct err *e)
{
    if (j->deadline_ns == NS_NEVER || j->tenant == NULL || !may_begin(f, j)) {
        return 0;
    }
    struct estimate cost = predict_time(f, j);
    if (!cost.sure) {
        return 0;
    }
    struct ahead a = ahead_of(f, j, false);
    uint64_t now = turn_now(f);
    struct estimate way = transit_of(f, j, now);
    double moves = way.sure ? (double)way.ns : 0;
    double wait = wait_of(f, &a, job_rank_class(j)) + moves;
    if (predict_late((uint64_t)wait, sat_sub(j->deadline_ns, now))) {
        return refuse(f, j, wait, moves, cost.ns, e);
    }
    return check_others(f, j, cost.ns, e);
}
