#include "common/base64.h"

#include <stdint.h>

void base64_encode(struct bytes data, char *out)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < data.size; i += 3) {
        uint32_t b = i + 1 < data.size ? data.data[i + 1] : 0;
        uint32_t c = i + 2 < data.size ? data.data[i + 2] : 0;
        uint32_t bits = (uint32_t)data.data[i] << 16 | b << 8 | c;
        *out++ = digit[bits >> 18];
        *out++ = digit[bits >> 12 & 63];
        *out++ = i + 1 < data.size ? digit[bits >> 6 & 63] : '=';
        *out++ = i + 2 < data.size ? digit[bits & 63] : '=';
    }
    *out = '\0';
}

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
