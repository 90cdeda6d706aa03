#include "client/src/session/notices.h"

#include "client/src/base/events.h"
#include "client/src/base/text.h"
#include "client/src/link/send.h"
#include "client/src/objects/handles.h"
#include "client/src/objects/job.h"
#include "client/src/wire/reply.h"
#include "common/clock.h"

#define WAIT_NS       (30 * NS_PER_S)
#define WAIT_RETRY_NS (1 * NS_PER_S)

static void notice(struct gpud_client *c, const struct proto_notice *n)
{
    static const int kinds[] = {
        [NOTICE_BUFFER_LOST] = GPUD_EVENT_BUFFER_LOST,
        [NOTICE_DRAINING] = GPUD_EVENT_DRAINING,
        [NOTICE_RESUMED] = GPUD_EVENT_RESUMED,
    };
    if (n->kind < NOTICE_BUFFER_LOST || n->kind > NOTICE_RESUMED) {
        return; /* a kind that only a newer daemon sends */
    }
    char text[256];
    text_copy(text, sizeof text, n->text);
    gpud_buffer buffer = {0};
    if (n->kind == NOTICE_BUFFER_LOST) {
        buffer = buffer_by_daemon(c, n->handle);
    }
    struct buffer *b = idmap_get(&c->buffers, buffer.id);
    if (b != NULL) {
        buffer_lost(c, b, LOST_WITH_WORKER, text);
    } else {
        if (n->kind == NOTICE_BUFFER_LOST) {
            buffer_lost_early(c, n->handle);
        }
        client_event(c, kinds[n->kind], buffer, text);
    }
}

static void events_take(struct gpud_client *c, const struct msg_events *events, struct message *m)
{
    struct proto_result result;
    for (struct proto_iter it = proto_iter_of(events->results);
         proto_list_next(&it, &schema_result, &result);) {
        job_result(c, &result, m);
    }
    struct proto_notice n;
    for (struct proto_iter it = proto_iter_of(events->notices);
         proto_list_next(&it, &schema_notice, &n);) {
        notice(c, &n);
    }
}

static void wait_answered(struct gpud_client *c, struct request *r, struct message *m,
                          const struct err *e)
{
    (void)e;
    struct session *s = &c->session;
    requests_retire(&c->requests, r);
    if (m == NULL) {
        return;
    }
    struct msg_events events;
    struct err failed = ERR_INIT;
    if (reply_decode(m, &schema_msg_events, &events, &failed) != 0) {
        s->wait_ns = clock_now_ns() + WAIT_RETRY_NS;
        return;
    }
    if (events.number > s->events_seen) {
        s->events_seen = events.number;
        events_take(c, &events, m);
    }
    session_listen(c);
}

void session_listen(struct gpud_client *c)
{
    struct session *s = &c->session;
    struct msg_wait msg = {.timeout_ns = WAIT_NS, .taken = s->events_seen};
    struct err e = ERR_INIT;
    s->wait_ns = NS_NEVER;
    if (s->wait.id != 0) {
        return;
    }
    if (request_encode(&s->wait, &schema_msg_wait, &msg, &e) != 0) {
        s->wait_ns = clock_now_ns() + WAIT_RETRY_NS;
    } else if (session_ask(c, &s->wait, wait_answered, &e) != 0) {
        request_finish(&s->wait);
        s->wait_ns = clock_now_ns() + WAIT_RETRY_NS;
    }
}
