#include "daemon/front/requests/hello.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/front/clients/listener.h"
#include "daemon/front/clients/processes.h"
#include "daemon/front/clients/shm.h"
#include "daemon/front/model/early.h"
#include "daemon/front/model/op.h"
#include "daemon/front/model/request.h"
#include "daemon/front/model/sessions.h"
#include "daemon/front/requests/session_end.h"
#include "daemon/front/requests/sweep.h"
#include "daemon/front/settings/tenant_tokens.h"
#include "daemon/front/tenants/forecast_file.h"
#include "daemon/front/tenants/forget.h"
#include "daemon/front/tenants/tenant_quota.h"
#include "proto/codec.h"

#define REFUSED_LOG_NS (10 * NS_PER_S) /* between two lines of the log about refused tokens */

/* The session and the tenant that a HELLO is for. */
struct identity {
    struct session_key key;
    char tenant[PROTO_NAME_MAX + 1];
    bool by_token;
    struct token_hash token; /* valid if by_token */
};

static void watch_process(struct front *f, struct session *s, pid_t pid)
{
    if (s->client.pidfd >= 0) {
        processes_forget(f->processes, s->client.pidfd);
        (void)close(s->client.pidfd);
    }
    s->client.pid = pid;
    s->client.pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    if (s->client.pidfd >= 0) {
        processes_watch(f->processes, s->client.pidfd, s);
    }
}

/* The client has answers that an earlier front gave. Adopted workers may still have jobs of those
 * numbers; sweep_left forgets their answers, because no ack will name them again. */
static void resume(struct front *f, struct session *s, uint64_t first, const struct ack_set *acked)
{
    s->order.expect = first > 0 ? first : 1;
    s->order.acked = s->order.expect - 1;
    s->order.resumed = s->order.expect;
    ack_set_finish(&s->order.before);
    s->order.before = *acked;
    turn_count(f, session_skip(s, true));
    sweep_left(f, s);
}

static int welcome(struct front *f, const struct session *s, bool resumed, struct capbuf *out,
                   struct err *e)
{
    struct msg_welcome w = {
        .major = PROTO_MAJOR,
        .minor = PROTO_MINOR,
        .daemon_id = bytes_of(f->daemon_id, sizeof f->daemon_id),
        .resumed = resumed,
        .expect = s->order.expect,
        .max_message = PROTO_MESSAGE_MAX,
        .max_inflight = f->config.session_inflight_max,
        .max_reorder = REORDER_MAX,
        .linger_ns = f->config.session_linger_ms * NS_PER_MS,
        .build = bytes_str(f->build),
        .tenant = bytes_str(s->tenant->name),
        .may_load = rights_loads(&f->rights, s),
        .session = s->id,
        .shm =
            bytes_str(s->client.local && f->shm != NULL ? shm_path(f->shm, s->key.listener) : ""),
        .max_arena = s->client.local && f->shm != NULL ? f->config.session_arena_bytes : 0,
        .max_unacked = OPS_MAX,
        .max_kept = f->config.keep_results_bytes,
        .max_early = EARLY_BYTES,
        .max_buffers = f->config.buffers_max,
        .max_arenas = f->config.arenas_max,
        .max_modules = MODULES_MAX,
        .max_programs = PROGRAMS_MAX,
        .max_requests = config_requests_max(&f->config),
        .lineage = f->lineage,
        .up_ns = front_now(f) - f->started_ns,
    };
    return proto_encode(&schema_msg_welcome, &w, out, e);
}

static int check_hello(const struct request *r, struct err *e)
{
    const struct msg_hello *m = &r->msg.hello;
    if (m->major != PROTO_MAJOR) {
        return err_set(e, ERR_VERSION, "client speaks protocol %llu.%llu, the daemon %d.%d",
                       (unsigned long long)m->major, (unsigned long long)m->minor, PROTO_MAJOR,
                       PROTO_MINOR);
    }
    if (m->client_id.size != PROTO_CLIENT_ID_BYTES) {
        return err_set(e, ERR_PROTOCOL, "client id of %zu bytes, %u are needed", m->client_id.size,
                       PROTO_CLIENT_ID_BYTES);
    }
    return 0;
}

/* Logs refused tokens, never the tokens themselves. */
static int refuse_token(struct front *f, const char *text, struct err *e)
{
    uint64_t now = front_now(f);
    f->tokens_refused++;
    if (f->token_logged_ns == 0 || now >= ns_add(f->token_logged_ns, REFUSED_LOG_NS)) {
        f->token_logged_ns = now;
        log_say(LOG_CLIENT_REFUSED, "a client over tcp was refused: %s (%llu so far)", text,
                (unsigned long long)f->tokens_refused);
    }
    return err_set(e, ERR_PERMISSION, "%s", text);
}

static int identify_by_token(struct front *f, const struct msg_hello *m, struct identity *who,
                             struct err *e)
{
    const struct tenant_rule *rule = tenant_tokens_find(&f->rules, m->token, &who->token);
    if (rule == NULL) {
        return refuse_token(f, "the token is not, or no longer, one of a tenant here", e);
    }
    who->by_token = true;
    who->key = session_key(m->client_id.data, TOKEN_UID);
    (void)snprintf(who->tenant, sizeof who->tenant, "%s", rule->name);
    return 0;
}

/* A client on the socket of a tenant belongs to it, whatever its uid. A reload may have
 * removed the socket. */
static int identify_by_socket(struct front *f, const struct request *r, struct identity *who,
                              struct err *e)
{
    const struct tenant_rule *rule = tenant_rules_socket(&f->rules, r->peer.listener);
    if (rule == NULL) {
        return err_set(e, ERR_PERMISSION, "this socket is of no tenant any more");
    }
    who->key =
        session_key(r->msg.hello.client_id.data, (uint64_t)r->peer.listener << 32 | r->peer.uid);
    (void)snprintf(who->tenant, sizeof who->tenant, "%s", rule->name);
    return 0;
}

/* The kernel vouches for local clients, whose tokens are ignored. A client by tcp has the
 * tenant of its token. Without a token it is anonymous, and may connect by loopback only. */
static int identify(struct front *f, const struct request *r, struct identity *who, struct err *e)
{
    const struct msg_hello *m = &r->msg.hello;
    const struct tenant_peer peer = {.uid = r->peer.local ? r->peer.uid : REMOTE_UID,
                                     .gid = r->peer.gid,
                                     .local = r->peer.local};
    if (r->peer.listener != 0) {
        return identify_by_socket(f, r, who, e);
    }
    if (!r->peer.local && m->token.size > 0) {
        return identify_by_token(f, m, who, e);
    }
    if (r->peer.tls) {
        return refuse_token(
            f,
            "clients over tls+tcp:// need a token (GPUD_TOKEN_FILE, or the token of "
            "gpud_options)",
            e);
    }
    who->key = session_key(m->client_id.data, peer.uid);
    quota_name(f, &peer, who->tenant);
    return 0;
}

/* The default limit for sessions of one tenant, so that a user cannot take the room of all
 * others. */
static uint64_t user_room(const struct config *c)
{
    uint64_t room = c->sessions_max - c->sessions_max / 4;
    return c->user_sessions_max > 0 ? c->user_sessions_max : room;
}

static bool is_admin(const struct front *f, const struct peer *p)
{
    return p->local && p->listener == 0 && members_have(&f->rights.admins, p->uid, p->gid);
}

/* Administrators may have sessions beyond the limits. */
static uint64_t reserve_of(const struct front *f, const struct peer *p)
{
    return is_admin(f, p) ? KEEPERS_RESERVE : 0;
}

static int check_room(const struct front *f, const struct peer *p, const char *tenant,
                      struct err *e)
{
    uint64_t reserve = reserve_of(f, p);
    const struct tenant *t = tenant_find(f->tenants, tenant_key_of(tenant));
    uint64_t most =
        t != NULL && t->limits.sessions > 0 ? t->limits.sessions : user_room(&f->config);
    int rc = 0;
    if (f->session_count >= f->config.sessions_max + reserve) {
        rc = err_set(e, ERR_BUSY, "%u sessions are open, at most %llu", f->session_count,
                     (unsigned long long)f->config.sessions_max);
    } else if (t != NULL && t->sessions >= most + reserve) {
        rc = err_set(e, ERR_BUSY, "%u sessions of tenant %s are open, at most %llu (%s)",
                     t->sessions, tenant, (unsigned long long)most,
                     t->limits.sessions > 0 ? "sessions_max of its section" : "user_sessions_max");
    }
    if (rc != 0 && e != NULL) {
        e->retry_after_ns = NS_PER_S;
    }
    return rc;
}

/* Ties the session to the connection. A connection may send HELLO again with another client id, as
 * after a fork: its old session lingers. A client may be back before the end of its old connection
 * is noticed: the old connection loses the session. */
static int tie(struct front *f, struct session *s, const struct request *r,
               const struct identity *who, struct err *e)
{
    struct session *before = sessions_find(f, r->peer.pipe);
    if (before != NULL && before != s) {
        session_disconnected(f, r->peer.pipe);
    }
    if (s->state == SESSION_CONNECTED && s->pipe != r->peer.pipe) {
        session_disconnected(f, s->pipe);
    }
    if (s->events.wait != NULL) {
        f->io.drop(f->listener, s->events.wait);
        s->events.wait = NULL;
    }
    s->client.local = r->peer.local;
    s->client.by_token = who->by_token;
    s->client.token = who->token;
    s->client.minor = r->msg.hello.minor;
    s->client.gid = r->peer.gid;
    if (!session_connect(f, s, r->peer.pipe)) {
        return err_set(e, ERR_NOMEM, "no memory for the session's connection");
    }
    if (r->peer.local) {
        watch_process(f, s, r->peer.pid);
    }
    (void)bytes_to_str(r->msg.hello.name, s->name, sizeof s->name);
    quota_place(f, s);
    s->tenant->may_load = rights_loads(&f->rights, s);
    return 0;
}

/* Administrators may always connect: they may have to correct the settings. */
static int check_barred(const struct front *f, const struct peer *p, const char *tenant,
                        struct err *e)
{
    if (is_admin(f, p) || !tenant_rules_limits(&f->rules, tenant)->barred) {
        return 0;
    }
    const char *section = tenant_rules_named(&f->rules, tenant) != NULL ? tenant : TENANT_OTHERS;
    return err_set(e, ERR_PERMISSION,
                   "tenant %s may not connect: section [tenant %s] has connect = no%s", tenant,
                   section, section == tenant ? "" : ", and no other section names this user");
}

static int find_tenant(struct front *f, const char *name, struct tenant **ret_tenant, struct err *e)
{
    struct tenant *t = quota_tenant(f, name);
    if (t != NULL) {
        forecast_file_give(f->forecasts, t);
        *ret_tenant = t;
        return 0;
    }
    if (HASH_COUNT(f->tenants) < TENANTS_MAX) {
        return err_set(e, ERR_NOMEM, "no memory for tenant %s", name);
    }
    int rc = err_set(e, ERR_BUSY,
                     "%u tenants are active, the most possible: tenant %s can connect when one of "
                     "them has freed everything",
                     TENANTS_MAX, name);
    if (e != NULL) {
        e->retry_after_ns = TENANT_ROOM_NS;
    }
    return rc;
}

/* A client id is no proof of belonging to the tenant whose session has it. */
static int check_owner(const struct session *s, const struct identity *who, struct err *e)
{
    return !who->by_token || strcmp(s->tenant->name, who->tenant) == 0
               ? 0
               : err_set(e, ERR_PERMISSION, "the token is of tenant %s, the session of another one",
                         who->tenant);
}

/* An existing session needs no room. */
static int make_room(struct front *f, const struct request *r, const char *tenant,
                     struct tenant **ret_tenant, struct err *e)
{
    int rc = check_barred(f, &r->peer, tenant, e);
    rc = rc == 0 ? check_room(f, &r->peer, tenant, e) : rc;
    return rc == 0 ? find_tenant(f, tenant, ret_tenant, e) : rc;
}

/* A new session ends if there is no memory for its answer. Otherwise the next HELLO would resume a
 * session that its client does not know. */
static int admit(struct front *f, struct session *s, const struct request *r,
                 const struct identity *who, bool known, struct capbuf *out,
                 struct session **ret_session, struct err *e)
{
    int rc = tie(f, s, r, who, e);
    rc = rc == 0 ? welcome(f, s, known, out, e) : rc;
    if (rc == 0) {
        *ret_session = s;
    } else if (!known) {
        session_end(f, s);
    }
    return rc;
}

/* A kernel cannot change the user or the group of its worker. */
static bool runs_kernels(const struct front *f, const struct request *r)
{
    return r->peer.local && ((f->worker_uid != 0 && r->peer.uid == f->worker_uid) ||
                             (f->worker_gid != 0 && r->peer.gid == f->worker_gid));
}

int session_hello(struct front *f, const struct request *r, struct capbuf *out,
                  struct session **ret_session, struct err *e)
{
    const struct msg_hello *m = &r->msg.hello;
    int rc = check_hello(r, e);
    if (rc != 0) {
        return rc;
    }
    if (runs_kernels(f, r)) {
        return err_set(e, ERR_PERMISSION, "user %u runs the kernels of workers and may not connect",
                       (unsigned)r->peer.uid);
    }
    struct identity who = {.by_token = false};
    rc = identify(f, r, &who, e);
    if (rc != 0) {
        return rc;
    }
    struct session *s = session_find(f->sessions, &who.key);
    struct tenant *t = NULL;
    bool known = s != NULL;
    rc = known ? check_owner(s, &who, e) : make_room(f, r, who.tenant, &t, e);
    if (rc != 0) {
        return rc;
    }
    struct ack_set acked = {0};
    rc = ack_set_read(m->taken, &acked, e);
    if (rc != 0) {
        return rc;
    }
    s = known ? s : sessions_obtain(f, &who.key, t);
    if (s == NULL) {
        ack_set_finish(&acked);
        return err_set(e, ERR_NOMEM, "no memory for a session");
    }
    if (s->order.fresh) {
        resume(f, s, m->resume, &acked);
    } else {
        ack_set_finish(&acked);
    }
    return admit(f, s, r, &who, known, out, ret_session, e);
}

/* Do the settings no longer have what named the session's tenant? */
static bool revoked(const struct front *f, const struct session *s)
{
    bool token =
        s->client.by_token && !tenant_tokens_have(&f->rules, s->tenant->name, &s->client.token);
    return token ||
           (s->key.listener != 0 && tenant_rules_socket(&f->rules, s->key.listener) == NULL);
}

void session_rules_changed(struct front *f)
{
    unsigned count = 0;
    for (struct session *s = f->sessions; s != NULL; s = s->hh.next) {
        bool out = revoked(f, s);
        if (out && s->state == SESSION_CONNECTED) {
            f->io.close_pipe(f->listener, s->pipe);
            count++;
        }
    }
    if (count > 0) {
        log_say(LOG_CLIENTS_ENDED,
                "%u connections are closed, because their tokens or sockets are no longer valid",
                count);
    }
}
