#include "daemon/worker/run/batch.h"

#include "common/clock.h"

#define NONE         (-1)
#define AHEAD_MAX_NS (3600 * NS_PER_S) /* longer times are not counted: they are no estimate */

void batch_init(struct batch *b, struct device *device, const struct ledger *ledger)
{
    *b = (struct batch){.device = device, .ledger = ledger, .line = {NONE, NONE}};
}

void batch_open(struct batch *b)
{
    if (!b->open) {
        b->open = true;
        b->jobs = b->pending = 0;
        b->mixed = b->waited = false;
        b->serial++;
    }
}

/* ---- which stream ---------------------------------------------------------------------------- */

/* Does the job wait in this stream for a job that is not brief? Then jobs behind it would wait,
 * too. */
static bool waits_there(const struct batch *b, const struct job *j, unsigned stream)
{
    bool waits = b->lasting[stream] > 0;
    for (unsigned i = 0; !waits && i < j->after_count; i++) {
        const struct job *before = ledger_find(b->ledger, j->after[i]);
        waits = before != NULL && before->state != JOB_FINISHED &&
                (before->stream != stream || before->state != JOB_ENQUEUED);
    }
    return waits;
}

/* Where the device is a processor, a job without predecessors starts when it is enqueued, and
 * each start wakes the device's threads. In one stream, blocked until the batch starts, the
 * jobs wake them once. */
void batch_join(struct batch *b, struct job *j)
{
    struct device *dev = b->device;
    if (j->size == JOB_ORDINARY && j->step_count <= BATCH_STEPS &&
        j->expected_ns <= BATCH_BRIEF_NS) {
        j->size = JOB_BRIEF;
    }
    if (!b->open || j->size != JOB_BRIEF || j->step_count == 0) {
        b->mixed = true;
        return;
    }
    b->mixed = b->mixed || device_is_urgent(dev, j->stream) != 0;
    b->jobs++;
    j->batch.serial = b->serial;
    int *line = &b->line[device_is_urgent(dev, j->stream)];
    if (*line != NONE && !waits_there(b, j, (unsigned)*line)) {
        j->stream = (unsigned)*line;
    } else if (*line == NONE && dev->info.cpu && !waits_there(b, j, j->stream)) {
        *line = (int)j->stream;
        b->unstarted[j->stream] = true;
        if (dev->b->stream->gather != NULL) {
            dev->b->stream->gather(dev->stream[j->stream]);
        }
    }
}

bool batch_has(const struct batch *b, const struct job *j)
{
    return b->open && j->batch.serial == b->serial;
}

void batch_enter(struct batch *b, const struct job *j)
{
    b->lasting[j->stream] += j->size != JOB_BRIEF;
    b->pending += batch_has(b, j);
}

void batch_leave(struct batch *b, const struct job *j)
{
    b->lasting[j->stream] -= j->size != JOB_BRIEF;
    b->pending -= batch_has(b, j) && b->pending > 0;
    b->slow[j->stream] -= j->batch.slow;
    b->ahead_ns[j->stream] -= j->batch.ahead_ns;
    if (b->quiet[j->stream] == j) { /* a poll for another reason found its end */
        b->quiet[j->stream] = NULL;
    }
}

void batch_enqueued(struct batch *b, struct job *j)
{
    j->batch.slow = j->launch_count > 0 && j->launches_ns > BATCH_SLOW_NS;
    b->slow[j->stream] += j->batch.slow;
    j->batch.ahead_ns = j->expected_ns < AHEAD_MAX_NS ? j->expected_ns : 0;
    b->ahead_ns[j->stream] += j->batch.ahead_ns;
}

bool batch_slow(const struct batch *b, unsigned stream)
{
    return b->slow[stream] > 0;
}

bool batch_in_time(const struct batch *b, const struct job *j)
{
    uint64_t ahead = b->ahead_ns[j->stream];
    return ahead == 0 || j->deadline_ns == NS_NEVER || clock_now_ns() + ahead < j->deadline_ns;
}

void batch_hurry(struct batch *b)
{
    b->mixed = true;
}

unsigned batch_pending(const struct batch *b)
{
    return b->open && !b->mixed ? b->pending : 0;
}

void batch_waits(struct batch *b)
{
    b->waits += !b->waited;
    b->waited = true;
}

/* ---- how it starts and what reports its end ------------------------------------------------- */

/* If the device cannot call now, the pump finds the end by its timer. */
static void arm_last(struct batch *b, unsigned stream)
{
    struct job *last = b->quiet[stream];
    b->quiet[stream] = NULL;
    if (last != NULL) {
        last->batch.end_call = JOB_END_ARMED;
        (void)b->device->b->marker->arm(last->mark[last->mark_count - 1].marker, NULL);
    }
}

int batch_mark(struct batch *b, struct job *j, struct backend_marker **ret_marker, struct err *e)
{
    struct device *dev = b->device;
    const struct backend_stream_ops *ops = dev->b->stream;
    bool quiet =
        b->open && j->size == JOB_BRIEF && j->state != JOB_GRAPH && ops->mark_quiet != NULL;
    if (b->open && !batch_has(b, j)) {
        batch_hurry(b); /* it came before the batch, and waited for something else */
    }
    if (!quiet) {
        arm_last(b, j->stream); /* the next mark that calls may be far away */
    }
    int rc = (quiet ? ops->mark_quiet : ops->mark)(dev->stream[j->stream], ret_marker, e);
    b->unstarted[j->stream] = b->open;
    j->batch.end_call = quiet ? JOB_END_QUIET : JOB_END_CALLS;
    b->quiet[j->stream] = rc == 0 && quiet ? j : NULL;
    return rc;
}

int batch_start(struct batch *b, struct err *e)
{
    struct device *dev = b->device;
    int rc = 0;
    for (unsigned i = 0; b->open && rc == 0 && i < dev->stream_count; i++) {
        arm_last(b, i);
        rc = b->unstarted[i] ? dev->b->stream->flush(dev->stream[i], e) : 0;
        b->unstarted[i] = false;
    }
    if (b->open && b->jobs > 1) {
        b->batches++;
        b->batched += b->jobs;
    }
    b->open = false;
    b->pending = 0;
    b->line[0] = b->line[1] = NONE;
    return rc;
}

void batch_stats(const struct batch *b, struct msg_w_pool *stats)
{
    stats->batches = b->batches;
    stats->batched = b->batched;
    stats->waited = b->waits;
}
