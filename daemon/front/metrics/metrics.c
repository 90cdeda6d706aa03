#include "daemon/front/metrics/metrics.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/front/metrics/collect.h"
#include "daemon/front/metrics/page.h"
#include "daemon/front/metrics/server.h"
#include "daemon/front/views/diagnosis.h"
#include "daemon/loop/bell.h"

struct metrics {
    struct front *front;
    int fd; /* of the bell */
    struct bell *bell;
    struct metrics_server *server; /* NULL: metrics are not served */
    char listen[METRICS_LISTEN_TEXT];
    uint32_t gid;
    bool wanted; /* a collection is to begin */
    struct collect collect;
    struct tallies tallies;
};

static void give_state(struct metrics *m)
{
    char text[METRICS_STATE_TEXT];
    diagnosis_text(m->front, text, sizeof text);
    metrics_server_give_state(m->server, diagnosis_ready(m->front), text);
}

static void on_bell(void *data)
{
    struct metrics *m = data;
    unsigned wants = m->server != NULL ? metrics_server_wants(m->server) : WANT_NOTHING;
    if ((wants & WANT_STATE) != 0) {
        give_state(m);
    }
    if ((wants & WANT_FIGURES) != 0) {
        m->wanted = true;
        m->front->hooks.kick(m->front);
    }
}

int metrics_create(struct front *f, struct metrics **ret_metrics, struct err *e)
{
    struct metrics *m = calloc(1, sizeof *m);
    if (m == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for metrics");
    }
    m->front = f;
    m->tallies.started_ns = clock_wall_ns();
    m->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int rc = m->fd >= 0 ? 0 : err_errno(e, ERR_IO, "eventfd");
    rc = rc == 0 ? bell_create(f->loop, m->fd, UV_READABLE, on_bell, m, &m->bell, e) : rc;
    if (rc != 0) {
        metrics_free(m);
        return rc;
    }
    *ret_metrics = m;
    return 0;
}

static void end_server(struct metrics *m)
{
    metrics_server_stop(m->server);
    m->server = NULL;
    m->wanted = false;
    collect_cancel(&m->collect);
}

void metrics_stop(struct metrics *m)
{
    if (m != NULL) {
        end_server(m);
        bell_destroy(m->bell);
        m->bell = NULL;
    }
}

void metrics_free(struct metrics *m)
{
    if (m != NULL) {
        if (m->fd >= 0) {
            (void)close(m->fd);
        }
        free(m);
    }
}

int metrics_serve(struct metrics *m, const char *addresses, uint32_t gid, struct err *e)
{
    struct metrics_options options = {
        .gid = gid, .bell = m->fd, .patience_ns = METRICS_PATIENCE_NS, .life_ns = METRICS_LIFE_NS};
    bool same = strcmp(m->listen, addresses) == 0 && m->gid == gid;
    if (same && (m->server != NULL || addresses[0] == '\0')) {
        return 0;
    }
    end_server(m);
    (void)snprintf(m->listen, sizeof m->listen, "%s", addresses);
    m->gid = gid;
    int rc = metrics_addresses_parse(addresses, &options.addresses, e);
    bool any = rc == 0 && options.addresses.count > 0;
    rc = any ? metrics_server_start(&options, &m->server, e) : rc;
    if (any && rc == 0) {
        log_say(LOG_LISTENING, "metrics are served at %s", addresses);
    }
    return rc != 0 ? err_wrap(e, "[metrics] listen = %s", addresses) : 0;
}

void metrics_job(struct metrics *m, const struct job *j)
{
    if (m != NULL) {
        turn_count(m->front, j->timing_count / 8);
        tally_job(&m->tallies, m->front, j);
    }
}

/* A failure is the server's to report. */
static void begin(struct metrics *m)
{
    struct err e = ERR_INIT;
    if (collect_begin(&m->collect, m->front, &m->tallies, &e) != 0) {
        metrics_server_give_figures(m->server, NULL);
    }
}

void metrics_turn(struct metrics *m)
{
    if (m == NULL) {
        return;
    }
    if (m->wanted && m->collect.state == COLLECT_IDLE) {
        m->wanted = false;
        begin(m);
    }
    if (m->collect.state != COLLECT_IDLE) {
        struct figures *n = collect_some(&m->collect, m->front, &m->tallies);
        if (n != NULL) {
            metrics_server_give_figures(m->server, n);
        }
    }
}

void metrics_skip(struct metrics *m, const void *entry, const void *next)
{
    if (m != NULL) {
        collect_skip(&m->collect, entry, next);
    }
}
