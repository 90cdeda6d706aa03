/* `gpuctl doctor`: the table of checks for what keeps gpud from serving, also while no daemon runs.
 */
#ifndef GPUCTL_DOCTOR_DOCTOR_H
#define GPUCTL_DOCTOR_DOCTOR_H

#include "gpuctl/doctor/check.h"

enum check_need {
    NEED_NOTHING = 0,
    NEED_NVIDIA, /* skipped without a GPU of NVIDIA */
    NEED_UNITS,  /* skipped where no unit of systemd starts gpud */
};

struct check {
    const char *name;
    enum check_need need;
    void (*look)(const struct doctor *d, struct finding *f);
};

extern const struct check doctor_checks[]; /* ends with a NULL name */

/* NULL for an unknown name. */
const struct check *doctor_check_find(const char *name);
/* Runs a check, or skips it if its need is not met. Blocks up to the times of the host. */
void doctor_look(const struct doctor *d, const struct check *check, struct finding *ret_finding);

#endif
