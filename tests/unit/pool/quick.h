/*
 * For random tests of many steps. Include after check.h. Check writes down each assertion that
 * holds, at the cost of a system call; here it writes only those that fail.
 */
#ifndef TESTS_UNIT_POOL_QUICK_H
#define TESTS_UNIT_POOL_QUICK_H

#include <stdint.h>
#include <stdlib.h>

#undef ck_assert_msg
#define ck_assert_msg(expr, ...)                                                                   \
    ((expr)                                                                                        \
         ? (void)0                                                                                 \
         : _ck_assert_failed(__FILE__, __LINE__, "Assertion '" #expr "' failed", ##__VA_ARGS__))

/* A number from the environment. scripts/nightly.sh sets
 * GPUD_POOL_STEPS: steps of one run; GPUD_POOL_SEED: added to the seed of each run. */
static inline uint64_t quick_setting(const char *name, uint64_t usual)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : usual;
}

#endif
