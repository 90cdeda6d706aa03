/* Accounts of tenants survive the front, in the runtime folder, and a reboot, in the state folder.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/front/tenants/accounts.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/scratch.h"

#define MIB UINT64_C(1048576)

static char dir[SCRATCH_PATH];
static char runtime[SCRATCH_PATH];
static char state[SCRATCH_PATH];
static struct tenant *tenants;

static const char *at(const char *folder, const char *name)
{
    return scratch_path(folder, name);
}

static void begin(void)
{
    scratch_make(dir);
    (void)snprintf(runtime, sizeof runtime, "%s", at(dir, "r"));
    (void)snprintf(state, sizeof state, "%s", at(dir, "s"));
    ck_assert_int_eq(mkdir(runtime, 0700) | mkdir(state, 0700), 0);
    log_set_level(LOG_LEVEL_ERROR);
}

static void end(void)
{
    static const char *const names[] = {"accounts", "accounts.bad", "accounts.new"};
    tenant_destroy_all(&tenants);
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)unlink(at(runtime, names[i]));
        (void)unlink(at(state, names[i]));
    }
    (void)rmdir(runtime);
    (void)rmdir(state);
    scratch_remove(dir);
}

/* All that a test has opened: a front that is killed frees nothing, which is no leak of the test.
 */
static struct accounts *all_opened[8];
static unsigned opened_count;

static struct accounts *opened(const char *state_dir)
{
    struct accounts *a = NULL;
    struct err e = ERR_INIT;
    ck_assert_msg(accounts_create(runtime, state_dir, &a, &e) == 0, "%s", e.text);
    ck_assert_uint_lt(opened_count, sizeof all_opened / sizeof all_opened[0]);
    all_opened[opened_count++] = a;
    return a;
}

static struct tenant *comes(struct accounts *a, const char *name)
{
    struct tenant *t = tenant_named(&tenants, name);
    ck_assert_ptr_nonnull(t);
    if (t->account == &t->own) {
        accounts_bind(a, t);
    }
    return t;
}

/* What a front leaves that is killed: the file as it is. */
static struct accounts *killed(const char *state_dir)
{
    tenant_destroy_all(&tenants);
    return opened(state_dir);
}

static const struct account *named(const struct accounts *a, const char *name)
{
    const struct account *x = NULL;
    for (unsigned i = 0; (x = accounts_at(a, i)) != NULL && strcmp(x->name, name) != 0; i++) {
    }
    ck_assert_msg(x != NULL, "no account %s", name);
    return x;
}

static void uses(struct tenant *t, uint64_t ns)
{
    account_time(t->account, ns);
    account_moved(t->account, 10 * ns, 3 * ns);
    account_job(t->account, ACCOUNT_DONE);
    account_energy(t->account, ns);
}

static void expect_uses(const struct account *a, uint64_t ns, uint64_t jobs)
{
    ck_assert_uint_eq(a->device_ns, ns);
    ck_assert_uint_eq(a->to_device, 10 * ns);
    ck_assert_uint_eq(a->from_device, 3 * ns);
    ck_assert_uint_eq(a->energy_uj, ns);
    ck_assert_uint_eq(a->jobs[ACCOUNT_DONE], jobs);
}

/* Each change of the bytes counts from its own time, also beyond 64 bits. */
START_TEST(bytes_by_seconds_are_exact)
{
    struct account a = {.since_ns = 1};
    account_held(&a, 3 * MIB, 10 * NS_PER_S);
    account_held(&a, 5 * MIB, 12 * NS_PER_S); /* 6 */
    account_held(&a, 0, 13 * NS_PER_S);       /* 11 */
    ck_assert_uint_eq(account_mib_s(&a, 100 * NS_PER_S), 11);
    ck_assert_uint_eq(a.peak_bytes, 5 * MIB);
    account_held(&a, MIB, 13 * NS_PER_S + NS_PER_S / 2);
    ck_assert_uint_eq(account_mib_s(&a, 14 * NS_PER_S), 11); /* 11.5 */
    ck_assert_uint_eq(account_mib_s(&a, 15 * NS_PER_S), 12);
    account_held(&a, UINT64_C(1) << 46, 14 * NS_PER_S);
    account_held(&a, 0, (14 + 1000000) * NS_PER_S);
    ck_assert_uint_eq(account_mib_s(&a, 0), 11 + (UINT64_C(1) << 26) * 1000000);
    account_held(&a, MIB, 10 * NS_PER_S); /* a clock that is behind takes nothing away */
    ck_assert_uint_eq(account_mib_s(&a, 10 * NS_PER_S), 11 + (UINT64_C(1) << 26) * 1000000);
}
END_TEST

START_TEST(a_killed_front_loses_nothing)
{
    struct accounts *a = opened(NULL);
    struct tenant *t = comes(a, "vision");
    uses(t, 5);
    account_held(t->account, 2 * MIB, 100 * NS_PER_S);
    (void)accounts_beat(a, 104 * NS_PER_S);
    uses(t, 6);
    uint64_t since = t->account->since_ns;
    ck_assert_uint_gt(since, 0);
    a = killed(NULL);
    expect_uses(named(a, "vision"), 11, 2);
    ck_assert_uint_eq(named(a, "vision")->held_bytes, 0);
    ck_assert_uint_eq(account_mib_s(named(a, "vision"), 1000 * NS_PER_S), 8); /* to the beat */
    uses(comes(a, "vision"), 1);
    ck_assert_uint_eq(named(a, "vision")->since_ns, since);
    a = killed(NULL);
    expect_uses(named(a, "vision"), 12, 3);
    accounts_destroy(a, 0);
}
END_TEST

START_TEST(a_reboot_begins_with_the_copy)
{
    struct accounts *a = opened(state);
    uses(comes(a, "vision"), 5);
    accounts_release(a, tenants, 0);
    accounts_destroy(a, 0);
    ck_assert_int_eq(unlink(at(runtime, "accounts")), 0);
    tenant_destroy_all(&tenants);
    a = opened(state);
    expect_uses(named(a, "vision"), 5, 1);
    uses(comes(a, "vision"), 2);
    (void)accounts_beat(a, 1000 * NS_PER_S); /* the first saves a copy */
    ck_assert_int_eq(unlink(at(runtime, "accounts")), 0);
    accounts_release(a, tenants, 0);
    accounts_destroy(a, 0);
    a = killed(state);
    expect_uses(named(a, "vision"), 7, 2);
    accounts_destroy(a, 0);
}
END_TEST

/* The time goes on, but changes a copy only while there are buffers. */
START_TEST(an_idle_front_writes_no_copies)
{
    const bool holds = _i == 1;
    struct accounts *a = opened(state);
    struct tenant *t = comes(a, "vision");
    uses(t, 5);
    account_held(t->account, holds ? MIB : 0, NS_PER_S);
    (void)accounts_beat(a, NS_PER_S);
    while (access(at(state, "accounts"), F_OK) != 0) { /* a thread writes it */
        (void)usleep(1000);
    }
    ck_assert_int_eq(unlink(at(state, "accounts")), 0);
    (void)accounts_beat(a, 100 * NS_PER_S);
    accounts_destroy(a, 100 * NS_PER_S); /* saves, and waits for the copy */
    ck_assert_int_eq(access(at(state, "accounts"), F_OK), holds ? 0 : -1);
}
END_TEST

static void damage(const char *path, long offset)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    uint8_t byte = 0;
    ck_assert_int_eq(pread(fd, &byte, 1, offset), 1);
    byte ^= 0x5a;
    ck_assert_int_eq(pwrite(fd, &byte, 1, offset), 1);
    (void)close(fd);
}

/* Each kind of damage: another version, a size, a count, nothing at all. */
START_TEST(a_damaged_file_is_set_aside)
{
    static const long offsets[] = {0, 8, 12, 18};
    struct accounts *a = opened(NULL);
    uses(comes(a, "vision"), 5);
    (void)killed(NULL);
    tenant_destroy_all(&tenants);
    if (_i < 4) {
        damage(at(runtime, "accounts"), offsets[_i]);
    } else {
        ck_assert_int_eq(truncate(at(runtime, "accounts"), 7), 0);
    }
    log_set_level(LOG_LEVEL_ERROR - 1);
    a = opened(NULL);
    ck_assert_int_eq(access(at(runtime, "accounts.bad"), F_OK), 0);
    ck_assert_ptr_null(accounts_at(a, 1));
    uses(comes(a, "vision"), 1);
    a = killed(NULL);
    expect_uses(named(a, "vision"), 1, 1);
    accounts_destroy(a, 0);
}
END_TEST

/* A copy has a checksum, so that also a damaged number is noticed. */
START_TEST(a_damaged_copy_is_set_aside)
{
    struct accounts *a = opened(state);
    uses(comes(a, "vision"), 5);
    accounts_release(a, tenants, 0);
    accounts_destroy(a, 0);
    ck_assert_int_eq(unlink(at(runtime, "accounts")), 0);
    tenant_destroy_all(&tenants);
    damage(at(state, "accounts"), 48 + (long)sizeof(struct account) + 90);
    a = opened(state);
    ck_assert_int_eq(access(at(state, "accounts.bad"), F_OK), 0);
    ck_assert_ptr_null(accounts_at(a, 1));
    accounts_destroy(a, 0);
}
END_TEST

/* The sums stay exact where accounts of forgotten tenants give way. */
START_TEST(the_first_forgotten_give_way)
{
    struct accounts *a = opened(NULL);
    char name[32];
    uint64_t sum = 0;
    uint64_t all = 0;
    const struct account *x;
    for (unsigned i = 0; i < ACCOUNTS_MAX + 10; i++) {
        (void)snprintf(name, sizeof name, "uid:%u", i);
        struct tenant *t = comes(a, name);
        ck_assert_ptr_ne(t->account, &t->own);
        uses(t, i);
        sum += i;
        accounts_release(a, t, 0);
        tenant_destroy(&tenants, t);
    }
    for (unsigned i = 0; (x = accounts_at(a, i)) != NULL; i++) {
        all += x->device_ns;
        ck_assert_str_ne(x->name, "uid:10"); /* it was among the first */
    }
    ck_assert_uint_eq(all, sum);
    ck_assert_uint_eq(named(a, ACCOUNTS_OTHERS)->jobs[ACCOUNT_DONE], 11);
    expect_uses(named(a, "uid:11"), 11, 1);
    uses(comes(a, "uid:11"), 1); /* it comes back, and has its account */
    expect_uses(named(a, "uid:11"), 12, 2);
    accounts_destroy(a, 0);
}
END_TEST

START_TEST(a_reset_keeps_what_is_held)
{
    struct accounts *a = opened(NULL);
    struct tenant *t = comes(a, "vision");
    uses(t, 5);
    account_held(t->account, 4 * MIB, 10 * NS_PER_S);
    t->account->since_ns = 1;
    accounts_reset(a, 20 * NS_PER_S);
    expect_uses(t->account, 0, 0);
    ck_assert_str_eq(t->account->name, "vision");
    ck_assert_uint_gt(t->account->since_ns, 1);
    ck_assert_uint_eq(t->account->held_bytes, 4 * MIB);
    ck_assert_uint_eq(account_mib_s(t->account, 21 * NS_PER_S), 4);
    ck_assert_uint_eq(t->account->peak_bytes, 4 * MIB);
    accounts_destroy(a, 0);
}
END_TEST

/* Without a folder they are in memory, and the copy remains what it was. */
START_TEST(without_a_folder)
{
    log_set_level(LOG_LEVEL_ERROR - 1);
    struct accounts *a = NULL;
    ck_assert_int_eq(accounts_create(at(dir, "none"), at(dir, "none"), &a, NULL), 0);
    struct tenant *t = comes(a, "vision");
    uses(t, 5);
    expect_uses(named(a, "vision"), 5, 1);
    (void)accounts_beat(a, 1);
    accounts_release(a, t, 0);
    accounts_destroy(a, 0);
    tenant_destroy_all(&tenants);
    t = tenant_named(&tenants, "vision");
    accounts_bind(NULL, t); /* a front without accounts */
    uses(t, 1);
    accounts_release(NULL, t, 0);
    expect_uses(t->account, 1, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("accounts");
    TCase *tcase = tcase_create("accounts");
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_test(tcase, bytes_by_seconds_are_exact);
    tcase_add_test(tcase, a_killed_front_loses_nothing);
    tcase_add_test(tcase, a_reboot_begins_with_the_copy);
    tcase_add_loop_test(tcase, an_idle_front_writes_no_copies, 0, 2);
    tcase_add_loop_test(tcase, a_damaged_file_is_set_aside, 0, 5);
    tcase_add_test(tcase, a_damaged_copy_is_set_aside);
    tcase_add_test(tcase, the_first_forgotten_give_way);
    tcase_add_test(tcase, a_reset_keeps_what_is_held);
    tcase_add_test(tcase, without_a_folder);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
