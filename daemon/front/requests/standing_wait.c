#include "daemon/front/requests/standing_wait.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "daemon/front/clients/listener.h"
#include "daemon/front/model/request.h"
#include "daemon/front/model/sessions.h"
#include "daemon/front/sched/conclude.h"

#define WAIT_MAX_NS (60 * NS_PER_S) /* an empty EVENTS now and then shows both sides are there */

/* What the client took is forgotten, here and in the worker's ledger. */
static void forget_told(struct front *f, struct session *s)
{
    while (s->told != NULL) {
        struct async_result *r = s->told;
        s->told = r->next;
        session_let_go(s, &s->result_bytes, async_result_bytes(r));
        struct job *j = NULL;
        j = job_find(f->jobs, r->job);
        if (j != NULL) {
            job_taken(f, j);
        }
        free(r);
    }
    free(s->event.data);
    s->event.data = NULL;
    s->event.size = 0;
}

static uint64_t list_results(const struct session *s, struct capbuf *records)
{
    uint64_t count = 0;
    const struct async_result *r = s->results;
    for (; r != NULL && count < PROTO_EVENTS_MAX; r = r->next) {
        if (!capbuf_append(records, r->record, r->size)) {
            records->failed = false; /* the rest comes with the next EVENTS */
            break;
        }
        count++;
    }
    return count;
}

static uint64_t list_notices(const struct session *s, struct capbuf *records)
{
    uint64_t count = 0;
    for (const struct notice *n = s->notices; n != NULL && count < PROTO_EVENTS_MAX; n = n->next) {
        struct proto_notice record = {.kind = n->kind, .handle = n->handle};
        if (proto_list_add(&schema_notice, &record, records, NULL) != 0) {
            break;
        }
        count++;
    }
    return count;
}

/* The first of both lists are in `event` now. */
static void move_told(struct session *s, uint64_t results, uint64_t notices)
{
    struct async_result **tail = &s->told;
    for (; results > 0; results--) {
        struct async_result *r = s->results;
        s->results = r->next;
        r->next = NULL;
        *tail = r;
        tail = &r->next;
    }
    for (; notices > 0; notices--) {
        session_notice_drop(s);
    }
}

/* Writes the next EVENTS into the session, where it stays until it is taken. Without memory nothing
 * has changed: it is tried again. */
static void compose(struct session *s)
{
    struct capbuf results;
    struct capbuf notices;
    struct capbuf out;
    capbuf_init(&results, PROTO_INLINE_MAX + 65536);
    capbuf_init(&notices, 65536);
    capbuf_init(&out, PROTO_MESSAGE_MAX);
    uint64_t result_count = list_results(s, &results);
    uint64_t notice_count = list_notices(s, &notices);
    struct msg_events m = {.number = s->event_number + 1,
                           .results = proto_list_of(&results, result_count),
                           .notices = proto_list_of(&notices, notice_count)};
    if (proto_encode(&schema_msg_events, &m, &out, NULL) == 0) {
        s->event.data = out.data;
        s->event.size = out.size;
        out.data = NULL;
        s->event_number++;
        move_told(s, result_count, notice_count);
    }
    capbuf_finish(&results);
    capbuf_finish(&notices);
    capbuf_finish(&out);
}

void standing_tell(struct front *f, struct session *s, uint64_t now)
{
    bool something = s->event.data != NULL || s->results != NULL || s->notices != NULL;
    if (s->wait == NULL || (!something && now < s->wait_until_ns)) {
        return;
    }
    if (s->event.data == NULL) {
        compose(s);
    }
    if (s->event.data != NULL) {
        listener_reply(f->listener, s->wait, bytes_of(s->event.data, s->event.size));
        s->wait = NULL;
    }
}

void standing_tell_all(struct front *f)
{
    for (struct session *s = f->sessions; s != NULL; s = s->hh.next) {
        standing_tell(f, s, clock_now_ns());
    }
}

void standing_wait(struct front *f, struct session *s, struct request *r)
{
    const struct msg_wait *m = &r->msg.wait;
    uint64_t now = clock_now_ns();
    if (s->wait != NULL) {
        listener_drop(f->listener, s->wait); /* one is held; the newer one counts */
    }
    if (s->event.data != NULL && m->taken >= s->event_number) {
        forget_told(f, s);
    }
    s->wait = r->slot;
    uint64_t timeout = m->timeout_ns < WAIT_MAX_NS ? m->timeout_ns : WAIT_MAX_NS;
    s->wait_until_ns = ns_add(now, timeout);
    sessions_due(f, s);
    request_destroy(r);
    standing_tell(f, s, now);
}
