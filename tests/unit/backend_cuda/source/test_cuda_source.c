/* CUDA C read without a compiler: the files it includes, its kernels, names and options, and how
 * messages are rewritten. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/shape.h"
#include "daemon/backend/cuda/compile/nvrtc_log.h"
#include "daemon/backend/cuda/compile/option.h"
#include "daemon/backend/cuda/source/lex.h"
#include "daemon/backend/cuda/source/name.h"
#include "daemon/backend/cuda/source/scan.h"

static int scan(const char *source, struct scan *ret, struct err *e)
{
    char *text = NULL;
    int rc = lex_normalize(bytes_str(source), "k.cu", &text, e);
    rc = rc == 0 ? scan_source(text, "k.cu", ret, e) : rc;
    free(text);
    return rc;
}

/* ---- files ----------------------------------------------------------------------------------- */

static const char *const allowed[] = {
    "int x;",
    "#include <cuda_fp16.h>\n",
    "#include <cub/cub.cuh>\n",
    "#include \"cuda_runtime.h\"\r\n",
    "#include <stdio.h> // host\n",
    "#include \"cub/block/block_reduce.cuh\"",
    "// #include \"a.h\"\n",
    "/* \n#include \"a.h\"\n*/",
    "const char *s = \"\\\n#include \";",
    "int a; #include \"a.h\"\n", /* no directive: not at its line's begin */
    "#if __has_include(<cuda/std/cstdint>)\n#endif\n",
    "int n = 1'000'000; // '\n",
    "char c = '\"'; /* \" */ char d = '\\'';\n",
    "#define A(x) \\\n    do_it(x) \\\n    + 1\n",
    "\xef\xbb\xbfint x;\n",
    "#ifdef __has_include\n#endif\n",
    "#  ifndef /* a */ __has_include\n#endif\n",
};

START_TEST(accepts)
{
    struct scan s = {0};
    struct err e = ERR_INIT;
    ck_assert_msg(scan(allowed[_i], &s, &e) == 0, "%s: %s", allowed[_i], e.text);
    scan_finish(&s);
}
END_TEST

static const struct {
    const char *source, *why;
} refused[] = {
    {"#include \"a.h\"\n", "k.cu:1:2: error: #include of a.h: files are not read"},
    {"#define ifdef __has_include(\"a.h\")\n#if ifdef\n#endif\n",
     "k.cu:1:15: error: #include of a.h"},
    {"#define ifdef __has_include\n#if ifdef(\"a\")\n#endif\n",
     "k.cu:1:15: error: #include of a macro"},
    {"#define ifdef(x) x\n#if ifdef(__has_include(\"a.h\"))\n#endif\n", "k.cu:2:11: error"},
    {"#define A(ifdef) # ifdef __has_include(\"a.h\")\n", "k.cu:1:26: error"},
    {"#define A(ifdef) \\\n# ifdef __has_include(\"a.h\")\n", "k.cu:2:9: error"},
    {"#define H __has_include\n#if H(<a>)\n#endif\n", "k.cu:1:11: error: #include of a macro"},
    {"#define defined H(__has_include)\n", "k.cu:1:19: error: #include of a macro"},
    {"#define undefined(x) x\n#if undefined(__has_include)(<a>)\n#endif\n", "k.cu:2:15: error"},
    {"#line 70 \"q.h\"\n\n#include \"a.h\"\n", "q.h:71:2: error: #include of a.h"},
    {"#line 7\n#line 7 \"q\n #include \"a.h\"\n", "k.cu:3:3: error"},
    {"#line 5 \"p.h\"\nint a;\n#line 9 \"q.h\"\nauto s = R\"(\";\n", "q.h:9:10: error: raw"},
    {"#if 0\n#endif\n#endif\n#include \"a.h\"\n#if 1\n", "k.cu:4:2: error: #include of a.h"},
    {"#if 0\n#include_next \"a.h\"\n#endif\n", "k.cu:2:2: error"},
    {"#if 0\n#include H\n#endif\n", "#include of a macro"},
    {"#if 0\n#include </etc/passwd>\n#endif\n", "not allowed"},
    {"int a;\n  #  include  \"a.h\"\n", "k.cu:2:6: error"},
    {"#include \"/etc/passwd\"\n", "k.cu:1:2: error: #include of /etc/passwd"},
    {"#include </etc/passwd>\n", "k.cu:1:2: error: #include of /etc/passwd"},
    {"#include <../../etc/passwd>\n", "not allowed"},
    {"#include \"cuda_/../../x\"\n", "not allowed"},
    {"#define H \"/etc/passwd\"\n#include H\n", "k.cu:2:2: error: #include of a macro"},
    {"#include /**/ \"a.h\"\n", "#include of a macro"},
    {"#/* a */include \"a.h\"\n", "k.cu:1:9: error"},
    {"/* a\n */ #include \"a.h\"\n", "k.cu:2:6: error"},
    {"#inc\\\nlude \"a.h\"\n", "continued on the next line"},
    {"#include \\\n\"a.h\"\n", "#include of a macro"},
    {"\\\n#include \"a.h\"\n", "k.cu:2:2: error"},
    {"%:include \"a.h\"\n", "k.cu:1:3: error"},
    {"?\?=include \"a.h\"\n", "trigraph"},
    {"//?\?/\n#include \"a.h\"\n", "trigraph"},
    {"// a \\ \n#include \"a.h\"\n", "blanks between a backslash"},
    {"// a\r#include \"a.h\"\n int b;\r\n#include \"b.h\"\n", "k.cu:3:2: error: #include of b.h"},
    {"#include_next \"a.h\"\n", "error"},
    {"#import \"a.h\"\n", "error: #import is not allowed"},
    {"#embed \"a.h\"\n", "error: #embed is not allowed"},
    {"#pragma include_alias(\"a\", \"/etc/passwd\")\n", "include_alias"},
    {"#if __has_include(\"/etc/passwd\")\n#endif\n", "/etc/passwd"},
    {"#if defined(X) && __has_include(Y)\n#endif\n", "of a macro"},
    {"#define H(x) __has_##x\n", "not allowed"},
    {"auto s = R\"(\" /*)\";\n#include \"a.h\"\n", "raw strings"},
    {"auto s = u8R\"x(\")x\";\n", "raw strings"},
    {"auto s = R\\\n\"(\")\";\n", "continued"},
    {"int n = 1'0+'/*';\n#include \"a.h\"\n/* ' */\n", "k.cu:2:2: error"},
    {"int n = 1'\\\n0;\n", "continued"},
    {"auto s = \"\\\\\\\n\";\n#include \"a.h\"\n//\"\n", "error"},
    {"/\\\n* */\n#include \"a.h\"\n", "continued"},
    {"/* *\\\n/\n#include \"a.h\"\n/* */", "continued"},
    {"%\\\n:include \"a.h\"\n", "continued"},
};

START_TEST(refuses)
{
    struct scan s = {0};
    struct err e = ERR_INIT;
    ck_assert_msg(scan(refused[_i].source, &s, &e) == ERR_COMPILE, "%s", refused[_i].source);
    ck_assert_msg(strstr(e.text, refused[_i].why) != NULL, "%s: %s", refused[_i].source, e.text);
}
END_TEST

START_TEST(refuses_a_nul)
{
    char *text = NULL;
    struct err e = ERR_INIT;
    ck_assert_int_eq(lex_normalize(bytes_of("a\0b", 3), "k.cu", &text, &e), ERR_COMPILE);
    ck_assert_ptr_nonnull(strstr(e.text, "NUL"));
}
END_TEST

/* Too long a form, a surrogate, above U+10FFFF, cut off: none is a character. */
START_TEST(what_is_no_character_is_an_at)
{
    static const struct {
        const char *source, *text;
    } all[] = {{"/*\xe0\x80\x80*/", "/*@@@*/"},
               {"/*\xed\xa0\x80*/", "/*@@@*/"},
               {"/*\xf4\x90\x80\x80*/", "/*@@@@*/"},
               {"/*\xc2*/", "/*@*/"},
               {"/*\xe2\x82\xac*/\xe2\x82", "/*\xe2\x82\xac*/@@"}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char *text = NULL;
        ck_assert_int_eq(lex_normalize(bytes_str(all[i].source), "k.cu", &text, NULL), 0);
        ck_assert_str_eq(text, all[i].text);
        free(text);
    }
}
END_TEST

/* ---- kernels --------------------------------------------------------------------------------- */

static const char kernels[] =
    "#define K(n) __global__ void n(int *x) {}\n"
    "extern \"C\" __global__ void __launch_bounds__(128, 2) plain(const float *__restrict__ x,\n"
    "    float* y, unsigned n, const unsigned long long int count, DATA *d, real r, char c[]) {\n"
    "  if (n < 1 << 3) return; }\n"
    "template <class T, int N = 4> __global__ void tp(T *x) {}\n"
    "static __global__ void st(void) {}\n"
    "__global__ void declared(int *);\n"
    "__global__ void f(std::array<int, 3> a) {}\n"
    "__global__ void twice(int *a) {}\n__global__ void twice(float *a) {}\n"
    "int main(int argc, char **argv) { plain<<<1, 2>>>(0); cudaMalloc(&p, 4); }\n";

START_TEST(finds_kernels)
{
    struct scan s = {0};
    struct err e = ERR_INIT;
    ck_assert_msg(scan(kernels, &s, &e) == 0, "%s", e.text);
    ck_assert_uint_eq(s.kernel_count, 6);
    const struct scan_kernel *k = scan_find(&s, "plain");
    ck_assert_ptr_nonnull(k);
    static const struct {
        const char *name, *type;
        unsigned kind, access;
        int dtype;
    } want[] = {
        {"x", "const float*", 2, ACCESS_IN, DTYPE_F32},
        {"y", "float*", 2, ACCESS_INOUT, DTYPE_F32},
        {"n", "unsigned int", 1, 0, DTYPE_U32},
        {"count", "const unsigned long long", 1, 0, DTYPE_U64},
        {"d", "DATA*", 2, ACCESS_INOUT, DTYPE_NONE},
        {"r", "real", 0, 0, DTYPE_NONE},
        {"c", "char*", 2, ACCESS_INOUT, DTYPE_I8},
    };
    ck_assert_uint_eq(k->param_count, sizeof want / sizeof want[0]);
    for (unsigned i = 0; i < k->param_count; i++) {
        ck_assert_str_eq(k->param[i].name, want[i].name);
        ck_assert_str_eq(k->param[i].type, want[i].type);
        ck_assert_uint_eq(k->param[i].kind, want[i].kind);
        ck_assert_uint_eq(k->param[i].access, want[i].access);
        ck_assert_int_eq(k->param[i].dtype, want[i].dtype);
    }
    ck_assert(s.kernel[1].is_template);
    ck_assert(!s.kernel[0].is_template);
    ck_assert(s.kernel[2].is_static);
    ck_assert_uint_eq(s.kernel[2].param_count, 0);
    ck_assert_ptr_null(scan_find(&s, "f"));     /* more than is understood */
    ck_assert_ptr_null(scan_find(&s, "twice")); /* two of it */
    scan_finish(&s);
}
END_TEST

START_TEST(counts_kernels_without_keeping_all)
{
    struct capbuf text;
    struct scan s = {0};
    struct err e = ERR_INIT;
    capbuf_init(&text, 1u << 20);
    for (unsigned i = 0; i < 10000; i++) {
        ck_assert(capbuf_printf(&text, "__global__ void k%u(int *x) {}\n", i));
    }
    ck_assert(capbuf_append(&text, "", 1));
    ck_assert_int_eq(scan((const char *)text.data, &s, &e), 0);
    ck_assert_uint_eq(s.globals, 10000);
    ck_assert_uint_eq(s.kernel_count, SCAN_KERNELS_MAX);
    scan_finish(&s);
    capbuf_finish(&text);
}
END_TEST

/* Every beginning of a source, and each with a byte changed, is read without harm. */
START_TEST(survives_any_bytes)
{
    char *copy = strdup(kernels);
    for (size_t i = 0; i < sizeof kernels - 1; i++) {
        for (const char *c = "\"'\\/*(<{#\n\200"; *c != '\0'; c++) {
            struct scan s = {0};
            copy[i] = *c;
            if (scan(copy, &s, NULL) == 0) {
                scan_finish(&s);
            }
        }
        struct scan s = {0};
        copy[i] = '\0';
        if (scan(copy, &s, NULL) == 0) {
            scan_finish(&s);
        }
        copy[i] = kernels[i];
    }
    free(copy);
}
END_TEST

/* ---- names ----------------------------------------------------------------------------------- */

static const struct {
    const char *entry, *name, *plain, *params;
} names[] = {
    {"e", "e", "e", NULL},
    {"_Z5emptyv", "empty", "empty", ""},
    {"_Z5plainPKfPdm1PPS2_P6float4", "plain", "plain",
     "const float*;double*;unsigned long;P;P*;float4*;"},
    {"_ZN1a1b5innerEPc", "a::b::inner", "inner", "char*;"},
    {"_ZN29_GLOBAL__N__00000000_4_x_cu_e4anonEPc", "anon", "anon", "char*;"},
    {"_Z2tpIfLi3EEvPT_", "tp<float,3>", "tp", "float*;"},
    {"_Z2tpIiLin5EEvPT_PKS0_", "tp<int,-5>", "tp", "int*;const int*;"},
    {"_Z2tbILb1EEvPj", "tb<true>", "tb", "unsigned int*;"},
    {"_ZN1n1fI6__halfEEvPKT_i", "n::f<__half>", "f", "const __half*;int;"},
    {"_Z1fN1s1tEPS0_PKS0_", "f", "f", "s::t;s::t*;const s::t*;"},
    {"_Z1fPPfS0_S_", "f", "f", "float**;float**;float*;"},
    {"_Z1g4PairIifEPS0_", "g", "g", "Pair<int,float>;Pair<int,float>*;"},
    {"_Z1fPFvvE", "f", "f", NULL}, /* pointers to functions are not understood */
    {"_Z1fSt6vectorIiE", "f", "f", NULL},
};

START_TEST(reads_names)
{
    struct name_info info;
    char text[512] = "";
    bool mangled = name_read(names[_i].entry, &info);
    ck_assert_int_eq(mangled, names[_i].entry[0] == '_');
    ck_assert_str_eq(info.name, names[_i].name);
    ck_assert_str_eq(info.plain, names[_i].plain);
    ck_assert_int_eq(info.typed, names[_i].params != NULL);
    for (unsigned i = 0; i < info.param_count; i++) {
        struct backend_compiled_arg arg = {.kind = 0};
        param_describe(&info.param[i], &arg);
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s;", arg.type);
    }
    ck_assert_str_eq(text, names[_i].params != NULL ? names[_i].params : "");
}
END_TEST

START_TEST(survives_any_name)
{
    struct name_info info;
    char copy[128];
    const char *entry = names[_i].entry;
    for (size_t i = 0; i < strlen(entry); i++) {
        snprintf(copy, sizeof copy, "%.*s", (int)i, entry);
        (void)name_read(copy, &info);
        for (const char *c = "SNIELPKT_09\377v"; *c != '\0'; c++) {
            snprintf(copy, sizeof copy, "%s", entry);
            copy[i] = *c;
            (void)name_read(copy, &info);
        }
    }
    (void)name_read("_Z1fPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPf", &info);
    (void)name_read("_Z99999999999999999999f", &info);
}
END_TEST

/* ---- options --------------------------------------------------------------------------------- */

START_TEST(reads_options)
{
    struct cuda_options o;
    struct err e = ERR_INIT;
    const char *text = " -DN=4  -D M -std=c++17 -std c++20 --use_fast_math -maxrregcount 32 "
                       "'-DTEXT=a b' --name-expression=f<float, 4> --name-expression=a::g "
                       "--diag-suppress=177,1444 -w -U X --define-macro=Y=1 --compiler=nvcc";
    ck_assert_msg(cuda_options_read(text, &o, &e) == 0, "%s", e.text);
    static const char *const want[] = {"-std=c++17",
                                       "-std=c++20",
                                       "--use_fast_math",
                                       "-maxrregcount=32",
                                       "--diag-suppress=177,1444",
                                       "-w"};
    static const char *const macros[] = {"-DN=4", "-DM", "-DTEXT=a b", "-UX", "-DY=1"};
    ck_assert_uint_eq(o.option_count, sizeof want / sizeof want[0]);
    for (unsigned i = 0; i < o.option_count; i++) {
        ck_assert_str_eq(o.option[i], want[i]);
    }
    ck_assert_uint_eq(o.macro_count, sizeof macros / sizeof macros[0]);
    for (unsigned i = 0; i < o.macro_count; i++) {
        ck_assert_str_eq(o.macro[i], macros[i]);
    }
    ck_assert_int_eq(o.tool, CUDA_TOOL_NVCC);
    ck_assert_uint_eq(o.expression_count, 2);
    ck_assert_str_eq(o.expression[0], "f<float, 4>");
    ck_assert_str_eq(o.expression[1], "a::g");
    cuda_options_finish(&o);
}
END_TEST

START_TEST(knows_whose_options_they_are)
{
    static const struct {
        const char *text;
        bool nvrtc, nvcc;
    } options[] = {
        {"-default-device", true, false},
        {"-w --device-as-default-execution-space", true, false},
        {"--expt-relaxed-constexpr", false, true},
        {"--extended-lambda -default-device", true, true},
        {"-DMODE=default-device", false, false},
        {"", false, false},
    };
    for (unsigned i = 0; i < sizeof options / sizeof options[0]; i++) {
        struct cuda_options o;
        struct err e = ERR_INIT;
        ck_assert_msg(cuda_options_read(options[i].text, &o, &e) == 0, "%s", e.text);
        ck_assert_msg((o.nvrtc_only != NULL) == options[i].nvrtc, "%s", options[i].text);
        ck_assert_msg((o.nvcc_only != NULL) == options[i].nvcc, "%s", options[i].text);
        cuda_options_finish(&o);
    }
}
END_TEST

static const char *const bad_options[] = {
    "-I/etc",
    "-I /etc",
    "--include-path=/etc",
    "-include x",
    "--pre-include=x",
    "-arch=sm_50",
    "--gpu-architecture=sm_90",
    "-o x",
    "--output=x",
    "--pch",
    "--create-pch=x",
    "--use-pch=/etc/x",
    "-time=/tmp/x",
    "--device-time-trace=/tmp/x",
    "-rdc=true",
    "-dlto",
    "-D",
    "-D 4",
    "-DX\\",
    "-std=gnu++17",
    "-maxrregcount=abc",
    "-maxrregcount=99999",
    "x.cu",
    "-",
    "--",
    "--ptxas-options=-v",
    "-Xptxas",
    "--name-expression=",
    "--name-expression=f;g",
    "-ftz=1",
    "--use_fast_math=/x",
    "-optix-ir",
    "--split-compile=99",
    "-minimal",
    "--fdevice-time-trace=x",
    "--compiler=gcc",
    "--compiler=",
    "-ccbin=/tmp/x",
    "-Xcompiler=-B/tmp",
    "--run",
    "-keep-dir=/tmp",
    "-maxrregcount=$(id)",
    "-std=c++17;id",
    "-diag-suppress=`id`",
};

START_TEST(refuses_options)
{
    struct cuda_options o;
    struct err e = ERR_INIT;
    ck_assert_msg(cuda_options_read(bad_options[_i], &o, &e) == ERR_INVALID, "%s", bad_options[_i]);
    ck_assert_int_ne(e.text[0], 0);
}
END_TEST

/* ---- messages -------------------------------------------------------------------------------- */

START_TEST(rewrites_messages)
{
    struct capbuf log;
    capbuf_init(&log, 65536);
    nvrtc_log_rewrite("a/b.cu(3): error: identifier \"foo\" is undefined\n"
                      "  \t  *p = foo;\n"
                      "  \t       ^\n"
                      "\n"
                      "a(1).cu(12): warning #177-D: variable \"x\" was declared\n"
                      "      int x;\n"
                      "          ^~~\n"
                      "          detected during instantiation at line 2\n"
                      "tmp.cu(1): catastrophic error: cannot open source file \"n.h\"\n"
                      "2 errors detected in the compilation of \"tmp.cu\".\n",
                      "tmp.cu", "k.cu", &log);
    ck_assert(capbuf_append(&log, "", 1));
    ck_assert_str_eq((const char *)log.data,
                     "a/b.cu:3:9: error: identifier \"foo\" is undefined\n"
                     "  \t  *p = foo;\n"
                     "  \t       ^\n"
                     "a(1).cu:12:9: warning #177-D: variable \"x\" was declared\n"
                     "      int x;\n"
                     "          ^~~\n"
                     "          detected during instantiation at line 2\n"
                     "k.cu:1: fatal error: cannot open source file \"n.h\"\n"
                     "2 errors detected in the compilation of \"k.cu\".\n");
    struct bytes first = nvrtc_log_error(bytes_of(log.data, log.size - 1));
    ck_assert(bytes_equal_str(first, "a/b.cu:3:9: error: identifier \"foo\" is undefined"));
    capbuf_finish(&log);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda source");
    TCase *t = tcase_create("source");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, accepts, 0, sizeof allowed / sizeof allowed[0]);
    tcase_add_loop_test(t, refuses, 0, sizeof refused / sizeof refused[0]);
    tcase_add_test(t, refuses_a_nul);
    tcase_add_test(t, what_is_no_character_is_an_at);
    tcase_add_test(t, finds_kernels);
    tcase_add_test(t, counts_kernels_without_keeping_all);
    tcase_add_test(t, survives_any_bytes);
    tcase_add_loop_test(t, reads_names, 0, sizeof names / sizeof names[0]);
    tcase_add_loop_test(t, survives_any_name, 0, sizeof names / sizeof names[0]);
    tcase_add_test(t, reads_options);
    tcase_add_test(t, knows_whose_options_they_are);
    tcase_add_loop_test(t, refuses_options, 0, sizeof bad_options / sizeof bad_options[0]);
    tcase_add_test(t, rewrites_messages);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
