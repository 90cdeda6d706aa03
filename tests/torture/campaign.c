#include "tests/torture/campaign.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define WARM_UP      6u /* sessions until tables have their size */
#define SETTLE_LOOKS 6u
#define SETTLE_MS    500u
#define RECOVERY     (60 * SECOND) /* a device that fails often is opened again after 30 s */
#define LEAK_ROUNDS  6u
#define AGAIN_MS     20u   /* until the next try, then twice as long, … */
#define AGAIN_MOST   160u  /* … up to this */
#define HISTORY      1100u /* jobs: more than the front keeps */

static bool is_start(enum act act)
{
    return act == ACT_START;
}

/* What shows that everything works again after a failure in this act. */
static enum act cure_of(enum act act)
{
    return act == ACT_MODULE || act == ACT_CONTROL || act == ACT_RECORD ? act : ACT_JOBS;
}

/* ---- what processes hold -------------------------------------------------------------------- */

static const enum role holders[HOLDERS] = {ROLE_FRONT, ROLE_WORKER, ROLE_LAUNCHER, ROLE_CLIENT};

static struct holdings holdings_now(const struct campaign *c)
{
    struct holdings now;
    for (unsigned i = 0; i < HOLDERS; i++) {
        now.pid[i] = house_process(&c->h, holders[i]);
        now.has[i] = house_holding(&c->h, holders[i]);
    }
    now.files = house_files(&c->h);
    return now;
}

static bool grew(const struct holdings *before, const struct holdings *after)
{
    bool more = after->files > before->files;
    for (unsigned i = 0; i < HOLDERS; i++) {
        more = more || (before->pid[i] == after->pid[i] &&
                        (after->has[i].blocks > before->has[i].blocks ||
                         after->has[i].descriptors > before->has[i].descriptors ||
                         after->has[i].shared > before->has[i].shared));
    }
    return more;
}

/* The front keeps the last jobs: with jobs that are all the same it holds the same. */
static void even_out(struct campaign *c)
{
    struct session s = {.h = &c->h, .clean = true};
    gpud_program *p = NULL;
    bool ok =
        session_open(&s) && said(&s, gpud_program_create(s.c, NULL, &p), "gpud_program_create");
    ok = ok && said(&s, gpud_program_seal(p), "gpud_program_seal");
    for (unsigned i = 0; ok && i < HISTORY; i++) {
        ok = said(&s, gpud_run(s.c, p, NULL, 0, NULL, NULL), "gpud_run");
    }
    gpud_program_free(p);
    session_close(&s);
    ck_assert_msg(ok, "though nothing fails: %s", s.problem);
}

/* Whether something grew all the same when sessions that were left have ended. Their jobs enter the
 * history then, so it is evened out anew after each pause. */
static bool settle(struct campaign *c, const struct holdings *before, struct holdings *ret_after)
{
    for (unsigned i = 0; i < SETTLE_LOOKS; i++) {
        if (i > 0) {
            pause_ms(SETTLE_MS);
        }
        even_out(c);
        *ret_after = holdings_now(c);
        if (!grew(before, ret_after)) {
            return false;
        }
    }
    return true;
}

/* ---- the daemon ----------------------------------------------------------------------------- */

static void play_cure(struct campaign *c, enum act act, struct session *ret_session)
{
    *ret_session = (struct session){.h = &c->h, .clean = true, .brief = true};
    session_play(ret_session, act);
}

static bool bring_home(struct campaign *c, enum act act)
{
    if (c->at_home) {
        return true;
    }
    struct session s;
    house_abandon(&c->h);
    house_prepare(&c->h);
    int status = house_start(&c->h, PATIENCE);
    ck_assert_msg(status == 0, "gpud does not start, though nothing fails: %d", status);
    for (unsigned i = 0; i < WARM_UP; i++) {
        play_cure(c, cure_of(act), &s);
        ck_assert_msg(s.problem[0] == '\0', "though nothing fails: %s", s.problem);
    }
    c->at_home = true;
    c->batch_count = 0;
    even_out(c);
    c->before = holdings_now(c);
    return true;
}

/* ---- one run -------------------------------------------------------------------------------- */

static bool crashed(const struct campaign *c)
{
    return atomic_load(&c->h.page->crash.count) > 0;
}

/* Too much fails for answers in time: what starts anew fails anew, and each try waits longer. */
static bool is_famine(const struct run *run)
{
    bool starts = run->act == ACT_START || run->act == ACT_DEATH || run->act == ACT_ADOPT ||
                  run->role != ROLE_FRONT;
    return run->count == WHOLE_ACT || (run->count >= 16 && starts && run->role != ROLE_CLIENT);
}

static bool fail_once(struct campaign *c, const struct run *run, struct session *s)
{
    *s = (struct session){.h = &c->h, .famine = is_famine(run)};
    house_arm(&c->h, run->role, run->kind, run->n, run->count);
    session_play(s, run->act);
    house_disarm(&c->h);
    return atomic_load(&c->h.page->hit.count) > 0;
}

/* Runs end workers, and what had jobs there is paused after the fifth: as it should be
 * (sched/conduct.h). A new daemon knows of none. */
static bool is_paused(const struct session *s)
{
    return strstr(s->problem, "QUARANTINED") != NULL;
}

/* Until a session without any failure succeeds. A worker that ended needs a moment. */
static bool recovers(struct campaign *c, enum act act, char *ret_problem)
{
    uint64_t end_ns = now_ns() + RECOVERY;
    for (unsigned ms = AGAIN_MS;; ms = 2 * ms < AGAIN_MOST ? 2 * ms : AGAIN_MOST) {
        struct session s;
        play_cure(c, act, &s);
        if (s.problem[0] == '\0') {
            return true;
        }
        if (is_paused(&s)) {
            c->at_home = false;
            return bring_home(c, act);
        }
        if (s.failed == 0 || now_ns() > end_ns || !house_lives(&c->h)) {
            (void)snprintf(ret_problem, PROBLEM_TEXT, "afterwards: %s", s.problem);
            return false;
        }
        pause_ms(ms);
    }
}

static void describe_growth(const struct holdings *before, const struct holdings *after,
                            char *ret_problem)
{
    size_t used = 0;
    for (unsigned k = 0; k < HOLDERS; k++) {
        const struct holding *b = &before->has[k];
        const struct holding *a = &after->has[k];
        used += (size_t)snprintf(ret_problem + used, PROBLEM_TEXT - used,
                                 "%s: %lld blocks, %lld descriptors, %lld shared; ",
                                 role_name(holders[k]), (long long)(a->blocks - b->blocks),
                                 (long long)(a->descriptors - b->descriptors),
                                 (long long)(a->shared - b->shared));
    }
    (void)snprintf(ret_problem + used, PROBLEM_TEXT - used,
                   "%lld files more after %u times the same",
                   (long long)(after->files - before->files), LEAK_ROUNDS);
}

/* The same failure again and again: a leak grows each time. */
static bool leaks(struct campaign *c, const struct run *run, char *ret_problem)
{
    struct holdings before;
    struct holdings first;
    struct holdings after;
    even_out(c);
    first = before = holdings_now(c);
    for (unsigned i = 0; i < LEAK_ROUNDS; i++) {
        struct session s;
        bool reached = fail_once(c, run, &s);
        if (!recovers(c, cure_of(run->act), ret_problem)) {
            return true;
        }
        if (!reached || !settle(c, &before, &after)) {
            return false;
        }
        before = after;
    }
    describe_growth(&first, &after, ret_problem);
    return true;
}

static void count_ends(struct campaign *c, const pid_t *before)
{
    c->worker_ends += house_process(&c->h, ROLE_WORKER) != before[0];
    c->launcher_ends += house_process(&c->h, ROLE_LAUNCHER) != before[1];
}

static bool judge(struct campaign *c, const struct run *run, char *ret_problem)
{
    struct session s;
    const pid_t pids[] = {house_process(&c->h, ROLE_WORKER), house_process(&c->h, ROLE_LAUNCHER)};
    pid_t front = c->h.d.pid;
    bool reached = fail_once(c, run, &s);
    (void)snprintf(ret_problem, PROBLEM_TEXT, "%s", s.problem);
    bool alive = house_lives(&c->h) && (run->act == ACT_ADOPT || front == c->h.d.pid);
    if (!alive) {
        (void)snprintf(ret_problem, PROBLEM_TEXT, "gpud ended with %d", house_wait(&c->h));
        return reached;
    }
    if (ret_problem[0] == '\0') {
        (void)recovers(c, cure_of(run->act), ret_problem);
    }
    count_ends(c, pids);
    return reached;
}

/* The start and end during which a call fails. A start that fails ends gpud with a status of its
 * own. */
static void start_once(struct campaign *c, const struct run *run, char *ret_problem)
{
    const char *what = "the start";
    int status = house_start(&c->h, is_famine(run) ? FAMINE_START : PATIENCE);
    bool fits = status >= 0 && status <= 127;
    if (status == 0 || (is_famine(run) && house_lives(&c->h))) {
        what = "the end";
        status = house_stop(&c->h);
        fits = status >= 0 && status <= 127;
    } else {
        fits = fits && c->h.d.pid == 0;
    }
    house_disarm(&c->h);
    house_abandon(&c->h);
    if (!fits) {
        (void)snprintf(ret_problem, PROBLEM_TEXT, "%s: status %d", what, status);
    }
}

static void start_again(struct campaign *c, char *ret_problem)
{
    int status = house_start(&c->h, PATIENCE);
    if (status == 0 && recovers(c, ACT_SOCKET, ret_problem)) {
        status = house_stop(&c->h);
    }
    int64_t more = house_files(&c->h) - c->files_ended;
    if (status != 0 && ret_problem[0] == '\0') {
        (void)snprintf(ret_problem, PROBLEM_TEXT, "the next start, or its end: %d", status);
    } else if (more > 0 && ret_problem[0] == '\0') {
        (void)snprintf(ret_problem, PROBLEM_TEXT, "%lld files more after the end", (long long)more);
    }
}

static bool judge_start(struct campaign *c, const struct run *run, char *ret_problem)
{
    house_abandon(&c->h);
    house_prepare(&c->h);
    house_arm(&c->h, run->role, run->kind, run->n, run->count);
    start_once(c, run, ret_problem);
    bool reached = atomic_load(&c->h.page->hit.count) > 0;
    if (ret_problem[0] == '\0' && reached) {
        start_again(c, ret_problem);
    }
    c->at_home = false;
    return reached;
}

static void give_up(struct campaign *c, const struct run *run, const char *problem)
{
    report_failure(c, run, problem);
    house_abandon(&c->h);
    c->at_home = false;
    c->batch_count = 0;
    c->failures++;
}

static bool run_one(struct campaign *c, const struct run *run)
{
    char problem[PROBLEM_TEXT] = "";
    house_forget_ended(&c->h);
    atomic_store(&c->h.page->crash.count, 0);
    bool reached = false;
    if (is_start(run->act)) {
        reached = judge_start(c, run, problem);
    } else {
        (void)bring_home(c, run->act);
        reached = judge(c, run, problem);
    }
    if (crashed(c)) {
        char rest[PROBLEM_TEXT];
        (void)snprintf(rest, sizeof rest, "%s", problem);
        (void)snprintf(problem, sizeof problem, "%s: signal %d; %.400s",
                       role_name(c->h.page->crash.role), c->h.page->crash.signal, rest);
    }
    if (problem[0] != '\0') {
        give_up(c, run, problem);
    } else if (reached && c->at_home) {
        c->batch[c->batch_count++] = *run;
    }
    if (reached) {
        c->runs[run->role][run->kind]++;
        c->acts[run->act]++;
    } else {
        c->unreached++;
    }
    report_progress(c);
    return reached;
}

/* ---- all of them ---------------------------------------------------------------------------- */

static void calls_copy(const struct campaign *c, uint64_t calls[ROLE_COUNT][KIND_COUNT])
{
    for (unsigned r = 0; r < ROLE_COUNT; r++) {
        for (unsigned k = 0; k < KIND_COUNT; k++) {
            calls[r][k] = atomic_load(&c->h.page->calls[r][k]);
        }
    }
}

static void record(struct campaign *c, enum act act)
{
    uint64_t before[ROLE_COUNT][KIND_COUNT];
    struct session s = {.h = &c->h, .clean = true};
    if (is_start(act)) {
        c->at_home = false;
        (void)bring_home(c, ACT_SOCKET); /* fills the cache */
        house_abandon(&c->h);
        house_prepare(&c->h);
        c->at_home = false;
        calls_copy(c, before);
        int status = house_start(&c->h, PATIENCE);
        ck_assert_msg(status == 0 && house_stop(&c->h) == 0, "gpud does not start and end");
        c->files_ended = house_files(&c->h);
    } else {
        (void)bring_home(c, act);
        calls_copy(c, before);
        session_play(&s, act);
        ck_assert_msg(s.problem[0] == '\0', "though nothing fails, in act %s: %s", act_name(act),
                      s.problem);
    }
    calls_copy(c, c->calls[act]);
    for (unsigned r = 0; r < ROLE_COUNT; r++) {
        for (unsigned k = 0; k < KIND_COUNT; k++) {
            c->calls[act][r][k] -= before[r][k];
        }
    }
    if (is_start(act)) { /* the libgpud that asks whether gpud is ready */
        memset(c->calls[act][ROLE_CLIENT], 0, sizeof c->calls[act][ROLE_CLIENT]);
    }
}

/* All failures of the batch once more. Tables that grew once do not grow again. */
static bool leak_again(struct campaign *c)
{
    struct holdings before;
    struct holdings after;
    char problem[PROBLEM_TEXT];
    even_out(c);
    before = holdings_now(c);
    for (unsigned i = 0; i < c->batch_count; i++) {
        struct session s;
        (void)fail_once(c, &c->batch[i], &s);
        if (!recovers(c, cure_of(c->batch[i].act), problem)) {
            return true;
        }
    }
    return settle(c, &before, &after);
}

/* Whether the runs since the last look left something behind; if so, which of them. */
static void look_for_leaks(struct campaign *c)
{
    struct holdings after;
    bool more = c->batch_count > 0 && settle(c, &c->before, &after) && leak_again(c);
    for (unsigned i = 0; more && i < c->batch_count; i++) {
        char problem[PROBLEM_TEXT] = "";
        struct run run = c->batch[i];
        if (leaks(c, &run, problem)) {
            give_up(c, &run, problem);
            (void)bring_home(c, run.act);
        }
    }
    c->batch_count = 0;
    if (c->at_home) {
        even_out(c);
        c->before = holdings_now(c);
    }
}

static bool goes_on(const struct campaign *c)
{
    return c->failures < FAILURES_MAX && (c->end_ns == 0 || now_ns() < c->end_ns);
}

/* A run is in the same slice whatever else was recorded: numbers of calls vary a little. */
static bool in_slice(const struct campaign *c, const struct run *run)
{
    const uint64_t part[] = {(uint64_t)run->act, (uint64_t)run->role, (uint64_t)run->kind, run->n,
                             run->count};
    uint64_t hash = 0;
    for (unsigned i = 0; i < sizeof part / sizeof part[0]; i++) {
        hash = (hash ^ part[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return hash % c->o.slices == c->o.slice;
}

static bool chosen(uint32_t option, unsigned value)
{
    return option == ANY || option == value;
}

/* One call of the record: alone, with some that follow it, and with all of them. How many runs that
 * are; with `plan` they are only counted. */
static uint64_t run_call(struct campaign *c, struct run *run, bool plan)
{
    static const uint64_t counts[] = {1, 2, 4, 16, WHOLE_ACT};
    uint64_t runs = 0;
    for (unsigned i = 0; i < sizeof counts / sizeof counts[0] && goes_on(c); i++) {
        run->count = counts[i];
        bool endless = run->kind == KIND_INTERRUPT && counts[i] == WHOLE_ACT;
        if ((c->o.count != 0 && c->o.count != counts[i]) || endless || !in_slice(c, run)) {
            continue;
        }
        runs++;
        if (!plan) {
            (void)run_one(c, run);
        }
        if (c->batch_count == BATCH) {
            look_for_leaks(c);
        }
    }
    return runs;
}

static uint64_t run_kind(struct campaign *c, enum act act, enum role role, enum kind kind,
                         bool plan)
{
    uint64_t runs = 0;
    uint64_t last = c->calls[act][role][kind];
    last = c->o.last < last ? c->o.last + 1 : last;
    for (uint64_t n = c->o.first; n < last && goes_on(c); n++) {
        struct run run = {.act = act, .role = role, .kind = kind, .n = n};
        runs += run_call(c, &run, plan);
    }
    return runs;
}

static bool has_act(const struct campaign *c, unsigned act)
{
    return chosen(c->o.act, act) && (act != ACT_MODULE || house_compiles(&c->h));
}

static uint64_t run_act(struct campaign *c, enum act act, bool plan)
{
    uint64_t runs = 0;
    for (unsigned role = 0; role < ROLE_COUNT; role++) {
        for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
            if (chosen(c->o.role, role) && chosen(c->o.kind, kind)) {
                runs += run_kind(c, act, (enum role)role, (enum kind)kind, plan);
            }
        }
    }
    return runs;
}

uint64_t campaign_run(struct campaign *c)
{
    uint64_t planned = 0;
    c->begin_ns = c->told_ns = now_ns();
    c->end_ns = c->o.seconds > 0 ? now_ns() + c->o.seconds * SECOND : 0;
    for (unsigned act = 0; act < ACT_COUNT; act++) {
        if (has_act(c, act)) {
            record(c, (enum act)act);
            planned += run_act(c, (enum act)act, true);
        }
    }
    report_calls(c);
    report_plan(c, planned);
    for (unsigned i = 0; i < ACT_COUNT && !c->o.plan; i++) {
        /* with a time limit, another act comes first in each slice */
        enum act act = (enum act)((i + c->o.slice) % ACT_COUNT);
        look_for_leaks(c);
        if (has_act(c, act)) {
            (void)run_act(c, act, false);
        }
    }
    look_for_leaks(c);
    if (c->at_home) {
        int status = house_stop(&c->h);
        ck_assert_msg(status == 0, "gpud ended with %d", status);
    }
    report_end(c);
    return c->failures;
}
