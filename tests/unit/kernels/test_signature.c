#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/signature.h"

static void parse(const char *text, struct signature *ret_sig)
{
    struct err e = ERR_INIT;
    ck_assert_msg(signature_parse(bytes_str(text), ret_sig, &e) == 0, "%s: %s", text, e.text);
}

START_TEST(test_axpy)
{
    struct signature s;
    parse("//@kernel axpy<T: f32 f64>(T a, in T x[n], inout T y[n])  over n\n", &s);
    ck_assert_str_eq(s.name, "axpy");
    ck_assert_str_eq(s.text, "axpy<T: f32 f64>(T a, in T x[n], inout T y[n])  over n");
    ck_assert_uint_eq(s.type_count, 2);
    ck_assert_int_eq(s.type[1], DTYPE_F64);
    ck_assert_uint_eq(s.arg_count, 3);
    ck_assert_int_eq(s.arg[0].kind, SIG_SCALAR);
    ck_assert_int_eq(s.arg[0].dtype, DTYPE_NONE);
    ck_assert_int_eq(s.arg[1].access, ACCESS_IN);
    ck_assert_int_eq(s.arg[2].access, ACCESS_INOUT);
    ck_assert_str_eq(s.arg[2].name, "y");
    ck_assert_uint_eq(s.dim_count, 1);
    ck_assert_str_eq(s.dim[0], "n");
    ck_assert_uint_eq(s.over_count, 1);
    ck_assert_int_eq(s.over[0].dim, 0);
    ck_assert_uint_eq(s.per_item, 1);
    ck_assert(s.guarded);
}
END_TEST

START_TEST(test_everything)
{
    struct signature s;
    parse("k<T:f32,f64>(in u8 a[h, w, 3], in T b[h*2+1,w - 4], out T c[7]) local T t[16], u32 u[2] "
          "over h, w*2 group 4, 8 per 2",
          &s);
    ck_assert_uint_eq(s.arg[0].ndim, 3);
    ck_assert_int_eq(s.arg[0].extent[2].dim, -1);
    ck_assert_int_eq(s.arg[0].extent[2].add, 3);
    ck_assert_uint_eq(s.arg[1].extent[0].mul, 2);
    ck_assert_int_eq(s.arg[1].extent[0].add, 1);
    ck_assert_int_eq(s.arg[1].extent[1].add, -4);
    ck_assert_uint_eq(s.over_count, 2);
    ck_assert_uint_eq(s.over[1].mul, 2);
    ck_assert_uint_eq(s.group[0], 4);
    ck_assert_uint_eq(s.group[1], 8);
    ck_assert_uint_eq(s.per_item, 2);
    ck_assert_uint_eq(s.local_count, 2);
    ck_assert_uint_eq(s.local[0].count, 16);
    ck_assert_int_eq(s.local[1].dtype, DTYPE_U32);
    ck_assert(!s.guarded);
}
END_TEST

START_TEST(test_groups)
{
    struct signature s;
    parse("sum(in f32 x[n], out f32 part[groups*2]) over n group 256", &s);
    ck_assert_int_eq(s.arg[1].extent[0].dim, SIG_GROUPS);
    ck_assert_uint_eq(s.arg[1].extent[0].mul, 2);
    parse("none()", &s);
    ck_assert_uint_eq(s.arg_count, 0);
    ck_assert_uint_eq(s.over_count, 0);
}
END_TEST

START_TEST(test_alias_and_where)
{
    struct signature s;
    parse("k(in f32 x[n], out f32 y[n]) over n", &s);
    ck_assert_int_eq(s.alias, SIG_ALIAS_NONE); /* the strictest unless it says more */
    parse("k(in f32 x[n], out f32 y[n]) alias none over n", &s);
    ck_assert_int_eq(s.alias, SIG_ALIAS_NONE);
    parse("k(in f32 x[n], out f32 y[n]) over n alias same", &s);
    ck_assert_int_eq(s.alias, SIG_ALIAS_SAME);
    parse("k<T: f32>(T a, T b, f64 c, f64 d, in T x[n]) alias any where a <= b, c<=d over n", &s);
    ck_assert_int_eq(s.alias, SIG_ALIAS_ANY);
    ck_assert_uint_eq(s.order_count, 2);
    ck_assert_uint_eq(s.order[0].low, 0);
    ck_assert_uint_eq(s.order[0].high, 1);
    ck_assert_uint_eq(s.order[1].low, 2);
    ck_assert_uint_eq(s.order[1].high, 3);
}
END_TEST

struct bad {
    const char *text, *error;
};

static const struct bad bads[] = {
    {"", "column 1: expected the kernel's name, not the end of the line"},
    {"//@kernel ", "column 10: expected the kernel's name, not the end of the line"},
    {"k", "column 2: expected '(', not the end of the line"},
    {"k(", "column 3: expected a type, not the end of the line"},
    {"k(in f32 x[n]", "column 14: expected ')', not the end of the line"},
    {"k(in f32 x[])", "column 12: expected a size, not ']'"},
    {"k(in f32 x)", "column 3: x is declared in but is no array: write x[n]"},
    {"k(f32 x[n])", "column 3: array x needs in, out or inout"},
    {"k(in f99 x[n])", "column 6: unknown type 'f99'"},
    {"k(in f16 x[n])", "column 6: unknown type 'f16'"},
    {"k(in T x[n])", "column 6: T is used but no family <T: …> is given"},
    {"k<T:>(T a)", "column 6: the family has no types"},
    {"k<T: T>(T a)", "column 6: T cannot be a member of its own family"},
    {"k<T: f32 f32>(T a)", "column 10: type f32 is given twice"},
    {"k<U: f32>(U a)", "column 3: expected 'T', not 'U'"},
    {"k(in f32 for[n])", "column 10: 'for' is a word of the language"},
    {"k(in f32 x[n], in f32 x[n])", "column 28: name x is used twice"},
    {"k(in f32 x[x])", "column 15: name x is used twice"},
    {"k(in f32 i[n]) over n", "column 10: 'i' is a word of the language"},
    {"k(in f32 k[n])", "column 15: 'k' is an index of this kernel"},
    {"k(in f32 x[n]) over m", "column 22: size m is in no argument's shape"},
    {"k(in f32 x[n]) over groups", "column 21: groups follow from over, not over from groups"},
    {"k(in f32 x[groups], in f32 y[n]) over n", "column 40: groups as a size needs group"},
    {"k(in f32 x[groups])", "column 20: groups as a size needs over with one extent"},
    {"k(in f32 x[n]) over n group 0", "column 29: number must be 1 to 1024"},
    {"k(in f32 x[n]) over n group 2000", "column 29: number must be 1 to 1024"},
    {"k(in f32 x[h,w]) over h, w group 64, 64", "column 38: a group has at most 1024 work items"},
    {"k(in f32 x[h,w]) over h, w group 64", "column 36: over has 2 extents, group has 1"},
    {"k(in f32 x[n]) over n over n", "column 23: given twice"},
    {"k(in f32 x[n]) over n local f32 t[99999]", "column 35: number must be 1 to 49152"},
    {"k(in f32 x[n]) over n local f32 t[13000]",
     "column 29: local arrays take more than 49152 bytes"},
    {"k<T: f32 f64>(in T x[n]) over n local T t[8000]",
     "column 48: local arrays take more than 49152 bytes for f64"},
    {"k(in f32 x[n]) with n",
     "column 16: expected over, group, per, local, alias or where, not 'w'"},
    {"k(in f32 x[n]) over n per 0", "column 27: number must be 1 to 65536"},
    {"k(in f32 x[n]) per 2", "column 21: per needs over"},
    {"k(in f32 x[12z])", "column 14: not a decimal number"},
    {"k(in f32 x[99999999999999999999999])", "column 12: number must be 0 to 1099511627776"},
    {"k(in f32 x[a,b,c,d,e])", "column 20: more than 4 dimensions"},
    {"k(in f32 x[n]) alias", "column 21: expected none, same or any, not the end of the line"},
    {"k(in f32 x[n]) alias some", "column 22: expected none, same or any, not 's'"},
    {"k(in f32 x[n]) alias same alias any", "column 27: given twice"},
    {"k(f32 a, f32 b) where a < b", "column 27: expected '=', not 'b'"},
    {"k(f32 a, f32 b) where a <= c", "column 28: c is no scalar argument"},
    {"k(f32 a, in f32 x[n]) where a <= x", "column 34: x is no scalar argument"},
    {"k(f32 a, f64 b) where a <= b", "column 23: a and b are of two types"},
    {"k(f32 a) where a<=a,a<=a,a<=a,a<=a,a<=a", "column 36: where has more than 4 conditions"},
    {"k(in f32 x[n]) \x01",
     "column 16: expected over, group, per, local, alias or where, not byte 0x01"},
};

START_TEST(test_bad)
{
    struct signature s;
    struct err e = ERR_INIT;
    memset(&s, 0x5a, sizeof(s));
    ck_assert_int_eq(signature_parse(bytes_str(bads[_i].text), &s, &e), ERR_COMPILE);
    ck_assert_str_eq(e.text, bads[_i].error);
    ck_assert_uint_eq(s.dim_count, 0x5a5a5a5a); /* untouched */
}
END_TEST

START_TEST(test_limits)
{
    struct signature s;
    char text[2048];
    size_t used = 0;
    used += (size_t)snprintf(text, sizeof(text), "k(f32 a0");
    for (int a = 1; a < SIG_ARGS; a++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, ",f32 a%d", a);
    }
    snprintf(text + used, sizeof(text) - used, ")");
    parse(text, &s);
    ck_assert_uint_eq(s.arg_count, SIG_ARGS);
    snprintf(text + used, sizeof(text) - used, ",f32 z)");
    ck_assert_int_eq(signature_parse(bytes_str(text), &s, NULL), ERR_COMPILE);

    parse("k(in u8 x[a,b,c,d], in u8 y[e,f,g,h])", &s);
    ck_assert_uint_eq(s.dim_count, SIG_DIMS);
    ck_assert_int_eq(
        signature_parse(bytes_str("k(in u8 x[a,b,c,d], in u8 y[e,f,g,h], in u8 z[l])"), &s, NULL),
        ERR_COMPILE);

    memset(text, 'x', sizeof(text) - 1);
    memcpy(text + SIG_NAME - 1, "()", 3);
    parse(text, &s);
    memset(text, 'x', sizeof(text) - 1);
    memcpy(text + SIG_NAME, "()", 3);
    ck_assert_int_eq(signature_parse(bytes_str(text), &s, NULL), ERR_COMPILE);

    memset(text, ' ', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    memcpy(text, "k()", 3);
    memcpy(text + 600, "over", 4);
    ck_assert_int_eq(signature_parse(bytes_str(text), &s, NULL), ERR_COMPILE);
}
END_TEST

/* Pieces of signatures and bytes in any order: it may refuse, but stays within bounds. */
START_TEST(test_random)
{
    static const char *const pieces[] = {
        "k",          "<T: ",
        "f32",        " ",
        ">",          "(",
        "in ",        "out ",
        "T",          "x",
        "[",          "n",
        "]",          ",",
        ")",          "over ",
        "group ",     "per ",
        "local ",     "256",
        "*",          "+",
        "-",          "groups",
        "//@kernel ", "99999999999999999999",
        "\xff",       "\n",
        "alias ",     "same",
        "where ",     "<=",
    };
    const unsigned count = sizeof(pieces) / sizeof(pieces[0]);
    struct signature s;
    unsigned accepted = 0;
    srandom(7);
    for (unsigned round = 0; round < 100000; round++) {
        char text[700] = "k(in f32 x[n]";
        size_t used = random() % 2 == 0 ? strlen(text) : 0;
        for (long p = random() % 40; p > 0; p--) {
            const char *piece = pieces[(unsigned long)random() % count];
            memcpy(text + used, piece, strlen(piece));
            used += strlen(piece);
        }
        for (long b = random() % 3; b > 0 && used > 0; b--) {
            text[(unsigned long)random() % used] = (char)random();
        }
        /* an exact copy lets the address sanitizer see a byte read too much */
        char *exact = malloc(used + 1);
        ck_assert(exact != NULL);
        memcpy(exact, text, used);
        char *fit = realloc(exact, used == 0 ? 1 : used);
        int r = signature_parse(bytes_of(fit, used), &s, NULL);
        if (r != 0 && r != ERR_COMPILE) {
            ck_abort_msg("round %u: %d", round, r);
        }
        accepted += r == 0;
        free(fit);
    }
    ck_assert_uint_gt(accepted, 0);
}
END_TEST

START_TEST(test_entry)
{
    struct signature s;
    char entry[SIG_NAME + 8];
    parse("axpy<T: f32 f64>(T a)", &s);
    ck_assert_int_eq(signature_entry(&s, DTYPE_F64, entry, sizeof(entry), NULL), 0);
    ck_assert_str_eq(entry, "axpy_f64");
    ck_assert_int_eq(signature_entry(&s, DTYPE_U8, entry, sizeof(entry), NULL), ERR_ARG_TYPE);
    ck_assert_int_eq(signature_entry(&s, DTYPE_F64, entry, 8, NULL), ERR_LIMIT);
    ck_assert_str_eq(entry, "axpy_f64");
    parse("plain(f32 a)", &s);
    ck_assert_int_eq(signature_entry(&s, DTYPE_NONE, entry, sizeof(entry), NULL), 0);
    ck_assert_str_eq(entry, "plain");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("signature");
    TCase *t = tcase_create("parse");
    tcase_add_test(t, test_axpy);
    tcase_add_test(t, test_everything);
    tcase_add_test(t, test_groups);
    tcase_add_test(t, test_alias_and_where);
    tcase_add_loop_test(t, test_bad, 0, sizeof(bads) / sizeof(bads[0]));
    tcase_add_test(t, test_limits);
    tcase_add_test(t, test_random);
    tcase_add_test(t, test_entry);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
