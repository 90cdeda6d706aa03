#include <string.h>

#include "gpuctl/input/number.h"
#include "gpuctl/input/spec.h"
#include "tests/unit/common/suite.h"

#define NO_SHAPE                                                                                   \
    {                                                                                              \
        0                                                                                          \
    }

struct good_row {
    const char *text;
    struct spec want;
};

static const struct good_row good[] = {
    {"i32:7", {.kind = SPEC_SCALAR, .dtype = GPUD_I32, .text = "7"}},
    {"u8:255", {.kind = SPEC_SCALAR, .dtype = GPUD_U8, .text = "255"}},
    {"i64:-0x10", {.kind = SPEC_SCALAR, .dtype = GPUD_I64, .text = "-0x10"}},
    {"f32:2.5", {.kind = SPEC_SCALAR, .dtype = GPUD_F32, .text = "2.5"}},
    {"f16:1e-3", {.kind = SPEC_SCALAR, .dtype = GPUD_F16, .text = "1e-3"}},
    {"f32:1,2,3,4", {.kind = SPEC_VECTOR, .dtype = GPUD_F32, .text = "1,2,3,4"}},
    {"2.5", {.kind = SPEC_SCALAR, .text = "2.5"}},
    {"-3", {.kind = SPEC_SCALAR, .text = "-3"}},
    {"inf", {.kind = SPEC_SCALAR, .text = "inf"}},
    {"alpha=2", {.name = "alpha", .kind = SPEC_SCALAR, .text = "2"}},
    {"a=f64:1", {.name = "a", .kind = SPEC_SCALAR, .dtype = GPUD_F64, .text = "1"}},
    {"bytes:@s.bin", {.kind = SPEC_BYTES, .file = "s.bin"}},
    {"s=bytes:@-", {.name = "s", .kind = SPEC_BYTES, .file = "-"}},
    {"local:1024", {.kind = SPEC_LOCAL, .bytes = 1024}},
    {"tile=local:16", {.name = "tile", .kind = SPEC_LOCAL, .bytes = 16}},
    {"scratch:1024", {.kind = SPEC_LOCAL, .bytes = 1024}},
    {"inout:f32/u8@x.bin",
     {.kind = SPEC_ARRAY,
      .access = GPUD_INOUT,
      .dtype = GPUD_F32,
      .view = GPUD_U8,
      .file = "x.bin"}},
    {"in:/i32@a%b.npy",
     {.kind = SPEC_ARRAY, .access = GPUD_IN, .view = GPUD_I32, .file = "a%b.npy"}},
    {"in:/i32%weights",
     {.kind = SPEC_PUBLISHED, .access = GPUD_IN, .view = GPUD_I32, .text = "weights"}},
    {"in:u16+raw/f64:8@x.bin",
     {.kind = SPEC_ARRAY,
      .access = GPUD_IN,
      .dtype = GPUD_U16,
      .view = GPUD_F64,
      .shape = {GPUD_U16, 1, {8}},
      .raw = true,
      .file = "x.bin"}},
    {"out:f32/u32:4",
     {.kind = SPEC_ARRAY,
      .access = GPUD_OUT,
      .dtype = GPUD_F32,
      .view = GPUD_U32,
      .shape = {GPUD_F32, 1, {4}}}},
    {"in:@x.npy", {.kind = SPEC_ARRAY, .access = GPUD_IN, .file = "x.npy"}},
    {"in@x.npy", {.kind = SPEC_ARRAY, .access = GPUD_IN, .file = "x.npy"}},
    {"inout:@y.npy", {.kind = SPEC_ARRAY, .access = GPUD_INOUT, .file = "y.npy"}},
    {"in:@-", {.kind = SPEC_ARRAY, .access = GPUD_IN, .file = "-"}},
    {"in:@a=b@c:d", {.kind = SPEC_ARRAY, .access = GPUD_IN, .file = "a=b@c:d"}},
    {"x=in:@x.npy", {.name = "x", .kind = SPEC_ARRAY, .access = GPUD_IN, .file = "x.npy"}},
    {"in:f32@x.npy", {.kind = SPEC_ARRAY, .access = GPUD_IN, .dtype = GPUD_F32, .file = "x.npy"}},
    {"in:f32:2x3@x.npy",
     {.kind = SPEC_ARRAY,
      .access = GPUD_IN,
      .dtype = GPUD_F32,
      .shape = {GPUD_F32, 2, {2, 3}},
      .file = "x.npy"}},
    {"out:f32:1024x16",
     {.kind = SPEC_ARRAY,
      .access = GPUD_OUT,
      .dtype = GPUD_F32,
      .shape = {GPUD_F32, 2, {1024, 16}}}},
    {"out:u8:1x2x3x4",
     {.kind = SPEC_ARRAY,
      .access = GPUD_OUT,
      .dtype = GPUD_U8,
      .shape = {GPUD_U8, 4, {1, 2, 3, 4}}}},
    {"out:i16:0",
     {.kind = SPEC_ARRAY, .access = GPUD_OUT, .dtype = GPUD_I16, .shape = {GPUD_I16, 1, {0}}}},
    {"inout:u32:256",
     {.kind = SPEC_ARRAY, .access = GPUD_INOUT, .dtype = GPUD_U32, .shape = {GPUD_U32, 1, {256}}}},
    {"in:u8+raw:1920x1080@frame.bin",
     {.kind = SPEC_ARRAY,
      .access = GPUD_IN,
      .dtype = GPUD_U8,
      .shape = {GPUD_U8, 2, {1920, 1080}},
      .raw = true,
      .file = "frame.bin"}},
    {"in:u8+raw@-",
     {.kind = SPEC_ARRAY, .access = GPUD_IN, .dtype = GPUD_U8, .raw = true, .file = "-"}},
    {"in:f32=1,2,3", {.kind = SPEC_ARRAY, .access = GPUD_IN, .dtype = GPUD_F32, .text = "1,2,3"}},
    {"x=in:f32=1,2,3",
     {.name = "x", .kind = SPEC_ARRAY, .access = GPUD_IN, .dtype = GPUD_F32, .text = "1,2,3"}},
    {"inout:i32:2x2=1,2,3,4",
     {.kind = SPEC_ARRAY,
      .access = GPUD_INOUT,
      .dtype = GPUD_I32,
      .shape = {GPUD_I32, 2, {2, 2}},
      .text = "1,2,3,4"}},
    {"in:f32=", {.kind = SPEC_ARRAY, .access = GPUD_IN, .dtype = GPUD_F32, .text = ""}},
    {"in:%weights", {.kind = SPEC_PUBLISHED, .access = GPUD_IN, .text = "weights"}},
    {"w=inout:%a b", {.name = "w", .kind = SPEC_PUBLISHED, .access = GPUD_INOUT, .text = "a b"}},
};

static void same_text(const char *got, const char *want, const char *whole)
{
    if (want == NULL) {
        ck_assert_msg(got == NULL, "%s: %s", whole, got);
    } else {
        ck_assert_msg(got != NULL && strcmp(got, want) == 0, "%s: %s", whole, got);
    }
}

START_TEST(every_form_is_read)
{
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        const struct spec *want = &good[i].want;
        struct spec got;
        struct ctl_err e = {0};
        ck_assert_msg(spec_parse(good[i].text, &got, &e) == 0, "%s: %s", good[i].text, e.text);
        ck_assert_str_eq(got.name, want->name);
        ck_assert_msg(got.kind == want->kind && got.access == want->access &&
                          got.dtype == want->dtype && got.raw == want->raw &&
                          got.bytes == want->bytes && got.view == want->view,
                      "%s", good[i].text);
        ck_assert_mem_eq(&got.shape, &want->shape, sizeof got.shape);
        same_text(got.text, want->text, good[i].text);
        same_text(got.file, want->file, good[i].text);
    }
}
END_TEST

static const char *const bad_forms[] = {
    "",
    "x",
    "x=",
    "=3",
    "i33:7",
    "i32:",
    "i32:x",
    "i32:7.5",
    "i32: 7",
    "bytes",
    "bytes:",
    "bytes:@",
    "bytes:16",
    "bytes@x.bin",
    "i32:7 ",
    "i32:--7",
    "f32:1,,2",
    "i8:1,200",
    "i32:2147483648",
    "i8:128",
    "u8:-1",
    "u8:256",
    "u64:18446744073709551616",
    "f16:65520",
    "f32:1e39",
    "f64:1e999",
    "f32:1.5x",
    "0x",
    "in",
    "in:",
    "in:f32",
    "in:f32:4",
    "in=1,2",
    "in:=1",
    "in:@",
    "in:x32@f",
    "in:f32:@f",
    "in:f32:x4@f",
    "in:f32:4x@f",
    "in:f32:4xx4@f",
    "in:f32:-4@f",
    "in:f32:1x1x1x1x1@f",
    "in:f32+raw",
    "in:+raw@f",
    "in:%",
    "out",
    "out:f32",
    "out:@f",
    "out:f32:4@f",
    "out:f32:4=1",
    "out:f32:9223372036854775808",
    "out:f32:4294967296x4294967296",
    "out:f32:0x4294967296x4294967296x4294967296y",
    "inout",
    "inout:f32",
    "inout:u8+raw:4",
    "in:f32/@f",
    "in:f32/x8@f",
    "in:/@f",
    "out:/u8:4",
    "in:/u8=1,2",
    "in:f32/%w",
    "i32/f32:7",
    "local",
    "local:",
    "scratch:",
    "local:0",
    "local:-1",
    "scratch:1k",
    "scratch:4294967296",
    "in:%aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=3",
};

START_TEST(bad_forms_are_usage_errors)
{
    for (size_t i = 0; i < sizeof bad_forms / sizeof bad_forms[0]; i++) {
        struct spec spec;
        memset(&spec, 0x5a, sizeof spec);
        struct spec before = spec;
        struct ctl_err e = {0};
        ck_assert_msg(spec_parse(bad_forms[i], &spec, &e) == CTL_USAGE, "taken: '%s'",
                      bad_forms[i]);
        ck_assert_uint_gt(strlen(e.text), 0);
        ck_assert_mem_eq(&spec, &before, sizeof spec);
    }
}
END_TEST

struct number_row {
    int dtype;
    const char *text;
    uint64_t bits;
};

START_TEST(numbers_have_exact_bits)
{
    static const struct number_row rows[] = {
        {GPUD_I8, "-128", 0x80},
        {GPUD_I8, "127", 0x7f},
        {GPUD_U8, "0xff", 0xff},
        {GPUD_I16, "-1", 0xffff},
        {GPUD_U16, "+65535", 0xffff},
        {GPUD_I32, "-2147483648", 0x80000000},
        {GPUD_U32, "4294967295", 0xffffffff},
        {GPUD_I64, "-9223372036854775808", 0x8000000000000000},
        {GPUD_U64, "18446744073709551615", UINT64_MAX},
        {GPUD_I32, "010", 10},
        {GPUD_F16, "1", 0x3c00},
        {GPUD_F16, "65504", 0x7bff},
        {GPUD_F32, "1", 0x3f800000},
        {GPUD_F32, "-0", 0x80000000},
        {GPUD_F32, "inf", 0x7f800000},
        {GPUD_F64, "-2", 0xc000000000000000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t bits = 0;
        struct ctl_err e;
        ck_assert_int_eq(spec_scalar(rows[i].dtype, rows[i].text, &bits, &e), 0);
        ck_assert_msg(bits == rows[i].bits, "%s: %llx", rows[i].text, (unsigned long long)bits);
    }
}
END_TEST

START_TEST(an_unknown_type_is_asked_for_with_what_would_do)
{
    uint64_t bits;
    struct ctl_err e;
    ck_assert_int_eq(spec_scalar(GPUD_NONE, "7", &bits, &e), CTL_USAGE);
    ck_assert_msg(strstr(e.text, "i32:7") != NULL && strstr(e.text, "f32:7") != NULL, "%s", e.text);
    ck_assert_int_eq(spec_scalar(GPUD_NONE, "1.5", &bits, &e), CTL_USAGE);
    ck_assert_msg(strstr(e.text, "i32") == NULL && strstr(e.text, "f32:1.5") != NULL, "%s", e.text);
}
END_TEST

START_TEST(lists_become_elements)
{
    struct ctl_err e;
    int16_t out[3] = {0};
    ck_assert_uint_eq(spec_list_count("1,-2,3"), 3);
    ck_assert_uint_eq(spec_list_count(""), 0);
    ck_assert_uint_eq(spec_list_count(","), 2);
    ck_assert_int_eq(spec_list(GPUD_I16, "1,-2,3", 3, out, &e), 0);
    ck_assert_int_eq(out[0], 1);
    ck_assert_int_eq(out[1], -2);
    ck_assert_int_eq(out[2], 3);
    ck_assert_int_eq(spec_list(GPUD_I16, "1,,3", 3, out, &e), CTL_USAGE);
    ck_assert_ptr_nonnull(strstr(e.text, "element 1"));
}
END_TEST

START_TEST(grids_have_three_sizes)
{
    static const char *const bad[] = {
        "", ",", "0", "1,", "1,2,3,4", "x", "1,,2", "-1", "1.5", "99999999999999999999999", "1,0"};
    uint64_t size[3];
    struct ctl_err e;
    ck_assert_int_eq(spec_grid("7", size, &e), 0);
    ck_assert(size[0] == 7 && size[1] == 1 && size[2] == 1);
    ck_assert_int_eq(spec_grid("64,32,2", size, &e), 0);
    ck_assert(size[0] == 64 && size[1] == 32 && size[2] == 2);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(spec_grid(bad[i], size, &e) == CTL_USAGE, "taken: '%s'", bad[i]);
        ck_assert_uint_eq(size[0], 64);
    }
}
END_TEST

START_TEST(saves_name_an_argument_and_a_file)
{
    static const char *const bad[] = {"",        "x",        "x=",        "=x.npy",
                                      "x=y.txt", "1x=a.npy", "256=a.npy", "x y=a.npy",
                                      "x=raw:",  "x=dir/",   "x=.npy"};
    struct spec_save save;
    struct ctl_err e;
    ck_assert_int_eq(spec_save_parse("out=a/b.npy", &save, &e), 0);
    ck_assert_str_eq(save.name, "out");
    ck_assert_str_eq(save.file, "a/b.npy");
    ck_assert(!save.raw);
    ck_assert_int_eq(spec_save_parse("3=raw:x=y", &save, &e), 0);
    ck_assert_str_eq(save.name, "");
    ck_assert_uint_eq(save.index, 3);
    ck_assert_str_eq(save.file, "x=y");
    ck_assert(save.raw);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(spec_save_parse(bad[i], &save, &e) == CTL_USAGE, "taken: '%s'", bad[i]);
    }
}
END_TEST

START_TEST(sizes_have_units)
{
    static const char *const bad[] = {"",
                                      "K",
                                      "1X",
                                      "1KK",
                                      "-1",
                                      "1.5G",
                                      "18446744073709551616",
                                      "16777216T",
                                      "0",
                                      "99999999999999999999999999G"};
    struct ctl_err e = {0};
    uint64_t bytes = 7;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_eq(spec_size("x", bad[i], 1, UINT64_MAX, &bytes, &e), CTL_USAGE);
        ck_assert_uint_eq(bytes, 7);
    }
    ck_assert_int_eq(spec_size("x", "100", 1, UINT64_MAX, &bytes, &e), 0);
    ck_assert_uint_eq(bytes, 100);
    ck_assert_int_eq(spec_size("x", "3K", 1, UINT64_MAX, &bytes, &e), 0);
    ck_assert_uint_eq(bytes, 3072);
    ck_assert_int_eq(spec_size("x", "2T", 1, UINT64_MAX, &bytes, &e), 0);
    ck_assert_uint_eq(bytes, (uint64_t)2 << 40);
    ck_assert_int_eq(spec_size("x", "2T", 1, 1000, &bytes, &e), CTL_USAGE);
}
END_TEST

SUITE_MAIN("spec", sizes_have_units, every_form_is_read, bad_forms_are_usage_errors,
           numbers_have_exact_bits, an_unknown_type_is_asked_for_with_what_would_do,
           lists_become_elements, grids_have_three_sizes, saves_name_an_argument_and_a_file)
