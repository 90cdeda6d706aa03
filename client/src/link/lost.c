#include "client/src/link/lost.h"

#include "client/src/base/events.h"
#include "client/src/base/state.h"
#include "client/src/link/lane_memory.h"
#include "common/clock.h"

#define BACKOFF_MIN (10 * NS_PER_MS)
#define BACKOFF_MAX (1 * NS_PER_S)

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
    s->backoff_ns = s->backoff_ns == 0 ? BACKOFF_MIN : s->backoff_ns * 2;
    if (s->backoff_ns > BACKOFF_MAX) {
        s->backoff_ns = BACKOFF_MAX;
    }
    /* jitter: clients that lost the same daemon must not reconnect at the same time */
    s->retry_ns = now + s->backoff_ns / 2 + (now ^ s->client_id[0]) % (s->backoff_ns / 2);
    if (s->retry_ns < c->conn.timer_ns) {
        conn_timer_set(&c->conn, s->retry_ns);
    }
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
