#include "daemon/front/model/flight.h"

#include <utlist.h>

#include "daemon/front/model/wake.h"

/* For the jobs that began after it, time limits count from now. */
static void make_way(const struct job *j, uint64_t now)
{
    struct front *f = j->device->front;
    for (struct job *k = j->device->inflight; k != NULL && j->clock.place != 0;
         k = k->device_next) {
        if (k->clock.place > j->clock.place) {
            k->clock.clear_ns = now;
            wake_at(f, now); /* its limit is checked again */
        }
    }
}

bool turn_outstays(const struct device *d, const struct job *j)
{
    return j->dispatched_ns <= d->outstayed_ns;
}

struct job *job_first_running(const struct device *d)
{
    struct job *first = NULL;
    for (struct job *j = d->inflight; j != NULL; j = j->device_next) {
        bool before = first == NULL || j->clock.place < first->clock.place;
        first = j->clock.place != 0 && before ? j : first;
    }
    return first;
}

void job_make_way(struct job *j)
{
    struct device *d = j->device;
    uint64_t now = turn_now(d->front);
    if (j->clock.place != 0) {
        uint64_t still_ns = wake_still_ns(d->front, now);
        if (still_ns > 0) { /* the worker's frames may be read before the timer's work is done */
            job_stood_still(j, now, still_ns);
        }
        make_way(j, now);
        job_pause(j, now);
        d->ran_ns = now;
    }
}

static void enter_stream(struct job *j)
{
    struct device *d = j->device;
    if (!j->in_stream && d->stream_load[j->stream]++ == 0) {
        line_pass(device_line(d), turn_now(d->front));
        device_line(d)->streams++;
    }
    j->in_stream = true;
}

static void leave_stream(struct job *j)
{
    struct device *d = j->device;
    if (j->in_stream && --d->stream_load[j->stream] == 0) {
        line_pass(device_line(d), turn_now(d->front));
        device_line(d)->streams--;
    }
    j->in_stream = false;
}

/* Those behind a job that waited for memory may have waited for it: their time begins now. */
static void release_later(const struct job *j)
{
    for (struct job *k = j->device_next; k != NULL; k = k->device_next) {
        if (k->clock.place == 0) {
            k->clock.turned_ns = turn_now(j->device->front);
        }
    }
}

/* Nothing of it ran while it waited: its part of the device counts from now. */
static void begin_part(struct job *j)
{
    struct line *l = device_line(j->device);
    struct job_charge *c = &j->sched.charge;
    line_pass(l, turn_now(j->device->front));
    if (c->since_ns != 0) { /* it is charged */
        c->portion = c->spent.portion = l->portion;
        c->since_ns = c->spent.at_ns = l->portion_ns;
    }
}

void job_await_memory(struct job *j, bool waits)
{
    job_set_wait(j, waits ? WAIT_MEMORY : WAIT_NOTHING);
    if (waits) {
        leave_stream(j);
    } else {
        release_later(j);
        enter_stream(j);
        begin_part(j);
    }
}

void job_leave_device(struct job *j)
{
    struct device *d = j->device;
    if (d == NULL || j->device_prev == NULL) {
        return;
    }
    if (d->inflight == j) {
        d->first_ns = turn_now(d->front);
    }
    make_way(j, turn_now(d->front));
    if (!j->in_stream) {
        release_later(j);
    }
    DL_DELETE2(d->inflight, j, device_prev, device_next);
    j->device_prev = j->device_next = NULL;
    d->inflight_count--;
    if (j->tenant != NULL) {
        j->tenant->gate.flying--;
        gate_look(&d->front->gates, &j->tenant->gate, j->tenant);
    }
    d->stream_ns[j->stream] = j->ended_ns != 0 ? j->ended_ns : turn_now(d->front);
    d->stream_ahead_ns[j->stream] -= j->sched.charge.expected_ns;
    leave_stream(j);
    d->exclusive = d->exclusive && j->trust == TRUST_SHARED;
    if (d->culprit == j) { /* the job ended, and may be forgotten before its worker ends */
        d->culprit = NULL;
    }
}

void job_join_device(struct job *j)
{
    struct device *d = j->device;
    DL_APPEND2(d->inflight, j, device_prev, device_next);
    d->inflight_count++;
    if (j->tenant != NULL) {
        j->tenant->gate.flying++;
    }
    d->stream_ahead_ns[j->stream] += j->sched.charge.expected_ns;
    enter_stream(j);
    d->exclusive = j->trust != TRUST_SHARED;
}
