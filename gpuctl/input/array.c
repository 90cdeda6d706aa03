#include "gpuctl/input/array.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuctl/input/half.h"
#include "gpuctl/input/npy.h"
#include "gpuctl/input/number.h"

int array_create(gpud_shape shape, struct array *ret_array, struct ctl_err *e)
{
    uint64_t bytes = gpud_shape_bytes(shape);
    if (bytes > ARRAY_BYTES_MAX) {
        return ctl_err_set(e, GPUD_ERR_LIMIT, "an array of %" PRIu64 " bytes is too large", bytes);
    }
    void *data = bytes > 0 ? calloc(1, bytes) : NULL;
    if (bytes > 0 && data == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "no memory for %" PRIu64 " bytes", bytes);
    }
    *ret_array = (struct array){.shape = shape, .data = data};
    return 0;
}

void array_finish(struct array *array)
{
    free(array->data);
    *array = (struct array){0};
}

/* Gives the array the shape from the command line, whose count must be the data's. */
static int reshape(const struct spec *spec, struct array *array, struct ctl_err *e)
{
    if (spec->shape.ndim == 0) {
        return 0;
    }
    uint64_t want = gpud_shape_count(spec->shape);
    uint64_t have = gpud_shape_count(array->shape);
    if (want != have) {
        return ctl_err_set(e, GPUD_ERR_ARG_SHAPE, "%" PRIu64 " elements, the size says %" PRIu64,
                           have, want);
    }
    array->shape = spec->shape;
    return 0;
}

/* Makes an array of a .npy file; uses the file's memory if no element needs conversion. */
static int take_npy(const struct npy *npy, struct file *file, struct array *ret_array,
                    struct ctl_err *e)
{
    uint64_t bytes = gpud_shape_bytes(npy->shape);
    if (npy->swap || npy->fortran || bytes == 0) {
        int rc = array_create(npy->shape, ret_array, e);
        if (rc == 0) {
            npy_copy(npy, file->data, ret_array->data);
        }
        return rc;
    }
    memmove(file->data, (const char *)file->data + npy->data_at, bytes);
    *ret_array = (struct array){.shape = npy->shape, .data = file->data};
    file->data = NULL;
    return 0;
}

static int from_npy(const struct spec *spec, struct file *file, struct array *ret_array,
                    struct ctl_err *e)
{
    struct npy npy;
    int rc = npy_parse(file->data, file->size, &npy, e);
    if (rc != 0) {
        return rc;
    }
    if (spec->dtype != GPUD_NONE && spec->dtype != (int)npy.shape.dtype) {
        return ctl_err_set(e, GPUD_ERR_ARG_TYPE, "the file has %s, not %s",
                           gpud_dtype_name((int)npy.shape.dtype), gpud_dtype_name(spec->dtype));
    }
    struct array array;
    rc = take_npy(&npy, file, &array, e);
    if (rc != 0) {
        return rc;
    }
    rc = reshape(spec, &array, e);
    if (rc != 0) {
        array_finish(&array);
        return rc;
    }
    *ret_array = array;
    return 0;
}

static int from_raw(const struct spec *spec, struct file *file, struct array *ret_array,
                    struct ctl_err *e)
{
    size_t size = gpud_dtype_size(spec->dtype);
    gpud_shape shape =
        spec->shape.ndim > 0 ? spec->shape : gpud_shape_1d(spec->dtype, file->size / size);
    if (gpud_shape_bytes(shape) != file->size) {
        return ctl_err_set(
            e, GPUD_ERR_ARG_SHAPE, "the file has %zu bytes, %" PRIu64 " are needed", file->size,
            spec->shape.ndim > 0 ? gpud_shape_bytes(shape) : gpud_shape_bytes(shape) + size);
    }
    if (file->size == 0) {
        return array_create(shape, ret_array, e);
    }
    *ret_array = (struct array){.shape = shape, .data = file->data};
    file->data = NULL;
    return 0;
}

static size_t least(uint64_t a, size_t b)
{
    return a < b ? (size_t)a : b;
}

static int from_file(const struct spec *spec, struct file_limit limit, struct array *ret_array,
                     struct ctl_err *e)
{
    struct file file;
    uint64_t most = spec->raw && spec->shape.ndim > 0 ? gpud_shape_bytes(spec->shape) : UINT64_MAX;
    struct file_limit less = {limit.file, least(most, limit.stream)};
    int rc = file_load(spec->file, less, &file, e);
    if (rc == GPUD_ERR_LIMIT && most < limit.stream) {
        return ctl_err_set(e, GPUD_ERR_ARG_SHAPE, "%s, as the size says", e->text);
    }
    if (rc == GPUD_ERR_LIMIT) {
        return ctl_err_set(e, rc, "%s (--max-input SIZE allows more)", e->text);
    }
    if (rc != 0) {
        return rc;
    }
    rc = spec->raw ? from_raw(spec, &file, ret_array, e) : from_npy(spec, &file, ret_array, e);
    if (rc != 0) {
        ctl_err_wrap(e, "%s", spec->file);
    }
    file_finish(&file);
    return rc;
}

static int from_list(const struct spec *spec, struct array *ret_array, struct ctl_err *e)
{
    uint64_t count = spec_list_count(spec->text);
    if (count > SPEC_LIST_MAX) {
        return ctl_err_usage(e, "a list of more than %u elements", SPEC_LIST_MAX);
    }
    struct array array;
    int rc = array_create(gpud_shape_1d(spec->dtype, count), &array, e);
    if (rc != 0) {
        return rc;
    }
    rc = spec_list(spec->dtype, spec->text, count, array.data, e);
    if (rc == 0) {
        rc = reshape(spec, &array, e);
    }
    if (rc != 0) {
        array_finish(&array);
        return rc;
    }
    *ret_array = array;
    return 0;
}

int array_load(const struct spec *spec, struct file_limit limit, struct array *ret_array,
               struct ctl_err *e)
{
    if (spec->file != NULL) {
        return from_file(spec, limit, ret_array, e);
    }
    if (spec->text != NULL) {
        return from_list(spec, ret_array, e);
    }
    return array_create(spec->shape, ret_array, e);
}

int array_save(const struct array *array, struct save *save, bool raw, struct ctl_err *e)
{
    char header[NPY_WRITE_MAX];
    struct save_part parts[2] = {
        {header, raw ? 0 : npy_write_header(array->shape, header)},
        {array->data, gpud_shape_bytes(array->shape)},
    };
    return save_commit(save, parts, 2, e);
}

static double float_at(int dtype, const unsigned char *at)
{
    double wide = 0;
    float single = 0;
    uint16_t half = 0;
    switch (dtype) {
    case GPUD_F64:
        memcpy(&wide, at, sizeof wide);
        return wide;
    case GPUD_F32:
        memcpy(&single, at, sizeof single);
        return (double)single;
    default:
        memcpy(&half, at, sizeof half);
        return half_to_double(half);
    }
}

static void element_text(int dtype, const unsigned char *at, char *out, size_t size)
{
    if (dtype == GPUD_F16 || dtype == GPUD_F32 || dtype == GPUD_F64) {
        snprintf(out, size, "%.*g",
                 dtype == GPUD_F64   ? 15
                 : dtype == GPUD_F32 ? 7
                                     : 4,
                 float_at(dtype, at));
        return;
    }
    size_t bytes = gpud_dtype_size(dtype);
    uint64_t bits = 0;
    memcpy(&bits, at, bytes);
    bool is_signed = gpud_dtype_name(dtype)[0] == 'i';
    if (is_signed && bytes < 8 && (bits >> (8 * bytes - 1) & 1) != 0) {
        bits |= UINT64_MAX << (8 * bytes);
    }
    if (is_signed) {
        snprintf(out, size, "%" PRId64, (int64_t)bits);
    } else {
        snprintf(out, size, "%" PRIu64, bits);
    }
}

void array_text(const struct array *array, unsigned elements, char *out, size_t size)
{
    int dtype = (int)array->shape.dtype;
    uint64_t count = gpud_shape_count(array->shape);
    const unsigned char *at = array->data;
    size_t used = 0;
    out[0] = '\0';
    for (uint64_t i = 0; i < count && i < elements; i++, at += gpud_dtype_size(dtype)) {
        char word[40];
        element_text(dtype, at, word, sizeof word);
        int more = snprintf(out + used, size - used, "%s%s", i > 0 ? " " : "", word);
        if (more < 0 || (size_t)more >= size - used) {
            out[used] = '\0';
            count = UINT64_MAX;
            break;
        }
        used += (size_t)more;
    }
    if (count > elements && used + 5 < size) {
        snprintf(out + used, size - used, " ...");
    }
}
