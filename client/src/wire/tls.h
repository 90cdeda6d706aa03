/*
 * TLS 1.2 by mbedtls over the client's own non-blocking socket: no thread, no descriptor, no state
 * of the process. The daemon's certificate and name are always verified. A child of fork only frees
 * it: nothing is sent at the end, as the stream belongs to the parent.
 *
 * Thread: one at a time. Only tls_create and tls_begin block, on files. Without mbedtls tls_create
 * is ERR_UNSUPPORTED.
 */
#ifndef CLIENT_WIRE_TLS_H
#define CLIENT_WIRE_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "client/src/wire/tls_names.h"
#include "common/err.h"

struct tls;

/* ERR_INVALID: a file without what it should hold. ERR_IO, ERR_NOMEM, ERR_UNSUPPORTED. */
int tls_create(const struct tls_names *names, struct tls **ret_tls, struct err *e);
void tls_destroy(struct tls *t); /* NULL is accepted */
/* Forgets the former connection and begins on this socket, which is not owned. Reads the files
 * again: a certificate may have been replaced since. */
int tls_begin(struct tls *t, int fd, struct err *e);

/* What a call waits for. */
enum tls_wait { TLS_DONE, TLS_WAITS_READ, TLS_WAITS_WRITE };

/* Continues the handshake. ERR_PERMISSION: the daemon's certificate is not good, or it refuses the
 * client's. ERR_PROTOCOL: the other side speaks no TLS. ERR_CONNECT. */
int tls_handshake(struct tls *t, enum tls_wait *ret_wait, struct err *e);
/* Writes the first bytes of the parts. TLS_DONE: *ret_size were taken. Otherwise none were, and the
 * next call must have the same bytes first. */
int tls_write(struct tls *t, const struct iovec *iov, size_t count, size_t *ret_size,
              enum tls_wait *ret_wait, struct err *e);
/* Reads at most `room` bytes; 0: the daemon closed the connection. There may be more until a call
 * waits. */
int tls_read(struct tls *t, void *data, size_t room, size_t *ret_size, enum tls_wait *ret_wait,
             struct err *e);

#endif
