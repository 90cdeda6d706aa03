/* Whose session a HELLO gets: the kernel's word for local clients, a token for others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/front/model/request.h"
#include "daemon/front/model/sessions.h"
#include "daemon/front/requests/hello.h"
#include "daemon/front/requests/intake.h"
#include "daemon/front/requests/session_end.h"
#include "daemon/front/settings/tenant_tokens.h"
#include "proto/codec.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

static struct fake *k;
static uint32_t closed_pipe;
static int answered; /* the code of the last answer */
static char a_slot;  /* of a request; only its address counts */
static struct tenant_token tokens[3];
static struct tenant_rule sections[2];

static void on_reply(struct listener *l, struct listener_slot *slot, struct bytes message)
{
    struct msg_error m = {0};
    (void)l;
    (void)slot;
    bool error = proto_kind(message) == MSG_KIND_ERROR;
    ck_assert(!error || proto_decode(&schema_msg_error, message, &m, NULL) == 0);
    answered = error ? (int)m.code : 0;
}

static void on_drop(struct listener *l, struct listener_slot *slot)
{
    (void)l;
    (void)slot;
}

static void on_close_pipe(struct listener *l, uint32_t pipe)
{
    (void)l;
    closed_pipe = pipe;
}

/* Sections a (token-1 and token-2) and b (token-3, may load kernels). */
static void setup(void)
{
    static const char *const words[] = {"token-1", "token-2", "token-3"};
    k = fake_create();
    k->f.io.reply = on_reply;
    k->f.io.drop = on_drop;
    k->f.io.close_pipe = on_close_pipe;
    closed_pipe = 0;
    memset(sections, 0, sizeof sections);
    for (unsigned i = 0; i < 2; i++) {
        sections[i].limits = TENANT_UNLIMITED;
        sections[i].name[0] = (char)('a' + i);
    }
    sections[1].limits.load = TENANT_LOAD_YES;
    (void)snprintf(sections[0].socket.path, sizeof sections[0].socket.path, "/a.sock");
    (void)snprintf(sections[1].socket.path, sizeof sections[1].socket.path, "/b.sock");
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(token_hash_of(bytes_str(words[i]), &tokens[i].hash, NULL), 0);
        tokens[i].rule = i / 2;
    }
    k->f.rules = (struct tenant_rules){.rule = sections,
                                       .count = 2,
                                       .token = tokens,
                                       .token_count = 3,
                                       .others = TENANT_UNLIMITED};
}

static void teardown(void)
{
    while (k->f.sessions != NULL) {
        session_end(&k->f, k->f.sessions);
    }
    while (k->f.ending != NULL) {
        session_end_some(&k->f);
    }
    k->f.rules = (struct tenant_rules){.others = TENANT_UNLIMITED};
    fake_destroy(k);
}

/* The tenant of the session; "": refused with `code`. */
static const char *hello(uint8_t id, bool local, bool tls, const char *token, int code)
{
    uint8_t client_id[PROTO_CLIENT_ID_BYTES] = {id};
    struct session *s = NULL;
    struct capbuf out;
    struct err e = ERR_INIT;
    capbuf_init(&out, 4096);
    struct request r = {.peer = {.pipe = id, .local = local, .tls = tls, .uid = 1000},
                        .kind = MSG_KIND_HELLO};
    r.msg.hello = (struct msg_hello){.major = PROTO_MAJOR,
                                     .client_id = bytes_of(client_id, sizeof client_id),
                                     .name = bytes_str("caller"),
                                     .token = bytes_str(token)};
    int rc = session_hello(&k->f, &r, &out, &s, &e);
    capbuf_finish(&out);
    ck_assert_msg(rc == code, "%s", e.text);
    ck_assert(token[0] == '\0' || strstr(e.text, token) == NULL);
    return rc == 0 ? s->tenant->name : "";
}

START_TEST(a_token_names_the_tenant)
{
    ck_assert_str_eq(hello(1, false, true, "token-1", 0), "a");
    ck_assert_str_eq(hello(2, false, true, "token-3", 0), "b");
    ck_assert_str_eq(hello(3, false, false, "token-2", 0), "a");
    ck_assert_str_eq(hello(4, true, false, "token-2", 0), "uid:1000"); /* the kernel knows better */
    ck_assert_str_eq(hello(5, false, false, "", 0), "uid:4294967295");
    (void)hello(6, false, true, "", ERR_PERMISSION);
    (void)hello(6, false, true, "token-", ERR_PERMISSION);
    (void)hello(6, false, false, "token-4", ERR_PERMISSION);
    ck_assert_uint_eq(k->f.tokens_refused, 3);
}
END_TEST

START_TEST(a_session_is_not_for_the_token_of_another_tenant)
{
    (void)hello(1, false, true, "token-1", 0);
    ck_assert_str_eq(hello(1, false, true, "token-2", 0), "a");
    (void)hello(1, false, true, "token-3", ERR_PERMISSION);
    unsigned count = k->f.session_count;
    ck_assert_str_ne(hello(1, false, false, "", 0), "a"); /* nobody gets a session of his own */
    ck_assert_str_ne(hello(1, true, false, "", 0), "a");
    ck_assert_uint_eq(k->f.session_count, count + 2);
}
END_TEST

START_TEST(who_may_load_is_said_by_the_section)
{
    (void)hello(1, false, true, "token-1", 0);
    ck_assert(!rights_loads(&k->f.rights, sessions_find(&k->f, 1)));
    (void)hello(2, false, true, "token-3", 0);
    ck_assert(rights_loads(&k->f.rights, sessions_find(&k->f, 2)));
    (void)hello(3, false, false, "", 0);
    ck_assert(!rights_loads(&k->f.rights, sessions_find(&k->f, 3)));
    ck_assert(!rights_admin(&k->f.rights, sessions_find(&k->f, 2)));
}
END_TEST

START_TEST(connections_end_with_their_tokens)
{
    (void)hello(1, false, true, "token-1", 0);
    (void)hello(2, false, true, "token-2", 0);
    (void)hello(3, true, false, "token-1", 0);
    session_rules_changed(&k->f);
    ck_assert_uint_eq(closed_pipe, 0);
    tokens[1].rule = 1; /* of another tenant from now on */
    session_rules_changed(&k->f);
    ck_assert_uint_eq(closed_pipe, 2);
}
END_TEST

/* ---- sockets of tenants ---------------------------------------------------------------------- */

/* The session of a client that comes by the socket of a tenant ("": the one for all). */
static struct session *knock(uint8_t id, uint32_t pipe, const char *tenant, uint32_t uid, int code)
{
    uint8_t client_id[PROTO_CLIENT_ID_BYTES] = {id};
    struct session *s = NULL;
    struct capbuf out;
    struct err e = ERR_INIT;
    capbuf_init(&out, 4096);
    struct request r = {.peer = {.pipe = pipe,
                                 .local = true,
                                 .uid = uid,
                                 .listener = tenant[0] != '\0' ? tenant_socket_number(tenant) : 0},
                        .kind = MSG_KIND_HELLO};
    r.msg.hello = (struct msg_hello){.major = PROTO_MAJOR,
                                     .client_id = bytes_of(client_id, sizeof client_id),
                                     .token = bytes_str("token-3")};
    int rc = session_hello(&k->f, &r, &out, &s, &e);
    capbuf_finish(&out);
    ck_assert_msg(rc == code, "%s", e.text);
    return rc == 0 ? s : NULL;
}

/* FAULT other: clients of one id and uid come by the sockets of two tenants
 * required: each gets a session of its tenant, and sees nothing of the other
 * defence: `front/requests/hello.c`: identify_by_socket; `front/model/session.c`: session_key
 * mutants: socket-key, socket-tenant */
START_TEST(a_socket_names_the_tenant_whatever_the_user_is)
{
    struct session *common = knock(1, 1, "", 1000, 0);
    struct session *a = knock(1, 2, "a", 1000, 0);
    struct session *b = knock(1, 3, "b", 1000, 0);
    struct session *root = knock(1, 4, "b", 0, 0);
    ck_assert_str_eq(common->tenant->name, "uid:1000");
    ck_assert_str_eq(a->tenant->name, "a");
    ck_assert_str_eq(b->tenant->name, "b");
    ck_assert_str_eq(root->tenant->name, "b");
    ck_assert(common != a && a != b && b != root);
    ck_assert_ptr_eq(knock(1, 5, "a", 1000, 0), a); /* it comes back */
    ck_assert_ptr_eq(sessions_find(&k->f, 3), b);
    ck_assert_uint_eq(k->f.session_count, 4);
}
END_TEST

/* FAULT other: root of a container connects to the socket of its tenant
 * required: it has the rights of the tenant's section alone
 * defence: `front/model/rights.c`: belongs
 * mutants: socket-admin */
START_TEST(root_has_no_rights_by_the_socket_of_a_tenant)
{
    struct session *a = knock(1, 1, "a", 0, 0);
    struct session *b = knock(2, 2, "b", 0, 0);
    ck_assert(rights_admin(&k->f.rights, knock(3, 3, "", 0, 0)));
    ck_assert(!rights_admin(&k->f.rights, a));
    ck_assert(!rights_may(&k->f.rights, a, ROLE_RELOAD));
    ck_assert(!rights_loads(&k->f.rights, a) && rights_loads(&k->f.rights, b));
    ck_assert(!rights_sees(&k->f.rights, a, b->tenant));
    sections[0].limits.barred = true;
    (void)knock(4, 4, "a", 0, ERR_PERMISSION); /* root may always connect, but not here */
}
END_TEST

START_TEST(connections_end_with_their_sockets)
{
    (void)knock(1, 1, "a", 1000, 0);
    (void)knock(2, 2, "b", 1000, 0);
    (void)snprintf(sections[0].socket.path, sizeof sections[0].socket.path, "/elsewhere.sock");
    session_rules_changed(&k->f);
    ck_assert_uint_eq(closed_pipe, 0); /* they still belong to it */
    sections[1].socket.path[0] = '\0';
    session_rules_changed(&k->f);
    ck_assert_uint_eq(closed_pipe, 2);
    (void)knock(2, 3, "b", 1000, ERR_PERMISSION);
    (void)knock(3, 3, "c", 1000, ERR_PERMISSION);
}
END_TEST

START_TEST(records_keep_the_socket)
{
    const struct session *a = knock(1, 1, "a", 1000, 0);
    const struct session *common = knock(1, 2, "", 1000, 0);
    struct session_key again = session_key(a->key.client_id, session_user(&a->key));
    ck_assert_ptr_eq(session_find(k->f.sessions, &again), a);
    again = session_key(common->key.client_id, session_user(&common->key));
    ck_assert_ptr_eq(session_find(k->f.sessions, &again), common);
    ck_assert_uint_eq(session_user(&common->key), 1000); /* as in records of older daemons */
}
END_TEST

static int ask(unsigned kind, bool tls)
{
    struct request *r = calloc(1, sizeof *r);
    ck_assert_ptr_nonnull(r);
    r->slot = (struct listener_slot *)&a_slot;
    r->peer = (struct peer){.pipe = 77, .tls = tls};
    r->kind = kind;
    if (kind == MSG_KIND_QUERY) {
        r->msg.query.what = bytes_str("config");
    }
    answered = 1;
    intake_request(&k->f, r);
    return answered;
}

START_TEST(strangers_learn_nothing)
{
    ck_assert_int_eq(ask(MSG_KIND_PING, false), 0);
    ck_assert_int_eq(ask(MSG_KIND_PING, true), ERR_STATE);
    ck_assert_int_eq(ask(MSG_KIND_QUERY, true), ERR_STATE);
}
END_TEST

SUITE_MAIN_IN("identity", setup, teardown, a_token_names_the_tenant,
              a_session_is_not_for_the_token_of_another_tenant, who_may_load_is_said_by_the_section,
              connections_end_with_their_tokens, a_socket_names_the_tenant_whatever_the_user_is,
              root_has_no_rights_by_the_socket_of_a_tenant, connections_end_with_their_sockets,
              records_keep_the_socket, strangers_learn_nothing)
