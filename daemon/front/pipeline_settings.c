/* Applies settings of requests and workers, at the start and when they change. */
#include "common/clock.h"
#include "daemon/front/pipeline_int.h"
#include "daemon/front/tenants/budget.h"
#include "daemon/front/tenants/quota_send.h"
#include "daemon/front/workers/command.h"

#define UNREAD                                                                                     \
    (256ull * 1024 * 1024) /* least limit for bytes of unread answers of a connection              \
                            */

/* Slots for all requests that may be unanswered: a WAIT of each session, the SUBMIT of each job,
 * and some more. */
static unsigned requests_max(const struct config *c)
{
    uint64_t all = c->sessions_max + c->queue_max + REQUESTS_SPARE;
    return (unsigned)(all < LISTENER_REQUESTS_MAX ? all : LISTENER_REQUESTS_MAX);
}

/* Twice the kept answers of a session, or UNREAD if that is more, so that a slow client can ask for
 * all answers again. */
static uint64_t unread_max(const struct config *c)
{
    return c->keep_results_bytes > UNREAD / 2 ? 2 * c->keep_results_bytes : UNREAD;
}

void pipeline_request_limits(const struct config *c, struct listener_options *options)
{
    options->requests_max = requests_max(c);
    options->pipe_requests_max = (unsigned)config_requests_max(c);
    options->unread_max = unread_max(c);
}

void pipeline_settings(struct front *f)
{
    struct listener_options limits = {0};
    pipeline_request_limits(&f->config, &limits);
    if (f->listener != NULL) {
        listener_set_limits(f->listener, limits.requests_max, limits.pipe_requests_max,
                            limits.unread_max);
        listener_set_keepers(f->listener, &f->rights.admins);
    }
    for (unsigned i = 0; i < f->device_count; i++) {
        command_coalesce(f->device[i], f->config.coalesce_window_us * NS_PER_US);
        command_spill(f, f->device[i]);
        f->device[i]->memory_limit = f->config.device_memory_max;
        if (quota_reaches(f->device[i])) {
            budget_settle(f, f->device[i]);
        }
    }
}
