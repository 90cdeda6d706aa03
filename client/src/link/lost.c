#include "client/src/link/lost.h"

#include <errno.h>
#include <stdbool.h>

#include "client/src/base/events.h"
#include "client/src/base/state.h"
#include "client/src/link/lane_memory.h"
#include "common/clock.h"

#define BACKOFF_MIN (10 * NS_PER_MS)
#define BACKOFF_MAX (1 * NS_PER_S)

/* To ask where nobody listens costs the daemon nothing, so the pause grows by a fourth only. It
 * then remains about a fourth of the time that the daemon has been away: a client comes back little
 * later than the daemon. A daemon that refuses or hangs up may be busy: the pause doubles. */
static uint64_t backoff_next(uint64_t pause_ns, const struct err *why)
{
    bool away = why->vendor == ECONNREFUSED || why->vendor == ENOENT;
    uint64_t next = pause_ns == 0 ? BACKOFF_MIN : pause_ns + pause_ns / (away ? 4 : 1);
    return next < BACKOFF_MAX ? next : BACKOFF_MAX;
}

static void end_own(struct gpud_client *c, const struct err *why)
{
    struct request *r = c->requests.plain.first;
    while (c->requests.fillers.first != NULL) {
        c->requests.fillers.first->answered(c, c->requests.fillers.first, NULL, why);
    }
    while (r != NULL) {
        struct request *next = r->next;
        if (r->own) {
            r->answered(c, r, NULL, why);
        }
        r = next;
    }
}

void session_lost(struct gpud_client *c, const struct err *why)
{
    struct session *s = &c->session;
    bool was_ready = s->state == SESSION_READY;
    uint64_t now = clock_now_ns();
    session_step(s, SESSION_DOWN);
    lane_drop(c);
    if (c->conn.fd >= 0 && origin_here(&c->origin)) {
        conn_unwatch(&c->conn, c->conn.fd); /* a copy in a child of fork would keep it watched */
    }
    conn_drop(&c->conn);
    end_own(c, why);
    s->attempt_ns = NS_NEVER;
    s->wait_ns = NS_NEVER;
    s->failure = *why;
    if (s->lost_ns == NS_NEVER) {
        s->lost_ns = now;
    }
    s->backoff_ns = backoff_next(s->backoff_ns, why);
    /* jitter: clients that lost the same daemon must not reconnect at the same time */
    s->retry_ns = now + s->backoff_ns / 2 + (now ^ s->client_id[0]) % (s->backoff_ns / 2);
    conn_timer_by(&c->conn, s->retry_ns);
    if (was_ready && !c->closing) {
        client_event(c, GPUD_EVENT_DISCONNECTED, (gpud_buffer){0}, why->text);
    }
}

void session_fail(struct gpud_client *c, const struct err *why)
{
    struct requests *t = &c->requests;
    while (t->sequenced.first != NULL) {
        t->sequenced.first->answered(c, t->sequenced.first, NULL, why);
    }
    while (t->fillers.first != NULL) {
        t->fillers.first->answered(c, t->fillers.first, NULL, why);
    }
    while (t->plain.first != NULL) {
        t->plain.first->answered(c, t->plain.first, NULL, why);
    }
}
