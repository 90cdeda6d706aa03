/* Headers of the user's, put in where a source includes them. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gpud/gpud.h>

#include "gpuctl/input/include.h"

static char folder[64];

static void folder_begin(void)
{
    (void)snprintf(folder, sizeof folder, "/tmp/gpuctl-include-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    ck_assert_int_eq(mkdir("sub", 0700), 0);
}

static void put(const char *name, const char *text)
{
    FILE *f = fopen(name, "we");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    (void)fclose(f);
}

static void folder_end(void)
{
    char command[128];
    ck_assert_int_eq(chdir("/"), 0);
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static int expand(const char *text, const struct include_dirs *dirs, size_t limit,
                  struct file *ret_file, struct ctl_err *e)
{
    static const struct include_dirs none = {.count = 0};
    put("main.cu", text);
    ck_assert_int_eq(file_load("main.cu", (struct file_limit){4096, 4096}, ret_file, e), 0);
    return include_files("main.cu", dirs != NULL ? dirs : &none, limit, ret_file, e);
}

static void expands_to(const char *text, const struct include_dirs *dirs, const char *want)
{
    struct file file;
    struct ctl_err e = {.code = 0};
    ck_assert_msg(expand(text, dirs, 65536, &file, &e) == 0, "%s", e.text);
    ck_assert_uint_eq(file.size, strlen(want));
    ck_assert_msg(memcmp(file.data, want, file.size) == 0, "%.*s", (int)file.size,
                  (const char *)file.data);
    file_finish(&file);
}

/* Behind it stands the guard by which a header includes itself. */
START_TEST(a_byte_order_mark_is_no_text)
{
    put("a.h", "\xEF\xBB\xBF#ifndef A\n#define A\n#include \"a.h\"\n#endif\n");
    expands_to("\xEF\xBB\xBF#include \"a.h\"\n", NULL,
               "#line 1 \"a.h\"\n#ifndef A\n#define A\n#line 4 \"a.h\"\n#endif\n"
               "#line 2 \"main.cu\"\n");
}
END_TEST

/* It is compiled once, so its text is needed once: programs include theirs from everywhere. Where
 * the first text may be left out, the next one is needed. */
START_TEST(puts_pragma_once_in_once)
{
    static const char *const again[] = {
        "#if 1\n#include \"o.h\"\n#endif\n", "/* */ #if 1\n#include \"o.h\"\n/* */ #endif\n",
        "#\\\nif 1\n#include \"o.h\"\n#\\\nendif\n", "%:if 1\n#include \"o.h\"\n%:endif\n",
        "#ifdef A\n#include \"p.h\"\n#endif\n"};
    static const struct include_dirs none = {.count = 0};
    put("o.h", "#pragma once\nint once;\n");
    put("p.h", "#pragma once\n#include \"o.h\"\n");
    expands_to("#include \"o.h\"\n#if 1\n#include \"o.h\"\n#endif\n", NULL,
               "#ifndef GPUD_ONCE_0\n#define GPUD_ONCE_0\n#line 1 \"o.h\"\n\nint once;\n#endif\n"
               "#line 2 \"main.cu\"\n#if 1\n#line 4 \"main.cu\"\n#endif\n");
    for (size_t i = 0; i < sizeof again / sizeof again[0]; i++) {
        struct file file;
        struct ctl_err e = {.code = 0};
        char text[256];
        (void)snprintf(text, sizeof text, "%s#include \"o.h\"\n", again[i]);
        ck_assert_msg(expand(text, &none, 65536, &file, &e) == 0, "%s", e.text);
        const char *first = memmem(file.data, file.size, "int once", 8);
        ck_assert_ptr_nonnull(first);
        size_t left = file.size - (size_t)(first + 8 - (const char *)file.data);
        ck_assert_msg(memmem(first + 8, left, "int once", 8) != NULL, "%s", again[i]);
        file_finish(&file);
    }
}
END_TEST

START_TEST(puts_headers_in)
{
    const struct include_dirs dirs = {{"sub"}, 1};
    put("a.h", "#include \"sub/b.h\" // of it\nint a;");
    put("sub/b.h", "#include \"c.h\"\nint b;\n");
    put("sub/c.h", "int c;\n");
    expands_to("int x;\n # include \"a.h\" /* that\n is it */\nint y;\n", NULL,
               "int x;\n#line 1 \"a.h\"\n#line 1 \"sub/b.h\"\n#line 1 \"c.h\"\nint c;\n"
               "#line 2 \"sub/b.h\"\nint b;\n#line 2 \"a.h\"\nint a;\n#line 3 \"main.cu\"\n"
               "/* is it */\nint y;\n");
    expands_to("#include <c.h>\nint y;\n", &dirs,
               "#line 1 \"c.h\"\nint c;\n#line 2 \"main.cu\"\nint y;\n");
}
END_TEST

/* What is no directive, or names nothing that is there, is left as it is. */
static const char *const left[] = {
    "",
    "int x;",
    "#include <a.h>\n",
    "#include \"none.h\"\n#include <stdio.h>\n#include \"sub\"\n",
    "// #include \"a.h\"\n",
    "/* one\n#include \"a.h\"\n*/\n",
    "int n = 1'0; /* '\n#include \"a.h\"\n*/\n",
    "char c = '\"', d = '/*'; // \"\n/*\n#include \"a.h\"\n*/ \n",
    "#define A x \\\n#include \"a.h\"\n",
    "#include HEADER\n#includes \"a.h\"\n#pragma once\n",
};

START_TEST(leaves_the_rest)
{
    put("a.h", "int a;\n");
    expands_to(left[_i], NULL, left[_i]);
}
END_TEST

START_TEST(a_header_is_read_once_if_it_says_so)
{
    put("a.h", "#pragma once\n#include \"b.h\"\nint a;\n");
    put("b.h", "#ifndef B\n#define B\n#include \"a.h\"\n#endif\n");
    expands_to("#include \"a.h\"\n#include \"a.h\"\n", NULL,
               "#ifndef GPUD_ONCE_0\n#define GPUD_ONCE_0\n#line 1 \"a.h\"\n\n"
               "#line 1 \"b.h\"\n#ifndef B\n#define B\n#line 4 \"b.h\"\n#endif\n"
               "#line 3 \"a.h\"\nint a;\n#endif\n#line 2 \"main.cu\"\n#line 3 \"main.cu\"\n");
}
END_TEST

START_TEST(refuses_what_has_no_end)
{
    struct file file;
    struct ctl_err e = {.code = 0};
    put("a.h", "int a;\n#include \"a.h\"\n");
    ck_assert_int_eq(expand("#include \"a.h\"\n", NULL, 65536, &file, &e), GPUD_ERR_INVALID);
    ck_assert_msg(strstr(e.text, "a.h includes itself") != NULL, "%s", e.text);
    file_finish(&file);
    put("a.h", "int aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa;\n");
    ck_assert_int_eq(expand("#include \"a.h\"\n", NULL, 50, &file, &e), GPUD_ERR_LIMIT);
    file_finish(&file);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("include");
    TCase *all = tcase_create("headers");
    tcase_add_checked_fixture(all, folder_begin, folder_end);
    tcase_add_test(all, a_byte_order_mark_is_no_text);
    tcase_add_test(all, puts_pragma_once_in_once);
    tcase_add_test(all, puts_headers_in);
    tcase_add_loop_test(all, leaves_the_rest, 0, sizeof left / sizeof left[0]);
    tcase_add_test(all, a_header_is_read_once_if_it_says_so);
    tcase_add_test(all, refuses_what_has_no_end);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
