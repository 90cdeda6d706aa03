#include "tests/sim/front/rules/sim_said.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"

#define ENTRY_MAX 4096u /* bytes of an entry of the log */

static struct {
    struct sockaddr_un at;      /* what the log takes for the journal */
    int fd;                     /* -1: no line is read */
    unsigned refused;           /* orders to end a monitor that the launcher took none of so far */
    unsigned monitors, workers; /* lines that say of one that it cannot be ended */
} said = {.fd = -1};

void said_begin(struct sim *s)
{
    said.fd = -1;
    said.refused = said.monitors = said.workers = 0;
    if (s->p.special != WORLD_HELD || getenv("GPUD_LOG") != NULL) {
        return;
    }
    said.at = (struct sockaddr_un){.sun_family = AF_UNIX};
    (void)snprintf(said.at.sun_path, sizeof said.at.sun_path, "%s/journal", s->dir);
    said.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (said.fd < 0 || bind(said.fd, (struct sockaddr *)&said.at, sizeof said.at) != 0) {
        abort();
    }
    log_journal(said.at.sun_path);
    log_clock(clock_now_ns); /* no line of an earlier world counts for the limits */
    log_set_level(LOG_LEVEL_ERROR);
}

void said_finish(void)
{
    if (said.fd >= 0) {
        log_journal(NULL);
        (void)close(said.fd);
        said.fd = -1;
    }
}

void said_refused(void)
{
    said.refused++;
}

/* Operators read what the kind of a line is about, and what to do. */
void said_check(struct sim *s)
{
    char entry[ENTRY_MAX + 1];
    ssize_t size = 0;
    while (said.fd >= 0 && (size = recv(said.fd, entry, ENTRY_MAX, 0)) > 0) {
        entry[size] = '\0';
        said.monitors += strstr(entry, "GPUD_KIND=MONITOR_STAYS\n") != NULL;
        said.workers += strstr(entry, "GPUD_KIND=WORKER_STAYS\n") != NULL;
    }
    if (said.fd >= 0 && (said.monitors != said.refused || said.workers != 0)) {
        sim_fail(s,
                 "said: %u lines say of a monitor that it stays, and %u of a worker: the launcher "
                 "took no order to end %u monitors",
                 said.monitors, said.workers, said.refused);
    }
}
