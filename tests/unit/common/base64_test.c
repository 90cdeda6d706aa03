#include "common/base64.h"

#include <check.h>
#include <string.h>

#include "tests/unit/common/suite.h"

/* The test vectors of RFC 4648, both ways. */
START_TEST(vectors)
{
    static const struct {
        const char *bytes, *text;
    } v[] = {{"", ""},
             {"f", "Zg=="},
             {"fo", "Zm8="},
             {"foo", "Zm9v"},
             {"foob", "Zm9vYg=="},
             {"fooba", "Zm9vYmE="},
             {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) {
        char text[BASE64_BYTES(6)];
        size_t bytes = 99;
        base64_encode(bytes_str(v[i].bytes), text);
        ck_assert_str_eq(text, v[i].text);
        ck_assert(base64_decode(text, strlen(text), &bytes));
        ck_assert_uint_eq(bytes, strlen(v[i].bytes));
        ck_assert_int_eq(memcmp(text, v[i].bytes, bytes), 0);
    }
}
END_TEST

START_TEST(all_bytes_come_back)
{
    uint8_t data[259];
    char text[BASE64_BYTES(sizeof data)];
    size_t bytes = 0;
    for (size_t size = 0; size <= sizeof data; size++) {
        for (size_t i = 0; i < size; i++) {
            data[i] = (uint8_t)(i * 37 + size);
        }
        memset(text, 'x', sizeof text);
        base64_encode(bytes_of(data, size), text);
        ck_assert_uint_eq(strlen(text) + 1, BASE64_BYTES(size));
        ck_assert(base64_decode(text, strlen(text), &bytes));
        ck_assert_uint_eq(bytes, size);
        ck_assert_int_eq(memcmp(text, data, size), 0);
    }
}
END_TEST

START_TEST(other_texts_are_refused)
{
    static const char *const bad[] = {
        "Z", "Zg", "Zg=", "=", "====", "Z===", "Zg=v", "Zm9-", "Zm9_", "Zm 9", "\x80g==", "Zm9v\n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[8];
        size_t bytes = 99;
        (void)strcpy(text, bad[i]);
        ck_assert_msg(!base64_decode(text, strlen(text), &bytes), "%s", bad[i]);
        ck_assert_uint_eq(bytes, 99);
    }
}
END_TEST

SUITE_MAIN("base64", vectors, all_bytes_come_back, other_texts_are_refused)
