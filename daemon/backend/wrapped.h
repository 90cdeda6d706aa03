/*
 * The form in which gpud keeps a module: a head with the back end, the architecture and the
 * checksum of the rest, then the bytes of the back end. Drivers accept damaged binaries and crash
 * later, so each binary is checked before a driver gets it. Pure. Thread: any.
 */
#ifndef BACKEND_WRAPPED_H
#define BACKEND_WRAPPED_H

#include "common/bytes.h"
#include "daemon/backend/backend.h"

/* Fills in ret->binary (malloc'd) and ret->binary_size from two pieces, one after the other.
 * `magic` identifies back end and layout, at most 7 characters. ERR_NOMEM. */
int backend_wrap(const char *magic, const char *arch, struct bytes first, struct bytes second,
                 struct backend_compiled *ret, struct err *e);
/* *ret_rest: the bytes behind the head, inside `binary`. ERR_INVALID: the binary does not have
 * `magic`, is damaged, or is for another architecture. name: the back end's, for the error's
 * text. */
int backend_unwrap(const char *magic, const char *name, const char *arch, struct bytes binary,
                   struct bytes *ret_rest, struct err *e);

#endif
