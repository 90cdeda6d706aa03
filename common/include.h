/*
 * Inserts headers into a source where it includes them, for compilers that read no files. #line
 * names the origin of each text, and #pragma once is obeyed. The caller's `find` provides headers.
 * Pure except for `find`. Thread: any.
 */
#ifndef COMMON_INCLUDE_H
#define COMMON_INCLUDE_H

#include "common/bytes.h"
#include "common/err.h"

#define INCLUDE_NAME_MAX 1000u /* bytes of a name in a directive */

struct include_header {
    unsigned number;   /* identifies the header */
    const char *path;  /* for its own #include directives, and for messages */
    struct bytes text; /* valid, as `path` is, until the expansion ends */
};

/* The header that the text `from` (a path) includes as "name" or, with `angle`, <name>.
 * ERR_NOT_FOUND: the directive is not changed. */
typedef int (*include_find_fn)(void *data, const char *from, const char *name, bool angle,
                               struct include_header *ret_header, struct err *e);

/* Appends the source with its headers to `out`. path: the source's. ret_any: whether a header was
 * found. ERR_LIMIT: `out` is full, or headers include headers too deeply; ERR_INVALID: a header
 * without a guard includes itself. */
int include_expand(const char *path, struct bytes source, include_find_fn find, void *data,
                   struct capbuf *out, bool *ret_any, struct err *e);

#endif
