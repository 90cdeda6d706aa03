/* Waiting for times and for ends of jobs, while a recording is replayed. */
#include <poll.h>

#include "common/clock.h"
#include "gpuctl/ctl/interrupt.h"
#include "gpuctl/run/replay.h"

#define TICK_MS 250 /* after which Ctrl-C is noticed */

int replay_interrupted(struct ctl_err *e)
{
    return ctl_err_set(e, CTL_INTERRUPTED, "interrupted");
}

static int dispatch(struct replay *r, struct pollfd *fd, int timeout_ms, struct ctl_err *e)
{
    int n = poll(fd, r->clients, timeout_ms);
    for (uint32_t i = 0; n > 0 && i < r->clients; i++) {
        int rc = fd[i].revents != 0 ? gpud_dispatch(r->client[i].client) : 0;
        if (rc != 0) {
            return ctl_err_lib(e, rc, "session %u of the replay", i + 1);
        }
    }
    if (r->failed) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    }
    return interrupt_seen() ? replay_interrupted(e) : 0;
}

int replay_wait_for(struct replay *r, uint64_t until_ns, const uint64_t *flying, uint64_t most,
                    struct ctl_err *e)
{
    struct pollfd fd[REPLAY_CLIENTS];
    for (uint32_t i = 0; i < r->clients; i++) {
        fd[i] = (struct pollfd){.fd = gpud_fd(r->client[i].client), .events = POLLIN};
    }
    int rc = 0;
    bool more = true;
    while (rc == 0 && more) {
        uint64_t now = clock_now_ns();
        uint64_t left = until_ns > now ? until_ns - now : 0;
        bool waits = flying != NULL ? *flying > most : left >= NS_PER_MS;
        int timeout = !waits || flying == NULL ? (int)(left / NS_PER_MS) : TICK_MS;
        rc = dispatch(r, fd, timeout < TICK_MS ? timeout : TICK_MS, e);
        more = flying != NULL ? *flying > most : clock_now_ns() < until_ns;
    }
    return rc;
}

int replay_wait(struct replay_client *c, struct ctl_err *e)
{
    return replay_wait_for(c->replay, 0, &c->flying, c->flying - 1, e);
}
