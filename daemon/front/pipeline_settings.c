/* Applies settings of requests and workers, at the start and when they change. */
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/front/clients/sockets.h"
#include "daemon/front/metrics/metrics.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/pipeline_int.h"
#include "daemon/front/tenants/budget.h"
#include "daemon/front/tenants/quota_send.h"
#include "daemon/front/views/access_log.h"
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

bool pipeline_waits_for_tls(const struct front *f, unsigned listen)
{
    return !f->tls_ready && strncmp(f->config.listen[listen], "tls+", strlen("tls+")) == 0;
}

int pipeline_tls(struct front *f, struct err *e)
{
    if (f->tls.cert == NULL) {
        return 0;
    }
    int rc = listener_set_tls(f->listener, &f->tls, e);
    if (rc == 0) {
        f->tls_ready = true;
        f->tls_end = f->tls.end;
        f->tls_look_ns = 0;
        wake_at(f, front_now(f));
    }
    tls_files_finish(&f->tls);
    return rc;
}

/* Listens on addresses that had no good certificate when the daemon started. */
static void renew_tls(struct front *f)
{
    struct err e = ERR_INIT;
    int rc = pipeline_tls(f, &e);
    for (unsigned i = 0; rc == 0 && i < f->config.listen_count; i++) {
        const char *url = f->config.listen[i];
        bool late = f->tls_ready && !listener_has(f->listener, url);
        rc = late ? listener_add(f->listener, url, &e) : 0;
        if (late && rc == 0) {
            log_say(LOG_LISTENING, "listening on %s", url);
        }
    }
    if (rc != 0) {
        (void)snprintf(f->files_bad, sizeof f->files_bad, "%s", e.text);
        log_say(LOG_SETTINGS_BAD, "%s", e.text);
    }
}

void pipeline_sockets(struct front *f)
{
    struct err e = ERR_INIT;
    int rc = sockets_apply(&f->sockets, f->listener, f->shm, &f->rules, &e);
    (void)snprintf(f->sockets_bad, sizeof f->sockets_bad, "%s", rc != 0 ? e.text : "");
    if (rc != 0) {
        log_say(LOG_SETTINGS_BAD, "%s", e.text);
    }
}

void pipeline_metrics(struct front *f)
{
    struct err e = ERR_INIT;
    int rc = metrics_serve(f->metrics, f->config.metrics_listen, f->rights.admins.group, &e);
    (void)snprintf(f->metrics_bad, sizeof f->metrics_bad, "%s", rc != 0 ? e.text : "");
    if (rc != 0) {
        log_say(LOG_SETTINGS_BAD, "%s", e.text);
    }
}

void pipeline_settings(struct front *f)
{
    struct listener_options limits = {0};
    pipeline_request_limits(&f->config, &limits);
    if (f->listener != NULL) {
        listener_set_limits(f->listener, limits.requests_max, limits.pipe_requests_max,
                            limits.unread_max);
        listener_set_keepers(f->listener, &f->rights.admins);
        renew_tls(f);
        pipeline_sockets(f);
    }
    if (f->metrics != NULL) {
        pipeline_metrics(f);
    }
    f->hooks.kick(f); /* limits of tenants may let more jobs go */
    if (f->access != NULL) {
        access_log_set(f->access, f->config.access);
    }
    struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        command_coalesce(d, f->config.coalesce_window_us * NS_PER_US);
        command_spill(f, d);
        d->memory_limit = d->owner != NULL ? d->grant : f->config.device_memory_max;
        if (quota_reaches(d)) {
            budget_settle(f, d);
        }
    }
}
