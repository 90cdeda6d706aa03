/* Tenants that nobody needs any more go; whatever is somebody's keeps its tenant. */
#include <stdio.h>
#include <string.h>

#include "daemon/front/due.h"
#include "daemon/front/forget.h"
#include "daemon/front/tenant_quota.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

static struct fake *k;

static struct tenant *comes(const char *name)
{
    struct tenant *t = quota_tenant(&k->f, name);
    ck_assert_ptr_nonnull(t);
    t->sessions++;
    return t;
}

static void leaves(struct tenant *t)
{
    t->sessions--;
    forget_later(&k->f, t);
}

static bool there(const char *name)
{
    return tenant_find(k->f.tenants, tenant_key_of(name)) != NULL;
}

static void begin(void)
{
    k = fake_create();
    k->tenant->sessions++; /* its session was made by hand */
}

START_TEST(who_left_is_forgotten_after_a_while)
{
    begin();
    struct tenant *t = comes("uid:7001");
    struct tenant *stays = comes("uid:7002");
    k->f.due_ns = NS_NEVER;
    leaves(t);
    uint64_t left = t->left_ns;
    ck_assert_uint_eq(k->f.due_ns, left + TENANT_KEPT_NS);
    forget_tenants(&k->f, left + TENANT_KEPT_NS - 1);
    ck_assert(there("uid:7001"));
    forget_tenants(&k->f, left + TENANT_KEPT_NS);
    ck_assert(!there("uid:7001"));
    ck_assert(there("uid:7002"));
    stays->sessions--;
    forget_later(&k->f, stays);
    (void)comes("uid:7002"); /* who is back in time is not */
    forget_tenants(&k->f, stays->left_ns + 2 * TENANT_KEPT_NS);
    ck_assert(there("uid:7002"));
    ck_assert_uint_eq(k->f.forget_ns, 0); /* nothing is looked at while all are here */
    fake_destroy(k);
}
END_TEST

enum { RULED, QUARANTINED, CHARGED, MAPPED, BUFFER, JOB, CASES };

/* What keeps a tenant, and that it goes without it. */
START_TEST(what_is_somebodys_keeps_its_tenant)
{
    begin();
    struct tenant *t = comes("uid:7001");
    struct tenant *old = k->tenant;
    struct buffer *b = NULL;
    struct job *j = NULL;
    leaves(t);
    uint64_t later = t->left_ns + TENANT_KEPT_NS;
    if (_i == RULED) {
        t->ruled = true;
    } else if (_i == QUARANTINED) {
        (void)tenant_strike(t, hash_of("kernel", 6));
    } else if (_i == CHARGED) {
        t->arena_bytes = 1;
    } else if (_i == MAPPED) {
        t->use[1].mapped = 1;
    } else if (_i == BUFFER) {
        b = fake_buffer(k, 0, 64, true);
        b->tenant = t;
    } else {
        j = fake_job(k, 0);
        j->tenant = t;
        (void)fake_submit(k, j);
    }
    forget_tenants(&k->f, later);
    ck_assert(there("uid:7001"));
    if (_i == RULED) { /* its section is gone */
        struct tenant_rules none = {.others = TENANT_UNLIMITED};
        ck_assert_int_eq(quota_rules(&k->f, &none, NULL), 0);
        later = t->left_ns + TENANT_KEPT_NS;
    }
    t->arena_bytes = 0;
    t->use[1].mapped = 0;
    if (b != NULL) {
        b->tenant = old;
    }
    if (j != NULL) {
        j->tenant = old;
    }
    k->f.due_ns = NS_NEVER;
    later += TENANT_FORGET_NS;
    forget_tenants(&k->f, later);
    ck_assert_int_eq(there("uid:7001"), _i == QUARANTINED);
    if (j != NULL) {
        fake_turn(k);
        fake_done(k, j, 0);
    }
    if (b != NULL) {
        fake_drop(k, b);
    }
    fake_destroy(k);
}
END_TEST

/* However many come and go, and however fast. */
START_TEST(there_are_not_too_many)
{
    begin();
    struct tenant *first = comes("uid:1000000");
    for (unsigned i = 0; i < 3 * TENANTS_MAX; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "uid:%u", 2000000 + i);
        leaves(comes(name));
        ck_assert_uint_le(HASH_COUNT(k->f.tenants), TENANTS_MAX);
    }
    ck_assert(there("uid:1000000"));
    ck_assert_uint_eq(first->sessions, 1);
    for (unsigned i = HASH_COUNT(k->f.tenants); i < 2 * TENANTS_MAX; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "uid:%u", 3000000 + i);
        struct tenant *t = quota_tenant(&k->f, name);
        if (t == NULL) {
            break;
        }
        t->sessions++;
    }
    ck_assert_uint_eq(HASH_COUNT(k->f.tenants), TENANTS_MAX);
    ck_assert_ptr_null(quota_tenant(&k->f, "uid:4000000")); /* all have something here */
    ck_assert_ptr_nonnull(quota_tenant(&k->f, "uid:1000000"));
    fake_destroy(k);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("forget");
    TCase *tcase = tcase_create("forget");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, who_left_is_forgotten_after_a_while);
    tcase_add_loop_test(tcase, what_is_somebodys_keeps_its_tenant, 0, CASES);
    tcase_add_test(tcase, there_are_not_too_many);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
