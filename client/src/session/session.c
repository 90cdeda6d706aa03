#include "client/src/session/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "client/src/api/job.h"
#include "client/src/session/client.h"
#include "client/src/session/error.h"
#include "client/src/session/events.h"
#include "client/src/session/handles.h"
#include "client/src/session/lane.h"
#include "client/src/session/restore.h"
#include "client/src/wire/reply.h"
#include "common/clock.h"
#include "common/utf8.h"

#define BACKOFF_MIN      (10 * NS_PER_MS)
#define BACKOFF_MAX      (1 * NS_PER_S)
#define ATTEMPT_NS       (5 * NS_PER_S) /* from connecting to WELCOME */
#define WAIT_NS          (30 * NS_PER_S)
#define WAIT_RETRY_NS    (1 * NS_PER_S)
#define UNSENT_NS        (1 * NS_PER_MS) /* the ring may have room again without an answer */
#define AGAIN_NS         (5 * NS_PER_MS) /* what was not admitted, if the daemon does not say when */
#define REFUSALS_MAX     4 /* then the pause grows no more: 16 times what the daemon said first */
#define TELL_EVERY       1024  /* answers that no acknowledgement covers */
#define TELL_PART        4     /* or so much less than a daemon keeps, in bytes */
#define OLD_TAKEN_MAX    16384 /* numbers from `resume` on that a daemon of minor 2 believes */
#define OLD_AHEAD_MAX    8192  /* so it must not be let to forget more than these */
#define INFLIGHT_DEFAULT 64

int session_init(struct session *s, const char *name, const void *token, size_t token_size,
                 struct err *e)
{
    *s = (struct session){.retry_ns = 0, .attempt_ns = NS_NEVER, .lost_ns = NS_NEVER};
    s->wait_ns = NS_NEVER;
    s->again_ns = NS_NEVER;
    s->max_inflight = INFLIGHT_DEFAULT;
    s->max_message = PROTO_MESSAGE_MAX;
    if (token == NULL && token_size > 0) {
        return err_set(e, ERR_INVALID, "no token, but a size of %zu", token_size);
    }
    if (token_size > sizeof s->token) {
        return err_set(e, ERR_LIMIT, "token of %zu bytes, at most %zu", token_size,
                       sizeof s->token);
    }
    if (getrandom(s->client_id, sizeof s->client_id, 0) != (ssize_t)sizeof s->client_id) {
        return err_errno(e, ERR_IO, "random client id");
    }
    if (token_size > 0) {
        memcpy(s->token, token, token_size);
        s->token_size = token_size;
    }
    text_copy(s->name, sizeof s->name, bytes_str(name));
    utf8_mend(s->name, strlen(s->name)); /* a program's file name is any bytes */
    return 0;
}

void session_finish(struct gpud_client *c)
{
    request_finish(&c->session.hello);
    request_finish(&c->session.wait);
    request_finish(&c->session.tell);
}

static void send_now(struct gpud_client *c, struct request *r)
{
    struct err e = ERR_INIT;
    if (c->conn.state == CONN_DOWN) {
        return; /* nothing may come before the next connection's HELLO; then it is sent again */
    }
    requests_head(&c->requests, r, c->address.transport);
    if (conn_send(&c->conn, &r->out, &e) != 0) {
        session_lost(c, &e);
    }
}

/* By the ring if it can be, else over the socket; false: it has to wait until the daemon has
 * admitted more. */
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
        send_now(c, r);
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
        send_now(c, r);
    } else if (t->unsent == NULL && !send_sequenced(c, r)) {
        t->unsent = r;
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
        if (t->unsent == r) { /* not so if the connection broke */
            t->unsent = r->next;
        }
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
            send_now(c, r);
            if (c->session.state != SESSION_READY) {
                return; /* r may be gone */
            }
            requests_went(&c->requests, seq, WAY_SOCKET);
        }
    }
}

void session_send_own(struct gpud_client *c, struct request *r)
{
    send_now(c, r);
}

void session_send_later(struct gpud_client *c, struct request *r, uint64_t pause_ns)
{
    struct session *s = &c->session;
    uint64_t pause = pause_ns > 0 ? pause_ns : AGAIN_NS;
    pause = (pause < BACKOFF_MAX ? pause : BACKOFF_MAX) << r->refusals; /* all of it goes again */
    if (r->refusals < REFUSALS_MAX) {
        r->refusals++;
    }
    r->again_ns = ns_add(clock_now_ns(), pause < BACKOFF_MAX ? pause : BACKOFF_MAX);
    s->again_ns = r->again_ns < s->again_ns ? r->again_ns : s->again_ns;
}

int session_ask(struct gpud_client *c, struct request *r, request_fn answered, struct err *e)
{
    r->answered = answered;
    r->own = true;
    int rc = requests_add(&c->requests, r, false, e);
    if (rc == 0) {
        send_now(c, r);
    }
    return rc;
}

/* ---- WAIT ---------------------------------------------------------------------------------- */

static void wait_send(struct gpud_client *c);

static void notice(struct gpud_client *c, const struct proto_notice *n)
{
    static const int kinds[] = {
        [NOTICE_BUFFER_LOST] = GPUD_EVENT_BUFFER_LOST,
        [NOTICE_DRAINING] = GPUD_EVENT_DRAINING,
        [NOTICE_RESUMED] = GPUD_EVENT_RESUMED,
    };
    if (n->kind < NOTICE_BUFFER_LOST || n->kind > NOTICE_RESUMED) {
        return; /* one of a newer daemon */
    }
    char text[256];
    text_copy(text, sizeof text, n->text);
    gpud_buffer buffer = {0};
    if (n->kind == NOTICE_BUFFER_LOST) {
        buffer = buffer_by_daemon(c, n->handle);
    }
    struct buffer *b = idmap_get(&c->buffers, buffer.id);
    if (b != NULL) {
        buffer_lost(c, b, text);
    } else {
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
    requests_end(&c->requests, r);
    request_finish(r);
    if (m == NULL) {
        return;
    }
    struct msg_events events;
    struct err failed = ERR_INIT;
    if (reply_decode(m, &schema_msg_events, &events, &failed) != 0) {
        s->wait_ns = clock_now_ns() + WAIT_RETRY_NS;
        return;
    }
    if (events.number > s->taken) {
        s->taken = events.number;
        events_take(c, &events, m);
    }
    wait_send(c);
}

static void wait_send(struct gpud_client *c)
{
    struct session *s = &c->session;
    struct msg_wait msg = {.timeout_ns = WAIT_NS, .taken = s->taken};
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

/* ---- TAKEN --------------------------------------------------------------------------------- */

static void told_answered(struct gpud_client *c, struct request *r, struct message *m,
                          const struct err *e)
{
    (void)m;
    (void)e;
    requests_end(&c->requests, r);
    request_finish(r);
}

/* Tells the daemon of answers that came, but lie behind one that did not: it keeps only so many. */
static void tell_taken(struct gpud_client *c)
{
    struct session *s = &c->session;
    struct requests *t = &c->requests;
    struct capbuf spans;
    struct err e = ERR_INIT;
    uint64_t count = 0;
    uint64_t until = 0;
    if (s->tell.id != 0 || t->fillers.first != NULL || s->minor < MINOR_RANGES) {
        return; /* fillers' numbers are in nobody's list: they are answered soon */
    }
    s->untold = 0;
    s->untold_bytes = 0;
    capbuf_init(&spans, PROTO_LOG_MAX);
    int rc = requests_spans(t, requests_acknowledged(t) + 1, &spans, &count, &until, &e);
    struct msg_taken msg = {.taken = proto_list_of(&spans, count)};
    if (rc == 0 && count > 0 && request_encode(&s->tell, &schema_msg_taken, &msg, &e) == 0 &&
        session_ask(c, &s->tell, told_answered, &e) != 0) {
        request_finish(&s->tell); /* the next answers bring it up again */
    }
    capbuf_finish(&spans);
}

/* An answer to a numbered request that came over the socket. */
static void untold(struct gpud_client *c, size_t bytes)
{
    struct session *s = &c->session;
    s->untold++;
    s->untold_bytes += bytes;
    if (s->state == SESSION_READY &&
        (s->untold >= TELL_EVERY || s->untold_bytes > s->max_kept / TELL_PART)) {
        tell_taken(c);
    }
}

/* ---- READY --------------------------------------------------------------------------------- */

static void filler_answered(struct gpud_client *c, struct request *r, struct message *m,
                            const struct err *e)
{
    (void)m;
    (void)e;
    requests_end(&c->requests, r);
    request_finish(r);
    free(r);
}

/* A question without effect: for a number that nobody waits for any more but the daemon does. It
 * takes the place of `old`, NULL: comes beside what is asked for. */
static int filler_make(struct gpud_client *c, uint64_t seq, struct request *old,
                       struct request **ret_filler, struct err *e)
{
    struct request *r = calloc(1, sizeof *r);
    struct msg_buffer_info msg = {.handle = 0};
    if (r == NULL) {
        return err_set(e, ERR_NOMEM, "sending again");
    }
    int rc = request_encode(r, &schema_msg_buffer_info, &msg, e);
    if (rc == 0) {
        r->answered = filler_answered;
        r->own = old == NULL;
        rc = old != NULL ? requests_replace(&c->requests, old, r, e)
                         : requests_add_filler(&c->requests, r, seq, e);
    }
    if (rc != 0) {
        request_finish(r);
        free(r);
        return rc;
    }
    *ret_filler = r;
    return 0;
}

bool session_withdraw(struct gpud_client *c, struct request *r)
{
    const struct request *unsent = c->requests.unsent;
    struct request *filler = NULL;
    bool refused = r->again_ns != 0;
    bool sent = unsent == NULL || r->seq < unsent->seq;
    return (refused || !sent) && filler_make(c, r->seq, r, &filler, NULL) == 0;
}

static int filler_send(struct gpud_client *c, uint64_t seq, struct err *e)
{
    struct request *r = NULL;
    int rc = filler_make(c, seq, NULL, &r, e);
    if (rc == 0) {
        send_now(c, r);
    }
    return rc;
}

/* Sends all that is not answered, in the order of its numbers. Numbers from `fill` on that no
 * request has are filled. */
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
        send_now(c, r);
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
            send_now(c, r);
        }
    }
    return 0;
}

static void ready(struct gpud_client *c, uint64_t fill, int event)
{
    struct session *s = &c->session;
    struct err e = ERR_INIT;
    s->state = SESSION_READY;
    s->known = true;
    s->attempt_ns = NS_NEVER;
    s->lost_ns = NS_NEVER;
    s->backoff_ns = 0;
    s->opening = false;
    s->failure = ERR_INIT;
    s->again_ns = NS_NEVER;
    requests_begin_again(&c->requests);
    requests_went(&c->requests, c->requests.next_seq - 1, WAY_SOCKET); /* resend does that */
    if (resend(c, fill, &e) != 0) {
        session_lost(c, &e);
    }
    if (s->state == SESSION_READY) {
        wait_send(c);
    }
    if (s->state == SESSION_READY && c->lane.mode == LANE_ALWAYS) {
        lane_ask(c);
    }
    if (event != 0) {
        client_event(c, event, (gpud_buffer){0}, "");
    }
}

void session_restored(struct gpud_client *c)
{
    struct session *s = &c->session;
    if (restore_buffers(c) || s->state != SESSION_RESTORE) {
        return;
    }
    while (s->restore_stage < OBJECT_KINDS) {
        if (restore_begin(c, s->restore_stage++)) {
            return;
        }
        if (s->state != SESSION_RESTORE) {
            return;
        }
    }
    restore_commit(c);
    s->restoring = false;
    ready(c, s->told_to, GPUD_EVENT_RESTARTED);
}

/* ---- HELLO --------------------------------------------------------------------------------- */

static void welcome_take(struct session *s, const struct msg_welcome *w)
{
    s->major = w->major;
    s->minor = w->minor;
    s->max_message = w->max_message > 0 && w->max_message < PROTO_MESSAGE_MAX ? w->max_message
                                                                              : PROTO_MESSAGE_MAX;
    s->max_inflight = w->max_inflight > 0 ? w->max_inflight : INFLIGHT_DEFAULT;
    s->linger_ns = w->linger_ns;
    s->max_arena = w->max_arena;
    s->max_requests = w->max_requests;
    s->max_unacked = w->max_unacked;
    s->max_early = w->max_early;
    s->max_reorder = w->max_reorder;
    s->max_buffers = w->max_buffers;
    s->max_arenas = w->max_arenas;
    s->max_modules = w->max_modules;
    s->max_programs = w->max_programs;
    s->max_kept = w->max_kept;
    s->number = w->session;
    s->may_load = w->may_load != 0;
    text_copy(s->build, sizeof s->build, w->build);
    text_copy(s->tenant, sizeof s->tenant, w->tenant);
    text_copy(s->shm, sizeof s->shm, w->shm);
    memcpy(s->daemon_id, w->daemon_id.data, sizeof s->daemon_id);
}

static int welcome_check(const struct msg_welcome *w, struct err *e)
{
    if (w->major != PROTO_MAJOR) {
        return err_set(e, ERR_VERSION, "daemon speaks protocol %llu.%llu, this library %d.%d",
                       (unsigned long long)w->major, (unsigned long long)w->minor, PROTO_MAJOR,
                       PROTO_MINOR);
    }
    if (w->daemon_id.size != PROTO_CLIENT_ID_BYTES) {
        return err_set(e, ERR_PROTOCOL, "daemon's id has %zu bytes", w->daemon_id.size);
    }
    return 0;
}

/* One that does not take numbers as ranges believes and forgets fewer of them. */
static void ranges_settle(struct gpud_client *c)
{
    struct session *s = &c->session;
    bool ranges = s->minor >= MINOR_RANGES;
    uint64_t most = s->told_from + OLD_TAKEN_MAX;
    c->requests.ahead_max = ranges ? UINT64_MAX : OLD_AHEAD_MAX;
    s->told_to = ranges || s->told_to < most ? s->told_to : most;
}

/* going_on: the daemon keeps what was restored before the connection broke. Compiling takes its
 * time: as long as there is the connection, there is a daemon that will answer. */
static void restore(struct gpud_client *c, bool going_on)
{
    struct session *s = &c->session;
    if (!going_on) {
        restore_forget(c);
    }
    s->restoring = true;
    s->attempt_ns = NS_NEVER;
    s->lost_ns = NS_NEVER; /* there was a daemon: if it is lost, too, that begins anew */
    s->again_ns = NS_NEVER;
    s->taken = 0;       /* another daemon counts its events anew */
    jobs_forget_ids(c); /* what is sent again tells them anew */
    s->state = SESSION_RESTORE;
    s->restore_stage = 0;
    s->restore_cursor = 0;
    session_restored(c);
}

static void hello_answered(struct gpud_client *c, struct request *r, struct message *m,
                           const struct err *e)
{
    (void)e;
    struct session *s = &c->session;
    requests_end(&c->requests, r);
    request_finish(r);
    if (m == NULL) {
        return;
    }
    struct err failed = ERR_INIT;
    struct msg_welcome w;
    if (reply_decode(m, &schema_msg_welcome, &w, &failed) != 0 || welcome_check(&w, &failed) != 0) {
        (void)err_wrap(&failed, "hello");
        session_lost(c, &failed);
        return;
    }
    bool same = memcmp(w.daemon_id.data, s->daemon_id, sizeof s->daemon_id) == 0 && w.resumed != 0;
    welcome_take(s, &w);
    ranges_settle(c);
    uint64_t expect = w.expect > 0 ? w.expect : 1;
    if (!s->known) {
        ready(c, c->requests.next_seq, 0);
    } else if (same && !s->restoring) {
        ready(c, expect, GPUD_EVENT_RECONNECTED);
    } else {
        restore(c, same);
    }
}

static int hello_send(struct gpud_client *c, struct err *e)
{
    struct session *s = &c->session;
    struct capbuf spans;
    uint64_t count = 0;
    capbuf_init(&spans, PROTO_LOG_MAX);
    int rc =
        requests_spans(&c->requests, requests_lowest(&c->requests), &spans, &count, &s->told_to, e);
    if (rc == 0) {
        struct msg_hello msg = {
            .major = PROTO_MAJOR,
            .minor = PROTO_MINOR,
            .client_id = bytes_of(s->client_id, sizeof s->client_id),
            .resume = requests_lowest(&c->requests),
            .name = bytes_str(s->name),
            .token = bytes_of(s->token, s->token_size),
            .taken = proto_list_of(&spans, count),
        };
        rc = request_encode(&s->hello, &schema_msg_hello, &msg, e);
    }
    capbuf_finish(&spans);
    if (rc != 0) {
        return rc;
    }
    s->told_from = requests_lowest(&c->requests);
    s->state = SESSION_HELLO;
    rc = session_ask(c, &s->hello, hello_answered, e);
    if (rc != 0) {
        request_finish(&s->hello);
    }
    return rc;
}

/* ---- connecting ---------------------------------------------------------------------------- */

static void connect_now(struct gpud_client *c, uint64_t now_ns)
{
    struct err e = ERR_INIT;
    c->session.attempt_ns = ns_add(now_ns, ATTEMPT_NS);
    int rc = conn_start(&c->conn, &e);
    if (rc == 0) {
        rc = hello_send(c, &e);
    }
    if (rc != 0) {
        session_lost(c, &e);
    }
}

bool session_gave_up(const struct gpud_client *c)
{
    const struct session *s = &c->session;
    return s->opening && s->failure.code != 0 && s->failure.code != ERR_CONNECT;
}

/* ---- not admitted -------------------------------------------------------------------------- */

static void list_again(struct gpud_client *c, struct request *first, uint64_t now_ns)
{
    struct session *s = &c->session;
    const enum session_state state = s->state;
    for (struct request *r = first; r != NULL; r = r->next) {
        if (r->again_ns != 0 && r->again_ns <= now_ns) {
            const uint64_t seq = r->seq;
            r->again_ns = 0;
            r->by_ring = false;
            send_now(c, r);
            if (s->state != state) {
                return; /* r may be gone */
            }
            requests_went(&c->requests, seq, WAY_SOCKET);
        } else if (r->again_ns != 0 && r->again_ns < s->again_ns) {
            s->again_ns = r->again_ns;
        }
    }
}

static void send_again(struct gpud_client *c, uint64_t now_ns)
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

/* An ERROR that says that the request was not admitted: the daemon still waits for its number. What
 * may succeed later is sent again then; else its caller is told, and the number filled. True: that
 * was it. */
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
    /* There before the number is given up: nothing that is sent now may acknowledge it. */
    struct request *filler = NULL;
    bool lost = r->answered == filler_answered ||
                (s->state == SESSION_READY && filler_make(c, seq, NULL, &filler, &e) != 0);
    r->answered(c, r, m, NULL);
    if (lost) {
        session_lost(c, &e); /* the next connection begins with what is missing */
    } else if (filler != NULL && s->state == SESSION_READY) { /* else it is gone already */
        send_now(c, filler);
    }
    return true;
}

/* When something is to be done if nothing comes. */
static uint64_t next_due(const struct gpud_client *c, uint64_t now_ns)
{
    const struct session *s = &c->session;
    uint64_t a;
    uint64_t b;
    if (c->conn.state == CONN_DOWN) {
        a = s->retry_ns;
        b = s->lost_ns != NS_NEVER ? ns_add(s->lost_ns, c->reconnect_ns) : NS_NEVER;
    } else {
        uint64_t unsent = c->requests.unsent != NULL ? ns_add(now_ns, UNSENT_NS) : NS_NEVER;
        uint64_t again = s->state >= SESSION_RESTORE ? s->again_ns : NS_NEVER;
        a = s->attempt_ns < unsent ? s->attempt_ns : unsent;
        b = s->wait_ns < again ? s->wait_ns : again;
    }
    return a < b ? a : b;
}

uint64_t session_tick(struct gpud_client *c, uint64_t now_ns)
{
    struct session *s = &c->session;
    if (c->conn.state == CONN_DOWN) {
        if (c->closing || session_gave_up(c)) {
            return NS_NEVER;
        }
        if (s->lost_ns == NS_NEVER) {
            s->lost_ns = now_ns;
        }
        if (!s->opening && now_ns >= ns_add(s->lost_ns, c->reconnect_ns)) {
            struct err why = s->failure;
            (void)err_wrap(&why, "no connection to the daemon");
            why.code = ERR_CONNECT;
            s->lost_ns = now_ns;
            session_fail(c, &why);
        }
        if (now_ns >= s->retry_ns) {
            connect_now(c, now_ns);
        }
    } else if (now_ns >= s->attempt_ns) {
        struct err why = ERR_INIT;
        (void)err_set(&why, ERR_CONNECT, "the daemon does not answer");
        session_lost(c, &why);
    }
    if (now_ns >= s->wait_ns && s->state == SESSION_READY) {
        wait_send(c);
    }
    if (now_ns >= s->again_ns && s->state >= SESSION_RESTORE) {
        send_again(c, now_ns);
    }
    return next_due(c, now_ns);
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
    s->state = SESSION_DOWN;
    lane_drop(c);
    if (c->conn.fd >= 0 && origin_here(&c->origin)) {
        conn_unwatch(&c->conn, c->conn.fd); /* closing is not enough: a child of fork may have it */
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
    /* clients that lost the same daemon must not come back in step */
    s->retry_ns = now + s->backoff_ns / 2 + (now ^ s->client_id[0]) % (s->backoff_ns / 2);
    if (s->retry_ns < c->conn.timer_ns) {
        conn_timer_set(&c->conn, s->retry_ns);
    }
    if (was_ready && !c->closing) {
        client_event(c, GPUD_EVENT_DISCONNECTED, (gpud_buffer){0}, why->text);
    }
}

int session_message(struct gpud_client *c, struct message *m, struct err *e)
{
    struct request *r = requests_find(&c->requests, m->id);
    if (r == NULL) {
        return 0; /* of a request that was given up */
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
        send_now(c, r); /* the same number: the same answer */
        return 0;
    }
    bool kept = r->seq != 0 && !r->by_ring;
    r->answered(c, r, m, NULL);
    if (kept) {
        untold(c, message_view(m).size);
    }
    return 0;
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
