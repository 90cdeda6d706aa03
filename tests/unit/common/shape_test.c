#include "common/shape.h"

#include <string.h>

#include "tests/unit/common/suite.h"

START_TEST(types_have_names_and_sizes)
{
    int seen = 0;
#define X(name, value, bytes)                                                                      \
    ck_assert_uint_eq(dtype_size(value), bytes);                                                   \
    ck_assert_int_eq(dtype_from_name(dtype_name(value)), value);                                   \
    seen++;
    DTYPES(X)
#undef X
    ck_assert_int_eq(seen, 11);
    ck_assert_str_eq(dtype_name(DTYPE_F32), "f32");
    ck_assert_uint_eq(dtype_size(DTYPE_NONE), 0);
    ck_assert_uint_eq(dtype_size(-1), 0);
    ck_assert_uint_eq(dtype_size(seen + 1), 0);
    ck_assert_str_eq(dtype_name(200), "none");
    ck_assert_int_eq(dtype_from_name("none"), DTYPE_NONE);
    ck_assert_int_eq(dtype_from_name("F32"), DTYPE_NONE);
    ck_assert_int_eq(dtype_from_name(""), DTYPE_NONE);
    ck_assert(dtype_is_float(DTYPE_F16) && !dtype_is_float(DTYPE_I32));
    ck_assert(dtype_is_signed(DTYPE_I8) && dtype_is_signed(DTYPE_F64) &&
              !dtype_is_signed(DTYPE_U64));
}
END_TEST

static int make(int dtype, unsigned ndim, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                struct shape *ret)
{
    const uint64_t dims[SHAPE_MAX_DIMS] = {a, b, c, d};
    return shape_make(dtype, ndim, dims, ret, NULL);
}

START_TEST(counts_and_bytes)
{
    struct shape s;
    ck_assert_int_eq(make(DTYPE_F64, 3, 2, 3, 5, 0, &s), 0);
    ck_assert_uint_eq(shape_count(&s), 30);
    ck_assert_uint_eq(shape_bytes(&s), 240);
    ck_assert_int_eq(make(DTYPE_F32, 1, 0, 0, 0, 0, &s), 0);
    ck_assert_uint_eq(shape_bytes(&s), 0);
    ck_assert_int_eq(make(DTYPE_U8, 4, 7, 1, 0, 9, &s), 0);
    ck_assert_uint_eq(shape_count(&s), 0);
}
END_TEST

START_TEST(what_is_no_shape_is_refused)
{
    struct shape s = {.dtype = 99};
    ck_assert_int_eq(make(0, 1, 1, 0, 0, 0, &s), ERR_ARG_TYPE);
    ck_assert_int_eq(make(12, 1, 1, 0, 0, 0, &s), ERR_ARG_TYPE);
    ck_assert_int_eq(make(-1, 1, 1, 0, 0, 0, &s), ERR_ARG_TYPE);
    ck_assert_int_eq(make(DTYPE_F32, 0, 1, 0, 0, 0, &s), ERR_ARG_SHAPE);
    ck_assert_int_eq(make(DTYPE_F32, 5, 1, 1, 1, 1, &s), ERR_ARG_SHAPE);
    ck_assert_uint_eq(s.dtype, 99);
}
END_TEST

START_TEST(no_product_overflows)
{
    struct shape s = {.dtype = 99};
    const uint64_t half = UINT64_C(1) << 32;
    ck_assert_int_eq(make(DTYPE_U8, 1, UINT64_C(1) << 63, 0, 0, 0, &s), ERR_ARG_SHAPE);
    ck_assert_int_eq(make(DTYPE_U8, 1, UINT64_MAX, 0, 0, 0, &s), ERR_ARG_SHAPE);
    ck_assert_int_eq(make(DTYPE_U8, 2, half, half, 0, 0, &s), ERR_ARG_SHAPE);
    ck_assert_int_eq(make(DTYPE_F32, 1, UINT64_C(1) << 61, 0, 0, 0, &s), ERR_ARG_SHAPE);
    ck_assert_msg(make(DTYPE_U8, 4, half, half, half, 0, &s) == ERR_ARG_SHAPE,
                  "a dimension of 0 hides an overflow of the others");
    ck_assert_int_eq(make(DTYPE_U8, 4, 0, half, half, 1, &s), ERR_ARG_SHAPE);
    ck_assert_uint_eq(s.dtype, 99);
    ck_assert_int_eq(make(DTYPE_U8, 1, INT64_MAX, 0, 0, 0, &s), 0);
    ck_assert_uint_eq(shape_bytes(&s), (uint64_t)INT64_MAX);
    ck_assert_int_eq(make(DTYPE_F64, 1, (uint64_t)INT64_MAX / 8, 0, 0, 0, &s), 0);
    ck_assert_uint_le(shape_bytes(&s), (uint64_t)INT64_MAX);
}
END_TEST

START_TEST(equal_means_type_and_every_dimension)
{
    struct shape a;
    struct shape b;
    ck_assert_int_eq(make(DTYPE_F32, 2, 3, 4, 0, 0, &a), 0);
    ck_assert_int_eq(make(DTYPE_F32, 2, 3, 4, 9, 9, &b), 0);
    ck_assert(shape_equal(&a, &b));
    ck_assert_int_eq(make(DTYPE_F32, 2, 4, 3, 0, 0, &b), 0);
    ck_assert(!shape_equal(&a, &b));
    ck_assert_int_eq(make(DTYPE_I32, 2, 3, 4, 0, 0, &b), 0);
    ck_assert(!shape_equal(&a, &b));
    ck_assert_int_eq(make(DTYPE_F32, 3, 3, 4, 1, 0, &b), 0);
    ck_assert(!shape_equal(&a, &b));
}
END_TEST

START_TEST(text_is_terminated_at_every_size)
{
    struct shape s;
    ck_assert_int_eq(make(DTYPE_F32, 4, 1024, 16, 1, 3, &s), 0);
    char out[64];
    ck_assert_str_eq(shape_text(&s, out, sizeof out), "f32 1024x16x1x3");
    for (unsigned size = 1; size < 20; size++) {
        memset(out, '#', sizeof out);
        ck_assert_uint_lt(strlen(shape_text(&s, out, size)), size);
        ck_assert_int_eq(out[size], '#');
    }
}
END_TEST

START_TEST(access_has_names)
{
    ck_assert_str_eq(access_name(ACCESS_IN), "in");
    ck_assert_str_eq(access_name(ACCESS_OUT), "out");
    ck_assert_str_eq(access_name(ACCESS_INOUT), "inout");
    ck_assert_str_eq(access_name(ACCESS_NONE), "none");
    ck_assert_str_eq(access_name(-1), "none");
    ck_assert_str_eq(access_name(4), "none");
}
END_TEST

SUITE_MAIN("shape", types_have_names_and_sizes, counts_and_bytes, what_is_no_shape_is_refused,
           no_product_overflows, equal_means_type_and_every_dimension,
           text_is_terminated_at_every_size, access_has_names)
