/*
 * Watches when the certificates for clients of other hosts end. Nothing else would tell: the daemon
 * goes on with an expired one, and only such clients notice. Thread: the loop's.
 */
#ifndef FRONT_VIEWS_CERTIFICATE_H
#define FRONT_VIEWS_CERTIFICATE_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/front/model/front.h"

/* Says in one sentence that a certificate has expired; false: none has. */
bool certificate_expired(const struct front *f, char *out, size_t size);
/* Says in one sentence that a certificate expires within TLS_WARN_DAYS; false: none does. */
bool certificate_expires(const struct front *f, char *out, size_t size);
/* Logs one of the two, once a day. Returns whether it did. */
bool certificate_watch(struct front *f, uint64_t now_ns);

#endif
