#include <string.h>

#include "common/token.h"
#include "tests/unit/common/suite.h"

#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" /* of FIPS 180-2 */

START_TEST(hashes_are_sha256)
{
    struct token_hash hash;
    struct token_hash read;
    struct err e = ERR_INIT;
    char line[TOKEN_LINE_BYTES];
    ck_assert_int_eq(token_hash_of(bytes_str("abc"), &hash, &e), 0);
    token_line(&hash, line);
    ck_assert_str_eq(line, "sha256:" ABC);
    ck_assert_int_eq(token_line_read(line, &read, &e), 0);
    ck_assert(token_hash_equal(&hash, &read));
    ck_assert_int_eq(token_line_read("sha256:" ABC " of somebody", &read, &e), 0);
    ck_assert_int_eq(token_line_read("sha256:" ABC "\tx", &read, &e), 0);
    for (unsigned i = 0; i < TOKEN_HASH_BYTES; i++) {
        read = hash;
        read.byte[i] ^= 1;
        ck_assert(!token_hash_equal(&hash, &read));
    }
}
END_TEST

START_TEST(other_lines_are_refused)
{
    static const char *const bad[] = {
        "", "abc", "sha256:", "sha256:12", "sha256:" ABC "0", "md5:" ABC, ABC, "sha256:g" ABC};
    struct token_hash hash;
    struct err e = ERR_INIT;
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(token_line_read(bad[i], &hash, &e) == ERR_INVALID, "%s", bad[i]);
    }
}
END_TEST

START_TEST(tokens_are_random_digits)
{
    char one[TOKEN_TEXT_BYTES];
    char two[TOKEN_TEXT_BYTES];
    struct err e = ERR_INIT;
    ck_assert_int_eq(token_make(one, &e), 0);
    ck_assert_int_eq(token_make(two, &e), 0);
    ck_assert_uint_eq(strlen(one), TOKEN_TEXT_BYTES - 1);
    ck_assert_uint_eq(strspn(one, "0123456789abcdef"), TOKEN_TEXT_BYTES - 1);
    ck_assert_str_ne(one, two);
}
END_TEST

SUITE_MAIN("token", hashes_are_sha256, other_lines_are_refused, tokens_are_random_digits)
