#include <stdio.h>

#include "gpuctl/ctl/ctl.h"

/* Reads the command's one word, a job's number, and connects. */
static int begin(struct ctl *ctl, struct options *options, uint64_t *ret_job, struct ctl_err *e)
{
    const char *word[1] = {NULL};
    int rc = ctl_words(ctl, options, 1, 1, word, e);
    if (rc == 0) {
        rc = ctl_number("JOB", word[0], ret_job, e);
    }
    return rc == 0 ? ctl_connect(ctl, e) : rc;
}

/* The time between two points of the daemon's clock; unknown if `from` is 0. */
static struct sheet_cell span(uint64_t from, uint64_t to)
{
    return from != 0 && to >= from ? (struct sheet_cell){.value = to - from}
                                   : (struct sheet_cell){.text = ""};
}

/* The time until an expected one; 0 if it is past, unknown if there is none. */
static struct sheet_cell until(uint64_t now, uint64_t expected)
{
    return expected != 0 ? (struct sheet_cell){.value = expected > now ? expected - now : 0}
                         : (struct sheet_cell){.text = ""};
}

struct shown_job {
    struct sheet_cell job, state, label, device, stream, waited, executed, total, begins_in,
        ends_in, replays, trace_id, error, text, implementation;
};

static const struct sheet_field job_fields[] = {
    SHEET_FIELD(struct shown_job, job, GPUD_COLUMN_HANDLE, false),
    SHEET_FIELD(struct shown_job, state, GPUD_COLUMN_TEXT, false),
    SHEET_FIELD(struct shown_job, label, GPUD_COLUMN_TEXT, false),
    SHEET_FIELD(struct shown_job, device, GPUD_COLUMN_UINT, false),
    SHEET_FIELD(struct shown_job, stream, GPUD_COLUMN_UINT, true),
    SHEET_FIELD(struct shown_job, waited, GPUD_COLUMN_NS, false),
    SHEET_FIELD(struct shown_job, executed, GPUD_COLUMN_NS, false),
    SHEET_FIELD(struct shown_job, total, GPUD_COLUMN_NS, false),
    SHEET_FIELD(struct shown_job, begins_in, GPUD_COLUMN_NS, false),
    SHEET_FIELD(struct shown_job, ends_in, GPUD_COLUMN_NS, false),
    SHEET_FIELD(struct shown_job, replays, GPUD_COLUMN_UINT, true),
    SHEET_FIELD(struct shown_job, trace_id, GPUD_COLUMN_HANDLE, true),
    SHEET_FIELD(struct shown_job, error, GPUD_COLUMN_TEXT, false),
    SHEET_FIELD(struct shown_job, text, GPUD_COLUMN_TEXT, false),
    SHEET_FIELD(struct shown_job, implementation, GPUD_COLUMN_TEXT, true),
};

int cmd_job_show(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    uint64_t job = 0;
    int rc = begin(ctl, options, &job, e);
    if (rc != 0) {
        return rc;
    }
    gpud_job_desc d = {.size = sizeof d};
    rc = gpud_job_info(ctl->client, job, &d);
    if (rc != 0) {
        return ctl_err_lib(e, rc, "job %llu", (unsigned long long)job);
    }
    uint64_t over = d.ended_ns != 0 ? d.ended_ns : d.now_ns;
    bool placed = d.device != GPUD_NO_DEVICE;
    const struct shown_job row = {
        .job = {.value = d.id},
        .state = {.text = d.state},
        .label = {.text = d.label},
        .device = {.value = d.device, .text = placed ? NULL : "-"},
        .stream = {.value = d.stream, .text = placed ? NULL : "-"},
        .waited = span(d.submitted_ns, d.dispatched_ns != 0 ? d.dispatched_ns : over),
        .executed = span(d.started_ns, over),
        .total = span(d.submitted_ns, over),
        .begins_in = until(d.now_ns, d.begins_ns),
        .ends_in = until(d.now_ns, d.ends_ns),
        .replays = {.value = d.replays},
        .trace_id = {.value = d.trace_id},
        .error = {.text = d.code != 0 ? gpud_err_name(d.code) : ""},
        .text = {.text = d.text},
        .implementation = {.text = d.implementation},
    };
    const struct sheet_rows rows = SHEET_ROWS("job", job_fields, &row, 1);
    return ctl_write_rows(ctl, &rows, e);
}

int cmd_job_cancel(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    uint64_t job = 0;
    int rc = begin(ctl, options, &job, e);
    if (rc != 0) {
        return rc;
    }
    rc = gpud_job_cancel(ctl->client, job);
    if (rc != 0) {
        return ctl_err_lib(e, rc, "job %llu", (unsigned long long)job);
    }
    char done[64];
    snprintf(done, sizeof done, "asked for the end of job %llu", (unsigned long long)job);
    return ctl_done(ctl, "job cancel", true, done, e);
}

int cmd_explain(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    uint64_t job = 0;
    int rc = begin(ctl, options, &job, e);
    if (rc != 0) {
        return rc;
    }
    char text[GPUD_ERROR_TEXT];
    rc = gpud_explain(ctl->client, job, text, sizeof text);
    if (rc != 0) {
        return ctl_err_lib(e, rc, "job %llu", (unsigned long long)job);
    }
    if (ctl->format == SHEET_TABLE || ctl->format == SHEET_WIDE) {
        printf("%s\n", text);
        return 0;
    }
    struct explained {
        struct sheet_cell job, explanation;
    };
    static const struct sheet_field fields[] = {
        SHEET_FIELD(struct explained, job, GPUD_COLUMN_HANDLE, false),
        SHEET_FIELD(struct explained, explanation, GPUD_COLUMN_TEXT, false),
    };
    const struct explained row = {.job = {.value = job}, .explanation = {.text = text}};
    const struct sheet_rows rows = SHEET_ROWS("explain", fields, &row, 1);
    return ctl_write_rows(ctl, &rows, e);
}
