#include "daemon/front/sched/turns.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/saturate.h"
#include "daemon/front/model/about.h"
#include "daemon/front/model/flight.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/sched/shares.h"
#include "daemon/front/workers/worker.h"

#define COST_PART 8u               /* a switch counts for so much of the mean */
#define SOON_NS   (20 * NS_PER_MS) /* a turn begins, where its job was waited for */
#define HEAR_NS   (50 * NS_PER_MS) /* between two looks for a sign of life */

/* ---- how long a turn is ---------------------------------------------------------------------- */

uint64_t turn_length_ns(const struct turn *t)
{
    uint64_t ns = t->cost_ns < TURN_MOST_NS / TURN_COSTS ? t->cost_ns * TURN_COSTS : TURN_MOST_NS;
    return ns > TURN_LEAST_NS ? ns : TURN_LEAST_NS;
}

void turn_cost(struct turn *t, uint64_t ns)
{
    uint64_t most = sat_mul(t->cost_ns, 2);
    uint64_t part = ns < most ? ns / COST_PART : most / COST_PART;
    uint64_t cost = t->cost_ns == 0 ? ns : t->cost_ns - t->cost_ns / COST_PART + part;
    t->cost_ns = cost > 0 ? cost : 1;
}

/* ---- whose turn it is ------------------------------------------------------------------------ */

/* The workers of a device: the shared one, `base`, then the domains. */
static struct device *next_worker(const struct device *base, const struct device *d)
{
    return d == base ? base->domains : d->domain_next;
}

/* Whether others wait for what the worker has in flight. A job that waits for memory does not keep
 * the device busy. */
static bool occupies(const struct device *d)
{
    const struct job *j = d->inflight;
    while (j != NULL && (j->wait == WAIT_MEMORY || turn_outstays(d, j))) {
        j = j->device_next;
    }
    return j != NULL;
}

static bool is_free_for(struct device *base, const struct device *next)
{
    bool busy = false;
    for (const struct device *d = base; d != NULL && !busy; d = next_worker(base, d)) {
        busy = d != next && occupies(d);
    }
    return !busy;
}

static uint64_t overrun_ns(const struct front *f, const struct turn *t)
{
    return ns_add(turn_length_ns(t), f->config.turn_overrun_ms * NS_PER_MS);
}

static void look_at(struct front *f, struct turn *t, uint64_t at_ns)
{
    if (t->look_ns == 0 || at_ns < t->look_ns) {
        t->look_ns = at_ns;
        wake_at(f, at_ns);
    }
}

/* What a switch costs is measured where the next job was ready before the last one ended. */
static void begin(struct front *f, struct turn *t, struct device *d, bool drained)
{
    struct device *before = t->holder;
    uint64_t quit_ns = before != NULL && t->rival_ns != 0 ? before->quit_ns : 0;
    bool waited = quit_ns > t->rival_ns && turn_now(f) < ns_add(quit_ns, SOON_NS);
    t->left_ns = waited ? quit_ns : 0;
    if (before != NULL) { /* what follows says nothing about their rates */
        window_break(&before->window);
        window_break(&d->window);
        before->drained = drained;
    }
    t->holder = d;
    t->began_ns = turn_now(f);
    t->rival_ns = 0;
    t->first_ns = 0;
    t->taken++;
}

uint64_t turn_price_ns(const struct turn *t)
{
    return turn_length_ns(t) / (TURN_COSTS / 2);
}

static void wait_for(struct front *f, struct turn *t)
{
    if (t->rival_ns == 0) {
        t->rival_ns = turn_now(f);
        look_at(f, t, ns_add(t->rival_ns, overrun_ns(f, t)));
    }
}

/* The class that the holder's next job may not be behind. A batch job that is due for its part is
 * before jobs of other classes, but these do not pass each other for it. */
static unsigned first_class(struct front *f, struct device *base, const struct job *due)
{
    unsigned class = job_rank_class(due);
    return class == CLASS_BATCH ? shares_class(f, base) : class;
}

/* Whether the turn has room for the holder's next job, though `due` is another worker's. */
static bool has_room(struct front *f, struct device *base, const struct job *next,
                     const struct job *due)
{
    const struct turn *t = &base->turn;
    uint64_t now = turn_now(f);
    uint64_t until = base->line.until_ns > now ? base->line.until_ns : now;
    return !t->holder->shut && until < ns_add(t->began_ns, turn_length_ns(t)) &&
           job_rank_class(next) <= first_class(f, base, due);
}

/* `due` is the job of another worker, `goal`. The job that goes now, and whose turn it is then;
 * NULL: none goes until the holder has nothing in flight. */
static struct job *change(struct front *f, struct device *base, struct job *due,
                          struct device *goal, struct device **ret_worker)
{
    struct turn *t = &base->turn;
    struct device *holder = t->holder;
    struct job *next = holder != NULL ? shares_own_head(f, holder) : NULL;
    bool keeps = next != NULL && has_room(f, base, next, due);
    if ((keeps && !goal->drained) || !is_free_for(base, goal)) {
        wait_for(f, t);
        *ret_worker = holder;
        return keeps && !goal->drained ? next : NULL;
    }
    if (keeps) {
        shares_pay(due, base, turn_price_ns(t));
    }
    begin(f, t, goal, next == NULL);
    *ret_worker = goal;
    return due;
}

/* Whether a worker has in flight what keeps the device busy until the loop hears of an end: others
 * wait for all of that when they get the turn, however many brief jobs the window allows. */
static bool is_full(struct front *f, const struct device *base, const struct device *d)
{
    unsigned streams = device_usual_streams(d);
    return d->inflight_count > (streams > 1 ? streams : 1) &&
           base->line.until_ns > ns_add(turn_now(f), TURN_LEAST_NS);
}

/* Whether a worker gets no more jobs until some of those in flight end, and all of these have
 * outstayed their turn, or wait for memory: others do not wait for that. */
static bool is_passed(struct front *f, const struct device *base, const struct device *d)
{
    bool full = d->exclusive || d->inflight_count >= device_window(d, f->config.window) ||
                is_full(f, base, d);
    return d->inflight_count > 0 && full && !occupies(d);
}

struct job *turns_head(struct front *f, struct device *base, struct device **ret_worker)
{
    struct turn *t = &base->turn;
    for (struct device *d = base; d != NULL; d = next_worker(base, d)) {
        d->shut =
            d->stopped || !device_takes(d) || front_pressed(f, d->index) || is_passed(f, base, d);
    }
    struct job *j = shares_head(f, base);
    struct device *goal = j != NULL ? shares_goal(j, base) : NULL;
    *ret_worker = goal;
    if (goal != NULL && goal != t->holder) {
        j = change(f, base, j, goal, ret_worker);
    } else if (goal != NULL && !is_free_for(base, goal)) { /* with a job that stood in no line */
        wait_for(f, t);
        j = NULL;
    }
    look_at(f, t, ns_add(turn_now(f), overrun_ns(f, t)));
    return j != NULL && !is_full(f, base, *ret_worker) ? j : NULL;
}

void turns_measure(struct device *d, const struct job *j)
{
    struct turn *t = &device_base(d)->turn;
    uint64_t end = j->ended_ns != 0 ? j->ended_ns : turn_now(d->front);
    if (d == t->holder && j->started_ns >= t->began_ns) {
        t->first_ns = t->first_ns == 0 ? j->started_ns : t->first_ns;
    }
    d->quit_ns = end > d->quit_ns ? end : d->quit_ns;
    if (d == t->holder && t->left_ns != 0 && j->started_ns > t->left_ns) {
        turn_cost(t, j->started_ns - t->left_ns);
        t->left_ns = 0;
    }
}

/* ---- turns that overrun ---------------------------------------------------------------------- */

/* Whether a job of another worker is ready. */
static bool has_rival(struct front *f, struct device *base, const struct device *holder)
{
    for (struct device *d = base; d != NULL; d = next_worker(base, d)) {
        d->shut = d == holder || !device_takes(d);
    }
    return shares_any(f, base);
}

static void overran(struct front *f, struct turn *t, struct device *d, uint64_t since_ns)
{
    enum overrun o = d->owner != NULL ? worker_overran(f, d, since_ns) : OVERRUN_UNSEEN;
    if (o == OVERRUN_UNHEARD) {
        look_at(f, t, ns_add(turn_now(f), HEAR_NS));
        return;
    }
    if (o == OVERRUN_ENDED) {
        t->overruns++;
        t->rival_ns = turn_now(f); /* a worker beside it has its time from now on */
        return;
    }
    log_about(LOG_TURN_OVERRUN, about_device(d),
              "device %u: a worker keeps jobs in flight beyond its turn: others go on beside it",
              device_shown(d));
    d->outstayed_ns = turn_now(f);
    f->hooks.kick(f);
}

/* The turn is over when its length has passed since it began, since another worker waits, since a
 * job of its worker ended last, since it got the first that it has, and since the one that has the
 * device began: that may have waited behind a job that lacked memory. It overruns when it is late
 * for the second time: between the two the loop reads what the worker has sent. */
static void watch_worker(struct front *f, struct device *base, struct device *d, uint64_t now)
{
    struct turn *t = &base->turn;
    const struct job *runs = job_first_running(d);
    uint64_t since = d == t->holder && t->began_ns > t->rival_ns ? t->began_ns : t->rival_ns;
    since = d->ran_ns > since ? d->ran_ns : since;
    since = d->inflight->dispatched_ns > since ? d->inflight->dispatched_ns : since;
    since = runs != NULL && runs->clock.turned_ns > since ? runs->clock.turned_ns : since;
    uint64_t over_ns = ns_add(since, overrun_ns(f, t));
    bool late = d->overdue;
    d->overdue = false;
    if (now < over_ns) {
        look_at(f, t, over_ns);
    } else if (late) {
        overran(f, t, d, since);
    } else {
        d->overdue = true;
        look_at(f, t, now);
    }
}

static void watch(struct front *f, struct device *base, uint64_t now)
{
    struct turn *t = &base->turn;
    for (struct device *d = base; d != NULL; d = next_worker(base, d)) {
        if (!occupies(d)) {
            continue;
        }
        if (!has_rival(f, base, d)) {
            t->rival_ns = d == t->holder ? 0 : t->rival_ns;
            look_at(f, t, ns_add(now, overrun_ns(f, t)));
            continue;
        }
        t->rival_ns = t->rival_ns == 0 ? now : t->rival_ns;
        watch_worker(f, base, d, now);
    }
}

void turns_watch(struct front *f, uint64_t now, bool away)
{
    for (unsigned i = 0; i < f->device_count; i++) {
        struct device *base = f->device[i];
        struct turn *t = &base->turn;
        if (t->look_ns == 0) {
            continue;
        }
        t->rival_ns = away && t->rival_ns != 0 ? now : t->rival_ns;
        if (now < t->look_ns) {
            wake_at(f, t->look_ns);
            continue;
        }
        t->look_ns = 0;
        if (turns_apply(f, base)) {
            watch(f, base, now);
        }
    }
}
