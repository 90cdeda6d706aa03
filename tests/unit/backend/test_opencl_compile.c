#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/shape.h"
#include "daemon/backend/backend.h"

#define SKIPPED 77

static int compile(const char *text, const char *file, const char *options,
                   struct backend_compiled *ret_compiled, struct err *e)
{
    struct backend_source source = {.lang = BACKEND_LANG_OPENCL,
                                    .text = bytes_str(text),
                                    .file = file,
                                    .options = options,
                                    .arch = ""};
    return backend_find("opencl")->compile(0, &source, ret_compiled, e);
}

static const struct backend_compiled_kernel *find(const struct backend_compiled *c,
                                                  const char *entry)
{
    for (unsigned i = 0; i < c->kernel_count; i++) {
        if (strcmp(c->kernels[i].entry, entry) == 0) {
            return &c->kernels[i];
        }
    }
    ck_abort_msg("no kernel %s", entry);
    return NULL;
}

/* Only PoCL's binaries can show it; what may be written is never shown. */
START_TEST(what_is_only_read_is_shown)
{
    static const char text[] =
        "float twice(__global const float *w, int i) { return w[i] * 2.0f; }\n"
        "void put(__global float *p) { *p = 9; }\n"
        "__attribute__((pure, noinline)) float lie(__global float *p) {\n"
        "    *p = 9; return *(volatile __global float *)p; }\n"
        "__kernel void reads(__global const float *w, __global float *x, __global const uchar4 "
        "*c,\n"
        "                    __constant float *t, __global float *y, int n) {\n"
        "    size_t i = get_global_id(0); float s = 0; __global const float *p = n > 3 ? w : x;\n"
        "    for (int k = 0; k < n; k++) { s += *p++ * twice(w, k) + t[k]; }\n"
        "    float4 v = vload4(i, x);\n"
        "    y[i] = s + dot(v, v) + c[i].x + native_exp(w[1]);\n}\n"
        "__kernel void cast(__global const float *x) { ((__global float *)x)[0] = 1; }\n"
        "__kernel void calls(__global const float *x) { put((__global float *)x); }\n"
        "__kernel void pure(__global const float *x, __global float *y) {\n"
        "    y[0] = lie((__global float *)x); }\n"
        "__kernel void number(__global const float *x) {\n"
        "    ulong at = (ulong)x + 4; *(__global float *)at = 9; }\n"
        "__kernel void atomic(__global const int *x) { atomic_xchg((__global int *)x, 9); }\n"
        "__kernel void vector(__global const float *x) {\n"
        "    vstore4((float4)(1), 0, (__global float *)x); }\n"
        "__kernel void away(__global const float *x, __global ulong *y) { y[0] = (ulong)x; }\n"
        "__kernel void either(__global const float *x, __global float *y, int n) {\n"
        "    __global float *p = n > 3 ? (__global float *)x : y; p[n] = 1; }\n";
    struct err e = ERR_INIT;
    struct backend_compiled c = {0};
    ck_assert_msg(compile(text, "k.cl", "", &c, &e) == 0, "%s", e.text);
    for (unsigned i = 0; i < c.kernel_count; i++) {
        const struct backend_compiled_kernel *k = &c.kernels[i];
        bool pocl = strcmp(k->entry, "reads") == 0;
        ck_assert_uint_eq(k->arg_count, pocl ? 6 : k->arg_count);
        for (unsigned a = 0; a < k->arg_count; a++) {
            ck_assert_msg(k->arg[a].only_reads == (pocl && a < 4), "%s, argument %u", k->entry, a);
        }
    }
    backend_compiled_finish(&c);
    /* without optimization pointers lie in memory: nothing is known, and that is no error */
    ck_assert_msg(compile(text, "k.cl", "-cl-opt-disable", &c, &e) == 0, "%s", e.text);
    ck_assert(!find(&c, "cast")->arg[0].only_reads);
    backend_compiled_finish(&c);
}
END_TEST

START_TEST(reports_arguments)
{
    struct err e = ERR_INIT;
    struct backend_compiled c = {0};
    const char *text =
        "__kernel void f(__global const float *x, __global int *y, __constant double *z,\n"
        "                __local uchar *scratch, uint n, float4 v, __global float2 *w) {\n"
        "    y[get_global_id(0)] = (int)(x[0] + (float)z[0] + v.x + w[0].x) + (int)n + "
        "scratch[0];\n"
        "}\n"
        "__kernel __attribute__((reqd_work_group_size(8, 2, 1))) void g(long n) {}\n";
    ck_assert_msg(compile(text, "k.cl", "", &c, &e) == 0, "%s", e.text);
    ck_assert_uint_eq(c.kernel_count, 2);
    const struct backend_compiled_kernel *f = find(&c, "f");
    static const struct {
        const char *name;
        unsigned kind, access;
        int dtype;
        uint32_t bytes;
    } want[] = {
        {"x", 2, ACCESS_IN, DTYPE_F32, 0},
        {"y", 2, ACCESS_INOUT, DTYPE_I32, 0},
        {"z", 2, ACCESS_IN, DTYPE_F64, 0},
        {"scratch", 4, 0, DTYPE_NONE, 0},
        {"n", 1, 0, DTYPE_U32, 4},
        {"v", 3, 0, DTYPE_NONE, 16},
        {"w", 2, ACCESS_INOUT, DTYPE_F32, 0},
    };
    ck_assert_uint_eq(f->arg_count, 7);
    for (unsigned i = 0; i < 7; i++) {
        ck_assert_str_eq(f->arg[i].name, want[i].name);
        ck_assert_uint_eq(f->arg[i].kind, want[i].kind);
        ck_assert_uint_eq(f->arg[i].access, want[i].access);
        ck_assert_msg(f->arg[i].kind == 4 || f->arg[i].dtype == want[i].dtype, "%s: %s",
                      f->arg[i].name, dtype_name(f->arg[i].dtype));
        ck_assert_uint_eq(f->arg[i].bytes, want[i].bytes);
    }
    const struct backend_compiled_kernel *g = find(&c, "g");
    ck_assert_uint_eq(g->required_local[0], 8);
    ck_assert_uint_eq(g->required_local[1], 2);
    ck_assert_uint_eq(f->required_local[0], 0);
    backend_compiled_finish(&c);
}
END_TEST

/* A macro's text is placed where the macro is used; its own place stands behind the message. */
START_TEST(names_where_a_macro_is_used)
{
    struct err e = ERR_INIT;
    struct backend_compiled c = {0};
    const char *text = "#define F(x) x = nothing\n"
                       "__kernel void f(__global int *x)\n{\n    F(x[0]);\n}\n";
    ck_assert_int_eq(compile(text, "k.cl", "", &c, &e), ERR_COMPILE);
    ck_assert_str_eq(e.text, "k.cl:4:5: error: use of undeclared identifier 'nothing' "
                             "(macro at k.cl:1:18)");
    backend_compiled_finish(&c);
}
END_TEST

/* A source for several vendors has assembly in branches that this device leaves out. */
START_TEST(assembly_that_is_left_out)
{
    static const char *const asm_words[] = {"asm", "__asm", "__asm__", "J(as, m)", "__as\\\nm__"};
    for (size_t i = 0; i < sizeof asm_words / sizeof asm_words[0]; i++) {
        struct err e = ERR_INIT;
        struct backend_compiled c = {0};
        char text[512];
        (void)snprintf(text, sizeof text,
                       "#define J(a, b) a##b\n"
                       "#pragma push_macro(\"asm\")\n#pragma pop_macro(\"asm\")\n"
                       "#ifdef NV\n"
                       "void f(void) { %s volatile(\".incbin \\\"/etc/passwd\\\"\"); }\n"
                       "#endif\n"
                       "typedef struct { int a, b, c; } s;\n"
                       "__kernel void k(__global int *x, s y) { x[0] = y.b; }\n",
                       asm_words[i]);
        ck_assert_msg(compile(text, "k.cl", "-Werror", &c, &e) == 0, "%s", e.text);
        ck_assert_uint_eq(find(&c, "k")->arg[1].bytes, 12);
        backend_compiled_finish(&c);
        ck_assert_int_eq(compile(text, "k.cl", "-DNV -Dasm=__asm__", &c, &e), ERR_COMPILE);
        ck_assert_msg(strncmp(e.text, "k.cl:5:", 7) == 0, "%s", e.text);
        ck_assert_ptr_nonnull(strstr(e.text, ": error: inline assembly is not allowed"));
        backend_compiled_finish(&c);
    }
}
END_TEST

START_TEST(names_the_users_file)
{
    struct err e = ERR_INIT;
    struct backend_compiled c = {0};
    const char *text = "__kernel void f(__global int *x)\n{\n    x[0] = nothing;\n}\n";
    ck_assert_int_eq(compile(text, "user \"k\".cl", "", &c, &e), ERR_COMPILE);
    ck_assert_msg(strncmp(e.text, "user _k_.cl:3:12: error: ", 25) == 0, "%s", e.text);
    ck_assert_ptr_nonnull(c.log);
    ck_assert_ptr_nonnull(strstr(c.log, "user _k_.cl:3:12: error: "));
    ck_assert_ptr_null(strstr(c.log, "/tmp"));
    ck_assert_ptr_null(c.binary);
    ck_assert_ptr_null(c.kernels);
    backend_compiled_finish(&c);
}
END_TEST

START_TEST(honours_defines)
{
    struct err e = ERR_INIT;
    struct backend_compiled c = {0};
    const char *text = "__kernel void NAME(__global T *x) { x[0] = 1; }\n";
    ck_assert_msg(compile(text, "", "-DNAME=made -D T=short", &c, &e) == 0, "%s", e.text);
    ck_assert_int_eq(find(&c, "made")->arg[0].kind, 2);
    backend_compiled_finish(&c);
}
END_TEST

START_TEST(refuses_before_the_compiler)
{
    struct err e = ERR_INIT;
    struct backend_compiled c = {0};
    ck_assert_int_eq(compile("#include \"/etc/passwd\"\n", "k.cl", "", &c, &e), ERR_COMPILE);
    ck_assert_str_eq(e.text, "k.cl:1: #include is not allowed");
    ck_assert_ptr_nonnull(c.log);
    backend_compiled_finish(&c);
    ck_assert_int_eq(compile("__kernel void f() {}", "k.cl", "-I/etc", &c, &e), ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(e.text, "-I/etc"));
    ck_assert_int_eq(compile("int helper(void);", "k.cl", "", &c, &e), ERR_COMPILE);
    backend_compiled_finish(&c);
}
END_TEST

/* What the language names only, the compiler is asked: structs, typedefs, enums, options. */
START_TEST(learns_the_sizes_of_types)
{
    struct err e = ERR_INIT;
    struct backend_compiled c = {0};
    const char *text = "typedef struct { float a, b, c; } P;\n"
                       "struct Q { double x; int y; };\n"
                       "enum E { ONE, TWO };\n"
                       "typedef struct { uchar bytes[WIDE]; } R;\n"
                       "__kernel void f(__global float *o, P p, struct Q q, enum E e, R r, float3 "
                       "v) {\n"
                       "    o[0] = p.a + (float)q.x + (float)e + r.bytes[0] + v.x;\n"
                       "}\n"
                       "__kernel void g(__global float *o, R r, const P p) { o[0] = r.bytes[1] + "
                       "p.b; } // no end";
    static const uint32_t f_bytes[] = {0, 12, 16, 4, 1000, 16};
    ck_assert_msg(compile(text, "k.cl", "-DWIDE=1000 -Werror", &c, &e) == 0, "%s", e.text);
    const struct backend_compiled_kernel *f = find(&c, "f");
    ck_assert_uint_eq(f->arg_count, 6);
    for (unsigned i = 1; i < 6; i++) {
        ck_assert_uint_eq(f->arg[i].kind, i == 3 ? 1 : 3); /* an enum is a number */
        ck_assert_msg(f->arg[i].bytes == f_bytes[i], "%s: %u", f->arg[i].name, f->arg[i].bytes);
    }
    ck_assert_uint_eq(find(&c, "g")->arg[1].bytes, 1000);
    ck_assert_uint_eq(find(&c, "g")->arg[2].bytes, 12);
    ck_assert_uint_eq(c.kernel_count, 2); /* the ones that were asked are not among them */
    backend_compiled_finish(&c);
}
END_TEST

/* A name of the user's own is looked behind, of values and of arrays. */
START_TEST(learns_the_types_behind_names)
{
    struct err e = ERR_INIT;
    struct backend_compiled c = {0};
    const char *text =
        "typedef float DATA_TYPE;\n"
        "typedef DATA_TYPE real;\n"
        "typedef unsigned char byte;\n"
        "typedef float4 vec;\n"
        "typedef signed char tiny;\n"
        "typedef atomic_uint counter;\n"
        "typedef struct { int a; } pair;\n"
        "enum E { ONE, TWO };\n"
        "__kernel void f(__global const real *x, __global DATA_TYPE *y, real a,\n"
        "    DATA_TYPE b, byte c, vec v, __global vec *w, __global byte *d,\n"
        "    __global pair *p, __global void *any, tiny t, ulong n, enum E e,\n"
        "    __constant WORD *k, __local real *l, __global half *h,\n"
        "    __global counter *u, __global atomic_int *s, __global atomic_float *r) {\n"
        "    y[0] = x[0] * a + b + c + v.x + w[0].y + d[0] + p[0].a + t + n + e +\n"
        "        k[0] + l[0];\n"
        "}\n"
        "#define real double\n"
        "#define uint nothing\n";
    static const struct {
        unsigned kind;
        int dtype;
        uint32_t bytes;
    } want[] = {
        {2, DTYPE_F32, 0},  {2, DTYPE_F32, 0},   {1, DTYPE_F32, 4},  {1, DTYPE_F32, 4},
        {1, DTYPE_U8, 1},   {3, DTYPE_NONE, 16}, {2, DTYPE_F32, 0},  {2, DTYPE_U8, 0},
        {2, DTYPE_NONE, 0}, {2, DTYPE_NONE, 0},  {1, DTYPE_I8, 1},   {1, DTYPE_U64, 8},
        {1, DTYPE_U32, 4},  {2, DTYPE_I64, 0},   {4, DTYPE_NONE, 0}, {2, DTYPE_F16, 0},
        {2, DTYPE_U32, 0},  {2, DTYPE_I32, 0},   {2, DTYPE_F32, 0},
    };
    ck_assert_msg(compile(text, "k.cl", "-DWORD=long -Werror", &c, &e) == 0, "%s", e.text);
    const struct backend_compiled_kernel *f = find(&c, "f");
    ck_assert_uint_eq(f->arg_count, sizeof want / sizeof want[0]);
    for (unsigned i = 0; i < f->arg_count; i++) {
        const struct backend_compiled_arg *a = &f->arg[i];
        ck_assert_msg(a->kind == want[i].kind && a->dtype == want[i].dtype &&
                          a->bytes == want[i].bytes,
                      "%s %s: kind %u, %s, %u bytes", a->type, a->name, a->kind,
                      dtype_name(a->dtype), a->bytes);
    }
    backend_compiled_finish(&c);
}
END_TEST

/* A source that cannot be asked is no error: its sizes stay unknown. */
START_TEST(a_size_may_stay_unknown)
{
    struct err e = ERR_INIT;
    struct backend_compiled c = {0};
    const char *text =
        "typedef struct { int a; } "
        "a_name_that_is_longer_than_what_is_kept_of_names_so_that_it_may_have_been_cut;\n"
        "__kernel void f(__global int *o,\n"
        "    a_name_that_is_longer_than_what_is_kept_of_names_so_that_it_may_have_been_cut p)\n"
        "{ o[0] = p.a; }\n";
    ck_assert_msg(compile(text, "k.cl", "", &c, &e) == 0, "%s", e.text);
    ck_assert_uint_eq(c.kernels[0].arg[1].kind, 3);
    ck_assert_uint_eq(c.kernels[0].arg[1].bytes, 0);
    ck_assert_ptr_null(c.log ? strstr(c.log, "error") : NULL);
    backend_compiled_finish(&c);
}
END_TEST

START_TEST(tells_what_cannot_be_launched)
{
    struct err e = ERR_INIT;
    struct backend_compiled c = {0};
    char text[8192] = "__kernel void f(__global int *x, __read_only image2d_t img) {\n"
                      "    x[0] = get_image_width(img);\n"
                      "}\n"
                      "__kernel void s(sampler_t how, __global int *x) { x[0] = 1; }\n"
                      "__kernel void g(__global int *x) { x[0] = 1; }\n"
                      "__kernel void most(__global int *x";
    const char *end[] = {") { x[0] = 128; }\n__kernel void many(__global int *x",
                         ", int last) { x[0] = 129; }\n"};
    for (unsigned k = 0; k < 2; k++) {
        for (unsigned i = 1; i < 128; i++) {
            snprintf(text + strlen(text), sizeof text - strlen(text), ", int a%u", i);
        }
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s", end[k]);
    }
    ck_assert_msg(compile(text, "k.cl", "", &c, &e) == 0, "%s", e.text);
    ck_assert_uint_eq(c.kernel_count, 5);
    ck_assert_str_eq(find(&c, "f")->unfit,
                     "argument 1 (img) is an image2d_t, which gpud does not take; use a buffer and "
                     "index it");
    ck_assert_str_eq(find(&c, "s")->unfit,
                     "argument 0 (how) is a sampler_t, which gpud does not take; use a buffer");
    ck_assert_str_eq(find(&c, "g")->unfit, "");
    ck_assert_str_eq(find(&c, "most")->unfit, "");
    ck_assert_uint_eq(find(&c, "most")->arg_count, 128);
    ck_assert_str_eq(find(&c, "many")->unfit,
                     "it takes 129 arguments, gpud passes at most 128; put "
                     "values into a struct");
    ck_assert_uint_eq(find(&c, "many")->arg_count, 0);
    ck_assert_ptr_nonnull(c.log);
    ck_assert_ptr_nonnull(strstr(c.log, "kernel f cannot be launched: argument 1"));
    backend_compiled_finish(&c);
}
END_TEST

START_TEST(absence_names_the_package)
{
    struct err e = ERR_INIT;
    unsigned count = 0;
    setenv("OCL_ICD_VENDORS", "/nonexistent", 1);
    ck_assert_int_eq(backend_find("opencl")->enumerate("", &count, &e), ERR_NO_DEVICE);
    ck_assert_msg(strncmp(e.text, "no OpenCL device: install pocl-opencl-icd", 41) == 0, "%s",
                  e.text);
}
END_TEST

START_TEST(a_platform_can_be_chosen)
{
    struct err e = ERR_INIT;
    unsigned count = 0;
    ck_assert_int_eq(backend_find("opencl")->enumerate("platform=no such one", &count, &e),
                     ERR_NO_DEVICE);
    ck_assert_ptr_nonnull(strstr(e.text, "no such one"));
}
END_TEST

static bool device_present(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        unsigned count = 0;
        _exit(backend_find("opencl")->enumerate("", &count, NULL) == 0 ? 0 : 1);
    }
    int status = 1;
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

int main(void)
{
    if (!device_present()) {
        fprintf(stderr, "skipped: no OpenCL device\n");
        return SKIPPED;
    }
    Suite *suite = suite_create("opencl compile");
    TCase *t = tcase_create("compile");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, reports_arguments);
    tcase_add_test(t, what_is_only_read_is_shown);
    tcase_add_test(t, assembly_that_is_left_out);
    tcase_add_test(t, names_where_a_macro_is_used);
    tcase_add_test(t, names_the_users_file);
    tcase_add_test(t, honours_defines);
    tcase_add_test(t, refuses_before_the_compiler);
    tcase_add_test(t, learns_the_sizes_of_types);
    tcase_add_test(t, learns_the_types_behind_names);
    tcase_add_test(t, a_size_may_stay_unknown);
    tcase_add_test(t, tells_what_cannot_be_launched);
    tcase_add_test(t, absence_names_the_package);
    tcase_add_test(t, a_platform_can_be_chosen);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
