#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "gpuctl/ctl/ctl.h"
#include "gpuctl/ctl/interrupt.h"
#include "gpuctl/input/spec.h"

#define PAUSE_LEAST_NS (10 * NS_PER_MS) /* between two questions for a job's end */
#define PAUSE_MOST_NS  (500 * NS_PER_MS)

enum { OPT_RUNNING = 1 };

const struct option job_cancel_option_list[] = {
    {"running", 0, false, OPT_RUNNING},
    {0},
};

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

static int write_job(struct ctl *ctl, const gpud_job_desc *desc, struct ctl_err *e)
{
    const gpud_job_desc d = *desc;
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

static int ask(struct ctl *ctl, uint64_t job, gpud_job_desc *ret_desc, struct ctl_err *e)
{
    *ret_desc = (gpud_job_desc){.size = sizeof *ret_desc};
    int rc = gpud_job_info(ctl->client, job, ret_desc);
    return rc == 0 ? 0 : ctl_err_lib(e, rc, "job %llu", (unsigned long long)job);
}

int cmd_job_show(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    uint64_t job = 0;
    gpud_job_desc d;
    int rc = begin(ctl, options, &job, e);
    rc = rc == 0 ? ask(ctl, job, &d, e) : rc;
    return rc == 0 ? write_job(ctl, &d, e) : rc;
}

/* ---- wait ---------------------------------------------------------------------------------- */

enum { OPT_TIMEOUT = 1 };

const struct option wait_option_list[] = {
    {"timeout", 0, true, OPT_TIMEOUT},
    {0},
};

static int wait_options(struct ctl *ctl, struct options *options, uint64_t *ret_job,
                        uint64_t *ret_ms, struct ctl_err *e)
{
    const char *value = NULL;
    bool known = false;
    int rc = 0;
    int id;
    while (rc == 0 && (id = ctl_option(ctl, options, wait_option_list, &value, e)) != OPTION_END) {
        if (id == OPTION_BAD) {
            return e->code;
        }
        if (id == OPT_TIMEOUT) {
            rc = spec_number("--timeout", value, 1, UINT64_MAX / NS_PER_MS, ret_ms, e);
        } else if (known) {
            rc = ctl_err_usage(e, "unexpected word '%s'", value);
        } else {
            rc = ctl_number("JOB", value, ret_job, e);
            known = true;
        }
    }
    return rc == 0 && !known ? ctl_err_usage(e, "JOB is missing: gpuctl wait JOB") : rc;
}

/* Asks for the job until it has ended: the daemon tells the end of a job only to its own session.
 * The pauses grow with the time waited. */
static int await_end(struct ctl *ctl, uint64_t job, uint64_t limit_ms, gpud_job_desc *ret_desc,
                     struct ctl_err *e)
{
    uint64_t begin_ns = clock_now_ns();
    uint64_t end_ns = limit_ms > 0 ? ns_add(begin_ns, limit_ms * NS_PER_MS) : NS_NEVER;
    int rc;
    while ((rc = ask(ctl, job, ret_desc, e)) == 0 && ret_desc->ended_ns == 0) {
        uint64_t now = clock_now_ns();
        uint64_t pause = (now - begin_ns) / 8;
        pause = pause < PAUSE_LEAST_NS  ? PAUSE_LEAST_NS
                : pause > PAUSE_MOST_NS ? PAUSE_MOST_NS
                                        : pause;
        if (now >= end_ns) {
            return ctl_err_set(e, GPUD_ERR_TIMEOUT, "job %llu is %s after %llu ms; it goes on",
                               (unsigned long long)job, ret_desc->state,
                               (unsigned long long)limit_ms);
        }
        (void)interrupt_sleep_until(now + pause < end_ns ? now + pause : end_ns, false);
        if (interrupt_seen()) {
            return ctl_err_set(e, CTL_INTERRUPTED, "interrupted; job %llu goes on",
                               (unsigned long long)job);
        }
    }
    return rc;
}

int cmd_wait(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    uint64_t job = 0;
    uint64_t limit_ms = 0;
    gpud_job_desc d;
    int rc = wait_options(ctl, options, &job, &limit_ms, e);
    interrupt_catch();
    rc = rc == 0 ? ctl_connect(ctl, e) : rc;
    rc = rc == 0 ? await_end(ctl, job, limit_ms, &d, e) : rc;
    interrupt_release();
    rc = rc == 0 ? write_job(ctl, &d, e) : rc;
    if (rc != 0 || strcmp(d.state, "done") == 0) {
        return rc;
    }
    return ctl_exit_code(d.code != 0 ? d.code : GPUD_ERR_CANCELLED);
}

int cmd_job_cancel(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    const char *word = NULL;
    const char *value = NULL;
    bool running = false;
    uint64_t job = 0;
    int id;
    while ((id = ctl_option(ctl, options, job_cancel_option_list, &value, e)) != OPTION_END) {
        if (id == OPTION_BAD) {
            return e->code;
        }
        if (id == OPTION_WORD && word != NULL) {
            return ctl_err_usage(e, "unexpected word '%s'", value);
        }
        word = id == OPTION_WORD ? value : word;
        running = running || id == OPT_RUNNING;
    }
    int rc = word != NULL ? ctl_number("JOB", word, &job, e) : ctl_err_usage(e, "JOB is missing");
    rc = rc == 0 ? ctl_connect(ctl, e) : rc;
    if (rc != 0) {
        return rc;
    }
    rc = running ? gpud_job_kill(ctl->client, job) : gpud_job_cancel(ctl->client, job);
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
