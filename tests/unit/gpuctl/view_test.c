/* The parts of `gpuctl top` that need no terminal: bars, and the order of rows. */
#include <string.h>

#include "gpuctl/sheet/sheet_fit.h"
#include "gpuctl/top/spark.h"
#include "gpuctl/top/view.h"
#include "tests/unit/common/suite.h"

static const struct sheet_column columns[] = {{"job", GPUD_COLUMN_UINT, false},
                                              {"waits_for", GPUD_COLUMN_TEXT, false},
                                              {"size", GPUD_COLUMN_BYTES, false},
                                              {"delta", GPUD_COLUMN_INT, false},
                                              {"power", GPUD_COLUMN_UINT, true}};
#define WIDTH 5u

static struct sheet_cell cells[4 * WIDTH];
static struct sheet sheet;
static struct view view;

static void row(unsigned at, uint64_t job, const char *text, uint64_t size, int64_t delta)
{
    struct sheet_cell *c = &cells[at * WIDTH];
    c[0] = (struct sheet_cell){.value = job};
    c[1] = (struct sheet_cell){.text = text};
    c[2] = size == 0 ? (struct sheet_cell){.text = "-"} : (struct sheet_cell){.value = size};
    c[3] = (struct sheet_cell){.value = (uint64_t)delta};
    c[4] = (struct sheet_cell){.value = 300};
}

static void setup(void)
{
    row(0, 9, "its turn", 1024, 1);
    row(1, 8, "", 0, -5);
    row(2, 7, "Memory", 4096, 0);
    row(3, 6, "a\x1b[2J", 1024, 3);
    sheet = (struct sheet){
        .name = "jobs", .columns = columns, .column_count = WIDTH, .cells = cells, .row_count = 4};
    view = (struct view){.table = "jobs", .sort = VIEW_DAEMON};
    ck_assert(view_take(&view, &sheet));
}

static void teardown(void)
{
    view_finish(&view);
}

/* The jobs in the order in which they are shown, as digits. */
static void expect(const char *want)
{
    char got[8] = "";
    char text[64];
    for (uint32_t i = 0; i < view.count; i++) {
        strcat(got, view_text(&view, i, 0, text, sizeof text));
    }
    ck_assert_str_eq(got, want);
}

START_TEST(rows_sort_by_each_column)
{
    expect("9876");
    view_sort(&view, 1); /* numbers begin with the largest */
    expect("9876");
    view_reverse(&view);
    expect("6789");
    view_sort(&view, 1);
    expect("8769"); /* texts by the alphabet: "", "Memory", "a…", "its turn" */
    view_sort(&view, 1);
    expect("7968"); /* equal ones as the daemon has them, the unknown one behind */
    view_reverse(&view);
    expect("8967");
    view_sort(&view, 1);
    expect("6978"); /* signed */
    view_sort(&view, 1);
    ck_assert_uint_eq(view.sort, VIEW_DAEMON);
    expect("9876");
    view_sort(&view, -1);
    expect("6978");
}
END_TEST

START_TEST(rows_are_filtered)
{
    view_filter(&view, "MEM");
    expect("7");
    view_filter(&view, "1.00 KiB"); /* as shown */
    expect("96");
    view_filter(&view, "300"); /* a column that is not shown */
    expect("");
    ck_assert_ptr_null(view_selected(&view, "job"));
    view_move(&view, 1);
    view_filter(&view, "");
    expect("9876");
}
END_TEST

/* New jobs come in above the selected one. */
START_TEST(the_selection_follows_its_row)
{
    view_move(&view, 2);
    ck_assert_uint_eq(view_selected(&view, "job")->value, 7);
    row(0, 12, "", 1, 1);
    row(1, 11, "", 1, 1);
    row(2, 9, "", 1, 1);
    row(3, 7, "", 1, 1);
    ck_assert(view_take(&view, &sheet));
    ck_assert_uint_eq(view_selected(&view, "job")->value, 7);
    ck_assert_uint_eq(view.at, 3);
    row(3, 5, "", 1, 1); /* it has gone: its place remains */
    sheet.row_count = 3;
    ck_assert(view_take(&view, &sheet));
    ck_assert_uint_eq(view_selected(&view, "job")->value, 9);
    view_move(&view, -100);
    ck_assert_uint_eq(view_selected(&view, "job")->value, 12);
    view_move(&view, INT32_MAX);
    ck_assert_uint_eq(view_selected(&view, "job")->value, 9);
    sheet.row_count = 0;
    ck_assert(view_take(&view, &sheet));
    ck_assert_ptr_null(view_selected(&view, "job"));
    view_move(&view, 1);
    view_scroll(&view, 0);
    ck_assert_uint_eq(view.top, 0);
}
END_TEST

START_TEST(the_selection_is_on_the_screen)
{
    view_move(&view, 3);
    view_scroll(&view, 2);
    ck_assert_uint_eq(view.top, 2);
    view_move(&view, -2);
    view_scroll(&view, 2);
    ck_assert_uint_eq(view.top, 1);
    view_scroll(&view, 3); /* a larger screen is filled */
    ck_assert_uint_eq(view.top, 1);
    view_scroll(&view, 10);
    ck_assert_uint_eq(view.top, 0);
}
END_TEST

START_TEST(columns_are_chosen)
{
    static const char *const also[] = {"power", NULL};
    char text[64];
    ck_assert_uint_eq(view.column_count, 4);
    ck_assert_str_eq(view_head(&view, 1, text, sizeof text), "WAITS FOR");
    ck_assert_str_eq(view_text(&view, 1, 1, text, sizeof text), "-");
    ck_assert_str_eq(view_text(&view, 3, 1, text, sizeof text),
                     "a [2J"); /* no control characters */
    view.also = also;
    ck_assert(view_take(&view, &sheet));
    ck_assert_uint_eq(view.column_count, 5);
    ck_assert_str_eq(view_text(&view, 0, 4, text, sizeof text), "300");
}
END_TEST

START_TEST(bars_show_the_last_values)
{
    struct spark s = {.count = 0};
    char text[SPARK_BYTES];
    ck_assert_str_eq(spark_text(&s, 1, 4, false, text), "    ");
    spark_add(&s, 0);
    spark_add(&s, 0.001);
    spark_add(&s, 0.5);
    spark_add(&s, 1);
    spark_add(&s, 7);
    ck_assert_str_eq(spark_text(&s, 1, 7, false, text), "   .=@@");
    ck_assert_str_eq(spark_text(&s, 1, 4, true, text), "▁▄██");
    ck_assert(spark_most(&s) == 7);
    ck_assert_str_eq(spark_text(&s, 0, 2, false, text), "  "); /* nothing is known of its scale */
    for (unsigned i = 0; i < 3 * SPARK_VALUES; i++) {
        spark_add(&s, i % 2);
    }
    ck_assert(spark_most(&s) == 1);
    ck_assert_uint_eq(strlen(spark_text(&s, 1, 1000, true, text)), SPARK_VALUES * 2u);
    ck_assert_str_eq(spark_text(&s, 1, 4, false, text), " @ @");
}
END_TEST

START_TEST(texts_are_cut_between_characters)
{
    ck_assert_uint_eq(fit_cut("abc", 2), 2);
    ck_assert_uint_eq(fit_cut("abc", 3), 3);
    ck_assert_uint_eq(fit_cut("abc", 9), 3);
    ck_assert_uint_eq(fit_cut("abc", 0), 0);
}
END_TEST

SUITE_MAIN_IN("view", setup, teardown, rows_sort_by_each_column, rows_are_filtered,
              the_selection_follows_its_row, the_selection_is_on_the_screen, columns_are_chosen,
              bars_show_the_last_values, texts_are_cut_between_characters)
