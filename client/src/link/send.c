#include "client/src/link/send.h"

#include "client/src/link/lost.h"
#include "common/clock.h"

#define AGAIN_NS                                                                                   \
    (5 * NS_PER_MS) /* pause of a request that was not admitted, if the daemon names none */
#define AGAIN_MAX    (1 * NS_PER_S) /* the longest pause */
#define REFUSALS_MAX 4              /* the pause doubles so often: to 16 times the daemon's */

void session_send_now(struct gpud_client *c, struct request *r)
{
    struct err e = ERR_INIT;
    if (c->conn.state == CONN_DOWN) {
        return; /* the next connection sends it after HELLO, which must be first */
    }
    requests_head(&c->requests, r, c->address.transport);
    if (conn_send(&c->conn, &r->out, &e) != 0) {
        session_lost(c, &e);
    }
}

void session_resend_ring(struct gpud_client *c)
{
    if (c->session.state != SESSION_READY) {
        return;
    }
    for (struct request *r = c->requests.sequenced.first; r != NULL; r = r->next) {
        if (r->by_ring) {
            const uint64_t seq = r->seq;
            r->by_ring = false;
            r->again_ns = 0;
            session_send_now(c, r);
            if (c->session.state != SESSION_READY) {
                return; /* r may have been freed */
            }
            requests_went(&c->requests, seq, WAY_SOCKET);
        }
    }
}

void session_send_later(struct gpud_client *c, struct request *r, uint64_t pause_ns)
{
    struct session *s = &c->session;
    uint64_t pause = pause_ns > 0 ? pause_ns : AGAIN_NS;
    /* the pause doubles because the whole message is sent again */
    pause = (pause < AGAIN_MAX ? pause : AGAIN_MAX) << r->refusals;
    if (r->refusals < REFUSALS_MAX) {
        r->refusals++;
    }
    r->again_ns = ns_add(clock_now_ns(), pause < AGAIN_MAX ? pause : AGAIN_MAX);
    s->again_ns = r->again_ns < s->again_ns ? r->again_ns : s->again_ns;
}

int session_ask(struct gpud_client *c, struct request *r, request_fn answered, struct err *e)
{
    r->answered = answered;
    r->own = true;
    int rc = requests_add(&c->requests, r, false, e);
    if (rc == 0) {
        session_send_now(c, r);
    }
    return rc;
}

static void list_again(struct gpud_client *c, struct request *first, uint64_t now_ns)
{
    struct session *s = &c->session;
    const enum session_state state = s->state;
    for (struct request *r = first; r != NULL; r = r->next) {
        if (r->again_ns != 0 && r->again_ns <= now_ns) {
            const uint64_t seq = r->seq;
            r->again_ns = 0;
            r->by_ring = false;
            session_send_now(c, r);
            if (s->state != state) {
                return; /* r may have been freed */
            }
            requests_went(&c->requests, seq, WAY_SOCKET);
        } else if (r->again_ns != 0 && r->again_ns < s->again_ns) {
            s->again_ns = r->again_ns;
        }
    }
}

void session_send_again(struct gpud_client *c, uint64_t now_ns)
{
    c->session.again_ns = NS_NEVER;
    if (c->session.state == SESSION_RESTORE) {
        list_again(c, c->requests.plain.first, now_ns);
        return;
    }
    list_again(c, c->requests.sequenced.first, now_ns);
    if (c->session.state == SESSION_READY) {
        list_again(c, c->requests.fillers.first, now_ns);
    }
}
