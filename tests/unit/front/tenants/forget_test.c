/* Tenants that nobody needs any more go; whatever is somebody's keeps its tenant. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/front/model/wake.h"
#include "daemon/front/sched/conduct.h"
#include "daemon/front/sched/history.h"
#include "daemon/front/tenants/forget.h"
#include "daemon/front/tenants/tenant_quota.h"
#include "daemon/front/views/snapshot_set.h"
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
    k->f.wake_ns = NS_NEVER;
    leaves(t);
    uint64_t left = t->left_ns;
    ck_assert_uint_eq(k->f.wake_ns, left + TENANT_KEPT_NS);
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

enum {
    RULED,
    QUARANTINED,
    CHARGED,
    MAPPED,
    BUFFER,
    ARENA,
    PROGRAM,
    MODULE,
    UNLOADED, /* a module that a job still uses */
    SNAPSHOT,
    HISTORY,
    KEPT,
    RUNNING,
    USED,   /* by a job of another's: a buffer without a handle */
    LOADED, /* the same of a module */
    CASES
};

/* What somebody has here; of it what its case needs. */
static struct {
    struct buffer *b;
    struct arena a;
    struct program p;
    struct module m;
    struct snapshot_set *set;
    struct job *j;
} had;

static struct buffer *buffer_of(struct tenant *t)
{
    struct buffer *b = fake_buffer(k, 0, 64, true);
    b->tenant->held[TENANT_BUFFERS]--;
    b->tenant = t;
    t->held[TENANT_BUFFERS]++;
    return b;
}

static void take_handle(struct tenant *t, int which)
{
    uint64_t handle = 1;
    memset(&had, 0, sizeof had);
    if (which == BUFFER) {
        had.b = buffer_of(t);
    } else if (which == ARENA) {
        had.a.tenant = t;
        t->held[TENANT_ARENAS]++;
        handle = idmap_add(&k->f.arenas, &had.a);
    } else if (which == PROGRAM) {
        had.p.tenant = t;
        t->held[TENANT_PROGRAMS]++;
        handle = idmap_add(&k->f.programs, &had.p);
    } else if (which == MODULE || which == UNLOADED) {
        had.m.tenant = t;
        t->held[TENANT_MODULES] += which == MODULE;
        t->message_bytes += which == UNLOADED; /* of its request */
        handle = idmap_add(&k->f.modules, &had.m);
    } else if (which == SNAPSHOT) {
        had.set = calloc(1, sizeof *had.set);
        ck_assert_ptr_nonnull(had.set);
        had.set->tenant = t;
        t->snapshots = 1;
    }
    ck_assert_uint_ne(handle, 0);
}

static void take_job(struct tenant *t, int which)
{
    had.j = fake_job(k, 0);
    if (which == USED) {
        had.b = buffer_of(t);
        fake_writes(had.j, had.b, 0, 64);
    } else if (which == LOADED) {
        k->module->tenant = t;
        fake_launches(k, had.j, "entry");
    } else {
        had.j->tenant = t;
    }
    (void)fake_submit(k, had.j);
    fake_turn(k);
    if (which == USED) {
        fake_drop(k, had.b);
        had.b->bytes = 0; /* nor is anything charged for it */
    } else if (which == HISTORY || which == KEPT) {
        fake_done(k, had.j, 0);
        if (which == HISTORY) {
            job_release(&k->f, had.j);
        }
        job_forget_history(&k->f, which == HISTORY);
    }
}

static void strike(struct tenant *t, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        (void)tenant_strike(t, hash_of("kernel", 6));
    }
}

static void take(struct tenant *t, int which)
{
    take_handle(t, which);
    if (which == RULED) {
        t->ruled = true;
    } else if (which == QUARANTINED) {
        strike(t, STRIKES_MAX);
    } else if (which == CHARGED) {
        t->arena_bytes = 1;
    } else if (which == MAPPED) {
        t->use[1].mapped = 1;
    } else if (which >= HISTORY) {
        take_job(t, which);
    }
}

static void clear(struct idmap *map)
{
    uint32_t cursor = 0;
    uint64_t handle = 0;
    while (idmap_next(map, &cursor, &handle) != NULL) {
        (void)idmap_remove(map, handle);
    }
}

/* All is gone but a section, which goes with the settings, and strikes. */
static void give_back(struct tenant *t, int which)
{
    struct tenant_rules none = {.others = TENANT_UNLIMITED};
    t->arena_bytes = 0;
    t->message_bytes = 0;
    t->use[1].mapped = 0;
    t->held[TENANT_ARENAS] = t->held[TENANT_PROGRAMS] = t->held[TENANT_MODULES] = 0;
    clear(&k->f.arenas);
    clear(&k->f.programs);
    clear(&k->f.modules);
    t->snapshots = 0;
    free(had.set);
    if (which == RULED) {
        ck_assert_int_eq(quota_rules(&k->f, &none, 0, NULL), 0);
    } else if (which == BUFFER) {
        fake_drop(k, had.b);
    } else if (which == KEPT) {
        job_release(&k->f, had.j);
    } else if (which > KEPT) {
        fake_done(k, had.j, 0);
        job_release(&k->f, had.j);
    }
    job_forget_history(&k->f, 0);
    k->module->tenant = k->tenant;
}

/* What keeps a tenant, and that it goes without it. */
START_TEST(what_is_somebodys_keeps_its_tenant)
{
    begin();
    struct tenant *t = comes("uid:7001");
    take(t, _i);
    leaves(t);
    forget_tenants(&k->f, t->left_ns + TENANT_KEPT_NS);
    ck_assert(there("uid:7001"));
    give_back(t, _i);
    uint64_t later = t->left_ns + TENANT_KEPT_NS + TENANT_FORGET_NS;
    forget_tenants(&k->f, later);
    ck_assert_int_eq(there("uid:7001"), _i == QUARANTINED);
    fake_destroy(k);
}
END_TEST

START_TEST(a_kernel_in_service_keeps_nobody)
{
    begin();
    struct tenant *t = comes("uid:7001");
    strike(t, STRIKES_MAX - 1);
    leaves(t);
    forget_tenants(&k->f, t->left_ns + TENANT_KEPT_NS);
    ck_assert(!there("uid:7001"));
    fake_destroy(k);
}
END_TEST

/* Leaving and coming again does not take its strikes away; time does. */
START_TEST(a_strike_keeps_its_tenant_until_it_is_forgiven)
{
    begin();
    struct tenant *t = comes("uid:7001");
    (void)conduct_strike(&t->conduct, fake_now() + TENANT_KEPT_NS);
    leaves(t);
    uint64_t later = t->left_ns + TENANT_KEPT_NS;
    forget_tenants(&k->f, later);
    ck_assert(there("uid:7001"));
    forget_tenants(&k->f, later + CONDUCT_FORGIVE_NS);
    ck_assert(!there("uid:7001"));
    fake_destroy(k);
}
END_TEST

/* ---- how many ---------------------------------------------------------------------------------*/

/* Each leaves a job that has ended, of which the worker still has the answer. */
static void fill_with_jobs(void)
{
    for (unsigned i = 0; HASH_COUNT(k->f.tenants) < TENANTS_MAX; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "uid:%u", 2000000 + i);
        struct tenant *t = comes(name);
        struct job *j = fake_job(k, 0);
        j->tenant = t;
        (void)fake_submit(k, j);
        fake_turn(k);
        fake_done(k, j, 0);
        leaves(t);
    }
}

START_TEST(ended_jobs_keep_nobodys_place)
{
    begin();
    struct tenant *stays = comes("uid:7001");
    struct job *j = fake_job(k, 0);
    j->tenant = stays;
    (void)fake_submit(k, j);
    fake_turn(k);
    fake_done(k, j, 0);
    fill_with_jobs();
    job_forget_history(&k->f, TENANTS_MAX / 2);
    ck_assert_uint_gt(k->f.kept_count, 0);
    j = fake_job(k, 0); /* the youngest */
    j->tenant = stays;
    uint64_t id = fake_submit(k, j);
    fake_turn(k);
    fake_done(k, j, 0);
    k->f.wake_ns = NS_NEVER;
    ck_assert_ptr_null(quota_tenant(&k->f, "uid:7002"));
    uint64_t now = k->f.wake_ns;
    ck_assert_uint_ne(now, NS_NEVER); /* there is a look soon, and who comes again has room */
    forget_tenants(&k->f, now);
    ck_assert_ptr_nonnull(quota_tenant(&k->f, "uid:7002"));
    ck_assert_uint_eq(HASH_COUNT(k->f.tenants), 3);
    ck_assert_uint_eq(k->f.kept_count, 1); /* of who is there */
    ck_assert_ptr_eq(fake_find(k, id), j);
    ck_assert_uint_eq(k->f.history_count, 1);
    ck_assert_ptr_eq(k->f.history_tail, j);
    fake_destroy(k);
}
END_TEST

/* All are looked at for one that is to have room: not again at once after that was in vain. */
START_TEST(who_finds_no_room_does_not_look_at_once_again)
{
    begin();
    struct tenant *t = NULL;
    for (unsigned i = 0; HASH_COUNT(k->f.tenants) < TENANTS_MAX; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "uid:%u", 2000000 + i);
        t = comes(name);
    }
    ck_assert_ptr_null(quota_tenant(&k->f, "uid:7001"));
    t->sessions--;
    k->f.room_ns = NS_NEVER; /* however long this test takes */
    ck_assert_ptr_null(quota_tenant(&k->f, "uid:7001"));
    k->f.room_ns = 0;
    ck_assert_ptr_nonnull(quota_tenant(&k->f, "uid:7001"));
    ck_assert_uint_ge(k->f.room_ns, TENANT_ROOM_NS);
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
    tcase_add_test(tcase, a_kernel_in_service_keeps_nobody);
    tcase_add_test(tcase, a_strike_keeps_its_tenant_until_it_is_forgiven);
    tcase_add_test(tcase, there_are_not_too_many);
    tcase_add_test(tcase, ended_jobs_keep_nobodys_place);
    tcase_add_test(tcase, who_finds_no_room_does_not_look_at_once_again);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
