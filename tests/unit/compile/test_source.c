/* Which sources try to include a file. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/compile/source.h"

static const struct {
    const char *text;
    const char *where; /* NULL: it is fine */
} CASES[] = {
    {"", NULL},
    {"kernel void f() {}\n", NULL},
    {"#define include 1\nint include;\n", NULL},
    {"// #include \"a\"\nint x;", NULL},
    {"/* \n#include \"a\"\n*/ int x;", NULL},
    {"char *s = \"\\\n#include \";", NULL},
    {"#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n", NULL},
    {"int a; #include \"a\"", NULL}, /* no directive: not at the line's begin */
    {"#include \"/etc/passwd\"\n", "k.cl:1:1: error: #include"},
    {"int a;\n  #  include <a>\n", "k.cl:2:3: error: #include"},
    {"#/* a */include <a>", "k.cl:1:1: error: #include"},
    {"/* a\n */ #include <a>", "k.cl:2:5: error: #include"},
    {"#inc\\\nlude <a>", "k.cl:1:1: error: #include"},
    {"\\\n#include <a>", "k.cl:2:1: error: #include"},
    {"%:include <a>", "k.cl:1:2: error: #include"},
    {"?\?=include <a>", "k.cl:1:3: error: #include"},
    {"#?\?/\ninclude <a>", "k.cl:1:1: error: #include"},
    {"#import \"a\"", "k.cl:1:1: error: #import"},
    {"#include_next <a>", "k.cl:1:1: error: #include_next"},
    {"char c = '\"';\n#include <a>\n// \"", "k.cl:2:1: error: #include"},
    {"// a \\\n\n#include <a>", "k.cl:3:1: error: #include"},
};

START_TEST(includes_are_found)
{
    struct err e = ERR_INIT;
    int rc = source_check(bytes_str(CASES[_i].text), "k.cl", NULL, &e);
    if (CASES[_i].where == NULL) {
        ck_assert_msg(rc == 0, "%s", e.text);
    } else {
        ck_assert_int_eq(rc, ERR_COMPILE);
        ck_assert_ptr_nonnull(strstr(e.text, CASES[_i].where));
    }
}
END_TEST

/* Plain ones are left to the preprocessor; odd spellings are refused all the same. */
START_TEST(includes_become_errors)
{
    struct err e = ERR_INIT;
    struct capbuf out;
    static const char *const odd[] = {"#inc\\\nlude <a>", "#include_next <a>", "#import <a>"};
    capbuf_init(&out, 1024);
    ck_assert_int_eq(source_check(bytes_str("int x;\n"), "k.cl", &out, &e), 0);
    ck_assert_uint_eq(out.size, 0);
    ck_assert_int_eq(
        source_check(bytes_str("#if 0\n# /**/ include <a> // b\n#endif\n%:include F\n"), "k.cl",
                     &out, &e),
        0);
    ck_assert(capbuf_append(&out, "", 1));
    const char *text = (const char *)out.data;
    ck_assert_msg(strncmp(text, "#if 0\n# /**/ error #include is not", 34) == 0, "%s", text);
    ck_assert_ptr_nonnull(strstr(text, "-I):  <a> // b\n#endif\n%:error #include"));
    ck_assert_str_eq(strrchr(text, ':'), ":  F\n");
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        capbuf_reset(&out);
        ck_assert_int_eq(source_check(bytes_str(odd[i]), "k.cl", &out, &e), ERR_COMPILE);
    }
    capbuf_finish(&out);
    capbuf_init(&out, 64);
    ck_assert_int_ne(source_check(bytes_str("#include <a>"), "k.cl", &out, &e), 0);
    capbuf_finish(&out);
}
END_TEST

START_TEST(a_source_without_a_name_is_called_one)
{
    struct err e = ERR_INIT;
    ck_assert_int_eq(source_check(bytes_str("#include <a>"), "", NULL, &e), ERR_COMPILE);
    ck_assert_msg(strncmp(e.text, "source:1:1: ", 12) == 0, "%s", e.text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("source");
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, includes_are_found, 0, sizeof CASES / sizeof CASES[0]);
    tcase_add_test(all, includes_become_errors);
    tcase_add_test(all, a_source_without_a_name_is_called_one);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
