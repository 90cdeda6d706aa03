#include "common/bytes.h"

#include <stdint.h>
#include <string.h>

#include "tests/unit/common/suite.h"

START_TEST(views_compare_by_content)
{
    ck_assert(bytes_equal(bytes_of("abc", 3), bytes_str("abc")));
    ck_assert(!bytes_equal(bytes_str("abc"), bytes_str("abd")));
    ck_assert(!bytes_equal(bytes_str("abc"), bytes_str("ab")));
    ck_assert(bytes_equal(bytes_str(NULL), bytes_of("x", 0)));
    ck_assert(bytes_equal_str(bytes_of("", 0), NULL));
    ck_assert(bytes_equal_str(bytes_of("axpy!", 4), "axpy"));
    ck_assert(!bytes_equal_str(bytes_of("axpy\0", 5), "axpy"));
}
END_TEST

START_TEST(a_byte_order_mark_begins_a_text)
{
    ck_assert(bytes_equal_str(bytes_without_bom(bytes_str("\xEF\xBB\xBFint")), "int"));
    ck_assert(bytes_equal_str(bytes_without_bom(bytes_str("\xEF\xBB")), "\xEF\xBB"));
    ck_assert(bytes_equal_str(bytes_without_bom(bytes_str(" \xEF\xBB\xBF")), " \xEF\xBB\xBF"));
    ck_assert_uint_eq(bytes_without_bom(bytes_str(NULL)).size, 0);
}
END_TEST

START_TEST(text_fits_with_its_nul)
{
    char out[4];
    ck_assert(bytes_to_str(bytes_str("abc"), out, sizeof out));
    ck_assert_str_eq(out, "abc");
    ck_assert(!bytes_to_str(bytes_str("abcd"), out, sizeof out));
    ck_assert_str_eq(out, "");
    ck_assert(bytes_to_str(bytes_str(NULL), out, sizeof out));
    ck_assert_str_eq(out, "");
}
END_TEST

START_TEST(text_with_a_nul_is_refused)
{
    char out[8] = "before";
    ck_assert(!bytes_to_str(bytes_of("a\0b", 3), out, sizeof out));
    ck_assert_str_eq(out, "");
}
END_TEST

START_TEST(buffer_keeps_what_was_appended)
{
    struct capbuf b;
    capbuf_init(&b, 1000);
    uint8_t expected[1000];
    for (size_t i = 0; i < sizeof expected; i++) {
        expected[i] = (uint8_t)(i * 7);
        ck_assert(capbuf_append(&b, &expected[i], 1));
        ck_assert_uint_le(b.capacity, b.limit);
    }
    ck_assert(bytes_equal(capbuf_view(&b), bytes_of(expected, sizeof expected)));
    capbuf_finish(&b);
}
END_TEST

START_TEST(buffer_stops_at_its_limit)
{
    struct capbuf b;
    capbuf_init(&b, 100);
    char data[100];
    memset(data, 'x', sizeof data);
    ck_assert(capbuf_append(&b, data, 60));
    ck_assert(!capbuf_append(&b, data, 41));
    ck_assert(b.failed);
    ck_assert_uint_eq(b.size, 60);
    ck_assert_msg(!capbuf_append(&b, data, 1), "a failure is forgotten");
    ck_assert(!capbuf_append(&b, data, 0));
    capbuf_reset(&b);
    ck_assert(capbuf_append(&b, data, 100));
    ck_assert_uint_eq(b.size, 100);
    capbuf_finish(&b);
}
END_TEST

START_TEST(sizes_near_the_end_of_size_t_are_refused)
{
    struct capbuf b;
    capbuf_init(&b, SIZE_MAX);
    ck_assert(capbuf_append(&b, "abc", 3));
    ck_assert_ptr_null(capbuf_extend(&b, SIZE_MAX - 2));
    ck_assert(b.failed);
    ck_assert(bytes_equal_str(capbuf_view(&b), "abc"));
    capbuf_finish(&b);
}
END_TEST

START_TEST(extending_by_nothing_is_no_failure)
{
    struct capbuf b;
    capbuf_init(&b, 16);
    ck_assert_ptr_nonnull(capbuf_extend(&b, 0));
    ck_assert(!b.failed);
    capbuf_finish(&b);
    capbuf_init(&b, 0);
    ck_assert(capbuf_append(&b, NULL, 0));
    ck_assert_ptr_null(capbuf_extend(&b, 1));
    capbuf_finish(&b);
}
END_TEST

START_TEST(printf_appends_without_nul)
{
    struct capbuf b;
    capbuf_init(&b, 64);
    ck_assert(capbuf_printf(&b, "%d-", 12));
    ck_assert(capbuf_printf(&b, "%s", "ab"));
    ck_assert(bytes_equal_str(capbuf_view(&b), "12-ab"));
    capbuf_finish(&b);
}
END_TEST

START_TEST(printf_over_the_limit_leaves_nothing)
{
    struct capbuf b;
    capbuf_init(&b, 8);
    ck_assert(capbuf_printf(&b, "%s", "1234567"));
    ck_assert(!capbuf_printf(&b, "%s", "8"));
    ck_assert(b.failed);
    ck_assert(bytes_equal_str(capbuf_view(&b), "1234567"));
    capbuf_finish(&b);
    capbuf_finish(&b);
}
END_TEST

SUITE_MAIN("bytes", views_compare_by_content, a_byte_order_mark_begins_a_text,
           text_fits_with_its_nul, text_with_a_nul_is_refused, buffer_keeps_what_was_appended,
           buffer_stops_at_its_limit, sizes_near_the_end_of_size_t_are_refused,
           extending_by_nothing_is_no_failure, printf_appends_without_nul,
           printf_over_the_limit_leaves_nothing)
