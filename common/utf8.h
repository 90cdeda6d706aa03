/* UTF-8 as in RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef COMMON_UTF8_H
#define COMMON_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bytes.h"

/* Bytes of the first character of the text; 0: it is malformed, or longer than `left` bytes. */
size_t utf8_size(const uint8_t *text, size_t left);
bool utf8_valid(struct bytes text);
/* Replaces each byte that is not part of valid UTF-8 by '?'. */
void utf8_mend(char *text, size_t size);

#endif
