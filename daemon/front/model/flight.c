#include "daemon/front/model/flight.h"

#include <utlist.h>

#include "daemon/front/model/due.h"

/* The time of those that were seen to run after it begins. */
static void make_way(const struct job *j, uint64_t now)
{
    struct front *f = j->device->front;
    for (struct job *k = j->device->inflight; k != NULL && j->start != 0; k = k->device_next) {
        if (k->start > j->start) {
            k->alone_ns = now;
            due_at(f, now); /* it is looked at again */
        }
    }
}

void job_make_way(struct job *j)
{
    struct device *d = j->device;
    uint64_t now = turn_now(d->front);
    if (j->start != 0) {
        make_way(j, now);
        job_pause(j, now);
        d->ran_ns = now;
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
    DL_DELETE2(d->inflight, j, device_prev, device_next);
    j->device_prev = j->device_next = NULL;
    d->inflight_count--;
    d->stream_load[j->stream]--;
    d->exclusive = d->exclusive && !j->alone;
    if (d->culprit == j) { /* it ended by itself, and may be forgotten before its worker ends */
        d->culprit = NULL;
    }
}

void job_join_device(struct job *j)
{
    struct device *d = j->device;
    DL_APPEND2(d->inflight, j, device_prev, device_next);
    d->inflight_count++;
    d->stream_load[j->stream]++;
    d->exclusive = j->alone;
}
