/*
 * Errors and texts as the public header has them. Thread: any, no lock needed; the last error is
 * the thread's own.
 */
#ifndef CLIENT_SESSION_ERROR_H
#define CLIENT_SESSION_ERROR_H

#include "client/include/gpud/gpud.h"
#include "common/err.h"
#include "proto/codec.h"

/* Makes `rc` and `e` this thread's last error if rc is a failure. Returns rc. */
int error_report(int rc, const struct err *e);
void error_restore(const gpud_error *kept);
void error_fill(gpud_error *ret_error, const struct err *e);

/* Copies text into out[size], cut where it does not fit. */
void text_copy(char *out, size_t size, struct bytes text);
/* A text that only tells people something, as the daemon takes it: bytes that are no UTF-8 become
 * '?', in `room`. One that is too long stays as it is. */
struct bytes text_mended(struct bytes text, char room[PROTO_LABEL_MAX]);

/* Copies the caller's struct back as far as the caller knows it: its `size` member stays. */
int desc_return(void *ret_desc, const void *desc, size_t size, struct err *e);

#endif
