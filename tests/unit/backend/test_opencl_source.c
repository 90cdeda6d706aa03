#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/backend/opencl/opencl.h"

struct source {
    const char *text;
    const char *where; /* the error begins with it */
};

static const struct source refused[] = {
    {"#include \"a.h\"", "k.cl:1: #include"},
    {"int x;\n#include <a.h>\n", "k.cl:2: #include"},
    {"  #  include \"a.h\"", "k.cl:1: #include"},
    {"/* a */ # /* b\n */ include \"a.h\"", "k.cl:2: #include"},
    {"#inc\\\nlude \"a.h\"", "k.cl:"},
    {"#\\\n\\\ninclude \"a.h\"", "k.cl:3:"},
    {"#inc\\  \nlude \"a.h\"", "k.cl:"},
    {"%:include \"a.h\"", "k.cl:1: #include"},
    {"\?\?=include \"a.h\"", "k.cl:1: #include"},
    {"#define H \"/etc/passwd\"\n#include H", "k.cl:2: #include"},
    {"#include_next <a.h>", "k.cl:1: #include_next"},
    {"#import \"a.h\"", "k.cl:1: #import"},
    {"#embed \"a.h\"", "k.cl:1: #embed"},
    {"#if __has_include(\"a.h\")\n#endif", "k.cl:1: __has_include"},
    {"#if 0\n#else\n#include \"a.h\"\n#endif", "k.cl:3: #include"},
    {"#pragma GCC dependency \"/etc/passwd\"", "k.cl:1: #pragma dependency"},
    {"#undef asm", "k.cl:1: a macro of the name asm"},
    {"#/* */define /* */ __asm__ x", "k.cl:1: a macro of the name __asm__"},
    {"%:un\\\ndef __a\\\nsm\n", "k.cl:"},
    {"\"unended\n#include \"a.h\"", "k.cl:2: #include"},
    {"'\n#include \"a.h\"", "k.cl:2: #include"},
    {"x = \"a?\?/\" /* \";\n#include \"a.h\"", "k.cl: the trigraph"},
    {"// a line \\\n still a comment\n#include \"a.h\"", "k.cl:3: #include"},
};

START_TEST(refuses_what_reaches_for_files)
{
    const struct source *s = &refused[_i];
    struct err e = ERR_INIT;
    int rc = opencl_source_check(bytes_str(s->text), "k.cl", &e);
    ck_assert_msg(rc == ERR_COMPILE, "accepted: %s", s->text);
    ck_assert_msg(strncmp(e.text, s->where, strlen(s->where)) == 0, "%s: %s", s->text, e.text);
    ck_assert_ptr_nonnull(strstr(e.text, "is not allowed"));
}
END_TEST

static const char *const accepted[] = {
    "",
    "__kernel void f(__global float *x) { x[get_global_id(0)] = 1.0f; }\n",
    "// #include \"a.h\"\n",
    "/* a\n#include \"a.h\"\n*/ int x;",
    "// a comment goes on \\\n#include \"a.h\"\n",
    "__constant char s[] = \"a \\\"\\\n#include \\\"b\\\" \";",
    "#define include 3\nint x = include;",
    "int include = 1, import = 2;",
    "#define NAME(x) #x\n",
    "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#pragma unroll 4\n",
    "int a = 5 %3; int b = a ? 1 : 2;",
    "char q = '\"'; char r = '\\''; int y;",
    "int asm_count, my_asm;",
    "#define ADD asm volatile\n#undef ADD\nint x;",
    "#ifdef NV\nvoid f() { asm volatile (\"\"); }\n#endif",
    "#line 7 \"other.cl\"\nint x;",
    "x = a / b; y = a /* b",
    "\\",
    "\"",
};

START_TEST(accepts_what_does_not)
{
    struct err e = ERR_INIT;
    int rc = opencl_source_check(bytes_str(accepted[_i]), "k.cl", &e);
    ck_assert_msg(rc == 0, "%s: %s", accepted[_i], e.text);
}
END_TEST

START_TEST(refuses_a_nul)
{
    struct err e = ERR_INIT;
    ck_assert_int_eq(opencl_source_check(bytes_of("int x;\0#include", 15), "k.cl", &e),
                     ERR_COMPILE);
}
END_TEST

START_TEST(allows_few_options)
{
    static const char *const good[] = {"",
                                       "  ",
                                       "-DN=3",
                                       "-D N=3",
                                       "-DNAME",
                                       "-D TYPE=float4 -cl-fast-relaxed-math",
                                       "-cl-std=CL1.2 -w\t-Werror"};
    static const char *const bad[] = {"-I/etc",
                                      "-I .",
                                      "-include /etc/passwd",
                                      "/etc/passwd",
                                      "-D",
                                      "-D -I",
                                      "-D3=4",
                                      "-DX=\"a\"",
                                      "-DX=$(id)",
                                      "-cl-x=/etc",
                                      "-Xclang",
                                      "-o /tmp/x",
                                      "-DX=`id`",
                                      "-fplugin=x",
                                      "-DX=a\\ -I/etc",
                                      "-DF(x)=x",
                                      "-create-library;x"};
    struct err e = ERR_INIT;
    for (unsigned i = 0; i < sizeof good / sizeof good[0]; i++) {
        ck_assert_msg(opencl_options_check(good[i], &e) == 0, "%s: %s", good[i], e.text);
    }
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(opencl_options_check(bad[i], &e) == ERR_INVALID, "%s", bad[i]);
    }
}
END_TEST

START_TEST(errors_have_names)
{
    struct err e = ERR_INIT;
    ck_assert_int_eq(opencl_error(CL_MEM_OBJECT_ALLOCATION_FAILURE, "clCreateBuffer", &e),
                     ERR_DEVICE_MEMORY);
    ck_assert_int_eq(e.vendor, CL_MEM_OBJECT_ALLOCATION_FAILURE);
    ck_assert_str_eq(e.text, "clCreateBuffer: CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)");
    ck_assert_int_eq(opencl_error(-9999, "clFoo", &e), ERR_INTERNAL);
    ck_assert_str_eq(e.text, "clFoo: unknown (-9999)");
    ck_assert_int_eq(opencl_command_error(CL_OUT_OF_RESOURCES, &e), ERR_KERNEL_FAULT);
    ck_assert_int_eq(opencl_command_error(CL_MEM_OBJECT_ALLOCATION_FAILURE, &e), ERR_DEVICE_MEMORY);
}
END_TEST

START_TEST(binaries_are_checked)
{
    struct err e = ERR_INIT;
    struct backend_compiled c = {0};
    struct bytes payload = bytes_str("what the driver made");
    struct bytes out;
    ck_assert_int_eq(opencl_binary_wrap("arch 1", payload, &c, &e), 0);
    struct bytes whole = bytes_of(c.binary, c.binary_size);
    ck_assert_int_eq(opencl_binary_unwrap("arch 1", whole, &out, &e), 0);
    ck_assert(bytes_equal(out, payload));
    ck_assert_int_eq(opencl_binary_unwrap("arch 2", whole, &out, &e), ERR_INVALID);
    for (size_t i = 0; i < c.binary_size; i++) {
        c.binary[i] ^= 1;
        ck_assert_int_eq(opencl_binary_unwrap("arch 1", whole, &out, &e), ERR_INVALID);
        c.binary[i] ^= 1;
        ck_assert_int_eq(opencl_binary_unwrap("arch 1", bytes_of(c.binary, i), &out, &e),
                         ERR_INVALID);
    }
    backend_compiled_finish(&c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("opencl source");
    TCase *t = tcase_create("source");
    tcase_add_loop_test(t, refuses_what_reaches_for_files, 0, sizeof refused / sizeof refused[0]);
    tcase_add_loop_test(t, accepts_what_does_not, 0, sizeof accepted / sizeof accepted[0]);
    tcase_add_test(t, refuses_a_nul);
    tcase_add_test(t, allows_few_options);
    tcase_add_test(t, errors_have_names);
    tcase_add_test(t, binaries_are_checked);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
