/* Jobs in a worker: they begin when their streams and predecessors let them, read and write the
 * worker's buffers when they end, and fail as the course says. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/front/rules/sim_conduct.h"
#include "tests/sim/front/rules/sim_shares.h"
#include "tests/sim/front/rules/sim_told.h"
#include "tests/sim/front/sim_load.h"
#include "tests/sim/front/sim_lost.h"
#include "tests/sim/front/sim_visit.h"

#define BRIEF_NS (5 * NS_PER_MS) /* a longer job is reported when it begins */

void exec_free(struct sim_worker_job *j)
{
    for (unsigned i = 0; i < j->temps; i++) {
        free(j->temp[i]);
    }
    free(j->step);
    free(j);
}

/* The first job that has not ended: a worker may have thousands that have. */
static struct sim_worker_job *live(struct sim_worker *x)
{
    while (*x->live != NULL && (*x->live)->state == WJOB_ENDED) {
        x->live = &(*x->live)->next;
    }
    return *x->live;
}

static struct sim_worker_job *find(struct sim_worker *x, uint64_t id)
{
    struct sim_worker_job *j = NULL;
    HASH_FIND(hh, x->by_id, &id, sizeof id, j);
    return j;
}

/* ---- what a job uses ------------------------------------------------------------------------- */

/* Whether the step writes, or may write, argument i. */
static bool writes(const struct sim_worker_step *t, unsigned i)
{
    switch (t->op) {
    case OP_WRITE:
    case OP_FILL:
    case OP_COPY:
        return i == 0;
    case OP_READ:
        return i == 1;
    default:
        return t->arg[i].access == 0 || (t->arg[i].access & ACCESS_OUT) != 0;
    }
}

static bool reads(const struct sim_worker_step *t, unsigned i)
{
    return t->op == OP_LAUNCH || t->op == FRAME_OP_LIBRARY ? t->arg[i].access != ACCESS_OUT
                                                           : !writes(t, i);
}

static bool is_shared(unsigned tag)
{
    return tag == REF_BUFFER || tag == REF_ARENA;
}

static bool conflict(const struct sim_worker_job *j, const struct sim_worker_job *k)
{
    for (unsigned i = 0; i < j->steps; i++) {
        for (unsigned a = 0; a < j->step[i].args; a++) {
            for (unsigned n = 0; n < k->steps; n++) {
                for (unsigned b = 0; b < k->step[n].args; b++) {
                    const struct sim_worker_step *t = &j->step[i];
                    const struct sim_worker_step *u = &k->step[n];
                    bool same = is_shared(t->arg[a].tag) && t->arg[a].tag == u->arg[b].tag &&
                                t->arg[a].id == u->arg[b].id;
                    bool apart = t->arg[a].offset + t->arg[a].size <= u->arg[b].offset ||
                                 u->arg[b].offset + u->arg[b].size <= t->arg[a].offset;
                    if (same && !apart && (writes(t, a) || writes(u, b))) {
                        return true;
                    }
                }
            }
        }
    }
    return false;
}

static void count_uses(struct sim *s, struct sim_worker *x, const struct sim_worker_job *j, int by)
{
    for (unsigned i = 0; i < j->steps; i++) {
        for (unsigned a = 0; a < j->step[i].args; a++) {
            struct sim_worker_buffer *b =
                j->step[i].arg[a].tag == REF_BUFFER ? worker_buffer(x, j->step[i].arg[a].id) : NULL;
            if (b != NULL && writes(&j->step[i], a)) {
                b->writers += (unsigned)by;
                model_copied(s, b->id, false);
            } else if (b != NULL) {
                b->readers += (unsigned)by;
            }
            if (b != NULL && b->freed && b->readers + b->writers == 0) {
                worker_drop_buffer(x, b);
            }
        }
    }
}

static bool has_arena(const struct sim_worker *x, uint64_t id)
{
    for (unsigned i = 0; i < x->arenas; i++) {
        if (x->arena[i].id == id) {
            return true;
        }
    }
    return false;
}

static bool has_module(const struct sim_worker *x, uint64_t id)
{
    for (unsigned i = 0; i < x->modules; i++) {
        if (x->module[i] == id) {
            return true;
        }
    }
    return false;
}

static void check_buffer(struct sim *s, struct sim_worker *x, const struct sim_worker_job *j,
                         const struct sim_worker_step *t, unsigned a)
{
    const struct sim_worker_buffer *b = worker_buffer(x, t->arg[a].id);
    if (b == NULL) {
        if (!x->lied && !s->broke_restore) {
            sim_fail(
                s, "job: job %" PRIu64 " uses buffer %#" PRIx64 ", which the worker does not have",
                j->id, t->arg[a].id);
        }
        return;
    }
    if (t->arg[a].offset + t->arg[a].size > b->size) {
        sim_fail(s, "job: job %" PRIu64 " goes beyond buffer %#" PRIx64, j->id, b->id);
    }
    if (b->copy >= 0 && writes(t, a)) {
        sim_fail(s, "job: job %" PRIu64 " writes the sealed buffer %#" PRIx64, j->id, b->id);
    }
}

/* A kernel of a client writes what it wants to. It must not get what its client may not write. */
static void check_guarded(struct sim *s, const struct sim_worker_job *j,
                          const struct sim_worker_step *t, unsigned a)
{
    const struct module *m = s->f != NULL ? idmap_get(&s->f->modules, t->module) : NULL;
    const struct sim_job *k = j->job;
    for (unsigned i = 0; k != NULL && m != NULL && m->tenant != NULL && i < k->steps; i++) {
        const struct sim_step *own = &k->step[i];
        if (own->guarded && own->from->handle == t->arg[a].id) {
            sim_fail(s,
                     "guarded: job %" PRIu64 " of client %u may only read buffer %#" PRIx64
                     ", and its kernel gets it",
                     j->id, k->client->index, t->arg[a].id);
        }
    }
}

/* Whether the worker has all that the job names: the front sent it before. */
static void check_uses(struct sim *s, struct sim_worker *x, struct sim_worker_job *j)
{
    for (unsigned i = 0; i < j->steps; i++) {
        const struct sim_worker_step *t = &j->step[i];
        if (t->op == OP_LAUNCH && !has_module(x, t->module) && !x->lied) {
            sim_fail(s,
                     "job: job %" PRIu64 " launches a kernel of module %#" PRIx64
                     ", which the worker does not have",
                     j->id, t->module);
        }
        for (unsigned a = 0; a < t->args; a++) {
            if (t->arg[a].tag == REF_BUFFER) {
                check_buffer(s, x, j, t, a);
                check_guarded(s, j, t, a);
            } else if (t->arg[a].tag == REF_ARENA && !has_arena(x, t->arg[a].id)) {
                j->lacks = true;
                if (!x->arenas_refused) {
                    sim_fail(s,
                             "job: job %" PRIu64 " uses arena %#" PRIx64
                             ", which the worker does not have",
                             j->id, t->arg[a].id);
                }
            }
        }
    }
}

/* ---- a frame becomes a job ------------------------------------------------------------------- */

static void read_step(struct sim *s, const struct proto_wstep *w, struct sim_worker_step *t)
{
    struct proto_iter it = proto_iter_of(w->args);
    struct proto_ref ref;
    *t = (struct sim_worker_step){.op = (unsigned)w->op,
                                  .step = (unsigned)w->step,
                                  .stage = w->stage,
                                  .module = w->module,
                                  .after = (unsigned)w->after,
                                  .pattern_size = (unsigned)w->pattern.size};
    if (w->pattern.size > 0) {
        memcpy(t->pattern, w->pattern.data, w->pattern.size);
    }
    while (proto_list_next(&it, &schema_ref, &ref)) {
        if (ref.tag != REF_BUFFER && ref.tag != REF_TEMP && ref.tag != REF_ARENA) {
            continue;
        }
        if (t->args == sizeof t->arg / sizeof t->arg[0]) {
            sim_fail(s, "job: a step has more arrays than the simulation takes");
        }
        t->arg[t->args].tag = (unsigned)ref.tag;
        t->arg[t->args].access = (unsigned)ref.access;
        t->arg[t->args].id = ref.id;
        t->arg[t->args].offset = ref.offset;
        t->arg[t->args++].size = ref.size;
    }
}

static struct sim_worker_job *read_job(struct sim *s, const struct msg_f_job *m,
                                       const struct sim_inbox *in)
{
    struct sim_worker_job *j = calloc(1, sizeof *j);
    struct proto_iter it = proto_iter_of(m->steps);
    struct proto_wstep w;
    struct proto_wtemp temp;
    struct proto_jobref ref;
    j->id = m->job;
    j->stream = (unsigned)m->stream;
    j->deadline_ns = m->deadline_ns;
    j->job = in->job;
    j->alone = in->alone;
    j->era = s->era;
    j->step = calloc(m->steps.count + 1, sizeof *j->step);
    while (proto_list_next(&it, &schema_wstep, &w)) {
        read_step(s, &w, &j->step[j->steps++]);
    }
    it = proto_iter_of(m->temps);
    while (proto_list_next(&it, &schema_wtemp, &temp) && j->temps < 8) {
        j->temp_size[j->temps] = temp.size;
        j->temp[j->temps++] = calloc(1, temp.size);
    }
    it = proto_iter_of(m->after);
    while (proto_list_next(&it, &schema_jobref, &ref)) {
        j->after[j->after_count++] = ref.job;
    }
    return j;
}

static void check_alone(struct sim *s, struct sim_worker *x, const struct sim_worker_job *j)
{
    for (const struct sim_worker_job *k = live(x); k != NULL && k != j; k = k->next) {
        if (k->state != WJOB_ENDED && k->era == s->era && (j->alone || k->alone)) {
            sim_fail(s,
                     "alone: job %" PRIu64 " is sent beside job %" PRIu64
                     ", and one of them has to run alone",
                     j->id, k->id);
        }
    }
}

/* A job that wrote outside itself is sent once, unless it has no record, or its session has ended
 * since: its client hears so, and sends it again all the same. */
static void check_once(struct sim *s, struct sim_worker_job *j)
{
    struct sim_job *k = j->job;
    if (k == NULL) {
        return;
    }
    j->attempt = k->external + k->internal;
    bool excused = k->lied || k->forgotten || s->killed_session;
    if (k->begun == 0 || !k->writes) {
        return;
    }
    if (!excused) {
        sim_fail(s,
                 "once: job %" PRIu64 " of client %u, request %" PRIu64
                 ", wrote outside itself, and is sent again",
                 j->id, k->client->index, k->request->seq);
    }
    k->vague = true;
    model_doubt(k);
}

void exec_job(struct sim *s, struct sim_worker *x, const struct msg_f_job *m,
              const struct sim_inbox *in)
{
    if (find(x, m->job) != NULL) {
        sim_fail(s, "once: job %" PRIu64 " is sent twice to one worker", m->job);
    }
    struct sim_worker_job *j = read_job(s, m, in);
    *x->job_end = j;
    x->job_end = &j->next;
    j->place = ++x->places;
    HASH_ADD(hh, x->by_id, id, sizeof j->id, j);
    for (unsigned i = 0; i < j->after_count; i++) {
        if (find(x, j->after[i]) == NULL) {
            sim_fail(s,
                     "job: job %" PRIu64 " is to run after job %" PRIu64
                     ", which the worker never got",
                     j->id, j->after[i]);
        }
    }
    if (!x->lied) {
        check_alone(s, x, j);
    }
    check_once(s, j);
    check_uses(s, x, j);
    count_uses(s, x, j, 1);
    exec_more(s, x);
}

/* ---- its steps ------------------------------------------------------------------------------- */

/* The bytes of an argument, as far as they are followed. NULL: none. */
static uint8_t *content(struct sim_worker *x, struct sim_worker_job *j,
                        const struct sim_worker_step *t, unsigned i, size_t *ret_size)
{
    uint64_t offset = t->arg[i].offset;
    uint64_t size = t->arg[i].size;
    uint8_t *data = NULL;
    uint64_t room = 0;
    if (t->arg[i].tag == REF_BUFFER) {
        struct sim_worker_buffer *b = worker_buffer(x, t->arg[i].id);
        data = b != NULL ? b->content : NULL;
        room = SIM_CONTENT;
    } else if (t->arg[i].tag == REF_TEMP && t->arg[i].id < j->temps) {
        data = j->temp[t->arg[i].id];
        room = j->temp_size[t->arg[i].id];
    }
    for (unsigned a = 0; a < x->arenas; a++) {
        if (t->arg[i].tag == REF_ARENA && x->arena[a].id == t->arg[i].id) {
            data = x->arena[a].data;
            room = x->arena[a].size;
        }
    }
    *ret_size = data == NULL || offset >= room ? 0 : size < room - offset ? size : room - offset;
    return data != NULL && *ret_size > 0 ? data + offset : NULL;
}

static void launch(struct sim_worker *x, struct sim_worker_job *j, const struct sim_worker_step *t)
{
    uint8_t in[8 * SIM_CONTENT];
    size_t in_size = 0;
    size_t size = 0;
    for (unsigned i = 0; i < t->args; i++) {
        const uint8_t *data = reads(t, i) ? content(x, j, t, i, &size) : NULL;
        if (data != NULL && in_size + size <= sizeof in) {
            memcpy(in + in_size, data, size);
            in_size += size;
        }
    }
    for (unsigned i = 0; i < t->args; i++) {
        uint8_t *data = writes(t, i) ? content(x, j, t, i, &size) : NULL;
        if (data != NULL) {
            model_twist(in, in_size, data, size);
        }
    }
}

static void copy_step(struct sim_worker *x, struct sim_worker_job *j,
                      const struct sim_worker_step *t, uint8_t *to, size_t size)
{
    size_t other = 0;
    const uint8_t *from = t->args > 1 ? content(x, j, t, 1, &other) : NULL;
    if (from != NULL) {
        memmove(to, from, other < size ? other : size);
    }
}

static void read_out(struct sim_worker *x, const struct sim_worker_step *t, const uint8_t *from,
                     size_t size)
{
    if (t->stage <= x->staging && size <= x->staging - t->stage) {
        memcpy(x->output + t->stage, from, size);
    }
}

static void run_step(struct sim_worker *x, struct sim_worker_job *j,
                     const struct sim_worker_step *t)
{
    size_t size = 0;
    uint8_t *to = t->args > 0 ? content(x, j, t, 0, &size) : NULL;
    if (to == NULL) {
        return;
    }
    switch (t->op) {
    case OP_WRITE:
        if (t->args > 1) {
            copy_step(x, j, t, to, size);
        } else if (t->stage <= x->staging && size <= x->staging - t->stage) {
            memcpy(to, x->input + t->stage, size);
        }
        break;
    case OP_FILL:
        for (size_t i = 0; i < size && t->pattern_size > 0; i++) {
            to[i] = t->pattern[i % t->pattern_size];
        }
        break;
    case OP_COPY:
        copy_step(x, j, t, to, size);
        break;
    case OP_READ:
        if (t->args > 1) {
            size_t other = 0;
            uint8_t *out = content(x, j, t, 1, &other);
            if (out != NULL) {
                memcpy(out, to, other < size ? other : size);
            }
        } else {
            read_out(x, t, to, size);
        }
        break;
    default:
        launch(x, j, t);
        break;
    }
}

/* The worker has no libraries: their steps are passed over, as frames.h says. */
static void run_steps(struct sim_worker *x, struct sim_worker_job *j, unsigned count)
{
    for (unsigned i = 0; i < j->steps && i < count; i++) {
        if (j->step[i].op == FRAME_OP_LIBRARY) {
            i += j->step[i].after;
        } else {
            run_step(x, j, &j->step[i]);
        }
    }
}

/* ---- begin and end --------------------------------------------------------------------------- */

/* The times of its steps, one behind the other. */
static uint64_t add_timings(struct sim *s, const struct sim_worker_job *j, struct capbuf *out)
{
    uint64_t ns = s->now_ns - j->began_ns;
    bool all = s->p.watch != 0 && j->code == 0;
    for (unsigned i = 0; i < j->steps && all; i++) {
        const struct proto_timing t = {.step = j->step[i].step,
                                       .begin_ns = ns * i / j->steps,
                                       .end_ns = ns * (i + 1) / j->steps,
                                       .by = bytes_str("sim")};
        if (proto_list_add(&schema_timing, &t, out, NULL) != 0) {
            sim_fail(s, "worker: no memory for times");
        }
    }
    return all ? j->steps : 0;
}

static void report(struct sim *s, struct sim_worker *x, struct sim_worker_job *j)
{
    struct capbuf timings;
    j->reported = true;
    capbuf_init(&timings, 65536);
    uint64_t count = add_timings(s, j, &timings);
    const struct msg_w_done m = {.job = j->id,
                                 .code = j->code,
                                 .step = -1,
                                 .arg = -1,
                                 .effects = j->effects,
                                 .started_ns = j->began_ns + x->skew_ns,
                                 .ended_ns = s->now_ns + x->skew_ns,
                                 .text = bytes_str(j->code != 0 ? "the device said so" : ""),
                                 .timings = proto_list_of(&timings, count)};
    worker_send(s, x, &schema_msg_w_done, &m, NULL);
    capbuf_finish(&timings);
}

static void on_report(struct sim *s, const struct hap *h)
{
    struct sim_worker *x = h->actor;
    struct sim_worker_job *j = x->epoch == h->b && x->state == WORKER_RUNS ? find(x, h->a) : NULL;
    if (j != NULL && !j->reported && !x->silent) {
        report(s, x, j);
    }
}

/* Ends of jobs that need not wait for each other are reported in any order. */
static void report_late(struct sim *s, struct sim_worker *x, struct sim_worker_job *j)
{
    j->report_ns = s->now_ns + chance_mix(j->id ^ s->course->seed) % (4 * NS_PER_MS);
    for (const struct sim_worker_job *k = x->job; k != j; k = k->next) {
        bool before = k->stream == j->stream;
        for (unsigned i = 0; i < j->after_count; i++) {
            before = before || j->after[i] == k->id;
        }
        if (before && k->report_ns > j->report_ns) {
            j->report_ns = k->report_ns;
        }
    }
    sim_at(s, j->report_ns, on_report, x, j->id, x->epoch);
}

static void end(struct sim *s, struct sim_worker *x, struct sim_worker_job *j, int code,
                unsigned effects)
{
    shares_pass(s);
    x->changed_ns = s->now_ns;
    j->state = WJOB_ENDED;
    j->code = code;
    j->effects = effects;
    count_uses(s, x, j, -1);
    load_ended(s, x, j);
    shares_ended(s, x, j->job);
    if (x->shuffles) {
        report_late(s, x, j);
    } else {
        report(s, x, j);
    }
    exec_more(s, x);
}

enum fate {
    FATE_WELL,
    FATE_REFUSED,
    FATE_MEMORY,
    FATE_HALF,
    FATE_CRASH,
    FATE_FAULT,
    FATE_ENDLESS,
    FATE_LOST, /* the worker's driver is lost while it runs */
};

/* A guilty job does the same whenever it runs. */
static enum fate fate_of(const struct sim *s, const struct sim_worker_job *j)
{
    if (j->job == NULL) {
        return FATE_WELL;
    }
    struct chance c = chance_of(j->job->r, j->job->guilty ? 7 : 8 + j->attempt);
    if (lost_with(s, j)) {
        return FATE_LOST;
    }
    if (j->job->guilty) {
        return FATE_CRASH + (unsigned)chance_below(&c, 3);
    }
    if (s->settling || j->job->safe || !chance_percent(&c, (unsigned)s->p.faults)) {
        return FATE_WELL;
    }
    return FATE_REFUSED + (unsigned)chance_below(&c, 3);
}

static uint64_t run_of(const struct sim *s, uint64_t r, unsigned attempt)
{
    struct chance c = chance_of(r, 100 + attempt);
    uint64_t usual = s->p.run_us * NS_PER_US;
    uint64_t long_ns = s->p.time_limit_ms * NS_PER_MS / 3;
    if (s->p.special == WORLD_DUE) { /* so that the times of jobs are known */
        return usual * (80 + chance_below(&c, 41)) / 100;
    }
    uint64_t ns = chance_percent(&c, 3) ? 30 * usual : chance_spread(&c, 1000, 2 * usual);
    return ns < long_ns ? ns : long_ns;
}

uint64_t exec_run_ns(const struct sim *s, const struct sim_job *j, unsigned attempt)
{
    return run_of(s, j->r, attempt);
}

static uint64_t run_ns(const struct sim *s, const struct sim_worker *x,
                       const struct sim_worker_job *j)
{
    if (load_is(s) && j->job != NULL && j->job->run_ns != 0) {
        return j->job->run_ns * s->load->slow[worker_hardware(s, x->number)];
    }
    if (told_on(s) && j->job != NULL && j->job->run_ns != 0) {
        return told_run_ns(x, j->job);
    }
    return run_of(s, j->job != NULL ? j->job->r : j->id, j->attempt);
}

/* A job that runs, and never ends; NULL: none does. */
static const struct sim_worker_job *endless_of(const struct sim *s, struct sim_worker *x)
{
    for (const struct sim_worker_job *j = live(x); j != NULL; j = j->next) {
        if (j->state == WJOB_RUNS && fate_of(s, j) == FATE_ENDLESS) {
            return j;
        }
    }
    return NULL;
}

static void on_end(struct sim *s, const struct hap *h);

/* Its next kernel gets the device, unless a kernel there never ends. */
static void on_resume(struct sim *s, const struct hap *h)
{
    struct sim_worker *x = h->actor;
    struct sim_worker_job *j = x->epoch == h->b && x->state == WORKER_RUNS ? find(x, h->a) : NULL;
    if (j == NULL || j->state != WJOB_RUNS || x->silent) {
        return;
    }
    if (endless_of(s, x) != NULL) {
        sim_at(s, s->now_ns + 100 * NS_PER_MS, on_resume, x, j->id, x->epoch);
        return;
    }
    const struct msg_w_started m = {.job = j->id, .at_ns = s->now_ns + x->skew_ns};
    shares_pass(s);
    x->changed_ns = s->now_ns;
    j->paused = false;
    j->resumed = true;
    worker_send(s, x, &schema_msg_w_started, &m, NULL);
    sim_at(s, s->now_ns + run_ns(s, x, j) / 2, on_end, x, j->id, x->epoch);
}

/* Between two of its kernels a job may wait. */
static bool pauses(struct sim *s, struct sim_worker *x, struct sim_worker_job *j)
{
    struct chance c = chance_of(j->job != NULL ? j->job->r : j->id, 200 + j->attempt);
    if (told_on(s) || !j->said || j->resumed || j->steps < 2 || fate_of(s, j) == FATE_ENDLESS ||
        !chance_percent(&c, (unsigned)s->p.pauses)) {
        return false;
    }
    const struct msg_w_paused m = {.job = j->id};
    shares_pass(s);
    x->changed_ns = s->now_ns;
    j->paused = true;
    worker_send(s, x, &schema_msg_w_paused, &m, NULL);
    sim_at(s, s->now_ns + 1 + chance_below(&c, run_ns(s, x, j)), on_resume, x, j->id, x->epoch);
    return true;
}

static void fault(struct sim *s, struct sim_worker *x, const struct sim_worker_job *j)
{
    bool lost = fate_of(s, j) == FATE_LOST;
    struct msg_w_done m = {.job = j->id,
                           .code = lost ? ERR_DEVICE_LOST : ERR_KERNEL_FAULT,
                           .step = 0,
                           .arg = -1,
                           .effects = ERR_EFFECTS_MAYBE,
                           .text = bytes_str(lost ? "the driver is lost" : "illegal address")};
    x->lost_era = lost ? s->era : 0;
    if (!lost) {
        conduct_fault(s, x);
    }
    worker_send(s, x, &schema_msg_w_done, &m, NULL);
    if (!lost && chance_mix(j->job->r ^ j->attempt) % 3 == 0) { /* it does not know what it says */
        m.code = 0;
        worker_send(s, x, &schema_msg_w_done, &m, NULL);
    }
    launcher_ends(s, x, 1 << 8, NS_PER_MS);
}

/* In some worlds a kernel that never ends may have all of the device: others that run do not end.
 */
static bool is_blocked(struct sim *s, struct sim_worker *x, struct sim_worker_job *j)
{
    bool may = s->p.special == WORLD_OVERRUNS || s->p.special == WORLD_PAUSED;
    const struct sim_worker_job *k = may ? endless_of(s, x) : NULL;
    if (k == NULL || k == j || chance_mix(k->id ^ s->course->seed) % 2 == 0) {
        return false;
    }
    if (j->job != NULL) {
        j->job->blocked = true;
    }
    sim_at(s, s->now_ns + 100 * NS_PER_MS, on_end, x, j->id, x->epoch);
    return true;
}

static void on_end(struct sim *s, const struct hap *h)
{
    struct sim_worker *x = h->actor;
    struct sim_worker_job *j = x->epoch == h->b && x->state == WORKER_RUNS ? find(x, h->a) : NULL;
    if (j == NULL || x->silent || is_blocked(s, x, j) || pauses(s, x, j)) {
        return;
    }
    switch (fate_of(s, j)) {
    case FATE_HALF:
        run_steps(x, j, j->steps / 2);
        end(s, x, j, ERR_INTERNAL, ERR_EFFECTS_MAYBE);
        break;
    case FATE_CRASH:
        launcher_ends(s, x, SIGSEGV, 0);
        break;
    case FATE_FAULT:
    case FATE_LOST:
        fault(s, x, j);
        break;
    case FATE_ENDLESS:
        break;
    default:
        run_steps(x, j, j->steps);
        end(s, x, j, 0, ERR_EFFECTS_YES);
        break;
    }
}

static void check_hazards(struct sim *s, struct sim_worker *x, const struct sim_worker_job *j)
{
    for (struct sim_worker_job *k = live(x); k != j; k = k->next) {
        if (k->state != WJOB_ENDED && !x->lied && conflict(j, k)) {
            sim_fail(s,
                     "hazard: job %" PRIu64 " may begin beside job %" PRIu64
                     ", and they use the same bytes",
                     j->id, k->id);
        }
    }
}

static void begin(struct sim *s, struct sim_worker *x, struct sim_worker_job *j)
{
    check_hazards(s, x, j);
    strikes_check_begins(s, j);
    j->began_ns = s->now_ns;
    if (s->now_ns >= j->deadline_ns) {
        end(s, x, j, ERR_DEADLINE, ERR_EFFECTS_NONE);
        return;
    }
    if (j->lacks) {
        end(s, x, j, ERR_NOMEM, ERR_EFFECTS_NONE);
        return;
    }
    enum fate fate = fate_of(s, j);
    if (fate == FATE_REFUSED || fate == FATE_MEMORY) {
        end(s, x, j, fate == FATE_REFUSED ? ERR_LAUNCH : ERR_DEVICE_MEMORY, ERR_EFFECTS_NONE);
        return;
    }
    if (j->job != NULL) {
        j->job->solo = j->job->solo || j->alone;
        j->job->begun++;
        due_begins(s, j->job);
        told_begins(s, j->job);
    }
    uint64_t ns = run_ns(s, x, j);
    shares_pass(s);
    shares_began(s, x, j->job, ns);
    x->changed_ns = s->now_ns;
    j->state = WJOB_RUNS;
    if ((ns > BRIEF_NS && !visit_is_unseen(j->job)) || fate == FATE_ENDLESS) {
        const struct msg_w_started m = {.job = j->id, .at_ns = s->now_ns + x->skew_ns};
        j->said = true;
        worker_send(s, x, &schema_msg_w_started, &m, NULL);
    }
    sim_at(s, s->now_ns + ns, on_end, x, j->id, x->epoch);
    aim_begins(s, x, ns);
    aim_writes(s, j->job, ns);
    aim_endless(s, x, fate == FATE_ENDLESS ? j->job : NULL);
}

static bool may_begin(struct sim_worker *x, struct sim_worker_job *j);

/* A job that was given up before its turn has reported its end, but jobs behind it wait for those
 * before it all the same. */
static bool is_over(struct sim_worker *x, struct sim_worker_job *j)
{
    return j->state == WJOB_ENDED && (!j->gave_up || may_begin(x, j));
}

static bool may_begin(struct sim_worker *x, struct sim_worker_job *j)
{
    for (const struct sim_worker_job *k = live(x); k != NULL && k->place < j->place; k = k->next) {
        if (k->state != WJOB_ENDED && k->stream == j->stream) {
            return false;
        }
    }
    for (unsigned i = 0; i < j->after_count; i++) {
        struct sim_worker_job *k = j->after[i] != 0 ? find(x, j->after[i]) : NULL;
        if (k != NULL && !is_over(x, k)) {
            return false;
        }
        j->after[i] = k == NULL || k->reported ? 0 : j->after[i]; /* it is done with */
    }
    return true;
}

void exec_more(struct sim *s, struct sim_worker *x)
{
    for (struct sim_worker_job *j = live(x); j != NULL; j = j->next) {
        if (j->state != WJOB_WAITS || !may_begin(x, j) ||
            (!j->cancelled && (lease_hungers(s, x, j) || load_delays(s, x, j)))) {
            continue;
        }
        if (j->cancelled) {
            end(s, x, j, ERR_CANCELLED, ERR_EFFECTS_NONE);
        } else {
            begin(s, x, j);
        }
        return exec_more(s, x); /* the end of one may let others begin */
    }
}

void exec_cancel(struct sim *s, struct sim_worker *x, uint64_t id)
{
    struct sim_worker_job *j = find(x, id);
    if (j == NULL) {
        sim_fail(s, "job: job %" PRIu64 " is cancelled, and the worker never got it", id);
    }
    j->cancelled = true;
    if (j->state == WJOB_WAITS) {
        j->gave_up = true;
        end(s, x, j, ERR_CANCELLED, ERR_EFFECTS_NONE);
    }
}

/* The entry stays as long as jobs may name it as their predecessor. */
void exec_retire(struct sim *s, struct sim_worker *x, uint64_t id)
{
    struct sim_worker_job *j = find(x, id);
    if (j == NULL) {
        sim_fail(s, "job: job %" PRIu64 " is retired, and the worker never got it", id);
    }
    if (j->retired && !x->lied) {
        sim_fail(s, "job: job %" PRIu64 " is retired twice", id);
    }
    j->retired = true;
}

/* ---- another front, or the end --------------------------------------------------------------- */

void exec_inventory(struct sim *s, struct sim_worker *x)
{
    for (unsigned i = 0; i < x->buffers; i++) {
        const struct sim_worker_buffer *b = &x->buffer[i];
        struct msg_w_inventory_buffer m = {
            .id = b->id, .size = b->size, .sealed = b->copy >= 0, .arriving = b->comes};
        struct frame_fds fds = {.fd = {b->copy}, .count = b->copy >= 0};
        lie_inventory(s, x, &m, &fds);
        worker_send(s, x, &schema_msg_w_inventory_buffer, &m, fds.count > 0 ? &fds : NULL);
        if (fds.count > 0 && fds.fd[0] != b->copy) {
            (void)close(fds.fd[0]);
        }
    }
    for (unsigned i = 0; i < x->modules; i++) {
        const struct msg_w_inventory_module m = {.module = x->module[i]};
        worker_send(s, x, &schema_msg_w_inventory_module, &m, NULL);
    }
    for (struct sim_worker_job *j = x->job; j != NULL; j = j->next) {
        if (j->retired) {
            continue;
        }
        if (j->job != NULL) {
            j->job->adopted = true;
        }
        const struct msg_w_inventory_job m = {
            .job = j->id, .stream = j->stream, .finished = j->state == WJOB_ENDED};
        worker_send(s, x, &schema_msg_w_inventory_job, &m, NULL);
        if (j->state == WJOB_ENDED) {
            report(s, x, j);
        } else if (j->state == WJOB_RUNS && j->said && !j->paused) {
            const struct msg_w_started started = {.job = j->id, .at_ns = j->began_ns + x->skew_ns};
            worker_send(s, x, &schema_msg_w_started, &started, NULL);
        }
    }
}

bool exec_busy(const struct sim *s, unsigned device)
{
    const struct sim_worker *x =
        s->device[device].latest; /* a spare one may be older than others */
    for (const struct sim_worker_job *j = x != NULL ? x->job : NULL; j != NULL; j = j->next) {
        if (j->state != WJOB_ENDED || !j->reported) {
            return true;
        }
    }
    const struct sim_inbox *in = x != NULL ? x->inbox : NULL;
    while (in != NULL && in->schema != &schema_msg_f_job) { /* settings are no work */
        in = in->next;
    }
    return in != NULL;
}

void exec_worker_gone(struct sim *s, struct sim_worker *x, bool external)
{
    shares_pass(s);
    shares_anew(s);
    ledger_anew();
    if (!external && !x->killed && !x->lied && !x->cut && x->lost_era == 0) {
        strikes_suspect(s, x);
    }
    for (const struct sim_inbox *in = x->inbox; in != NULL; in = in->next) {
        if (in->job != NULL) {
            in->job->external += external;
            in->job->internal += !external;
        }
    }
    for (struct sim_worker_job *j = x->job; j != NULL; j = j->next) {
        bool unsaid = (x->cut || !j->reported) && !j->retired; /* its end was not heard */
        if (j->job != NULL && (j->state != WJOB_ENDED || unsaid)) {
            j->job->external += external;
            j->job->internal += !external;
        }
    }
}
