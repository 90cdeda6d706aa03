#include "common/err.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/common/suite.h"

START_TEST(chain_grows_in_front)
{
    struct err e = ERR_INIT;
    int rc = err_set(&e, ERR_ARG_SHAPE, "%d bytes, kernel needs %d", 4096, 8192);
    ck_assert_int_eq(rc, ERR_ARG_SHAPE);
    ck_assert_int_eq(err_wrap(&e, "argument %s", "y"), ERR_ARG_SHAPE);
    ck_assert_int_eq(err_wrap(&e, "launch axpy, step 2"), ERR_ARG_SHAPE);
    ck_assert_str_eq(e.text, "launch axpy, step 2: argument y: 4096 bytes, kernel needs 8192");
    ck_assert_int_eq(e.code, ERR_ARG_SHAPE);
}
END_TEST

START_TEST(set_starts_afresh)
{
    struct err e = {.code = 1, .vendor = 7, .step = 3, .arg = 4, .effects = 2, .retry_after_ns = 9};
    ck_assert_int_eq(err_set(&e, ERR_BUSY, "full"), ERR_BUSY);
    ck_assert_int_eq(e.vendor, 0);
    ck_assert_int_eq(e.step, -1);
    ck_assert_int_eq(e.arg, -1);
    ck_assert_int_eq(e.effects, ERR_EFFECTS_NONE);
    ck_assert_uint_eq(e.retry_after_ns, 0);
}
END_TEST

START_TEST(wrap_keeps_the_rest)
{
    struct err e = ERR_INIT;
    ck_assert_int_eq(err_set_vendor(&e, ERR_LAUNCH, -54, "refused"), ERR_LAUNCH);
    e.step = 2;
    ck_assert_int_eq(err_wrap(&e, "job"), ERR_LAUNCH);
    ck_assert_int_eq(e.vendor, -54);
    ck_assert_int_eq(e.step, 2);
}
END_TEST

START_TEST(nobody_may_listen)
{
    ck_assert_int_eq(err_set(NULL, ERR_IO, "x"), ERR_IO);
    ck_assert_int_eq(err_set_vendor(NULL, ERR_IO, 1, "x"), ERR_IO);
    ck_assert_int_eq(err_errno(NULL, ERR_IO, "x"), ERR_IO);
    ck_assert_int_eq(err_wrap(NULL, "x"), ERR_INTERNAL);
}
END_TEST

START_TEST(long_texts_are_cut_and_terminated)
{
    char big[2 * ERR_TEXT_MAX];
    memset(big, 'a', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    struct err e = ERR_INIT;
    (void)err_set(&e, ERR_IO, "%s", big);
    ck_assert_uint_eq(strlen(e.text), ERR_TEXT_MAX - 1);
    (void)err_wrap(&e, "short");
    ck_assert_uint_eq(strlen(e.text), ERR_TEXT_MAX - 1);
    ck_assert_int_eq(strncmp(e.text, "short: aaa", 10), 0);
    memset(big, 'b', sizeof big - 1);
    ck_assert_int_eq(err_wrap(&e, "%s", big), ERR_IO);
    ck_assert_uint_eq(strlen(e.text), ERR_TEXT_MAX - 1);
    errno = ENOENT;
    ck_assert_int_eq(err_errno(&e, ERR_IO, "%s", big), ERR_IO);
    ck_assert_uint_eq(strlen(e.text), ERR_TEXT_MAX - 1);
}
END_TEST

START_TEST(errno_is_told_and_kept)
{
    struct err e = ERR_INIT;
    errno = ENOENT;
    ck_assert_int_eq(err_errno(&e, ERR_IO, "opening %s", "/x"), ERR_IO);
    ck_assert_str_eq(e.text, "opening /x: No such file or directory");
    ck_assert_int_eq(e.vendor, ENOENT);
}
END_TEST

START_TEST(every_code_has_a_name_and_a_way_back)
{
    int codes = 0;
#define ERR(name, value, retriable, text)                                                          \
    ck_assert_str_eq(err_name(value), #name);                                                      \
    ck_assert_int_eq(err_from_name(#name), value);                                                 \
    ck_assert_str_eq(err_text(value), text);                                                       \
    ck_assert_int_eq(err_retriable(value), (retriable) != 0);                                      \
    ck_assert_int_lt(value, 0);                                                                    \
    codes++;
#include "common/errors.def"
#undef ERR
    ck_assert_int_gt(codes, 0);
    for (int code = -codes; code < 0; code++) {
        ck_assert_str_ne(err_name(code), "UNKNOWN");
    }
    ck_assert_str_eq(err_name(-codes - 1), "UNKNOWN");
    ck_assert_str_eq(err_name(0), "OK");
    ck_assert_int_eq(err_from_name("NO_SUCH_NAME"), 0);
    ck_assert(!err_retriable(12345));
}
END_TEST

SUITE_MAIN("err", chain_grows_in_front, set_starts_afresh, wrap_keeps_the_rest, nobody_may_listen,
           long_texts_are_cut_and_terminated, errno_is_told_and_kept,
           every_code_has_a_name_and_a_way_back)
