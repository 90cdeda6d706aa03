#include <math.h>

#include "gpuctl/input/half.h"
#include "tests/unit/common/suite.h"

START_TEST(every_half_survives_the_way_there_and_back)
{
    for (unsigned bits = 0; bits < 65536; bits++) {
        double value = half_to_double((uint16_t)bits);
        uint16_t back = half_from_double(value);
        if (isnan(value)) {
            ck_assert((back & 0x7c00) == 0x7c00 && (back & 0x3ff) != 0);
        } else {
            ck_assert_msg(back == bits, "%04x became %04x", bits, back);
        }
    }
}
END_TEST

START_TEST(between_two_halves_the_even_one_wins)
{
    for (unsigned bits = 0; bits < 0x7bff; bits++) {
        double low = half_to_double((uint16_t)bits);
        double high = half_to_double((uint16_t)(bits + 1));
        double middle = (low + high) / 2;
        unsigned even = (bits & 1) == 0 ? bits : bits + 1;
        ck_assert_uint_eq(half_from_double(middle), even);
        ck_assert_uint_eq(half_from_double(nextafter(middle, low)), bits);
        ck_assert_uint_eq(half_from_double(nextafter(middle, high)), bits + 1);
    }
}
END_TEST

START_TEST(too_large_is_infinite)
{
    ck_assert_uint_eq(half_from_double(65519.99), 0x7bff);
    ck_assert_uint_eq(half_from_double(65520), 0x7c00);
    ck_assert_uint_eq(half_from_double(-1e300), 0xfc00);
}
END_TEST

SUITE_MAIN("half", every_half_survives_the_way_there_and_back, between_two_halves_the_even_one_wins,
           too_large_is_infinite)
