#include <string.h>

#include "contract.h"

START_TEST(registered_and_complete)
{
    const struct backend *b = backend_find(contract_backend);
    ck_assert_ptr_nonnull(b);
    ck_assert_str_eq(b->name, contract_backend);
    ok(backend_check(b, e));
    bool listed = false;
    for (const struct backend *const *each = backend_list(); *each; each++) {
        listed = listed || *each == b;
    }
    ck_assert(listed);
}
END_TEST

START_TEST(a_missing_function_is_named)
{
    struct backend b = *backend_find(contract_backend);
    struct backend_stream_ops stream = *b.stream;
    stream.mark = NULL;
    b.stream = &stream;
    fails(ERR_INTERNAL, backend_check(&b, e));
    b = *backend_find(contract_backend);
    b.abi++;
    fails(ERR_VERSION, backend_check(&b, e));
}
END_TEST

START_TEST(enumerates_what_it_opens)
{
    const struct backend *b = backend_find(contract_backend);
    unsigned count = 0;
    ok(b->enumerate(contract_options, &count, e));
    ck_assert_uint_ge(count, 1);
    struct backend_device *d = NULL;
    fails(ERR_NO_DEVICE, b->device->open(count, contract_options, NULL, NULL, &d, e));
    ck_assert_ptr_null(d);
}
END_TEST

START_TEST(an_unknown_option_is_refused)
{
    const struct backend *b = backend_find(contract_backend);
    struct backend_device *d = NULL;
    fails(ERR_INVALID, b->device->open(0, "no_such_option=1", NULL, NULL, &d, e));
    ck_assert_ptr_null(d);
}
END_TEST

START_TEST(info_is_sane)
{
    bench_open();
    const struct backend_info *i = &bench.info;
    ck_assert_str_eq(i->backend, contract_backend);
    ck_assert_uint_gt(strlen(i->name), 0);
    ck_assert_uint_gt(strlen(i->arch), 0);
    ck_assert_uint_gt(i->memory, 0);
    ck_assert_uint_gt(i->max_alloc, 0);
    ck_assert_uint_le(i->max_alloc, i->memory);
    ck_assert_uint_ge(i->max_group, 1);
    ck_assert_uint_ge(i->max_local[0], 1);
    ck_assert_uint_ge(i->streams, 1);
    ck_assert_uint_le(i->streams, 16);
    ck_assert_int_eq(i->simulated, strcmp(contract_backend, "sim") == 0);
    ck_assert(!i->simulated || !bench.b->auto_choice);
    bench_close();
}
END_TEST

START_TEST(opens_again_after_close)
{
    char arch[sizeof bench.info.arch];
    bench_open();
    memcpy(arch, bench.info.arch, sizeof arch);
    bench_close();
    bench_open();
    ck_assert_str_eq(bench.info.arch, arch);
    bench_close();
}
END_TEST

void contract_device(Suite *suite)
{
    TCase *t = tcase_create("device");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, registered_and_complete);
    tcase_add_test(t, a_missing_function_is_named);
    tcase_add_test(t, enumerates_what_it_opens);
    tcase_add_test(t, an_unknown_option_is_refused);
    tcase_add_test(t, info_is_sane);
    tcase_add_test(t, opens_again_after_close);
    suite_add_tcase(suite, t);
}
