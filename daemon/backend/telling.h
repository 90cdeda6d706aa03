/* What compilers tell, alike on every back end. Pure. Thread: any. */
#ifndef BACKEND_TELLING_H
#define BACKEND_TELLING_H

#include "common/bytes.h"
#include "common/err.h"

#define BACKEND_FILE_MAX 256u /* bytes, with the terminating NUL */

/* The user's name of a source, fit for a #line directive and for terminals; `fallback` where there
 * is none. */
void backend_file_name(const char *file, const char *fallback, char out[BACKEND_FILE_MAX]);
/* A compiler's log as text (malloc'd), with the error behind it where the log does not have it;
 * NULL if there is neither or memory is out. */
char *backend_log_text(const struct capbuf *log, int rc, const struct err *e);

#endif
