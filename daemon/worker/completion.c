#include "daemon/worker/completion.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/clock.h"
#include "common/seqpacket.h"
#include "daemon/worker/pump.h"

#define LONG_NS (20 * NS_PER_MS) /* a job that runs longer is told of while it runs */

void completion_init(struct completion *c, struct executor *x,
                     struct completion_callbacks callbacks, void *data)
{
    *c = (struct completion){.x = x, .callbacks = callbacks, .data = data};
}

void completion_add(struct completion *c, struct job *j)
{
    j->added_ns = clock_now_ns();
    DL_APPEND(c->first, j);
    c->count++;
}

/* ---- the report ----------------------------------------------------------------------------- */

struct times {
    uint64_t started_ns;
    uint64_t ended_ns;
};

/* Writes the steps' times as records; without markers or where one failed there are none. */
static struct proto_list timings(const struct backend *b, const struct job *j, struct capbuf *out,
                                 struct times *ret_times)
{
    uint64_t count = 0;
    struct times t = {j->added_ns, j->added_ns}; /* of one that had nothing to do */
    for (unsigned i = 0; i < j->mark_count; i++) {
        uint64_t begin = 0;
        uint64_t end = 0;
        b->marker->times(j->mark[i].marker, &begin, &end);
        if (i == 0) {
            t = (struct times){begin, 0};
        }
        t.ended_ns = end > t.ended_ns ? end : t.ended_ns;
        struct proto_timing timing = {.step = j->mark[i].step,
                                      .begin_ns = begin > t.started_ns ? begin - t.started_ns : 0,
                                      .end_ns = end > t.started_ns ? end - t.started_ns : 0,
                                      .by = bytes_str(j->mark[i].by)};
        count += proto_list_add(&schema_timing, &timing, out, NULL) == 0;
    }
    *ret_times = t;
    return proto_list_of(out, count);
}

static int effects_of(const struct job *j)
{
    if (!j->writes) {
        return ERR_EFFECTS_NONE;
    }
    return j->e.code == 0 ? ERR_EFFECTS_YES : ERR_EFFECTS_MAYBE;
}

/* The frame is kept for whoever asks until the front retires the job. */
static int report(const struct backend *b, struct job *j)
{
    struct capbuf list;
    struct capbuf out;
    struct times times = {0, 0};
    struct msg_w_done msg = {.job = j->id,
                             .code = j->e.code,
                             .vendor = j->e.vendor,
                             .step = j->e.step,
                             .arg = j->e.arg,
                             .effects = (uint64_t)effects_of(j)};
    capbuf_init(&list, FRAME_MAX_BYTES / 2);
    capbuf_init(&out, FRAME_MAX_BYTES);
    if (j->e.code == 0) {
        msg.timings = timings(b, j, &list, &times);
        msg.started_ns = times.started_ns;
        msg.ended_ns = times.ended_ns;
    } else {
        msg.text = bytes_str(j->e.text);
        msg.started_ns = j->seen_running_ns;
    }
    int rc = proto_encode(&schema_msg_w_done, &msg, &out, NULL);
    capbuf_finish(&list);
    if (rc != 0) {
        capbuf_finish(&out);
        return rc;
    }
    j->done = out.data;
    j->done_size = out.size;
    return 0;
}

/* ---- the end of a job ------------------------------------------------------------------------ */

static void finish(struct completion *c, struct job *j)
{
    /* without memory for the report there is no way to tell the end: the worker's end tells it */
    if (report(c->x->scope.device->b, j) != 0) {
        abort();
    }
    DL_DELETE(c->first, j);
    c->count--;
    j->finished = true;
    memory_passed(&c->x->scope.device->memory, &j->end);
    if (j->e.code == 0 && j->mark_count > 0) {
        job_temps_cleaned(j);
    }
    job_release(&c->x->scope, j);
    c->callbacks.done(c->data, j);
}

void completion_fail(struct completion *c, struct job *j)
{
    finish(c, j);
}

/* Jobs before this one are over as well when its marker is, but may not have been looked at. */
static bool predecessors_finished(const struct completion *c, const struct job *j)
{
    for (unsigned i = 0; i < j->after_count; i++) {
        const struct job *before = ledger_find(c->x->ledger, j->after[i]);
        if (before != NULL && !before->finished) {
            return false;
        }
    }
    return true;
}

bool completion_at_once(struct completion *c, struct job *j)
{
    bool over = predecessors_finished(c, j);
    if (over) {
        finish(c, j);
    }
    return over;
}

/* A device may give up the commands that wait for one that failed: then that one is the reason. */
static void name_predecessor(const struct completion *c, struct job *j)
{
    for (unsigned i = 0; i < j->after_count; i++) {
        const struct job *before = ledger_find(c->x->ledger, j->after[i]);
        if (before != NULL && before->e.code != 0) {
            (void)err_set_vendor(&j->e, before->e.code, before->e.vendor,
                                 "after job %" PRIu64 " failed: %s", before->id, before->e.text);
            return;
        }
    }
}

static void take_markers_error(const struct completion *c, struct job *j)
{
    const struct backend_marker_ops *ops = c->x->scope.device->b->marker;
    for (unsigned i = 0; i < j->mark_count; i++) {
        struct err e = ERR_INIT;
        if (ops->state(j->mark[i].marker, &e) == BACKEND_FAILED) {
            j->e = e;
            j->e.step = (int)j->mark[i].step;
            (void)err_wrap(&j->e, "step %u", j->mark[i].step);
            name_predecessor(c, j);
            return;
        }
    }
}

static void take_buffers_error(struct job *j)
{
    for (unsigned i = 0; i < j->buffer_count; i++) {
        if (j->buffers[i]->broken) {
            (void)err_set(&j->e, ERR_BUFFER_LOST, "content of buffer %" PRIu64 " did not arrive",
                          j->buffers[i]->id);
            return;
        }
    }
}

static void settle(struct completion *c, struct job *j)
{
    if (j->e.code == 0) {
        take_markers_error(c, j);
    }
    if (j->e.code == 0) {
        take_buffers_error(j);
    }
    finish(c, j);
}

static void watch_running(struct completion *c, struct job *j, uint64_t now)
{
    enum backend_state state = c->x->scope.device->b->marker->state(j->mark[0].marker, NULL);
    if (j->told_started || state == BACKEND_PENDING) {
        return;
    }
    if (j->seen_running_ns == 0) {
        j->seen_running_ns = now;
    } else if (now - j->seen_running_ns > LONG_NS) {
        j->told_started = true;
        c->callbacks.started(c->data, j);
    }
}

/* Of a device that does not call by itself, the end of what is longer than the pump's spin. If it
 * cannot call now either, the pump's timer asks. */
static void arm(const struct completion *c, struct job *j, uint64_t now)
{
    const struct backend_marker_ops *ops = c->x->scope.device->b->marker;
    if (ops->arm != NULL && !j->armed && now - j->added_ns > PUMP_SPIN_NS) {
        j->armed = true;
        (void)ops->arm(j->mark[j->mark_count - 1].marker, NULL);
    }
}

/* Is it over and reported? */
static bool advance(struct completion *c, struct job *j, uint64_t now)
{
    struct err e = ERR_INIT;
    enum backend_state state =
        c->x->scope.device->b->marker->state(j->mark[j->mark_count - 1].marker, &e);
    if (state != BACKEND_DONE && state != BACKEND_FAILED) {
        watch_running(c, j, now);
        arm(c, j, now);
        return false;
    }
    if (!predecessors_finished(c, j)) {
        return false;
    }
    settle(c, j);
    return true;
}

void completion_poll(struct completion *c, uint64_t now)
{
    bool again = true;
    while (again) {
        struct job *j;
        struct job *next;
        again = false;
        DL_FOREACH_SAFE(c->first, j, next)
        {
            again = advance(c, j, now) || again;
        }
    }
}
