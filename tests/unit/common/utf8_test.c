/* Which bytes are characters of UTF-8, and what the others are replaced by. */
#include <string.h>

#include "common/utf8.h"
#include "tests/unit/common/suite.h"

static size_t size_of(const char *text)
{
    return utf8_size((const uint8_t *)text, strlen(text));
}

START_TEST(characters_have_one_to_four_bytes)
{
    static const struct {
        const char *text;
        size_t size;
    } cases[] = {
        {"a", 1},
        {"\x7f", 1},
        {"\xc2\x80", 2},
        {"\xdf\xbf", 2},
        {"\xe0\xa0\x80", 3},
        {"\xed\x9f\xbf", 3},
        {"\xee\x80\x80", 3},
        {"\xef\xbf\xbf", 3},
        {"\xf0\x90\x80\x80", 4},
        {"\xf4\x8f\xbf\xbf", 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_uint_eq(size_of(cases[i].text), cases[i].size);
        ck_assert(utf8_valid(bytes_str(cases[i].text)));
    }
    ck_assert_uint_eq(utf8_size((const uint8_t *)"", 1), 1); /* NUL is a character */
    ck_assert_uint_eq(utf8_size(NULL, 0), 0);
    ck_assert(utf8_valid((struct bytes){0}));
}
END_TEST

START_TEST(what_is_no_character)
{
    static const char *const none[] = {
        "\x80",
        "\xbf", /* a continuation alone */
        "\xc0\xaf",
        "\xc1\xbf",
        "\xe0\x9f\xbf",
        "\xf0\x8f\xbf\xbf", /* longer than needed */
        "\xed\xa0\x80",
        "\xed\xbf\xbf", /* surrogates */
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xff", /* above U+10FFFF */
        "\xc3",
        "\xe2\x82",
        "\xf0\x9f\x9a", /* cut */
        "\xc3(",
        "\xe2\x82(",
        "\xf0\x9f\x9a(", /* something else follows */
    };
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        char behind[8] = "ab";
        ck_assert_msg(size_of(none[i]) == 0, "case %zu", i);
        ck_assert(!utf8_valid(bytes_str(none[i])));
        (void)strcat(behind, none[i]);
        ck_assert(!utf8_valid(bytes_str(behind)));
    }
    ck_assert_uint_eq(utf8_size((const uint8_t *)"\xe2\x82\xac", 2), 0); /* the view ends before */
}
END_TEST

START_TEST(bad_bytes_are_replaced)
{
    char text[] = "a\xff\xc3\xa4\xed\xa0\x80z\xe2\x82";
    utf8_mend(text, strlen(text));
    ck_assert_str_eq(text, "a?\xc3\xa4???z??");
    ck_assert(utf8_valid(bytes_str(text)));
    utf8_mend(text, 0);
}
END_TEST

SUITE_MAIN("utf8", characters_have_one_to_four_bytes, what_is_no_character, bad_bytes_are_replaced)
