#include "common/log_json.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/common/suite.h"

static char out[LOG_JSON_BYTES + 1];

static const char *line_of(uint64_t wall_ns, const struct log_about *about, const char *message)
{
    const struct log_json_head head = {
        .program = "gpud", .level = "warn", .kind = "K", .id = "00", .wall_ns = wall_ns, .pid = 7};
    size_t size = log_json(&head, about, message, out);
    ck_assert_uint_le(size, LOG_JSON_BYTES);
    out[size] = '\0';
    return out;
}

START_TEST(a_line_has_whom_it_is_about)
{
    const struct log_about about = {
        .job = UINT64_MAX, .trace = 0x1f, .tenant = "vision", .device = LOG_ON(3)};
    ck_assert_str_eq(line_of(0, &about, "text"),
                     "{\"time\":\"1970-01-01T00:00:00.000000Z\",\"level\":\"warn\","
                     "\"program\":\"gpud\",\"pid\":7,\"kind\":\"K\",\"message_id\":\"00\","
                     "\"device\":3,\"job\":18446744073709551615,\"trace\":\"000000000000001f\","
                     "\"tenant\":\"vision\",\"message\":\"text\"}\n");
}
END_TEST

START_TEST(days_are_those_of_the_calendar)
{
    static const struct {
        uint64_t seconds;
        const char *shown;
    } rows[] = {
        {951782400, "2000-02-29T00:00:00"},  {951868800, "2000-03-01T00:00:00"},
        {1709164799, "2024-02-28T23:59:59"}, {1735689599, "2024-12-31T23:59:59"},
        {1735689600, "2025-01-01T00:00:00"}, {4107542399, "2100-02-28T23:59:59"},
        {4107542400, "2100-03-01T00:00:00"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct log_about nobody = {0};
        const char *line = line_of(rows[i].seconds * 1000000000 + 1000, &nobody, "");
        ck_assert_ptr_eq(strstr(line + strlen("{\"time\":\""), rows[i].shown),
                         line + strlen("{\"time\":\""));
        ck_assert_ptr_nonnull(strstr(line, ".000001Z\""));
    }
}
END_TEST

/* FAULT other: a name that breaks a line of JSON
 * required: each line is one object of valid JSON, whatever clients call their things
 * defence: `common/log_json.c`: add_character
 * mutants: log-json */
START_TEST(hostile_names_stay_text)
{
    static const struct {
        const char *name;
        const char *shown;
    } rows[] = {
        {"a\"b\\c", "a\\\"b\\\\c"},
        {"\",\"level\":\"error", "\\\",\\\"level\\\":\\\"error"},
        {"\n\r\t\x1b[2J\x7f", "\\u000a\\u000d\\u0009\\u001b[2J\\u007f"},
        {"\xc2\x85\xc2\x9f\xc2\xa0", "\\u0085\\u009f\xc2\xa0"},
        {"\xff\xc0\xaf\xed\xa0\x80", "??????"},
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"cut \xe2\x82", "cut ??"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char want[256];
        (void)snprintf(want, sizeof want, "\"tenant\":\"%s\",\"message\":\"%s\"}\n", rows[i].shown,
                       rows[i].shown);
        ck_assert_ptr_nonnull(
            strstr(line_of(0, &(struct log_about){.tenant = rows[i].name}, rows[i].name), want));
    }
}
END_TEST

START_TEST(a_long_text_is_cut_and_the_line_ends)
{
    static char big[8192];
    static const char *const units[] = {"x", "\x01", "\"", "\xf0\x9f\x98\x80"};
    for (size_t u = 0; u < sizeof units / sizeof units[0]; u++) {
        size_t size = strlen(units[u]);
        for (size_t i = 0; i + size < sizeof big; i += size) {
            memcpy(big + i, units[u], size + 1);
        }
        const char *line = line_of(0, &(struct log_about){.tenant = big}, big);
        ck_assert_ptr_nonnull(strstr(line, "\",\"message\":\""));
        ck_assert_uint_gt(strlen(line), LOG_JSON_BYTES - 16);
        ck_assert_str_eq(line + strlen(line) - 3, "\"}\n");
    }
}
END_TEST

SUITE_MAIN("log_json", a_line_has_whom_it_is_about, days_are_those_of_the_calendar,
           hostile_names_stay_text, a_long_text_is_cut_and_the_line_ends)
