/* What came of a replay: each job against the recording, and all of them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/err.h"
#include "common/hash.h"
#include "gpuctl/run/replay.h"

/* ---- one job --------------------------------------------------------------------------------- */

static void differs(struct replay_job *j, const char *what)
{
    struct replay *r = j->replay;
    r->count.differing++;
    if (r->count.differing <= REPLAY_SHOWN) {
        ctl_say("job %" PRIu64 " (line %" PRIu64 "): %s", j->id, j->line, what);
    } else if (r->count.differing == REPLAY_SHOWN + 1) {
        ctl_say("more jobs differ; they are counted only");
    }
}

static bool times_add(struct replay_times *t, uint64_t ns)
{
    if (t->count == t->room) {
        size_t room = t->room > 0 ? 2 * t->room : 1024;
        uint64_t *grown = realloc(t->ns, room * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        t->ns = grown;
        t->room = room;
    }
    t->ns[t->count++] = ns;
    return true;
}

struct finder {
    const struct replay_result *result;
    char name[DUMPED_WORDS]; /* of the memory with the result; "": not found */
};

/* Names as dumped_arg's callers give them. */
static int find_memory(void *user, const json_t *arg, const json_t *step, uint32_t at,
                       uint32_t index, struct ctl_err *e)
{
    struct finder *n = user;
    const struct replay_result *x = n->result;
    const char *what = json_string_value(json_object_get(arg, "what"));
    bool shared = x->arena != 0 && replay_number(arg, "arena") == x->arena &&
                  replay_number(arg, "offset") == x->offset;
    bool named = x->arena == 0 && step != NULL && at == x->step && index == x->arg;
    (void)e;
    if (shared && step == NULL) {
        (void)snprintf(n->name, sizeof n->name, "value %u", index);
    } else if (named && what != NULL && strcmp(what, "param") == 0) {
        (void)snprintf(n->name, sizeof n->name, "value %" PRIu64, replay_number(arg, "index"));
    } else if (shared || named) {
        (void)snprintf(n->name, sizeof n->name, "step %u argument %u", at, index);
    }
    return 0;
}

static const struct dumped_memory *memory_of(const struct replay_job *j,
                                             const struct replay_result *x)
{
    struct ctl_err ignored;
    struct finder n = {.result = x};
    const json_t *steps = replay_steps(j->root, j->program);
    (void)replay_args(steps, json_object_get(j->root, "values"), find_memory, &n, &ignored);
    for (uint32_t i = 0; n.name[0] != '\0' && i < j->d->memory_count; i++) {
        const struct dumped_memory *m = &j->d->memory[i];
        if (m->written && strcmp(m->name, n.name) == 0) {
            return m;
        }
    }
    return NULL;
}

/* false: the result is another. */
static bool compare_result(const struct replay_job *j, const gpud_job *job,
                           const struct replay_result *x)
{
    struct replay_counts *count = &j->replay->count;
    const void *data = NULL;
    size_t bytes = 0;
    char hash[HASH_TEXT_BYTES];
    if (!j->known) {
        count->unknown_results++;
        return true;
    }
    const struct dumped_memory *m = memory_of(j, x);
    if (m != NULL) {
        data = m->data;
        bytes = m->bytes;
    } else if (x->arena != 0 || gpud_job_output(job, x->step, x->arg, &data, &bytes) != 0) {
        count->unknown_results++;
        return true;
    }
    bool same = strcmp(hash_text(hash_of(data, bytes), hash), x->hash) == 0;
    count->results++;
    count->same_results += same;
    return same;
}

static void compare_results(struct replay_job *j, const gpud_job *job)
{
    char what[96] = "";
    for (uint32_t i = 0; i < j->end->result_count; i++) {
        const struct replay_result *x = &j->end->result[i];
        if (!compare_result(j, job, x) && what[0] == '\0') {
            if (x->arena != 0) {
                (void)snprintf(what, sizeof what, "the result in shared memory has another hash");
            } else {
                (void)snprintf(what, sizeof what,
                               "step %u, argument %u: the result has another hash", x->step,
                               x->arg);
            }
        }
    }
    if (what[0] != '\0') {
        differs(j, what);
    } else {
        j->replay->count.same++;
    }
}

static void compare_failed(struct replay_job *j, const gpud_job *job, int code)
{
    gpud_error error = {.size = sizeof error};
    char what[1200];
    const char *name = code != 0 ? err_name(code) : "done";
    const char *was = j->end->error[0] != '\0' ? j->end->error : j->end->state;
    (void)gpud_job_error(job, &error);
    if (code != 0 && strcmp(name, was) == 0) {
        j->replay->count.same++;
        return;
    }
    (void)snprintf(what, sizeof what, "recorded: %s, now: %s%s%s", was, name, code != 0 ? ": " : "",
                   code != 0 ? error.text : "");
    differs(j, what);
}

void replay_compare(struct replay_job *j, gpud_job *job, int code)
{
    struct replay *r = j->replay;
    gpud_job_times times = {.size = sizeof times};
    const struct replay_end *end = j->end;
    bool other =
        end == NULL || strcmp(end->state, "cancelled") == 0 || strcmp(end->state, "lost") == 0;
    if (code == GPUD_ERR_CLOSED) {
        return; /* the replay ends early */
    }
    if (other) {
        r->count.uncompared++;
        return;
    }
    bool good = strcmp(end->state, "done") == 0 && code == 0;
    if (good && gpud_job_timing(job, &times) == 0) {
        r->failed = !times_add(&r->recorded, end->queued_ns + end->executed_ns) ||
                    !times_add(&r->replayed, times.queued_ns + times.executed_ns) || r->failed;
    }
    if (good) {
        compare_results(j, job);
    } else {
        compare_failed(j, job, code);
    }
}

/* ---- all of them ----------------------------------------------------------------------------- */

struct report {
    struct sheet_cell jobs, as_recorded, differing, uncompared, left_out, results, same_results;
    struct sheet_cell unknown_results, recorded_p50, replayed_p50, recorded_p99, replayed_p99;
    struct sheet_cell recorded_time, replayed_time, sessions, late, lost;
};

static const struct sheet_field fields[] = {
    SHEET_FIELD(struct report, jobs, GPUD_COLUMN_UINT, false),
    SHEET_FIELD(struct report, as_recorded, GPUD_COLUMN_UINT, false),
    SHEET_FIELD(struct report, differing, GPUD_COLUMN_UINT, false),
    SHEET_FIELD(struct report, results, GPUD_COLUMN_UINT, false),
    SHEET_FIELD(struct report, same_results, GPUD_COLUMN_UINT, false),
    SHEET_FIELD(struct report, recorded_p50, GPUD_COLUMN_NS, false),
    SHEET_FIELD(struct report, replayed_p50, GPUD_COLUMN_NS, false),
    SHEET_FIELD(struct report, recorded_p99, GPUD_COLUMN_NS, false),
    SHEET_FIELD(struct report, replayed_p99, GPUD_COLUMN_NS, false),
    SHEET_FIELD(struct report, recorded_time, GPUD_COLUMN_NS, false),
    SHEET_FIELD(struct report, replayed_time, GPUD_COLUMN_NS, false),
    SHEET_FIELD(struct report, sessions, GPUD_COLUMN_UINT, true),
    SHEET_FIELD(struct report, uncompared, GPUD_COLUMN_UINT, true),
    SHEET_FIELD(struct report, left_out, GPUD_COLUMN_UINT, true),
    SHEET_FIELD(struct report, unknown_results, GPUD_COLUMN_UINT, true),
    SHEET_FIELD(struct report, late, GPUD_COLUMN_NS, true),
    SHEET_FIELD(struct report, lost, GPUD_COLUMN_UINT, true),
};

static int by_time(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static struct sheet_cell part_of(const struct replay_times *t, unsigned percent)
{
    if (t->count == 0) {
        return (struct sheet_cell){.text = "-"};
    }
    return (struct sheet_cell){.value = t->ns[(t->count - 1) * percent / 100]};
}

static void say_rest(const struct replay *r)
{
    const struct replay_counts *n = &r->count;
    if (r->recording.cut) {
        ctl_say("the recording is cut: its last line is missing");
    }
    if (n->lost > 0) {
        ctl_say("the recording lacks %" PRIu64 " lines: jobs came faster than they were written",
                n->lost);
    }
    if (n->left_out > 0) {
        ctl_say("%" PRIu64 " jobs were left out: cancelled before they began, or with variables "
                "of modules",
                n->left_out);
    }
    if (n->uncompared > 0) {
        ctl_say("%" PRIu64 " jobs were run and not compared: they were cancelled or lost, or their "
                "end is not in the recording",
                n->uncompared);
    }
    if (n->unknown_results > 0) {
        ctl_say("%" PRIu64 " results cannot be compared: the recording lacks data that led to them "
                "(record with data)",
                n->unknown_results);
    }
}

int replay_report(struct replay *r, struct ctl_err *e)
{
    const struct replay_counts *n = &r->count;
    if (r->recorded.count > 0) {
        qsort(r->recorded.ns, r->recorded.count, sizeof *r->recorded.ns, by_time);
        qsort(r->replayed.ns, r->replayed.count, sizeof *r->replayed.ns, by_time);
    }
    const struct report row = {
        .jobs = {.value = n->jobs},
        .as_recorded = {.value = n->same},
        .differing = {.value = n->differing},
        .uncompared = {.value = n->uncompared},
        .left_out = {.value = n->left_out},
        .results = {.value = n->results},
        .same_results = {.value = n->same_results},
        .unknown_results = {.value = n->unknown_results},
        .recorded_p50 = part_of(&r->recorded, 50),
        .replayed_p50 = part_of(&r->replayed, 50),
        .recorded_p99 = part_of(&r->recorded, 99),
        .replayed_p99 = part_of(&r->replayed, 99),
        .recorded_time = {.value = r->last_ns - r->first_ns},
        .replayed_time = {.value = r->begin_ns != 0 ? r->end_ns - r->begin_ns : 0},
        .sessions = {.value = r->clients},
        .late = {.value = n->late_ns},
        .lost = {.value = n->lost},
    };
    const struct sheet_rows table = SHEET_ROWS("replay", fields, &row, 1);
    say_rest(r);
    int rc = ctl_write_rows(r->ctl, &table, e);
    return rc == 0 && n->differing > 0 ? EXIT_DIFFERS : rc;
}
