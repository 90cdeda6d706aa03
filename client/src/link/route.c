#include "client/src/link/route.h"

#include "client/src/link/lane.h"
#include "client/src/link/send.h"
#include "common/clock.h"

/* Sends the request by the ring if possible, otherwise over the socket; false: it has to wait until
 * the daemon has admitted more requests. */
static bool send_sequenced(struct gpud_client *c, struct request *r)
{
    struct requests *t = &c->requests;
    enum way way = WAY_RING;
    lane_wish(c);
    if (requests_far(t, r->seq)) {
        return false;
    }
    if (!requests_may_go(t, r->seq, WAY_RING) || !lane_send(c, r)) {
        if (c->session.state != SESSION_READY) {
            return true; /* the connection broke: the next one sends it again */
        }
        if (!requests_may_go(t, r->seq, WAY_SOCKET)) {
            return false;
        }
        way = WAY_SOCKET;
        r->by_ring = false;
        session_send_now(c, r);
    }
    requests_went(t, r->seq, way);
    return true;
}

void session_send(struct gpud_client *c, struct request *r)
{
    struct requests *t = &c->requests;
    if (c->session.state != SESSION_READY) {
        return;
    }
    if (r->seq == 0) {
        session_send_now(c, r);
    } else if (t->unsent == NULL && !send_sequenced(c, r)) {
        t->unsent = r;
        conn_timer_by(&c->conn, ns_add(clock_now_ns(), ROUTE_UNSENT_NS));
    }
}

void session_go_on(struct gpud_client *c)
{
    struct requests *t = &c->requests;
    while (t->unsent != NULL && c->session.state == SESSION_READY) {
        struct request *r = t->unsent;
        if (!send_sequenced(c, r)) {
            return;
        }
        if (t->unsent == r) { /* a broken connection has changed it */
            t->unsent = r->next;
        }
    }
}
