/* Replaces #include directives by the headers that came with the source. Pure. */
#ifndef COMPILE_HEADERS_H
#define COMPILE_HEADERS_H

#include "common/bytes.h"
#include "common/err.h"
#include "proto/compile.h"

/* Appends the request's source to `out`, with each header in place of its #include. "name" is
 * searched relative to the including file first, then, like <name>, as a whole path. An #include
 * of a header that did not come with the source is kept. file: the source's name for #line.
 * ERR_LIMIT, ERR_INVALID, ERR_NOMEM. */
int headers_expand(const struct compile_request *r, const char *file, struct capbuf *out,
                   struct err *e);

#endif
