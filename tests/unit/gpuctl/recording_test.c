/* Reading recordings: each kind of line, and each line that is not good. */
#include "gpuctl/run/recording.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/common/suite.h"

#define HEAD "{\"line\":\"recording\",\"format\":\"gpud-recording\",\"version\":1}\n"
#define STOP "{\"line\":\"stop\"}\n"

static struct recording f;
static struct ctl_err e;
static char content[8192];

static int begin_with(const char *text)
{
    (void)snprintf(content, sizeof content, "%s", text);
    FILE *in = fmemopen(content, strlen(content), "r");
    ck_assert_ptr_nonnull(in);
    return recording_begin(in, "file", &f, &e);
}

/* Reads all of it: 0, or the error of the first line that is not good. */
static int read_all(const char *text, unsigned *ret_lines)
{
    enum recording_line line = LINE_OTHER;
    int rc = begin_with(text);
    *ret_lines = 0;
    while (rc == 0 && line != LINE_NONE) {
        json_t *root = NULL;
        rc = recording_next(&f, &line, &root, &e);
        *ret_lines += rc == 0 && root != NULL;
        json_decref(root);
    }
    return rc;
}

START_TEST(good_lines_are_read)
{
    unsigned lines = 0;
    ck_assert_msg(read_all(HEAD
                           "{\"line\":\"buffer\",\"at_ns\":1,\"buffer\":\"0x1\",\"shape\":[2]}\n"
                           "{\"line\":\"module\",\"at_ns\":1,\"module\":\"0x2\"}\n"
                           "{\"line\":\"program\",\"at_ns\":1,\"program\":\"0x3\",\"steps\":[]}\n"
                           "{\"line\":\"job\",\"at_ns\":1,\"job\":{\"id\":1,\"session\":2},"
                           "\"program\":\"0x3\",\"values\":[]}\n"
                           "{\"line\":\"job\",\"at_ns\":1,\"job\":{\"id\":2,\"session\":2},"
                           "\"steps\":[],\"values\":[]}\n"
                           "{\"line\":\"end\",\"at_ns\":2,\"job\":1,\"queued_ns\":1,"
                           "\"executed_ns\":1}\n"
                           "{\"line\":\"later\"}\n"
                           "{\"line\":\"gap\",\"at_ns\":3,\"lost\":4}\n"
                           "{\"line\":\"free\",\"at_ns\":3,\"buffer\":\"0x1\"}\n" STOP,
                           &lines) == 0,
                  "%s", e.text);
    ck_assert_uint_eq(lines, 10);
    ck_assert(!f.cut);
    ck_assert_int_eq(recording_rewind(&f, &e), 0);
    ck_assert_uint_eq(f.line, 1);
    recording_close(&f);
}
END_TEST

/* A recording whose daemon was killed ends in the middle of a line: what is before it counts. */
START_TEST(a_cut_recording_is_read)
{
    unsigned lines = 0;
    ck_assert_int_eq(
        read_all(HEAD "{\"line\":\"gap\",\"at_ns\":1,\"lost\":1}\n{\"line\":\"ga", &lines), 0);
    ck_assert_uint_eq(lines, 1);
    ck_assert(f.cut);
    recording_close(&f);
    ck_assert_int_eq(read_all(HEAD, &lines), 0);
    ck_assert(f.cut);
    recording_close(&f);
}
END_TEST

static const struct {
    const char *line;
    const char *why;
} bad[] = {
    {"", "line 2: it is empty"},
    {"{", "line 2:"},
    {"[1]", "line 2: it is no object"},
    {"{\"line\":1}", "line 2: line is no text"},
    {"{\"at_ns\":1}", "line 2: it has no member line"},
    {"{\"line\":\"gap\",\"line\":\"gap\"}", "line 2: duplicate"},
    {"{\"line\":\"gap\",\"lost\":1}", "line 2: it has no member at_ns"},
    {"{\"line\":\"gap\",\"at_ns\":-1,\"lost\":1}", "line 2: at_ns is no number"},
    {"{\"line\":\"gap\",\"at_ns\":1}", "line 2: it has no member lost"},
    {"{\"line\":\"free\",\"at_ns\":1}", "line 2: it has no member buffer"},
    {"{\"line\":\"buffer\",\"at_ns\":1,\"buffer\":1}", "line 2: it has no member shape"},
    {"{\"line\":\"buffer\",\"at_ns\":1,\"buffer\":1,\"shape\":[1,1,1,1,1]}",
     "line 2: shape has 5 entries"},
    {"{\"line\":\"module\",\"at_ns\":1,\"module\":\"x\"}", "line 2: module is no number"},
    {"{\"line\":\"program\",\"at_ns\":1,\"program\":1}", "line 2: it has no member steps"},
    {"{\"line\":\"job\",\"at_ns\":1}", "line 2: it has no object job"},
    {"{\"line\":\"job\",\"at_ns\":1,\"job\":{\"id\":1}}", "line 2: it has no member session"},
    {"{\"line\":\"job\",\"at_ns\":1,\"job\":{\"id\":1,\"session\":1}}",
     "line 2: it has no member values"},
    {"{\"line\":\"job\",\"at_ns\":1,\"job\":{\"id\":1,\"session\":1},\"values\":[]}",
     "line 2: it has no member steps"},
    {"{\"line\":\"end\",\"at_ns\":1,\"job\":1,\"queued_ns\":1}",
     "line 2: it has no member executed_ns"},
    {"{\"line\":\"end\",\"at_ns\":1,\"job\":1,\"queued_ns\":1,\"executed_ns\":1,"
     "\"results\":[{\"step\":999}]}",
     "line 2: step is 999"},
    {"{\"line\":\"end\",\"at_ns\":1,\"job\":1,\"queued_ns\":1,\"executed_ns\":1,"
     "\"results\":[7]}",
     "line 2: result 0: no object"},
    {"{\"line\":\"stop\"}\n{\"line\":\"stop\"}", "line 3: it follows the last line"},
};

START_TEST(bad_lines_are_named)
{
    char text[1024];
    unsigned lines = 0;
    (void)snprintf(text, sizeof text, HEAD "%s\n" STOP, bad[_i].line);
    ck_assert_int_ne(read_all(text, &lines), 0);
    ck_assert_msg(strstr(e.text, bad[_i].why) != NULL, "not \"%s\": %s", bad[_i].why, e.text);
    ck_assert_msg(strncmp(e.text, "file: ", 6) == 0, "%s", e.text);
    recording_close(&f);
}
END_TEST

START_TEST(other_files_are_refused)
{
    static const struct {
        const char *text, *why;
    } other[] = {
        {"x", "file: it has no whole line"},
        {"x\n", "file: line 1:"},
        {"{}\n", "no recording of"},
        {"{\"format\":\"gpud-job\",\"version\":1}\n", "no recording of"},
        {"{\"format\":\"gpud-recording\",\"version\":2}\n", "version 2, this gpuctl reads"},
    };
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        ck_assert_int_ne(begin_with(other[i].text), 0);
        ck_assert_msg(strstr(e.text, other[i].why) != NULL, "%s", e.text);
    }
    ck_assert_int_ne(recording_open("/dev/zero", &f, &e), 0);
    ck_assert_msg(strstr(e.text, "not a file") != NULL, "%s", e.text);
    ck_assert_int_ne(recording_open("/nonexistent/file", &f, &e), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("recording");
    TCase *tcase = tcase_create("recording");
    tcase_add_test(tcase, good_lines_are_read);
    tcase_add_test(tcase, a_cut_recording_is_read);
    tcase_add_loop_test(tcase, bad_lines_are_named, 0, sizeof bad / sizeof bad[0]);
    tcase_add_test(tcase, other_files_are_refused);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
