/* The text of metrics: what is escaped, how numbers and buckets are written, in both formats. */
#include "daemon/front/metrics/exposition.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/common/suite.h"

static struct exposition x;

static const char *text(void)
{
    ck_assert(exposition_end(&x));
    ck_assert(capbuf_append(&x.text, "", 1));
    return (const char *)x.text.data;
}

static void expect_number(uint64_t value, enum family_unit unit, const char *expected)
{
    char line[64];
    exposition_init(&x, false);
    x.family = "a";
    exposition_sample(&x, NULL, 0, value, unit);
    (void)snprintf(line, sizeof line, "a %s\n", expected);
    ck_assert_str_eq(text(), line);
    exposition_finish(&x);
}

START_TEST(numbers_keep_all_their_digits)
{
    expect_number(0, UNIT_ONE, "0");
    expect_number(UINT64_MAX, UNIT_ONE, "18446744073709551615");
    expect_number(1, UNIT_NS, "0.000000001");
    expect_number(1500000000, UNIT_NS, "1.5");
    expect_number(UINT64_C(20000000000), UNIT_NS, "20");
    expect_number(UINT64_MAX, UNIT_NS, "18446744073.709551615");
    expect_number(1000001, UNIT_MICRO, "1.000001");
    expect_number(41500, UNIT_MILLI, "41.5");
    expect_number(7, UNIT_MILLI, "0.007");
}
END_TEST

static void expect_label(const char *value, const char *expected)
{
    char line[128];
    const struct label label = {"l", value};
    exposition_init(&x, false);
    x.family = "a";
    exposition_sample(&x, &label, 1, 1, UNIT_ONE);
    (void)snprintf(line, sizeof line, "a{l=\"%s\"} 1\n", expected);
    ck_assert_str_eq(text(), line);
    exposition_finish(&x);
}

/* A value must not end its quotes or its line; a byte that is not UTF-8 would fail the whole
 * scrape. */
START_TEST(values_of_labels_are_escaped)
{
    expect_label("plain", "plain");
    expect_label("", "");
    expect_label("a\"} 7\nb{c=\"\\", "a\\\"} 7\\nb{c=\\\"\\\\");
    expect_label("gr\xc3\xb6\xc3\x9f"
                 "e",
                 "gr\xc3\xb6\xc3\x9f"
                 "e");
    expect_label("a\xff\"\xc3", "a?\\\"?");
    expect_label("\xed\xa0\x80", "???"); /* a surrogate */
}
END_TEST

START_TEST(families_of_openmetrics_lack_the_suffix)
{
    exposition_init(&x, false);
    exposition_family(&x, "a_total", FAMILY_COUNTER, "Help.");
    exposition_sample(&x, NULL, 0, 3, UNIT_ONE);
    ck_assert_str_eq(text(), "# HELP a_total Help.\n# TYPE a_total counter\na_total 3\n");
    exposition_finish(&x);
    exposition_init(&x, true);
    exposition_family(&x, "a_total", FAMILY_COUNTER, "Help.");
    exposition_sample(&x, NULL, 0, 3, UNIT_ONE);
    exposition_family(&x, "b", FAMILY_GAUGE, "Help.");
    ck_assert_str_eq(text(), "# HELP a Help.\n# TYPE a counter\na_total 3\n"
                             "# HELP b Help.\n# TYPE b gauge\n# EOF\n");
    exposition_finish(&x);
}
END_TEST

static void write_histogram(const struct histogram *h, bool openmetrics)
{
    const struct label label = {"device", "0"};
    exposition_init(&x, openmetrics);
    exposition_family(&x, "t", FAMILY_HISTOGRAM, "Help.");
    exposition_histogram(&x, &label, 1, h);
}

START_TEST(buckets_add_up)
{
    struct histogram h = {.sum_ns = 0};
    histogram_note(&h, 0, 0, 0);
    histogram_note(&h, 10000, 0, 0); /* the first bound itself */
    histogram_note(&h, 10001, 0, 0);
    histogram_note(&h, UINT64_C(300000000000), 0, 0);
    histogram_note(&h, UINT64_C(300000000001), 0, 0);
    write_histogram(&h, false);
    const char *all = text();
    ck_assert_ptr_nonnull(strstr(all, "t_bucket{device=\"0\",le=\"0.00001\"} 2\n"));
    ck_assert_ptr_nonnull(strstr(all, "t_bucket{device=\"0\",le=\"0.000025\"} 3\n"));
    ck_assert_ptr_nonnull(strstr(all, "t_bucket{device=\"0\",le=\"1\"} 3\n"));
    ck_assert_ptr_nonnull(strstr(all, "t_bucket{device=\"0\",le=\"300\"} 4\n"));
    ck_assert_ptr_nonnull(strstr(all, "t_bucket{device=\"0\",le=\"+Inf\"} 5\n"));
    ck_assert_ptr_nonnull(strstr(all, "t_sum{device=\"0\"} 600.000020002\n"));
    ck_assert_ptr_nonnull(strstr(all, "t_count{device=\"0\"} 5\n"));
    exposition_finish(&x);
}
END_TEST

START_TEST(bounds_rise)
{
    for (unsigned i = 1; i < HISTOGRAM_BOUNDS; i++) {
        ck_assert_uint_lt(histogram_bounds[i - 1], histogram_bounds[i]);
    }
}
END_TEST

START_TEST(exemplars_have_the_trace_id_of_the_latest_job)
{
    struct histogram h = {.sum_ns = 0};
    histogram_note(&h, 20000, 7, 1000000000);
    histogram_note(&h, 21000, 0xabcdef, UINT64_C(1700000000500000000));
    histogram_note(&h, 22000, 0, 0); /* without a trace id: the one before stays */
    write_histogram(&h, true);
    ck_assert_ptr_nonnull(strstr(text(),
                                 "t_bucket{device=\"0\",le=\"0.000025\"} 3 # "
                                 "{trace_id=\"0000000000abcdef\"} 0.000021 1700000000.5\n"));
    ck_assert_ptr_nonnull(strstr((const char *)x.text.data, "le=\"1.0\"} 3\n"));
    exposition_finish(&x);
    write_histogram(&h, false); /* the older format has none */
    ck_assert_ptr_null(strstr(text(), "trace_id"));
    exposition_finish(&x);
}
END_TEST

SUITE_MAIN("exposition", numbers_keep_all_their_digits, values_of_labels_are_escaped,
           families_of_openmetrics_lack_the_suffix, buckets_add_up, bounds_rise,
           exemplars_have_the_trace_id_of_the_latest_job)
