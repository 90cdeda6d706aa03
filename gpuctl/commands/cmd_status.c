/*
 * `gpuctl status`: the daemon's facts, its devices, and for each problem a sentence and a remedy.
 * Exit code 5 unless the daemon is ready.
 */
#include <stdio.h>
#include <string.h>

#include "gpuctl/ctl/ctl.h"

struct advice {
    const char *state; /* of a device */
    const char *text;
};

#define LOG "journalctl -u gpud -u gpud-launcher" /* workers write to the launcher's log */

static const struct advice advices[] = {
    {"starting", "check again in a moment"},
    {"adopting", "check again in a moment"},
    {"probing", "check again in a moment"},
    {"restarting", "its worker starts again by itself; the reason of its end is in the log: " LOG},
    {"absent",
     "check its driver (for the CPU: apt-get install ocl-icd-libopencl1 pocl-opencl-icd); the "
     "daemon looks for it periodically, and at once after: gpuctl reload"},
    {"held",
     "the driver asks for a recovery (see reason); jobs wait until it is done: gpuctl drain "
     "--device with its number, then reset the GPU (nvidia-smi -r), or reboot"},
    {"draining", "wait for what the reason names, or give the drain up: gpuctl resume --device "
                 "with its number"},
    {"drained", "when the work on it is done: gpuctl resume --device with its number"},
    {"stuck", "its driver hangs and the worker cannot be ended: the host may need a reboot"},
};

static const char *advice_for(const char *state)
{
    for (size_t i = 0; i < sizeof advices / sizeof advices[0]; i++) {
        if (strcmp(advices[i].state, state) == 0) {
            return advices[i].text;
        }
    }
    return "see the log: " LOG;
}

/* The daemon's problem, then each device that does not serve, with its remedy. */
static void print_problems(const gpud_table *status, const gpud_table *devices, FILE *out)
{
    const char *problem = table_text_of(status, 0, "problem");
    fprintf(out, "gpud is %s: %s.\n", table_text_of(status, 0, "state"), problem);
    if (strncmp(problem, "draining", strlen("draining")) == 0) { /* not one device */
        fprintf(out, "  gpuctl resume makes it take jobs again.\n");
    }
    for (uint32_t r = 0; r < gpud_table_rows(devices); r++) {
        const char *state = table_text_of(devices, r, "state");
        const char *reason = table_text_of(devices, r, "reason");
        bool known = reason[0] == '\0' || strstr(problem, reason) != NULL;
        if (strcmp(state, "ready") != 0) {
            fprintf(out, "Device %llu (%s) is %s%s%s.\n  To do: %s.\n",
                    (unsigned long long)table_value_of(devices, r, "device"),
                    table_text_of(devices, r, "backend"), state, known ? "" : ": ",
                    known ? "" : reason, advice_for(state));
        }
    }
}

/* The escape sequence for the colour of the daemon's state. */
static const char *colour_of(const char *state)
{
    return strcmp(state, "ready") == 0      ? "\033[32m"
           : strcmp(state, "degraded") == 0 ? "\033[33m"
                                            : "\033[31m";
}

/* Writes the status table's one row as lines. */
static void write_facts(const gpud_table *status, bool wide, bool colour)
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
        bool coloured = colour && strcmp(label, "state:") == 0;
        printf("%-18s %s%s%s\n", label, coloured ? colour_of(text) : "", text,
               coloured ? "\033[0m" : "");
    }
    putchar('\n');
}

static int write_all(struct ctl *ctl, const gpud_table *status, const gpud_table *devices,
                     struct ctl_err *e)
{
    if (ctl_people(ctl) && ctl->watch_ns == 0 && gpud_table_rows(status) == 1) {
        write_facts(status, ctl->format == SHEET_WIDE, ctl->colour);
        return ctl_write_table(ctl, devices, e);
    }
    return ctl_write_table(ctl, status, e); /* with -w a line for each round */
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
    if (rc == 0 && strcmp(table_text_of(status, 0, "state"), "ready") != 0) {
        if (ctl->watch_ns == 0) {
            fputs(ctl_people(ctl) ? "\n" : "", stdout);
            print_problems(status, devices, ctl_people(ctl) ? stdout : stderr);
        }
        rc = EXIT_DEGRADED;
    }
    gpud_table_free(status);
    gpud_table_free(devices);
    return rc;
}
