#include "client/src/session/job_wait.h"

#include <string.h>

#include "client/src/objects/job.h"
#include "client/src/session/wait.h"
#include "common/clock.h"
#include "common/hash.h"

#define RETRY_DEFAULT_NS (5 * NS_PER_MS)
#define RETRY_MAX_NS     NS_PER_S
#define RETRY_DOUBLES    8u

static bool room(void *arg)
{
    const struct gpud_client *c = arg;
    return c->jobs_live < c->session.max_inflight;
}

static int wait_for_room(struct gpud_client *c, bool block, uint64_t deadline_ns, struct err *e)
{
    if (room(c)) {
        return 0;
    }
    if (block) {
        return client_wait(c, room, c, deadline_ns, e);
    }
    int rc = err_set(e, ERR_BUSY, "%llu jobs of this client have not ended",
                     (unsigned long long)c->jobs_live);
    if (e != NULL) {
        e->retry_after_ns = RETRY_DEFAULT_NS;
    }
    return rc;
}

int job_room(struct gpud_client *c, const gpud_submit_options *options, uint64_t deadline_ns,
             struct err *e)
{
    gpud_submit_options o = {0};
    int rc = submit_options_read(options, &o, e);
    return rc != 0 ? rc : wait_for_room(c, (o.flags & GPUD_SUBMIT_BLOCK) != 0, deadline_ns, e);
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

/* Clients that were refused together do not come back together. */
static uint64_t vary(const struct gpud_client *c, uint64_t pause_ns)
{
    uint64_t own = 0;
    memcpy(&own, c->session.client_id, sizeof own);
    return pause_ns / 2 + hash_number(own ^ clock_now_ns()) % pause_ns;
}

bool job_again(struct gpud_client *c, unsigned tries, uint64_t until_ns, const struct err *why)
{
    struct err e = ERR_INIT;
    uint64_t pause = why->retry_after_ns > 0 ? why->retry_after_ns : RETRY_DEFAULT_NS;
    if (until_ns == NS_NEVER || why->code != ERR_BUSY || why->effects != ERR_EFFECTS_NONE) {
        return false;
    }
    pause = pause < RETRY_MAX_NS ? pause << (tries < RETRY_DOUBLES ? tries : RETRY_DOUBLES)
                                 : RETRY_MAX_NS;
    uint64_t at_ns = ns_add(clock_now_ns(), vary(c, pause < RETRY_MAX_NS ? pause : RETRY_MAX_NS));
    return at_ns < until_ns && client_wait(c, never, NULL, at_ns, &e) == ERR_TIMEOUT;
}

static bool job_ended(void *arg)
{
    return ((const struct gpud_job *)arg)->state == JOB_ENDED;
}

int job_wait(struct gpud_client *c, struct gpud_job *job, uint64_t deadline_ns, struct err *e)
{
    int rc = client_wait(c, job_ended, job, deadline_ns, e);
    if (rc == 0 && job->error.code != 0) {
        *e = job->error;
        rc = job->error.code;
    }
    return rc;
}
