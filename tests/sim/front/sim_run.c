/* The course of a world: the course, what follows, and the end of all. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "daemon/front/sched/history.h"
#include "daemon/front/workers/arrivals.h"
#include "tests/sim/front/rules/sim_access.h"
#include "tests/sim/front/rules/sim_energy.h"
#include "tests/sim/front/rules/sim_places.h"
#include "tests/sim/front/rules/sim_said.h"
#include "tests/sim/front/rules/sim_shares.h"
#include "tests/sim/front/sim.h"
#include "tests/sim/front/sim_load.h"
#include "tests/sim/front/sim_told.h"

#define SETTLE_NS   (100 * NS_PER_MS) /* between looks whether all is done */
#define QUIET_NS    (500 * NS_PER_MS)
#define PATIENCE_NS (900 * NS_PER_S) /* for what has to come to an end */
#define STEPS_MAX   3000000u
#define RULES_STEPS 64u
#define RULES_PART  16u
#define FILES_FEW   256u /* descriptors in a world that is short of them */
#define HISTORY_FEW 16u  /* ended jobs that a front may list, in half of the worlds */

char *sim_report;

void sim_log(struct sim *s, const char *format, ...)
{
    if (s->log == NULL) {
        return;
    }
    va_list args;
    va_start(args, format);
    (void)fprintf(s->log, "%12.6f  ", (double)(s->now_ns - SIM_BEGIN_NS) / 1e9);
    (void)vfprintf(s->log, format, args);
    (void)fputc('\n', s->log);
    (void)fflush(s->log);
    va_end(args);
}

void sim_fail(struct sim *s, const char *format, ...)
{
    va_list args;
    char text[VERDICT_BYTES];
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    sim_log(s, "BROKEN: %s", text);
    if (sim_report != NULL) {
        (void)snprintf(sim_report, VERDICT_BYTES, "%s", text);
    }
    _exit(1);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* STILL: what the front sent last has arrived. */
enum { SETTLE_IDLE, SETTLE_LOOK, SETTLE_LEAVE, SETTLE_GONE, SETTLE_STILL };

static void on_settle(struct sim *s, const struct hap *h);

static void settle_again(struct sim *s, unsigned phase, uint64_t since_ns)
{
    sim_at(s, s->now_ns + SETTLE_NS, on_settle, NULL, phase, since_ns);
}

static bool all_idle(const struct sim *s)
{
    if (!s->accepts || front_life_refuses_jobs(s->f->life) || drain_any(s)) {
        return false;
    }
    for (unsigned i = 0; i < s->clients; i++) {
        const struct sim_client *c = &s->client[i];
        if (c->state != CLIENT_GONE && (c->state != CLIENT_ON || !client_idle(c))) {
            return false;
        }
    }
    return true;
}

static bool all_gone(const struct sim *s)
{
    for (unsigned i = 0; i < s->clients; i++) {
        if (s->client[i].state != CLIENT_GONE) {
            return false;
        }
    }
    return true;
}

/* A buffer that was freed on its way to a worker is freed there when it has arrived. */
static bool workers_settled(const struct front *f)
{
    bool settled = true;
    for (unsigned i = 0; i < f->device_count; i++) {
        settled = settled && (device_serves(f->device[i]) || device_absent(f->device[i]) ||
                              f->device[i]->state == DEVICE_STUCK);
    }
    const struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        settled = settled && !(device_serves(d) && arrivals_any(d));
    }
    return settled;
}

static bool front_empty(const struct sim *s)
{
    const struct front *f = s->f;
    return f != NULL && s->accepts && workers_settled(f) && f->session_count == 0 &&
           f->job_count == 0 && f->buffers.live == 0 && f->arenas.live == 0 &&
           f->modules.live == f->builtin_count;
}

static void name_open(struct sim *s, const struct sim_client *c)
{
    const struct sim_request *q = c->open_count > 0 ? c->open[0] : NULL;
    const struct job *j = s->f != NULL && c->jobs > 0 ? job_find(s->f->jobs, c->job[0]->id) : NULL;
    sim_log(s, "client %u: %u requests are open, %u jobs; it %s", c->index, c->open_count, c->jobs,
            c->waits ? "waits" : "does not wait");
    if (q != NULL) {
        sim_fail(s, "end: request %" PRIu64 " of kind %u of client %u gets no answer", q->seq,
                 q->kind, c->index);
    }
    if (c->jobs > 0) {
        sim_fail(s, "end: job %" PRIu64 " of client %u gets no result; it is %s, waits for %s",
                 c->job[0]->id, c->index, j != NULL ? job_state_name(j->state) : "unknown",
                 j != NULL ? job_wait_name(j->wait) : "?");
    }
}

static void name_stuck(struct sim *s, unsigned phase)
{
    for (unsigned i = 0; i < s->clients; i++) {
        struct sim_client *c = &s->client[i];
        if (c->state == CLIENT_GONE) {
            continue;
        }
        if (c->state != CLIENT_ON) {
            sim_fail(s, "end: client %u does not get a session", i);
        }
        name_open(s, c);
    }
    sim_fail(s, "end: in phase %u %u sessions, %u jobs, %u buffers, %u arenas, %u modules are left",
             phase, s->f != NULL ? s->f->session_count : 0, s->f != NULL ? s->f->job_count : 0,
             s->f != NULL ? s->f->buffers.live : 0, s->f != NULL ? s->f->arenas.live : 0,
             s->f != NULL ? s->f->modules.live - s->f->builtin_count : 0);
}

static void look(struct sim *s)
{
    for (unsigned i = 0; i < s->clients; i++) {
        struct sim_client *c = &s->client[i];
        for (unsigned k = 0; c->state == CLIENT_ON && k < c->buffers; k++) {
            ask_last_look(s, c, c->buffer[k]);
        }
    }
}

static void bye(struct sim *s)
{
    for (unsigned i = 0; i < s->clients; i++) {
        if (s->client[i].state == CLIENT_ON) {
            ask_bye(s, &s->client[i]);
        }
    }
}

static void resume(struct sim *s)
{
    struct msg_control m = {.what = bytes_str("resume")};
    drain_settle(s);
    if (s->f != NULL && s->f->life == FRONT_DRAINING && s->client[0].state == CLIENT_GONE) {
        client_return(s, &s->client[0]);
    }
    if (s->f != NULL && s->f->life == FRONT_DRAINING && s->client[0].state == CLIENT_ON) {
        (void)client_send(s, &s->client[0], &schema_msg_control, &m);
    }
}

/* Notices have come, too, when all has been quiet for a while. */
static bool stays_idle(struct sim *s)
{
    s->idle_ns = !all_idle(s) ? 0 : s->idle_ns == 0 ? s->now_ns : s->idle_ns;
    return s->idle_ns != 0 && s->now_ns - s->idle_ns >= QUIET_NS;
}

static bool is_over(struct sim *s, unsigned phase)
{
    return phase == SETTLE_IDLE    ? stays_idle(s)
           : phase == SETTLE_LOOK  ? all_idle(s)
           : phase == SETTLE_LEAVE ? all_gone(s)
                                   : front_empty(s);
}

static void on_settle(struct sim *s, const struct hap *h)
{
    unsigned phase = (unsigned)h->a;
    resume(s);
    for (unsigned i = 0; i < s->clients; i++) {
        ask_wait(s, &s->client[i]);
    }
    if (!is_over(s, phase)) {
        if (s->now_ns - h->b > PATIENCE_NS) {
            name_stuck(s, phase);
        }
        settle_again(s, phase, h->b);
        return;
    }
    if (phase == SETTLE_LOOK && told_goes_on(s)) {
        settle_again(s, SETTLE_LOOK, s->now_ns);
        return;
    }
    sim_log(s, "settled: phase %u; %u waits for leases", phase, s->hungry);
    if (phase == SETTLE_IDLE) {
        rules_notices(s);
        look(s);
    } else if (phase == SETTLE_LOOK) {
        bye(s);
    } else if (phase == SETTLE_STILL) {
        s->settled = true;
        return;
    }
    settle_again(s, phase + 1, s->now_ns);
}

static void on_last_event(struct sim *s, const struct hap *h)
{
    (void)h;
    sim_log(s, "the course is over");
    s->settling = true;
    for (unsigned i = 0; i < DEVICES_MAX; i++) {
        uint64_t *pressed = &s->device[i].pressed_until_ns;
        *pressed = *pressed < s->now_ns ? *pressed : s->now_ns;
        s->device[i].absent = s->device[i].unstarted = 0;
    }
    memory_fail(0, false);
    monitor_settle(s);
    settings_settle(s); /* first: a thread reads what it changes once settings are read again */
    tokens_settle(s);
    if (s->client[0].state == CLIENT_GONE) {
        client_return(s, &s->client[0]);
    }
    settle_again(s, SETTLE_IDLE, s->now_ns);
}

/* ---- the course ------------------------------------------------------------------------------ */

static bool of_front(enum course_kind kind)
{
    return kind == COURSE_HANDOVER || kind == COURSE_CRASH || kind == COURSE_FALL ||
           kind == COURSE_STALL || kind == COURSE_NOMEM;
}

static void on_course(struct sim *s, const struct hap *h)
{
    const struct course_event *e = &s->course->event[h->a];
    struct chance r = chance_of(e->r, 2);
    sim_log(s, "-- %s %u", course_kind_name(e->kind), e->actor);
    if (e->kind == COURSE_SETTINGS) {
        settings_event(s, &r);
    } else if (e->kind == COURSE_DRAIN || e->kind == COURSE_RESUME) {
        drain_event(s, e, &r);
    } else if (course_of_device(e->kind)) {
        worker_event(s, e, &r);
    } else if (of_front(e->kind)) {
        if (!aim_dooms(s, e)) {
            front_event(s, e, &r);
        }
    } else if (e->kind == COURSE_LAUNCHER) {
        launcher_lost(s);
    } else if (e->kind == COURSE_BLIND) {
        monitor_event(s, e, &r);
    } else if (e->kind == COURSE_COMPILE) {
        s->bad_compiles++;
    } else {
        client_event(s, e, &r);
    }
}

/* Of the same length for all processes: WELCOME has the path, and the time of a message on its way
 * depends on its size. */
static void name_folder(int pid, char ret_path[SIM_FOLDER])
{
    (void)snprintf(ret_path, SIM_FOLDER, "/tmp/gpud-sim.%07d", pid);
}

void sim_clear(int pid)
{
    static const char *const file[] = {
        "gpud.conf", "gpud.conf.new", "shm",           "held",    "held.new",
        "accounts",  "far0.tokens",   "far1.tokens",   "far.new", "accounts.kept",
        "access",    "forecasts",     "forecasts.new", "journal"};
    char folder[SIM_FOLDER];
    char path[SIM_FOLDER + 16];
    name_folder(pid, folder);
    for (unsigned i = 0; i < sizeof file / sizeof file[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, file[i]);
        (void)unlink(path);
    }
    record_clear(folder);
    (void)rmdir(folder);
}

/* Sets the limit of descriptors. Returns the former one. */
static uint64_t limit_files(uint64_t files)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        abort();
    }
    uint64_t before = limit.rlim_cur;
    limit.rlim_cur = files;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        abort();
    }
    return before;
}

static void begin(struct sim *s, const struct course *p, FILE *log)
{
    s->course = p;
    s->p = p->params;
    s->log = log;
    s->now_ns = SIM_BEGIN_NS;
    s->queue_most = s->p.queue_max;
    memory_reset();
    energy_anew();
    told_reset();
    sim_clear((int)getpid()); /* of a killed process that had the number */
    name_folder((int)getpid(), s->dir);
    if (mkdir(s->dir, 0700) != 0) {
        abort();
    }
    log_set_level(getenv("GPUD_LOG") != NULL ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR - 1);
    said_begin(s);
    if (uv_loop_init(&s->loop) != 0) {
        abort();
    }
    s->files = p->params.special == WORLD_SEALS ? limit_files(FILES_FEW) : 0;
    load_begin(s);
    settings_begin(s);
    places_begin(s);
    clients_begin(s);
    uint64_t at_ns = s->now_ns + NS_PER_S;
    for (unsigned i = 0; i < p->count; i++) {
        at_ns = s->now_ns + NS_PER_S + p->event[i].at_us * NS_PER_US;
        sim_at(s, at_ns, on_course, NULL, i, 0);
    }
    sim_at(s, at_ns, on_last_event, NULL, 0, 0);
    front_open(s);
    front_settle(s);
}

static void end(struct sim *s)
{
    rules_end(s);
    model_check(s);
    front_close(s);
    (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&s->loop) != 0) {
        sim_fail(s, "end: a handle of the loop is left");
    }
    launcher_finish(s);
    workers_free(s);
    clients_end(s);
    load_finish(s);
    model_free(s);
    accounts_finish(s);
    metrics_finish();
    places_finish(s);
    said_finish();
    haps_finish(&s->agenda);
    free(s->arrived.parcel);
    free(s->ended.parcel);
    sim_clear((int)getpid());
}

/* While the front stands still, requests gather: it gets them at once. */
static void take_arrivals(struct sim *s)
{
    while (s->now_ns == s->stalled_ns && sim_next_ns(s) <= s->now_ns &&
           client_is_arrival(&s->agenda.hap[0])) {
        sim_next(s);
    }
}

/* In half of the worlds the front lists few ended jobs, as if many had ended since. */
static void forget(struct sim *s)
{
    struct chance r = chance_of(s->course->seed, 11);
    if (s->f != NULL && chance_one_in(&r, 2)) {
        job_forget_history(s->f, (unsigned)chance_spread(&r, 0, HISTORY_FEW));
    }
}

static void step(struct sim *s)
{
    uint64_t due = front_due_ns(s);
    uint64_t next = sim_next_ns(s);
    uint64_t now = due <= next ? due : next;
    if (now == NS_NEVER) {
        sim_fail(s, "end: nothing happens any more");
    }
    s->now_ns = now > s->now_ns ? now : s->now_ns;
    if (due <= next && !stall_before_wake(s)) {
        front_wakes(s);
    } else if (due > next) {
        sim_next(s);
        take_arrivals(s);
    }
    front_settle(s);
    forget(s);
    aim_front(s);
    rest_check(s);
    rules_step(s);
    if (s->steps >= s->rules_step) { /* seldom where it takes long */
        s->rules_step = s->steps + RULES_STEPS + rules_all(s) / RULES_PART;
    }
    if (++s->steps > STEPS_MAX) {
        sim_fail(s, "end: the world does not end");
    }
}

uint64_t sim_run(const struct course *p, FILE *log)
{
    struct sim *s = calloc(1, sizeof *s);
    begin(s, p, log);
    while (!s->settled) {
        step(s);
    }
    end(s);
    uint64_t ns = s->now_ns - SIM_BEGIN_NS;
    if (s->files > 0) {
        (void)limit_files(s->files);
    }
    free(s);
    return ns;
}
