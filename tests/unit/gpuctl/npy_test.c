#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuctl/input/npy.h"
#include "tests/unit/common/suite.h"

/* A version 1 file with the given dictionary and data, its size in *ret_size. */
static unsigned char *make(const char *dict, const void *data, size_t bytes, size_t *ret_size)
{
    size_t text = strlen(dict) + 1;
    unsigned char *file = malloc(10 + text + bytes);
    ck_assert_ptr_nonnull(file);
    memcpy(file, "\x93NUMPY\x01\x00", 8);
    file[8] = (unsigned char)(text & 0xff);
    file[9] = (unsigned char)(text >> 8);
    memcpy(file + 10, dict, text - 1);
    file[10 + text - 1] = '\n';
    memcpy(file + 10 + text, data, bytes);
    *ret_size = 10 + text + bytes;
    return file;
}

static int parse(const char *dict, size_t bytes, struct npy *ret_npy)
{
    size_t size;
    void *data = calloc(1, bytes + 1);
    unsigned char *file = make(dict, data, bytes, &size);
    struct ctl_err e;
    int rc = npy_parse(file, size, ret_npy, &e);
    free(file);
    free(data);
    return rc;
}

/* As numpy.save writes np.arange(6, dtype='<f4').reshape(2, 3). */
static const unsigned char golden[] =
    "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
    "                                                          \n"
    "\x00\x00\x00\x00\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\x40\x40\x00\x00\x80\x40\x00\x00\xa0"
    "\x40";
#define GOLDEN_SIZE (sizeof golden - 1)

START_TEST(golden_file_is_read)
{
    struct npy npy;
    struct ctl_err e;
    float out[6];
    ck_assert_uint_eq(GOLDEN_SIZE, 128 + 24);
    ck_assert_int_eq(npy_parse(golden, GOLDEN_SIZE, &npy, &e), 0);
    ck_assert_uint_eq(npy.shape.dtype, GPUD_F32);
    ck_assert_uint_eq(npy.shape.ndim, 2);
    ck_assert_uint_eq(npy.shape.dim[0], 2);
    ck_assert_uint_eq(npy.shape.dim[1], 3);
    npy_copy(&npy, golden, out);
    for (int i = 0; i < 6; i++) {
        ck_assert_float_eq(out[i], (float)i);
    }
}
END_TEST

START_TEST(golden_header_is_written)
{
    char header[NPY_WRITE_MAX];
    size_t size = npy_write_header(gpud_shape_2d(GPUD_F32, 2, 3), header);
    ck_assert_uint_eq(size, 128);
    ck_assert_mem_eq(header, golden, 128);
}
END_TEST

START_TEST(every_truncation_is_refused)
{
    struct npy npy;
    struct ctl_err e;
    for (size_t size = 0; size < GOLDEN_SIZE; size++) {
        unsigned char *part = malloc(size + 1);
        ck_assert_ptr_nonnull(part);
        memcpy(part, golden, size);
        e.text[0] = '\0';
        ck_assert_msg(npy_parse(part, size, &npy, &e) != 0, "%zu bytes were taken", size);
        ck_assert_uint_gt(strlen(e.text), 0);
        free(part);
    }
}
END_TEST

START_TEST(data_behind_the_array_is_refused)
{
    unsigned char more[GOLDEN_SIZE + 1];
    struct npy npy;
    struct ctl_err e;
    memcpy(more, golden, GOLDEN_SIZE);
    more[GOLDEN_SIZE] = 0;
    ck_assert_int_eq(npy_parse(more, sizeof more, &npy, &e), GPUD_ERR_INVALID);
}
END_TEST

/* Whatever one byte becomes: refused, or a shape whose data is there. */
START_TEST(every_mutation_is_survived)
{
    unsigned char *file = malloc(GOLDEN_SIZE);
    ck_assert_ptr_nonnull(file);
    unsigned taken = 0;
    for (size_t at = 0; at < GOLDEN_SIZE; at++) {
        for (unsigned value = 0; value < 256; value++) {
            struct npy npy;
            struct ctl_err e;
            memcpy(file, golden, GOLDEN_SIZE);
            file[at] = (unsigned char)value;
            if (npy_parse(file, GOLDEN_SIZE, &npy, &e) != 0) {
                continue;
            }
            taken++;
            unsigned char out[24];
            ck_assert_uint_le(gpud_shape_bytes(npy.shape), sizeof out);
            npy_copy(&npy, file, out);
        }
    }
    ck_assert_uint_gt(taken, 24 * 256); /* all of the data's bytes, at least */
    free(file);
}
END_TEST

START_TEST(all_types_are_read)
{
    static const struct {
        const char *descr;
        uint32_t dtype;
        bool swap;
    } rows[] = {
        {"|i1", GPUD_I8, false},  {"|u1", GPUD_U8, false},  {"|b1", GPUD_U8, false},
        {"<i2", GPUD_I16, false}, {">i2", GPUD_I16, true},  {"<u2", GPUD_U16, false},
        {"<i4", GPUD_I32, false}, {">u4", GPUD_U32, true},  {"<i8", GPUD_I64, false},
        {"<u8", GPUD_U64, false}, {"=f4", GPUD_F32, false}, {"<f2", GPUD_F16, false},
        {">f8", GPUD_F64, true},  {"f4", GPUD_F32, false},  {">i1", GPUD_I8, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char dict[128];
        struct npy npy;
        snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (3,), }",
                 rows[i].descr);
        size_t bytes = 3 * gpud_dtype_size((int)rows[i].dtype);
        ck_assert_msg(parse(dict, bytes, &npy) == 0, "%s", rows[i].descr);
        ck_assert_uint_eq(npy.shape.dtype, rows[i].dtype);
        ck_assert_int_eq(npy.swap, rows[i].swap);
    }
}
END_TEST

START_TEST(other_headers_are_refused)
{
    static const char *const dicts[] = {
        "",
        "{",
        "[]",
        "{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<U4', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,), }",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'shape': (1,)}",
        "{'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 1, }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296,4294967296), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (0,9223372036854775808), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551617,), }",
        "{'descr': '<f4' 'fortran_order': False, 'shape': (1,), }",
        "{'descr: '<f4', 'fortran_order': False, 'shape': (1,), }",
    };
    for (size_t i = 0; i < sizeof dicts / sizeof dicts[0]; i++) {
        struct npy npy;
        ck_assert_msg(parse(dicts[i], 4, &npy) != 0, "taken: %s", dicts[i]);
    }
}
END_TEST

START_TEST(what_other_types_become_is_told)
{
    static const char *const rows[][2] = {
        {"<c8", "view('float32').reshape(a.shape + (2,))"},
        {"<c16", "view('float64').reshape(a.shape + (2,))"},
        {"<U4", "astype"},
        {"<f16", "astype"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char dict[128];
        struct npy npy;
        struct ctl_err e;
        size_t size;
        const double data[2] = {0};
        snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (1,), }",
                 rows[i][0]);
        unsigned char *file = make(dict, data, sizeof data, &size);
        ck_assert_int_eq(npy_parse(file, size, &npy, &e), GPUD_ERR_UNSUPPORTED);
        ck_assert_msg(strstr(e.text, rows[i][1]) != NULL, "%s", e.text);
        free(file);
    }
}
END_TEST

START_TEST(no_dimensions_are_one_element)
{
    struct npy npy;
    ck_assert_int_eq(parse("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", 8, &npy), 0);
    ck_assert_uint_eq(npy.shape.ndim, 1);
    ck_assert_uint_eq(npy.shape.dim[0], 1);
}
END_TEST

START_TEST(empty_arrays_are_read)
{
    struct npy npy;
    char nothing;
    ck_assert_int_eq(parse("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 7), }", 0, &npy),
                     0);
    ck_assert_uint_eq(gpud_shape_count(npy.shape), 0);
    npy_copy(&npy, &nothing, &nothing);
}
END_TEST

START_TEST(versions_2_and_3_have_long_lengths)
{
    unsigned char file[GOLDEN_SIZE + 2];
    for (unsigned char version = 1; version < 6; version++) {
        struct npy npy;
        struct ctl_err e;
        memcpy(file, golden, 8);
        file[6] = version;
        memcpy(file + 8, "\x76\x00\x00\x00", 4);
        memcpy(file + 12, golden + 10, GOLDEN_SIZE - 10);
        int rc = npy_parse(file, sizeof file, &npy, &e);
        ck_assert_int_eq(rc == 0, version == 2 || version == 3);
        if (rc == 0) {
            ck_assert_uint_eq(npy.data_at, 130);
        }
    }
    memcpy(file, golden, 8);
    file[6] = 2;
    memset(file + 8, 0xff, 4);
    struct npy npy;
    struct ctl_err e;
    ck_assert_int_eq(npy_parse(file, sizeof file, &npy, &e), GPUD_ERR_UNSUPPORTED);
}
END_TEST

START_TEST(big_endian_is_turned)
{
    static const unsigned char data[] = {0, 1, 2, 3, 0xff, 0xfe, 0xfd, 0xfc};
    size_t size;
    unsigned char *file =
        make("{'descr': '>u4', 'fortran_order': False, 'shape': (2,), }", data, sizeof data, &size);
    struct npy npy;
    struct ctl_err e;
    uint32_t out[2];
    ck_assert_int_eq(npy_parse(file, size, &npy, &e), 0);
    npy_copy(&npy, file, out);
    ck_assert_uint_eq(out[0], 0x00010203);
    ck_assert_uint_eq(out[1], 0xfffefdfc);
    free(file);
}
END_TEST

START_TEST(fortran_order_is_transposed)
{
    /* element (i, j, k) of a 2 x 3 x 4 array has the value 100 i + 10 j + k */
    uint8_t data[24], out[24];
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned j = 0; j < 3; j++) {
            for (unsigned k = 0; k < 4; k++) {
                data[i + 2 * j + 6 * k] = (uint8_t)(100 * i + 10 * j + k);
            }
        }
    }
    size_t size;
    unsigned char *file = make("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 4), }",
                               data, sizeof data, &size);
    struct npy npy;
    struct ctl_err e;
    ck_assert_int_eq(npy_parse(file, size, &npy, &e), 0);
    npy_copy(&npy, file, out);
    for (unsigned i = 0; i < 24; i++) {
        ck_assert_uint_eq(out[i], 100 * (i / 12) + 10 * (i / 4 % 3) + i % 4);
    }
    free(file);
}
END_TEST

START_TEST(what_is_written_is_read)
{
    static const gpud_shape shapes[] = {
        {GPUD_I8, 1, {5}},
        {GPUD_F16, 1, {0}},
        {GPUD_U64, 2, {1, 2}},
        {GPUD_F64, 4, {2, 1, 3, 1}},
        {GPUD_U16, 4, {0, UINT32_MAX, 65536, 2}},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        uint64_t bytes = gpud_shape_bytes(shapes[i]);
        char *file = calloc(1, NPY_WRITE_MAX + bytes);
        ck_assert_ptr_nonnull(file);
        size_t header = npy_write_header(shapes[i], file);
        ck_assert_uint_eq(header % 64, 0);
        struct npy npy;
        struct ctl_err e;
        ck_assert_int_eq(npy_parse(file, header + bytes, &npy, &e), 0);
        ck_assert_uint_eq(npy.shape.dtype, shapes[i].dtype);
        ck_assert_uint_eq(npy.shape.ndim, shapes[i].ndim);
        ck_assert_mem_eq(npy.shape.dim, shapes[i].dim, shapes[i].ndim * sizeof(uint64_t));
        free(file);
    }
}
END_TEST

SUITE_MAIN("npy", golden_file_is_read, golden_header_is_written, every_truncation_is_refused,
           data_behind_the_array_is_refused, every_mutation_is_survived, all_types_are_read,
           other_headers_are_refused, what_other_types_become_is_told,
           no_dimensions_are_one_element, empty_arrays_are_read, versions_2_and_3_have_long_lengths,
           big_endian_is_turned, fortran_order_is_transposed, what_is_written_is_read)
