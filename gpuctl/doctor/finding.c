#include "gpuctl/doctor/finding.h"

#include <stdarg.h>
#include <stdio.h>

const char *finding_state_name(enum finding_state state)
{
    static const char *const names[] = {[FINDING_OK] = "ok",
                                        [FINDING_SKIPPED] = "skipped",
                                        [FINDING_WARNING] = "warning",
                                        [FINDING_FAILURE] = "failure"};
    return names[state];
}

/* One line, whatever texts of other programs are in it. */
static void flatten(char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char letter = (unsigned char)*text;
        *text = letter < ' ' || letter == 0x7f ? ' ' : *text;
    }
}

void finding_add(struct finding *f, enum finding_state state, const char *mend, const char *fmt,
                 ...)
{
    if (f->reason[0] != '\0' && state <= f->state) {
        return;
    }
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(f->reason, sizeof f->reason, fmt, ap);
    va_end(ap);
    flatten(f->reason);
    f->state = state;
    (void)snprintf(f->mend, sizeof f->mend, "%s", mend);
}

void finding_mend(struct finding *f, const char *fmt, ...)
{
    if (f->mend[0] != '\0') {
        return; /* an earlier report counts */
    }
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(f->mend, sizeof f->mend, fmt, ap);
    va_end(ap);
}
