/* Ends of workers and fronts that come while a job runs: without one little is lost. */
#include "tests/sim/front/sim.h"

#define DOOM_NS  (20 * NS_PER_MS)
#define JUST_NS  (20 * NS_PER_US) /* its end is reported, and its client has no answer yet */
#define STALL_NS (500 * NS_PER_MS)
#define AGAIN_NS (8 * NS_PER_S)
#define LONG_NS  (100 * NS_PER_MS)

static void on_doom(struct sim *s, const struct hap *h)
{
    struct sim_worker *x = h->actor;
    struct chance r = chance_of(x->doom_r, 3);
    enum course_kind kind = (enum course_kind)(x->doom - 1);
    bool there = x->state == WORKER_RUNS && x->epoch == h->a && s->f != NULL;
    if (x->doom != 0 && there && !s->settling) {
        x->doom = 0;
        worker_suffers(s, x, kind, &r);
    }
}

void aim_begins(struct sim *s, struct sim_worker *x, uint64_t ns)
{
    if (x->doom != 0) {
        sim_at(s, s->now_ns + (ns < DOOM_NS ? ns / 2 : DOOM_NS / 2), on_doom, x, x->epoch, 0);
    }
}

static void on_front_doom(struct sim *s, const struct hap *h)
{
    const struct course_event *e = s->doomed;
    (void)h;
    if (e != NULL && s->f != NULL && s->accepts && !s->settling) {
        struct chance r = chance_of(e->r, 2);
        s->doomed = NULL;
        front_event(s, e, &r);
    }
}

bool aim_dooms(struct sim *s, const struct course_event *e)
{
    bool kind = e->kind == COURSE_CRASH || e->kind == COURSE_FALL || e->kind == COURSE_HANDOVER;
    if (!kind || chance_mix(e->r ^ s->p.aim) % 200 >= s->p.aim || s->doomed != NULL) {
        return false;
    }
    s->doomed = e;
    return true;
}

/* The front ends while it runs, or when it has just ended. */
void aim_writes(struct sim *s, const struct sim_job *j, uint64_t ns)
{
    if (s->doomed != NULL && j != NULL && j->writes) {
        uint64_t in_ns = chance_mix(s->doomed->r) % 3 == 0 ? ns + JUST_NS : ns / 2;
        sim_at(s, s->now_ns + (in_ns < DOOM_NS ? in_ns : DOOM_NS), on_front_doom, NULL, 0, 0);
    }
}

static void on_kill(struct sim *s, const struct hap *h)
{
    struct sim_job *j = h->actor;
    if (j->client->state == CLIENT_ON && j->life == j->client->lives &&
        j->outcome == OUTCOME_OPEN && !s->settling) {
        ask_cancel_of(s, j, true);
    }
}

/* Where it is the tenant's own, some clients of jobs that wrote something want it to end. */
void aim_endless(struct sim *s, struct sim_worker *x, struct sim_job *j)
{
    bool aims = j != NULL && s->p.special == WORLD_DOMAINS && x->number >= DEVICES_MAX;
    if (aims && j->writes && chance_mix(j->r) % 2 == 0) {
        sim_at(s, s->now_ns + DOOM_NS, on_kill, j, 0, 0);
    }
}

bool aim_takes(const struct sim *s, const struct course_event *e, struct sim_worker *x)
{
    bool kind = e->kind == COURSE_DIE || e->kind == COURSE_HANG || e->kind == COURSE_CUT;
    if (!kind || chance_mix(e->r ^ s->p.aim) % 100 >= s->p.aim || x->doom != 0) {
        return false;
    }
    x->doom = 1 + e->kind;
    x->doom_r = e->r;
    return true;
}

static void on_stall(struct sim *s, const struct hap *h)
{
    const struct course_event e = {.kind = COURSE_STALL};
    struct chance r = chance_of(s->now_ns, 4);
    (void)h;
    if (!s->settling) {
        front_event(s, &e, &r);
    }
}

static void on_crash(struct sim *s, const struct hap *h)
{
    const struct course_event e = {.kind = h->a % 2 == 0 ? COURSE_CRASH : COURSE_HANDOVER};
    struct chance r = chance_of(h->a, 6);
    if (!s->settling && s->f != NULL && s->accepts) {
        front_event(s, &e, &r);
    }
}

/* A job there has run for some time. */
static bool has_long(const struct sim *s, const struct sim_worker *x)
{
    const struct sim_worker_job *j = *x->live;
    while (j != NULL && (j->state != WJOB_RUNS || s->now_ns < j->began_ns + LONG_NS)) {
        j = j->next;
    }
    return x->state == WORKER_RUNS && !x->silent && j != NULL;
}

/* Two workers of a device have jobs that run, as one of them has outstayed its turn. */
static bool two_run(const struct sim *s)
{
    uint64_t seen[2] = {0};
    for (unsigned i = 0; i < s->workers; i++) {
        unsigned device = worker_hardware(s, s->worker[i]->number);
        if (device < 2 && has_long(s, s->worker[i]) && seen[device]++ > 0) {
            return true;
        }
    }
    return false;
}

/* The next front finds both with jobs. */
void aim_front(struct sim *s)
{
    if (s->p.special != WORLD_OVERRUNS || s->p.aim % 4 == 0 || s->settling || !s->accepts ||
        s->now_ns < s->aimed_ns + AGAIN_NS || !two_run(s)) {
        return;
    }
    s->aimed_ns = s->now_ns;
    sim_log(s, "the front is to end, as two workers of a device have jobs");
    sim_at(s, s->now_ns + NS_PER_MS, on_crash, NULL, chance_mix(s->now_ns), 0);
}

/* Its thread gets no processor or no disk, or all of a processor, or needs none. Now and then the
 * front stands still soon, too, as on an overloaded host. */
void aim_hang(struct sim *s, struct sim_worker *x, enum course_kind kind, struct chance *r)
{
    if (x->silent) {
        return;
    }
    x->starved = kind == COURSE_HANG && chance_percent(r, 50);
    x->spins = !x->starved && chance_percent(r, 50);
    x->silent = true;
    if (s->p.special == WORLD_OVERRUNS && chance_percent(r, 50)) {
        sim_at(s, s->now_ns + STALL_NS, on_stall, NULL, 0, 0);
    }
}
