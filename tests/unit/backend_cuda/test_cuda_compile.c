/* CUDA C and the dialect through the real NVRTC; no device is needed. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/shape.h"
#include "daemon/backend/cuda/compile/compile.h"
#include "daemon/backend/cuda/compile/nvrtc.h"
#include "kernels/builtin.h"
#include "kernels/builtin_fatbin.h"
#include "kernels/dialect.h"

#define SKIPPED 77

static int compile_as(struct bytes text, const char *file, const char *options, const char *arch,
                      struct backend_compiled *out, struct err *e)
{
    struct backend_source s = {
        .lang = BACKEND_LANG_CUDA, .text = text, .file = file, .options = options, .arch = arch};
    return cuda_compile(0, &s, out, e);
}

/* By NVRTC alone. */
static int compile(const char *text, const char *options, struct backend_compiled *out,
                   struct err *e)
{
    char all[512];
    (void)snprintf(all, sizeof all, "--compiler=nvrtc %s", options);
    return compile_as(bytes_str(text), "k.cu", all, "sm_90", out, e);
}

static const struct backend_compiled_kernel *find(const struct backend_compiled *c,
                                                  const char *name)
{
    for (unsigned i = 0; i < c->kernel_count; i++) {
        const struct backend_compiled_kernel *k = &c->kernels[i];
        if (strcmp(k->name[0] != '\0' ? k->name : k->entry, name) == 0) {
            return k;
        }
    }
    ck_abort_msg("no kernel %s", name);
    return NULL;
}

/* ---- what comes out ----------------------------------------------------------------------- */

START_TEST(reports_arguments)
{
    struct backend_compiled c = {0};
    struct err e = ERR_INIT;
    const char *text =
        "struct Pair { int a; float b; int c; };\n"
        "typedef float real;\n"
        "extern \"C\" __global__ void e(const float *__restrict__ x, int *y, unsigned n,\n"
        "                              real r, real *z, Pair p) { y[n] = (int)(x[n] * r) + p.a; }\n"
        "__global__ void m(const real *x, double *y, Pair *q, Pair p, size_t n) { y[n] = *x; }\n";
    ck_assert_msg(compile(text, "", &c, &e) == 0, "%s", e.text);
    static const struct {
        const char *kernel;
        unsigned arg;
        const char *name;
        unsigned kind, access;
        int dtype;
        uint32_t bytes;
    } want[] = {
        {"e", 0, "x", 2, ACCESS_IN, DTYPE_F32, 0},
        {"e", 1, "y", 2, ACCESS_INOUT, DTYPE_I32, 0},
        {"e", 2, "n", 1, 0, DTYPE_U32, 4},
        {"e", 3, "r", 1, 0, DTYPE_F32, 4}, /* what the typedef stands for */
        {"e", 4, "z", 2, ACCESS_INOUT, DTYPE_F32, 0},
        {"e", 5, "p", 3, 0, DTYPE_NONE, 12},
        {"m", 0, "x", 2, ACCESS_IN, DTYPE_F32, 0}, /* its mangled name sees through the typedef */
        {"m", 1, "y", 2, ACCESS_INOUT, DTYPE_F64, 0},
        {"m", 2, "q", 2, ACCESS_INOUT, DTYPE_NONE, 0},
        {"m", 3, "p", 3, 0, DTYPE_NONE, 12},
        {"m", 4, "n", 1, 0, DTYPE_U64, 8},
    };
    for (unsigned i = 0; i < sizeof want / sizeof want[0]; i++) {
        const struct backend_compiled_kernel *k = find(&c, want[i].kernel);
        ck_assert_uint_gt(k->arg_count, want[i].arg);
        const struct backend_compiled_arg *a = &k->arg[want[i].arg];
        ck_assert_str_eq(a->name, want[i].name);
        ck_assert_msg(a->kind == want[i].kind, "%s %s: %u", want[i].kernel, a->name, a->kind);
        ck_assert_uint_eq(a->access, want[i].access);
        ck_assert_int_eq(a->dtype, want[i].dtype);
        ck_assert_uint_eq(a->bytes, want[i].bytes);
    }
    backend_compiled_finish(&c);
}
END_TEST

/* An entry of extern "C" says nothing of types: the compiler is asked what names stand for. */
START_TEST(learns_the_types_behind_names)
{
    struct backend_compiled c = {0};
    struct err e = ERR_INIT;
    const char *text = "typedef double real;\n"
                       "typedef const real *vec;\n"
                       "using byte = unsigned char;\n"
                       "enum E { ONE };\n"
                       "extern \"C\" __global__ void e(vec v, byte b, real *o, E x, real r,\n"
                       "    const byte *d) { o[0] = v[0] + b + x + r + d[0]; }\n"
                       "extern \"C\" __global__ void f(real *o) { o[0] = 1; }\n";
    static const struct {
        unsigned kind, access;
        int dtype;
        uint32_t bytes;
    } want[] = {{2, ACCESS_IN, DTYPE_F64, 0}, {1, 0, DTYPE_U8, 1},  {2, ACCESS_INOUT, DTYPE_F64, 0},
                {3, 0, DTYPE_NONE, 4},        {1, 0, DTYPE_F64, 8}, {2, ACCESS_IN, DTYPE_U8, 0}};
    ck_assert_msg(compile(text, "", &c, &e) == 0, "%s", e.text);
    ck_assert_uint_eq(c.kernel_count, 2); /* the ones that were asked are not among them */
    const struct backend_compiled_kernel *k = find(&c, "e");
    for (unsigned i = 0; i < sizeof want / sizeof want[0]; i++) {
        const struct backend_compiled_arg *a = &k->arg[i];
        ck_assert_msg(a->kind == want[i].kind && a->access == want[i].access &&
                          a->dtype == want[i].dtype && a->bytes == want[i].bytes,
                      "%s %s: kind %u, access %u, %s, %u bytes", a->type, a->name, a->kind,
                      a->access, dtype_name(a->dtype), a->bytes);
    }
    ck_assert_int_eq(find(&c, "f")->arg[0].dtype, DTYPE_F64);
    backend_compiled_finish(&c);
}
END_TEST

START_TEST(reports_what_kernels_need)
{
    struct backend_compiled c = {0};
    struct err e = ERR_INIT;
    const char *text = "extern \"C\" __global__ void __launch_bounds__(96) f(float *x, int n) {\n"
                       "  __shared__ float t[96]; float a[50];\n"
                       "  for (int i = 0; i < n; i++) a[(int)x[i]] = i;\n"
                       "  t[threadIdx.x] = a[n]; __syncthreads(); x[0] = t[n]; }\n";
    ck_assert_msg(compile(text, "", &c, &e) == 0, "%s", e.text);
    const struct backend_compiled_kernel *k = find(&c, "f");
    ck_assert_uint_gt(k->registers, 0);
    ck_assert_uint_ge(k->local_bytes, 200);
    ck_assert_uint_eq(k->shared_bytes, 384);
    ck_assert_uint_gt(k->constant_bytes, 0);
    ck_assert_uint_eq(k->max_group, 96);
    ck_assert_msg(strstr(c.compiler, "/libnvrtc") != NULL, "%s", c.compiler);
    backend_compiled_finish(&c);
}
END_TEST

START_TEST(kernels_are_found_by_plain_names)
{
    struct backend_compiled c = {0};
    struct err e = ERR_INIT;
    const char *text = "namespace a { __global__ void in(int *x) { *x = 1; } }\n"
                       "namespace { __global__ void anon(int *x) { *x = 1; } }\n"
                       "static __global__ void stat(int *x) { *x = 1; }\n"
                       "#if 0\nstatic __global__ void nothere(int *x) { *x = 1; }\n#endif\n"
                       "template <class T, int N> __global__ void tp(T *x) { *x = N; }\n"
                       "template __global__ void tp<double, 7>(double *);\n"
                       "#define K(n) __global__ void n(float *x) { *x = 1; }\nK(mac)\n"
                       "__global__ void over(int *x) { *x = 1; }\n"
                       "__global__ void over(float *x) { *x = 1; }\n";
    ck_assert_msg(compile(text, "--name-expression=tp<float, 3>", &c, &e) == 0, "%s", e.text);
    ck_assert_str_eq(find(&c, "a::in")->entry, "_ZN1a2inEPi");
    ck_assert_int_eq(find(&c, "tp<float, 3>")->arg[0].dtype, DTYPE_F32);
    ck_assert_int_eq(find(&c, "tp<double,7>")->arg[0].dtype, DTYPE_F64);
    ck_assert_int_eq(find(&c, "mac")->arg[0].dtype, DTYPE_F32);
    ck_assert_uint_eq(find(&c, "_Z4overPi")->arg_count, 1);
    ck_assert_uint_eq(find(&c, "_Z4overPf")->arg_count, 1);
    ck_assert_ptr_nonnull(strstr(c.log, "several kernels are called over"));
    backend_compiled_finish(&c);
    text = "struct a_type_with_a_name_of_some_length { float x; };\n"
           "#define T a_type_with_a_name_of_some_length\n"
           "template <class A, class B> __global__ void once(A *x, B *y) { x->x = y->x; }\n"
           "template __global__ void once<T, T>(T *, T *);\n"
           "template <class A, class B, int N> __global__ void twice(A *x, B *y) { x->x = N; }\n"
           "template __global__ void twice<T, T, 1>(T *, T *);\n"
           "template __global__ void twice<T, T, 2>(T *, T *);\n";
    ck_assert_msg(compile(text, "", &c, &e) == 0, "%s", e.text);
    ck_assert_uint_eq(c.kernel_count, 3);
    ck_assert_uint_eq(find(&c, "once")->arg_count, 2);
    ck_assert_ptr_nonnull(strstr(c.log, "_length> is called once: names have at most 64 bytes"));
    ck_assert_ptr_null(strstr(c.log, "is called twice"));
    backend_compiled_finish(&c);
    text = "static __global__ void stat(int *x) { *x = 1; }\n"
           "namespace { __global__ void anon(int *x) { *x = 1; } }\n";
    ck_assert_msg(compile(text, "--name-expression=anon", &c, &e) == 0, "%s", e.text);
    (void)find(&c, "stat");
    (void)find(&c, "anon");
    backend_compiled_finish(&c);
}
END_TEST

START_TEST(tells_what_cannot_be_launched)
{
    struct backend_compiled c = {0};
    struct err e = ERR_INIT;
    char text[8192] = "extern \"C\" __global__ void many(int *a";
    for (unsigned i = 0; i < 129; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, ", int a%u", i);
    }
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used,
             ") { *a = a128; }\n__global__ void l%0150d(int *a) { *a = 1; }\n"
             "extern \"C\" __global__ void few(int *a) { *a = 1; }\n",
             7);
    ck_assert_msg(compile(text, "", &c, &e) == 0, "%s", e.text);
    ck_assert_uint_eq(c.kernel_count, 2);
    ck_assert_ptr_nonnull(strstr(find(&c, "many")->unfit, "over 128 arguments"));
    ck_assert_str_eq(find(&c, "few")->unfit, "");
    ck_assert_ptr_nonnull(strstr(c.log, "names of over 127 bytes"));
    backend_compiled_finish(&c);
}
END_TEST

START_TEST(takes_options)
{
    struct backend_compiled c = {0};
    struct err e = ERR_INIT;
    const char *text = "extern \"C\" __global__ void f(float *x) { x[threadIdx.x] = SCALE; }\n";
    ck_assert_int_eq(compile(text, "", &c, &e), ERR_COMPILE);
    backend_compiled_finish(&c);
    ck_assert_msg(compile(text,
                          "-DSCALE=2.5f -std=c++14 --use_fast_math -lineinfo "
                          "--maxrregcount=32 -default-device",
                          &c, &e) == 0,
                  "%s", e.text);
    backend_compiled_finish(&c);
    ck_assert_int_eq(compile(text, "-DSCALE=2 -I/etc", &c, &e), ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(e.text, "\"-I/etc\""));
    ck_assert_int_eq(compile(text, "-DSCALE=\"1 -use_fast_math", &c, &e), ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(e.text, "a quote is not closed"));
}
END_TEST

START_TEST(knows_the_c_librarys_headers)
{
    struct backend_compiled c = {0};
    struct err e = ERR_INIT;
    const char *text = "#include <stdio.h>\n#include <stdint.h>\n#include <cstdint>\n"
                       "#include <float.h>\n#include <cmath>\n#include <limits.h>\n"
                       "#include <stddef.h>\n#include <assert.h>\n"
                       "#include \"cuda_runtime.h\"\n#include \"device_launch_parameters.h\"\n"
                       "__global__ void f(uint32_t *p, float *x, int64_t n) {\n"
                       "  p[0] = INT_MAX; x[0] = FLT_MAX; x[1] = (float)M_PI * INFINITY;\n"
                       "  printf(\"%d\", (int)n); }\n";
    ck_assert_msg(compile(text, "-w", &c, &e) == 0, "%s", e.text);
    ck_assert_int_eq(find(&c, "f")->arg[2].dtype, DTYPE_I64);
    backend_compiled_finish(&c);
}
END_TEST

/* Where the toolkit's headers are installed. */
START_TEST(cub_serves_kernels)
{
    struct backend_compiled c = {0};
    struct err e = ERR_INIT;
    struct nvrtc n;
    const char *text =
        "#include <stdint.h>\n#include <cub/cub.cuh>\n#include <cstdint>\n#include <limits.h>\n"
        "#include <cuda_fp16.h>\n#include <curand_kernel.h>\n#include "
        "<cooperative_groups.h>\n"
        "extern \"C\" __global__ void sum(const float *x, float *y, int64_t n) {\n"
        "  typedef cub::BlockReduce<float, 128> R; __shared__ typename R::TempStorage t;\n"
        "  float s = R(t).Sum(x[blockIdx.x * 128 + threadIdx.x]);\n"
        "  if (threadIdx.x == 0) y[blockIdx.x] = s + n + INT_MAX; }\n";
    ck_assert_int_eq(nvrtc_load("", &n, &e), 0);
    if (n.include[0] == '\0') {
        return;
    }
    ck_assert_msg(compile(text, "-w", &c, &e) == 0, "%s\n%s", e.text, c.log);
    ck_assert_uint_eq(find(&c, "sum")->arg_count, 3);
    backend_compiled_finish(&c);
}
END_TEST

START_TEST(an_architecture_too_new_gets_ptx)
{
    struct backend_compiled c = {0};
    struct err e = ERR_INIT;
    const char *text = "extern \"C\" __global__ void f(float *x) { x[0] = 1; }\n";
    ck_assert_msg(compile_as(bytes_str(text), "k.cu", "", "sm_999", &c, &e) == 0, "%s", e.text);
    ck_assert_ptr_nonnull(memmem(c.binary, c.binary_size, ".target sm_", 11));
    ck_assert_int_eq(c.binary[c.binary_size - 1], '\0');
    backend_compiled_finish(&c);
    ck_assert_int_eq(compile_as(bytes_str(text), "k.cu", "", "sm_30", &c, &e), ERR_UNSUPPORTED);
    ck_assert_int_eq(compile_as(bytes_str(text), "k.cu", "", "gfx900", &c, &e), ERR_NO_DEVICE);
}
END_TEST

/* Code is compiled for one device only, so it may use features of that architecture. */
START_TEST(instructions_of_one_architecture_are_taken)
{
    struct backend_compiled c = {0};
    struct err e = ERR_INIT;
    const char *text = "extern \"C\" __global__ void __launch_bounds__(128, 1) f(float *x)\n"
                       "{\n"
                       "    asm volatile(\"setmaxnreg.inc.sync.aligned.u32 240;\");\n"
                       "    x[threadIdx.x] = 1;\n"
                       "}\n";
    ck_assert_msg(compile(text, "", &c, &e) == 0, "%s", e.text);
    ck_assert_uint_eq(find(&c, "f")->arg_count, 1);
    backend_compiled_finish(&c);
    ck_assert_int_eq(compile_as(bytes_str(text), "k.cu", "", "sm_80", &c, &e), ERR_COMPILE);
    backend_compiled_finish(&c);
}
END_TEST

/* ---- what is refused ---------------------------------------------------------------------- */

static const struct {
    const char *text, *first, *also;
} bad[] = {
    {"__global__ void f(int *p) {\n\t  *p = foo + 1;\n}\n",
     "k.cu:2:9: error: identifier \"foo\" is undefined", "*p = foo + 1;"},
    {"#line 70 \"q.h\"\n__global__ void f(int *p) { *p = foo; }\n", "q.h:70:34: error: ", "foo"},
    {"void helper() {}\n__global__ void f(int *p) { helper(); }\n",
     "k.cu:1:6: error: A function without", "are __device__"},
    {"#include \"mine.h\"\n", "k.cu:1:2: error: #include of mine.h", "put its text"},
    {"#include <mine.h>\n__global__ void f(int *p) {}\n",
     "k.cu:1:18: fatal error: ", "gpud_module_options.headers"},
    {"template <class T> __global__ void f(T *p) {}\n", "k.cu:1:36: error: kernel f is a template",
     "--name-expression=f<float>"},
    {"__device__ int f(int x) { return x; }\n", "k.cu: error: no kernel", "__global__"},
    {"", "k.cu: error: no kernel", ""},
    {"__global__ void f(float *x) { __shared__ float t[60000]; t[threadIdx.x] = x[0];\n"
     "__syncthreads(); x[1] = t[5]; }\n",
     "ptxas error", "too much shared data"},
    {"__global__ void f(float *x) { asm(\"bogus;\"); }\n", "ptxas", "bogus"},
    {"__global__ void f\xff(float *x) {}\n", "k.cu:1:18: error", ""},
    {"\xff\xfe__global__ void f(float *x) {}\n", "k.cu:1:1: error: unrecognized token", ""},
};

START_TEST(refuses_with_a_place)
{
    struct backend_compiled c = {0};
    struct err e = ERR_INIT;
    ck_assert_msg(compile(bad[_i].text, "", &c, &e) == ERR_COMPILE, "%s", bad[_i].text);
    ck_assert_msg(strncmp(e.text, bad[_i].first, strlen(bad[_i].first)) == 0, "%s", e.text);
    ck_assert_ptr_nonnull(c.log);
    ck_assert_msg(strstr(c.log, bad[_i].also) != NULL, "%s", c.log);
    ck_assert_msg(strstr(c.log, "gpud-source") == NULL, "%s", c.log);
    ck_assert_msg(strstr(c.log, "nv_name_map") == NULL, "%s", c.log);
    ck_assert_ptr_null(c.binary);
    ck_assert_uint_eq(c.kernel_count, 0);
    backend_compiled_finish(&c);
}
END_TEST

START_TEST(an_unknown_instance_is_named)
{
    struct backend_compiled c = {0};
    struct err e = ERR_INIT;
    const char *text = "__global__ void f(int *p) { *p = 1; }\n";
    ck_assert_int_eq(compile(text, "--name-expression=g<float>", &c, &e), ERR_COMPILE);
    ck_assert_msg(strstr(c.log, "\"g\" is undefined") != NULL, "%s", c.log);
    ck_assert_msg(strstr(c.log, "nv_name_map") == NULL, "%s", c.log);
    backend_compiled_finish(&c);
}
END_TEST

START_TEST(any_file_name_will_do)
{
    struct backend_compiled c = {0};
    struct err e = ERR_INIT;
    ck_assert_int_eq(compile_as(bytes_str("__global__ void f(int *p) { x }"), "a\xff\"\\\n b.cu",
                                "--compiler=nvrtc", "sm_90", &c, &e),
                     ERR_COMPILE);
    ck_assert_msg(strncmp(e.text, "a____ b.cu:1:29: error: ", 24) == 0, "%s", e.text);
    backend_compiled_finish(&c);
    ck_assert_int_eq(compile_as(bytes_str("x"), "", "--compiler=nvrtc", "sm_90", &c, &e),
                     ERR_COMPILE);
    ck_assert_msg(strncmp(e.text, "source.cu:1:", 12) == 0, "%s", e.text);
    backend_compiled_finish(&c);
}
END_TEST

START_TEST(too_many_kernels_are_refused)
{
    struct backend_compiled c = {0};
    struct err e = ERR_INIT;
    struct capbuf text;
    capbuf_init(&text, 1u << 20);
    for (unsigned i = 0; i < 300; i++) {
        (void)capbuf_printf(&text, "__global__ void k%u(int *x) { *x = %u; }\n", i, i);
    }
    ck_assert_int_eq(compile_as(capbuf_view(&text), "k.cu", "", "sm_90", &c, &e), ERR_LIMIT);
    for (unsigned i = 300; i < 10000; i++) {
        (void)capbuf_printf(&text, "__global__ void k%u(int *x) { *x = %u; }\n", i, i);
    }
    ck_assert_int_eq(compile_as(capbuf_view(&text), "k.cu", "", "sm_90", &c, &e), ERR_LIMIT);
    ck_assert_msg(strstr(e.text, "10000 kernels") != NULL, "%s", e.text);
    capbuf_finish(&text);
}
END_TEST

START_TEST(absence_names_the_package)
{
    struct backend_compiled c = {0};
    struct err e = ERR_INIT;
    struct backend_source s = {.lang = BACKEND_LANG_CUDA,
                               .text = bytes_str("__global__ void f(int *p) {}"),
                               .file = "k.cu",
                               .options = "",
                               .arch = "sm_90",
                               .backend_options = "nvrtc=/nonexistent,nvcc=/nonexistent"};
    ck_assert_int_eq(cuda_compile(0, &s, &c, &e), ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(e.text, "/nonexistent"));
}
END_TEST

/* ---- what is built in --------------------------------------------------------------------- */

START_TEST(every_builtin_module_compiles)
{
    struct backend_compiled c = {0};
    struct err e = ERR_INIT;
    struct capbuf out;
    char file[80];
    unsigned m = (unsigned)_i;
    capbuf_init(&out, 16u << 20);
    snprintf(file, sizeof file, "%s.gk", builtin_module_name(m));
    ck_assert_msg(dialect_translate(builtin_module_source(m), file, DIALECT_CUDA, true, &out, &e) ==
                      0,
                  "%s", e.text);
    /* an option, so that it is compiled here and now */
    int rc = compile_as(capbuf_view(&out), file, "-DNOW", "sm_90", &c, &e);
    ck_assert_msg(rc == 0, "%s: %s\n%s", file, e.text, c.log != NULL ? c.log : "");
    for (unsigned k = 0; k < c.kernel_count; k++) {
        for (unsigned a = 0; a < c.kernels[k].arg_count; a++) {
            unsigned kind = c.kernels[k].arg[a].kind;
            ck_assert_msg(kind == 1 || kind == 2, "%s %u: %u", c.kernels[k].entry, a, kind);
        }
    }
    backend_compiled_finish(&c);
    capbuf_finish(&out);
}
END_TEST

/* The GPUs that nvcc made code for, and one behind them all, which the last one's PTX serves. */
static unsigned archs_made(char ret_arch[16][16])
{
    char list[] = CUDA_ARCHS " 120";
    char *rest = list;
    unsigned count = 0;
    for (char *word = strsep(&rest, " "); word != NULL && count < 16; word = strsep(&rest, " ")) {
        (void)snprintf(ret_arch[count++], 16, "sm_%.12s", word);
    }
    return count;
}

/* What nvcc made at build time: the same kernels with the same arguments as NVRTC makes now. */
START_TEST(builtin_modules_were_compiled_beforehand)
{
    char archs[16][16];
    unsigned arch_count = archs_made(archs);
    struct backend_compiled c = {0};
    struct err e = ERR_INIT;
    struct capbuf text;
    char file[80];
    unsigned m = (unsigned)_i;
    if (builtin_fatbins[0].name == NULL) {
        return; /* built without nvcc */
    }
    capbuf_init(&text, 16u << 20);
    snprintf(file, sizeof file, "%s.gk", builtin_module_name(m));
    ck_assert_int_eq(
        dialect_translate(builtin_module_source(m), file, DIALECT_CUDA, true, &text, &e), 0);
    struct bytes fat = builtin_fatbin_find(capbuf_view(&text));
    ck_assert_uint_gt(fat.size, 0);
    for (unsigned a = 0; a < arch_count; a++) {
        int rc = compile_as(capbuf_view(&text), file, "", archs[a], &c, &e);
        ck_assert_msg(rc == 0, "%s %s: %s", file, archs[a], e.text);
        ck_assert_ptr_nonnull(memmem(c.binary, c.binary_size, fat.data, fat.size));
        ck_assert_uint_gt(c.kernel_count, 0);
        ck_assert_str_eq(c.compiler, ""); /* it is of gpud's own version */
        for (unsigned k = 0; k < c.kernel_count; k++) {
            for (unsigned i = 0; i < c.kernels[k].arg_count; i++) {
                unsigned kind = c.kernels[k].arg[i].kind;
                ck_assert_msg(kind == 1 || kind == 2, "%s %u: %u", c.kernels[k].entry, i, kind);
            }
        }
        backend_compiled_finish(&c);
    }
    (void)capbuf_append(&text, "\n", 1); /* another text: it is compiled anew */
    ck_assert_uint_eq(builtin_fatbin_find(capbuf_view(&text)).size, 0);
    capbuf_finish(&text);
}
END_TEST

int main(void)
{
    struct nvrtc n;
    struct err e = ERR_INIT;
    if (nvrtc_load("", &n, &e) != 0 || builtin_init(&e) != 0) {
        fprintf(stderr, "skipped: %s\n", e.text);
        return SKIPPED;
    }
    Suite *suite = suite_create("cuda compile");
    TCase *t = tcase_create("compile");
    tcase_set_timeout(t, 110);
    tcase_add_test(t, reports_arguments);
    tcase_add_test(t, learns_the_types_behind_names);
    tcase_add_test(t, reports_what_kernels_need);
    tcase_add_test(t, kernels_are_found_by_plain_names);
    tcase_add_test(t, tells_what_cannot_be_launched);
    tcase_add_test(t, takes_options);
    tcase_add_test(t, knows_the_c_librarys_headers);
    tcase_add_test(t, cub_serves_kernels);
    tcase_add_test(t, an_architecture_too_new_gets_ptx);
    tcase_add_test(t, instructions_of_one_architecture_are_taken);
    tcase_add_loop_test(t, refuses_with_a_place, 0, sizeof bad / sizeof bad[0]);
    tcase_add_test(t, an_unknown_instance_is_named);
    tcase_add_test(t, any_file_name_will_do);
    tcase_add_test(t, too_many_kernels_are_refused);
    tcase_add_test(t, absence_names_the_package);
    tcase_add_loop_test(t, every_builtin_module_compiles, 0, (int)builtin_module_count());
    tcase_add_loop_test(t, builtin_modules_were_compiled_beforehand, 0,
                        (int)builtin_module_count());
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
