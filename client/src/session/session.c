#include "client/src/session/session.h"

#include <string.h>
#include <sys/random.h>

#include "client/src/base/state.h"
#include "client/src/base/text.h"
#include "client/src/link/lost.h"
#include "client/src/link/route.h"
#include "client/src/link/send.h"
#include "client/src/objects/job.h"
#include "client/src/session/notices.h"
#include "client/src/session/ready.h"
#include "client/src/session/restore.h"
#include "client/src/wire/reply.h"
#include "client/src/wire/shm.h"
#include "client/src/wire/token_file.h"
#include "common/clock.h"
#include "common/utf8.h"

#define ATTEMPT_NS       (5 * NS_PER_S) /* from connecting to WELCOME */
#define OLD_TAKEN_MAX    16384 /* numbers from `resume` on that a daemon of minor 2 believes */
#define OLD_AHEAD_MAX    8192  /* numbers that it may forget ahead of the lowest unanswered one */
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
    utf8_mend(s->name, strlen(s->name)); /* the default, a program's file name, can be any bytes */
    return 0;
}

void session_finish(struct gpud_client *c)
{
    request_finish(&c->session.hello);
    request_finish(&c->session.wait);
    request_finish(&c->session.taken_request);
    explicit_bzero(c->session.token, sizeof c->session.token);
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
    s->lineage = w->lineage;
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

/* A daemon before MINOR_RANGES believes and forgets a limited number of answers. */
static void ranges_settle(struct gpud_client *c)
{
    struct session *s = &c->session;
    bool ranges = s->minor >= MINOR_RANGES;
    uint64_t most = s->reported_from + OLD_TAKEN_MAX;
    c->requests.ahead_max = ranges ? UINT64_MAX : OLD_AHEAD_MAX;
    s->reported_to = ranges || s->reported_to < most ? s->reported_to : most;
}

/* May a daemon have ended a session that it knew? It, or an earlier one, has, if it knew the former
 * session. Another one has run for long enough, or the client was away for so long. Before the
 * daemon's new WELCOME is taken. */
static bool outlived(const struct session *s, const struct msg_welcome *w, bool daemon)
{
    uint64_t linger = s->linger_ns < w->linger_ns ? s->linger_ns : w->linger_ns;
    bool away = s->lost_ns != NS_NEVER && clock_now_ns() >= ns_add(s->lost_ns, linger);
    return daemon || away || w->up_ns >= linger;
}

static void hello_answered(struct gpud_client *c, struct request *r, struct message *m,
                           const struct err *e)
{
    (void)e;
    struct session *s = &c->session;
    requests_retire(&c->requests, r);
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
    /* a session of another number was made by a HELLO whose WELCOME was lost */
    bool daemon = memcmp(w.daemon_id.data, s->daemon_id, sizeof s->daemon_id) == 0;
    bool same = daemon && w.resumed != 0 && w.session == s->number;
    bool anew = w.resumed == 0 || (daemon && !same);
    if (s->known) {
        jobs_meet(c, &(struct meeting){.other = !same,
                                       .anew = anew,
                                       .forgotten = anew && outlived(s, &w, daemon),
                                       .lineage = w.lineage});
    }
    s->anew = anew ? s->known : s->anew;
    welcome_take(s, &w);
    shm_find(s->shm, &c->address);
    ranges_settle(c);
    uint64_t expect = w.expect > 0 ? w.expect : 1;
    if (!s->known) {
        session_ready(c, c->requests.next_seq, 0);
    } else if (same && !s->restoring) {
        session_ready(c, expect, GPUD_EVENT_RECONNECTED);
    } else {
        restore_start(c, same);
    }
}

/* The file may have a new token by now, and the daemon may have dropped the former one. */
static void token_renew(struct session *s)
{
    uint8_t token[PROTO_TOKEN_MAX];
    size_t size = 0;
    if (s->token_file[0] != '\0' && token_file_read(s->token_file, token, &size, NULL) == 0) {
        memcpy(s->token, token, size);
        s->token_size = size;
    }
    explicit_bzero(token, sizeof token);
}

static int hello_send(struct gpud_client *c, struct err *e)
{
    struct session *s = &c->session;
    token_renew(s);
    struct capbuf spans;
    uint64_t count = 0;
    capbuf_init(&spans, PROTO_LOG_MAX);
    int rc = requests_spans(&c->requests, requests_lowest(&c->requests), &spans, &count,
                            &s->reported_to, e);
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
    s->reported_from = requests_lowest(&c->requests);
    session_step(s, SESSION_HELLO);
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

/* The earliest time at which the session has something to do without a message. */
static uint64_t next_due(const struct gpud_client *c, uint64_t now_ns)
{
    const struct session *s = &c->session;
    uint64_t a;
    uint64_t b;
    if (c->conn.state == CONN_DOWN) {
        a = s->retry_ns;
        bool fails = s->lost_ns != NS_NEVER && !s->opening; /* gpud_open has a limit of its own */
        b = fails ? ns_add(s->lost_ns, c->reconnect_ns) : NS_NEVER;
    } else {
        uint64_t unsent = c->requests.unsent != NULL ? ns_add(now_ns, ROUTE_UNSENT_NS) : NS_NEVER;
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
        session_listen(c);
    }
    if (now_ns >= s->again_ns && s->state >= SESSION_RESTORE) {
        session_send_again(c, now_ns);
    }
    return next_due(c, now_ns);
}
