/* `gpuctl doctor`: what keeps gpud from serving, and the command that mends it. */
#include <stdio.h>

#include "common/clock.h"
#include "gpuctl/ctl/ctl.h"
#include "gpuctl/doctor/doctor.h"

#define CHECKS_MAX 64u

struct row {
    struct sheet_cell check, result, reason, mend;
};

static const struct sheet_field fields[] = {
    SHEET_FIELD(struct row, check, GPUD_COLUMN_TEXT, false),
    SHEET_FIELD(struct row, result, GPUD_COLUMN_TEXT, false),
    SHEET_FIELD(struct row, reason, GPUD_COLUMN_TEXT, false),
    SHEET_FIELD(struct row, mend, GPUD_COLUMN_TEXT, false),
};

static int write_rows(struct ctl *ctl, const struct check *const *checks,
                      const struct finding *findings, unsigned count, struct ctl_err *e)
{
    struct row rows[CHECKS_MAX];
    for (unsigned i = 0; i < count; i++) {
        rows[i] = (struct row){.check = {.text = checks[i]->name},
                               .result = {.text = finding_state_name(findings[i].state)},
                               .reason = {.text = findings[i].reason},
                               .mend = {.text = findings[i].mend}};
    }
    const struct sheet_rows sheet = SHEET_ROWS("doctor", fields, rows, count);
    return ctl_write_rows(ctl, &sheet, e);
}

static const char *colour_of(enum finding_state state)
{
    static const char *const colours[] = {[FINDING_OK] = "\033[32m",
                                          [FINDING_SKIPPED] = "\033[2m",
                                          [FINDING_WARNING] = "\033[33m",
                                          [FINDING_FAILURE] = "\033[31m"};
    return colours[state];
}

/* For people: a line as soon as the check has ended, since some take seconds. */
static void write_line(const struct ctl *ctl, const struct check *check, const struct finding *f)
{
    bool colour = ctl->colour;
    printf("%s%-8s%s %-14s %s\n", colour ? colour_of(f->state) : "", finding_state_name(f->state),
           colour ? "\033[0m" : "", check->name, f->reason);
    if (f->mend[0] != '\0') {
        printf("%-23s to mend: %s\n", "", f->mend);
    }
    (void)fflush(stdout);
}

static void write_end(const unsigned *counts)
{
    printf("\n%u ok, %u skipped, %u warnings, %u failures\n", counts[FINDING_OK],
           counts[FINDING_SKIPPED], counts[FINDING_WARNING], counts[FINDING_FAILURE]);
}

static int choose(struct ctl *ctl, struct options *options, const struct check **ret_checks,
                  unsigned *ret_count, struct ctl_err *e)
{
    const char *value = NULL;
    int id;
    unsigned count = 0;
    while ((id = ctl_option(ctl, options, NULL, &value, e)) == OPTION_WORD) {
        const struct check *check = doctor_check_find(value);
        if (check == NULL) {
            return ctl_err_usage(e, "there is no check '%s'; gpuctl doctor lists them", value);
        }
        if (count == CHECKS_MAX) {
            return ctl_err_usage(e, "too many checks");
        }
        ret_checks[count++] = check;
    }
    bool all = count == 0;
    for (const struct check *c = doctor_checks; all && c->name != NULL; c++) {
        ret_checks[count++] = c;
    }
    *ret_count = count;
    return id == OPTION_END ? 0 : e->code;
}

int cmd_doctor(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    const struct check *checks[CHECKS_MAX];
    struct finding findings[CHECKS_MAX];
    unsigned counts[FINDING_FAILURE + 1] = {0};
    unsigned count = 0;
    struct host host;
    struct doctor d = {.host = &host};
    uint64_t timeout_ns = 0;
    int rc = choose(ctl, options, checks, &count, e);
    rc = rc == 0 ? ctl_timeout(&timeout_ns, e) : rc;
    if (rc != 0) {
        return rc;
    }
    bool people = ctl_people(ctl);
    host_init(&host, ctl->url, timeout_ns / NS_PER_MS);
    facts_ask(host.url, host.timeout_ms, &d.facts);
    for (unsigned i = 0; i < count; i++) {
        doctor_look(&d, checks[i], &findings[i]);
        counts[findings[i].state]++;
        if (people) {
            write_line(ctl, checks[i], &findings[i]);
        }
    }
    if (people) {
        write_end(counts);
    } else {
        rc = write_rows(ctl, checks, findings, count, e);
    }
    return rc != 0 ? rc : counts[FINDING_FAILURE] > 0 ? EXIT_FAILED : EXIT_OK;
}
