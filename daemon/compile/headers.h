/* Puts the headers that came with a source into it. Pure. */
#ifndef COMPILE_HEADERS_H
#define COMPILE_HEADERS_H

#include "common/bytes.h"
#include "common/err.h"
#include "proto/compile.h"

/* Appends the request's source to `out`, each header where it is included. "name" is first looked
 * up relative to the including file, then, as <name> is, by the whole name. An #include of a header
 * that did not come with the source is kept. file: the source's name for #line. ERR_LIMIT,
 * ERR_INVALID, ERR_NOMEM. */
int headers_expand(const struct compile_request *r, const char *file, struct capbuf *out,
                   struct err *e);

#endif
