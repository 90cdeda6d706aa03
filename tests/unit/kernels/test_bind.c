#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/signature.h"

/* Actual arguments in a short form: an array "in f32 4x3", a scalar "f32 2.5". */
static struct sig_value value_of(const char *text)
{
    struct sig_value v = {.access = ACCESS_NONE};
    char word[4][32] = {"", "", "", ""};
    int words = sscanf(text, "%31s %31s %31s", word[0], word[1], word[2]);
    if (words == 2) {
        double d = strtod(word[1], NULL);
        v.dtype = dtype_from_name(word[0]);
        if (v.dtype == DTYPE_F64) {
            memcpy(&v.bits, &d, sizeof(d));
        } else if (v.dtype == DTYPE_F32) {
            float f = (float)d;
            memcpy(&v.bits, &f, sizeof(f));
        } else {
            v.bits = word[1][0] == '-' ? (uint64_t)strtoll(word[1], NULL, 10)
                                       : strtoull(word[1], NULL, 10);
        }
        return v;
    }
    uint64_t dims[SHAPE_MAX_DIMS];
    unsigned ndim = 0;
    for (char *at = word[2]; *at != 0 && ndim < SHAPE_MAX_DIMS; at += *at == 'x') {
        dims[ndim++] = strtoull(at, &at, 10);
    }
    v.array = true;
    v.access = strcmp(word[0], "in") == 0    ? ACCESS_IN
               : strcmp(word[0], "out") == 0 ? ACCESS_OUT
               : strcmp(word[0], "-") == 0   ? ACCESS_NONE
                                             : ACCESS_INOUT;
    ck_assert_msg(shape_make(dtype_from_name(word[1]), ndim, dims, &v.shape, NULL) == 0, "%s",
                  text);
    return v;
}

static int bind(const char *signature, const char *const *args, struct sig_binding *ret_binding,
                struct err *e)
{
    struct signature s;
    struct sig_value values[SIG_ARGS];
    unsigned count = 0;
    ck_assert_msg(signature_parse(bytes_str(signature), &s, e) == 0, "%s", e->text);
    for (; args[count] != NULL; count++) {
        values[count] = value_of(args[count]);
    }
    return signature_bind(&s, values, count, ret_binding, e);
}

#define AXPY "axpy<T: f32 f64>(T a, in T x[n], inout T y[n]) over n"
#define GEMM                                                                                       \
    "gemm(in f32 a[m,k], in f32 b[k,n], out f32 c[m,n]) over m, n group 16, 16 local f32 t[4]"
#define PART "part(in f32 x[n], out f32 p[groups]) over n per 16 group 256 local f32 t[256]"

struct good {
    const char *signature;
    const char *args[6];
    int dtype;
    uint64_t dim[3], global[3], local[3], groups;
};

static const struct good goods[] = {
    {AXPY,
     {"f32 2", "in f32 1000", "inout f32 1000"},
     DTYPE_F32,
     {1000},
     {1024, 1, 1},
     {256, 1, 1},
     4},
    {AXPY, {"i32 2", "in f64 256", "- f64 256"}, DTYPE_F64, {256}, {256, 1, 1}, {256, 1, 1}, 1},
    {AXPY, {"f32 2", "in f32 0", "inout f32 0"}, DTYPE_F32, {0}, {0, 0, 0}, {256, 1, 1}, 0},
    {AXPY,
     {"f32 2", "in f32 10x10", "inout f32 100"},
     DTYPE_F32,
     {100},
     {256, 1, 1},
     {256, 1, 1},
     1},
    {GEMM,
     {"in f32 5x7", "in f32 7x40", "out f32 5x40"},
     DTYPE_NONE,
     {5, 7, 40},
     {48, 16, 1},
     {16, 16, 1},
     3},
    {GEMM,
     {"in f32 5x7", "in f32 7x40", "out f32 200"},
     DTYPE_NONE,
     {5, 7, 40},
     {48, 16, 1},
     {16, 16, 1},
     3},
    {GEMM,
     {"in f32 5x7", "in f32 280", "out f32 5x40"},
     DTYPE_NONE,
     {5, 7, 40},
     {48, 16, 1},
     {16, 16, 1},
     3},
    {GEMM,
     {"in f32 5x0", "in f32 0x40", "out f32 5x40"},
     DTYPE_NONE,
     {5, 0, 40},
     {48, 16, 1},
     {16, 16, 1},
     3},
    {GEMM,
     {"in f32 0x7", "in f32 7x40", "out f32 0x40"},
     DTYPE_NONE,
     {0, 7, 40},
     {0, 0, 0},
     {16, 16, 1},
     0},
    {PART, {"in f32 4096", "out f32 1"}, DTYPE_NONE, {4096}, {256, 1, 1}, {256, 1, 1}, 1},
    {PART, {"in f32 4097", "out f32 2"}, DTYPE_NONE, {4097}, {512, 1, 1}, {256, 1, 1}, 2},
    {PART, {"in f32 0", "out f32 0"}, DTYPE_NONE, {0}, {0, 0, 0}, {256, 1, 1}, 0},
    {"k(in f32 x[n*2+1]) over n", {"in f32 7"}, DTYPE_NONE, {3}, {256, 1, 1}, {256, 1, 1}, 1},
    {"k(in f32 x[n-1]) over n*2", {"in f32 511"}, DTYPE_NONE, {512}, {1024, 1, 1}, {256, 1, 1}, 4},
    {"k(in u8 x[h,w,3]) over h, w",
     {"in u8 3x20x3"},
     DTYPE_NONE,
     {3, 20},
     {32, 16, 1},
     {16, 16, 1},
     2},
    {"k(in u8 x[a,b,c]) over a, b, c",
     {"in u8 3x9x9"},
     DTYPE_NONE,
     {3, 9, 9},
     {16, 16, 4},
     {8, 8, 4},
     2},
    {"k(in u8 x[n]) group 8, 4", {"inout u8 3"}, DTYPE_NONE, {3}, {0, 0, 0}, {4, 8, 1}, 0},
    {"k(in u8 x[n])", {"in u8 3"}, DTYPE_NONE, {3}, {0, 0, 0}, {0, 0, 0}, 0},
};

START_TEST(test_good)
{
    const struct good *g = &goods[_i];
    struct sig_binding b;
    struct err e = ERR_INIT;
    ck_assert_msg(bind(g->signature, g->args, &b, &e) == 0, "%s", e.text);
    ck_assert_int_eq(b.dtype, g->dtype);
    ck_assert_uint_eq(b.groups, g->groups);
    for (unsigned d = 0; d < 3; d++) {
        ck_assert_uint_eq(b.dim[d], g->dim[d]);
        ck_assert_uint_eq(b.global[d], g->global[d]);
        ck_assert_uint_eq(b.local[d], g->local[d]);
    }
}
END_TEST

struct bad {
    const char *signature;
    const char *args[6];
    int code, arg;
    const char *text;
};

static const struct bad bads[] = {
    {AXPY, {"f32 2", "in f32 4096"}, ERR_ARG_COUNT, -1, "it takes 3 arguments, not 2"},
    {AXPY,
     {"f32 2", "in f32 4096", "inout f32 1000"},
     ERR_ARG_SHAPE,
     2,
     "argument y: f32 1000, kernel needs n = 4096"},
    {AXPY,
     {"f32 2", "in f32 4", "inout f64 4"},
     ERR_ARG_TYPE,
     2,
     "argument y: f64 4, kernel needs f32"},
    {AXPY,
     {"f32 2", "in i32 4", "inout i32 4"},
     ERR_ARG_TYPE,
     1,
     "argument x: i32 4, kernel axpy is made for f32 f64"},
    {AXPY,
     {"in f32 4", "in f32 4", "inout f32 4"},
     ERR_ARG_TYPE,
     0,
     "argument a: f32 4, kernel needs f32 scalar"},
    {AXPY,
     {"f32 2", "f32 1", "inout f32 4"},
     ERR_ARG_TYPE,
     1,
     "argument x: f32 scalar, kernel needs f32 array"},
    {AXPY,
     {"f32 2", "out f32 4", "inout f32 4"},
     ERR_ARG_ACCESS,
     1,
     "argument x: f32 4, declared out, kernel needs in"},
    {AXPY,
     {"f32 2", "in f32 4", "in f32 4"},
     ERR_ARG_ACCESS,
     2,
     "argument y: f32 4, declared in, kernel needs inout"},
    {AXPY,
     {"f32 2", "in f32 4", "out f32 4"},
     ERR_ARG_ACCESS,
     2,
     "argument y: f32 4, declared out, kernel needs inout"},
    {AXPY,
     {"f64 1e300", "in f32 4", "inout f32 4"},
     ERR_RANGE,
     0,
     "argument a: 1e+300 does not fit f32"},
    {AXPY,
     {"i64 16777217", "in f32 4", "inout f32 4"},
     ERR_RANGE,
     0,
     "argument a: 16777217 is not exact in f32"},
    {GEMM,
     {"in f32 5x7", "in f32 8x40", "out f32 5x40"},
     ERR_ARG_SHAPE,
     1,
     "argument b: f32 8x40, kernel needs k = 7"},
    {GEMM,
     {"in f32 5x7", "in f32 280", "out f32 200"},
     ERR_ARG_SHAPE,
     1,
     "argument b: f32 280, kernel needs 2 dimensions"},
    {GEMM,
     {"in f32 5x7", "in f32 7x40", "out f32 199"},
     ERR_ARG_SHAPE,
     2,
     "argument c: f32 199, kernel needs 200 elements"},
    {GEMM,
     {"in f32 5x7x1", "in f32 7x40", "out f32 5x40"},
     ERR_ARG_SHAPE,
     0,
     "argument a: f32 5x7x1, kernel needs 2 dimensions"},
    {PART,
     {"in f32 4097", "out f32 1"},
     ERR_ARG_SHAPE,
     1,
     "argument p: f32 1, kernel needs groups = 2"},
    {"k(in f32 x[n*2]) over n",
     {"in f32 7"},
     ERR_ARG_SHAPE,
     0,
     "argument x: f32 7, kernel needs n*2, 7 is none"},
    {"k(in f32 x[n+9]) over n",
     {"in f32 7"},
     ERR_ARG_SHAPE,
     0,
     "argument x: f32 7, kernel needs n + 9, 7 is none"},
    {"k(in u8 x[h,w,3]) over h, w",
     {"in u8 4x4x4"},
     ERR_ARG_SHAPE,
     0,
     "argument x: u8 4x4x4, kernel needs 3 in dimension 2"},
    {"k(in u8 x[n], in u8 y[n*2]) over n",
     {"in u8 4", "in u8 9"},
     ERR_ARG_SHAPE,
     1,
     "argument y: u8 9, kernel needs n*2 = 8"},
    {"k(u8 v)", {"i32 256"}, ERR_RANGE, 0, "argument v: 256 does not fit u8"},
    {"k(u8 v)", {"i32 -1"}, ERR_RANGE, 0, "argument v: -1 does not fit u8"},
    {"k(i32 v)", {"f64 2.5"}, ERR_RANGE, 0, "argument v: 2.5 is no i32"},
    {"k(i32 v)", {"f64 inf"}, ERR_RANGE, 0, "argument v: inf is no i32"},
    {"k(i64 v)",
     {"u64 9223372036854775808"},
     ERR_RANGE,
     0,
     "argument v: 9223372036854775808 does not fit i64"},
};

START_TEST(test_bad)
{
    const struct bad *b = &bads[_i];
    struct sig_binding binding;
    struct err e = ERR_INIT;
    memset(&binding, 0x5a, sizeof(binding));
    ck_assert_int_eq(bind(b->signature, b->args, &binding, &e), b->code);
    ck_assert_str_eq(e.text, b->text);
    ck_assert_int_eq(e.arg, b->arg);
    ck_assert_uint_eq(binding.groups, 0x5a5a5a5a5a5a5a5a); /* untouched */
}
END_TEST

struct scalar {
    const char *type, *value;
    uint64_t bits;
};

static const struct scalar scalars[] = {
    {"i32", "f64 -3", 0xfffffffd},
    {"i8", "i64 -128", 0x80},
    {"u64", "f64 18446744073709549568", 0xfffffffffffff800},
    {"i64", "i8 -1", UINT64_MAX},
    {"i64", "f64 -9223372036854775808", 0x8000000000000000},
    {"f32", "i32 -16777216", 0xcb800000},
    {"f32", "f64 0.1", 0x3dcccccd},
    {"f64", "u64 9223372036854775808", 0x43e0000000000000},
    {"f64", "f32 0.5", 0x3fe0000000000000},
    {"f32", "f64 inf", 0x7f800000},
    {"f32", "f16 15360", 0x3f800000},
    {"f32", "f16 1", 0x33800000},
    {"u8", "u8 255", 255},
};

START_TEST(test_scalars)
{
    char signature[64];
    const char *args[] = {scalars[_i].value, NULL};
    struct sig_binding b;
    struct err e = ERR_INIT;
    snprintf(signature, sizeof(signature), "k(%s v)", scalars[_i].type);
    ck_assert_msg(bind(signature, args, &b, &e) == 0, "%s", e.text);
    ck_assert_uint_eq(b.scalar[0], scalars[_i].bits);
}
END_TEST

/* Sizes near 2^63 neither wrap around nor pass. */
START_TEST(test_huge)
{
    struct sig_binding b;
    struct err e = ERR_INIT;
    const char *const huge[] = {"in u8 9223372036854775807", NULL};
    ck_assert_int_eq(bind("k(in u8 x[n]) over n*1099511627776", huge, &b, &e), ERR_ARG_SHAPE);
    ck_assert_int_eq(bind("k(in u8 x[n]) over n", huge, &b, &e), ERR_LIMIT);
    const char *const two[] = {"in u8 9223372036854775807", "in u8 8", NULL};
    ck_assert_int_eq(bind("k(in u8 x[n], in u8 y[n*8]) over n", two, &b, &e), ERR_ARG_SHAPE);
    const char *const flat[] = {"in u8 3037000499x3037000499", "in u8 8", NULL};
    ck_assert_int_eq(bind("k(in u8 x[a,b], in u8 y[a*9,b*9]) over a", flat, &b, &e), ERR_ARG_SHAPE);
}
END_TEST

static const struct ordered {
    const char *low, *high;
    const char *error; /* NULL: it is taken */
} ordereds[] = {
    {"f32 1", "f32 1", NULL},
    {"f32 -2", "f32 1", NULL},
    {"f32 nan", "f32 1", NULL}, /* a bound that holds nothing back */
    {"f32 1", "f32 nan", NULL},
    {"i32 -3", "i32 -2", NULL},
    {"i32 -3", "i32 2", NULL},
    {"f32 inf", "f32 1", "arguments low and high: inf is more than 1, kernel needs low <= high"},
    {"f32 1.5", "f32 -2", "arguments low and high: 1.5 is more than -2, kernel needs low <= high"},
    {"i32 -2", "i32 -3", "arguments low and high: -2 is more than -3, kernel needs low <= high"},
    {"i32 2", "i32 -3", "arguments low and high: 2 is more than -3, kernel needs low <= high"},
};

START_TEST(test_ordered)
{
    const struct ordered *o = &ordereds[_i];
    const char *const args[] = {"u8 7", o->low, o->high, NULL};
    struct sig_binding b;
    struct err e = ERR_INIT;
    int rc = bind("k<T: f32 i32>(u8 x, T low, T high) where low <= high", args, &b, &e);
    ck_assert_int_eq(rc, o->error == NULL ? 0 : ERR_RANGE);
    if (o->error != NULL) {
        ck_assert_str_eq(e.text, o->error);
        ck_assert_int_eq(e.arg, 1);
    }
}
END_TEST

#define MAP "map(in f32 x[n], out f32 y[n]) over n"
#define TWO "two(in f32 x[n], out f32 y[n], inout f32 z[n]) over n"

/* Up to three arrays of f32: the memory that each is in (0: its own) and its bytes. */
static const struct shared {
    const char *signature, *alias;
    struct {
        unsigned memory;
        uint64_t begin, end;
    } at[3];
    int arg;           /* the one that is blamed, -1: they may lie so */
    const char *names; /* both, in the error */
} shareds[] = {
    {MAP, "none", {{1, 0, 40}, {2, 0, 40}}, -1, NULL},
    {MAP, "none", {{1, 0, 40}, {1, 40, 80}}, -1, NULL}, /* neighbours */
    {MAP, "none", {{1, 40, 80}, {1, 0, 40}}, -1, NULL},
    {MAP, "none", {{1, 0, 40}, {1, 0, 40}}, 1, "arguments x and y "},
    {MAP, "none", {{1, 0, 40}, {1, 36, 76}}, 1, "arguments x and y "},
    {MAP, "none", {{1, 36, 76}, {1, 0, 40}}, 1, "arguments x and y "},
    {MAP, "none", {{1, 0, 80}, {1, 20, 40}}, 1, "arguments x and y "}, /* one inside the other */
    {MAP, "none", {{0, 0, 40}, {0, 0, 40}}, -1, NULL},
    {MAP, "none", {{1, 20, 20}, {1, 0, 40}}, -1, NULL}, /* an empty one */
    {MAP, "same", {{1, 0, 40}, {1, 0, 40}}, -1, NULL},
    {MAP, "same", {{1, 0, 40}, {1, 4, 44}}, 1, "arguments x and y "},
    {MAP, "same", {{1, 4, 44}, {1, 0, 40}}, 1, "arguments x and y "},
    {MAP, "same", {{1, 0, 40}, {1, 0, 36}}, 1, "arguments x and y "},
    {MAP, "any", {{1, 0, 40}, {1, 4, 44}}, -1, NULL},
    {"r(in f32 x[n], in f32 y[n]) over n", "none", {{1, 0, 40}, {1, 4, 44}}, -1, NULL},
    {"r(out f32 y[n], in f32 x[n]) over n",
     "none",
     {{1, 0, 40}, {1, 4, 44}},
     0,
     "arguments y and x "},
    {TWO, "same", {{1, 0, 40}, {2, 0, 40}, {1, 0, 40}}, -1, NULL},
    {TWO, "same", {{1, 0, 40}, {2, 0, 40}, {2, 0, 40}}, 2, "arguments y and z "}, /* both written */
    {TWO, "any", {{1, 0, 40}, {1, 0, 40}, {1, 0, 40}}, -1, NULL},
};

START_TEST(test_shared)
{
    const struct shared *c = &shareds[_i];
    char text[128];
    static const char memory[4];
    struct signature s;
    struct sig_value values[SIG_ARGS];
    struct sig_place places[SIG_ARGS];
    struct err e = ERR_INIT;
    snprintf(text, sizeof(text), "%s alias %s", c->signature, c->alias);
    ck_assert_int_eq(signature_parse(bytes_str(text), &s, &e), 0);
    for (unsigned a = 0; a < s.arg_count; a++) {
        values[a] = value_of("- f32 10");
        places[a] = (struct sig_place){c->at[a].memory == 0 ? NULL : &memory[c->at[a].memory],
                                       c->at[a].begin, c->at[a].end};
    }
    ck_assert_int_eq(signature_alias(&s, values, places, &e), c->arg < 0 ? 0 : ERR_RANGE);
    if (c->arg >= 0) {
        ck_assert_int_eq(e.arg, c->arg);
        ck_assert_msg(strncmp(e.text, c->names, strlen(c->names)) == 0, "%s", e.text);
    }
}
END_TEST

/* One range of bytes for elements of two sizes is no one array. */
START_TEST(test_shared_sizes)
{
    static const char memory;
    const struct sig_place places[] = {{&memory, 0, 4}, {&memory, 0, 4}};
    const struct sig_value values[] = {value_of("- u8 4"), value_of("- f32 1")};
    struct signature s;
    ck_assert_int_eq(
        signature_parse(bytes_str("k(in u8 x[n*4], out f32 y[n]) alias same"), &s, NULL), 0);
    ck_assert_int_eq(signature_alias(&s, values, places, NULL), ERR_RANGE);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("bind");
    TCase *t = tcase_create("bind");
    tcase_add_loop_test(t, test_good, 0, sizeof(goods) / sizeof(goods[0]));
    tcase_add_loop_test(t, test_bad, 0, sizeof(bads) / sizeof(bads[0]));
    tcase_add_loop_test(t, test_scalars, 0, sizeof(scalars) / sizeof(scalars[0]));
    tcase_add_test(t, test_huge);
    tcase_add_loop_test(t, test_ordered, 0, sizeof(ordereds) / sizeof(ordereds[0]));
    tcase_add_loop_test(t, test_shared, 0, sizeof(shareds) / sizeof(shareds[0]));
    tcase_add_test(t, test_shared_sizes);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
