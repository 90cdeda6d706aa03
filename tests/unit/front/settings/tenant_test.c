/* Tenants of the settings: who belongs to one, what it may have, and its ledger. */
#include <check.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/front/model/tenant.h"
#include "daemon/front/settings/config.h"
#include "daemon/front/settings/tenant_rules.h"
#include "daemon/front/settings/tenant_tokens.h"
#include "daemon/front/tenants/tenant_quota.h"
#include "tests/unit/front/scratch.h"

#define MIB (UINT64_C(1) << 20)

static const struct device device[] = {{.pool_limit = 1000 * MIB},
                                       {.index = 1, .pool_limit = 1000 * MIB}};
#define GIB (UINT64_C(1) << 30)

static char dir[SCRATCH_PATH];
static struct tenant_rules rules;

static void setup(void)
{
    scratch_make(dir);
    rules = (struct tenant_rules){.others = TENANT_UNLIMITED};
}

static void teardown(void)
{
    tenant_rules_finish(&rules);
    scratch_remove(dir);
}

static int load(const char *text, struct err *e)
{
    const char *path = scratch_path(dir, "gpud.conf");
    scratch_write(path, text, strlen(text));
    tenant_rules_finish(&rules);
    return tenant_rules_load(path, NULL, &rules, e);
}

static const char *who(uint32_t uid, uint32_t gid, bool local)
{
    const struct tenant_peer peer = {.uid = uid, .gid = gid, .local = local};
    const struct tenant_rule *rule = tenant_rules_of(&rules, &peer);
    return rule != NULL ? rule->name : "";
}

START_TEST(sections_say_who_and_how_much)
{
    struct err e = ERR_INIT;
    int rc = load("[jobs]\nwindow = 3\n"
                  "[tenant vision]\nusers = 1234, root\nmemory_hard = 8G\nmemory_soft = 4096M\n"
                  "memory_guaranteed = 25%\narena_bytes_max = 1G\nsessions_max = 7\n"
                  "memory_spilled = 3G\nmemory_total = 40G\n"
                  "load_kernels = yes\nweight = 250\nclass = batch\n"
                  "inflight_max = 3\ntransfer_rate = 2M\ndevice_share = 30%\n"
                  "devices = 0, 5\nroles = drain, see\n"
                  "[tenant a.b-c_d]\ngroups = 0\ntcp = yes\nload_kernels = no\n"
                  "[tenant others]\nmemory_hard = 50%\nconnect = no\n",
                  &e);
    ck_assert_msg(rc == 0, "%s", e.text);
    ck_assert_uint_eq(rules.count, 2);
    ck_assert_str_eq(rules.rule[0].name, "a.b-c_d");
    const struct tenant_rule *vision = tenant_rules_named(&rules, "vision");
    ck_assert_uint_eq(vision->limits.hard.bytes, 8 * GIB);
    ck_assert_uint_eq(vision->limits.soft.bytes, 4 * GIB);
    ck_assert_uint_eq(vision->limits.guaranteed.percent, 25);
    ck_assert_uint_eq(vision->limits.spilled.bytes, 3 * GIB);
    ck_assert_uint_eq(vision->limits.total, 40 * GIB);
    ck_assert_uint_eq(rules.others.spilled.bytes, UINT64_MAX);
    ck_assert_uint_eq(rules.others.total, UINT64_MAX);
    ck_assert_uint_eq(vision->limits.arena_bytes, GIB);
    ck_assert_uint_eq(vision->limits.sessions, 7);
    ck_assert_int_eq(vision->limits.load, TENANT_LOAD_YES);
    ck_assert_uint_eq(vision->limits.weight, 250);
    ck_assert_uint_eq(vision->limits.job_class, CLASS_BATCH);
    ck_assert_uint_eq(vision->limits.devices, 33);
    ck_assert_uint_eq(rules.others.devices, 0);
    ck_assert_uint_eq(vision->limits.roles, ROLE_DRAIN | ROLE_SEE);
    ck_assert(!vision->limits.barred && rules.others.barred);
    ck_assert_ptr_eq(tenant_rules_limits(&rules, "uid:7"), &rules.others);
    ck_assert_uint_eq(vision->limits.in_flight, 3);
    ck_assert_uint_eq(vision->limits.transfer_rate, 2 * MIB);
    ck_assert_uint_eq(vision->limits.device_share, 30);
    ck_assert_uint_eq(rules.others.device_share, 0);
    ck_assert_uint_eq(rules.others.in_flight + rules.others.transfer_rate, 0);
    ck_assert_uint_eq(rules.others.weight, TENANT_WEIGHT_USUAL);
    ck_assert_uint_eq(rules.others.job_class, CLASS_INTERACTIVE);
    ck_assert_int_eq(rules.rule[0].limits.load, TENANT_LOAD_NO);
    ck_assert_uint_eq(rules.rule[0].limits.hard.bytes, UINT64_MAX);
    ck_assert_uint_eq(rules.others.hard.percent, 50);
    ck_assert_str_eq(who(1234, 5, true), "vision");
    ck_assert_str_eq(who(0, 0, true), "vision"); /* users come before groups */
    ck_assert_str_eq(who(4321, 0, true), "a.b-c_d");
    ck_assert_str_eq(who(4321, 5, true), "");
    ck_assert_str_eq(who(1234, 5, false), "a.b-c_d"); /* over tcp nobody is somebody */
}
END_TEST

START_TEST(unknown_users_have_a_tenant)
{
    struct err e = ERR_INIT;
    int rc = load("[tenant a]\nusers = 1234\n[tenant guests]\nunknown = yes\n"
                  "[tenant z]\ngroups = 0\n",
                  &e);
    ck_assert_msg(rc == 0, "%s", e.text);
    ck_assert_str_eq(who(1234, 5, true), "a");
    ck_assert_str_eq(who(4321, 5, true), "guests");
    ck_assert_str_eq(who(4321, 0, true), "z"); /* a group names it */
    ck_assert_str_eq(who(1234, 5, false), "guests");
}
END_TEST

static const struct tenant_socket *socket_of(const char *tenant)
{
    return &tenant_rules_named(&rules, tenant)->socket;
}

START_TEST(a_tenant_has_a_socket)
{
    struct err e = ERR_INIT;
    int rc = load("[tenant a]\nlisten = ipc:///run/a/gpud.sock\nlisten_mode = 0666\n"
                  "listen_group = root\n[tenant b]\nlisten = /run/b/gpud.sock\n[tenant c]\n",
                  &e);
    ck_assert_msg(rc == 0, "%s", e.text);
    ck_assert_str_eq(socket_of("a")->path, "/run/a/gpud.sock");
    ck_assert_uint_eq(socket_of("a")->mode, 0666);
    ck_assert_uint_eq(socket_of("a")->gid, 0);
    ck_assert_str_eq(socket_of("b")->path, "/run/b/gpud.sock");
    ck_assert_uint_eq(socket_of("b")->mode, 0660);
    ck_assert_uint_eq(socket_of("b")->gid, TENANT_SOCKET_GROUP);
    uint32_t number = tenant_socket_number("a");
    ck_assert_uint_ne(number, 0);
    ck_assert_str_eq(tenant_rules_socket(&rules, number)->name, "a");
    ck_assert_ptr_null(tenant_rules_socket(&rules, tenant_socket_number("c")));
    ck_assert(tenant_socket_has(socket_of("a"), "/run/a/gpud.sock.shm"));
    ck_assert(!tenant_socket_has(socket_of("a"), "/run/a/gpud.sock.sh"));
}
END_TEST

START_TEST(bad_sockets_are_refused)
{
    const struct {
        const char *text;
        int code;
        const char *says;
    } bad[] = {
        {"listen = gpud.sock", ERR_INVALID, "absolute path"},
        {"listen = tcp://127.0.0.1:7", ERR_INVALID, "absolute path"},
        {"listen = /run/../gpud.sock", ERR_INVALID, "\"..\""},
        {"listen = /run//gpud.sock", ERR_INVALID, "empty"},
        {"listen = /run/a/", ERR_INVALID, "absolute path"},
        {"listen_mode = 0770", ERR_INVALID, "octal"},
        {"listen_mode = rw", ERR_INVALID, "octal"},
        {"listen_mode = 066", ERR_INVALID, "octal"},
        {"listen_group = no-such-group", ERR_NOT_FOUND, "there is no group no-such-group"},
        {"listen = /s\n[tenant b]\nlisten = /s", ERR_EXISTS, "tenants a and b have one socket"},
        {"listen = /s\n[tenant b]\nlisten = /s.shm", ERR_EXISTS, "tenants a and b"},
        {"listen = /s.shm\n[tenant b]\nlisten = /s", ERR_EXISTS, "tenants a and b"},
        {"[tenant others]\nlisten = /s", ERR_INVALID, "not allowed in [tenant others]"},
    };
    char text[256];
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct err e = ERR_INIT;
        (void)snprintf(text, sizeof text, "[tenant a]\n%s\n", bad[i].text);
        ck_assert_msg(load(text, &e) == bad[i].code, "%s: %s", bad[i].text, e.text);
        ck_assert_msg(strstr(e.text, bad[i].says) != NULL, "%s", e.text);
        ck_assert_msg(strstr(e.text, "gpud.conf:") != NULL, "%s", e.text); /* with its line */
    }
    struct err e = ERR_INIT;
    for (size_t over = 0; over < 2; over++) { /* as long as may be, and one more */
        int length = (int)(TENANT_SOCKET_PATH - 1 + over);
        (void)snprintf(text, sizeof text, "[tenant a]\nlisten = /%0*d\n", length - 1, 0);
        ck_assert_int_eq(load(text, &e), over > 0 ? ERR_LIMIT : 0);
    }
}
END_TEST

START_TEST(sockets_are_not_too_many)
{
    char text[8192];
    size_t used = 0;
    for (unsigned i = 0; i <= TENANT_SOCKETS_MAX; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "[tenant t%u]\nlisten = /s%u\n",
                                 i, i);
        struct err e = ERR_INIT;
        bool last = i == TENANT_SOCKETS_MAX;
        ck_assert(i + 1 < TENANT_SOCKETS_MAX || load(text, &e) == (last ? ERR_LIMIT : 0));
        ck_assert(!last || strstr(e.text, "over 64 tenants have sockets") != NULL);
    }
}
END_TEST

/* What a start takes, and the check of the settings does not: the folders. */
START_TEST(sockets_are_not_those_of_the_daemon)
{
    struct config config;
    struct err e = ERR_INIT;
    char text[512];
    config_defaults(&config);
    (void)snprintf(config.runtime_dir, sizeof config.runtime_dir, "/run/gpud");
    ck_assert_int_eq(config_complete(&config, &e), 0);
    config.chosen = true;
    (void)snprintf(config.file, sizeof config.file, "%s", scratch_path(dir, "gpud.conf"));
    const char *const bad[] = {"/run/gpud/gpud.sock", "/run/gpud/shm.sock",
                               "/run/gpud/launcher.sock", "/run/gpud/nowhere/a/gpud.sock",
                               "/nowhere/a/gpud.sock"};
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        e = (struct err)ERR_INIT;
        (void)snprintf(text, sizeof text, "[tenant a]\nlisten = %s\n", bad[i]);
        scratch_write(config.file, text, strlen(text));
        tenant_rules_finish(&rules);
        int rc = tenant_rules_read(&config, &rules, &e);
        ck_assert_msg(rc == (i < 3 ? ERR_EXISTS : 0), "%s: %s", bad[i], e.text);
        rc = rc == 0 ? tenant_rules_folders(&rules, &config, &e) : rc;
        ck_assert_int_eq(rc, i < 3 ? ERR_EXISTS : i == 3 ? 0 : ERR_NOT_FOUND);
        ck_assert(rc == 0 || strstr(e.text, "gpud.conf:2") != NULL);
    }
}
END_TEST

START_TEST(files_of_tenants_come_behind_and_hold_nothing_else)
{
    struct err e = ERR_INIT;
    static const char first[] = "[tenant a]\nusers = 1, 2\nmemory_hard = 1G\n";
    static const char second[] = "[tenant a]\nusers = 2 3\n[tenant b]\nusers = 1\n";
    static const char stray[] = "[jobs]\nwindow = 1\n";
    scratch_write(scratch_path(dir, "10.conf"), first, strlen(first));
    scratch_write(scratch_path(dir, "20.conf"), second, strlen(second));
    scratch_write(scratch_path(dir, "README"), stray, strlen(stray));
    ck_assert_msg(tenant_rules_load(NULL, dir, &rules, &e) == 0, "%s", e.text);
    ck_assert_str_eq(who(1, 9, true), "b");
    ck_assert_str_eq(who(2, 9, true), "a");
    ck_assert_str_eq(who(3, 9, true), "a");
    ck_assert_uint_eq(tenant_rules_named(&rules, "a")->limits.hard.bytes, GIB);
    scratch_write(scratch_path(dir, "30.conf"), stray, strlen(stray));
    tenant_rules_finish(&rules);
    ck_assert_int_eq(tenant_rules_load(NULL, dir, &rules, &e), ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(e.text, "30.conf:1: unknown section [jobs]"));
    ck_assert_int_eq(tenant_rules_load(NULL, "/nowhere", &rules, &e), 0);
}
END_TEST

static const struct {
    const char *text;
    int code;
    const char *says;
} bad_files[] = {
    {"[tenant a]\nusers = no-such-user\n", ERR_NOT_FOUND, ":2: users: there is no user no-such"},
    {"[tenant a]\ngroups = no-such-group\n", ERR_NOT_FOUND, ":2: groups: there is no group no-s"},
    {"[tenant a]\nusers = 7\n[tenant b]\nusers = 7\n", ERR_EXISTS,
     ":4: users: 7 belongs to tenant a"},
    {"[tenant a]\nmemory = 7\n", ERR_NOT_FOUND, ":2: unknown setting memory of a tenant"},
    {"[tenant a]\nmemory_hard = 101%\n", ERR_INVALID, ":2: memory_hard = 101%: not within 1%"},
    {"[tenant a]\nmemory_hard = 0%\n", ERR_INVALID, ":2: memory_hard = 0%: not within 1%"},
    {"[tenant a]\nmemory_hard = x%\n", ERR_INVALID, ":2: memory_hard = x%: not within 1%"},
    {"[tenant a]\nmemory_hard = %\n", ERR_INVALID, ":2: memory_hard = %: not a number"},
    {"[tenant a]\nmemory_hard = 1GB\n", ERR_INVALID, ":2: memory_hard = 1GB: not a number with K"},
    {"[tenant a]\nsessions_max = 0\n", ERR_RANGE, ":2: sessions_max = 0: not within 1 and"},
    {"[tenant a]\nweight = 0\n", ERR_RANGE, ":2: weight = 0: not within 1 and 10000"},
    {"[tenant a]\nweight = 2147483648\n", ERR_RANGE, ":2: weight = 2147483648: not within 1 and"},
    {"[tenant a]\nweight = -1\n", ERR_INVALID, ":2: weight = -1: not a number"},
    {"[tenant a]\ninflight_max = 0\n", ERR_RANGE, ":2: inflight_max = 0: not within 1 and"},
    {"[tenant a]\ndevice_share = 0%\n", ERR_INVALID, ":2: device_share = 0%: not within 1%"},
    {"[tenant a]\ndevice_share = 101%\n", ERR_INVALID, ":2: device_share = 101%: not within 1%"},
    {"[tenant a]\ndevice_share = 50\n", ERR_INVALID, ":2: device_share = 50: not within 1%"},
    {"[tenant a]\ndevice_share =\n", ERR_INVALID, ":2: device_share = : not within 1%"},
    {"[tenant a]\ntransfer_rate = 1K\n", ERR_RANGE, ":2: transfer_rate = 1K: at least 4K bytes"},
    {"[tenant a]\ntransfer_rate = 10%\n", ERR_INVALID, ":2: transfer_rate = 10%: not a number"},
    {"[tenant a]\ndevices = 64\n", ERR_INVALID, ":2: devices: 64: not the index of a device"},
    {"[tenant a]\ndevices = ,\n", ERR_INVALID, ":2: devices: names none"},
    {"[tenant a]\nroles = see root\n", ERR_INVALID, ":2: roles: root: not one of drain, reload"},
    {"[tenant others]\nroles = see\n", ERR_INVALID, ":2: roles: not allowed in [tenant others]"},
    {"[tenant others]\nunknown = yes\n", ERR_INVALID, ":2: unknown: not allowed in [tenant others"},
    {"[tenant a]\nunknown = yes\n[tenant b]\nunknown = yes\n", ERR_EXISTS,
     ".conf:4: tenants a and b both have unknown"},
    {"[tenant a]\nclass = urgent\n", ERR_INVALID, ":2: class = urgent: not realtime, interactive"},
    {"[tenant a]\ntokens = some/where\n", ERR_INVALID, ":2: tokens = some/where: neither an abs"},
    {"[tenant others]\ntokens = /x\n", ERR_INVALID, ":2: tokens: not allowed in [tenant others]"},
    {"[tenant a]\nload_kernels = maybe\n", ERR_INVALID, ":2: load_kernels = maybe: not one of yes"},
    {"[tenant a]\nusers = 1\nusers = 2\n", ERR_INVALID, ":2: users: set twice"},
    {"[tenant a b]\nusers = 1\n", ERR_NOT_FOUND, ":1: unknown section [tenant a b]"},
    {"[tenant uid:7]\nusers = 1\n", ERR_NOT_FOUND, ":1: unknown section [tenant uid:7]"},
    {"[tenant others]\nusers = 1\n", ERR_INVALID, ":2: users: not allowed in [tenant others]"},
    {"[tenant others]\nmemory_guaranteed = 1\n", ERR_INVALID,
     ":2: memory_guaranteed: not allowed in"},
    {"[tenant a]\ntcp = yes\n[tenant b]\ntcp = yes\n", ERR_EXISTS,
     ".conf:4: tenants a and b both have tcp"},
    {"[tenant a]\nmemory_hard = 1G\nmemory_guaranteed = 2G\n", ERR_INVALID,
     ".conf:3: tenant a: memory_guaranteed is more than memory_hard"},
    {"[tenant a]\nmemory_guaranteed = 60%\n[tenant b]\nmemory_guaranteed = 41%\n", ERR_LIMIT,
     ".conf:4: tenants are guaranteed 101% of a device: lower memory_guaranteed"},
};

START_TEST(what_is_wrong_is_named_and_nothing_changes)
{
    struct err e = ERR_INIT;
    rules.count = 0;
    int rc = load(bad_files[_i].text, &e);
    ck_assert_msg(rc == bad_files[_i].code, "%s gave %s: %s", bad_files[_i].text, err_name(rc),
                  e.text);
    ck_assert_msg(strstr(e.text, bad_files[_i].says) != NULL, "%s", e.text);
    ck_assert_ptr_null(rules.rule);
}
END_TEST

/* What is more than there is is named with its line, whatever the section. */
START_TEST(more_than_there_is_is_named)
{
    struct err e = ERR_INIT;
    char text[512];
    ck_assert_int_eq(load("[tenant a]\nmemory_hard = 8G\ndevices = 0, 1\n", &e), 0);
    ck_assert(!tenant_rules_exceed(&rules, 2, 8 * GIB, text, sizeof text));
    ck_assert(!tenant_rules_exceed(&rules, 0, UINT64_MAX, text, sizeof text)); /* none known yet */
    ck_assert(tenant_rules_exceed(&rules, 1, 8 * GIB, text, sizeof text));
    ck_assert_ptr_nonnull(strstr(text, ":3: tenant a: devices names 1, the last device is 0"));
    ck_assert_ptr_null(strstr(text, "none"));
    ck_assert(tenant_rules_exceed(&rules, 2, 8 * GIB - 1, text, sizeof text));
    ck_assert_ptr_nonnull(strstr(text, ":2: tenant a: memory_hard is 8589934592 bytes"));
    ck_assert_int_eq(load("[tenant others]\ndevices = 7\n", &e), 0);
    ck_assert(tenant_rules_exceed(&rules, 2, 8 * GIB, text, sizeof text));
    ck_assert_ptr_nonnull(strstr(text, "[tenant others]: tenant others: devices names 7, the last "
                                       "device is 1, so it can use none"));
}
END_TEST

START_TEST(guarantees_fit_or_are_refused_by_name)
{
    struct err e = ERR_INIT;
    ck_assert_int_eq(load("[tenant a]\nmemory_guaranteed = 50%\n"
                          "[tenant b]\nmemory_guaranteed = 4G\n"
                          "[tenant c]\nmemory_guaranteed = 1G\nmemory_hard = 10%\n",
                          &e),
                     0);
    ck_assert_int_eq(tenant_rules_fit(&rules, 16 * GIB, &e), 0);
    ck_assert_int_eq(tenant_rules_fit(&rules, 10 * GIB, &e), 0);
    ck_assert_int_eq(tenant_rules_fit(&rules, 10 * GIB - 100, &e), ERR_LIMIT);
    ck_assert_ptr_nonnull(
        strstr(e.text, "tenant c: memory_guaranteed is 1073741824 bytes on this device"));
    ck_assert_int_eq(load("[tenant a]\nmemory_guaranteed = 50%\n"
                          "[tenant b]\nmemory_guaranteed = 4G\n",
                          &e),
                     0);
    ck_assert_int_eq(tenant_rules_fit(&rules, 8 * GIB, &e), 0);
    ck_assert_int_eq(tenant_rules_fit(&rules, 6 * GIB, &e), ERR_LIMIT);
    ck_assert_msg(strstr(e.text, "7516192768 bytes are guaranteed to tenants (a 3221225472, b "
                                 "4294967296), the device's pool may take 6442450944") != NULL,
                  "%s", e.text);
}
END_TEST

START_TEST(the_ledger_is_the_tenants)
{
    struct tenant *table = NULL;
    struct tenant *t = tenant_named(&table, "vision");
    struct err e = ERR_INIT;
    ck_assert_ptr_eq(tenant_find(table, tenant_key_of("vision")), t);
    ck_assert_uint_gt(tenant_key(t), (uint64_t)UINT32_MAX + 1);
    ck_assert_uint_eq(tenant_key_of("uid:7"), 8);
    ck_assert_uint_eq(tenant_key(tenant_obtain(&table, UINT32_MAX)), (uint64_t)UINT32_MAX + 1);
    ck_assert_uint_eq(tenant_room(t, 0, GIB), UINT64_MAX);
    ck_assert_int_eq(load("[tenant vision]\nmemory_hard = 50%\nmemory_soft = 60%\n"
                          "memory_guaranteed = 100M\n",
                          &e),
                     0);
    ck_assert(quota_apply(&rules, t));
    ck_assert(!quota_apply(&rules, t));
    ck_assert(t->ruled);
    const struct tenant_quota q = tenant_quota(t, 1000 * MIB);
    ck_assert_uint_eq(q.hard, 500 * MIB);
    ck_assert_uint_eq(q.soft, UINT64_MAX); /* not reached before hard */
    ck_assert_uint_eq(q.guaranteed, 100 * MIB);
    ck_assert(tenant_charge(t, 1, 30 * MIB, 0));
    ck_assert(tenant_charge(t, 0, 400 * MIB, 0));
    ck_assert_uint_eq(t->buffer_bytes, 430 * MIB);
    ck_assert_uint_eq(tenant_room(t, 0, 1000 * MIB), 100 * MIB);
    ck_assert_uint_eq(tenant_room(t, 1, 1000 * MIB), 470 * MIB);
    ck_assert_uint_eq(tenant_due(t, 1, 1000 * MIB), 70 * MIB);
    ck_assert_uint_eq(tenant_due(t, 0, 1000 * MIB), 0);
    ck_assert_int_eq(tenant_refuse(t, &device[0], 200, &e), ERR_LIMIT);
    ck_assert_str_eq(e.text, "tenant vision wants 200 bytes on device 0 and may have 524288000 "
                             "there, of which its buffers have 419430400: free some of them, or "
                             "raise its memory_hard");
    ck_assert_uint_eq(t->refusals, 1);
    ck_assert(!tenant_charge(t, 0, UINT64_MAX, 0)); /* what cannot be counted is not charged */
    ck_assert_uint_eq(t->buffer_bytes, 430 * MIB);
    ck_assert(tenant_charge(t, 0, UINT64_MAX - 430 * MIB, 0));
    ck_assert(!tenant_charge(t, 1, 1, 0));
    ck_assert_uint_eq(tenant_room(t, 0, 1000 * MIB), 0);
    tenant_discharge(t, 0, UINT64_MAX - 430 * MIB, 0);
    tenant_discharge(t, 1, 30 * MIB, 0);
    ck_assert_uint_eq(t->device_bytes[0], 400 * MIB);
    ck_assert_uint_eq(t->device_bytes[1], 0);
    ck_assert_uint_eq(t->buffer_bytes, 400 * MIB);
    ck_assert_uint_eq(amount_of(&(struct amount){.percent = 100}, UINT64_MAX), UINT64_MAX);
    ck_assert_uint_eq(amount_of(&(struct amount){.percent = 33}, 1000), 330);
    tenant_destroy_all(&table);
}
END_TEST

/* Beside the hard limit: what device and host have room for, and all devices together. */
START_TEST(what_lies_on_the_host_and_in_all_is_limited)
{
    struct tenant *table = NULL;
    struct tenant *t = tenant_named(&table, "vision");
    struct err e = ERR_INIT;
    ck_assert_int_eq(load("[tenant vision]\nmemory_spilled = 10%\nmemory_total = 1500M\n", &e), 0);
    ck_assert(quota_apply(&rules, t));
    ck_assert_uint_eq(tenant_quota(t, 1000 * MIB).spilled, 100 * MIB);
    ck_assert_uint_eq(tenant_room(t, 0, 1000 * MIB), 1100 * MIB);
    ck_assert(tenant_charge(t, 0, 1000 * MIB, 0));
    ck_assert_uint_eq(tenant_room(t, 0, 1000 * MIB), 100 * MIB);
    ck_assert_uint_eq(tenant_room(t, 1, 1000 * MIB), 500 * MIB);
    ck_assert_int_eq(tenant_refuse(t, &device[0], 101 * MIB, &e), ERR_LIMIT);
    ck_assert_str_eq(e.text,
                     "tenant vision wants 105906176 bytes on device 0 and may have "
                     "1153433600 there, of which its buffers have 1048576000: free some of "
                     "them, or raise its memory_spilled, which adds to the limit of the device's "
                     "pool");
    e = (struct err)ERR_INIT;
    ck_assert_int_eq(tenant_refuse(t, &device[1], 501 * MIB, &e), ERR_LIMIT);
    ck_assert_str_eq(e.text, "tenant vision wants 525336576 bytes and may have 1572864000 on all "
                             "devices, of which its buffers have 1048576000: free some of them, or "
                             "raise its memory_total");
    tenant_destroy_all(&table);
}
END_TEST

START_TEST(who_belongs_is_told)
{
    struct err e = ERR_INIT;
    struct tenant *table = NULL;
    char text[64];
    ck_assert_int_eq(load("[tenant a]\nusers = root, 7\ngroups = 0\ntcp = yes\n", &e), 0);
    quota_users(&rules, tenant_named(&table, "a"), text, sizeof text);
    ck_assert_str_eq(text, "root, 7; groups 0; tcp");
    quota_users(&rules, tenant_named(&table, "b"), text, sizeof text);
    ck_assert_str_eq(text, "");
    tenant_destroy_all(&table);
}
END_TEST

/* ---- tokens ---------------------------------------------------------------------------------- */

static void tokens_write(const char *name, const char *text)
{
    scratch_write(scratch_path(dir, name), text, strlen(text));
    ck_assert_int_eq(chmod(scratch_path(dir, name), 0640), 0);
}

static void line_of(const char *token, char line[TOKEN_LINE_BYTES])
{
    struct token_hash hash;
    ck_assert_int_eq(token_hash_of(bytes_str(token), &hash, NULL), 0);
    token_line(&hash, line);
}

static const char *owner(const char *token)
{
    struct token_hash hash;
    const struct tenant_rule *rule = tenant_tokens_find(&rules, bytes_str(token), &hash);
    return rule != NULL ? rule->name : "";
}

/* Sections a and b (before it in the file), each with a file of tokens. */
static void load_both(void)
{
    char text[3 * SCRATCH_PATH];
    char a[SCRATCH_PATH];
    (void)snprintf(a, sizeof a, "%s", scratch_path(dir, "a"));
    (void)snprintf(text, sizeof text, "[tenant b]\ntokens = %s\n[tenant a]\ntokens = %s\n",
                   scratch_path(dir, "b"), a);
    ck_assert_int_eq(load(text, NULL), 0);
}

START_TEST(a_token_belongs_to_its_tenant)
{
    char one[TOKEN_LINE_BYTES];
    char two[TOKEN_LINE_BYTES];
    char three[TOKEN_LINE_BYTES];
    char text[512];
    struct err e = ERR_INIT;
    struct token_hash hash;
    line_of("one", one);
    line_of("two", two);
    line_of("three", three);
    (void)snprintf(text, sizeof text, "# ours\n\n  %s laptop\n%s", one, two);
    tokens_write("a", text);
    tokens_write("b", three);
    load_both();
    ck_assert_str_eq(owner("one"), ""); /* not read so far */
    ck_assert_msg(tenant_tokens_read(&rules, &e) == 0, "%s", e.text);
    ck_assert_str_eq(owner("one"), "a");
    ck_assert_str_eq(owner("two"), "a");
    ck_assert_str_eq(owner("three"), "b");
    ck_assert_str_eq(owner("on"), "");
    ck_assert_str_eq(owner(""), "");
    (void)tenant_tokens_find(&rules, bytes_str("two"), &hash);
    ck_assert(tenant_tokens_have(&rules, "a", &hash));
    ck_assert(!tenant_tokens_have(&rules, "b", &hash));
    tokens_write("b", two); /* of both */
    ck_assert_int_eq(tenant_tokens_read(&rules, &e), ERR_EXISTS);
    ck_assert_ptr_nonnull(strstr(e.text, "tenant b"));
    ck_assert_ptr_nonnull(strstr(e.text, "belongs to tenant a already"));
}
END_TEST

START_TEST(a_bad_file_of_tokens_leaves_the_others)
{
    char one[TOKEN_LINE_BYTES];
    struct err e = ERR_INIT;
    line_of("one", one);
    tokens_write("b", one);
    load_both();
    ck_assert_int_eq(tenant_tokens_read(&rules, &e), ERR_NOT_FOUND);
    ck_assert_str_eq(owner("one"), "b");
    tokens_write("a", "one\n");
    ck_assert_int_eq(tenant_tokens_read(&rules, &e), ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(e.text, "line 1"));
    tokens_write("a", "");
    ck_assert_int_eq(chmod(scratch_path(dir, "a"), 0644), 0);
    ck_assert_int_eq(tenant_tokens_read(&rules, &e), ERR_PERMISSION);
    ck_assert_ptr_nonnull(strstr(e.text, "mode 0644"));
    ck_assert_str_eq(owner("one"), "b");
    ck_assert_int_eq(chmod(scratch_path(dir, "a"), 0640), 0);
    ck_assert_int_eq(tenant_tokens_read(&rules, &e), 0);
}
END_TEST

/* A name without a slash is a credential of the service manager. */
START_TEST(tokens_come_from_credentials_too)
{
    char one[TOKEN_LINE_BYTES];
    struct err e = ERR_INIT;
    line_of("one", one);
    tokens_write("vision", one);
    ck_assert_int_eq(load("[tenant a]\ntokens = vision\n", &e), 0);
    (void)unsetenv("CREDENTIALS_DIRECTORY");
    ck_assert_int_eq(tenant_tokens_read(&rules, &e), ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(e.text, "LoadCredential=vision:PATH"));
    (void)setenv("CREDENTIALS_DIRECTORY", dir, 1);
    ck_assert_msg(tenant_tokens_read(&rules, &e) == 0, "%s", e.text);
    ck_assert_str_eq(owner("one"), "a");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tenant");
    TCase *tcase = tcase_create("tenant");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, sections_say_who_and_how_much);
    tcase_add_test(tcase, unknown_users_have_a_tenant);
    tcase_add_test(tcase, files_of_tenants_come_behind_and_hold_nothing_else);
    tcase_add_test(tcase, a_tenant_has_a_socket);
    tcase_add_test(tcase, bad_sockets_are_refused);
    tcase_add_test(tcase, sockets_are_not_too_many);
    tcase_add_test(tcase, sockets_are_not_those_of_the_daemon);
    tcase_add_loop_test(tcase, what_is_wrong_is_named_and_nothing_changes, 0,
                        (int)(sizeof bad_files / sizeof bad_files[0]));
    tcase_add_test(tcase, more_than_there_is_is_named);
    tcase_add_test(tcase, guarantees_fit_or_are_refused_by_name);
    tcase_add_test(tcase, the_ledger_is_the_tenants);
    tcase_add_test(tcase, what_lies_on_the_host_and_in_all_is_limited);
    tcase_add_test(tcase, who_belongs_is_told);
    struct token_hash hash;
    if (token_hash_of(bytes_str(""), &hash, NULL) == 0) { /* else built without mbedtls */
        tcase_add_test(tcase, a_token_belongs_to_its_tenant);
        tcase_add_test(tcase, a_bad_file_of_tokens_leaves_the_others);
        tcase_add_test(tcase, tokens_come_from_credentials_too);
    }
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
