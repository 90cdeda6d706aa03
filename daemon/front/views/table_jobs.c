/* The table `jobs`, newest first. Under the name `timeline` it shows when each job ran on which
 * stream. */
#include <stdio.h>

#include "daemon/front/views/table_view.h"

#define JOB_COLUMNS(COLUMN, WIDE)                                                                  \
    COLUMN(job, UINT, j->id)                                                                       \
    COLUMN(state, TEXT, job_state_name(j->state))                                                  \
    COLUMN(label, TEXT, j->label)                                                                  \
    COLUMN(tenant, TEXT, tenant_name(j))                                                           \
    COLUMN(device, TEXT, place)                                                                    \
    COLUMN(waits_for, TEXT, job_wait_name(j->wait))                                                \
    COLUMN(queued, NS, began > j->submitted_ns ? began - j->submitted_ns : 0)                      \
    COLUMN(executed, NS, j->started_ns > 0 && end > j->started_ns ? end - j->started_ns : 0)       \
    COLUMN(replays, UINT, j->replays + j->external)                                                \
    COLUMN(error, TEXT, j->error.text)                                                             \
    WIDE(class, TEXT, tenant_classes[j->job_class])                                                \
    WIDE(priority, TEXT, priority)                                                                 \
    WIDE(submitted_at, NS, j->submitted_ns)                                                        \
    WIDE(dispatched_at, NS, j->dispatched_ns)                                                      \
    WIDE(started_at, NS, j->started_ns)                                                            \
    WIDE(ended_at, NS, j->ended_ns)

static const char *tenant_name(const struct job *j)
{
    return j->tenant != NULL ? j->tenant->name : "gpud";
}

static void job_row(struct table_query *q, const struct job *j)
{
    struct table *t = &q->table;
    uint64_t end = j->ended_ns > 0 ? j->ended_ns : front_now(q->f);
    uint64_t began = j->started_ns > 0 ? j->started_ns : end;
    char place[32] = ""; /* device and stream */
    char priority[32];
    (void)snprintf(priority, sizeof priority, "%lld", (long long)j->priority);
    if (j->device != NULL) {
        (void)snprintf(place, sizeof place, "%u.%u", device_shown(j->device), j->stream);
    }
    TABLE_ROW(JOB_COLUMNS);
}

static bool matches(const struct msg_query *query, const struct job *j)
{
    return (query->state.size == 0 || bytes_equal_str(query->state, job_state_name(j->state))) &&
           (query->tenant.size == 0 || bytes_equal_str(query->tenant, tenant_name(j))) &&
           (query->session == 0 || query->session == j->session_id);
}

static void jobs_begin(struct table_query *q)
{
    const struct job *jobs = q->f->jobs; /* in the order of submission */
    struct table *t = &q->table;
    TABLE_HEADER(JOB_COLUMNS);
    q->at = jobs != NULL ? ELMT_FROM_HH(jobs->hh.tbl, jobs->hh.tbl->tail) : NULL;
}

static bool jobs_next(struct table_query *q)
{
    uint64_t most = q->query->limit > 0 ? q->query->limit : UINT64_MAX;
    const struct job *j = q->at;
    if (j == NULL || q->table.row_count >= most) {
        return false;
    }
    q->at = j->hh.prev;
    if (rights_sees(&q->f->rights, q->s, j->tenant) && matches(q->query, j)) {
        turn_count(q->f, TABLE_ROW_UNITS);
        job_row(q, j);
    }
    return true;
}

const struct table_view view_jobs = {"jobs", jobs_begin, jobs_next, false};
const struct table_view view_timeline = {"timeline", jobs_begin, jobs_next, false};
