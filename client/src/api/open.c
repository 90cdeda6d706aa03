#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "client/src/api/program.h"
#include "client/src/base/enter.h"
#include "client/src/base/error.h"
#include "client/src/link/lane.h"
#include "client/src/link/lane_memory.h"
#include "client/src/link/lost.h"
#include "client/src/objects/arena.h"
#include "client/src/objects/handles.h"
#include "client/src/objects/job.h"
#include "client/src/session/call.h"
#include "client/src/session/callbacks.h"
#include "client/src/session/session.h"
#include "client/src/session/wait.h"
#include "client/src/wire/environment.h"
#include "client/src/wire/token_file.h"
#include "common/clock.h"

#define URL_DEFAULT       "ipc:///run/gpud/gpud.sock"
#define CONNECT_DEFAULT   (5 * NS_PER_S)
#define RECONNECT_DEFAULT (30 * NS_PER_S)
#define BYE_NS            (1 * NS_PER_S)

/* ---- open ---------------------------------------------------------------------------------- */

static int options_read(const gpud_options *given, gpud_options *ret_options, struct err *e)
{
    gpud_options o = {0};
    if (given != NULL) {
        if (given->size < sizeof given->size || given->size > 4096) {
            return err_set(e, ERR_INVALID,
                           "gpud_options.size is %zu: set it to the struct's sizeof", given->size);
        }
        memcpy(&o, given, given->size < sizeof o ? given->size : sizeof o);
    }
    if (o.name == NULL) {
        o.name = program_invocation_short_name;
    }
    if (o.connect_timeout_ns == 0) {
        o.connect_timeout_ns = CONNECT_DEFAULT;
    }
    if (o.reconnect_ns == 0) {
        o.reconnect_ns = RECONNECT_DEFAULT;
    }
    if (o.timeout_ns == 0) {
        uint64_t ms = 0;
        int rc = environment_number("GPUD_TIMEOUT_MS", UINT64_MAX / NS_PER_MS, 0, &ms, e);
        if (rc != 0) {
            return rc;
        }
        o.timeout_ns = ms > 0 ? ms * NS_PER_MS : NS_NEVER;
    }
    if (o.connect_timeout_ns > o.timeout_ns) {
        o.connect_timeout_ns = o.timeout_ns; /* gpud_open is a blocking call, too */
    }
    *ret_options = o;
    return 0;
}

static void client_destroy(struct gpud_client *c)
{
    while (c->event_first != NULL) {
        struct event *event = c->event_first;
        c->event_first = event->next;
        free(event);
    }
    session_finish(c);
    request_finish(&c->lane.open);
    requests_finish(&c->requests);
    arenas_finish(c);
    handles_finish(c);
    conn_finish(&c->conn);
    origin_finish(&c->origin);
    free(c);
}

/* Options go before the URL, the URL before the environment. */
static int name_settle(char *name, size_t size, const char *option, const char *variable,
                       struct err *e)
{
    const char *other = option != NULL    ? option
                        : name[0] == '\0' ? environment_text(variable)
                                          : NULL;
    if (other == NULL) {
        return 0;
    }
    if (strlen(other) >= size) {
        return err_set(e, ERR_INVALID, "%s, or its option: over %zu bytes", variable, size - 1);
    }
    memcpy(name, other, strlen(other) + 1);
    return 0;
}

/* `names`: what the URL says. */
static int tls_make(const struct address *a, const gpud_options *o, struct tls_names *names,
                    struct tls **ret_tls, struct err *e)
{
    int rc = name_settle(names->ca, sizeof names->ca, o->ca_file, "GPUD_CA_FILE", e);
    rc = rc == 0 ? name_settle(names->cert, sizeof names->cert, o->cert_file, "GPUD_CERT_FILE", e)
                 : rc;
    rc = rc == 0 ? name_settle(names->key, sizeof names->key, o->key_file, "GPUD_KEY_FILE", e) : rc;
    rc = rc == 0 ? name_settle(names->server, sizeof names->server, o->server_name,
                               "GPUD_SERVER_NAME", e)
                 : rc;
    if (names->server[0] == '\0') {
        memcpy(names->server, a->host, sizeof a->host);
    }
    return rc == 0 ? tls_create(names, ret_tls, e) : rc;
}

/* The kernel vouches for clients over ipc, which need no token. */
static int token_settle(struct session *s, const struct address *a, const gpud_options *o,
                        struct err *e)
{
    const char *file = environment_text("GPUD_TOKEN_FILE");
    if (a->transport != SP_TCP || o->token != NULL || file == NULL) {
        return 0;
    }
    if (strlen(file) >= sizeof s->token_file) {
        return err_set(e, ERR_INVALID, "GPUD_TOKEN_FILE: over %zu bytes", sizeof s->token_file - 1);
    }
    memcpy(s->token_file, file, strlen(file) + 1);
    return token_file_read(file, s->token, &s->token_size, e);
}

/* Without TLS a token can be read on its way, and whatever answers at the address gets it. */
static int token_check(const struct session *s, const struct address *a, struct err *e)
{
    if (s->token_size == 0 || a->tls || address_is_here(a)) {
        return 0;
    }
    return err_set(e, ERR_PERMISSION,
                   "a token goes to other hosts by tls+tcp:// only, because tcp:// shows it to all "
                   "on the way (without a token: unset GPUD_TOKEN_FILE)");
}

static int conn_make(struct gpud_client *c, const char *url, const gpud_options *o, struct err *e)
{
    struct tls_names names = {.ca = ""};
    struct tls *tls = NULL;
    int rc = address_parse(url, &c->address, &names, e);
    rc = rc == 0 ? token_settle(&c->session, &c->address, o, e) : rc;
    rc = rc == 0 ? token_check(&c->session, &c->address, e) : rc;
    if (rc == 0 && c->address.tls) {
        rc = tls_make(&c->address, o, &names, &tls, e);
    }
    return rc == 0 ? conn_init(&c->conn, &c->address, tls, PROTO_MESSAGE_MAX, e) : rc;
}

static int client_make(const char *url, const gpud_options *o, struct gpud_client **ret_client,
                       struct err *e)
{
    struct gpud_client *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a client");
    }
    int rc = lane_init(&c->lane, e);
    if (rc == 0) {
        rc = session_init(&c->session, o->name, o->token, o->token_size, e);
    }
    if (rc == 0) {
        rc = conn_make(c, url, o, e);
    }
    if (rc != 0) {
        session_finish(c);
        free(c);
        return rc;
    }
    if (pthread_mutex_init(&c->lock, NULL) != 0) {
        session_finish(c);
        conn_finish(&c->conn);
        free(c);
        return err_set(e, ERR_NOMEM, "no memory for a lock");
    }
    uint64_t generation; /* random, so that handles of another client are recognised */
    memcpy(&generation, c->session.client_id, sizeof generation);
    requests_init(&c->requests);
    handles_init(c, (generation & IDMAP_GENERATION_MAX) >> 1 | 1);
    origin_init(&c->origin);
    c->timeout_ns = o->timeout_ns;
    c->reconnect_ns = o->reconnect_ns;
    c->session.opening = true;
    *ret_client = c;
    return 0;
}

static bool opened(void *arg)
{
    const struct gpud_client *c = arg;
    if (c->session.state == SESSION_READY && c->lane.mode == LANE_ALWAYS) {
        return c->lane.state == LANE_UP || c->lane.state == LANE_REFUSED;
    }
    return c->session.state == SESSION_READY || session_gave_up(c);
}

static int open_wait(struct gpud_client *c, uint64_t timeout_ns, struct err *e)
{
    (void)pthread_mutex_lock(&c->lock);
    client_process(c, true);
    int rc = client_wait(c, opened, c, ns_add(clock_now_ns(), timeout_ns), e);
    if (rc == 0 && c->session.state != SESSION_READY) {
        *e = c->session.failure;
        rc = e->code;
    } else if (rc == 0 && c->lane.mode == LANE_ALWAYS && c->lane.state != LANE_UP) {
        *e = c->lane.failure;
        rc = err_wrap(e, "no ring lane");
    } else if (rc != 0 && c->session.failure.code != 0) {
        *e = c->session.failure; /* of the last attempt */
        rc = e->code;
    } else if (rc != 0) {
        rc = err_set(e, ERR_CONNECT, "the daemon does not answer");
    }
    (void)pthread_mutex_unlock(&c->lock);
    return rc;
}

int gpud_open(const char *url, const gpud_options *options, gpud_client **ret_client)
{
    struct err e = ERR_INIT;
    struct gpud_client *c = NULL;
    gpud_options o = {0};
    if (url == NULL) { /* an empty URL is an error of the caller, not a request for the default */
        url = environment_text("GPUD_URL");
        url = url == NULL ? URL_DEFAULT : url;
    }
    if (ret_client == NULL) {
        return error_report(err_set(&e, ERR_INVALID, "no pointer for the client"), &e);
    }
    int rc = options_read(options, &o, &e);
    if (rc == 0) {
        rc = client_make(url, &o, &c, &e);
    }
    if (rc == 0) {
        rc = open_wait(c, o.connect_timeout_ns, &e);
        if (rc != 0) {
            c->closing = true;
            session_lost(c, &e);
            session_fail(c, &e);
            (void)pthread_mutex_destroy(&c->lock);
            client_destroy(c);
        }
    }
    if (rc != 0) {
        int shown = (int)strcspn(url, "?"); /* what follows may be a token, put there by mistake */
        (void)err_wrap(&e, "open %.*s", shown < 200 ? shown : 200, url);
        return error_report(rc, &e);
    }
    *ret_client = c;
    return 0;
}

/* ---- close --------------------------------------------------------------------------------- */

/* Sends BYE, the last request. An answer is not required. */
static void bye(struct gpud_client *c)
{
    struct msg_bye msg = {0};
    struct err e = ERR_INIT;
    uint64_t kept = c->timeout_ns;
    if (c->session.state == SESSION_READY) {
        c->timeout_ns = BYE_NS < kept ? BYE_NS : kept;
        (void)client_call_done(c, &schema_msg_bye, &msg, CALL_SEQUENCED, &schema_msg_done, &e);
        c->timeout_ns = kept;
    }
}

/* In a child of fork: memory and descriptors only; the lock may be held by a thread that does not
 * exist here. */
static void close_forked(struct gpud_client *c)
{
    struct err why = ERR_INIT;
    (void)err_set(&why, ERR_FORKED, "client was opened before fork");
    c->closing = true;
    c->event_cb = NULL;
    lane_drop(c);
    conn_drop(&c->conn);
    session_fail(c, &why);
    programs_finish(c);
    jobs_finish(c);
    client_destroy(c);
}

void gpud_close(gpud_client *client)
{
    struct err why = ERR_INIT;
    if (client == NULL) {
        return;
    }
    if (!origin_here(&client->origin)) {
        close_forked(client);
        return;
    }
    (void)pthread_mutex_lock(&client->lock);
    bye(client);
    (void)err_set(&why, ERR_CLOSED, "the client was closed");
    client->closing = true;
    session_lost(client, &why);
    session_fail(client, &why);
    client_callbacks(client);
    programs_finish(client);
    jobs_finish(client);
    (void)pthread_mutex_unlock(&client->lock);
    (void)pthread_mutex_destroy(&client->lock);
    client_destroy(client);
}

/* ---- loop ---------------------------------------------------------------------------------- */

int gpud_fd(const gpud_client *client)
{
    return client != NULL && origin_here(&client->origin) ? client->conn.user_fd : -1;
}

int gpud_dispatch(gpud_client *client)
{
    struct err e = ERR_INIT;
    int rc = client_enter(client, &e);
    if (rc == 0) {
        client_poll(client);
        client_callbacks(client);
        client_leave(client);
    }
    return error_report(rc, &e);
}

int gpud_set_event_cb(gpud_client *client, gpud_event_cb cb, void *user)
{
    struct err e = ERR_INIT;
    int rc = client_enter(client, &e);
    if (rc == 0) {
        client->event_cb = cb;
        client->event_user = user;
        client_leave(client);
    }
    return error_report(rc, &e);
}

struct flush {
    struct gpud_client *client;
    uint64_t until; /* order of the last job to wait for */
};

static bool flushed(void *arg)
{
    const struct flush *f = arg;
    for (const struct gpud_job *job = f->client->jobs; job != NULL; job = job->next) {
        if (job->state != JOB_ENDED && job->order <= f->until) {
            return false;
        }
    }
    return true;
}

int gpud_flush(gpud_client *client, uint64_t timeout_ns)
{
    struct err e = ERR_INIT;
    int rc = client_enter(client, &e);
    if (rc == 0) {
        struct flush f = {.client = client, .until = client->jobs_made};
        client_poll(client);
        rc = client_wait(client, flushed, &f, ns_add(clock_now_ns(), timeout_ns), &e);
        client_callbacks(client);
        client_leave(client);
    }
    return error_report(rc, &e);
}
