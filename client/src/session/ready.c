#include "client/src/session/ready.h"

#include "client/src/base/events.h"
#include "client/src/base/state.h"
#include "client/src/link/fillers.h"
#include "client/src/link/lane.h"
#include "client/src/link/lost.h"
#include "client/src/link/send.h"
#include "client/src/session/notices.h"
#include "common/clock.h"

/* Sends all unanswered requests, in the order of their numbers. Numbers from `fill` on without a
 * request get fillers. */
static int resend(struct gpud_client *c, uint64_t fill, struct err *e)
{
    struct requests *t = &c->requests;
    uint64_t at = fill;
    for (struct request *r = t->sequenced.first; r != NULL; r = r->next) {
        for (; at < r->seq; at++) {
            int rc = filler_send(c, at, e);
            if (rc != 0 || c->session.state == SESSION_DOWN) {
                return rc;
            }
        }
        if (at == r->seq) {
            at++;
        }
        r->again_ns = 0;
        session_send_now(c, r);
        if (c->session.state == SESSION_DOWN) {
            return 0;
        }
    }
    for (; at < t->next_seq && c->session.state != SESSION_DOWN; at++) {
        int rc = filler_send(c, at, e);
        if (rc != 0) {
            return rc;
        }
    }
    for (struct request *r = t->plain.first; r != NULL && c->session.state != SESSION_DOWN;
         r = r->next) {
        if (!r->own) {
            session_send_now(c, r);
        }
    }
    return 0;
}

void session_ready(struct gpud_client *c, uint64_t fill, int event)
{
    struct session *s = &c->session;
    struct err e = ERR_INIT;
    session_step(s, SESSION_READY);
    s->known = true;
    s->attempt_ns = NS_NEVER;
    s->lost_ns = NS_NEVER;
    s->backoff_ns = 0;
    s->opening = false;
    s->failure = ERR_INIT;
    s->again_ns = NS_NEVER;
    requests_begin_again(&c->requests);
    requests_went(&c->requests, c->requests.next_seq - 1, WAY_SOCKET); /* resend sends them all */
    if (resend(c, fill, &e) != 0) {
        session_lost(c, &e);
    }
    if (s->state == SESSION_READY) {
        session_listen(c);
    }
    if (s->state == SESSION_READY && c->lane.mode == LANE_ALWAYS) {
        lane_ask(c);
    }
    if (event != 0) {
        client_event(c, event, (gpud_buffer){0}, "");
    }
}
