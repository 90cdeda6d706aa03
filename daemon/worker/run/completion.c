#include "daemon/worker/run/completion.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/clock.h"
#include "common/seqpacket.h"
#include "daemon/pool/move.h"
#include "daemon/worker/run/graph.h"
#include "daemon/worker/run/pump.h"

#define LONG_NS     (20 * NS_PER_MS) /* a job that runs longer is reported as running */
#define REPORT_ROOM 512u             /* bytes of stack for a report, which most do not exceed */

void completion_init(struct completion *c, struct executor *x,
                     struct completion_callbacks callbacks, void *data)
{
    *c = (struct completion){.x = x, .callbacks = callbacks, .data = data};
}

void completion_add(struct completion *c, struct job *j)
{
    job_set_state(j, JOB_STARTED);
    j->watch.added_ns = clock_now_ns();
    j->arrival = ++c->arrivals;
    batch_enter(&c->x->batch, j);
    DL_APPEND(c->first, j);
    c->count++;
}

/* ---- the report ----------------------------------------------------------------------------- */

struct times {
    uint64_t started_ns;
    uint64_t ended_ns;
};

/* When the user's steps from `first` to `step` ran, on the host's clock. */
struct span {
    unsigned first, step;
    const char *by; /* name of the implementation that ran the operation */
    uint64_t begin_ns, end_ns;
};

struct spans {
    unsigned count;
    struct span at[2 * JOB_MARKERS];
};

/* Inserts a span in the order of steps. Parts of one step are merged. */
static void span_add(struct spans *all, struct span s)
{
    unsigned i = all->count;
    while (i > 0 && all->at[i - 1].first > s.first) {
        i--;
    }
    struct span *same = i > 0 ? &all->at[i - 1] : NULL;
    if (same != NULL && same->first == s.first && same->step == s.step) {
        same->begin_ns = s.begin_ns < same->begin_ns ? s.begin_ns : same->begin_ns;
        same->end_ns = s.end_ns > same->end_ns ? s.end_ns : same->end_ns;
        same->by = same->by[0] != '\0' ? same->by : s.by;
    } else if (all->count < sizeof all->at / sizeof all->at[0]) {
        memmove(&all->at[i + 1], &all->at[i], (all->count - i) * sizeof s);
        all->at[i] = s;
        all->count++;
    }
}

/* If the mark covers one kernel, its time is the kernel's. If it covers several, or a library
 * ran in their place, it is an upper bound for each. */
static void pace_learn(const struct job *j, const struct job_mark *m, uint64_t ns)
{
    bool alone = m->launch_count == 1 && !m->served;
    for (unsigned i = 0; i < m->launch_count; i++) {
        const struct job_launch *l = &j->launches[m->launch + i];
        struct pace *pace = m->served ? l->served : l->pace;
        if (alone || ns < pace_expect(pace, l->items)) {
            pace_note(pace, ns, l->items);
        }
    }
}

static void spans_of(const struct backend *b, const struct job *j, struct spans *ret_spans)
{
    struct span s = {0};
    unsigned at = 0;
    ret_spans->count = 0;
    for (unsigned i = 0; i < j->mark_count; i++) {
        if (!j->mark[i].silent) {
            s = (struct span){
                .first = j->mark[i].first, .step = j->mark[i].step, .by = j->mark[i].by};
            b->marker->times(j->mark[i].marker, &s.begin_ns, &s.end_ns);
            pace_learn(j, &j->mark[i], s.end_ns - s.begin_ns);
            span_add(ret_spans, s);
        }
    }
    while (graph_copy_times(j->graph, &at, &s.step, &s.begin_ns, &s.end_ns)) {
        s.first = s.step;
        s.by = "";
        span_add(ret_spans, s);
    }
}

/* Steps that were enqueued together have the same times. */
static uint64_t span_write(const struct span *s, uint64_t started_ns, uint64_t room,
                           struct capbuf *out)
{
    uint64_t count = 0;
    unsigned first = s->step - s->first < BACKEND_WRITES_MAX ? s->first : s->step;
    for (unsigned step = first; step <= s->step && count < room; step++) {
        struct proto_timing timing = {.step = step,
                                      .begin_ns =
                                          s->begin_ns > started_ns ? s->begin_ns - started_ns : 0,
                                      .end_ns = s->end_ns > started_ns ? s->end_ns - started_ns : 0,
                                      .by = bytes_str(s->by)};
        count += proto_list_add(&schema_timing, &timing, out, NULL) == 0;
    }
    return count;
}

/* Writes the times of the steps as records. */
static struct proto_list timings(const struct backend *b, const struct job *j, struct capbuf *out,
                                 struct times *ret_times)
{
    uint64_t count = 0;
    struct times t = {j->watch.added_ns, j->watch.added_ns}; /* a job without steps */
    struct spans spans;
    spans_of(b, j, &spans);
    if (spans.count > 0) {
        t = (struct times){0, 0};
    }
    for (unsigned i = 0; i < spans.count; i++) {
        const struct span *s = &spans.at[i];
        bool earlier = t.started_ns == 0 || s->begin_ns < t.started_ns;
        t.started_ns = earlier && s->begin_ns != 0 ? s->begin_ns : t.started_ns;
        t.ended_ns = s->end_ns > t.ended_ns ? s->end_ns : t.ended_ns;
    }
    for (unsigned i = 0; i < spans.count; i++) {
        count += span_write(&spans.at[i], t.started_ns, PROTO_STEPS_MAX - count, out);
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

/* Without memory the report lies in the job, without the times of its steps and the reason. */
static void report_brief(struct job *j, struct msg_w_done *msg)
{
    struct capbuf out;
    capbuf_init_in(&out, sizeof j->brief, j->brief, sizeof j->brief);
    msg->timings = (struct proto_list){0};
    msg->text = bytes_str(j->e.code != 0 ? "the worker has no memory for the reason" : "");
    if (proto_encode(&schema_msg_w_done, msg, &out, NULL) != 0) {
        abort(); /* numbers alone always fit */
    }
    j->done = j->brief;
    j->done_size = out.size;
    capbuf_finish(&out);
}

/* The frame is kept until the front retires the job: a front that connects later asks for it. */
static void report(const struct backend *b, struct job *j)
{
    uint8_t room[REPORT_ROOM];
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
    capbuf_init_in(&out, FRAME_MAX_BYTES, room, sizeof room);
    if (j->e.code == 0) {
        msg.timings = timings(b, j, &list, &times);
        msg.started_ns = times.started_ns;
        msg.ended_ns = times.ended_ns;
    } else {
        msg.text = bytes_str(j->e.text);
        msg.started_ns = j->watch.seen_running_ns;
    }
    int rc = proto_encode(&schema_msg_w_done, &msg, &out, NULL);
    if (rc == 0) {
        j->done = malloc(out.size);
        j->done_size = out.size;
        rc = j->done != NULL ? 0 : ERR_NOMEM;
    }
    if (rc == 0) {
        memcpy(j->done, out.data, out.size);
    }
    if (rc != 0) {
        report_brief(j, &msg);
    }
    capbuf_finish(&list);
    capbuf_finish(&out);
}

/* ---- the end of a job ------------------------------------------------------------------------ */

/* Called when the job has released what it used. Steps of its graph that have not begun never
 * will. */
static void graph_end(struct completion *c, struct job *j)
{
    c->x->scope.device->memory.unmarked -= j->graph != NULL;
    graph_destroy(j->graph);
    j->graph = NULL;
}

static void release(struct completion *c, struct job *j)
{
    job_release(&c->x->scope, j);
    pool_move_anew(c->x->scope.device->memory.pool); /* its buffers may move now */
    graph_end(c, j);
}

static void leave(struct completion *c, struct job *j)
{
    DL_DELETE(c->first, j);
    c->count--;
    batch_leave(&c->x->batch, j);
    job_set_state(j, JOB_FINISHED);
}

/* For a job whose end was reported before: it kept its place for the jobs that come after it. */
static void finish_reported(struct completion *c, struct job *j)
{
    bool retired = j->state == JOB_RETIRED;
    leave(c, j);
    release(c, j);
    if (retired) {
        ledger_retire(c->x->ledger, j);
    }
}

static void finish(struct completion *c, struct job *j)
{
    if (job_state_reported(j->state)) {
        finish_reported(c, j);
        return;
    }
    report(c->x->scope.device->b, j);
    leave(c, j);
    if (!device_is_lost(j->e.code)) { /* otherwise commands may run until the process ends */
        memory_passed(&c->x->scope.device->memory, &j->end);
        if (j->e.code == 0 && j->mark_count > 0) {
            job_temps_cleaned(j);
        }
        release(c, j);
    }
    c->callbacks.done(c->data, j);
}

void completion_fail(struct completion *c, struct job *j)
{
    finish(c, j);
}

void completion_give_up(struct completion *c, struct job *j, const struct err *why)
{
    j->e = *why;
    job_set_state(j, JOB_GIVEN_UP);
    job_let_go(&c->x->scope, j);
    graph_end(c, j);
}

bool completion_cancel(struct completion *c, struct job *j, const struct err *why)
{
    completion_give_up(c, j, why);
    report(c->x->scope.device->b, j);
    job_set_state(j, JOB_REPORTED);
    c->callbacks.done(c->data, j);
    return completion_at_once(c, j);
}

bool completion_at_once(struct completion *c, struct job *j)
{
    bool over = executor_predecessors_over(c->x, j);
    if (over) {
        finish(c, j);
    }
    return over;
}

static bool over(const struct completion *c, const struct job *j)
{
    if (j->state != JOB_ENQUEUED || graph_busy(j->graph)) {
        return false;
    }
    if (j->mark_count == 0) {
        return true; /* all of its steps were large copies */
    }
    struct err e = ERR_INIT;
    enum backend_state state =
        c->x->scope.device->b->marker->state(j->mark[j->mark_count - 1].marker, &e);
    return state == BACKEND_DONE || state == BACKEND_FAILED;
}

/* Has the device something of the job that will end by itself, whatever the job comes after? */
static bool under_way(const struct completion *c, const struct job *j)
{
    return graph_busy(j->graph) || (j->state == JOB_ENQUEUED && !over(c, j));
}

/* Does the job come after one that waits for memory, while the device has nothing of it? */
static bool is_stuck(const struct completion *c, const struct job *j)
{
    for (unsigned i = 0; i < j->after_count; i++) {
        const struct job *before = ledger_find(c->x->ledger, j->after[i]);
        if (before != NULL && before->state != JOB_FINISHED &&
            (before->state == JOB_WAITING || before->watch.stuck)) {
            return !under_way(c, j);
        }
    }
    return false;
}

static bool holds_of(const struct job *j, uint64_t tenant)
{
    bool holds = j->tenant == tenant;
    for (unsigned i = 0; !holds && i < j->buffer_count; i++) {
        holds = j->buffers[i]->tenant == tenant;
    }
    return holds;
}

bool completion_frees(struct completion *c, const uint64_t *tenant)
{
    struct job *j;
    bool frees = false;
    bool again = true;
    DL_FOREACH(c->first, j)
    {
        j->watch.stuck = false;
    }
    while (again) { /* a second round only if a job comes after one that arrived later */
        again = false;
        frees = false;
        DL_FOREACH(c->first, j)
        {
            bool stuck = j->watch.stuck || is_stuck(c, j);
            again = again || stuck != j->watch.stuck;
            j->watch.stuck = stuck;
            frees = frees || !(stuck || job_state_given_up(j->state) ||
                               (tenant != NULL && !holds_of(j, *tenant)));
        }
    }
    return frees;
}

const struct job *completion_oldest(const struct completion *c)
{
    const struct job *j = c->first;
    while (j != NULL && j->state != JOB_ENQUEUED && !graph_on_device(j->graph)) {
        j = j->next;
    }
    return j;
}

/* A device may give up commands that wait for a command that failed: then the predecessor is to
 * blame, if it failed there. */
static void name_predecessor(const struct completion *c, struct job *j)
{
    for (unsigned i = 0; i < j->after_count; i++) {
        const struct job *before = ledger_find(c->x->ledger, j->after[i]);
        if (before != NULL && before->failed_there) {
            (void)err_set_vendor(&j->e, before->e.code, before->e.vendor,
                                 "after job %" PRIu64 " failed: %s", before->id, before->e.text);
            return;
        }
    }
}

static void blame_mark(const struct job_mark *m, struct err *e)
{
    e->step = (int)m->first;
    if (m->first == m->step) {
        (void)err_wrap(e, "step %u", m->step);
    } else {
        (void)err_wrap(e, "one of steps %u to %u", m->first, m->step);
    }
}

static void take_markers_error(const struct completion *c, struct job *j)
{
    const struct backend_marker_ops *ops = c->x->scope.device->b->marker;
    for (unsigned i = 0; i < j->mark_count; i++) {
        struct err e = ERR_INIT;
        if (ops->state(j->mark[i].marker, &e) == BACKEND_FAILED) {
            j->e = e;
            j->failed_there = true;
            blame_mark(&j->mark[i], &j->e);
            name_predecessor(c, j);
            return;
        }
    }
}

/* When a job is over, so are the commands that fill its buffers, though perhaps no poll has seen
 * that. */
static void take_buffers_error(const struct completion *c, struct job *j)
{
    const struct backend_marker_ops *ops = c->x->scope.device->b->marker;
    for (unsigned i = 0; i < j->buffer_count; i++) {
        struct backend_marker *filling = j->buffers[i]->filling;
        struct err why = ERR_INIT;
        bool failed = filling != NULL && ops->state(filling, &why) == BACKEND_FAILED;
        if (failed || j->buffers[i]->loss != BUFFER_WHOLE) {
            (void)err_set(&j->e, ERR_BUFFER_LOST,
                          "the content of buffer %" PRIu64 " was lost in a failed copy",
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
        take_buffers_error(c, j);
    }
    finish(c, j);
}

/* The time limit applies to kernels, so copies with a mark of their own do not count. */
static const struct job_mark *first_launch(const struct job *j)
{
    for (unsigned i = 0; i < j->mark_count; i++) {
        if (j->mark[i].launches) {
            return &j->mark[i];
        }
    }
    return j->state == JOB_ENQUEUED && j->mark_count > 0 ? &j->mark[0] : NULL;
}

/* Other jobs may be in the stream between the steps of a graph, so each of its marks is checked. */
static bool graph_runs(const struct completion *c, const struct job *j)
{
    const struct backend_marker_ops *ops = c->x->scope.device->b->marker;
    const struct job_mark *first = first_launch(j);
    /* launches behind the last mark show no state: they count as running if they were before */
    bool runs = j->watch.reported_running && graph_unmarked(j->graph);
    for (unsigned i = 0; first != NULL && i < j->mark_count && !runs; i++) {
        bool counts = j->mark[i].launches || !first->launches;
        runs = counts && ops->state(j->mark[i].marker, NULL) == BACKEND_RUNNING;
    }
    return runs;
}

static bool runs(const struct completion *c, const struct job *j)
{
    if (j->graph != NULL) {
        return graph_runs(c, j);
    }
    const struct job_mark *mark = j->watch.reported_running ? NULL : first_launch(j);
    return j->watch.reported_running ||
           (mark != NULL &&
            c->x->scope.device->b->marker->state(mark->marker, NULL) != BACKEND_PENDING);
}

/* Reports only changes that last, not the moments between two kernels. */
static void watch_running(struct completion *c, struct job *j, uint64_t now)
{
    struct job_watch *w = &j->watch;
    if (runs(c, j) == w->reported_running) {
        w->turned_ns = 0;
        return;
    }
    if (w->turned_ns == 0) {
        w->turned_ns = now;
        w->seen_running_ns = w->seen_running_ns == 0 ? now : w->seen_running_ns;
    } else if (now - w->turned_ns > LONG_NS) {
        w->turned_ns = 0;
        w->reported_running = !w->reported_running;
        c->callbacks.turned(c->data, j);
    }
}

/* Is the job on the device, which has begun none of its steps? */
static bool waits_there(const struct completion *c, const struct job *j)
{
    const struct job_mark *first = j->mark;
    const struct job_mark *end = j->mark + j->mark_count;
    while (first != end && first->silent) {
        first++;
    }
    bool there = j->graph != NULL ? graph_waits(j->graph) : j->state == JOB_ENQUEUED;
    return there && (first == end ||
                     c->x->scope.device->b->marker->state(first->marker, NULL) == BACKEND_PENDING);
}

/* Reports, once, that a job waits on the device when its deadline passes: it cannot be
 * withdrawn. */
static void watch_late(struct completion *c, struct job *j, uint64_t now)
{
    if (now >= j->deadline_ns && !j->watch.reported_late && waits_there(c, j)) {
        j->watch.reported_late = true;
        c->callbacks.late(c->data, j);
    }
}

void completion_renew(struct completion *c)
{
    for (struct job *j = c->first; j != NULL; j = j->next) {
        j->watch.reported_late = false;
    }
}

/* Asks the device to call at the job's end, if nothing else makes it call and the job runs for
 * longer than the pump spins. If the device cannot call now, the pump finds the end by its
 * timer. */
static void arm(const struct completion *c, struct job *j, uint64_t now)
{
    const struct device *dev = c->x->scope.device;
    const struct backend_marker_ops *ops = dev->b->marker;
    enum job_end_call end_call = j->batch.end_call;
    bool silent = (end_call == JOB_END_QUIET || !dev->wakes) && !batch_has(&c->x->batch, j);
    if (ops->arm != NULL && silent && j->state == JOB_ENQUEUED && j->mark_count > 0 &&
        end_call != JOB_END_ARMED && now - j->watch.added_ns > PUMP_SPIN_NS) {
        j->batch.end_call = JOB_END_ARMED;
        (void)ops->arm(j->mark[j->mark_count - 1].marker, NULL);
    }
}

/* Advances the job. Returns true if it is finished. */
static bool advance(struct completion *c, struct job *j, uint64_t now)
{
    struct err e = ERR_INIT;
    if (job_state_given_up(j->state)) {
        return completion_at_once(c, j);
    }
    if (j->state == JOB_GRAPH && !graph_begun(j->graph) &&
        job_expired(j, now, "earlier work on its stream", &e)) {
        if (graph_untouched(j->graph)) {
            return completion_cancel(c, j, &e);
        }
        j->writes = false; /* what the device has of it is no step */
        graph_stop(j->graph, c->x, j, &e);
    }
    if (j->state == JOB_GRAPH && executor_resume(c->x, j, &e) != 0) {
        j->e = e;
        finish(c, j); /* the device is lost */
        return true;
    }
    if (device_is_lost(j->e.code) && graph_busy(j->graph)) {
        finish(c, j);
        return true;
    }
    if (!over(c, j)) {
        watch_running(c, j, now);
        watch_late(c, j, now);
        arm(c, j, now);
        return false;
    }
    /* the device ended them before this job, but perhaps no poll has seen it */
    if (!executor_predecessors_over(c->x, j)) {
        return false;
    }
    settle(c, j);
    return true;
}

void completion_poll(struct completion *c, uint64_t now)
{
    bool again = true;
    while (again) {
        /* streams with a job that is not over: later jobs of the stream are not over either */
        bool behind[DEVICE_STREAMS_MAX] = {false};
        struct job *j;
        struct job *next;
        again = false;
        DL_FOREACH_SAFE(c->first, j, next)
        {
            unsigned stream = j->stream;
            bool single = j->graph == NULL && j->state == JOB_ENQUEUED;
            if (single && behind[stream]) {
                watch_late(c, j, now);
                continue;
            }
            bool ended = advance(c, j, now);
            behind[stream] = behind[stream] || (single && !ended);
            again = ended || again;
        }
    }
}
