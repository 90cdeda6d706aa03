/* Base64 (RFC 4648) with padding. Thread: any. */
#ifndef COMMON_BASE64_H
#define COMMON_BASE64_H

#include <stdbool.h>
#include <stddef.h>

#include "common/bytes.h"

#define BASE64_BYTES(bytes) (((bytes) + 2) / 3 * 4 + 1) /* of the text, with the NUL */

/* out has BASE64_BYTES(data.size) bytes. */
void base64_encode(struct bytes data, char *out);
/* Decodes `size` characters in place. false: they are no base64. */
bool base64_decode(char *text, size_t size, size_t *ret_bytes);

#endif
