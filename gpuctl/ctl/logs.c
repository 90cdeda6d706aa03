#include "gpuctl/ctl/logs.h"

#include <inttypes.h>
#include <stdio.h>

#include <gpud/gpud.h>

/* Only the service manager says of which unit an entry is; any process may write the other fields.
 */
static const char *const units[] = {"-ugpud.service", "-ugpud-launcher.service",
                                    "-ugpud-nvidia.service"};

static void add(struct logs_arguments *a, const char *text)
{
    if (a->count < LOGS_ARGUMENTS_MAX) {
        a->argv[a->count++] = text;
    }
}

/* An argument of two parts. */
static void make(struct logs_arguments *a, const char *name, const char *value)
{
    char *text = a->text + a->used;
    int n = snprintf(text, LOGS_TEXT - a->used, "%s%s", name, value);
    if (n < 0 || (unsigned)n >= LOGS_TEXT - a->used) {
        a->used = LOGS_TEXT; /* the end refuses it */
        return;
    }
    a->used += (unsigned)n + 1;
    add(a, text);
}

static void make_number(struct logs_arguments *a, const char *name, uint64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, value);
    make(a, name, text);
}

int logs_arguments(const struct logs_request *r, struct logs_arguments *ret_arguments,
                   struct ctl_err *e)
{
    struct logs_arguments *a = ret_arguments;
    a->count = 0;
    a->used = 0;
    add(a, "journalctl");
    for (unsigned i = 0; i < sizeof units / sizeof units[0]; i++) {
        add(a, units[i]);
    }
    make(a, "--output=", r->format);
    if (r->follow) {
        add(a, "--follow");
    }
    if (r->explain) {
        add(a, "--catalog");
    }
    if (r->since != NULL) {
        make(a, "--since=", r->since);
    }
    if (r->limited) {
        make_number(a, "--lines=", r->lines);
    }
    if (r->level >= 0) {
        make_number(a, "--priority=", (uint64_t)r->level);
    }
    if (r->tenant != NULL) {
        make(a, "GPUD_TENANT=", r->tenant);
    }
    if (r->by_device) {
        make_number(a, "GPUD_DEVICE=", r->device);
    }
    if (r->by_job) {
        make_number(a, "GPUD_JOB=", r->job);
    }
    a->argv[a->count] = NULL;
    return a->used < LOGS_TEXT
               ? 0
               : ctl_err_set(e, GPUD_ERR_INVALID,
                             "--since and --tenant are too long: at most %u bytes", LOGS_TEXT / 2);
}
