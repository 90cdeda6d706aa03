/* Who is an administrator, who loads kernels, and who sees whose work. */
#include <check.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/front/model/rights.h"
#include "daemon/front/model/session.h"
#include "daemon/front/model/tenant.h"
#include "daemon/front/settings/config.h"

static struct tenant *tenant_at(unsigned n)
{
    static struct tenant tenants[2];
    return &tenants[n];
}

static struct session session_of(uint32_t uid, uint32_t gid, bool local)
{
    return (struct session){
        .key = {.uid = uid}, .client = {.gid = gid, .local = local}, .tenant = tenant_at(0)};
}

static int read_groups(const char *admin, const char *load, const char *look, struct rights *r,
                       struct err *e)
{
    struct config config;
    config_defaults(&config);
    ck_assert_str_eq(config.load_group, "");
    (void)snprintf(config.admin_group, sizeof config.admin_group, "%s", admin);
    (void)snprintf(config.load_group, sizeof config.load_group, "%s", load);
    (void)snprintf(config.look, sizeof config.look, "%s", look);
    return rights_read(&config, r, e);
}

START_TEST(root_and_the_daemons_user_only)
{
    struct rights r;
    struct err e = ERR_INIT;
    ck_assert_int_eq(read_groups("", "", "own", &r, &e), 0);
    struct session root = session_of(0, 0, true);
    struct session self = session_of(geteuid(), UINT32_MAX, true);
    struct session other = session_of(geteuid() + 54321, UINT32_MAX, true);
    struct session far = session_of(geteuid(), 0, false);
    ck_assert(rights_admin(&r, &root) && rights_loads(&r, &root));
    ck_assert(rights_admin(&r, &self) && rights_loads(&r, &self));
    ck_assert(!rights_admin(&r, &other) && !rights_loads(&r, &other));
    ck_assert(!rights_admin(&r, &far) && !rights_loads(&r, &far));
    ck_assert(!rights_admin(&r, NULL) && !rights_loads(&r, NULL));
    ck_assert(rights_sees(&r, &self, tenant_at(1)));
    ck_assert(rights_sees(&r, &other, tenant_at(0)));
    ck_assert(!rights_sees(&r, &other, tenant_at(1)));
    ck_assert(!rights_sees(&r, &other, NULL)); /* the daemon's own */
    ck_assert(!rights_sees(&r, NULL, tenant_at(0)));
}
END_TEST

/* A role gives what it names, to local clients. */
START_TEST(a_tenant_has_its_roles)
{
    struct rights r;
    ck_assert_int_eq(read_groups("", "", "own", &r, NULL), 0);
    struct session s = session_of(geteuid() + 54321, UINT32_MAX, true);
    tenant_at(0)->limits.roles = ROLE_DRAIN;
    ck_assert(rights_may(&r, &s, ROLE_DRAIN) && !rights_may(&r, &s, ROLE_RELOAD | ROLE_CANCEL));
    ck_assert(!rights_sees(&r, &s, tenant_at(1)) && !rights_admin(&r, &s));
    tenant_at(0)->limits.roles = ROLE_SEE;
    ck_assert(rights_sees(&r, &s, tenant_at(1)) && !rights_may(&r, &s, ROLE_CANCEL));
    tenant_at(0)->limits.roles = ROLE_CANCEL | ROLE_RELOAD;
    ck_assert(rights_sees(&r, &s, tenant_at(1)) && rights_may(&r, &s, ROLE_CANCEL));
    ck_assert(rights_may(&r, &s, ROLE_RELOAD) && !rights_may(&r, &s, 0));
    s.client.local = false;
    ck_assert(!rights_may(&r, &s, ROLE_RELOAD) && !rights_sees(&r, &s, tenant_at(1)));
    ck_assert(!rights_may(&r, NULL, ROLE_DRAIN));
    tenant_at(0)->limits.roles = 0;
}
END_TEST

START_TEST(everybody_sees_if_told_and_controls_nothing)
{
    struct rights r;
    ck_assert_int_eq(read_groups("", "", "all", &r, NULL), 0);
    struct session other = session_of(geteuid() + 54321, 54321, true);
    ck_assert(rights_sees(&r, &other, tenant_at(1)));
    ck_assert(!rights_sees(&r, NULL, tenant_at(1)));
    ck_assert(!rights_admin(&r, &other));
    ck_assert(!rights_loads(&r, &other));
}
END_TEST

/* Each group for its own: _i 0: admin_group, 1: load_group. */
START_TEST(members_of_the_group)
{
    struct rights r;
    struct err e = ERR_INIT;
    const struct group *g = getgrgid(0);
    ck_assert_ptr_nonnull(g);
    ck_assert_int_eq(
        read_groups(_i == 0 ? g->gr_name : "", _i == 1 ? g->gr_name : "", "own", &r, &e), 0);
    struct members *m = _i == 0 ? &r.admins : &r.loaders;
    struct session by_group = session_of(geteuid() + 54321, 0, true);
    struct session other = session_of(geteuid() + 54321, 54321, true);
    ck_assert(rights_admin(&r, &by_group) == (_i == 0));
    ck_assert(!rights_loads(&r, &by_group)); /* not in the workers that tenants share */
    ck_assert(rights_place(&r, &by_group) == (_i == 1));
    ck_assert(rights_loads(&r, &by_group) == (_i == 1));
    ck_assert(rights_place(&r, &other) == (_i == 1));
    ck_assert(!rights_admin(&r, &other) && !rights_loads(&r, &other));
    m->uid[0] = other.key.uid;
    m->count = 1;
    ck_assert(rights_admin(&r, &other) == (_i == 0));
    ck_assert(rights_place(&r, &other) == (_i == 1));
    ck_assert(rights_loads(&r, &other) == (_i == 1));
    other.client.local = false;
    ck_assert(!rights_admin(&r, &other) && !rights_loads(&r, &other));
}
END_TEST

/* A section decides for all its users; without one root and the daemon's user are trusted. */
START_TEST(who_is_apart)
{
    static const struct {
        enum tenant_load load;
        bool ruled, trusted, group, root, far, apart;
    } of[] = {
        {.load = TENANT_LOAD_YES, .ruled = true, .apart = true},
        {.load = TENANT_LOAD_YES, .ruled = true, .root = true, .apart = true},
        {.load = TENANT_LOAD_YES, .ruled = true, .trusted = true},
        {.load = TENANT_LOAD_NO, .ruled = true, .group = true},
        {.load = TENANT_LOAD_BY_GROUP, .ruled = true},
        {.load = TENANT_LOAD_BY_GROUP, .ruled = true, .group = true, .apart = true},
        {.load = TENANT_LOAD_BY_GROUP, .group = true, .apart = true},
        {.load = TENANT_LOAD_BY_GROUP, .group = true, .root = true},
        {.load = TENANT_LOAD_BY_GROUP, .group = true, .trusted = true},
        {.load = TENANT_LOAD_BY_GROUP},
        {.load = TENANT_LOAD_YES, .apart = true},
        {.load = TENANT_LOAD_YES, .root = true},
        {.load = TENANT_LOAD_YES, .ruled = true, .far = true},
    };
    for (unsigned i = 0; i < sizeof of / sizeof of[0]; i++) {
        struct rights r = {.admins.group = UINT32_MAX, .loaders.group = UINT32_MAX};
        struct session s = session_of(of[i].root ? 0 : geteuid() + 54321, 54321, !of[i].far);
        struct tenant t = {.ruled = of[i].ruled,
                           .limits = {.load = of[i].load, .trusted = of[i].trusted}};
        s.tenant = &t;
        r.loaders.group = of[i].group ? 54321 : UINT32_MAX;
        ck_assert_msg(rights_place(&r, &s) == of[i].apart && t.apart == of[i].apart, "case %u", i);
        ck_assert(!rights_place(&r, &s));
        ck_assert(!t.apart || rights_loads(&r, &s));
    }
    struct rights r = {.admins.group = UINT32_MAX, .loaders.group = UINT32_MAX};
    struct session s = session_of(geteuid() + 54321, 54321, true);
    struct tenant t = {.ruled = true, .limits.load = TENANT_LOAD_YES, .limits.trusted = true};
    struct config config;
    struct err e = ERR_INIT;
    s.tenant = &t;
    config_defaults(&config);
    ck_assert(rights_loads(&r, &s));
    t.held[TENANT_BUFFERS] = 1;
    t.limits.trusted = false; /* by a reload */
    ck_assert(!rights_place(&r, &s) && !t.apart);
    ck_assert(!rights_loads(&r, &s));
    ck_assert_int_eq(rights_refuse_load(&r, &config, &s, &e), ERR_PERMISSION);
    ck_assert_ptr_nonnull(strstr(e.text, "has buffers or jobs in those that tenants share"));
    t.held[TENANT_BUFFERS] = 0;
    t.held[TENANT_JOBS] = 1;
    ck_assert(!rights_place(&r, &s));
    t.held[TENANT_JOBS] = 0;
    ck_assert(rights_place(&r, &s) && t.apart && rights_loads(&r, &s));
}
END_TEST

START_TEST(a_group_that_is_none)
{
    struct rights r = {.admins.count = 7};
    struct err e = ERR_INIT;
    ck_assert_int_eq(read_groups("no-such-group", "", "own", &r, &e), ERR_NOT_FOUND);
    ck_assert_uint_eq(r.admins.count, 7);
    ck_assert_str_eq(e.text, "admin_group = no-such-group: there is no such group");
    ck_assert_int_eq(read_groups("", "no-such-group", "own", &r, &e), ERR_NOT_FOUND);
    ck_assert_uint_eq(r.admins.count, 7);
    ck_assert_str_eq(e.text, "load_group = no-such-group: there is no such group");
}
END_TEST

/* Who is refused is told which setting of which file would allow it. */
START_TEST(a_refusal_names_the_setting)
{
    struct config config;
    struct err e = ERR_INIT;
    struct tenant tenant = {.name = "uid:1234"};
    struct session s = {.tenant = &tenant, .key.uid = 1234, .client.local = true};
    struct rights r = {.admins.group = UINT32_MAX, .loaders.group = UINT32_MAX};
    config_defaults(&config);
    ck_assert_int_eq(rights_refuse_load(&r, &config, &s, &e), ERR_PERMISSION);
    ck_assert_ptr_nonnull(strstr(e.text, "uid:1234"));
    ck_assert_ptr_nonnull(strstr(e.text, "no load_group is set in section [tenants]"));
    ck_assert_ptr_nonnull(strstr(e.text, "/etc/gpud/gpud.conf"));
    (void)strcpy(config.load_group, "trusted");
    (void)strcpy(config.file, "/tmp/other.conf");
    ck_assert_int_eq(rights_refuse_load(&r, &config, &s, &e), ERR_PERMISSION);
    ck_assert_ptr_nonnull(strstr(e.text, "not in group trusted"));
    ck_assert_ptr_nonnull(strstr(e.text, "/tmp/other.conf"));
    s.client.local = false;
    ck_assert_int_eq(rights_refuse_load(&r, &config, &s, &e), ERR_PERMISSION);
    ck_assert_ptr_nonnull(strstr(e.text, "tcp"));
}
END_TEST

/* The refusal names the users that may, and not the job's owner. */
START_TEST(a_refused_cancel_says_who_may)
{
    struct config config;
    struct err e = ERR_INIT;
    config_defaults(&config);
    ck_assert_int_eq(rights_refuse_cancel(&config, 7, &e), ERR_PERMISSION);
    ck_assert_ptr_nonnull(strstr(e.text, "job 7 may be ended by those who submitted it, root"));
    ck_assert_ptr_nonnull(strstr(e.text, "no admin_group is set in section [daemon] of"));
    ck_assert_ptr_nonnull(strstr(e.text, "/etc/gpud/gpud.conf"));
    (void)strcpy(config.admin_group, "operators");
    ck_assert_int_eq(rights_refuse_cancel(&config, 7, &e), ERR_PERMISSION);
    ck_assert_ptr_nonnull(strstr(e.text, "members of group operators"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rights");
    TCase *tc = tcase_create("rights");
    tcase_add_test(tc, root_and_the_daemons_user_only);
    tcase_add_test(tc, a_tenant_has_its_roles);
    tcase_add_test(tc, everybody_sees_if_told_and_controls_nothing);
    tcase_add_loop_test(tc, members_of_the_group, 0, 2);
    tcase_add_test(tc, who_is_apart);
    tcase_add_test(tc, a_group_that_is_none);
    tcase_add_test(tc, a_refusal_names_the_setting);
    tcase_add_test(tc, a_refused_cancel_says_who_may);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
