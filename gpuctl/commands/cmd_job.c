#include <stdio.h>

#include "gpuctl/ctl/ctl.h"

/* The one word of the command, a job's number, and the connection. */
static int begin(struct ctl *ctl, struct options *options, uint64_t *ret_job, struct ctl_err *e)
{
    const char *word[1] = {NULL};
    int rc = ctl_words(ctl, options, 1, 1, word, e);
    if (rc == 0) {
        rc = ctl_number("JOB", word[0], ret_job, e);
    }
    return rc == 0 ? ctl_connect(ctl, e) : rc;
}

/* Times in the answer are points of the daemon's clock: shown as spans, unknown ones as such; one
 * that lasts, until now. */
static struct sheet_cell span(uint64_t from, uint64_t to)
{
    return from != 0 && to >= from ? (struct sheet_cell){.value = to - from}
                                   : (struct sheet_cell){.text = ""};
}

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
    const struct sheet_column columns[] = {
        {"job", GPUD_COLUMN_HANDLE, false},         {"state", GPUD_COLUMN_TEXT, false},
        {"label", GPUD_COLUMN_TEXT, false},         {"device", GPUD_COLUMN_UINT, false},
        {"stream", GPUD_COLUMN_UINT, true},         {"waited", GPUD_COLUMN_NS, false},
        {"executed", GPUD_COLUMN_NS, false},        {"total", GPUD_COLUMN_NS, false},
        {"replays", GPUD_COLUMN_UINT, true},        {"trace_id", GPUD_COLUMN_HANDLE, true},
        {"error", GPUD_COLUMN_TEXT, false},         {"text", GPUD_COLUMN_TEXT, false},
        {"implementation", GPUD_COLUMN_TEXT, true},
    };
    uint64_t over = d.ended_ns != 0 ? d.ended_ns : d.now_ns;
    bool placed = d.device != GPUD_NO_DEVICE;
    const struct sheet_cell cells[] = {
        {.value = d.id},
        {.text = d.state},
        {.text = d.label},
        {.value = d.device, .text = placed ? NULL : "-"},
        {.value = d.stream, .text = placed ? NULL : "-"},
        span(d.submitted_ns, d.dispatched_ns != 0 ? d.dispatched_ns : over),
        span(d.started_ns, over),
        span(d.submitted_ns, over),
        {.value = d.replays},
        {.value = d.trace_id},
        {.text = d.code != 0 ? gpud_err_name(d.code) : ""},
        {.text = d.text},
        {.text = d.implementation},
    };
    struct sheet sheet = {
        .name = "job", .columns = columns, .column_count = 13, .cells = cells, .row_count = 1};
    return ctl_write(ctl, &sheet, e);
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
    const struct sheet_column columns[] = {{"job", GPUD_COLUMN_HANDLE, false},
                                           {"explanation", GPUD_COLUMN_TEXT, false}};
    const struct sheet_cell cells[] = {{.value = job}, {.text = text}};
    if (ctl->format == SHEET_TABLE || ctl->format == SHEET_WIDE) {
        printf("%s\n", text);
        return 0;
    }
    struct sheet sheet = {
        .name = "explain", .columns = columns, .column_count = 2, .cells = cells, .row_count = 1};
    return ctl_write(ctl, &sheet, e);
}
