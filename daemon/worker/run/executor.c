#include "daemon/worker/run/executor.h"

#include "daemon/worker/run/graph.h"

/* ---- small writes -------------------------------------------------------------------------- */

/* Consecutive writes that were not enqueued yet. */
struct gather {
    struct proto_wstep step[BACKEND_WRITES_MAX];
    struct backend_write write[BACKEND_WRITES_MAX];
    unsigned count;
};

/* Is the step such a write? Its host memory is registered, because otherwise it would be a large
 * step (job_step_large). */
static bool gathers(const struct gather *g, const struct proto_wstep *s, struct proto_ref *ret_ref,
                    struct proto_ref *ret_arena)
{
    struct proto_iter it = proto_iter_of(s->args);
    bool small = s->op == OP_WRITE && g->count < BACKEND_WRITES_MAX &&
                 proto_list_next(&it, &schema_ref, ret_ref) && ret_ref->size > 0 &&
                 ret_ref->size <= EXECUTOR_SMALL_WRITE;
    if (small && s->args.count > 1) {
        (void)proto_list_next(&it, &schema_ref, ret_arena);
    }
    return small;
}

/* Does the write touch memory of an earlier one? Writes of a batch have no order. Temporaries
 * may share bytes, so memory is compared, not names. */
static bool meets(const struct gather *g, struct backend_ref dst, uint64_t size)
{
    bool met = false;
    for (unsigned i = 0; !met && i < g->count; i++) {
        const struct backend_write *w = &g->write[i];
        met = w->dst.block == dst.block && w->dst.offset < dst.offset + size &&
              dst.offset < w->dst.offset + w->size;
    }
    return met;
}

static void gather_add(struct executor *x, struct job *j, struct gather *g,
                       const struct proto_wstep *s, const struct proto_ref *ref,
                       const struct proto_ref *arena)
{
    g->step[g->count] = *s;
    g->write[g->count++] = (struct backend_write){
        .dst = job_ref(j, ref), .host = job_host(&x->scope, j, s, arena), .size = ref->size};
    j->writes = j->writes || ref->tag == REF_BUFFER;
}

/* Merges writes whose sources and destinations are both adjacent. Returns the number of writes
 * left. */
static unsigned merge(const struct backend_write *from, unsigned count, struct backend_write *to)
{
    unsigned n = 0;
    for (unsigned i = 0; i < count; i++) {
        struct backend_write *last = n > 0 ? &to[n - 1] : NULL;
        if (last != NULL && last->dst.block == from[i].dst.block &&
            last->dst.offset + last->size == from[i].dst.offset &&
            (const uint8_t *)last->host + last->size == from[i].host) {
            last->size += from[i].size;
        } else {
            to[n++] = from[i];
        }
    }
    return n;
}

/* Writes one by one if the back end takes no batch or refused this one; `e` may hold that
 * refusal. */
static int write_all(struct executor *x, struct job *j, const struct backend_write *w,
                     unsigned count, struct err *e)
{
    const struct backend_stream_ops *ops = x->scope.device->b->stream;
    struct backend_stream *stream = x->scope.device->stream[j->stream];
    int rc = count > 1 && ops->write_batch != NULL ? ops->write_batch(stream, w, count, e)
                                                   : ERR_UNSUPPORTED;
    if (rc != ERR_UNSUPPORTED && rc != ERR_INVALID) {
        return rc;
    }
    rc = 0;
    for (unsigned i = 0; rc == 0 && i < count; i++) {
        rc = ops->write(stream, w[i].dst, w[i].host, w[i].size, e);
    }
    return rc;
}

/* Enqueues all writes together. If that fails, enqueues them one by one to find the step that
 * fails. */
static int gather_flush(struct executor *x, struct job *j, struct gather *g, struct err *e)
{
    struct backend_write merged[BACKEND_WRITES_MAX];
    struct err ignored = ERR_INIT;
    unsigned count = merge(g->write, g->count, merged);
    unsigned all = g->count;
    g->count = 0;
    int rc = all > 0 ? write_all(x, j, merged, count, all > 1 ? &ignored : e) : 0;
    if (all == 1 && rc != 0) {
        return executor_step_failed(e, &g->step[0], "write");
    }
    if (rc == 0 || device_is_lost(rc)) {
        return rc == 0 ? 0 : (*e = ignored, rc);
    }
    for (unsigned i = 0; i < all; i++) {
        rc = write_all(x, j, &g->write[i], 1, e);
        if (rc != 0) {
            return executor_step_failed(e, &g->step[i], "write");
        }
    }
    return 0;
}

/* ---- a job in its stream -------------------------------------------------------------------- */

/* The next mark, and the commands that were enqueued since the last one. */
struct open_mark {
    struct job_mark mark;
    bool any;
    bool one; /* it is the only mark of the job */
    struct gather gather;
    struct executor_progress progress;
};

static int close_mark(struct executor *x, struct job *j, struct open_mark *open, struct err *e)
{
    if (!open->any || open->one || j->mark_count >= JOB_MARKERS - 1) {
        return 0;
    }
    open->any = false;
    executor_closed(&open->mark, &open->progress);
    return executor_mark(x, j, open->mark, e);
}

static int enqueue_one(struct executor *x, struct job *j, struct open_mark *open,
                       const struct proto_wstep *s, struct err *e)
{
    struct gather *g = &open->gather;
    struct proto_ref ref = {0};
    struct proto_ref arena = {0};
    bool small = gathers(g, s, &ref, &arena);
    int rc = 0;
    if (g->count > 0 && (!small || meets(g, job_ref(j, &ref), ref.size))) {
        rc = gather_flush(x, j, g, e);
    }
    if (rc == 0 && open->any && s->step != open->mark.step && g->count == 0) {
        rc = close_mark(x, j, open, e);
    }
    if (rc != 0) {
        return rc;
    }
    executor_note(&open->mark, open->any, s, &open->progress);
    open->any = true;
    if (small) {
        gather_add(x, j, g, s, &ref, &arena);
        return 0;
    }
    return executor_step(x, j, s, &open->progress, e);
}

static int enqueue_steps(struct executor *x, struct job *j, const struct msg_f_job *msg,
                         struct open_mark *open, struct err *e)
{
    struct proto_iter it = proto_iter_of(msg->steps);
    struct proto_wstep s;
    int rc = 0;
    while (rc == 0 && proto_list_next(&it, &schema_wstep, &s)) {
        rc = enqueue_one(x, j, open, &s, e);
    }
    return rc == 0 ? gather_flush(x, j, &open->gather, e) : rc;
}

int executor_enqueue(struct executor *x, struct job *j, const struct msg_f_job *msg,
                     struct bytes frame, struct err *e)
{
    struct open_mark open;
    open.any = false;
    /* only a brief job has a single mark: the times of a longer job's steps are worth a mark
     * each */
    open.one = x->batch.open && j->size == JOB_BRIEF;
    open.mark = (struct job_mark){.by = ""};
    open.gather.count = 0;
    open.progress = (struct executor_progress){.by = ""};
    if (j->size == JOB_LARGE || !executor_ready(x, j)) {
        if (graph_create(&x->scope, j, frame, &j->graph, &j->e) != 0) {
            /* it remains JOB_STARTED: an end in the stream would come before the end of the jobs
             * that it comes after */
            return 0;
        }
        job_set_state(j, JOB_GRAPH);
        x->scope.device->memory.unmarked++;
        return executor_resume(x, j, e);
    }
    int rc = executor_whole(j, &j->e);
    rc = rc == 0 ? executor_wait_all(x, j, &j->e) : rc;
    rc = rc == 0 ? job_temps_clear(&x->scope, j, &j->e) : rc;
    rc = rc == 0 ? enqueue_steps(x, j, msg, &open, &j->e) : rc;
    if (device_is_lost(rc)) {
        *e = j->e;
        return rc;
    }
    executor_closed(&open.mark, &open.progress);
    return executor_end(x, j, open.mark, e);
}

int executor_start(struct executor *x, struct err *e)
{
    if (batch_start(&x->batch, e) != 0) {
        e->code = ERR_DEVICE_LOST;
        return err_wrap(e, "starting jobs");
    }
    return 0;
}

int executor_resume(struct executor *x, struct job *j, struct err *e)
{
    return graph_advance(j->graph, x, j, e);
}
