/*
 * Copies texts and structs to the caller's memory, and mends texts from the caller.
 * Thread: any, no lock needed.
 */
#ifndef CLIENT_BASE_TEXT_H
#define CLIENT_BASE_TEXT_H

#include "common/err.h"
#include "proto/codec.h"

/* Copies a text to out[size], terminated, cut before a character that does not fit. */
void text_copy(char *out, size_t size, struct bytes text);
/* A label or name as the daemon takes it: bytes that are not UTF-8 become '?', in `room`. A text
 * that is too long is returned unchanged; the daemon refuses it. */
struct bytes text_mended(struct bytes text, char room[PROTO_LABEL_MAX]);

/* Copies a struct to the caller's, up to the size in the caller's `size` member, which remains.
 * INVALID for an impossible size. */
int desc_return(void *ret_desc, const void *desc, size_t size, struct err *e);

#endif
