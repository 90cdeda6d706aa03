#include "daemon/front/metrics/tally.h"

#include <string.h>

#include "common/clock.h"
#include "daemon/front/model/front.h"
#include "daemon/front/tenants/accounts.h"

unsigned tally_row(unsigned account_index, const char *name)
{
    bool own = account_index >= 1 && account_index <= TENANTS_SHOWN &&
               strcmp(name, TALLY_OTHERS) != 0; /* a tenant of that name would be there twice */
    return own ? account_index : 0;
}

unsigned tally_tenant_row(const struct front *f, const struct tenant *t)
{
    bool filed = f->accounts != NULL && t->account != &t->own;
    return filed ? tally_row(accounts_index(f->accounts, t->account), t->name) : 0;
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* The operation of the step of the user's program; 0: unknown, as of an adopted job. Steps of the
 * work are in the order of the program. */
static unsigned op_of(const struct work *w, uint64_t step)
{
    unsigned low = 0;
    unsigned high = w->step_count;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (w->steps[middle].step < step) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < w->step_count && w->steps[low].step == step ? w->steps[low].op : 0;
}

/* How many times from here on are of steps that were timed together. */
static unsigned together(const struct job *j, unsigned first)
{
    const struct timing *t = &j->timings[first];
    unsigned end = first + 1;
    while (end < j->timing_count && j->timings[end].begin_ns == t->begin_ns &&
           j->timings[end].end_ns == t->end_ns) {
        end++;
    }
    return end - first;
}

/* Steps that were timed together get equal parts of their time. */
static void add_copies(struct tally *t, const struct job *j)
{
    unsigned group = 0;
    for (unsigned first = 0; first < j->timing_count; first += group) {
        const struct timing *at = &j->timings[first];
        uint64_t ns = at->end_ns > at->begin_ns ? at->end_ns - at->begin_ns : 0;
        group = together(j, first);
        for (unsigned i = first; i < first + group; i++) {
            unsigned op = op_of(&j->work, j->timings[i].step);
            t->copy_ns[TALLY_TO_DEVICE] += op == OP_WRITE ? ns / group : 0;
            t->copy_ns[TALLY_FROM_DEVICE] += op == OP_READ ? ns / group : 0;
        }
    }
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static void add_busy(struct tallies *t, const struct front *f, const struct job *j)
{
    unsigned row = tally_tenant_row(f, j->tenant);
    struct tally_busy *b = &t->busy[row];
    uint64_t since_ns = j->tenant->account->since_ns;
    if (row != 0 && b->since_ns != since_ns) { /* others have no account in common */
        *b = (struct tally_busy){.since_ns = since_ns};
    }
    b->ns[device_shown(j->device)] += j->device_ns;
}

static void add_error(struct tally *t, const struct job *j)
{
    unsigned code = (unsigned)-j->error.code;
    if ((j->state == JOB_FAILED || j->state == JOB_LOST) && code < TALLY_ERRORS) {
        t->errors[code]++;
    }
}

void tally_job(struct tallies *t, const struct front *f, const struct job *j)
{
    if (j->tenant == NULL || j->counted) {
        return;
    }
    bool sent = j->device != NULL && j->dispatched_ns != 0;
    bool began = sent && j->started_ns != 0 && j->started_ns >= j->submitted_ns;
    uint64_t wall_ns = j->trace_id != 0 ? clock_wall_ns() : 0;
    struct tally *to = sent ? &t->device[device_shown(j->device)] : &t->none;
    if (began) {
        histogram_note(&to->time[TALLY_QUEUE], j->started_ns - j->submitted_ns, j->trace_id,
                       wall_ns);
        histogram_note(&to->time[TALLY_EXECUTION],
                       j->ended_ns > j->started_ns ? j->ended_ns - j->started_ns : 0, j->trace_id,
                       wall_ns);
    }
    histogram_note(&to->time[TALLY_DURATION],
                   j->ended_ns > j->submitted_ns ? j->ended_ns - j->submitted_ns : 0, j->trace_id,
                   wall_ns);
    if (sent) {
        add_error(to, j);
        add_copies(to, j);
        add_busy(t, f, j);
    }
}
