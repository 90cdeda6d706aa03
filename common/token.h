/*
 * Tokens of clients from other hosts. A token is 256 random bits as 64 hexadecimal digits, so
 * nobody can guess one, and a fast hash hides it well: a slow hash protects words that people
 * choose. The daemon keeps SHA-256 hashes only. Thread: any.
 */
#ifndef COMMON_TOKEN_H
#define COMMON_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/err.h"

#define TOKEN_TEXT_BYTES 65 /* with the NUL */
#define TOKEN_HASH_BYTES 32
#define TOKEN_LINE_BYTES 72 /* "sha256:", 64 digits and the NUL */

struct token_hash {
    uint8_t byte[TOKEN_HASH_BYTES];
};

/* Makes a token of the system's random bytes. ERR_IO. */
int token_make(char ret_text[TOKEN_TEXT_BYTES], struct err *e);
/* ERR_UNSUPPORTED: built without mbedtls. */
int token_hash_of(struct bytes token, struct token_hash *ret_hash, struct err *e);
/* Compares in a time that does not depend on the bytes. */
bool token_hash_equal(const struct token_hash *a, const struct token_hash *b);
/* The line of a tokens file: "sha256:" and 64 digits. */
void token_line(const struct token_hash *hash, char ret_line[TOKEN_LINE_BYTES]);
/* Reads such a line; words after the hash are ignored. ERR_INVALID: it has no hash. */
int token_line_read(const char *line, struct token_hash *ret_hash, struct err *e);

#endif
