/*
 * A source with headers put in where it includes them, for compilers that read no files. #line says
 * where each text came from; #pragma once is kept. Where a header comes from is the caller's.
 * Pure but for what `find` does. Thread: any.
 */
#ifndef COMMON_INCLUDE_H
#define COMMON_INCLUDE_H

#include "common/bytes.h"
#include "common/err.h"

#define INCLUDE_NAME_MAX 1000u /* bytes of a name in a directive */

struct include_header {
    unsigned number;   /* tells headers apart */
    const char *path;  /* for what it includes itself, and for messages */
    struct bytes text; /* like `path` valid until the expansion ends */
};

/* The header that the text `from` (a path) includes as "name" or, with `angle`, <name>.
 * ERR_NOT_FOUND: the directive stays as it is. */
typedef int (*include_find_fn)(void *data, const char *from, const char *name, bool angle,
                               struct include_header *ret_header, struct err *e);

/* Appends the source with its headers to `out`, whose limit holds (ERR_LIMIT). ret_any: there was
 * one. path: of the source. ERR_INVALID: a header without a guard includes itself. */
int include_expand(const char *path, struct bytes source, include_find_fn find, void *data,
                   struct capbuf *out, bool *ret_any, struct err *e);

#endif
