/* Asks an HTTP server of this host for a text. Thread: one. */
#ifndef GPUCTL_BASE_HTTP_H
#define GPUCTL_BASE_HTTP_H

#include <stddef.h>
#include <stdint.h>

#include "gpuctl/base/ctl_err.h"

/* GET path at address, which is unix:PATH, or a numeric host (or localhost) with a port. Returns 0
 * and the body, which the caller frees, terminated. CONNECT: nothing serves there. PERMISSION: the
 * user may not use that socket. TIMEOUT: its answer was not complete within `ns`. IO: another
 * status than 200, whose body is in the text, or an answer that is cut off. Blocks. */
int http_get(const char *address, const char *path, const char *accept, uint64_t ns,
             char **ret_body, size_t *ret_size, struct ctl_err *e);

#endif
