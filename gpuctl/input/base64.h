/* Base64 (RFC 4648) with padding. Thread: any. */
#ifndef GPUCTL_INPUT_BASE64_H
#define GPUCTL_INPUT_BASE64_H

#include <stdbool.h>
#include <stddef.h>

/* Decodes `size` characters in place. false: they are no base64. */
bool base64_decode(char *text, size_t size, size_t *ret_bytes);

#endif
