#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <utlist.h>

#include "common/clock.h"
#include "daemon/backend/sim/sim.h"
#include "kernels/host.h"

#define SECOND_NS    1e9
#define GATE_POLL_NS NS_PER_MS

/* ---- markers ------------------------------------------------------------------------------- */

void sim_marker_unref(struct backend_marker *m)
{
    if (--m->refs == 0) {
        free(m);
    }
}

static enum backend_state marker_state(struct backend_marker *m, struct err *e)
{
    struct backend_device *d = m->device;
    pthread_mutex_lock(&d->lock);
    enum backend_state state = m->settled;
    if (state == BACKEND_PENDING && m->stream->started > m->first) {
        state = BACKEND_RUNNING;
    }
    if (state == BACKEND_FAILED && e) {
        *e = m->why;
    }
    pthread_mutex_unlock(&d->lock);
    return state;
}

static void marker_times(struct backend_marker *m, uint64_t *ret_begin_ns, uint64_t *ret_end_ns)
{
    pthread_mutex_lock(&m->device->lock);
    *ret_begin_ns = m->begin_ns;
    *ret_end_ns = m->end_ns;
    pthread_mutex_unlock(&m->device->lock);
}

static int marker_arm(struct backend_marker *m, struct err *e)
{
    struct backend_device *d = m->device;
    (void)e;
    pthread_mutex_lock(&d->lock);
    bool over = m->settled != BACKEND_PENDING;
    m->quiet = false;
    pthread_mutex_unlock(&d->lock);
    if (over && d->wake) {
        d->wake(d->wake_data);
    }
    return 0;
}

static void marker_release(struct backend_marker *m)
{
    if (!m) {
        return;
    }
    struct backend_device *d = m->device;
    pthread_mutex_lock(&d->lock);
    sim_marker_unref(m);
    pthread_mutex_unlock(&d->lock);
}

const struct backend_marker_ops sim_marker_ops = {
    .state = marker_state,
    .times = marker_times,
    .release = marker_release,
    .arm = marker_arm,
};

/* ---- cost ---------------------------------------------------------------------------------- */

static uint64_t cost_ns(const struct sim_config *config, const struct sim_command *c)
{
    double ns = (double)config->launch_ns;
    if (c->op == SIM_LAUNCH) {
        const uint64_t *g = c->launch.global;
        ns += (double)g[0] * (double)g[1] * (double)g[2] * SECOND_NS / (double)config->items;
    } else {
        ns += (double)c->size * SECOND_NS / (double)config->bandwidth;
    }
    return config->speed > 0.0 ? (uint64_t)(ns / config->speed) : 0;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void sleep_until(uint64_t ns)
{
    struct timespec t = {(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0) {
    }
}

/* Sleeps until `end` or until the gate opens. Returns when the command has ended. */
static uint64_t sleep_out(const struct sim_config *config, uint64_t begin, uint64_t end)
{
    uint64_t now = clock_now_ns();
    if (config->gate[0] == '\0') {
        sleep_until(end);
        return end;
    }
    while (now < end && access(config->gate, F_OK) != 0) {
        sleep_until(earlier(end, now + GATE_POLL_NS));
        now = clock_now_ns();
    }
    return earlier(end, later(begin, now));
}

/* ---- commands ------------------------------------------------------------------------------ */

static int work_do(struct sim_command *c, struct err *e)
{
    switch (c->op) {
    case SIM_FILL:
        for (uint64_t at = 0; at < c->size; at += c->pattern_size) {
            memcpy(c->dst + at, c->pattern, c->pattern_size);
        }
        return 0;
    case SIM_LAUNCH:
        return c->launch.host->run(c->launch.global, c->launch.local, c->launch.arg,
                                   c->launch.arg_count, e);
    default:
        memcpy(c->dst, c->src, c->size);
        return 0;
    }
}

static void interval_fail(struct backend_stream *s, const struct err *why)
{
    if (s->failed == 0) {
        s->failed = why->code;
        s->why = *why;
    }
    if (why->code == ERR_KERNEL_FAULT || why->code == ERR_DEVICE_LOST) {
        s->device->dead = why->code;
    }
}

/* Returns only when the stream is stopped. The caller has the lock. */
static void hang(struct backend_stream *s)
{
    while (!s->stop) {
        pthread_cond_wait(&s->work, &s->device->lock);
    }
}

static struct sim_engine *engine_of(struct backend_device *d, enum sim_op op)
{
    return op == SIM_WRITE ? &d->to_device : op == SIM_READ ? &d->from_device : &d->compute;
}

/* The caller has the lock, which is released while the command runs. */
static int work_on_engine(struct backend_stream *s, struct sim_command *c, uint64_t *ret_begin_ns,
                          struct err *e)
{
    struct backend_device *d = s->device;
    struct sim_engine *engine = engine_of(d, c->op);
    uint64_t begin = 0;
    int slot =
        sim_engine_take(engine, s->priority, &s->stop, &d->changed, &d->lock, s->ready_ns, &begin);
    if (slot < 0) {
        return 0; /* the stream is stopped */
    }
    uint64_t end = begin + cost_ns(&d->config, c);
    if (engine == &d->compute) {
        d->running[slot] = ++d->begun;
    }
    pthread_mutex_unlock(&d->lock);
    int rc = work_do(c, e);
    end = sleep_out(&d->config, begin, end);
    if (d->config.speed <= 0.0) {
        end = later(end, clock_now_ns());
    }
    pthread_mutex_lock(&d->lock);
    if (engine == &d->compute) {
        d->running[slot] = 0;
    }
    sim_engine_give(engine, slot, end, &d->changed);
    s->ready_ns = end;
    *ret_begin_ns = begin;
    return rc;
}

/* The caller has the lock, which is released while the command runs. */
static void work_run(struct backend_stream *s, struct sim_command *c)
{
    struct backend_device *d = s->device;
    struct err e = ERR_INIT;
    if (c->action == SIM_HANG) {
        hang(s);
        return;
    }
    uint64_t begin = s->ready_ns;
    int rc = d->dead ? err_set(&e, d->dead, "%s: the device failed before", sim_op_name(c->op))
                     : sim_action_error(c->action, c->op, &e);
    if (rc == 0) {
        rc = work_on_engine(s, c, &begin, &e);
    }
    if (rc != 0) {
        interval_fail(s, &e);
    }
    s->begin_ns = s->begin_ns ? s->begin_ns : begin;
    s->end_ns = s->ready_ns;
}

/* The caller has the lock. */
static void mark_run(struct backend_stream *s, struct backend_marker *m)
{
    struct backend_device *d = s->device;
    m->begin_ns = s->begin_ns ? s->begin_ns : s->ready_ns;
    m->end_ns = s->begin_ns ? s->end_ns : s->ready_ns;
    m->why = s->why;
    m->settled = s->failed ? BACKEND_FAILED : BACKEND_DONE;
    s->begin_ns = 0;
    s->failed = 0;
    bool quiet = m->quiet;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    if (d->wake && !quiet) {
        d->wake(d->wake_data);
    }
    pthread_mutex_lock(&d->lock);
}

/* The caller has the lock. */
static void command_run(struct backend_stream *s, struct sim_command *c)
{
    s->started++;
    s->ready_ns = later(s->ready_ns, c->enqueued_ns);
    switch (c->kind) {
    case SIM_COMMAND_WORK:
        work_run(s, c);
        break;
    case SIM_COMMAND_MARK:
        mark_run(s, c->marker);
        break;
    case SIM_COMMAND_WAIT:
        while (c->marker->settled == BACKEND_PENDING && !s->stop) {
            pthread_cond_wait(&s->device->changed, &s->device->lock);
        }
        s->ready_ns = later(s->ready_ns, c->marker->end_ns);
        break;
    }
    if (c->marker) {
        sim_marker_unref(c->marker);
    }
    free(c);
}

void *sim_stream_main(void *stream)
{
    struct backend_stream *s = stream;
    pthread_mutex_lock(&s->device->lock);
    while (!s->stop) {
        struct sim_command *c = s->queue;
        if (!c) {
            pthread_cond_wait(&s->work, &s->device->lock);
            continue;
        }
        DL_DELETE(s->queue, c);
        command_run(s, c);
    }
    pthread_mutex_unlock(&s->device->lock);
    return NULL;
}
