/* Writes JSON into memory. Texts of clients may have any bytes: those that are not UTF-8 become
 * '?'. A failed append shows in out->failed. */
#ifndef FRONT_RECORD_JSON_H
#define FRONT_RECORD_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"

/* A comma is written in front of a member or element, unless it is the first. */
void json_open(struct capbuf *out, const char *name, char bracket); /* name NULL: no member */
void json_close(struct capbuf *out, char bracket);
void json_text(struct capbuf *out, const char *name, struct bytes text);
void json_str(struct capbuf *out, const char *name, const char *text); /* "": no member */
void json_uint(struct capbuf *out, const char *name, uint64_t value);
void json_int(struct capbuf *out, const char *name, int64_t value);
void json_handle(struct capbuf *out, const char *name, uint64_t value); /* "0x…" */
void json_bool(struct capbuf *out, const char *name, bool value);
void json_base64(struct capbuf *out, const char *name, struct bytes data);

#endif
