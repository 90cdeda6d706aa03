#include "common/hash.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/common/suite.h"

START_TEST(borders_between_parts_count)
{
    const struct hash_part a[] = {{"ab", 2}, {"c", 1}};
    const struct hash_part b[] = {{"a", 1}, {"bc", 2}};
    const struct hash_part c[] = {{"ab", 2}, {"c", 1}, {"", 0}};
    ck_assert(hash_equal(hash_parts(a, 2), hash_parts(a, 2)));
    ck_assert(!hash_equal(hash_parts(a, 2), hash_parts(b, 2)));
    ck_assert(!hash_equal(hash_parts(a, 2), hash_parts(c, 3)));
    ck_assert(!hash_equal(hash_parts(a, 2), hash_of("abc", 3)));
}
END_TEST

START_TEST(every_bit_counts)
{
    unsigned char data[300];
    memset(data, 0x5a, sizeof data);
    struct hash whole = hash_of(data, sizeof data);
    for (size_t bit = 0; bit < 8 * sizeof data; bit++) {
        data[bit / 8] ^= (unsigned char)(1u << (bit % 8));
        ck_assert(!hash_equal(hash_of(data, sizeof data), whole));
        data[bit / 8] ^= (unsigned char)(1u << (bit % 8));
    }
    ck_assert(hash_equal(hash_of(data, sizeof data), whole));
    ck_assert(!hash_equal(hash_of(data, sizeof data - 1), whole));
}
END_TEST

START_TEST(a_file_has_that_of_its_bytes)
{
    struct hash h;
    FILE *f = tmpfile();
    ck_assert_ptr_nonnull(f);
    ck_assert(!hash_file(fileno(f), &h)); /* nothing is in it */
    ck_assert_int_ge(fputs("bytes", f), 0);
    ck_assert_int_eq(fflush(f), 0);
    ck_assert(hash_file(fileno(f), &h)); /* wherever it was read to */
    ck_assert(hash_equal(h, hash_of("bytes", 5)));
    ck_assert_int_eq(fclose(f), 0);
    ck_assert(!hash_file(-1, &h));
}
END_TEST

START_TEST(nothing_has_a_hash)
{
    ck_assert(hash_equal(hash_of(NULL, 0), hash_of("", 0)));
    ck_assert(!hash_equal(hash_of(NULL, 0), hash_parts(NULL, 0)));
}
END_TEST

START_TEST(text_is_hexadecimal)
{
    struct hash h = {.byte = {0x00, 0x01, 0xab, [15] = 0xff}};
    char text[HASH_TEXT_BYTES];
    ck_assert_str_eq(hash_text(h, text), "0001ab000000000000000000000000ff");
    ck_assert_ptr_eq(hash_text(h, text), text);
}
END_TEST

SUITE_MAIN("hash", borders_between_parts_count, every_bit_counts, a_file_has_that_of_its_bytes,
           nothing_has_a_hash, text_is_hexadecimal)
