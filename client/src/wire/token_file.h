/* The token of a client, from the file that $GPUD_TOKEN_FILE names. Blocks on the file. Thread:
 * any. */
#ifndef CLIENT_WIRE_TOKEN_FILE_H
#define CLIENT_WIRE_TOKEN_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "proto/limits.h"

/* Reads a token, without the newline at its end. Refuses a file that every user may read or change:
 * ERR_PERMISSION. ERR_INVALID: empty. ERR_LIMIT, ERR_IO. */
int token_file_read(const char *path, uint8_t ret_token[PROTO_TOKEN_MAX], size_t *ret_size,
                    struct err *e);

#endif
