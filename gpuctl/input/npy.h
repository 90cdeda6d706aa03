/*
 * Parses and writes headers of NumPy's file format for arrays, versions 1 to 3. Pure: works on
 * memory, opens no files. Types: the integers of 1 to 8 bytes, f2, f4, f8 and b1 (as u8), little or
 * big endian. Other types are refused.
 */
#ifndef GPUCTL_INPUT_NPY_H
#define GPUCTL_INPUT_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gpud/gpud.h>

#include "gpuctl/base/ctl_err.h"

#define NPY_HEADER_MAX 65536u /* bytes of the longest header that is accepted */
#define NPY_WRITE_MAX  256u   /* bytes of a header that npy_write_header makes */

struct npy {
    gpud_shape shape; /* 0 dimensions in the file are one element here */
    bool swap;        /* the file's byte order is not this machine's */
    bool fortran;     /* the first dimension varies fastest */
    size_t data_at;   /* bytes before the data */
};

/* Reads the header at the start of a file of `size` bytes. Checks that the file has exactly the
 * data that the header announces. GPUD_ERR_INVALID or UNSUPPORTED. */
int npy_parse(const void *file, size_t size, struct npy *ret_npy, struct ctl_err *e);

/* Copies the data to `out` in this machine's byte order with the last dimension varying fastest.
 * out: gpud_shape_bytes(npy->shape) bytes, which do not overlap the file. */
void npy_copy(const struct npy *npy, const void *file, void *out);

/* Writes a version 1 header. Returns its length, a multiple of 64. */
size_t npy_write_header(gpud_shape shape, char ret_header[NPY_WRITE_MAX]);

#endif
