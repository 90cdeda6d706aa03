#include "tests/sim/front/rules/sim_shares.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/front/model/tenant.h"
#include "daemon/front/model/window.h"
#include "daemon/front/sched/turns.h"

#define LEAD_NS   (20e6)  /* sched/shares.h: before a tenant that may have no more */
#define RISK_NS   (100e6) /* of one tenant in flight: it may have no more */
#define LOOP_NS   (200e3) /* turns of the loop */
#define BATCH_OFF 0.75    /* of their part: what jobs cost is known a little off */
#define FEW       3u      /* ready jobs at the last look: none may have been left since */
#define USUAL     TENANT_WEIGHT_USUAL
#define PAIRS     (LOAD_FLOWS * LOAD_FLOWS)

/* Times are of a device, in ns: where jobs of several streams run, they divide it. */
struct share_flow {
    double got;               /* so far */
    double switched;          /* while the device went to its worker */
    double longest;           /* of its jobs, without others beside */
    unsigned ended;           /* of them */
    unsigned ready;           /* jobs, as of the last look */
    uint64_t ready_ns;        /* since when its only job is ready; 0: it has more, or none */
    double turns;             /* in which its worker got the device */
    double paid;              /* for the ways to its worker and back, where a turn was cut for it */
    bool waits;               /* some were ready at each look since the next was noted */
    double since[LOAD_FLOWS]; /* least lead of each other flow, since then */
};

struct share_book {
    struct share_device {
        uint64_t at_ns; /* until which is counted */
        unsigned most;  /* jobs in flight at once */
        unsigned ended[LOAD_CLIENTS];
        uint64_t turn_ns; /* when the worker that has the device got it */
        unsigned holder;  /* the client whose worker that is; LOAD_CLIENTS: none's */
        struct {
            unsigned to, from;      /* clients */
            bool dry;               /* `from` had nothing ready then */
        } choice;                   /* the front's, when it last sent a job of another client */
        bool dry[LOAD_CLIENTS];     /* its last turn ended with nothing ready, or little */
        bool drained[LOAD_CLIENTS]; /* and with nothing */
        bool batch_waits;
        double batch_least; /* least that batch jobs were behind, since some wait */
        struct share_flow flow[LOAD_FLOWS];
    } device[DEVICES_MAX];
};

static unsigned class_of(unsigned flow)
{
    return flow % CLASS_COUNT;
}

static double weight_of(const struct sim *s, unsigned flow)
{
    return s->load->client[flow / CLASS_COUNT].weight / (double)USUAL;
}

void shares_book_begin(struct sim *s)
{
    s->book = load_is(s) && s->p.special != WORLD_OVERRUNS ? calloc(1, sizeof *s->book) : NULL;
}

void shares_book_finish(struct sim *s)
{
    free(s->book);
    s->book = NULL;
}

/* ---- the simulation's count ------------------------------------------------------------------ */

/* The first job of each stream has its part of the device. Jobs of each flow that do; others are in
 * [LOAD_FLOWS]. */
static unsigned count_first(const struct sim *s, unsigned device, unsigned count[LOAD_FLOWS + 1])
{
    unsigned all = 0;
    for (unsigned i = 0; i < s->workers; i++) {
        const struct sim_worker *x = s->worker[i];
        bool here = x->state == WORKER_RUNS && worker_hardware(s, x->number) == device;
        unsigned seen = 0; /* a bit for each stream */
        for (const struct sim_worker_job *j = here ? *x->live : NULL; j != NULL; j = j->next) {
            unsigned flow = j->job != NULL && j->job->flow > 0 ? j->job->flow - 1 : LOAD_FLOWS;
            bool first = j->state != WJOB_ENDED && (seen >> j->stream & 1) == 0;
            seen |= first ? 1u << j->stream : 0;
            count[flow] += first;
            all += first;
        }
    }
    return all;
}

/* While the device goes to a worker, nothing runs. */
void shares_pass(struct sim *s)
{
    for (unsigned i = 0; s->book != NULL && i < s->p.devices; i++) {
        struct share_device *d = &s->book->device[i];
        unsigned count[LOAD_FLOWS + 1] = {0};
        bool switches = d->at_ns < s->load->context[i].ready_ns;
        double ns = (double)(s->now_ns - d->at_ns);
        unsigned all = ns > 0 ? count_first(s, i, count) : 0;
        for (unsigned k = 0; k < LOAD_FLOWS && all > 0; k++) {
            struct share_flow *f = &d->flow[k];
            *(switches ? &f->switched : &f->got) += ns * count[k] / all;
        }
        d->at_ns = s->now_ns;
    }
}

void shares_began(struct sim *s, const struct sim_worker *x, const struct sim_job *j, uint64_t ns)
{
    if (s->book != NULL && j != NULL && j->flow > 0) {
        struct share_flow *f = &s->book->device[worker_hardware(s, x->number)].flow[j->flow - 1];
        double took = (double)(ns + s->load->gap_ns);
        f->longest = took > f->longest ? took : f->longest;
    }
}

void shares_ended(struct sim *s, const struct sim_worker *x, const struct sim_job *j)
{
    unsigned device = worker_hardware(s, x->number);
    if (s->book == NULL || j == NULL || j->client->index >= LOAD_CLIENTS) {
        return;
    }
    s->book->device[device].ended[j->client->index]++;
    if (j->flow > 0) {
        s->book->device[device].flow[j->flow - 1].ended++;
        forecast_ended(s, j, device);
    }
}

unsigned shares_known(const struct sim *s, unsigned device, unsigned flow)
{
    return flow < LOAD_FLOWS ? s->book->device[device].flow[flow].ended
                             : s->book->device[device].ended[flow - LOAD_FLOWS];
}

struct share_sum shares_sum(const struct sim *s, unsigned device, unsigned flow)
{
    const struct share_flow *f = &s->book->device[device].flow[flow];
    return (struct share_sum){
        .got = f->got, .longest = f->longest, .turns = f->turns, .ready = f->ready};
}

unsigned shares_most(const struct sim *s, unsigned device)
{
    return s->book->device[device].most;
}

bool shares_drained(const struct sim *s, unsigned device, unsigned client)
{
    return s->book->device[device].drained[client];
}

void shares_anew(struct sim *s)
{
    caps_anew();
    if (s->book != NULL) {
        s->load->anew_ns = s->now_ns;
    }
    for (unsigned i = 0; s->book != NULL && i < s->p.devices; i++) {
        for (unsigned k = 0; k < LOAD_FLOWS; k++) {
            s->book->device[i].flow[k].waits = false;
        }
        s->book->device[i].most = 0;
        s->book->device[i].batch_waits = false;
    }
}

/* ---- what is ready --------------------------------------------------------------------------- */

static void count_ready(struct sim *s)
{
    for (unsigned i = 0; i < s->p.devices; i++) {
        for (unsigned k = 0; k < LOAD_FLOWS; k++) {
            s->book->device[i].flow[k].ready = 0;
        }
    }
    for (const struct job *j = s->f->jobs; j != NULL; j = j->hh.next) {
        bool ready = j->state == JOB_QUEUED && j->sched.ready.in && j->tenant != NULL;
        const struct load_client *t = ready ? load_client_of(s, j->tenant->name) : NULL;
        unsigned flow =
            t != NULL ? load_flow(s, (unsigned)(t - s->load->client), job_rank_class(j)) : 0;
        for (unsigned i = 0; t != NULL && i < s->p.devices; i++) {
            bool may =
                j->device == NULL ? (t->devices >> i & 1) != 0 : device_shown(j->device) == i;
            s->book->device[i].flow[flow].ready += may;
        }
    }
}

static void note_flight(struct sim *s)
{
    for (unsigned i = 0; i < s->f->device_count; i++) {
        const struct device *base = s->f->device[i];
        unsigned flying = base->inflight_count;
        for (const struct device *d = base->domains; d != NULL; d = d->domain_next) {
            flying += d->inflight_count;
        }
        unsigned *most = &s->book->device[i].most;
        *most = flying > *most ? flying : *most;
    }
}

/* ---- what must hold -------------------------------------------------------------------------- */

/* How long a worker may keep the device for jobs that are not due. */
static double turn_ns(const struct sim *s)
{
    double ns = TURN_COSTS * (double)s->load->switch_ns * (s->load->outliers ? 3 : 1.5);
    ns = ns > TURN_LEAST_NS ? ns : TURN_LEAST_NS;
    return !load_rivals(s) ? 0 : ns < TURN_MOST_NS ? ns : TURN_MOST_NS;
}

/* What D + 1 jobs of the flow cost. */
static double flight_ns(const struct sim *s, const struct share_device *d, unsigned flow)
{
    double streams = d->most < s->p.streams ? (d->most > 0 ? d->most : 1) : (double)s->p.streams;
    return d->flow[flow].longest * ((d->most + 1) / streams + 1);
}

/* A tenant of unknown times, or with much in flight, has to leave a stream to others, whatever its
 * weight. */
static bool is_risky(const struct share_device *d, unsigned flow)
{
    return d->flow[flow].ended == 0 || d->flow[flow].longest * d->most > RISK_NS;
}

/* What a tenant was ahead when its weight was less counts for more now. */
static double bound_of(const struct sim *s, const struct share_device *d, unsigned x, unsigned y)
{
    double wx = s->load->client[x / CLASS_COUNT].least_weight / (double)USUAL;
    double wy = s->load->client[y / CLASS_COUNT].least_weight / (double)USUAL;
    return flight_ns(s, d, x) / wx + flight_ns(s, d, y) / wy + (LEAD_NS + turn_ns(s)) / wy +
           (turn_ns(s) + LOOP_NS) / wx;
}

/* gpud charges a job by how many streams had jobs while it was there, also before it began: that is
 * a little off where streams run dry at the end of each turn. */
static double lead(const struct sim *s, const struct share_device *d, unsigned y, unsigned x)
{
    double off = load_rivals(s) ? 0.08 : 0.03;
    double had = (1 - off) * (d->flow[y].got + d->flow[y].paid);
    return had / weight_of(s, y) - d->flow[x].got / weight_of(s, x);
}

static const char *name_of(unsigned class)
{
    static const char *const names[] = {[CLASS_REALTIME] = "realtime",
                                        [CLASS_INTERACTIVE] = "interactive",
                                        [CLASS_BATCH] = "batch"};
    return names[class];
}

static void check_pair(struct sim *s, unsigned device, unsigned x, unsigned y)
{
    struct share_device *d = &s->book->device[device];
    struct share_flow *f = &d->flow[x];
    double now = lead(s, d, y, x);
    f->since[y] = now < f->since[y] ? now : f->since[y];
    double bound = bound_of(s, d, x, y);
    if (now - f->since[y] > bound) {
        sim_fail(s,
                 "shares: on device %u the %s jobs of client %u always wait, and client %u gets "
                 "%.3f ms more by its weight, at most %.3f follow from what is in flight",
                 device, name_of(class_of(x)), x / CLASS_COUNT, y / CLASS_COUNT,
                 (now - f->since[y]) / 1e6, bound / 1e6);
    }
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* The least time for which a worker keeps the device while it has jobs. */
static double least_turn_ns(const struct sim *s)
{
    double ns = TURN_COSTS * (double)s->load->switch_ns / 2;
    return ns < TURN_LEAST_NS ? TURN_LEAST_NS / 2 : ns < TURN_MOST_NS ? ns : TURN_MOST_NS / 2;
}

static unsigned first_ready(const struct share_device *d, unsigned client)
{
    unsigned class = 0;
    while (class < CLASS_COUNT && d->flow[client * CLASS_COUNT + class].ready == 0) {
        class ++;
    }
    return class;
}

static unsigned ready_of(const struct share_device *d, unsigned client)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < CLASS_COUNT; i++) {
        sum += d->flow[client * CLASS_COUNT + i].ready;
    }
    return sum;
}

static double longest_of(const struct share_device *d, unsigned client)
{
    double most = 0;
    for (unsigned i = 0; i < CLASS_COUNT; i++) {
        double ns = d->flow[client * CLASS_COUNT + i].longest;
        most = ns > most ? ns : most;
    }
    return most;
}

/* Now, not as of the last look. */
static bool has_ready(const struct sim *s, unsigned client)
{
    bool any = false;
    for (const struct job *j = s->f->jobs; j != NULL && !any; j = j->hh.next) {
        bool ready = j->state == JOB_QUEUED && j->sched.ready.in && j->tenant != NULL;
        any = ready && load_client_of(s, j->tenant->name) == &s->load->client[client];
    }
    return any;
}

/* The front chooses a worker for the client's job. The client before it may send its next job
 * before the device is there: its turn was over all the same. */
void shares_sent(struct sim *s, unsigned device, unsigned client)
{
    struct share_device *d = &s->book->device[device];
    if (d->choice.to != client) {
        d->choice.from = d->choice.to;
        d->choice.to = client;
        d->choice.dry = !has_ready(s, d->choice.from);
    }
}

/* Whether the worker that had the device had nothing ready. */
static bool left_nothing(const struct share_device *d, unsigned next)
{
    bool chosen = d->choice.from == d->holder && d->choice.to == next;
    return chosen ? d->choice.dry : first_ready(d, d->holder) == CLASS_COUNT;
}

/* A turn lasts, unless its worker has no more jobs, or a job of an earlier class waits, or one of a
 * worker that had none left. Jobs that wait for their tenant's transfer rate leave the line only
 * when they are to go. */
static void check_length(struct sim *s, unsigned device, unsigned next, unsigned class)
{
    const struct share_device *d = &s->book->device[device];
    unsigned before = d->holder;
    double least = least_turn_ns(s) - 2 * longest_of(d, before);
    const struct load_client *t = &s->load->client[before];
    bool cut = class < first_ready(d, before) || d->dry[next] || t->cap > 0 || t->rate > 0;
    for (unsigned i = 0; i < LOAD_CLIENTS; i++) { /* it may have found that its kernel is missing */
        cut = cut || (d->ended[i] == 0 && first_ready(d, i) < first_ready(d, before));
    }
    bool known = d->ended[before] > 30 && d->ended[next] > 30 && ready_of(d, before) > FEW;
    if (!cut && known && first_ready(d, before) < CLASS_BATCH &&
        (double)(s->now_ns - d->turn_ns) < least) {
        sim_fail(s,
                 "turns: the worker of client %u keeps device %u for %" PRIu64
                 " us, and goes on having jobs; %.0f follow from what it costs to go to another",
                 before, device, (s->now_ns - d->turn_ns) / NS_PER_US, least / 1e3);
    }
}

static const struct sim_worker_job *first_load(const struct sim_worker *x)
{
    const struct sim_worker_job *j = *x->live;
    while (j != NULL && (j->state == WJOB_ENDED || j->job == NULL || j->job->flow == 0)) {
        j = j->next;
    }
    return j;
}

void shares_turn(struct sim *s, unsigned device, const struct sim_worker *x)
{
    if (s->book == NULL || s->settling) { /* nothing is counted any more */
        return;
    }
    struct share_device *d = &s->book->device[device];
    const struct sim_worker_job *j = first_load(x);
    unsigned next = j != NULL ? (j->job->flow - 1) / CLASS_COUNT : LOAD_CLIENTS;
    bool own = d->holder < LOAD_CLIENTS && next < LOAD_CLIENTS && d->holder != next;
    if (next < LOAD_CLIENTS) {
        d->flow[j->job->flow - 1].turns++;
    }
    if (own && !s->load->client[next].trusted && !s->load->client[d->holder].trusted) {
        bool dry = left_nothing(d, next);
        bool cut = !dry && (double)(s->now_ns - d->turn_ns) < least_turn_ns(s);
        d->flow[j->job->flow - 1].paid += cut ? 2 * (double)s->load->switch_ns : 0;
        if (!dry && s->now_ns > s->load->anew_ns) {
            check_length(s, device, next, class_of(j->job->flow - 1));
        }
        d->dry[d->holder] = ready_of(d, d->holder) <= FEW;
        d->drained[d->holder] = dry;
    }
    d->holder = next;
    d->turn_ns = s->now_ns;
}

/* A job of the client may be in flight, and none has ended. */
static bool is_new(const struct sim *s, const struct share_device *d, unsigned client)
{
    unsigned sent = 0;
    for (unsigned i = 0; i < LOAD_KINDS; i++) {
        sent += s->load->client[client].sent[i];
    }
    return sent > 0 && d->ended[client] == 0;
}

/* A tenant with one job at a time waits for what is in flight, and until the others have had as
 * much as its last job. */
static void check_wait(struct sim *s, unsigned device, unsigned x)
{
    const struct share_device *d = &s->book->device[device];
    const struct share_flow *f = &d->flow[x];
    unsigned client = x / CLASS_COUNT;
    double way = 2 * (double)s->load->switch_ns;
    double bound = LOOP_NS;
    bool plain = !s->load->outliers && s->p.devices == 1 && f->ended > 2 &&
                 class_of(x) == CLASS_INTERACTIVE && s->load->client[client].cap == 0;
    for (unsigned y = 0; y < LOAD_FLOWS; y++) {
        plain = plain && (class_of(y) >= CLASS_INTERACTIVE || d->flow[y].longest == 0) &&
                !is_new(s, d, y / CLASS_COUNT);
        double by =
            s->load->client[y / CLASS_COUNT].weight / (double)s->load->client[client].least_weight;
        bound += d->flow[y].longest == 0 || y == x
                     ? 0
                     : 2 * flight_ns(s, d, y) + 2 * way + by * (f->longest + way);
    }
    uint64_t since = f->ready_ns > s->load->anew_ns ? f->ready_ns : s->load->anew_ns;
    if (plain && f->ready_ns != 0 && (double)(s->now_ns - since) > bound) {
        sim_fail(
            s,
            "turns: a job of client %u, which has one at a time, waits for device %u for %" PRIu64
            " us, at most %.0f follow from what is in flight",
            client, device, (s->now_ns - since) / NS_PER_US, bound / 1e3);
    }
}

static void check_flow(struct sim *s, unsigned device, unsigned x)
{
    struct share_device *d = &s->book->device[device];
    struct share_flow *f = &d->flow[x];
    bool waits = f->ready > 0 && s->load->client[x / CLASS_COUNT].cap == 0;
    for (unsigned y = class_of(x); y < LOAD_FLOWS; y += CLASS_COUNT) {
        if (y != x && waits && f->waits && !is_risky(d, x) && !is_risky(d, y)) {
            check_pair(s, device, x, y);
        } else {
            f->since[y] = lead(s, d, y, x);
        }
    }
    f->waits = waits;
    unsigned client = x / CLASS_COUNT;
    bool one = f->ready == 1 && s->client[client].jobs == 1 && s->load->client[client].target == 1;
    f->ready_ns = !one ? 0 : f->ready_ns == 0 ? s->now_ns : f->ready_ns;
    check_wait(s, device, x);
}

/* ---- batch jobs ------------------------------------------------------------------------------ */

/* The most that jobs in flight of batch jobs, or of others, cost. */
static double most_flight_ns(const struct sim *s, const struct share_device *d, bool batch)
{
    double most = 0;
    for (unsigned k = 0; k < LOAD_FLOWS; k++) {
        double ns = (class_of(k) == CLASS_BATCH) == batch ? flight_ns(s, d, k) : 0;
        most = ns > most ? ns : most;
    }
    return most;
}

/* Beside others no more batch jobs are in flight than streams, and one: what the briefest of these
 * take, of what the longest others take. */
static double batch_most(const struct sim *s, const struct share_device *d)
{
    double brief = 0;
    double longest = 0;
    double few = (double)s->p.streams + 1;
    for (unsigned k = 0; k < LOAD_FLOWS; k++) {
        const struct load_client *t = &s->load->client[k / CLASS_COUNT];
        double least = (double)t->run_ns[0];
        for (unsigned i = 1; i < LOAD_KINDS; i++) {
            least = (double)t->run_ns[i] < least ? (double)t->run_ns[i] : least;
        }
        least = t->wild ? least / 8 : least;
        bool own = class_of(k) == CLASS_BATCH && d->flow[k].longest > 0;
        brief = own && (brief == 0 || least < brief) ? least : brief;
        longest = !own && d->flow[k].longest > longest ? d->flow[k].longest : longest;
    }
    return d->most <= few || longest == 0 ? 1e9 : few * brief / ((d->most - few) * longest);
}

/* They get a part of what others want all of, as long as some are ready. */
static void check_batch(struct sim *s, unsigned device)
{
    struct share_device *d = &s->book->device[device];
    double part = s->load->percent / (100.0 - s->load->percent);
    double most = batch_most(s, d);
    part = part < most ? part : most;
    bool waits = false;
    double batch = 0;
    double others = 0;
    for (unsigned k = 0; k < LOAD_FLOWS; k++) {
        bool own = class_of(k) == CLASS_BATCH;
        waits = waits || (own && d->flow[k].ready > 0 && !is_risky(d, k) &&
                          s->load->client[k / CLASS_COUNT].cap == 0);
        *(own ? &batch : &others) += d->flow[k].got;
    }
    double behind = BATCH_OFF * part * others - batch;
    d->batch_least = !waits || !d->batch_waits || behind < d->batch_least ? behind : d->batch_least;
    d->batch_waits = waits;
    double bound = 2 * (part + 1) * (most_flight_ns(s, d, false) + turn_ns(s) + LOOP_NS) +
                   4 * most_flight_ns(s, d, true);
    if (behind - d->batch_least > bound) {
        sim_fail(s,
                 "shares: batch jobs always wait for device %u, and are %.3f ms behind their part "
                 "of %u percent, at most %.3f follow from what is in flight",
                 device, (behind - d->batch_least) / 1e6, s->load->percent, bound / 1e6);
    }
}

void shares_check(struct sim *s)
{
    charge_step(s);
    if (s->f != NULL && (load_is(s) || s->p.special == WORLD_DOMAINS)) {
        overrun_step(s);
    }
    if (s->book == NULL) {
        return;
    }
    shares_pass(s);
    if (s->f == NULL || s->settling || s->now_ns == s->stalled_ns || s->f->device_count == 0) {
        shares_anew(s);
        ledger_anew();
        cuts_anew();
        return;
    }
    count_ready(s);
    note_flight(s);
    ledger_check(s);
    cuts_check(s);
    caps_check(s);
    for (unsigned i = 0; i < s->p.devices && i < s->f->device_count; i++) {
        for (unsigned k = 0; k < LOAD_FLOWS; k++) {
            check_flow(s, i, k);
        }
        check_batch(s, i);
    }
}
