#include "daemon/worker/executor.h"

#include <inttypes.h>

#include "daemon/worker/library.h"

#define ARGS_MAX 64

/* The steps' errors carry the index of the user's step. */
static int step_failed(struct err *e, const struct proto_wstep *s, const char *what)
{
    e->step = (int)s->step;
    return err_wrap(e, "step %" PRIu64 ": %s", s->step, what);
}

static int wait_job(struct executor *x, struct job *j, uint64_t id, struct err *e)
{
    const struct job *before = ledger_find(x->ledger, id);
    /* one that failed is waited for all the same: what it left undefined the front knows */
    if (before == NULL || before->finished || before->stream == j->stream) {
        return 0;
    }
    struct device *dev = x->scope.device;
    return dev->b->stream->wait(dev->stream[j->stream], before->mark[before->mark_count - 1].marker,
                                e);
}

static int wait_all(struct executor *x, struct job *j, struct err *e)
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
    return 0;
}

static int launch(struct executor *x, struct job *j, const struct proto_wstep *s, struct err *e)
{
    struct device *dev = x->scope.device;
    struct backend_arg args[ARGS_MAX];
    struct backend_launch l = {.args = args, .shared = s->shared};
    char entry[PROTO_NAME_MAX * 2 + 1];
    bool writes = false;
    struct proto_iter it = proto_iter_of(s->args);
    struct proto_ref ref;
    const struct module *m = module_find(x->scope.modules, s->module, e);
    if (m == NULL || !bytes_to_str(s->entry, entry, sizeof entry)) {
        return err_set(e, ERR_INTERNAL, "kernel was checked and is gone");
    }
    job_sizes(s, l.global, l.local);
    while (l.arg_count < ARGS_MAX && proto_list_next(&it, &schema_ref, &ref)) {
        struct backend_arg *arg = &args[l.arg_count++];
        if (ref.tag == REF_VALUE) {
            *arg = (struct backend_arg){
                .kind = BACKEND_ARG_VALUE, .value = ref.value.data, .size = ref.value.size};
        } else if (ref.tag == REF_LOCAL) {
            *arg = (struct backend_arg){.kind = BACKEND_ARG_LOCAL, .size = (size_t)ref.size};
        } else {
            *arg = (struct backend_arg){.kind = BACKEND_ARG_MEMORY,
                                        .memory = job_ref(&x->scope, j, &ref),
                                        .size = (size_t)ref.size};
        }
        writes = writes || ref.tag == REF_BUFFER; /* which of them it writes is not told here */
    }
    int rc = dev->b->stream->launch(dev->stream[j->stream], m->m, entry, &l, e);
    j->writes = j->writes || (rc == 0 && writes);
    return rc == 0 ? 0 : step_failed(e, s, entry);
}

static int move_enqueue(struct executor *x, struct job *j, const struct proto_wstep *s,
                        const struct proto_ref *first, const struct proto_ref *second,
                        struct err *e)
{
    const struct backend_stream_ops *ops = x->scope.device->b->stream;
    struct backend_stream *stream = x->scope.device->stream[j->stream];
    struct backend_ref at = job_ref(&x->scope, j, first);
    switch (s->op) {
    case OP_READ:
        return ops->read(stream, job_host(&x->scope, j, s, second), at, first->size, e);
    case OP_WRITE:
        return ops->write(stream, at, job_host(&x->scope, j, s, second), first->size, e);
    case OP_FILL:
        return ops->fill(stream, at, s->pattern.data, s->pattern.size, first->size, e);
    default:
        return ops->copy(stream, at, job_ref(&x->scope, j, second), first->size, e);
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

/* What a job's steps come to, one after the other. */
struct progress {
    unsigned step;    /* the user's */
    const char *by;   /* what served its operation */
    uint64_t run;     /* steps that follow a library's call and run */
    uint64_t skipped; /* and those behind them, which do not */
};

/* An operation that a library runs, or the steps that follow do. */
static int operation(struct executor *x, struct job *j, const struct proto_wstep *s,
                     struct progress *p, struct err *e)
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
    return rc == 0 ? 0 : step_failed(e, s, p->by);
}

/* Is it one that a library's call stands for, or that belongs to a call that was not made? */
static bool left_out(struct progress *p)
{
    if (p->run > 0) {
        p->run--;
        return false;
    }
    bool out = p->skipped > 0;
    p->skipped -= out;
    return out;
}

static int mark(struct executor *x, struct job *j, const struct progress *p, struct err *e)
{
    struct device *dev = x->scope.device;
    struct job_mark *at = &j->mark[j->mark_count];
    int rc = dev->b->stream->mark(dev->stream[j->stream], &at->marker, e);
    if (rc == 0) {
        at->step = p->step;
        at->by = p->by;
        j->mark_count++;
    }
    return rc;
}

static int enqueue_step(struct executor *x, struct job *j, const struct proto_wstep *s,
                        struct progress *p, struct err *e)
{
    static const char *const NAME[] = {"", "write", "fill", "copy", "launch", "read"};
    if (s->op == FRAME_OP_LIBRARY) {
        return operation(x, j, s, p, e);
    }
    if (left_out(p)) {
        return 0;
    }
    if (s->op == OP_LAUNCH) {
        return launch(x, j, s, e);
    }
    int rc = move(x, j, s, e);
    return rc == 0 ? 0 : step_failed(e, s, NAME[s->op]);
}

static int enqueue_steps(struct executor *x, struct job *j, const struct msg_f_job *msg,
                         struct progress *p, struct err *e)
{
    struct proto_iter it = proto_iter_of(msg->steps);
    struct proto_wstep s;
    bool first = true;
    while (proto_list_next(&it, &schema_wstep, &s)) {
        int rc = 0;
        if (!first && s.step != p->step) {
            if (j->mark_count < JOB_MARKERS - 1) {
                rc = mark(x, j, p, e);
            }
            p->by = "";
        }
        first = false;
        p->step = (unsigned)s.step;
        rc = rc == 0 ? enqueue_step(x, j, &s, p, e) : rc;
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

int executor_enqueue(struct executor *x, struct job *j, const struct msg_f_job *msg, struct err *e)
{
    struct device *dev = x->scope.device;
    struct progress p = {.by = ""};
    int rc = wait_all(x, j, &j->e);
    rc = rc == 0 ? job_temps_clear(&x->scope, j, &j->e) : rc;
    rc = rc == 0 ? enqueue_steps(x, j, msg, &p, &j->e) : rc;
    if (device_is_lost(rc)) {
        *e = j->e;
        return rc;
    }
    rc = mark(x, j, &p, e);
    rc = rc == 0 ? dev->b->stream->flush(dev->stream[j->stream], e) : rc;
    if (rc != 0) {
        e->code = ERR_DEVICE_LOST;
        return err_wrap(e, "marking the end of job %" PRIu64, j->id);
    }
    memory_mark(&dev->memory, j->stream, j->mark[j->mark_count - 1].marker, &j->end);
    job_temps_leave(&x->scope, j);
    return 0;
}
