/*
 * Parses the values of `gpuctl run --arg`, --save and sizes into structs. Pure: opens no files.
 * Texts in the results point into the parsed text.
 *
 *   [NAME=]i32:7            a scalar with its type
 *   [NAME=]2.5              a scalar whose type the kernel gives
 *   [NAME=]f32:1,2,3,4      a vector (or struct of equal members) by value
 *   [NAME=]bytes:@FILE      a struct by value: the file's bytes, "-" is stdin
 *   [NAME=]local:BYTES      local (shared) memory
 *   [NAME=]ACCESS:[/VIEW]%name     a published buffer
 *   [NAME=]ACCESS[:DTYPE[+raw][:DIMS]][@FILE]     an array from a .npy or raw file, "-" is stdin
 *   (DTYPE/VIEW in place of DTYPE: the kernel sees the array's bytes as elements of type VIEW)
 *   [NAME=]ACCESS:DTYPE[:DIMS]=1,2,3              an array written out
 *   [NAME=]out:DTYPE:DIMS, inout:DTYPE:DIMS       undefined content; zeros
 */
#ifndef GPUCTL_INPUT_SPEC_H
#define GPUCTL_INPUT_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gpud/gpud.h>

#include "gpuctl/base/ctl_err.h"

#define SPEC_LIST_MAX   (1u << 20) /* elements of a list on the command line */
#define SPEC_VECTOR_MAX 128u       /* elements of a value */
#define SPEC_BYTES_MAX  1024u      /* of a value, the library's limit */

enum spec_kind {
    SPEC_SCALAR = 1,
    SPEC_ARRAY = 2,
    SPEC_LOCAL = 3,
    SPEC_PUBLISHED = 4,
    SPEC_VECTOR = 5,
    SPEC_BYTES = 6,
};

struct spec {
    char name[GPUD_NAME]; /* "": by position */
    enum spec_kind kind;
    int access; /* enum gpud_access; arrays and published buffers */
    int dtype;  /* GPUD_NONE: not given */
    int view; /* arrays and published buffers: the type that the kernel sees; GPUD_NONE: its own */
    gpud_shape shape; /* ndim 0: not given */
    bool raw;         /* the file has no header */
    const char
        *text; /* a scalar's number, a vector's or array's list, a published name; else NULL */
    const char *file; /* array: NULL if there is none; bytes */
    uint64_t bytes;   /* local */
};

int spec_parse(const char *text, struct spec *ret_spec, struct ctl_err *e);

/* Parses dimensions such as "1024x16", at most GPUD_MAX_DIMS. */
int spec_dims(const char *text, size_t length, gpud_shape *ret_shape, struct ctl_err *e);
/* "X[,Y[,Z]]"; each 1 to 2^62; missing ones are 1. */
int spec_grid(const char *text, uint64_t ret_size[3], struct ctl_err *e);
/* A whole number of at least `min` and at most `max`; words name the option in the error. */
int spec_number(const char *words, const char *text, uint64_t min, uint64_t max,
                uint64_t *ret_number, struct ctl_err *e);
/* The same for bytes: a suffix K, M, G or T multiplies by 1024 once to four times. */
int spec_size(const char *words, const char *text, uint64_t min, uint64_t max, uint64_t *ret_bytes,
              struct ctl_err *e);

struct spec_save {
    char name[GPUD_NAME]; /* "": by index */
    uint32_t index;
    bool raw;
    const char *file;
};
int spec_save_parse(const char *text, struct spec_save *ret_save, struct ctl_err *e);

#endif
