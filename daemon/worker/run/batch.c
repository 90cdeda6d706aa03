#include "daemon/worker/run/batch.h"

#include "common/clock.h"

#define NONE         (-1)
#define AHEAD_MAX_NS (3600 * NS_PER_S) /* more is no expectation */

void batch_init(struct batch *b, struct device *device, const struct ledger *ledger)
{
    *b = (struct batch){.device = device, .ledger = ledger, .line = {NONE, NONE}};
}

void batch_open(struct batch *b)
{
    if (!b->open) {
        b->open = true;
        b->jobs = b->held = 0;
        b->mixed = b->waited = false;
        b->serial++;
    }
}

/* ---- which stream ---------------------------------------------------------------------------- */

/* In this stream it waits for nothing that is not brief: those behind it would wait as well. */
static bool waits_there(const struct batch *b, const struct job *j, unsigned stream)
{
    bool waits = b->lasting[stream] > 0;
    for (unsigned i = 0; !waits && i < j->after_count; i++) {
        const struct job *before = ledger_find(b->ledger, j->after[i]);
        waits =
            before != NULL && !before->finished && (before->stream != stream || !before->enqueued);
    }
    return waits;
}

/* A processor that is the device starts what has nothing before it when it is enqueued, and wakes
 * its threads each time: in one stream, behind a gate, it does so once. */
void batch_join(struct batch *b, struct job *j)
{
    struct device *dev = b->device;
    j->brief = j->checked <= BATCH_STEPS && !j->large && j->expected_ns <= BATCH_BRIEF_NS;
    if (!b->open || !j->brief || j->checked == 0) {
        b->mixed = true;
        return;
    }
    b->mixed = b->mixed || device_is_urgent(dev, j->stream) != 0;
    b->jobs++;
    j->batch = b->serial;
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
    return b->open && j->batch == b->serial;
}

void batch_enter(struct batch *b, const struct job *j)
{
    b->lasting[j->stream] += !j->brief;
    b->held += batch_has(b, j);
}

void batch_leave(struct batch *b, const struct job *j)
{
    b->lasting[j->stream] -= !j->brief;
    b->held -= batch_has(b, j) && b->held > 0;
    b->slow[j->stream] -= j->slow;
    b->ahead_ns[j->stream] -= j->ahead_ns;
    if (b->quiet[j->stream] == j) { /* it was asked for other reasons, and was over */
        b->quiet[j->stream] = NULL;
    }
}

void batch_enqueued(struct batch *b, struct job *j)
{
    j->slow = j->launch_count > 0 && j->launches_ns > BATCH_SLOW_NS;
    b->slow[j->stream] += j->slow;
    j->ahead_ns = j->expected_ns < AHEAD_MAX_NS ? j->expected_ns : 0;
    b->ahead_ns[j->stream] += j->ahead_ns;
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

unsigned batch_held(const struct batch *b)
{
    return b->open && !b->mixed ? b->held : 0;
}

void batch_waits(struct batch *b)
{
    b->waits += !b->waited;
    b->waited = true;
}

/* ---- how it starts and how its end is told --------------------------------------------------- */

/* If the device cannot call now, the pump's timer asks. */
static void tell(struct batch *b, unsigned stream)
{
    struct job *last = b->quiet[stream];
    b->quiet[stream] = NULL;
    if (last != NULL) {
        last->armed = true;
        (void)b->device->b->marker->arm(last->mark[last->mark_count - 1].marker, NULL);
    }
}

int batch_mark(struct batch *b, struct job *j, struct backend_marker **ret_marker, struct err *e)
{
    struct device *dev = b->device;
    const struct backend_stream_ops *ops = dev->b->stream;
    bool quiet = b->open && j->brief && j->graph == NULL && ops->mark_quiet != NULL;
    if (b->open && !batch_has(b, j)) {
        batch_hurry(b); /* it came earlier, and waited for something else */
    }
    if (!quiet) {
        tell(b, j->stream); /* what comes now may take long */
    }
    int rc = (quiet ? ops->mark_quiet : ops->mark)(dev->stream[j->stream], ret_marker, e);
    b->unstarted[j->stream] = b->open;
    j->quiet = quiet;
    b->quiet[j->stream] = rc == 0 && quiet ? j : NULL;
    return rc;
}

int batch_start(struct batch *b, struct err *e)
{
    struct device *dev = b->device;
    int rc = 0;
    for (unsigned i = 0; b->open && rc == 0 && i < dev->stream_count; i++) {
        tell(b, i);
        rc = b->unstarted[i] ? dev->b->stream->flush(dev->stream[i], e) : 0;
        b->unstarted[i] = false;
    }
    if (b->open && b->jobs > 1) {
        b->batches++;
        b->batched += b->jobs;
    }
    b->open = false;
    b->held = 0;
    b->line[0] = b->line[1] = NONE;
    return rc;
}

void batch_stats(const struct batch *b, struct msg_w_pool *stats)
{
    stats->batches = b->batches;
    stats->batched = b->batched;
    stats->held = b->waits;
}
