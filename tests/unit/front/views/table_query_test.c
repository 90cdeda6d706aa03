/* Long tables: tenants that wait for them take turns. */
#include <stdlib.h>
#include <string.h>

#include "daemon/front/model/request.h"
#include "daemon/front/model/sessions.h"
#include "daemon/front/views/table_query.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

#define FLOOD 1000u

static struct fake *k;
static const void *answered[FLOOD + 2]; /* slots, in order */
static unsigned answers;

static void on_reply(struct listener *l, struct listener_slot *slot, struct bytes message)
{
    (void)l;
    (void)message;
    answered[answers++] = slot;
}

/* false: it was answered at once. */
static bool ask(struct session *s, unsigned number)
{
    struct capbuf out;
    struct err e = ERR_INIT;
    struct request *r = calloc(1, sizeof *r);
    ck_assert_ptr_nonnull(r);
    r->kind = MSG_KIND_QUERY;
    r->slot = (struct listener_slot *)(uintptr_t)number;
    r->msg.query.what = bytes_str("jobs");
    capbuf_init(&out, PROTO_MESSAGE_MAX);
    struct request_context c = {.f = &k->f, .s = s, .r = r, .out = &out};
    ck_assert_msg(request_query(&c, &e) == 0, "%s", e.text);
    bool waits = c.r == NULL;
    request_destroy(c.r);
    capbuf_finish(&out);
    return waits;
}

START_TEST(a_flood_delays_another_tenant_by_one_table)
{
    struct session_key key;
    memset(&key, 7, sizeof key);
    k = fake_create();
    k->f.io.reply = on_reply;
    struct tenant *t = tenant_obtain(&k->f.tenants, 1001);
    struct session *other = session_create(&key, t, 2);
    ck_assert_ptr_nonnull(other);
    k->f.work.done = 10; /* of this turn nothing is left */
    k->f.work.budget = 10;
    for (unsigned i = 1; i <= FLOOD; i++) {
        ck_assert(ask(k->session, i));
    }
    ck_assert(ask(other, FLOOD + 1));
    ck_assert(ask(other, FLOOD + 2));
    k->f.work.budget = 0;
    table_queries_run(&k->f);
    ck_assert_uint_eq(answers, FLOOD + 2);
    ck_assert_ptr_eq(answered[0], (void *)1);
    unsigned at = 0;
    for (unsigned i = 1; i < 5; i++) {
        at += answered[i] == (void *)(uintptr_t)(FLOOD + 1) ||
              answered[i] == (void *)(uintptr_t)(FLOOD + 2);
    }
    ck_assert_uint_eq(at, 2);
    ck_assert_ptr_eq(answered[FLOOD + 1], (void *)(uintptr_t)FLOOD);
    session_destroy(other);
    fake_destroy(k);
}
END_TEST

SUITE_MAIN("table_query", a_flood_delays_another_tenant_by_one_table)
