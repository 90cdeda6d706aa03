#include "daemon/worker/run/graph.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/shape.h"

#define NONE (-1)

/* A range of memory that a step uses. */
struct touch {
    uint64_t tag, id, begin, end;
    bool writes;
};

enum step_state {
    STEP_PENDING,
    STEP_BEGUN,
    STEP_OVER, /* for large copies; other steps are over when the device passes a mark */
};

struct graph_step {
    struct proto_wstep s;
    unsigned first_touch, touches;
    /* id of the module that a launch is of, or that a transfer's buffer is a variable of; 0:
     * none */
    uint64_t module;
    bool large;  /* it goes through a copy queue */
    bool marked; /* a large copy waits for it, so a mark directly follows it */
    enum step_state state;
    unsigned mark;  /* index of that mark, once the step has begun */
    int need_small; /* index of the last small step that it waits for; NONE. For large steps only */
    int need_copy[2]; /* by direction: index of the last large step that it waits for; NONE */
    struct copy copy;
    struct graph *graph;
};

struct graph {
    uint8_t *frame; /* owned: the bytes that the steps point into */
    struct job *job;
    struct executor *x; /* not owned; NULL until graph_advance */
    struct graph_step *step;
    struct touch *touch;
    unsigned count;
    unsigned first;    /* index: all steps before it have begun */
    unsigned reserved; /* marks that large copies wait for and that do not exist yet */
    unsigned smalls;   /* commands in the stream so far: small steps, and zeros in temporaries */
    unsigned busy;     /* large copies that have begun and are not over */
    struct job_mark open;
    struct executor_progress progress;
    bool any_open; /* there are commands behind the last mark */
    bool waited;   /* executor_wait_all was called */
    bool clearing; /* the first mark is behind zeros in temporaries */
    bool stopped;
};

/* ---- which steps wait for which ------------------------------------------------------------- */

/* A launch may use any variable of its module without naming it. */
static bool meet_in_module(const struct graph_step *a, const struct graph_step *b)
{
    return a->module != 0 && a->module == b->module &&
           (a->s.op == OP_LAUNCH) != (b->s.op == OP_LAUNCH);
}

static bool meets(const struct graph *g, const struct graph_step *a, const struct graph_step *b)
{
    if (meet_in_module(a, b)) {
        return true;
    }
    for (unsigned i = 0; i < a->touches; i++) {
        const struct touch *s = &g->touch[a->first_touch + i];
        for (unsigned k = 0; k < b->touches; k++) {
            const struct touch *t = &g->touch[b->first_touch + k];
            if ((s->writes || t->writes) && s->tag == t->tag && s->id == t->id &&
                s->begin < t->end && t->begin < s->end) {
                return true;
            }
        }
    }
    return false;
}

static enum copy_direction direction_of(const struct graph_step *t)
{
    return t->s.op == OP_WRITE ? COPY_TO_DEVICE : COPY_FROM_DEVICE;
}

static void find_needs(struct graph *g, unsigned i, bool all)
{
    struct graph_step *t = &g->step[i];
    t->need_small = t->need_copy[0] = t->need_copy[1] = NONE;
    for (int k = (int)i - 1; k >= 0; k--) {
        const struct graph_step *before = &g->step[k];
        int *need = before->large ? &t->need_copy[direction_of(before)] : &t->need_small;
        if ((before->large || t->large) && *need == NONE && (all || meets(g, t, before))) {
            *need = k;
        }
    }
}

/* The number of marks is limited: a large copy that would need one more becomes a small step. */
static void settle_needs(struct graph *g)
{
    bool all = g->count > GRAPH_STEPS_MAX;
    for (unsigned i = 0; i < g->count; i++) {
        struct graph_step *t = &g->step[i];
        find_needs(g, i, all);
        struct graph_step *before = t->need_small == NONE ? NULL : &g->step[t->need_small];
        if (!t->large || before == NULL || before->marked) {
            continue;
        }
        if (g->reserved == GRAPH_MARKS_MAX) {
            t->large = false;
            find_needs(g, i, all);
            continue;
        }
        before->marked = true;
        g->reserved++;
    }
}

/* Does the step write its argument number `i`? */
static bool writes_arg(const struct proto_wstep *s, const struct proto_ref *ref, unsigned i)
{
    switch (s->op) {
    case OP_READ:
        return i == 1; /* an arena */
    case OP_WRITE:
    case OP_COPY:
        return i == 0;
    case OP_LAUNCH:
    case FRAME_OP_LIBRARY:
        return ref->access != ACCESS_IN;
    default:
        return true;
    }
}

static uint64_t module_of(const struct buffer *b)
{
    return b->module != NULL ? b->module->id : 0;
}

static void step_read(struct graph *g, const struct job_scope *scope, const struct proto_wstep *s,
                      unsigned *touches)
{
    struct graph_step *t = &g->step[g->count++];
    *t = (struct graph_step){
        .s = *s, .first_touch = *touches, .large = job_step_large(scope, g->job, s), .graph = g};
    t->module = s->op == OP_LAUNCH ? s->module : 0;
    struct proto_iter it = proto_iter_of(s->args);
    struct proto_ref ref;
    for (unsigned i = 0; proto_list_next(&it, &schema_ref, &ref); i++) {
        if (ref.tag == REF_BUFFER || ref.tag == REF_TEMP || ref.tag == REF_ARENA) {
            uint64_t id = ref.id;
            uint64_t at = ref.offset;
            if (t->large && ref.tag == REF_BUFFER) {
                t->module = module_of(job_buffer(g->job, id));
            }
            if (ref.tag == REF_TEMP) { /* temporaries that share memory are not needed at once */
                at += g->job->temps[ref.id].offset;
                id = g->job->piece_count == 1 ? 0 : ref.id;
            }
            g->touch[(*touches)++] = (struct touch){.tag = ref.tag,
                                                    .id = id,
                                                    .begin = at,
                                                    .end = at + ref.size,
                                                    .writes = writes_arg(s, &ref, i)};
            t->touches++;
        }
    }
}

int graph_create(const struct job_scope *scope, struct job *j, struct bytes frame,
                 struct graph **ret_graph, struct err *e)
{
    struct msg_f_job msg;
    struct proto_wstep s;
    struct graph *g = calloc(1, sizeof *g);
    uint8_t *bytes = malloc(frame.size);
    if (g == NULL || bytes == NULL) {
        free(bytes);
        free(g);
        return err_set(e, ERR_NOMEM, "no memory for steps of job %" PRIu64, j->id);
    }
    memcpy(bytes, frame.data, frame.size);
    g->frame = bytes;
    g->progress.by = g->open.by = "";
    g->job = j;
    int rc = proto_decode(&schema_msg_f_job, bytes_of(bytes, frame.size), &msg, e);
    unsigned touches = 0;
    if (rc == 0) {
        g->step = calloc(msg.steps.count + 1, sizeof *g->step);
        g->touch = calloc(job_mentions(&msg) + 1, sizeof *g->touch);
        rc = g->step == NULL || g->touch == NULL
                 ? err_set(e, ERR_NOMEM, "no memory for steps of job %" PRIu64, j->id)
                 : 0;
    }
    if (rc != 0) {
        graph_destroy(g);
        return rc;
    }
    struct proto_iter it = proto_iter_of(msg.steps);
    while (proto_list_next(&it, &schema_wstep, &s)) {
        step_read(g, scope, &s, &touches);
    }
    settle_needs(g);
    *ret_graph = g;
    return 0;
}

void graph_destroy(struct graph *g)
{
    if (g == NULL) {
        return;
    }
    free(g->step);
    free(g->touch);
    free(g->frame);
    free(g);
}

/* The job's stream may be fetching managed memory, which must not be freed meanwhile. */
static bool prefetched(const struct graph *g)
{
    bool managed = false;
    for (unsigned i = 0; g->waited && !managed && i < g->job->buffer_count; i++) {
        managed = g->job->buffers[i]->piece.kind == MEMORY_MANAGED;
    }
    return managed;
}

bool graph_untouched(const struct graph *g)
{
    bool begun = g->smalls > 0 || g->busy > 0 || prefetched(g);
    for (unsigned i = 0; !begun && i < g->count; i++) {
        begun = g->step[i].state != STEP_PENDING;
    }
    return !begun;
}

bool graph_begun(const struct graph *g)
{
    bool begun = false;
    for (unsigned i = 0; !begun && i < g->count; i++) {
        const struct graph_step *t = &g->step[i];
        bool queued = t->large && t->state == STEP_BEGUN && t->copy.enqueued == 0;
        begun = t->state != STEP_PENDING && !queued;
    }
    return begun;
}

bool graph_waits(const struct graph *g)
{
    bool waits = false;
    for (unsigned i = 0; i < g->count; i++) {
        const struct graph_step *t = &g->step[i];
        bool copies = t->large && t->state == STEP_BEGUN;
        if (t->state == STEP_OVER || (copies && t->copy.started)) {
            return false;
        }
        waits = waits || (copies ? t->copy.enqueued > 0 : t->state == STEP_BEGUN);
    }
    return waits;
}

bool graph_on_device(const struct graph *g)
{
    return g != NULL && (g->busy > 0 || g->smalls > 0 || prefetched(g));
}

bool graph_unmarked(const struct graph *g)
{
    return g->any_open && g->open.launches;
}

bool graph_busy(const struct graph *g)
{
    return g != NULL && g->busy > 0;
}

bool graph_copy_times(const struct graph *g, unsigned *at, unsigned *ret_step,
                      uint64_t *ret_begin_ns, uint64_t *ret_end_ns)
{
    while (g != NULL && *at < g->count) {
        const struct graph_step *t = &g->step[(*at)++];
        if (t->large && t->state == STEP_OVER && t->copy.end_ns != 0) {
            *ret_step = (unsigned)t->s.step;
            *ret_begin_ns = t->copy.begin_ns;
            *ret_end_ns = t->copy.end_ns;
            return true;
        }
    }
    return false;
}

/* ---- the end of steps ------------------------------------------------------------------------ */

void graph_stop(struct graph *g, struct executor *x, struct job *j, const struct err *why)
{
    if (j->e.code == 0) {
        j->e = *why;
    }
    g->stopped = true;
    for (unsigned i = 0; i < g->count; i++) {
        if (g->step[i].large && g->step[i].state == STEP_BEGUN) {
            copies_stop(x->copies, &g->step[i].copy, why);
        }
    }
}

static void on_copied(struct copy *copy, const struct err *e)
{
    struct graph_step *t = copy->data;
    struct graph *g = t->graph;
    t->state = STEP_OVER;
    g->busy--;
    if (e->code != 0 && !g->stopped) {
        struct err why = *e;
        (void)executor_step_failed(&why, &t->s, t->s.op == OP_WRITE ? "write" : "read");
        graph_stop(g, g->x, g->job, &why);
    }
}

/* ---- large copies -------------------------------------------------------------------------- */

/* Do the temporaries hold no other tenant's bytes, so that copies may write them? */
static bool temps_clear(struct graph *g)
{
    struct job *j = g->job;
    const struct backend_marker_ops *ops = g->x->scope.device->b->marker;
    bool dirty = false;
    for (unsigned i = 0; i < j->piece_count; i++) {
        dirty = dirty || j->pieces[i].dirty;
    }
    if (!dirty || !g->clearing) {
        return !dirty;
    }
    struct err e = ERR_INIT;
    enum backend_state state = ops->state(j->mark[0].marker, &e);
    if (state == BACKEND_FAILED) {
        (void)err_wrap(&e, "zeroing temporaries");
        graph_stop(g, g->x, j, &e);
    }
    return state == BACKEND_DONE;
}

/* May the copy use its memory now? Temporaries belong to the job from the start. Buffers and
 * arenas may be in use by the jobs that it comes after, until these have ended. */
static bool memory_free_for(struct graph *g, const struct graph_step *t)
{
    const struct touch *m = &g->touch[t->first_touch];
    bool shared = m->tag != REF_TEMP || t->touches > 1; /* a second argument is an arena */
    if (m->tag == REF_TEMP && !temps_clear(g)) {
        return false;
    }
    if (m->tag == REF_BUFFER) {
        const struct buffer *b = job_buffer(g->job, m->id);
        if (b->filling != NULL || b->arrival != BUFFER_ARRIVED) {
            return false;
        }
    }
    return !shared || executor_predecessors_over(g->x, g->job);
}

/* Has the device passed the mark behind the small step? If the step failed, the graph stops, and
 * completion.c reports the failure. */
static bool small_over(struct graph *g, const struct graph_step *t)
{
    if (t->state == STEP_PENDING) {
        return false;
    }
    struct err e = ERR_INIT;
    const struct job_mark *mark = &g->job->mark[t->mark];
    enum backend_state state = g->x->scope.device->b->marker->state(mark->marker, &e);
    if (state == BACKEND_FAILED) {
        e.step = (int)mark->first;
        (void)err_wrap(&e, "step %u", mark->first);
        graph_stop(g, g->x, g->job, &e);
    }
    return state == BACKEND_DONE;
}

/* Do threads go on copying after the device is done? */
static bool by_threads(const struct graph_step *t)
{
    return t->copy.direction == COPY_FROM_DEVICE && !t->copy.registered;
}

/* Copies of one direction keep their order on the device, but not what threads write of them. */
static bool copy_comes_after(const struct graph_step *t, const struct graph_step *before)
{
    bool one_line = direction_of(t) == direction_of(before);
    return before->state == STEP_OVER ||
           (one_line && before->state == STEP_BEGUN && !by_threads(before));
}

static bool copy_may_begin(struct graph *g, const struct graph_step *t)
{
    for (int d = 0; d < 2; d++) {
        if (t->need_copy[d] != NONE && !copy_comes_after(t, &g->step[t->need_copy[d]])) {
            return false;
        }
    }
    return memory_free_for(g, t) &&
           (t->need_small == NONE || small_over(g, &g->step[t->need_small]));
}

static void copy_begin(struct graph *g, struct graph_step *t)
{
    struct executor *x = g->x;
    struct proto_ref arena = {0};
    struct proto_iter it = proto_iter_of(t->s.args);
    struct proto_ref ref = {0};
    bool in = t->s.op == OP_WRITE;
    (void)proto_list_next(&it, &schema_ref, &ref);
    bool outside = proto_list_next(&it, &schema_ref, &arena);
    t->copy = (struct copy){.direction = direction_of(t),
                            .ref = job_ref(g->job, &ref),
                            .host = job_host(&x->scope, g->job, &t->s, &arena),
                            .size = ref.size,
                            .priority = device_is_urgent(x->scope.device, g->job->stream),
                            .registered = job_host_known(&x->scope, g->job, &t->s, &arena),
                            .done = on_copied,
                            .data = t};
    g->job->writes = g->job->writes || (in ? ref.tag == REF_BUFFER : outside);
    g->busy++;
    copies_add(x->copies, &t->copy);
}

/* ---- small steps --------------------------------------------------------------------------- */

static int mark_open(struct graph *g, struct err *e)
{
    if (!g->any_open) {
        return 0;
    }
    g->any_open = false;
    executor_closed(&g->open, &g->progress);
    return executor_mark(g->x, g->job, g->open, e);
}

/* Is a mark free, beside those that are reserved for large copies and the job's end? */
static bool mark_is_free(const struct graph *g)
{
    return g->job->mark_count + g->reserved < JOB_MARKERS - 1;
}

/* Can a stream wait for the whole copy? */
static bool in_stream(const struct graph_step *t)
{
    return t->state == STEP_OVER ||
           (t->state == STEP_BEGUN && !by_threads(t) && copy_enqueued(&t->copy));
}

static bool small_may_begin(const struct graph *g, const struct graph_step *t)
{
    bool may = g->waited;
    for (int d = 0; d < 2; d++) {
        const struct graph_step *before =
            t->need_copy[d] == NONE ? NULL : &g->step[t->need_copy[d]];
        may = may && (before == NULL || in_stream(before));
    }
    return may;
}

static int wait_for_copies(struct graph *g, const struct graph_step *t, struct err *e)
{
    struct device *dev = g->x->scope.device;
    for (int d = 0; d < 2; d++) {
        const struct graph_step *before =
            t->need_copy[d] == NONE ? NULL : &g->step[t->need_copy[d]];
        if (before != NULL && before->copy.last != NULL) {
            int rc = dev->b->stream->wait(dev->stream[g->job->stream], before->copy.last, e);
            if (rc != 0) {
                return executor_step_failed(e, &t->s, "waiting for a copy");
            }
        }
    }
    return 0;
}

static int small_begin(struct graph *g, struct graph_step *t, struct err *e)
{
    struct job *j = g->job;
    int rc = 0;
    if (g->any_open && g->open.step != t->s.step && mark_is_free(g)) {
        rc = mark_open(g, e);
    }
    rc = rc == 0 ? wait_for_copies(g, t, e) : rc;
    if (rc != 0) {
        return rc;
    }
    executor_note(&g->open, g->any_open, &t->s, &g->progress);
    g->any_open = true;
    g->smalls++;
    rc = executor_step(g->x, j, &t->s, &g->progress, e);
    if (rc == 0 && t->marked) {
        t->mark = j->mark_count;
        g->reserved--;
        rc = mark_open(g, e);
    }
    return rc;
}

/* ---- a turn -------------------------------------------------------------------------------- */

/* If other commands still use the memory of temporaries, the stream of copies was made to wait
 * for them. This makes the job's stream wait, too. */
static int temps_wait(struct graph *g, struct err *e)
{
    struct job *j = g->job;
    struct device *dev = g->x->scope.device;
    struct backend_marker *marker = NULL;
    bool waits = false;
    for (unsigned i = 0; j->size == JOB_LARGE && i < j->piece_count; i++) {
        /* The second object of a slab is not marked as waiting: the first one made the stream of
         * copies wait. */
        waits = waits || j->pieces[i].waits || j->pieces[i].pool.size <= POOL_SLAB_MAX;
    }
    int rc = waits ? device_mark(dev, dev->copy_stream[COPY_TO_DEVICE], &marker, e) : 0;
    if (marker != NULL) {
        rc = dev->b->stream->wait(dev->stream[j->stream], marker, e);
        dev->b->marker->release(marker);
    }
    return rc;
}

/* Enqueues zeros for memory that another tenant may have used, and a mark that large copies wait
 * for. */
static int temps_zero(struct graph *g, struct err *e)
{
    struct job *j = g->job;
    bool dirty = false;
    for (unsigned i = 0; i < j->piece_count; i++) {
        dirty = dirty || j->pieces[i].dirty;
    }
    int rc = dirty ? job_temps_clear(&g->x->scope, j, e) : 0;
    if (dirty && rc == 0) {
        g->clearing = true;
        g->smalls++;
        rc = executor_mark(g->x, j, (struct job_mark){.by = "", .silent = true}, e);
    }
    return rc;
}

static int wait_before(struct graph *g, struct err *e)
{
    if (g->waited || !executor_ready(g->x, g->job)) {
        return 0;
    }
    int rc = executor_whole(g->job, e);
    if (rc != 0) {
        return rc;
    }
    g->waited = true;
    rc = executor_wait_all(g->x, g->job, e);
    rc = rc == 0 ? temps_wait(g, e) : rc;
    return rc == 0 ? temps_zero(g, e) : rc;
}

/* Whether the next step of a kind may begin. Small steps keep their order, and so do the copies
 * of each direction. */
struct lines {
    bool open[3];
};

static bool *line_of(struct lines *l, const struct graph_step *t)
{
    return &l->open[t->large ? direction_of(t) : 2];
}

static int begin(struct graph *g, struct graph_step *t, struct err *e)
{
    int rc = 0;
    if (t->large && copy_may_begin(g, t)) {
        copy_begin(g, t);
        t->state = STEP_BEGUN;
    } else if (!t->large && small_may_begin(g, t)) {
        rc = small_begin(g, t, e);
        t->state = STEP_BEGUN;
    }
    return rc;
}

/* Finds the last copy of each direction that is not over; NULL: none. Returns false if the job's
 * stream cannot wait for all of them. */
static bool last_copies(const struct graph *g, const struct graph_step *ret_last[2])
{
    ret_last[0] = ret_last[1] = NULL;
    for (unsigned i = 0; i < g->count; i++) {
        const struct graph_step *t = &g->step[i];
        if (t->large && t->state == STEP_BEGUN) {
            if (g->stopped || g->smalls == 0 || !in_stream(t)) {
                return false;
            }
            ret_last[direction_of(t)] = t;
        }
    }
    return true;
}

static int begin_all(struct graph *g, struct err *e)
{
    struct lines lines = {{true, true, true}};
    for (unsigned i = g->first; i < g->count && !g->stopped; i++) {
        struct graph_step *t = &g->step[i];
        bool *open = line_of(&lines, t);
        int rc = t->state != STEP_PENDING || !*open ? 0 : begin(g, t, e);
        if (rc != 0) {
            return rc;
        }
        *open = t->state != STEP_PENDING;
    }
    while (g->first < g->count && g->step[g->first].state != STEP_PENDING) {
        g->first++;
    }
    /* If the end does not follow now, the next command in the stream may be another job's, whose
     * time must not count for this one. */
    const struct graph_step *last[2];
    bool ends = g->first == g->count && last_copies(g, last);
    return !ends && mark_is_free(g) ? mark_open(g, e) : 0;
}

/* Has every step begun, or is the graph stopped? If it is stopped before its stream waits for
 * its predecessors, its end must not come before they have ended, because other jobs begin
 * behind it. */
static bool may_finish(const struct graph *g)
{
    return g->stopped ? g->waited || executor_predecessors_over(g->x, g->job)
                      : g->first == g->count;
}

/* Marks the end of the job in its stream, behind its copies. */
static int finish(struct graph *g, struct err *e)
{
    struct job *j = g->job;
    struct device *dev = g->x->scope.device;
    const struct graph_step *last[2];
    if (!last_copies(g, last)) {
        return 0;
    }
    if (g->smalls == 0 && !g->stopped && !prefetched(g)) {
        /* its copies are over and nothing was in the stream: there is no mark to wait for */
        if (executor_predecessors_over(g->x, j)) {
            job_set_state(j, JOB_ENQUEUED);
        }
        return 0;
    }
    for (int d = 0; d < 2; d++) {
        struct backend_marker *at = last[d] == NULL ? NULL : last[d]->copy.last;
        int rc = at == NULL ? 0 : dev->b->stream->wait(dev->stream[j->stream], at, e);
        if (rc != 0) {
            return rc;
        }
    }
    g->open.silent = !g->any_open;
    g->open.launches = g->open.launches && g->any_open;
    executor_closed(&g->open, &g->progress);
    return executor_end(g->x, j, g->open, e);
}

int graph_advance(struct graph *g, struct executor *x, struct job *j, struct err *e)
{
    struct err why = ERR_INIT;
    unsigned marks = j->mark_count;
    g->x = x;
    int rc = g->stopped ? 0 : wait_before(g, &why);
    rc = rc == 0 ? begin_all(g, &why) : rc;
    if (rc != 0) {
        graph_stop(g, x, j, &why);
    }
    if (device_is_lost(j->e.code)) {
        *e = j->e;
        return e->code;
    }
    if (j->mark_count != marks &&
        x->scope.device->b->stream->flush(x->scope.device->stream[j->stream], e) != 0) {
        e->code = ERR_DEVICE_LOST;
        return err_wrap(e, "starting job %" PRIu64, j->id);
    }
    rc = may_finish(g) ? finish(g, e) : 0;
    if (rc != 0) {
        e->code = ERR_DEVICE_LOST;
    }
    return rc;
}
