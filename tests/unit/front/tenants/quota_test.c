/* What workers are told of tenants, with the test as their links (front_io). */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/front/tenants/budget.h"
#include "daemon/front/tenants/forget.h"
#include "daemon/front/tenants/tenant_quota.h"
#include "daemon/front/views/diagnosis.h"
#include "daemon/front/workers/lease.h"
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
static struct msg_f_budget budget[4]; /* in order */
static unsigned before[4];            /* `count` when it was sent */
static unsigned budgets;

static int on_send(struct link *l, const struct schema *schema, const void *msg,
                   const struct frame_fds *fds, struct err *e)
{
    (void)fds;
    (void)e;
    ck_assert_ptr_eq(l, k->device[0].link);
    if (schema == &schema_msg_f_budget) {
        ck_assert_uint_lt(budgets, 4);
        before[budgets] = count;
        budget[budgets++] = *(const struct msg_f_budget *)msg;
        return 0;
    }
    ck_assert_ptr_eq(schema, &schema_msg_f_tenant);
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

static uint64_t memory_max; /* of the settings that are read */

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
    int rc = quota_rules(&k->f, &r, memory_max, NULL);
    tenant_rules_finish(&r);
    return rc;
}

static struct device *begin(enum device_state state)
{
    k = fake_create();
    k->f.io.send = on_send;
    count = budgets = 0;
    memory_max = 0;
    struct device *d = &k->device[0];
    d->state = state;
    d->progress = WORKER_UP;
    d->memory = d->pool_limit = d->pool_default = d->budget = 16 * MIB;
    d->stay = device_stay(d->pool_limit, k->f.config.stay_percent);
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
    ck_assert_int_eq(rules(10 * MIB, 2 * MIB), 0);
    ck_assert_uint_eq(count, 0);
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
    ck_assert_int_eq(quota_rules(&k->f, &others, 0, NULL), 0);
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
    ck_assert_int_eq(quota_rules(&k->f, &none, 0, NULL), 0);
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
    tenant_charge(a, 0, 10 * MIB, 0);
    d->buffer_bytes = 10 * MIB;
    ck_assert_uint_eq(quota_room(&k->f, d, k->tenant), 4 * MIB);
    ck_assert_int_eq(rules(0, 0), 0);
    ck_assert_uint_eq(quota_room(&k->f, d, k->tenant), 6 * MIB);
    finish();
}
END_TEST

/* As a reload does it. */
static int reload(struct device *d, uint64_t max, uint64_t a, uint64_t b)
{
    count = budgets = 0;
    memory_max = max;
    int rc = rules(a, b);
    if (rc == 0) {
        k->f.config.device_memory_max = max;
        budget_settle(&k->f, d);
    }
    return rc;
}

/* More memory comes before more guarantees, and less after fewer. */
START_TEST(a_budget_is_never_below_what_is_guaranteed)
{
    struct device *d = begin(DEVICE_READY);
    k->f.config.recall_ms = 123;
    k->f.config.stay_percent = 50;
    d->pool_limit = d->budget = d->pool_default = 8 * MIB;
    d->stay = device_stay(8 * MIB, 50);
    ck_assert_int_eq(rules(4 * MIB, 2 * MIB), 0);
    ck_assert(quota_open(&k->f, d));
    ck_assert_uint_eq(budgets, 0); /* it is what the worker has */
    ck_assert_int_eq(reload(d, 12 * MIB, 8 * MIB, 2 * MIB), 0);
    ck_assert_uint_eq(budgets, 1);
    ck_assert_uint_eq(before[0], 0);
    ck_assert_uint_eq(budget[0].limit, 12 * MIB);
    ck_assert_uint_eq(budget[0].deadline_ms, 123);
    ck_assert_uint_eq(budget[0].stay, device_stay(12 * MIB, 50));
    ck_assert_int_eq(reload(d, 6 * MIB, 2 * MIB, 2 * MIB), 0);
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(budgets, 1);
    ck_assert_uint_eq(before[0], 2);
    ck_assert_uint_eq(budget[0].limit, 6 * MIB);
    ck_assert_uint_eq(device_pool_limit(d), 6 * MIB);
    ck_assert_int_eq(reload(d, 3 * MIB, 2 * MIB, 2 * MIB), ERR_LIMIT);
    ck_assert_uint_eq(count + budgets, 0);
    ck_assert_uint_eq(device_pool_limit(d), 6 * MIB);
    ck_assert_int_eq(reload(d, 0, 2 * MIB, 2 * MIB), 0); /* as it takes by itself */
    ck_assert_uint_eq(budget[0].limit, 8 * MIB);
    ck_assert_int_eq(reload(d, 99 * MIB, 2 * MIB, 2 * MIB), 0); /* at most what the device has */
    ck_assert_uint_eq(budget[0].limit, 16 * MIB);
    finish();
}
END_TEST

/* A front that starts with a lower device_memory_max takes domains over that have more. */
START_TEST(a_budget_is_a_limit_whatever_domains_have)
{
    struct device *d = begin(DEVICE_READY);
    k->f.config.device_memory_max = 8 * MIB;
    d->granted = 12 * MIB;
    ck_assert(quota_open(&k->f, d));
    ck_assert_uint_eq(budgets, 1);
    ck_assert_uint_eq(budget[0].limit, lease_floor(8 * MIB, 0));
    ck_assert_uint_gt(budget[0].limit, 0);
    d->granted = 2 * MIB; /* they have ended */
    ck_assert_uint_eq(budget_of(d, 8 * MIB), 6 * MIB);
    ck_assert_uint_eq(budget_of(d, MIB), MIB); /* never more than there is */
    finish();
}
END_TEST

/* The former budget remains, and shares of it count from that. */
START_TEST(a_budget_that_a_worker_refuses_is_seen)
{
    char text[512];
    struct device *d = begin(DEVICE_READY);
    struct tenant_rules half = {.others = TENANT_UNLIMITED};
    half.others.hard = (struct amount){.percent = 50};
    ck_assert_int_eq(quota_rules(&k->f, &half, 0, NULL), 0);
    ck_assert(quota_open(&k->f, d));
    ck_assert_uint_eq(hard, 8 * MIB);
    d->pool_limit = 4 * MIB;
    budget_settle(&k->f, d);
    ck_assert_uint_eq(budgets, 1);
    const struct msg_w_budget no = {.asked = 4 * MIB,
                                    .limit = 16 * MIB,
                                    .code = ERR_LIMIT,
                                    .text = bytes_str("10 bytes are exported")};
    struct msg_w_budget late = no;
    late.asked = 5 * MIB;
    quota_budget(&k->f, d, &late); /* the answer to an earlier budget */
    ck_assert_uint_eq(device_pool_limit(d), 4 * MIB);
    quota_budget(&k->f, d, &no);
    ck_assert_uint_eq(device_pool_limit(d), 16 * MIB);
    ck_assert_uint_eq(hard, 8 * MIB);
    diagnosis_text(&k->f, text, sizeof text);
    ck_assert_ptr_nonnull(
        strstr(text, "its memory stays at 16777216 bytes: 10 bytes are exported"));
    const struct msg_w_budget yes = {
        .asked = 16 * MIB, .limit = 16 * MIB, .size = 17 * MIB, .missing = MIB};
    quota_budget(&k->f, d, &yes);
    ck_assert_uint_eq(d->pool.missing, MIB);
    finish();
}
END_TEST

SUITE_MAIN("quota", a_budget_is_never_below_what_is_guaranteed,
           a_budget_is_a_limit_whatever_domains_have, a_budget_that_a_worker_refuses_is_seen,
           one_that_is_taken_over_is_told_once_it_is_known, what_shrinks_is_told_first,
           what_a_worker_refuses_is_seen, a_device_is_tried_again_when_its_worker_has_ended,
           room_is_less_what_is_kept_for_others, who_is_forgotten_has_no_limit_any_more)
