/* What a source must not do whatever its language. Pure. Thread: any. */
#ifndef COMPILE_SOURCE_H
#define COMPILE_SOURCE_H

#include "common/bytes.h"
#include "common/err.h"

/* ERR_COMPILE with "file:line:column" if it includes a file: the compiler runs with the rights of
 * the daemon, and what it reads would show in its messages. Directives in comments are none; ones
 * that are spelled with continued lines, digraphs or trigraphs are. */
int source_check(struct bytes source, const char *file, struct err *e);

#endif
