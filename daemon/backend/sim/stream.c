#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/clock.h"
#include "daemon/backend/ranges.h"
#include "daemon/backend/sim/sim.h"

static int stream_create(struct backend_device *d, int priority, struct backend_stream **ret_stream,
                         struct err *e)
{
    struct backend_stream *s = calloc(1, sizeof *s);
    if (!s) {
        return err_set(e, ERR_NOMEM, "no memory for a stream");
    }
    s->device = d;
    s->priority = priority;
    pthread_cond_init(&s->work, NULL);
    int rc = pthread_create(&s->thread, NULL, sim_stream_main, s);
    if (rc != 0) {
        pthread_cond_destroy(&s->work);
        free(s);
        return err_set(e, ERR_NOMEM, "starting a stream's thread: %s", strerror(rc));
    }
    *ret_stream = s;
    return 0;
}

static void stream_destroy(struct backend_stream *s)
{
    if (!s) {
        return;
    }
    struct backend_device *d = s->device;
    pthread_mutex_lock(&d->lock);
    s->stop = true;
    pthread_cond_signal(&s->work);
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    pthread_join(s->thread, NULL);
    while (s->queue) {
        struct sim_command *c = s->queue;
        DL_DELETE(s->queue, c);
        if (c->marker) {
            sim_marker_unref(c->marker);
        }
        free(c);
    }
    pthread_cond_destroy(&s->work);
    free(s);
}

static int command_new(enum sim_command_kind kind, enum sim_op op, struct sim_command **ret_command,
                       struct err *e)
{
    struct sim_command *c = calloc(1, sizeof *c);
    if (!c) {
        return err_set(e, ERR_NOMEM, "no memory for a command");
    }
    c->kind = kind;
    c->op = op;
    *ret_command = c;
    return 0;
}

/* Takes the command over. */
static void enqueue(struct backend_stream *s, struct sim_command *c)
{
    struct backend_device *d = s->device;
    c->enqueued_ns = clock_now_ns();
    pthread_mutex_lock(&d->lock);
    if (c->kind == SIM_COMMAND_WORK) {
        c->action = script_next(&d->config.script, c->op);
    }
    if (c->kind == SIM_COMMAND_MARK) {
        c->marker->first = s->marked;
        s->marked = s->enqueued + 1;
    }
    if (c->marker) {
        c->marker->refs++;
    }
    s->enqueued++;
    DL_APPEND(s->queue, c);
    pthread_cond_signal(&s->work);
    pthread_mutex_unlock(&d->lock);
}

static struct backend_range range_of(struct backend_ref ref, uint64_t size)
{
    return (struct backend_range){ref.block, ref.block->size, ref.offset, size};
}

static int stream_write(struct backend_stream *s, struct backend_ref dst, const void *host,
                        uint64_t size, struct err *e)
{
    struct sim_command *c = NULL;
    int rc = backend_range_check("write", range_of(dst, size), e);
    if (rc == 0) {
        rc = command_new(SIM_COMMAND_WORK, SIM_WRITE, &c, e);
    }
    if (rc == 0) {
        c->dst = dst.block->data + dst.offset;
        c->src = host;
        c->size = size;
        enqueue(s, c);
    }
    return rc;
}

static int stream_read(struct backend_stream *s, void *host, struct backend_ref src, uint64_t size,
                       struct err *e)
{
    struct sim_command *c = NULL;
    int rc = backend_range_check("read", range_of(src, size), e);
    if (rc == 0) {
        rc = command_new(SIM_COMMAND_WORK, SIM_READ, &c, e);
    }
    if (rc == 0) {
        c->dst = host;
        c->src = src.block->data + src.offset;
        c->size = size;
        enqueue(s, c);
    }
    return rc;
}

static int stream_copy(struct backend_stream *s, struct backend_ref dst, struct backend_ref src,
                       uint64_t size, struct err *e)
{
    struct sim_command *c = NULL;
    int rc = backend_copy_check(range_of(dst, size), range_of(src, size), e);
    if (rc == 0) {
        rc = command_new(SIM_COMMAND_WORK, SIM_COPY, &c, e);
    }
    if (rc == 0) {
        c->dst = dst.block->data + dst.offset;
        c->src = src.block->data + src.offset;
        c->size = size;
        enqueue(s, c);
    }
    return rc;
}

static int stream_fill(struct backend_stream *s, struct backend_ref dst, const void *pattern,
                       size_t pattern_size, uint64_t size, struct err *e)
{
    struct sim_command *c = NULL;
    int rc = backend_fill_check(range_of(dst, size), pattern_size, e);
    if (rc == 0) {
        rc = command_new(SIM_COMMAND_WORK, SIM_FILL, &c, e);
    }
    if (rc == 0) {
        c->dst = dst.block->data + dst.offset;
        c->size = size;
        memcpy(c->pattern, pattern, pattern_size);
        c->pattern_size = pattern_size;
        enqueue(s, c);
    }
    return rc;
}

static int stream_launch(struct backend_stream *s, struct backend_module *m, const char *entry,
                         const struct backend_launch *launch, struct err *e)
{
    struct sim_command *c = NULL;
    int rc = command_new(SIM_COMMAND_WORK, SIM_LAUNCH, &c, e);
    if (rc != 0) {
        return rc;
    }
    rc = sim_launch_make(m, entry, launch, &c->launch, e);
    if (rc != 0) {
        free(c);
        return rc;
    }
    for (unsigned i = 0; i < c->launch.arg_count; i++) {
        if (launch->args[i].kind == BACKEND_ARG_VALUE) {
            c->launch.arg[i] = &c->launch.value[i];
        }
    }
    enqueue(s, c);
    return 0;
}

static int mark_scripted(struct backend_device *d, struct err *e)
{
    pthread_mutex_lock(&d->lock);
    enum sim_action action = script_next(&d->config.script, SIM_MARK);
    pthread_mutex_unlock(&d->lock);
    return sim_action_error(action, SIM_MARK, e);
}

static int mark(struct backend_stream *s, bool quiet, struct backend_marker **ret_marker,
                struct err *e)
{
    struct sim_command *c = NULL;
    int scripted = mark_scripted(s->device, e);
    if (scripted != 0) {
        return scripted;
    }
    struct backend_marker *m = calloc(1, sizeof *m);
    if (!m) {
        return err_set(e, ERR_NOMEM, "no memory for a marker");
    }
    int rc = command_new(SIM_COMMAND_MARK, SIM_WRITE, &c, e);
    if (rc != 0) {
        free(m);
        return rc;
    }
    m->device = s->device;
    m->stream = s;
    m->refs = 1;
    m->quiet = quiet;
    c->marker = m;
    enqueue(s, c);
    *ret_marker = m;
    return 0;
}

static int stream_mark(struct backend_stream *s, struct backend_marker **ret_marker, struct err *e)
{
    return mark(s, false, ret_marker, e);
}

static int stream_mark_quiet(struct backend_stream *s, struct backend_marker **ret_marker,
                             struct err *e)
{
    return mark(s, true, ret_marker, e);
}

static int stream_wait(struct backend_stream *s, struct backend_marker *m, struct err *e)
{
    struct sim_command *c = NULL;
    int rc = command_new(SIM_COMMAND_WAIT, SIM_WRITE, &c, e);
    if (rc == 0) {
        c->marker = m;
        enqueue(s, c);
    }
    return rc;
}

static int stream_flush(struct backend_stream *s, struct err *e)
{
    (void)s;
    (void)e;
    return 0;
}

const struct backend_stream_ops sim_stream_ops = {
    .create = stream_create,
    .destroy = stream_destroy,
    .write = stream_write,
    .read = stream_read,
    .copy = stream_copy,
    .fill = stream_fill,
    .launch = stream_launch,
    .mark = stream_mark,
    .mark_quiet = stream_mark_quiet,
    .wait = stream_wait,
    .flush = stream_flush,
};
