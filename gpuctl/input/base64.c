#include "gpuctl/input/base64.h"

#include <stdint.h>

static int digit_of(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool base64_decode(char *text, size_t size, size_t *ret_bytes)
{
    unsigned char *out = (unsigned char *)text;
    size_t digits = size;
    uint32_t bits = 0;
    if (size % 4 != 0) {
        return false;
    }
    while (digits > 0 && size - digits < 2 && text[digits - 1] == '=') {
        digits--;
    }
    for (size_t i = 0; i < digits; i++) {
        int d = digit_of(text[i]);
        if (d < 0) {
            return false;
        }
        bits = bits << 6 | (uint32_t)d;
        if (i % 4 > 0) { /* the second to fourth digit each complete a byte */
            *out++ = (unsigned char)(bits >> (6 - 2 * (i % 4)));
        }
    }
    *ret_bytes = (size_t)(out - (unsigned char *)text);
    return true;
}
