#include <string.h>

#include "contract.h"

START_TEST(lists_its_kernels)
{
    const struct signature *sig = NULL;
    struct backend_module *m = module_of("axpy", &sig);
    unsigned count = bench.b->module->kernel_count(m);
    bool found = false;
    ck_assert_uint_ge(count, 1);
    for (unsigned i = 0; i < count; i++) {
        struct backend_kernel k;
        ok(bench.b->module->kernel(m, i, &k, e));
        found = found || strcmp(k.entry, "axpy_f32") == 0;
        /* a, x, y and the named size */
        ck_assert(strcmp(k.entry, "axpy_f32") != 0 || k.arg_count == 4);
    }
    ck_assert(found);
    struct backend_kernel k;
    fails(ERR_RANGE, bench.b->module->kernel(m, count, &k, e));
    bench.b->module->unload(m);
}
END_TEST

START_TEST(the_compiler_reports_kernels)
{
    const struct signature *sig = NULL;
    struct backend_compiled c = {0};
    ok(compile_builtin("axpy", &c, &sig, e));
    bool found = false;
    for (unsigned i = 0; i < c.kernel_count; i++) {
        if (strcmp(c.kernels[i].entry, "axpy_f32") == 0) {
            found = true;
            ck_assert_uint_eq(c.kernels[i].arg_count, 4);
        }
        /* a written argument is never reported as only read; a back end need not know about the
         * others */
        ck_assert(c.kernels[i].arg_count < 3 || !c.kernels[i].arg[2].only_reads);
    }
    ck_assert(found);
    ck_assert_uint_gt(c.binary_size, 0);
    backend_compiled_finish(&c);
}
END_TEST

START_TEST(refuses_garbage)
{
    static const uint8_t garbage[300] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    struct backend_module *m = NULL;
    const struct backend_module_ops *o = bench.b->module;
    fails(ERR_INVALID, o->load(bench.device, bytes_of(garbage, sizeof garbage), &m, e));
    fails(ERR_INVALID, o->load(bench.device, bytes_of(garbage, 1), &m, e));
    fails(ERR_INVALID, o->load(bench.device, bytes_of(garbage, 0), &m, e));
    ck_assert_ptr_null(m);
}
END_TEST

START_TEST(refuses_a_damaged_binary)
{
    const struct signature *sig = NULL;
    struct backend_compiled c = {0};
    struct backend_module *m = NULL;
    ok(compile_builtin("axpy", &c, &sig, e));
    ck_assert_int_ne(
        bench.b->module->load(bench.device, bytes_of(c.binary, c.binary_size - 3), &m, NULL), 0);
    c.binary[c.binary_size - 2] ^= 0x5a;
    ck_assert_int_ne(
        bench.b->module->load(bench.device, bytes_of(c.binary, c.binary_size), &m, NULL), 0);
    ck_assert_ptr_null(m);
    backend_compiled_finish(&c);
}
END_TEST

START_TEST(a_foreign_language_is_unsupported)
{
    struct backend_source source = {.lang = BACKEND_LANG_SPIRV,
                                    .text = bytes_str("no such thing"),
                                    .file = "x.spv",
                                    .options = "",
                                    .arch = bench.info.arch};
    struct backend_compiled c = {0};
    fails(ERR_UNSUPPORTED, bench.b->compile(0, &source, &c, e));
    ck_assert_ptr_null(c.binary);
}
END_TEST

void contract_module(Suite *suite)
{
    TCase *t = tcase_create("module");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, bench_open, bench_close);
    tcase_add_test(t, lists_its_kernels);
    tcase_add_test(t, the_compiler_reports_kernels);
    tcase_add_test(t, refuses_garbage);
    tcase_add_test(t, refuses_a_damaged_binary);
    tcase_add_test(t, a_foreign_language_is_unsupported);
    suite_add_tcase(suite, t);
}
