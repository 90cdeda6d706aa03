/* Checks that apply to sources of all languages. Pure. Thread: any. */
#ifndef COMPILE_SOURCE_H
#define COMPILE_SOURCE_H

#include "common/bytes.h"
#include "common/err.h"

/* Finds directives that include a file: the compiler runs with the rights of the daemon, and its
 * messages would show the file. Directives in comments do not count; directives that are
 * spelled with continued lines, digraphs or trigraphs do.
 *
 * ret_safe (NULL: none may be left in a branch that the preprocessor leaves out, either): gets the
 * source with each `#include` that is written in one piece as an `#error` that says so, and nothing
 * if there is none. Its memory is the caller's.
 *
 * ERR_COMPILE with "file:line:column" of a directive that cannot be left to the compiler. */
int source_check(struct bytes source, const char *file, struct capbuf *ret_safe, struct err *e);

#endif
