/* What a check found: one result with a reason, and the command that mends it. Nothing blocks. */
#ifndef GPUCTL_DOCTOR_FINDING_H
#define GPUCTL_DOCTOR_FINDING_H

enum finding_state { FINDING_OK = 0, FINDING_SKIPPED, FINDING_WARNING, FINDING_FAILURE };

struct finding {
    enum finding_state state;
    char reason[320]; /* one line */
    char mend[256];   /* the command that mends a failure or warning; "" otherwise */
};

const char *finding_state_name(enum finding_state state); /* "ok"; static */

/* Reports something; the worst report of a check remains, of equal ones the first. mend: "" for ok
 * and skipped. */
void finding_add(struct finding *f, enum finding_state state, const char *mend, const char *fmt,
                 ...) __attribute__((format(printf, 4, 5)));
/* Composes the command of the report just added with an empty one. */
void finding_mend(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
