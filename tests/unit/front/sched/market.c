#include "tests/unit/front/sched/market.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "daemon/front/model/flight.h"
#include "daemon/front/sched/cap.h"
#include "daemon/front/sched/charge.h"
#include "daemon/front/sched/predict.h"
#include "daemon/front/sched/shares.h"
#include "daemon/front/sched/turns.h"

/* A job of the market: `limit_ns` is the device time that it needs, `ceiling_ns` what is left of
 * that, session_id its seller, and trace_id its end as predicted when it came. */
static uint64_t now_ns;

static uint64_t clock_of_market(void)
{
    return now_ns;
}

static bool none_pressed(const struct link *l)
{
    (void)l;
    return false;
}

/* The market takes jobs after each event. */
static void kicked(struct front *f)
{
    (void)f;
}

static uint64_t random_next(struct market *m)
{
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return m->random;
}

struct market *market_create(unsigned devices, unsigned streams, unsigned window)
{
    struct market *m = calloc(1, sizeof *m);
    ck_assert_ptr_nonnull(m);
    now_ns = 1000 * NS_PER_S;
    m->f.io.now_ns = clock_of_market;
    m->f.io.pressed = none_pressed;
    m->f.hooks.kick = kicked;
    m->f.wake_ns = NS_NEVER;
    m->f.config.window = window;
    m->f.config.turn_overrun_ms = 10000;
    m->f.config.batch_percent = 5;
    m->f.device_count = m->devices = devices;
    m->streams = streams;
    m->window = window;
    m->random = UINT64_C(88172645463325252);
    for (unsigned i = 0; i < devices; i++) {
        m->device[i].front = &m->f;
        m->device[i].index = i;
        m->device[i].streams = streams;
        m->device[i].state = DEVICE_READY;
        m->device[i].link = (struct link *)&m->device[i]; /* it serves; nothing is sent */
        m->device[i].forecast_id = forecast_device("market", i, "");
        m->speed[i] = 1;
        m->f.device[i] = &m->device[i];
    }
    return m;
}

struct seller *market_add(struct market *m, uint64_t weight, unsigned class)
{
    char name[32];
    struct seller *s = &m->seller[m->sellers];
    (void)snprintf(name, sizeof name, "seller%u", m->sellers++);
    *s = (struct seller){.tenant = tenant_named(&m->f.tenants, name),
                         .class = class,
                         .backlog = 8,
                         .least_ns = NS_PER_MS,
                         .most_ns = NS_PER_MS,
                         .device = 0};
    ck_assert_ptr_nonnull(s->tenant);
    s->tenant->limits.weight = weight;
    return s;
}

void market_apart(struct market *m, struct seller *s)
{
    struct device *base = &m->device[s->device];
    struct device *d = calloc(1, sizeof *d);
    ck_assert_ptr_nonnull(d);
    *d = *base;
    d->line = (struct line){.bound = 0};
    d->index = DEVICES_MAX + (unsigned)(s - m->seller);
    d->link = (struct link *)d;
    d->base = base;
    d->owner = s->tenant;
    d->domains = NULL;
    d->domain_next = base->domains;
    base->domains = d;
    m->f.device[d->index] = d;
    s->tenant->apart = true;
    s->domain = d;
}

static struct job *job_new(struct market *m)
{
    if (m->all_count == m->all_room) {
        m->all_room = m->all_room * 2 + 64;
        m->all = realloc(m->all, m->all_room * sizeof *m->all);
        ck_assert_ptr_nonnull(m->all);
    }
    struct job *j = malloc(sizeof *j);
    ck_assert_ptr_nonnull(j);
    m->all[m->all_count++] = j;
    return j;
}

static double part_of_one(struct market *m)
{
    return (double)(random_next(m) >> 11) / (double)(UINT64_C(1) << 53);
}

/* Between them, all logarithms alike. */
static double between(struct market *m, uint64_t least, uint64_t most)
{
    return (double)least * pow((double)most / (double)least, part_of_one(m));
}

static void offer(struct market *m, struct seller *s)
{
    struct job *j = m->free_jobs;
    if (j != NULL) {
        LL_DELETE2(m->free_jobs, j, ended_next);
    }
    j = j != NULL ? j : job_new(m);
    double time = between(m, s->least_ns, s->most_ns);
    uint64_t kind = s->kind + (s->by_size ? (uint64_t)(4 * log2(time)) : 0);
    time *= s->noise > 0 ? 1 + s->noise * (2 * part_of_one(m) - 1) : 1;
    *j = (struct job){.id = ++m->f.next_job,
                      .session_id = (uint64_t)(s - m->seller),
                      .tenant = s->tenant,
                      .job_class = s->class,
                      .submitted_ns = now_ns,
                      .deadline_ns = NS_NEVER,
                      .device = s->domain != NULL ? s->domain
                                : s->device >= 0  ? &m->device[s->device]
                                                  : NULL,
                      .limit_ns = (uint64_t)time,
                      .sched.kind = kind};
    if (s->due_most_ns > 0) {
        j->deadline_ns = now_ns + (uint64_t)between(m, s->due_least_ns, s->due_most_ns);
    }
    j->ceiling_ns = j->limit_ns;
    j->sched.rank = job_rank(j);
    ck_assert(shares_reserve(&m->f, j->tenant, j));
    if (predict_admit(&m->f, j, NULL) != 0) {
        s->refused++;
        LL_PREPEND2(m->free_jobs, j, ended_next);
        return;
    }
    shares_put(&m->f, j);
    j->trace_id = predict_job(&m->f, j).end_ns;
}

static void note_wait(struct seller *s, uint64_t ns)
{
    if (s->wait_count == s->wait_room) {
        s->wait_room = s->wait_room * 2 + 64;
        s->waits = realloc(s->waits, s->wait_room * sizeof *s->waits);
        ck_assert_ptr_nonnull(s->waits);
    }
    s->waits[s->wait_count++] = ns;
}

static void end(struct market *m, struct job *j)
{
    struct seller *s = &m->seller[j->session_id];
    uint64_t cost = shares_left(&m->f, j, now_ns - j->started_ns);
    if (j->late_ns == 0) {
        predict_learn(j, cost);
        s->had_ns += j->limit_ns;
        s->jobs++;
        note_wait(s, now_ns - j->submitted_ns);
        if (j->trace_id != 0) {
            accuracy_note(&s->ends, j->trace_id - j->submitted_ns, now_ns - j->submitted_ns);
        }
    }
    s->missed += j->late_ns != 0;
    turns_ended(j->device, j);
    charge_run(j, cost, false);
    job_leave_device(j);
    LL_PREPEND2(m->free_jobs, j, ended_next);
    if (s->every_ns != 0) {
        return;
    }
    if (s->pause_ns == 0) {
        offer(m, s);
    } else {
        s->next_ns = now_ns + s->pause_ns / 2 + random_next(m) % s->pause_ns;
    }
}

/* The device goes to the worker. */
static void turn_to(struct market *m, const struct device *base, const struct device *d)
{
    const struct device *x = base;
    for (; x != NULL; x = x == base ? base->domains : x->domain_next) {
        m->hardware[base->index].met += x != d && x->inflight_count > 0;
    }
    if (m->hardware[base->index].last != d) {
        m->hardware[base->index].switches += m->hardware[base->index].last != NULL;
        m->hardware[base->index].free_ns = now_ns + m->switch_ns;
        m->hardware[base->index].last = d;
    }
}

static struct job *next_job(struct market *m, struct device *base, struct device **ret_worker)
{
    struct device *d = base;
    struct job *j = NULL;
    if (turns_apply(&m->f, base)) {
        j = turns_head(&m->f, base, ret_worker);
        return j != NULL && (*ret_worker)->inflight_count < m->window ? j : NULL;
    }
    for (; d != NULL; d = d == base ? base->domains : d->domain_next) {
        d->shut = d->inflight_count >= m->window;
    }
    j = base->domains != NULL || !base->shut ? shares_head(&m->f, base) : NULL;
    *ret_worker = j != NULL ? shares_goal(j, base) : NULL;
    return j;
}

static void take(struct market *m, struct device *base)
{
    struct job *j = NULL;
    struct device *d = NULL;
    while ((j = next_job(m, base, &d)) != NULL) {
        turn_to(m, base, d);
        shares_drop(&m->f, j);
        j->device = d;
        j->dispatched_ns = now_ns;
        j->ceiling_ns = (uint64_t)((double)j->limit_ns / m->speed[base->index]) + 1;
        j->stream = 0;
        for (unsigned i = 1; i < m->streams; i++) {
            j->stream = d->stream_ahead_ns[i] < d->stream_ahead_ns[j->stream] ? i : j->stream;
        }
        shares_taken(&m->f, j);
        job_join_device(j);
    }
}

/* The first job of a stream is the one that runs. */
static bool runs(const struct device *d, const struct job *j)
{
    const struct job *first = d->inflight;
    while (first->stream != j->stream) {
        first = first->device_next;
    }
    return first == j;
}

/* When the next job of the worker ends, if nothing else happens. */
static uint64_t next_of(const struct market *m, struct device *d)
{
    const struct device *base = device_base(d);
    uint64_t next = NS_NEVER;
    if (d->inflight != NULL && now_ns < m->hardware[base->index].free_ns) {
        return m->hardware[base->index].free_ns;
    }
    for (struct job *j = d->inflight; j != NULL; j = j->device_next) {
        if (runs(d, j)) {
            if (j->started_ns == 0) {
                uint64_t idle_ns = m->seller[j->session_id].idle_ns;
                j->started_ns = now_ns + idle_ns;
                j->late_ns = now_ns > j->deadline_ns ? now_ns : 0; /* then it does not begin */
                j->ceiling_ns = j->late_ns != 0 ? 0 : idle_ns + j->ceiling_ns;
            }
            uint64_t at = now_ns + j->ceiling_ns * base->line.streams;
            next = at < next ? at : next;
        }
    }
    return next;
}

static uint64_t next_ns(const struct market *m, struct device *base)
{
    uint64_t next = NS_NEVER;
    for (struct device *d = base; d != NULL; d = d == base ? base->domains : d->domain_next) {
        uint64_t at = next_of(m, d);
        next = at < next ? at : next;
    }
    return next;
}

static void run(struct device *d, uint64_t ns, unsigned streams)
{
    for (struct job *j = d->inflight; j != NULL; j = j->device_next) {
        if (runs(d, j) && j->started_ns != 0) {
            uint64_t done = ns / streams;
            j->ceiling_ns -= done < j->ceiling_ns ? done : j->ceiling_ns;
        }
    }
}

static void pass(struct market *m, struct device *base, uint64_t ns)
{
    struct device *d = base;
    unsigned streams = base->line.streams;
    for (; d != NULL; d = d == base ? base->domains : d->domain_next) {
        run(d, ns, streams);
    }
    m->hardware[base->index].busy_ns += streams > 0 ? ns : 0;
    for (d = base; d != NULL; d = d == base ? base->domains : d->domain_next) {
        struct job *next = NULL;
        for (struct job *j = d->inflight; j != NULL; j = next) {
            next = j->device_next;
            if (j->ceiling_ns == 0 && j->started_ns != 0) {
                end(m, j);
            }
        }
    }
}

/* Sellers offer what they have not offered yet. When the next of them does. */
static uint64_t offers(struct market *m)
{
    uint64_t next = NS_NEVER;
    for (unsigned i = 0; i < m->sellers; i++) {
        struct seller *s = &m->seller[i];
        while (s->every_ns != 0 && s->next_ns <= now_ns) {
            offer(m, s);
            s->next_ns =
                (s->next_ns != 0 ? s->next_ns : now_ns) + 1 + random_next(m) % (2 * s->every_ns);
        }
        for (; s->every_ns == 0 && s->offered < s->backlog; s->offered++) {
            offer(m, s);
        }
        if (s->every_ns == 0 && s->next_ns != 0 && s->next_ns <= now_ns) {
            s->next_ns = 0;
            offer(m, s);
        }
        next = s->next_ns != 0 && s->next_ns < next ? s->next_ns : next;
    }
    return next;
}

void market_run(struct market *m, uint64_t ns)
{
    uint64_t until = now_ns + ns;
    while (now_ns < until) {
        uint64_t next = offers(m);
        for (unsigned i = 0; i < m->devices; i++) {
            take(m, &m->device[i]);
        }
        for (unsigned i = 0; i < m->devices; i++) {
            uint64_t at = next_ns(m, &m->device[i]);
            next = at < next ? at : next;
        }
        next = m->f.wake_ns < next ? m->f.wake_ns : next;
        next = next < until ? next : until;
        m->f.wake_ns = m->f.wake_ns <= next ? NS_NEVER : m->f.wake_ns;
        uint64_t passed = next - now_ns;
        now_ns = next;
        caps_watch(&m->f, now_ns);
        for (unsigned i = 0; i < m->devices; i++) {
            pass(m, &m->device[i], passed);
        }
    }
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

uint64_t market_wait_ns(struct seller *s, double percent)
{
    ck_assert_uint_gt(s->wait_count, 0);
    qsort(s->waits, s->wait_count, sizeof *s->waits, by_size);
    return s->waits[(size_t)((double)(s->wait_count - 1) * percent / 100)];
}

void market_destroy(struct market *m)
{
    for (size_t i = 0; i < m->all_count; i++) {
        shares_drop(&m->f, m->all[i]);
    }
    ck_assert_uint_eq(m->f.any_ready, 0);
    for (unsigned i = 0; i < m->devices; i++) {
        ck_assert_uint_eq(m->device[i].line.bound, 0);
    }
    for (size_t i = 0; i < m->all_count; i++) {
        free(m->all[i]);
    }
    for (unsigned i = 0; i < m->sellers; i++) {
        free(m->seller[i].waits);
    }
    tenant_destroy_all(&m->f.tenants);
    for (unsigned i = 0; i < m->sellers; i++) {
        free(m->seller[i].domain);
    }
    for (unsigned i = 0; i < m->devices; i++) {
        line_finish(&m->device[i].line);
    }
    free(m->all);
    free(m);
}
