/* Checks that apply to sources of all languages. Pure. Thread: any. */
#ifndef COMPILE_SOURCE_H
#define COMPILE_SOURCE_H

#include "common/bytes.h"
#include "common/err.h"

/* Finds directives that include a file. The compiler runs with the rights of the daemon, and its
 * messages would show the file. Directives in comments do not count; directives that are spelled
 * with continued lines, digraphs or trigraphs do.
 *
 * ret_safe: gets the source with an `#error` in place of each `#include` that is written in one
 * piece, so that an #include in a branch that the preprocessor skips does no harm. It stays
 * empty if there is none, and its memory is the caller's. NULL: no #include is allowed, not even
 * in such a branch.
 *
 * ERR_COMPILE with "file:line:column" of a directive that cannot be replaced. */
int source_check(struct bytes source, const char *file, struct capbuf *ret_safe, struct err *e);

#endif
