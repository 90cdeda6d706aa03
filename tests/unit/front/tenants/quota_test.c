/* What workers are told of tenants, with the test as their links (front_io). */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/front/tenants/forget.h"
#include "daemon/front/tenants/tenant_quota.h"
#include "daemon/front/views/diagnosis.h"
#include "daemon/front/workers/link.h"
#include "daemon/front/workers/worker.h"
#include "proto/codec.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

#define MIB (UINT64_C(1) << 20)

static struct fake *k;
static uint64_t told[16]; /* guaranteed, in order */
static uint64_t hard;     /* as told last */
static unsigned count;

static int on_send(struct link *l, const struct schema *schema, const void *msg,
                   const struct frame_fds *fds, struct err *e)
{
    (void)fds;
    (void)e;
    ck_assert_ptr_eq(schema, &schema_msg_f_tenant);
    ck_assert_ptr_eq(l, k->device[0].link);
    ck_assert_uint_lt(count, 16);
    told[count++] = ((const struct msg_f_tenant *)msg)->guaranteed;
    hard = ((const struct msg_f_tenant *)msg)->hard;
    return 0;
}

static void lost(struct front *f, struct device *d, bool external, const char *why)
{
    (void)f;
    (void)d;
    (void)external;
    (void)why;
}

/* a and b are guaranteed so much. */
static int rules(uint64_t a, uint64_t b)
{
    struct tenant_rules r = {.others = TENANT_UNLIMITED, .count = 2};
    r.rule = calloc(2, sizeof *r.rule);
    ck_assert_ptr_nonnull(r.rule);
    for (unsigned i = 0; i < 2; i++) {
        r.rule[i].limits = TENANT_UNLIMITED;
        r.rule[i].limits.guaranteed.bytes = i == 0 ? a : b;
        r.rule[i].name[0] = i == 0 ? 'a' : 'b';
    }
    int rc = quota_rules(&k->f, &r, NULL);
    tenant_rules_finish(&r);
    return rc;
}

static struct device *begin(enum device_state state)
{
    k = fake_create();
    k->f.io.send = on_send;
    count = 0;
    struct device *d = &k->device[0];
    d->state = state;
    d->progress = WORKER_UP;
    d->memory = 16 * MIB;
    return d;
}

static void finish(void)
{
    tenant_rules_finish(&k->f.rules);
    fake_destroy(k);
}

/* A worker that is taken over hears nothing before it has said what it is: it forgets then. */
START_TEST(one_that_is_taken_over_is_told_once_it_is_known)
{
    struct device *d = begin(DEVICE_ADOPTING);
    d->memory = 0;
    ck_assert_int_eq(rules(10 * MIB, 2 * MIB), 0);
    ck_assert_uint_eq(count, 0);
    d->memory = 16 * MIB;
    ck_assert(quota_open(&k->f, d));
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(told[0] + told[1], 12 * MIB);
    d->epoch++; /* another one */
    ck_assert_int_eq(rules(1 * MIB, 2 * MIB), 0);
    ck_assert_uint_eq(count, 2);
    finish();
}
END_TEST

START_TEST(what_shrinks_is_told_first)
{
    struct device *d = begin(DEVICE_READY);
    ck_assert_int_eq(rules(10 * MIB, 2 * MIB), 0);
    ck_assert(quota_open(&k->f, d));
    for (unsigned i = 0; i < 4; i++) {
        count = 0;
        ck_assert_int_eq(i % 2 == 0 ? rules(2 * MIB, 14 * MIB) : rules(14 * MIB, 2 * MIB), 0);
        ck_assert_uint_eq(count, 2);
        ck_assert_uint_eq(told[0], 2 * MIB);
        ck_assert_uint_eq(told[1], 14 * MIB);
    }
    finish();
}
END_TEST

/* A worker that does not keep to something is a problem until it is told anew. */
START_TEST(what_a_worker_refuses_is_seen)
{
    char text[256];
    struct device *d = begin(DEVICE_READY);
    ck_assert_int_eq(rules(10 * MIB, 2 * MIB), 0);
    ck_assert(quota_open(&k->f, d));
    struct tenant *a = quota_tenant(&k->f, "a");
    ck_assert_uint_eq(a->use[0].kept, 10 * MIB);
    const struct msg_w_tenant_refused m = {
        .tenant = tenant_key(a), .code = ERR_LIMIT, .text = bytes_str("too much")};
    quota_refused(&k->f, d, &m);
    ck_assert_uint_eq(a->use[0].kept, 0);
    diagnosis_text(&k->f, text, sizeof text);
    ck_assert_str_eq(text, "device 0 does not enforce all limits: limits of tenant a: too much");
    count = 0;
    ck_assert_int_eq(rules(10 * MIB, 2 * MIB), 0); /* the same: told again */
    ck_assert_uint_eq(count, 2);
    diagnosis_text(&k->f, text, sizeof text);
    ck_assert_str_eq(text, "");
    finish();
}
END_TEST

/* When it is back, the settings limit it no more: it would be told nothing then. */
START_TEST(who_is_forgotten_has_no_limit_any_more)
{
    struct device *d = begin(DEVICE_READY);
    struct tenant_rules others = {.others = TENANT_UNLIMITED};
    others.others.hard.bytes = MIB;
    ck_assert_int_eq(quota_rules(&k->f, &others, NULL), 0);
    ck_assert(quota_open(&k->f, d));
    k->tenant->sessions++;
    count = 0;
    struct tenant *t = quota_tenant(&k->f, "uid:7001");
    ck_assert_ptr_nonnull(t);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(hard, MIB);
    forget_later(&k->f, t);
    forget_tenants(&k->f, t->left_ns + TENANT_KEPT_NS);
    ck_assert_ptr_null(tenant_find(k->f.tenants, tenant_key_of("uid:7001")));
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(hard, UINT64_MAX);
    struct tenant_rules none = {.others = TENANT_UNLIMITED};
    ck_assert_int_eq(quota_rules(&k->f, &none, NULL), 0);
    count = 0;
    ck_assert_ptr_nonnull(quota_tenant(&k->f, "uid:7001"));
    ck_assert_uint_eq(count, 0);
    finish();
}
END_TEST

/* It could not keep what is guaranteed, and was still being ended when the settings changed. */
START_TEST(a_device_is_tried_again_when_its_worker_has_ended)
{
    struct device *d = begin(DEVICE_ABSENT);
    d->overpromised = true;
    d->link = NULL; /* there is none to read on */
    d->worker = 5;
    k->f.next_worker = 6;
    k->f.hooks.guarantees_retry = quota_retry;
    k->f.hooks.worker_lost = lost;
    ck_assert_int_eq(rules(10 * MIB, 2 * MIB), 0);
    quota_retry(&k->f);
    ck_assert_int_eq(d->state, DEVICE_ABSENT);
    ck_assert(worker_ended(&k->f, 5, SIGKILL));
    ck_assert_int_eq(d->state, DEVICE_WAITING);
    d->state = DEVICE_ABSENT;
    ck_assert_int_eq(rules(10 * MIB, 7 * MIB), 0); /* no device is open to refuse it */
    d->worker = 6;
    ck_assert(worker_ended(&k->f, 6, SIGKILL));
    ck_assert_int_eq(d->state, DEVICE_ABSENT);
    ck_assert_ptr_nonnull(strstr(d->reason, "17825792 bytes are guaranteed"));
    finish();
}
END_TEST

/* Guarantees of others leave less, whoever else there is. */
START_TEST(room_is_less_what_is_kept_for_others)
{
    struct device *d = begin(DEVICE_READY);
    ck_assert_int_eq(rules(10 * MIB, 2 * MIB), 0);
    ck_assert(quota_open(&k->f, d));
    struct tenant *a = quota_tenant(&k->f, "a");
    ck_assert_uint_eq(quota_room(&k->f, d, k->tenant), 4 * MIB);
    ck_assert_uint_eq(quota_room(&k->f, d, a), 14 * MIB);
    tenant_charge(a, 0, 10 * MIB);
    d->buffer_bytes = 10 * MIB;
    ck_assert_uint_eq(quota_room(&k->f, d, k->tenant), 4 * MIB);
    ck_assert_int_eq(rules(0, 0), 0);
    ck_assert_uint_eq(quota_room(&k->f, d, k->tenant), 6 * MIB);
    finish();
}
END_TEST

SUITE_MAIN("quota", one_that_is_taken_over_is_told_once_it_is_known, what_shrinks_is_told_first,
           what_a_worker_refuses_is_seen, a_device_is_tried_again_when_its_worker_has_ended,
           room_is_less_what_is_kept_for_others, who_is_forgotten_has_no_limit_any_more)
