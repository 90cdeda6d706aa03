/*
 * `gpuctl status`: the daemon's own line, its devices, and for what is wrong a sentence and what
 * to do about it. Exit code 5 unless everything serves.
 */
#include <stdio.h>
#include <string.h>

#include "gpuctl/ctl.h"

/* A cell of a column by name, "" without that column. */
static const char *text_of(const gpud_table *table, uint32_t row, const char *column)
{
    int at = gpud_table_find(table, column);
    return at >= 0 ? gpud_table_text(table, row, (uint32_t)at) : "";
}

static uint64_t value_of(const gpud_table *table, uint32_t row, const char *column)
{
    int at = gpud_table_find(table, column);
    return at >= 0 ? gpud_table_value(table, row, (uint32_t)at) : 0;
}

struct advice {
    const char *state; /* of a device */
    const char *text;
};

static const struct advice advices[] = {
    {"starting", "it is starting: look again in a moment"},
    {"adopting", "its worker is being taken over: look again in a moment"},
    {"probing", "its first job is running: look again in a moment"},
    {"waiting", "its worker ended and starts again soon; the log tells why: journalctl -u gpud"},
    {"absent", "check the driver (for a CPU: apt-get install pocl-opencl-icd), then: systemctl "
               "restart gpud"},
    {"stuck", "its worker cannot be ended: the driver hangs; a reboot of the host may be needed"},
};

static const char *advice_for(const char *state)
{
    for (size_t i = 0; i < sizeof advices / sizeof advices[0]; i++) {
        if (strcmp(advices[i].state, state) == 0) {
            return advices[i].text;
        }
    }
    return "the log tells more: journalctl -u gpud";
}

/* Number of devices that do not serve; each is told if `out` is not NULL. */
static unsigned tell_devices(const gpud_table *devices, FILE *out)
{
    unsigned bad = 0;
    for (uint32_t r = 0; r < gpud_table_rows(devices); r++) {
        const char *state = text_of(devices, r, "state");
        if (strcmp(state, "ready") == 0) {
            continue;
        }
        bad++;
        if (out != NULL) {
            const char *reason = text_of(devices, r, "reason");
            fprintf(out, "Device %llu (%s) is %s%s%s.\n  %s\n",
                    (unsigned long long)value_of(devices, r, "id"), text_of(devices, r, "backend"),
                    state, reason[0] != '\0' ? ": " : "", reason, advice_for(state));
        }
    }
    return bad;
}

/* What the daemon says of itself: "ready", or why it is not. */
static bool daemon_ready(const gpud_table *status)
{
    return gpud_table_rows(status) == 1 && strcmp(text_of(status, 0, "state"), "ready") == 0;
}

static void tell_daemon(const gpud_table *status, FILE *out)
{
    const char *state = text_of(status, 0, "state");
    const char *reason = text_of(status, 0, "reason");
    if (out != NULL && !daemon_ready(status)) {
        fprintf(out, "gpud is %s%s%s.\n", state[0] != '\0' ? state : "not ready",
                reason[0] != '\0' ? ": " : "", reason);
        if (strcmp(state, "draining") == 0) {
            fprintf(out, "  gpuctl resume makes it take jobs again\n");
        }
    }
}

/* The one row of facts as lines. */
static void write_facts(const gpud_table *status, bool wide)
{
    for (uint32_t c = 0; c < gpud_table_columns(status); c++) {
        if (gpud_table_column_wide(status, c) && !wide) {
            continue;
        }
        char buffer[64];
        const char *text = gpud_table_text(status, 0, c);
        int kind = gpud_table_column_kind(status, c);
        if (text[0] == '\0') {
            text = kind == GPUD_COLUMN_TEXT
                       ? "-"
                       : sheet_text(kind, gpud_table_value(status, 0, c), buffer, sizeof buffer);
        }
        char label[GPUD_NAME + 1];
        snprintf(label, sizeof label, "%s:", gpud_table_column_name(status, c));
        for (char *at = label; *at != '\0'; at++) {
            *at = *at == '_' ? ' ' : *at;
        }
        printf("%-18s %s\n", label, text);
    }
    putchar('\n');
}

static int write_all(struct ctl *ctl, const gpud_table *status, const gpud_table *devices,
                     struct ctl_err *e)
{
    bool people = ctl->format == SHEET_TABLE || ctl->format == SHEET_WIDE;
    if (people && gpud_table_rows(status) == 1) {
        write_facts(status, ctl->format == SHEET_WIDE);
        return sheet_write_table(devices, ctl->format, stdout, e);
    }
    return sheet_write_table(status, ctl->format, stdout, e);
}

int cmd_status(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    int rc = ctl_words(ctl, options, 0, 0, NULL, e);
    if (rc == 0) {
        rc = ctl_connect(ctl, e);
    }
    gpud_table *status = NULL, *devices = NULL;
    if (rc == 0 && (rc = gpud_query(ctl->client, "status", NULL, &status)) != 0) {
        ctl_err_lib(e, rc, "status");
    }
    if (rc == 0 && (rc = gpud_query(ctl->client, "devices", NULL, &devices)) != 0) {
        ctl_err_lib(e, rc, "devices");
    }
    if (rc == 0) {
        rc = write_all(ctl, status, devices, e);
    }
    if (rc == 0) {
        bool people = ctl->format == SHEET_TABLE || ctl->format == SHEET_WIDE;
        FILE *out = people ? stdout : stderr;
        if (people && (!daemon_ready(status) || tell_devices(devices, NULL) > 0)) {
            putchar('\n');
        }
        tell_daemon(status, out);
        rc = tell_devices(devices, out) > 0 || !daemon_ready(status) ? EXIT_DEGRADED : 0;
    }
    gpud_table_free(status);
    gpud_table_free(devices);
    return rc;
}
