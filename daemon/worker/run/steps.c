#include "daemon/worker/run/steps.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/shape.h"
#include "daemon/worker/run/library.h"

/* Errors of steps carry the index of the user's step. A loss of the device was caused by an
 * earlier command and only discovered at this step. */
int executor_step_failed(struct err *e, const struct proto_wstep *s, const char *what)
{
    if (device_is_lost(e->code)) {
        return err_wrap(e, "met at step %" PRIu64 ", %s", s->step, what);
    }
    e->step = (int)s->step;
    return err_wrap(e, "step %" PRIu64 ": %s", s->step, what);
}

/* ---- what comes before ---------------------------------------------------------------------- */

bool executor_ready(const struct executor *x, const struct job *j)
{
    for (unsigned i = 0; i < j->after_count; i++) {
        const struct job *before = ledger_find(x->ledger, j->after[i]);
        bool waits = before != NULL && before->state != JOB_FINISHED;
        if (waits && (before->state != JOB_ENQUEUED || j->deadline_ns != NS_NEVER)) {
            return false; /* in its stream it could not be withdrawn at its deadline */
        }
    }
    for (unsigned i = 0; i < j->buffer_count; i++) {
        if (j->buffers[i]->arrival != BUFFER_ARRIVED) {
            return false;
        }
    }
    return !batch_slow(&x->batch, j->stream) && batch_in_time(&x->batch, j);
}

int executor_whole(const struct job *j, struct err *e)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < j->buffer_count; i++) {
        rc = buffer_whole(j->buffers[i], e);
    }
    return rc;
}

bool executor_predecessors_over(const struct executor *x, const struct job *j)
{
    for (unsigned i = 0; i < j->after_count; i++) {
        const struct job *before = ledger_find(x->ledger, j->after[i]);
        if (before != NULL && before->state != JOB_FINISHED) {
            return false;
        }
    }
    return true;
}

static int wait_job(struct executor *x, struct job *j, uint64_t id, struct err *e)
{
    const struct job *before = ledger_find(x->ledger, id);
    /* a job that failed counts as well, because the front knows what it left undefined */
    if (before == NULL || before->state == JOB_FINISHED || before->stream == j->stream) {
        return 0;
    }
    struct device *dev = x->scope.device;
    return dev->b->stream->wait(dev->stream[j->stream], before->mark[before->mark_count - 1].marker,
                                e);
}

/* Fetches managed memory as a whole, not page by page when kernels touch it. */
static int managed_fetch(struct executor *x, struct job *j, struct err *e)
{
    const struct device *dev = x->scope.device;
    for (unsigned i = 0; dev->memory.managed > 0 && i < j->buffer_count; i++) {
        const struct buffer *b = j->buffers[i];
        if (b->piece.kind != MEMORY_MANAGED) {
            continue;
        }
        int rc = dev->b->stream->prefetch(dev->stream[j->stream], b->piece.ref, b->size, e);
        if (rc != 0) {
            return err_wrap(e, "bringing buffer %" PRIu64 " to the device", b->id);
        }
    }
    return 0;
}

int executor_wait_all(struct executor *x, struct job *j, struct err *e)
{
    struct device *dev = x->scope.device;
    for (unsigned i = 0; i < j->after_count; i++) {
        int rc = wait_job(x, j, j->after[i], e);
        if (rc != 0) {
            return rc;
        }
    }
    for (unsigned i = 0; i < j->buffer_count; i++) {
        struct backend_marker *marker = j->buffers[i]->filling;
        int rc = marker == NULL ? 0 : dev->b->stream->wait(dev->stream[j->stream], marker, e);
        if (rc != 0) {
            return err_wrap(e, "waiting for buffer %" PRIu64, j->buffers[i]->id);
        }
    }
    return managed_fetch(x, j, e);
}

/* ---- steps ---------------------------------------------------------------------------------- */

static int launch(struct executor *x, struct job *j, const struct proto_wstep *s, struct err *e)
{
    struct device *dev = x->scope.device;
    struct backend_arg args[PROTO_ARGS_MAX];
    struct backend_launch l = {.args = args, .shared = s->shared};
    char entry[PROTO_NAME_MAX * 2 + 1];
    bool writes = false;
    struct proto_iter it = proto_iter_of(s->args);
    struct proto_ref ref;
    const struct module *m = job_module(j, s->module);
    if (m == NULL || !bytes_to_str(s->entry, entry, sizeof entry)) {
        return err_set(e, ERR_INTERNAL, "kernel was checked and is not there");
    }
    job_sizes(s, l.global, l.local);
    while (l.arg_count < PROTO_ARGS_MAX && proto_list_next(&it, &schema_ref, &ref)) {
        struct backend_arg *arg = &args[l.arg_count++];
        if (ref.tag == REF_VALUE) {
            *arg = (struct backend_arg){
                .kind = BACKEND_ARG_VALUE, .value = ref.value.data, .size = ref.value.size};
        } else if (ref.tag == REF_LOCAL) {
            *arg = (struct backend_arg){.kind = BACKEND_ARG_LOCAL, .size = (size_t)ref.size};
        } else {
            *arg = (struct backend_arg){
                .kind = BACKEND_ARG_MEMORY, .memory = job_ref(j, &ref), .size = (size_t)ref.size};
        }
        bool outside = ref.tag == REF_BUFFER || ref.tag == REF_ARENA;
        writes = writes || (outside && ref.access != ACCESS_IN);
    }
    int rc = dev->b->stream->launch(dev->stream[j->stream], m->m, entry, &l, e);
    /* It lacks memory for the work items' own arrays: memory that the pool caches may be enough. */
    if (rc == ERR_DEVICE_MEMORY) {
        memory_trim(&dev->memory);
        memory_settle(&dev->memory);
        err_init(e);
        rc = dev->b->stream->launch(dev->stream[j->stream], m->m, entry, &l, e);
    }
    j->writes = j->writes || (rc == 0 && writes);
    return rc == 0 ? 0 : executor_step_failed(e, s, entry);
}

static int move_enqueue(struct executor *x, struct job *j, const struct proto_wstep *s,
                        const struct proto_ref *first, const struct proto_ref *second,
                        struct err *e)
{
    const struct backend_stream_ops *ops = x->scope.device->b->stream;
    struct backend_stream *stream = x->scope.device->stream[j->stream];
    struct backend_ref at = job_ref(j, first);
    switch (s->op) {
    case OP_READ:
        return ops->read(stream, job_host(&x->scope, j, s, second), at, first->size, e);
    case OP_WRITE:
        return ops->write(stream, at, job_host(&x->scope, j, s, second), first->size, e);
    case OP_FILL:
        return ops->fill(stream, at, s->pattern.data, s->pattern.size, first->size, e);
    default:
        return ops->copy(stream, at, job_ref(j, second), first->size, e);
    }
}

static int move(struct executor *x, struct job *j, const struct proto_wstep *s, struct err *e)
{
    struct proto_iter it = proto_iter_of(s->args);
    struct proto_ref first = {0};
    struct proto_ref second = {0};
    if (!proto_list_next(&it, &schema_ref, &first) || first.size == 0) {
        return 0;
    }
    if (!proto_list_next(&it, &schema_ref, &second) && s->op == OP_COPY) {
        return err_set(e, ERR_INTERNAL, "copy was checked and has no source");
    }
    int rc = move_enqueue(x, j, s, &first, &second, e);
    bool outside = s->op == OP_READ ? second.tag == REF_ARENA : first.tag == REF_BUFFER;
    j->writes = j->writes || (rc == 0 && outside);
    return rc;
}

/* ---- what libraries run ---------------------------------------------------------------------- */

/* An operation: a library runs it, or the steps that follow do. */
static int operation(struct executor *x, struct job *j, const struct proto_wstep *s,
                     struct executor_progress *p, struct err *e)
{
    int rc = library_run(&x->scope, j, s, &p->by, e);
    if (rc == ERR_UNSUPPORTED) {
        p->by = "portable";
        p->run = 0;
        p->skipped = s->after;
        return 0;
    }
    p->run = s->after;
    p->skipped = s->covers;
    p->served = true;
    return rc == 0 ? 0 : executor_step_failed(e, s, p->by);
}

/* Is the step skipped? A library's call replaces it, or it belongs to a call that was not made. */
static bool left_out(struct executor_progress *p)
{
    if (p->run > 0) {
        p->run--;
        return false;
    }
    bool out = p->skipped > 0;
    p->skipped -= out;
    return out;
}

/* Counts a launch for the time of the next mark. */
static void count_launch(struct executor_progress *p, unsigned launch)
{
    p->launch = p->count == 0 ? launch : p->launch;
    p->scattered = p->scattered || launch != p->launch + p->count;
    p->count++;
}

int executor_step(struct executor *x, struct job *j, const struct proto_wstep *s,
                  struct executor_progress *p, struct err *e)
{
    static const char *const NAME[] = {"", "write", "fill", "copy", "launch", "read"};
    if (s->op == FRAME_OP_LIBRARY) {
        return operation(x, j, s, p, e);
    }
    bool out = left_out(p);
    if (s->op == OP_LAUNCH) {
        unsigned at = p->next++;
        if (!out || p->served) {
            count_launch(p, at);
        }
    }
    if (out) {
        return 0;
    }
    if (s->op == OP_LAUNCH) {
        return launch(x, j, s, e);
    }
    int rc = move(x, j, s, e);
    return rc == 0 ? 0 : executor_step_failed(e, s, NAME[s->op]);
}

/* ---- marks ---------------------------------------------------------------------------------- */

static int place(struct executor *x, struct job *j, struct job_mark mark, bool end, struct err *e)
{
    struct device *dev = x->scope.device;
    if (j->mark_count == j->mark_room) {
        abort(); /* no job has so many marks: one more would be written behind the array */
    }
    const struct backend_stream_ops *ops = dev->b->stream;
    /* a job that is wholly in its stream is over at its end, so only the marks of a graph call */
    bool quiet = j->state == JOB_STARTED && ops->mark_quiet != NULL;
    int rc = end ? batch_mark(&x->batch, j, &mark.marker, e)
                 : (quiet ? ops->mark_quiet : ops->mark)(dev->stream[j->stream], &mark.marker, e);
    if (rc == 0) {
        j->mark[j->mark_count++] = mark;
    }
    return rc;
}

int executor_mark(struct executor *x, struct job *j, struct job_mark mark, struct err *e)
{
    return place(x, j, mark, false, e);
}

int executor_end(struct executor *x, struct job *j, struct job_mark mark, struct err *e)
{
    struct device *dev = x->scope.device;
    int rc = place(x, j, mark, true, e);
    if (rc == 0 && !x->batch.open) {
        rc = dev->b->stream->flush(dev->stream[j->stream], e);
    }
    if (rc != 0) {
        e->code = ERR_DEVICE_LOST;
        return err_wrap(e, "marking the end of job %" PRIu64, j->id);
    }
    memory_mark(&dev->memory, j->stream, j->mark[j->mark_count - 1].marker, &j->end);
    bool at_once = j->state == JOB_STARTED;
    /* before the release of temporaries, because memory that is released when nothing runs waits
     * for it */
    job_set_state(j, JOB_ENQUEUED);
    if (at_once && j->size != JOB_LARGE) { /* large copies are not in the order of its stream */
        job_temps_leave(&x->scope, j);
    }
    batch_enqueued(&x->batch, j);
    return 0;
}

void executor_note(struct job_mark *mark, bool any, const struct proto_wstep *s,
                   struct executor_progress *p)
{
    if (!any) {
        *mark = (struct job_mark){.first = (unsigned)s->step};
        p->by = "";
        p->count = 0;
        p->served = p->scattered = false;
    }
    mark->step = (unsigned)s->step;
    mark->launches = mark->launches || s->op == OP_LAUNCH || s->op == FRAME_OP_LIBRARY;
}

void executor_closed(struct job_mark *mark, const struct executor_progress *p)
{
    mark->by = p->by;
    mark->launch = p->launch;
    mark->launch_count = p->scattered ? 0 : p->count;
    mark->served = p->served;
}
