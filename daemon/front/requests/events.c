#include "daemon/front/requests/events.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "daemon/front/model/request.h"
#include "daemon/front/model/session_events.h"
#include "daemon/front/model/sessions.h"
#include "daemon/front/sched/history.h"

#define AGAIN_NS (20 * NS_PER_MS) /* until the next try without memory */
#define WAIT_MAX_NS                                                                                \
    (60 * NS_PER_S) /* longest time of a WAIT: an empty EVENTS shows that both sides are alive */

/* Forgets acknowledged results, here and in the worker's ledger. */
static void forget_sent(struct front *f, struct session *s)
{
    while (s->events.sent != NULL) {
        struct async_result *r = s->events.sent;
        s->events.sent = r->next;
        session_let_go(s, &s->events.result_bytes, async_result_bytes(r));
        struct job *j = NULL;
        j = job_find(f->jobs, r->job);
        if (j != NULL) {
            job_acknowledged(f, j);
        }
        free(r);
    }
    free(s->events.message.data);
    s->events.message.data = NULL;
    s->events.message.size = 0;
}

static uint64_t list_results(const struct session *s, struct capbuf *records)
{
    uint64_t count = 0;
    const struct async_result *r = s->events.results;
    for (; r != NULL && count < PROTO_EVENTS_MAX; r = r->next) {
        if (!capbuf_append(records, r->record, r->size)) {
            records->failed = false; /* the rest follows in the next EVENTS */
            break;
        }
        count++;
    }
    return count;
}

static uint64_t list_notices(const struct session *s, struct capbuf *records)
{
    uint64_t count = 0;
    for (const struct notice *n = s->events.notices; n != NULL && count < PROTO_EVENTS_MAX;
         n = n->next) {
        struct proto_notice record = {.kind = n->kind, .handle = n->handle};
        if (proto_list_add(&schema_notice, &record, records, NULL) != 0) {
            break;
        }
        count++;
    }
    return count;
}

/* The first results and notices are in the message now. Results are kept until it is acknowledged,
 * notices are dropped. */
static void move_sent(struct session *s, uint64_t results, uint64_t notices)
{
    struct async_result **tail = &s->events.sent;
    for (; results > 0; results--) {
        struct async_result *r = s->events.results;
        s->events.results = r->next;
        r->next = NULL;
        *tail = r;
        tail = &r->next;
    }
    for (; notices > 0; notices--) {
        session_notice_drop(s);
    }
}

/* Writes the next EVENTS into the session, which keeps the message until it is acknowledged.
 * Without memory nothing changes. */
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
    struct msg_events m = {.number = s->events.number + 1,
                           .results = proto_list_of(&results, result_count),
                           .notices = proto_list_of(&notices, notice_count)};
    if (proto_encode(&schema_msg_events, &m, &out, NULL) == 0) {
        s->events.message.data = out.data;
        s->events.message.size = out.size;
        out.data = NULL;
        s->events.number++;
        move_sent(s, result_count, notice_count);
    }
    capbuf_finish(&results);
    capbuf_finish(&notices);
    capbuf_finish(&out);
}

void session_send_events(struct front *f, struct session *s, uint64_t now)
{
    bool something =
        s->events.message.data != NULL || s->events.results != NULL || s->events.notices != NULL;
    if (s->events.wait == NULL || (!something && now < s->events.wait_until_ns)) {
        return;
    }
    if (s->events.message.data == NULL) {
        compose(s);
    }
    if (s->events.message.data != NULL) {
        f->io.reply(f->listener, s->events.wait,
                    bytes_of(s->events.message.data, s->events.message.size));
        s->events.wait = NULL;
    } else {
        s->events.wait_until_ns = ns_add(now, AGAIN_NS);
        session_set_timer(f, s);
    }
}

void sessions_send_events(struct front *f)
{
    for (struct session *s = f->sessions; s != NULL; s = s->hh.next) {
        session_send_events(f, s, front_now(f));
    }
}

void session_wait(struct front *f, struct session *s, struct request *r)
{
    const struct msg_wait *m = &r->msg.wait;
    uint64_t now = front_now(f);
    if (s->events.wait != NULL) {
        f->io.drop(f->listener, s->events.wait); /* the newer WAIT replaces it */
    }
    if (s->events.message.data != NULL && m->taken >= s->events.number) {
        forget_sent(f, s);
    }
    s->events.wait = r->slot;
    uint64_t timeout = m->timeout_ns < WAIT_MAX_NS ? m->timeout_ns : WAIT_MAX_NS;
    s->events.wait_until_ns = ns_add(now, timeout);
    session_set_timer(f, s);
    request_destroy(r);
    session_send_events(f, s, now);
}
