/* The jobs of users: how they are submitted, and what libgpud says of their ends. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/client/libsim.h"

#define ELEMENT  4u
#define ELEMENTS (SIM_CONTENT / ELEMENT)
#define LATE_NS  (10 * NS_PER_S)

/* ---- what a job does ------------------------------------------------------------------------- */

static struct sim_request none = {.seq = UINT64_MAX}; /* no request was seen, or its life is over */

static struct lib_job *job_begin(struct user *u, struct chance *r)
{
    struct sim *s = u->s;
    struct lib_job *x = calloc(1, sizeof *x);
    x->number = s->jobs;
    x->j = model_job(s);
    x->j->client = u->c;
    x->j->life = u->c->lives;
    x->j->r = chance_next(r);
    x->j->request = &none;
    for (unsigned i = 0; i < SIM_STEPS; i++) {
        x->at[i] = x->host[i];
    }
    x->user = u;
    x->next = u->jobs;
    u->jobs = x;
    u->live++;
    return x;
}

/* A part of the buffer; mostly all of it. */
static void choose_part(const struct sim_buffer *b, struct chance *r, uint64_t *ret_first,
                        uint64_t *ret_count)
{
    uint64_t all = b->bytes / ELEMENT;
    all = all < ELEMENTS ? all : ELEMENTS;
    *ret_first = chance_percent(r, 60) ? 0 : chance_below(r, all);
    *ret_count =
        *ret_first == 0 && chance_percent(r, 80) ? all : 1 + chance_below(r, all - *ret_first);
}

/* A kernel that writes one of two arrays takes no arrays that overlap in part. */
static bool overlap(const struct sim_step *t)
{
    return t->op == OP_LAUNCH && !t->inlined && t->from == t->to && t->from_first != t->to_first &&
           t->from_first < t->to_first + t->count && t->to_first < t->from_first + t->count;
}

static bool can_launch(const struct user *u)
{
    return u->axpy.id != 0 || u->modules > 0;
}

static gpud_arg arg_of(struct user *u, const struct sim_buffer *b, uint64_t first, uint64_t count)
{
    unsigned i = 0;
    while (i < u->c->buffers && u->c->buffer[i] != b) {
        i++;
    }
    return gpud_slice(i < u->c->buffers ? u->handle[i] : (gpud_buffer){0}, first, count);
}

static gpud_arg scalar_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return gpud_f32(value);
}

static void fill(uint32_t *host, const struct sim_step *t)
{
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        host[i] = t->value + i;
    }
}

/* The step's array may lie in shared memory. */
static uint32_t *choose_place(struct lib_job *x, const struct sim_step *t)
{
    unsigned i = (unsigned)(t - x->j->step);
    uint32_t *shared = array_take(x);
    if (shared != NULL) {
        fill(shared, t);
        x->at[i] = shared;
    }
    return x->at[i];
}

/* Chooses the buffers and parts of a step, whose op is set. */
static void choose_step(struct user *u, struct lib_job *x, struct sim_step *t, struct chance *r)
{
    struct sim_client *c = u->c;
    t->to = c->buffer[chance_below(r, c->buffers)];
    t->value = 1 + (uint32_t)chance_below(r, UINT32_MAX);
    choose_part(t->to, r, &t->to_first, &t->count);
    if (t->op == OP_COPY || t->op == OP_LAUNCH) {
        uint64_t count = 0;
        t->from = c->buffer[chance_below(r, c->buffers)];
        choose_part(t->from, r, &t->from_first, &count);
        t->count = t->count < count ? t->count : count;
    }
    if (t->op == OP_LAUNCH) {
        t->inout = true;
    }
    fill(x->host[t - x->j->step], t);
}

static void note_step(struct lib_job *x, const struct sim_step *t)
{
    x->j->wrong = x->j->wrong || overlap(t);
    x->j->writes = x->j->writes || step_writes(t);
    sim_log(x->user->s,
            "    op %u of %#" PRIx64 " at %" PRIu64 ", %" PRIu64 " elements; from %#" PRIx64
            " at %" PRIu64 "; value %#x",
            t->op, t->to->handle, t->to_first, t->count, t->from != NULL ? t->from->handle : 0,
            t->from_first, t->value);
}

/* The arguments of a launch, with a kernel of the user's. */
static uint32_t launch_args(struct user *u, struct lib_job *x, struct sim_step *t, struct chance *r,
                            gpud_kernel *ret_kernel, gpud_arg args[3])
{
    uint32_t count = 0;
    unsigned k = u->modules > 0 ? (unsigned)chance_below(r, u->modules) : 0;
    if (u->modules == 0 || (u->axpy.id != 0 && chance_percent(r, 50))) {
        *ret_kernel = u->axpy;
        args[count++] = scalar_of(t->value);
    } else {
        *ret_kernel = u->kernel[k];
        t->bad = u->bad[k] * 2 + (u->bad[k] != 0);
        x->j->guilty = x->j->guilty || t->bad != 0;
        x->j->loaded = true;
    }
    args[count++] = arg_of(u, t->from, t->from_first, t->count);
    args[count++] = t->inlined ? gpud_host_inout(choose_place(x, t), t->count, GPUD_F32)
                               : arg_of(u, t->to, t->to_first, t->count);
    return count;
}

/* ---- its requests and answers ---------------------------------------------------------------- */

struct lib_job *job_by_request(struct user *u, const struct sim_request *q)
{
    struct lib_job *x = q->job != NULL ? u->jobs : NULL;
    while (x != NULL && x->j != q->job) {
        x = x->next;
    }
    return x;
}

struct lib_job *job_by_id(struct user *u, uint64_t id)
{
    struct lib_job *x = u->jobs;
    while (x != NULL && (x->j->id != id || x->j->id_era != u->s->era)) {
        x = x->next;
    }
    return x;
}

static bool said(const struct lib_job *x, int code, unsigned *ret_effects)
{
    for (unsigned i = x->said_count; i > 0; i--) {
        if (x->said[i - 1].code == code) {
            *ret_effects = x->said[i - 1].effects;
            return true;
        }
    }
    return false;
}

/* libgpud knows its handles, and translates them for another front. What another front does not
 * have, it is not asked for. */
static void check_known(const struct lib_job *x, int code)
{
    const struct sim *s = x->user->s;
    bool unknown = code == GPUD_ERR_BAD_HANDLE || code == GPUD_ERR_STALE_HANDLE;
    bool excused = s->killed_session || s->lies || memory_failed() || x->user->c->starved;
    excused = excused || x->user->lacks;
    if (unknown && !excused && !job_names_freed(x->j)) {
        sim_fail(x->user->s,
                 "handle: request %" PRIu64 " of user %u names what the front does not know: %s",
                 x->j->request->seq, x->user->index, gpud_err_name(code));
    }
}

void job_said(struct lib_job *x, int code, unsigned effects)
{
    unsigned before = 0;
    check_known(x, code);
    if (said(x, code, &before) && before == effects) {
        return;
    }
    if (x->said_count == SAID_MAX) {
        memmove(&x->said[0], &x->said[1], (SAID_MAX - 1) * sizeof x->said[0]);
        x->said_count--;
    }
    x->said[x->said_count].code = code;
    x->said[x->said_count++].effects = effects;
}

static bool names(const struct proto_arg *arg, const struct sim_buffer *b, uint64_t first,
                  uint64_t count)
{
    return arg->tag == ARG_BUFFER && arg->handle == b->handle && arg->first == first &&
           (arg->count == count || arg->count == 0);
}

/* Calls that block have no label. A request is of the call that asks for the same. */
static bool matches(const struct lib_job *x, const struct msg_submit *m)
{
    const struct sim_step *t = &x->j->step[0];
    struct proto_iter it = proto_iter_of(m->steps);
    struct proto_step step;
    struct proto_arg arg;
    if (!x->blocks || !proto_list_next(&it, &schema_step, &step) || step.op != t->op) {
        return false;
    }
    it = proto_iter_of(step.args);
    bool launches = step.op == OP_LAUNCH;
    while (proto_list_next(&it, &schema_arg, &arg)) {
        if (launches ? names(&arg, t->from, t->from_first, t->count)
                     : names(&arg, t->to, t->to_first, t->count)) {
            return true;
        }
    }
    return false;
}

/* A kernel writes the client's memory in place. */
static bool writes_array(const struct msg_submit *m)
{
    struct proto_iter it = proto_iter_of(m->steps);
    struct proto_step step;
    struct proto_arg arg;
    while (proto_list_next(&it, &schema_step, &step)) {
        struct proto_iter args = proto_iter_of(step.args);
        while (step.op == OP_LAUNCH && proto_list_next(&args, &schema_arg, &arg)) {
            if (arg.tag == ARG_ARENA) {
                return true;
            }
        }
    }
    return false;
}

static bool awaits(const struct lib_job *x, const char *label, const struct msg_submit *m)
{
    bool again = x->blocks && x->said_count > 0 && !x->over; /* the call asks once more */
    bool open = (!x->bound || again) && (!x->over || x->code == GPUD_ERR_TIMEOUT);
    return label[0] == 'j' ? x->label && x->number == strtoull(label + 1, NULL, 10)
                           : label[0] == '\0' && open && matches(x, m);
}

/* A call that blocks does so while the front is busy. */
static bool asks_again(const struct lib_job *x)
{
    return (x->blocks || x->runs) && !x->over && x->said_count > 0 &&
           x->said[x->said_count - 1].code == GPUD_ERR_BUSY;
}

void job_bind(struct user *u, struct sim_request *q, const struct msg_submit *m)
{
    char label[16] = "";
    struct lib_job *found = NULL;
    (void)bytes_to_str(m->label, label, sizeof label);
    for (struct lib_job *x = u->jobs; x != NULL; x = x->next) {
        if (awaits(x, label, m)) {
            x->twin = x->twin || found != NULL;
            found = x; /* the oldest */
        }
    }
    for (struct lib_job *x = u->jobs; x != found && found != NULL; x = x->next) {
        x->twin = x->twin || awaits(x, label, m);
    }
    if (found == NULL) {
        sim_log(u->s, "user %u: request %" PRIu64 ", label '%s', is of no job", u->index, q->seq,
                label);
        return;
    }
    if (found->label && found->bound && !asks_again(found)) {
        sim_fail(u->s, "twice: user %u submits one job with requests %" PRIu64 " and %" PRIu64,
                 u->index, found->j->request->seq, q->seq);
    }
    sim_log(u->s, "user %u: request %" PRIu64 " is of its job number %" PRIu64, u->index, q->seq,
            found->number);
    found->bound = true;
    found->j->writes = found->j->writes || writes_array(m);
    found->j->request = q;
    found->j->limit_ns = m->limit_ns;
    found->j->deadline_ns = m->deadline_ns;
    q->job = found->j;
}

/* ---- its end --------------------------------------------------------------------------------- */

static void take_outputs(struct lib_job *x)
{
    for (unsigned i = 0; i < x->j->steps; i++) {
        struct sim_step *t = &x->j->step[i];
        const void *data = NULL;
        size_t bytes = 0;
        bool own = x->at[i] == x->host[i];
        if (x->at[i] == NULL) {
            continue; /* its user has freed the memory since */
        }
        if (t->inlined) {
            memcpy(t->got, x->at[i], t->count * ELEMENT);
            t->answered = true;
        } else if (t->op == OP_READ && x->job != NULL && own) {
            int rc = CALL(x->user, gpud_job_output, x->job, i, 0, &data, &bytes);
            if (rc != 0 && !x->user->c->starved) {
                sim_fail(x->user->s, "output: job %" PRIu64 " of user %u has no output: %s",
                         x->j->id, x->user->index, gpud_err_name(rc));
            }
            t->answered = rc == 0;
        } else if (t->op == OP_READ) {
            data = x->at[i];
            bytes = t->count * ELEMENT;
            t->answered = true;
        }
        if (data != NULL && bytes != t->count * ELEMENT) {
            sim_fail(x->user->s, "output: step %u of job %" PRIu64 " has %zu bytes", i, x->j->id,
                     bytes);
        }
        if (data != NULL) {
            memcpy(t->got, data, bytes);
        }
    }
}

/* What the job names is lost, or could not be restored. */
static bool of_loss(const struct lib_job *x, int code)
{
    bool lost = x->user->misses || job_names_gone(x->j);
    return x->user->lacks ? code != 0 : code == GPUD_ERR_BUFFER_LOST && lost;
}

/* Codes that libgpud may give a job by itself. */
static bool of_library(const struct lib_job *x, int code)
{
    bool local = code == GPUD_ERR_CONNECT || code == GPUD_ERR_CLOSED || code == GPUD_ERR_TIMEOUT;
    /* libgpud finds no memory to keep why a program was not restored: STATE */
    bool memory = (code == GPUD_ERR_NOMEM || code == GPUD_ERR_STATE) && x->user->c->starved;
    bool cancelled = code == GPUD_ERR_CANCELLED && x->j->cancelled;
    bool pieces = x->j->step[0].op == OP_COPY && x->blocks;
    if (x->twin) {
        return true; /* the front may have said so of the other one */
    }
    return local || memory || cancelled || pieces || of_loss(x, code) ||
           (x->blocks && !x->bound && code != 0);
}

static void blame(const struct lib_job *x, const char *why)
{
    sim_fail(x->user->s, "end: job %" PRIu64 " of user %u, request %" PRIu64 ", ends with %s: %s",
             x->j->id, x->user->index, x->j->request->seq, gpud_err_name(x->code), why);
}

static void check_effects(const struct lib_job *x, unsigned by_front)
{
    const struct sim_job *j = x->j;
    bool here = j->code == GPUD_ERR_BUFFER_LOST && x->user->misses; /* libgpud says so, too */
    bool doubted = (x->renewed || here) && by_front == 0 && j->effects == GPUD_EFFECTS_MAYBE;
    if (by_front != j->effects && !doubted && !x->user->c->starved) {
        blame(x, "the front said other effects");
    }
    if (x->began_before && j->code != 0 && j->effects == 0 && j->writes) {
        blame(x, "a session that is over began it, and it is said to have changed nothing");
    }
}

/* A front has said this end, with these effects. */
static void settle_said(struct lib_job *x, unsigned by_front)
{
    struct sim *s = x->user->s;
    struct sim_job *j = x->j;
    j->outcome = OUTCOME_KNOWN;
    check_effects(x, by_front);
    /* a worker gets its frames late when the front has stood still */
    if (j->code != GPUD_ERR_TIME_LIMIT || s->now_ns >= s->stalled_ns + LATE_NS) {
        rules_result(s, j);
    }
    /* a former front may have run it, too; and a job without an id is not played */
    bool unseen = j->effects != 0 && j->id == 0;
    if (j->code != 0 && (j->request->sent_era != s->era || unseen)) {
        model_doubt(j);
    }
}

/* No front has said so. */
static void settle_unsaid(struct lib_job *x)
{
    struct sim_job *j = x->j;
    bool waited = j->code == GPUD_ERR_TIMEOUT;
    j->outcome = x->bound || waited ? OUTCOME_UNKNOWN : OUTCOME_KNOWN;
    if (!of_library(x, j->code)) {
        blame(x, "no front said so");
    }
    if (j->outcome == OUTCOME_UNKNOWN) {
        model_doubt(j);
    }
    if (j->code != 0 && !waited && j->effects == 0 && j->writes && j->begun > 0) {
        blame(x, "it has begun, and is said to have changed nothing");
    }
}

static void settle(struct lib_job *x, int code, unsigned effects)
{
    unsigned by_front = 0;
    x->code = x->j->code = code;
    x->j->effects = effects;
    x->over = true;
    x->user->live--;
    if (said(x, code, &by_front)) {
        settle_said(x, by_front);
    } else {
        settle_unsaid(x);
    }
}

/* No device writes for it any more, as gpud.h says. */
static bool is_done_with(const struct lib_job *x)
{
    bool early = x->code == GPUD_ERR_TIME_LIMIT || x->code == GPUD_ERR_DEADLINE ||
                 x->code == GPUD_ERR_WORKER_LOST;
    return x->j->outcome == OUTCOME_KNOWN && !x->renewed && !early;
}

/* libgpud has said the end of a job with an object. */
static void take_end(struct lib_job *x, int code)
{
    struct user *u = x->user;
    gpud_error e = {.size = sizeof e};
    if (CALL(u, gpud_job_error, x->job, &e) != 0 || e.code != code) {
        sim_fail(u->s, "end: job %" PRIu64 " of user %u ends with %s, and has error %s", x->j->id,
                 u->index, gpud_err_name(code), gpud_err_name(e.code));
    }
    if (x->done_calls > 0 && x->done_code != code) {
        sim_fail(u->s, "done: job %" PRIu64 " of user %u ends with %s, and its callback got %s",
                 x->j->id, u->index, gpud_err_name(code), gpud_err_name(x->done_code));
    }
    if (x->done_wanted && x->done_calls != 1) {
        sim_fail(u->s, "done: the callback of job %" PRIu64 " of user %u ran %u times", x->j->id,
                 u->index, x->done_calls);
    }
    settle(x, code, (unsigned)e.effects);
    if (code == 0) {
        take_outputs(x);
    }
    arrays_leave(x, is_done_with(x));
    call_begin(u, "gpud_job_free");
    gpud_job_free(x->job);
    (void)call_end(u, 0);
    x->job = NULL;
    arrays_replace(u);
}

/* A call that blocks has ended. */
static void call_over(struct lib_job *x, int rc)
{
    x->blocks = true;
    settle(x, rc, rc != 0 ? (unsigned)gpud_last_error()->effects : 0);
    if (rc == 0) {
        take_outputs(x);
    }
    arrays_leave(x, is_done_with(x));
    arrays_replace(x->user);
    for (unsigned i = 0; i < x->j->steps && rc == GPUD_ERR_BUFFER_LOST; i++) {
        struct sim_buffer *b = x->j->step[i].to;
        if (x->j->step[i].from == NULL || x->j->step[i].from == b) {
            buffer_gone(x->user, b);
        }
    }
}

static void on_done(gpud_job *job, int code, void *user)
{
    struct lib_job *x = user;
    const char *call = callback_begin(x->user);
    if (x->job != NULL && x->job != job) {
        sim_fail(x->user->s, "done: user %u gets the callback of another job", x->user->index);
    }
    if (x->released) {
        sim_fail(x->user->s, "done: user %u gets the callback of a job that it has freed",
                 x->user->index);
    }
    x->done_calls++;
    x->done_code = code;
    callback_end(x->user, call);
}

/* ---- calls that block ------------------------------------------------------------------------ */

static int call_launch(struct user *u, struct lib_job *x, struct sim_step *t, struct chance *r)
{
    gpud_kernel kernel;
    gpud_arg args[3];
    t->inlined = chance_percent(r, 30);
    uint32_t count = launch_args(u, x, t, r, &kernel, args);
    t->to = t->inlined ? t->from : t->to;
    note_step(x, t);
    return CALL(u, gpud_call, u->lib, kernel, args, count, NULL);
}

static void block(struct user *u, struct chance *r)
{
    static const unsigned ops[] = {OP_WRITE, OP_WRITE, OP_READ,  OP_READ,
                                   OP_FILL,  OP_COPY,  OP_LAUNCH};
    unsigned op = ops[chance_below(r, can_launch(u) ? 7 : 6)];
    struct lib_job *x = job_begin(u, r);
    struct sim_step *t = &x->j->step[x->j->steps++];
    int rc = 0;
    x->blocks = true;
    t->op = op;
    choose_step(u, x, t, r);
    uint32_t *host = op == OP_READ || op == OP_WRITE ? choose_place(x, t) : NULL;
    gpud_arg to = arg_of(u, t->to, t->to_first, t->count);
    gpud_buffer handle = {.id = to.handle};
    if (op == OP_LAUNCH) {
        rc = call_launch(u, x, t, r);
    } else {
        note_step(x, t);
    }
    if (op == OP_WRITE) {
        rc = CALL(u, gpud_write, u->lib, handle, GPUD_F32, t->to_first, t->count, host, NULL);
    } else if (op == OP_READ) {
        rc = CALL(u, gpud_read, u->lib, handle, GPUD_F32, t->to_first, t->count, host, NULL);
    } else if (op == OP_FILL) {
        rc = CALL(u, gpud_fill, u->lib, to, scalar_of(t->value));
    } else if (op == OP_COPY) {
        rc = CALL(u, gpud_copy, u->lib, to, arg_of(u, t->from, t->from_first, t->count));
    }
    call_over(x, rc);
}

void job_look(struct user *u, struct sim_buffer *b)
{
    struct chance r = chance_of(b->handle, 3);
    unsigned i = 0;
    while (i < u->c->buffers && u->c->buffer[i] != b) {
        i++;
    }
    if (i == u->c->buffers) {
        return; /* it is lost by now */
    }
    uint64_t all = b->bytes / ELEMENT;
    struct lib_job *x = job_begin(u, &r);
    x->blocks = true;
    x->j->last = true;
    x->j->steps = 1;
    x->j->step[0] =
        (struct sim_step){.op = OP_READ, .to = b, .count = all < ELEMENTS ? all : ELEMENTS};
    call_over(x, CALL(u, gpud_read, u->lib, u->handle[i], GPUD_F32, 0, x->j->step[0].count,
                      x->host[0], NULL));
}

/* ---- jobs with an object --------------------------------------------------------------------- */

/* A job that works in shared memory may be answered while a device still writes there. */
static uint64_t choose_brief(const struct lib_job *x)
{
    struct chance c = chance_of(x->j->r, 77);
    bool shared = false;
    for (unsigned i = 0; i < x->j->steps; i++) {
        shared = shared || x->at[i] != x->host[i];
    }
    return shared && chance_percent(&c, 20)
               ? chance_spread(&c, 10 * NS_PER_US, x->user->s->p.run_us * NS_PER_US)
               : 0;
}

static void choose_options(struct user *u, struct lib_job *x, struct chance *r, char label[16],
                           gpud_submit_options *o)
{
    uint64_t brief_ns = choose_brief(x);
    *o = (gpud_submit_options){.size = sizeof *o, .label = label};
    (void)snprintf(label, 16, "j%" PRIu64, x->number);
    x->label = true;
    o->flags |= chance_percent(r, 30) ? GPUD_SUBMIT_HELD : 0;
    o->flags |= chance_percent(r, 25) ? GPUD_SUBMIT_BLOCK : 0;
    o->flags |= chance_percent(r, 8) ? GPUD_SUBMIT_DETACHED : 0;
    o->priority = chance_percent(r, 20) ? (int32_t)chance_below(r, 20) - 5 : 0;
    o->job_class = (uint32_t)(chance_mix(x->number) % (GPUD_CLASS_BATCH + 1));
    o->deadline_ns = chance_percent(r, 10) ? chance_spread(r, NS_PER_MS, 10 * NS_PER_S) : 0;
    o->time_limit_ns = chance_percent(r, 6) ? chance_spread(r, NS_PER_MS, 10 * NS_PER_S) : brief_ns;
    o->device = chance_percent(r, 4) ? GPUD_ON(chance_below(r, u->s->p.devices)) : 0;
    x->done_wanted = chance_percent(r, 40);
    o->done = x->done_wanted ? on_done : NULL;
    o->user = x;
}

/* It was not submitted. */
static void refused(struct lib_job *x, int rc)
{
    x->over = true;
    x->code = rc;
    x->user->live--;
    x->j->code = rc;
    x->j->outcome = OUTCOME_KNOWN;
    arrays_leave(x, true);
    if (x->bound || x->done_calls > 0) {
        blame(x, "it was submitted");
    }
}

static void launch(struct user *u, struct lib_job *x, struct sim_step *t, struct chance *r)
{
    gpud_kernel kernel;
    gpud_arg args[3];
    gpud_submit_options o;
    char label[16];
    gpud_job *job = NULL;
    uint32_t count = launch_args(u, x, t, r, &kernel, args);
    t->to = t->inlined ? t->from : t->to;
    note_step(x, t);
    choose_options(u, x, r, label, &o);
    int rc = CALL(u, gpud_launch, u->lib, kernel, args, count, NULL, &o, &job);
    if (rc != 0) {
        refused(x, rc);
    } else {
        x->job = job;
    }
}

void job_guilty(struct user *u, struct chance *r)
{
    struct lib_job *x = job_begin(u, r);
    struct sim_step *t = &x->j->step[x->j->steps++];
    t->op = OP_LAUNCH;
    choose_step(u, x, t, r);
    t->inlined = chance_percent(r, 80);
    launch(u, x, t, r);
}

/* Shared memory gets the bytes in place, if the daemon has it. */
static void add_read(struct user *u, struct lib_job *x, gpud_program *p, const struct sim_step *t,
                     gpud_arg from)
{
    unsigned i = (unsigned)(t - x->j->step);
    bool own = choose_place(x, t) == x->host[i];
    if (own ||
        CALL(u, gpud_program_read_to, p, gpud_host_out(x->at[i], t->count, GPUD_F32), from) < 0) {
        x->at[i] = x->host[i];
        (void)CALL(u, gpud_program_read, p, from);
    }
}

static void add_step(struct user *u, struct lib_job *x, gpud_program *p, bool reads,
                     struct chance *r)
{
    struct sim_step *t = &x->j->step[x->j->steps++];
    unsigned n = (unsigned)chance_below(r, 100);
    gpud_kernel kernel;
    gpud_arg args[3];
    t->op = reads                      ? OP_READ
            : n < 22                   ? OP_FILL
            : n < 40                   ? OP_WRITE
            : n < 58                   ? OP_COPY
            : n < 80 || !can_launch(u) ? OP_READ
                                       : OP_LAUNCH;
    choose_step(u, x, t, r);
    gpud_arg to = arg_of(u, t->to, t->to_first, t->count);
    if (t->op == OP_FILL) {
        (void)CALL(u, gpud_program_fill, p, to, scalar_of(t->value));
    } else if (t->op == OP_WRITE) {
        (void)CALL(u, gpud_program_write, p, to,
                   gpud_host_in(x->host[t - x->j->step], t->count, GPUD_F32));
    } else if (t->op == OP_COPY) {
        (void)CALL(u, gpud_program_copy, p, to, arg_of(u, t->from, t->from_first, t->count));
    } else if (t->op == OP_READ) {
        add_read(u, x, p, t, to);
    } else {
        uint32_t count = launch_args(u, x, t, r, &kernel, args);
        (void)CALL(u, gpud_program_launch, p, kernel, args, count, NULL);
    }
    note_step(x, t);
}

static void submit(struct user *u, struct lib_job *x, gpud_program *p, struct chance *r)
{
    gpud_submit_options o;
    char label[16];
    gpud_job *job = NULL;
    choose_options(u, x, r, label, &o);
    int rc = 0;
    if (chance_percent(r, 25)) {
        x->runs = true;
        rc = CALL(u, gpud_run, u->lib, p, NULL, 0, &o, &job);
        x->runs = false;
    } else {
        rc = CALL(u, gpud_submit, u->lib, p, NULL, 0, &o, &job);
    }
    x->job = job;
    if (job == NULL) {
        refused(x, rc);
    }
}

static void program(struct user *u, struct chance *r)
{
    gpud_program *p = NULL;
    if (CALL(u, gpud_program_create, u->lib, "paint", &p) != 0) {
        return;
    }
    struct lib_job *x = job_begin(u, r);
    unsigned count = 1 + (unsigned)chance_below(r, SIM_STEPS);
    bool reads = chance_percent(r, 25); /* may run again when its worker ends */
    for (unsigned i = 0; i < count; i++) {
        add_step(u, x, p, reads, r);
    }
    int rc = CALL(u, gpud_program_seal, p);
    if (rc != 0) {
        refused(x, rc);
    } else {
        submit(u, x, p, r);
    }
    call_begin(u, "gpud_program_free");
    gpud_program_free(p);
    (void)call_end(u, 0);
}

void job_something(struct user *u, struct chance *r)
{
    unsigned n = (unsigned)chance_below(r, 100);
    arrays_some(u);
    if (u->c->buffers == 0) {
        return;
    }
    if (n < 40) {
        block(u, r);
    } else if (n < 60 && can_launch(u)) {
        struct lib_job *x = job_begin(u, r);
        struct sim_step *t = &x->j->step[x->j->steps++];
        t->op = OP_LAUNCH;
        choose_step(u, x, t, r);
        t->inlined = chance_percent(r, 40);
        launch(u, x, t, r);
    } else {
        program(u, r);
    }
}

/* ---- waiting, cancelling, freeing ------------------------------------------------------------ */

static struct lib_job *some_job(struct user *u, struct chance *r)
{
    uint64_t skip = u->live > 0 ? chance_below(r, u->live) : 0;
    struct lib_job *x = u->jobs;
    for (; x != NULL; x = x->next) {
        if (!x->over && x->job != NULL && skip-- == 0) {
            return x;
        }
    }
    return NULL;
}

static bool is_done(struct user *u, const gpud_job *job)
{
    call_begin(u, "gpud_job_done");
    bool done = gpud_job_done(job);
    (void)call_end(u, 0);
    return done;
}

/* A call with a limit of its own. */
static int limited(struct user *u, uint64_t timeout_ns, const struct lib_job *x)
{
    struct sim *s = u->s;
    uint64_t began_ns = s->now_ns;
    uint64_t usual_ns = u->timeout_ns;
    u->timeout_ns = 0;
    int rc = x != NULL ? CALL(u, gpud_wait, x->job, timeout_ns)
                       : CALL(u, gpud_flush, u->lib, timeout_ns);
    u->timeout_ns = usual_ns;
    if (s->now_ns - began_ns > timeout_ns + SLACK_NS && s->stalled_ns < began_ns) {
        sim_fail(s, "late: a wait of user %u takes %" PRIu64 " ms", u->index,
                 (s->now_ns - began_ns) / NS_PER_MS);
    }
    return rc;
}

void job_flush(struct user *u, uint64_t timeout_ns)
{
    (void)limited(u, timeout_ns, NULL);
}

static void wait_for(struct lib_job *x, uint64_t timeout_ns)
{
    struct user *u = x->user;
    int rc = limited(u, timeout_ns, x);
    if (is_done(u, x->job)) {
        take_end(x, rc);
    } else if (rc != GPUD_ERR_TIMEOUT) {
        sim_fail(u->s, "wait: gpud_wait of user %u returns %s, and its job has not ended", u->index,
                 gpud_err_name(rc));
    }
}

/* The user does not care for its end. */
static void release(struct lib_job *x)
{
    struct user *u = x->user;
    x->released = true;
    call_begin(u, "gpud_job_free");
    gpud_job_free(x->job);
    (void)call_end(u, 0);
    x->job = NULL;
    x->over = true;
    u->live--;
    x->j->outcome = OUTCOME_UNKNOWN;
    arrays_leave(x, false);
    model_doubt(x->j);
}

void job_wait_some(struct user *u, struct chance *r)
{
    struct lib_job *x = some_job(u, r);
    if (x != NULL && chance_percent(r, 4)) {
        release(x);
    } else if (x != NULL) {
        wait_for(x, chance_percent(r, 30) ? 0 : chance_spread(r, NS_PER_MS, 60 * NS_PER_S));
    }
}

static void cancel(struct lib_job *x)
{
    x->j->cancelled = true;
    int rc = CALL(x->user, gpud_cancel, x->job);
    (void)rc;
}

void job_cancel_some(struct user *u, struct chance *r)
{
    struct lib_job *x = some_job(u, r);
    if (x != NULL) {
        cancel(x);
    }
}

void job_cancel_it(struct user *u, struct sim_job *j)
{
    struct lib_job *x = u->jobs;
    while (x != NULL && x->j != j) {
        x = x->next;
    }
    if (x != NULL && !x->over && x->job != NULL) {
        cancel(x);
    }
}

void jobs_collect(struct user *u, uint64_t timeout_ns)
{
    for (struct lib_job *x = u->jobs; x != NULL; x = x->next) {
        if (!x->over && x->job != NULL) {
            wait_for(x, timeout_ns);
        }
    }
}

static void free_all(struct user *u)
{
    while (u->jobs != NULL) {
        struct lib_job *x = u->jobs;
        u->jobs = x->next;
        x->j->request = &none; /* another life has such numbers, too */
        free(x);
    }
}

void jobs_closed(struct user *u)
{
    for (struct lib_job *x = u->jobs; x != NULL; x = x->next) {
        if (!x->over && x->job != NULL) {
            gpud_error e = {.size = sizeof e};
            if (!is_done(u, x->job)) {
                sim_fail(u->s,
                         "close: user %u has closed its client, and job %" PRIu64 " has not ended",
                         u->index, x->j->id);
            }
            (void)CALL(u, gpud_job_error, x->job, &e);
            take_end(x, e.code);
        }
    }
    if (u->live != 0) {
        sim_fail(u->s, "close: user %u has %u jobs without an end", u->index, u->live);
    }
    free_all(u);
}

void jobs_free(struct sim *s)
{
    for (unsigned i = 0; i < s->clients; i++) {
        free_all(user_of(&s->client[i]));
    }
}
