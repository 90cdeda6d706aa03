#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/builtin.h"
#include "kernels/dialect.h"
#include "kernels/plan.h"

static char *translated(const char *source, enum dialect_target target, bool f64)
{
    struct capbuf out;
    struct err e = ERR_INIT;
    capbuf_init(&out, 1u << 20);
    ck_assert_msg(dialect_translate(bytes_str(source), "dir/my.gk", target, f64, &out, &e) == 0,
                  "%s", e.text);
    char *text = strndup((const char *)out.data, out.size);
    ck_assert_ptr_nonnull(text);
    capbuf_finish(&out);
    return text;
}

static const char source[] = "// squares\n"
                             "helper f32 twice(f32 v)\n"
                             "{\n"
                             "    return 2.0f * v;\n"
                             "}\n"
                             "\n"
                             "//@kernel grow<T: f32 f64>(in T x[n], out T y[n])  over n\n"
                             "\n"
                             "  {\n"
                             "    y[i] = x[i] + (T)twice(1.0f); // a brace in a comment: }\n"
                             "}\n"
                             "//@kernel plain(u32 v, out u32 y[n])  over n  group 32\n"
                             "{ y[i] = v + '{'; }\n";

START_TEST(test_opencl)
{
    char *text = translated(source, DIALECT_OPENCL, true);
    ck_assert_ptr_nonnull(strstr(text, "__kernel void grow_f32(__global const float *x, "
                                       "__global float *y, ulong n)"));
    ck_assert_ptr_nonnull(strstr(text, "void grow_f64(__global const double *x"));
    ck_assert_ptr_nonnull(strstr(text, "reqd_work_group_size(32, 1, 1)"));
    ck_assert_ptr_nonnull(strstr(text, "if (i >= (u64)(n)) return;"));
    ck_assert_ptr_nonnull(strstr(text, "#line 9 \"dir/my.gk\"\n  {\n"));
    ck_assert_ptr_nonnull(strstr(text, "#line 1 \"dir/my.gk\"\n// squares\n"));
    ck_assert_ptr_null(strstr(text, "lid"));
    free(text);
    text = translated(source, DIALECT_OPENCL, false);
    ck_assert_ptr_null(strstr(text, "double"));
    ck_assert_ptr_null(strstr(text, "fp64"));
    ck_assert_ptr_nonnull(strstr(text, "grow_f32"));
    free(text);
}
END_TEST

START_TEST(test_cuda)
{
    char *text = translated(source, DIALECT_CUDA, true);
    ck_assert_ptr_nonnull(strstr(text, "extern \"C\" __global__ void grow_f32(const float *x, "
                                       "float *y, unsigned long long n)"));
    ck_assert_ptr_nonnull(strstr(text, "__launch_bounds__(32) void plain(unsigned int v, "));
    free(text);
}
END_TEST

START_TEST(test_guard)
{
    char *text = translated("//@kernel a(in f32 x[h,w], out f32 y[h,w+1]) over h, w+1\n{}\n"
                            "//@kernel b(in f32 x[n]) over n group 8\n{ barrier(); }\n"
                            "//@kernel c(in f32 x[n])\n{ f32 v = x[i + j]; }\n",
                            DIALECT_OPENCL, false);
    ck_assert_ptr_nonnull(strstr(text, "if (i >= (u64)(w + 1) || j >= (u64)(h)) return;"));
    char *b = strstr(text, "void b(");
    ck_assert_ptr_nonnull(b);
    ck_assert_ptr_null(strstr(b, "return;"));
    ck_assert_ptr_nonnull(strstr(b, "const u64 j = "));
    free(text);
}
END_TEST

struct bad {
    const char *source, *error;
};

static const struct bad bads[] = {
    {"", "my.gk:1:1: no kernel: a line that begins with //@kernel is needed"},
    {"int x;\n", "my.gk:1:1: no kernel: a line that begins with //@kernel is needed"},
    {"/* //@kernel k()\n//@kernel k()\n*/", "my.gk:1:1: no kernel: a line that begins with "
                                            "//@kernel is needed"},
    {"\n\n  //@kernel k(in f32 x)\n{}", "my.gk:3:15: x is declared in but is no array: write x[n]"},
    {"//@kernel k()\n", "my.gk:2:1: expected '{': the body of kernel k"},
    {"//@kernel k()\nint x;\n{}", "my.gk:2:1: expected '{': the body of kernel k"},
    {"//@kernel k()\n {{}\n", "my.gk:2:2: this brace is never closed"},
    {"//@kernel k()\n{}\n//@kernel k()\n{}\n", "my.gk:3:1: kernel k is defined twice"},
    {"#define WAIT barrier()\n//@kernel k()\n{}\n", "my.gk:1:1: barrier() outside a kernel's body"},
    {"//@kernel k()\n//@kernel l()\n{}\n", "my.gk:2:1: expected '{': the body of kernel k"},
};

START_TEST(test_bad)
{
    struct signature *sigs = calloc(DIALECT_KERNELS_MAX, sizeof(*sigs));
    unsigned count = 77;
    struct err e = ERR_INIT;
    ck_assert_ptr_nonnull(sigs);
    ck_assert_int_eq(dialect_signatures(bytes_str(bads[_i].source), "my.gk", sigs,
                                        DIALECT_KERNELS_MAX, &count, &e),
                     ERR_COMPILE);
    ck_assert_str_eq(e.text, bads[_i].error);
    ck_assert_uint_eq(count, 77);
    free(sigs);
}
END_TEST

START_TEST(test_signatures)
{
    struct signature *sigs = calloc(2, sizeof(*sigs));
    unsigned count = 0;
    struct err e = ERR_INIT;
    ck_assert_ptr_nonnull(sigs);
    ck_assert_int_eq(dialect_signatures(bytes_str(source), "my.gk", sigs, 2, &count, &e), 0);
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(sigs[0].line, 7);
    ck_assert_uint_eq(sigs[1].line, 12);
    ck_assert_int_eq(dialect_signatures(bytes_str(source), "my.gk", sigs, 1, &count, &e),
                     ERR_COMPILE);
    ck_assert_str_eq(e.text, "my.gk:12:1: more than 1 kernels");
    free(sigs);
}
END_TEST

START_TEST(test_output_limit)
{
    struct capbuf out;
    capbuf_init(&out, 600);
    ck_assert_int_eq(
        dialect_translate(bytes_str(source), "my.gk", DIALECT_OPENCL, true, &out, NULL), ERR_LIMIT);
    capbuf_finish(&out);
}
END_TEST

/* A file name is text between quotes: it cannot end them. */
START_TEST(test_file_name)
{
    struct capbuf out;
    capbuf_init(&out, 1u << 16);
    ck_assert_int_eq(
        dialect_translate(bytes_str(source), "a\"\n#include <x>", DIALECT_OPENCL, true, &out, NULL),
        0);
    ck_assert(capbuf_append(&out, "", 1));
    ck_assert_ptr_nonnull(strstr((char *)out.data, "\"a__#include <x>\""));
    ck_assert_ptr_null(strstr((char *)out.data, "\n#include"));
    capbuf_finish(&out);
}
END_TEST

START_TEST(test_random)
{
    static const char *const pieces[] = {"//@kernel k(in f32 x[n]) over n\n",
                                         "{",
                                         "}",
                                         "\n",
                                         "//",
                                         "/*",
                                         "*/",
                                         "\"",
                                         "'",
                                         "\\",
                                         "barrier",
                                         "i",
                                         " ",
                                         "//@kernel",
                                         "\xff",
                                         "x"};
    struct signature *sigs = calloc(4, sizeof(*sigs));
    ck_assert_ptr_nonnull(sigs);
    srandom(5);
    for (unsigned round = 0; round < 30000; round++) {
        char text[2048];
        size_t used = 0;
        unsigned count = 0;
        struct capbuf out;
        for (long p = random() % 30; p > 0; p--) {
            const char *piece = pieces[(unsigned long)random() % 16];
            memcpy(text + used, piece, strlen(piece));
            used += strlen(piece);
        }
        uint8_t *exact = malloc(used == 0 ? 1 : used);
        ck_assert(exact != NULL);
        memcpy(exact, text, used);
        capbuf_init(&out, 1u << 20);
        int r = dialect_signatures(bytes_of(exact, used), "r.gk", sigs, 4, &count, NULL);
        int t = dialect_translate(bytes_of(exact, used), "r.gk", DIALECT_OPENCL, true, &out, NULL);
        if ((r != 0 && r != ERR_COMPILE) || (r == 0 && t != 0)) {
            ck_abort_msg("round %u: %d, %d", round, r, t);
        }
        capbuf_finish(&out);
        free(exact);
    }
    free(sigs);
}
END_TEST

START_TEST(test_builtin)
{
    unsigned module = 99;
    const struct signature *s = NULL;
    struct err e = ERR_INIT;
    ck_assert_msg(builtin_init(&e) == 0, "%s", e.text);
    ck_assert(builtin_find("axpy", &module, &s));
    ck_assert_str_eq(builtin_module_name(module), "axpy");
    ck_assert_str_eq(s->name, "axpy");
    ck_assert(!builtin_find("axpy_f32", &module, &s));
    ck_assert_uint_gt(builtin_kernel_count(), 30);
    for (unsigned k = 0; k < builtin_kernel_count(); k++) {
        const struct signature *one = builtin_kernel(k, &module);
        unsigned found = 0;
        ck_assert(builtin_find(one->name, &found, &s));
        ck_assert_msg(s == one && found == module, "%s is there twice", one->name);
        ck_assert_msg(plan_signature(one->name) == NULL, "%s is an operation too", one->name);
    }
    ck_assert_ptr_null(builtin_kernel(builtin_kernel_count(), &module));
    ck_assert_uint_eq(builtin_module_source(999).size, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("dialect");
    TCase *t = tcase_create("dialect");
    tcase_add_test(t, test_opencl);
    tcase_add_test(t, test_cuda);
    tcase_add_test(t, test_guard);
    tcase_add_loop_test(t, test_bad, 0, sizeof(bads) / sizeof(bads[0]));
    tcase_add_test(t, test_signatures);
    tcase_add_test(t, test_output_limit);
    tcase_add_test(t, test_file_name);
    tcase_add_test(t, test_random);
    tcase_add_test(t, test_builtin);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
