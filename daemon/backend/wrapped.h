/*
 * A module as gpud keeps it: a head that says which back end made it, for which architecture, and
 * the checksum of the rest; then what is the back end's. Drivers accept damaged binaries and crash
 * later, so none sees one that was not checked. Pure. Thread: any.
 */
#ifndef BACKEND_WRAPPED_H
#define BACKEND_WRAPPED_H

#include "common/bytes.h"
#include "daemon/backend/backend.h"

/* Fills ret->binary (malloc'd) and ret->binary_size from two pieces, one after the other. `magic`
 * names back end and layout, at most 7 characters. ERR_NOMEM. */
int backend_wrap(const char *magic, const char *arch, struct bytes first, struct bytes second,
                 struct backend_compiled *ret, struct err *e);
/* A view of what follows the head. ERR_INVALID where the binary is none of `magic`'s, damaged, or
 * for another architecture; `name` is the back end's, for the text. */
int backend_unwrap(const char *magic, const char *name, const char *arch, struct bytes binary,
                   struct bytes *ret_rest, struct err *e);

#endif
