#include "gpuctl/ctl/watch.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "gpuctl/ctl/interrupt.h"

/* May the next round succeed? */
static bool daemon_is_away(int rc)
{
    return rc == GPUD_ERR_CONNECT || rc == GPUD_ERR_CLOSED || rc == GPUD_ERR_TIMEOUT ||
           rc == GPUD_ERR_BUSY;
}

static void report(struct ctl *ctl, int rc, struct ctl_err *e)
{
    e->text[strcspn(e->text, "\n")] = '\0'; /* without the hints of each round */
    ctl_say("%s: %s", ctl->command->name, e->text);
    if (rc != GPUD_ERR_BUSY) {
        ctl_disconnect(ctl); /* the next round connects anew */
    }
}

int watch_repeat(struct ctl *ctl, const struct options *options, int rc, struct ctl_err *e)
{
    uint64_t next = clock_now_ns();
    interrupt_catch();
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    while (rc >= 0 && ferror(stdout) == 0 && interrupt_sleep_until(next += ctl->watch_ns, true)) {
        struct options again = *options;
        rc = ctl->command->run(ctl, &again, e);
        if (daemon_is_away(rc) && !interrupt_seen()) {
            report(ctl, rc, e);
            rc = 0;
        }
        uint64_t now = clock_now_ns();
        next = next + ctl->watch_ns < now ? now : next; /* a slow daemon is not asked twice */
    }
    if (interrupt_output_gone()) { /* nothing is left to be written there, and no fault to report */
        rc = freopen("/dev/null", "we", stdout) != NULL ? 0 : rc;
    } else if (interrupt_seen()) {
        rc = 0;
    }
    (void)signal(SIGPIPE, before);
    interrupt_release();
    return rc > 0 ? 0 : rc;
}
