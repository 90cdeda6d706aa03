/* Texts of compilers, alike on all back ends. Pure. Thread: any. */
#ifndef BACKEND_MESSAGES_H
#define BACKEND_MESSAGES_H

#include "common/bytes.h"
#include "common/err.h"

#define BACKEND_FILE_MAX 256u /* bytes, with the terminating NUL */

/* The user's name of a source, safe in a #line directive and on terminals; `fallback` where `file`
 * is empty. */
void backend_file_name(const char *file, const char *fallback, char out[BACKEND_FILE_MAX]);
/* A compiler's log as text (malloc'd), followed by the error unless the log has it. NULL: there is
 * neither, or no memory. */
char *backend_log_text(const struct capbuf *log, int rc, const struct err *e);

#endif
