/* Check's assertions for a target that is no test of Check's: what fails ends the process. */
#ifndef FUZZ_PLAIN_CHECK_H
#define FUZZ_PLAIN_CHECK_H

#include <stdlib.h>

#define ck_assert(x)             ((x) ? (void)0 : abort())
#define ck_assert_ptr_nonnull(x) ck_assert((x) != NULL)
#define ck_assert_ptr_null(x)    ck_assert((x) == NULL)
#define ck_assert_int_eq(a, b)   ck_assert((a) == (b))
#define ck_assert_int_ge(a, b)   ck_assert((a) >= (b))
#define ck_assert_uint_eq(a, b)  ck_assert((a) == (b))
#define ck_assert_uint_ne(a, b)  ck_assert((a) != (b))
#define ck_assert_uint_lt(a, b)  ck_assert((a) < (b))

#endif
