#include "client/src/link/answers.h"

#include "client/src/link/fillers.h"
#include "client/src/link/lost.h"
#include "client/src/link/send.h"

#define TAKEN_EVERY 1024 /* unacknowledged answers after which TAKEN is sent */
#define TAKEN_PART  4    /* also sent after 1/TAKEN_PART of the bytes that the daemon keeps */

/* ---- TAKEN --------------------------------------------------------------------------------- */

static void taken_answered(struct gpud_client *c, struct request *r, struct message *m,
                           const struct err *e)
{
    (void)m;
    (void)e;
    requests_retire(&c->requests, r);
}

/* Reports the received answers after an unanswered number, because the daemon keeps a limited
 * number of unreported answers. */
static void report_taken(struct gpud_client *c)
{
    struct session *s = &c->session;
    struct requests *t = &c->requests;
    struct capbuf spans;
    struct err e = ERR_INIT;
    uint64_t count = 0;
    uint64_t until = 0;
    if (s->taken_request.id != 0 || t->fillers.first != NULL || s->minor < MINOR_RANGES) {
        return; /* fillers are in no range, and are answered soon */
    }
    s->unreported = 0;
    s->unreported_bytes = 0;
    capbuf_init(&spans, PROTO_LOG_MAX);
    int rc = requests_spans(t, requests_acknowledged(t) + 1, &spans, &count, &until, &e);
    struct msg_taken msg = {.taken = proto_list_of(&spans, count)};
    if (rc == 0 && count > 0 &&
        request_encode(&s->taken_request, &schema_msg_taken, &msg, &e) == 0 &&
        session_ask(c, &s->taken_request, taken_answered, &e) != 0) {
        request_finish(&s->taken_request); /* later answers cause another TAKEN */
    }
    capbuf_finish(&spans);
}

/* An answer to a numbered request that came over the socket. */
static void unreported(struct gpud_client *c, size_t bytes)
{
    struct session *s = &c->session;
    s->unreported++;
    s->unreported_bytes += bytes;
    if (s->state == SESSION_READY &&
        (s->unreported >= TAKEN_EVERY || s->unreported_bytes > s->max_kept / TAKEN_PART)) {
        report_taken(c);
    }
}

/* ---- answers ------------------------------------------------------------------------------- */

/* Handles an ERROR that says that the request was not admitted: the daemon still waits for its
 * number. A request that may succeed later is sent again after a pause. For any other, the caller
 * gets the error and a filler takes the number. True: the answer was such an ERROR. */
static bool not_admitted(struct gpud_client *c, struct request *r, struct message *m)
{
    struct session *s = &c->session;
    struct msg_error error;
    struct err e = ERR_INIT;
    uint64_t seq = r->seq;
    if (seq == 0 || proto_kind(message_view(m)) != MSG_KIND_ERROR ||
        proto_decode(&schema_msg_error, message_view(m), &error, NULL) != 0 || error.open == 0) {
        return false;
    }
    proto_error_to(&error, &e);
    if (err_retriable(e.code)) {
        session_send_later(c, r, e.retry_after_ns);
        return true;
    }
    /* The filler is in the table before the request leaves it. Otherwise a request that is sent
     * meanwhile would acknowledge the number. */
    struct request *filler = NULL;
    bool lost =
        filler_is(r) || (s->state == SESSION_READY && filler_make(c, seq, NULL, &filler, &e) != 0);
    r->answered(c, r, m, NULL);
    if (lost) {
        session_lost(c, &e); /* the next connection fills the missing numbers first */
    } else if (filler != NULL &&
               s->state == SESSION_READY) { /* else the end of the connection has freed it */
        session_send_now(c, filler);
    }
    return true;
}

int session_message(struct gpud_client *c, struct message *m, struct err *e)
{
    struct request *r = requests_find(&c->requests, m->id);
    if (r == NULL) {
        return 0; /* the request was given up */
    }
    if (r->out.queued) {
        return err_set(e, ERR_PROTOCOL, "answer to a request that was not sent");
    }
    if (not_admitted(c, r, m)) {
        return 0;
    }
    requests_answered(&c->requests, r);
    if (proto_kind(message_view(m)) == MSG_KIND_ELSEWHERE && r->by_ring) {
        r->by_ring = false;
        session_send_now(c, r); /* the same number gets the same answer */
        return 0;
    }
    bool kept = r->seq != 0 && !r->by_ring;
    r->answered(c, r, m, NULL);
    if (kept) {
        unreported(c, message_view(m).size);
    }
    return 0;
}
