/* Texts of compilers, in the same form on all back ends. Pure. Thread: any. */
#ifndef BACKEND_MESSAGES_H
#define BACKEND_MESSAGES_H

#include "common/bytes.h"
#include "common/err.h"

#define BACKEND_FILE_MAX 256u /* bytes, including the terminating NUL */

/* Makes the user's name of a source safe for a #line directive and for terminals. Uses
 * `fallback` if `file` is empty. */
void backend_file_name(const char *file, const char *fallback, char out[BACKEND_FILE_MAX]);
/* A compiler's log as text (malloc'd), followed by the error's text unless the log contains it.
 * NULL: neither exists, or no memory. */
char *backend_log_text(const struct capbuf *log, int rc, const struct err *e);

#endif
