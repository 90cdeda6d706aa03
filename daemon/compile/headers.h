/* A source with the headers put in that came with it. Pure. */
#ifndef COMPILE_HEADERS_H
#define COMPILE_HEADERS_H

#include "common/bytes.h"
#include "common/err.h"
#include "proto/compile.h"

/* Appends the request's source to `out`, each header where it is included: "name" relative to the
 * file that includes it first, then, and <name> only, as it is called. What did not come with the
 * source stays an #include. file: of the source, for #line. ERR_LIMIT, ERR_INVALID, ERR_NOMEM. */
int headers_expand(const struct compile_request *r, const char *file, struct capbuf *out,
                   struct err *e);

#endif
