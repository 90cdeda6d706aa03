#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuctl/sheet/sheet.h"
#include "gpuctl/sheet/sheet_fit.h"
#include "gpuctl/sheet/sheet_series.h"
#include "tests/unit/common/suite.h"

static const struct sheet_column columns[] = {
    {"job_id", GPUD_COLUMN_HANDLE, false}, {"label", GPUD_COLUMN_TEXT, false},
    {"size", GPUD_COLUMN_BYTES, false},    {"time", GPUD_COLUMN_NS, false},
    {"share", GPUD_COLUMN_PPM, false},     {"delta", GPUD_COLUMN_INT, true},
    {"ok", GPUD_COLUMN_BOOL, false},
};

static const struct sheet_cell cells[] = {
    {.value = 42},      {.text = "a \"b\", c"}, {.value = 1536},
    {.value = 1234567}, {.value = 125000},      {.value = (uint64_t)-3},
    {.value = 1},       {.value = 7},           {.text = ""},
    {.value = 100},     {.text = "-"},          {.value = 1000000},
    {.value = 0},       {.value = 0},
};

static const struct sheet sheet = {
    .name = "jobs", .columns = columns, .column_count = 7, .cells = cells, .row_count = 2};

static char *written(const struct sheet *what, enum sheet_format format)
{
    char *text = NULL;
    size_t size = 0;
    struct ctl_err e;
    FILE *out = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(out);
    const struct sheet_style style = {.format = format};
    ck_assert_int_eq(sheet_write(what, &style, out, &e), 0);
    fclose(out);
    return text;
}

static void expect(const struct sheet *what, enum sheet_format format, const char *want)
{
    char *got = written(what, format);
    ck_assert_str_eq(got, want);
    free(got);
}

START_TEST(table_for_people)
{
    expect(&sheet, SHEET_TABLE,
           "JOB ID LABEL        SIZE    TIME   SHARE OK\n"
           "    42 a \"b\", c 1.50 KiB 1.23 ms  12.5 % yes\n"
           "     7 -           100 B       - 100.0 % no\n");
}
END_TEST

START_TEST(wide_table_has_all_columns)
{
    expect(&sheet, SHEET_WIDE,
           "JOB ID LABEL        SIZE    TIME   SHARE DELTA OK\n"
           "    42 a \"b\", c 1.50 KiB 1.23 ms  12.5 %    -3 yes\n"
           "     7 -           100 B       - 100.0 %     0 no\n");
}
END_TEST

/* As the sheet appears on a terminal of this width; what went to standard error comes behind it. */
static void expect_in(size_t room, const char *want)
{
    char *text = NULL;
    size_t size = 0;
    struct ctl_err e;
    FILE *out = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(out);
    const struct sheet_place place = {.room = room, .messages = out};
    ck_assert_int_eq(sheet_write_columns(&sheet, &place, out, &e), 0);
    fclose(out);
    ck_assert_str_eq(text, want);
    free(text);
}

START_TEST(numbers_are_never_cut)
{
    expect_in(44, "JOB ID LABEL        SIZE    TIME   SHARE OK\n"
                  "    42 a \"b\", c 1.50 KiB 1.23 ms  12.5 % yes\n"
                  "     7 -           100 B       - 100.0 % no\n");
    expect_in(43, "JOB ID LABEL        SIZE    TIME   SHARE\n"
                  "    42 a \"b\", c 1.50 KiB 1.23 ms  12.5 %\n"
                  "     7 -           100 B       - 100.0 %\n"
                  "gpuctl: no room for ok; -o wide shows all columns\n");
    expect_in(3, "JOB ID\n    42\n     7\n"
                 "gpuctl: no room for label, size, time, share, ok; -o wide shows all columns\n");
}
END_TEST

START_TEST(texts_wrap_and_empty_columns_go_first)
{
    static const struct sheet_column heads[] = {{"job", GPUD_COLUMN_UINT, false},
                                                {"note", GPUD_COLUMN_TEXT, false},
                                                {"error", GPUD_COLUMN_TEXT, false},
                                                {"n", GPUD_COLUMN_UINT, false}};
    static const struct sheet_cell row[] = {
        {.value = 3712}, {.text = ""}, {.text = "launch axpy, step 2: argument y"}, {.value = 5}};
    const struct sheet told = {
        .name = "jobs", .columns = heads, .column_count = 4, .cells = row, .row_count = 1};
    char *text = NULL;
    size_t size = 0;
    struct ctl_err e;
    FILE *out = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(out);
    const struct sheet_place place = {.room = 24, .messages = out};
    ck_assert_int_eq(sheet_write_columns(&told, &place, out, &e), 0);
    fclose(out);
    ck_assert_str_eq(text, " JOB ERROR             N\n"
                           "3712 launch axpy, step 5\n"
                           "     2: argument y     \n");
    free(text);
}
END_TEST

START_TEST(a_text_wraps_at_blanks_and_characters)
{
    static const struct {
        const char *text;
        size_t width;
        const char *want;
    } cases[] = {
        {"", 4, ""},
        {"abcd", 4, "abcd"},
        {"abcde", 4, "abcd\ne"},
        {"ab cd", 4, "ab\ncd"},
        {"abcd ef", 4, "abcd\nef"},
        {"a b c", 1, "a\nb\nc"},
        {"  x", 1, " \nx"},
        {"abcdefghi", 2, "ab\ncd\nef\ngh\ni"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *lines = fit_wrap(cases[i].text, cases[i].width);
        ck_assert_str_eq(lines, cases[i].want);
        free(lines);
    }
}
END_TEST

START_TEST(json_has_plain_numbers)
{
    expect(&sheet, SHEET_JSON,
           "{\n"
           "  \"jobs\": [\n"
           "    {\n"
           "      \"job_id\": 42,\n"
           "      \"label\": \"a \\\"b\\\", c\",\n"
           "      \"size\": 1536,\n"
           "      \"time\": 1234567,\n"
           "      \"share\": 125000,\n"
           "      \"delta\": -3,\n"
           "      \"ok\": true\n"
           "    },\n"
           "    {\n"
           "      \"job_id\": 7,\n"
           "      \"label\": \"\",\n"
           "      \"size\": 100,\n"
           "      \"time\": null,\n"
           "      \"share\": 1000000,\n"
           "      \"delta\": 0,\n"
           "      \"ok\": false\n"
           "    }\n"
           "  ]\n"
           "}\n");
}
END_TEST

/* Handles have all of 64 bits. */
START_TEST(json_is_exact_beyond_its_integers)
{
    static const struct sheet_column one[] = {{"handle", GPUD_COLUMN_HANDLE, false}};
    static const struct sheet_cell large[] = {{.value = UINT64_C(16916307925857730576)},
                                              {.value = INT64_MAX}};
    const struct sheet s = {
        .name = "kernels", .columns = one, .column_count = 1, .cells = large, .row_count = 2};
    char *json = written(&s, SHEET_JSON);
    ck_assert_ptr_nonnull(strstr(json, "\"handle\": \"16916307925857730576\""));
    ck_assert_ptr_nonnull(strstr(json, "\"handle\": 9223372036854775807"));
    free(json);
}
END_TEST

START_TEST(csv_is_quoted_where_needed)
{
    expect(&sheet, SHEET_CSV,
           "job_id,label,size,time,share,delta,ok\r\n"
           "42,\"a \"\"b\"\", c\",1536,1234567,125000,-3,true\r\n"
           "7,,100,,1000000,0,false\r\n");
}
END_TEST

START_TEST(no_rows)
{
    struct sheet empty = sheet;
    empty.row_count = 0;
    expect(&empty, SHEET_JSON, "{\n  \"jobs\": []\n}\n");
    expect(&empty, SHEET_CSV, "job_id,label,size,time,share,delta,ok\r\n");
    expect(&empty, SHEET_TABLE, "JOB ID LABEL SIZE TIME SHARE OK\n");
    expect(&empty, SHEET_WIDE, "JOB ID LABEL SIZE TIME SHARE DELTA OK\n");
}
END_TEST

/* ---- series --------------------------------------------------------------------------------- */

/* One column with this number, `rows` times, as a part of the series; the time is cut off. */
static void add(struct sheet_series *series, enum sheet_format format, uint64_t value,
                uint32_t rows, char *out, size_t size)
{
    static const struct sheet_column two[] = {{"size", GPUD_COLUMN_UINT, false},
                                              {"free", GPUD_COLUMN_UINT, false}};
    struct sheet_cell numbers[2 * 64];
    char *text = NULL;
    size_t used = 0;
    struct ctl_err e;
    for (size_t i = 0; i < 2u * 64u; i++) {
        numbers[i] = (struct sheet_cell){.value = value};
    }
    const struct sheet s = {
        .name = "pool", .columns = two, .column_count = 2, .cells = numbers, .row_count = rows};
    const struct sheet_style style = {.format = format, .series = series};
    FILE *stream = open_memstream(&text, &used);
    ck_assert_ptr_nonnull(stream);
    ck_assert_int_eq(sheet_write(&s, &style, stream, &e), 0);
    fclose(stream);
    out[0] = '\0';
    for (char *rest = NULL, *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        ck_assert(strncmp(line, "TIME", 4) == 0 || line[2] == ':' || line[4] == '-' ||
                  strncmp(line, "time", 4) == 0);
        const char *behind = line + strcspn(line, format == SHEET_CSV ? "," : " ");
        size_t n = strlen(out);
        (void)snprintf(out + n, size - n, "%s\n", behind);
    }
    free(text);
}

START_TEST(a_series_keeps_its_columns)
{
    struct sheet_series s = {.lines = 0};
    char got[4096];
    add(&s, SHEET_TABLE, 7, 1, got, sizeof got);
    ck_assert_str_eq(got, "     SIZE FREE\n    7    7\n");
    add(&s, SHEET_TABLE, 123456, 1, got, sizeof got); /* wider: heads show where columns are now */
    ck_assert_str_eq(got, "       SIZE   FREE\n 123456 123456\n");
    add(&s, SHEET_TABLE, 7, 1, got, sizeof got);
    ck_assert_str_eq(got, "      7      7\n");
    for (unsigned i = 3; i <= SERIES_LINES; i++) {
        add(&s, SHEET_TABLE, 7, 1, got, sizeof got);
        ck_assert_msg(strchr(got, 'S') == NULL, "%u: %s", i, got);
    }
    add(&s, SHEET_TABLE, 7, 1, got, sizeof got);
    ck_assert_str_eq(got, "       SIZE   FREE\n      7      7\n");
    add(&s, SHEET_TABLE, 7, 0, got, sizeof got);
    ck_assert_str_eq(got, "");
}
END_TEST

START_TEST(another_table_begins_anew)
{
    struct sheet_series s = {.lines = 0};
    char got[4096];
    add(&s, SHEET_TABLE, 123456, 1, got, sizeof got);
    strcpy(s.name, "devices");
    add(&s, SHEET_TABLE, 7, 1, got, sizeof got);
    ck_assert_str_eq(got, "     SIZE FREE\n    7    7\n");
}
END_TEST

START_TEST(csv_names_columns_once)
{
    struct sheet_series s = {.lines = 0};
    char got[4096];
    add(&s, SHEET_CSV, 7, 1, got, sizeof got);
    ck_assert_str_eq(got, ",size,free\r\n,7,7\r\n");
    for (unsigned i = 0; i < 2 * SERIES_LINES; i++) {
        add(&s, SHEET_CSV, i, 1, got, sizeof got);
        ck_assert_msg(strstr(got, "size") == NULL, "%u: %s", i, got);
    }
}
END_TEST

START_TEST(foreign_texts_do_no_harm)
{
    static const struct sheet_column one[] = {{"label", GPUD_COLUMN_TEXT, false}};
    static const struct sheet_cell bad[] = {{.text = "a\x1b[2J\xff\n"}};
    struct sheet s = {
        .name = "jobs", .columns = one, .column_count = 1, .cells = bad, .row_count = 1};
    char *table = written(&s, SHEET_TABLE);
    ck_assert_ptr_null(strchr(table, '\x1b'));
    free(table);
    char *json = written(&s, SHEET_JSON);
    ck_assert_ptr_nonnull(strstr(json, "a\\u001B[2J?\\n"));
    free(json);
}
END_TEST

struct text_row {
    int kind;
    uint64_t value;
    const char *want;
};

START_TEST(values_have_units)
{
    static const struct text_row rows[] = {
        {GPUD_COLUMN_UINT, UINT64_MAX, "18446744073709551615"},
        {GPUD_COLUMN_INT, UINT64_MAX, "-1"},
        {GPUD_COLUMN_BYTES, 0, "0 B"},
        {GPUD_COLUMN_BYTES, 1023, "1023 B"},
        {GPUD_COLUMN_BYTES, 1024, "1.00 KiB"},
        {GPUD_COLUMN_BYTES, UINT64_C(12) << 20, "12.0 MiB"},
        {GPUD_COLUMN_BYTES, UINT64_C(512) << 30, "512 GiB"},
        {GPUD_COLUMN_BYTES, UINT64_MAX, "16.0 EiB"},
        {GPUD_COLUMN_NS, 999, "999 ns"},
        {GPUD_COLUMN_NS, 1000, "1.00 us"},
        {GPUD_COLUMN_NS, UINT64_C(599000000000), "599 s"},
        {GPUD_COLUMN_NS, UINT64_C(3660000000000), "1 h 01 min"},
        {GPUD_COLUMN_NS, UINT64_C(90000000000000), "1 d 01 h"},
        {GPUD_COLUMN_PPM, 1, "0.0 %"},
        {GPUD_COLUMN_BOOL, 2, "yes"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char out[64];
        ck_assert_str_eq(sheet_text(rows[i].kind, rows[i].value, out, sizeof out), rows[i].want);
    }
}
END_TEST

SUITE_MAIN("sheet", table_for_people, wide_table_has_all_columns, numbers_are_never_cut,
           texts_wrap_and_empty_columns_go_first, a_text_wraps_at_blanks_and_characters,
           json_has_plain_numbers, json_is_exact_beyond_its_integers, csv_is_quoted_where_needed,
           no_rows, a_series_keeps_its_columns, another_table_begins_anew, csv_names_columns_once,
           foreign_texts_do_no_harm, values_have_units)
