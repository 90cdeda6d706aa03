/* Who is an administrator, and who sees whose work. */
#include <check.h>
#include <grp.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/front/rights.h"
#include "daemon/front/session.h"

static struct tenant *tenant_at(unsigned n)
{
    static char tenants[2];
    return (struct tenant *)&tenants[n];
}

static struct session session_of(uint32_t uid, uint32_t gid, bool local)
{
    return (struct session){
        .key = {.uid = uid}, .gid = gid, .local = local, .tenant = tenant_at(0)};
}

START_TEST(root_and_the_daemons_user_only)
{
    struct rights r;
    struct err e = ERR_INIT;
    ck_assert_int_eq(rights_read("", false, &r, &e), 0);
    struct session root = session_of(0, 0, true);
    struct session self = session_of(geteuid(), UINT32_MAX, true);
    struct session other = session_of(geteuid() + 54321, UINT32_MAX, true);
    struct session far = session_of(geteuid(), 0, false);
    ck_assert(rights_admin(&r, &root));
    ck_assert(rights_admin(&r, &self));
    ck_assert(!rights_admin(&r, &other));
    ck_assert(!rights_admin(&r, &far));
    ck_assert(!rights_admin(&r, NULL));
    ck_assert(rights_sees(&r, &self, tenant_at(1)));
    ck_assert(rights_sees(&r, &other, tenant_at(0)));
    ck_assert(!rights_sees(&r, &other, tenant_at(1)));
    ck_assert(!rights_sees(&r, &other, NULL)); /* the daemon's own */
    ck_assert(!rights_sees(&r, NULL, tenant_at(0)));
}
END_TEST

START_TEST(everybody_sees_if_told_and_controls_nothing)
{
    struct rights r;
    ck_assert_int_eq(rights_read("", true, &r, NULL), 0);
    struct session other = session_of(geteuid() + 54321, 54321, true);
    ck_assert(rights_sees(&r, &other, tenant_at(1)));
    ck_assert(!rights_sees(&r, NULL, tenant_at(1)));
    ck_assert(!rights_admin(&r, &other));
}
END_TEST

START_TEST(members_of_the_group)
{
    struct rights r;
    struct err e = ERR_INIT;
    const struct group *g = getgrgid(0);
    ck_assert_ptr_nonnull(g);
    ck_assert_int_eq(rights_read(g->gr_name, false, &r, &e), 0);
    struct session by_group = session_of(geteuid() + 54321, 0, true);
    struct session other = session_of(geteuid() + 54321, 54321, true);
    ck_assert(rights_admin(&r, &by_group));
    ck_assert(!rights_admin(&r, &other));
    r.admin[0] = other.key.uid;
    r.admin_count = 1;
    ck_assert(rights_admin(&r, &other));
    other.local = false;
    ck_assert(!rights_admin(&r, &other));
}
END_TEST

START_TEST(a_group_that_is_none)
{
    struct rights r = {.admin_count = 7};
    struct err e = ERR_INIT;
    ck_assert_int_eq(rights_read("no-such-group", false, &r, &e), ERR_NOT_FOUND);
    ck_assert_uint_eq(r.admin_count, 7);
    ck_assert_str_eq(e.text, "admin_group = no-such-group: there is no such group");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rights");
    TCase *tc = tcase_create("rights");
    tcase_add_test(tc, root_and_the_daemons_user_only);
    tcase_add_test(tc, everybody_sees_if_told_and_controls_nothing);
    tcase_add_test(tc, members_of_the_group);
    tcase_add_test(tc, a_group_that_is_none);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
