#include "common/token.h"

#include <ctype.h>
#include <string.h>
#include <sys/random.h>

#ifdef GPUD_TLS
#include <mbedtls/sha256.h>
#include <mbedtls/version.h>
#endif

#define RANDOM_BYTES 32
#define PREFIX       "sha256:"

static void hex(const uint8_t *data, size_t size, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        out[2 * i] = digits[data[i] >> 4];
        out[2 * i + 1] = digits[data[i] & 15];
    }
    out[2 * size] = '\0';
}

int token_make(char ret_text[TOKEN_TEXT_BYTES], struct err *e)
{
    uint8_t random[RANDOM_BYTES];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        return err_errno(e, ERR_IO, "random bytes");
    }
    hex(random, sizeof random, ret_text);
    explicit_bzero(random, sizeof random);
    return 0;
}

#ifdef GPUD_TLS
int token_hash_of(struct bytes token, struct token_hash *ret_hash, struct err *e)
{
#if MBEDTLS_VERSION_MAJOR < 3
    int rc = mbedtls_sha256_ret(token.data, token.size, ret_hash->byte, 0);
#else
    int rc = mbedtls_sha256(token.data, token.size, ret_hash->byte, 0);
#endif
    return rc == 0 ? 0 : err_set(e, ERR_INTERNAL, "SHA-256 failed");
}
#else
int token_hash_of(struct bytes token, struct token_hash *ret_hash, struct err *e)
{
    (void)token;
    (void)ret_hash;
    return err_set(e, ERR_UNSUPPORTED, "gpud was built without mbedtls, and so without tokens");
}
#endif

bool token_hash_equal(const struct token_hash *a, const struct token_hash *b)
{
    volatile uint8_t differ = 0; /* volatile: the compiler must not end the loop early */
    for (unsigned i = 0; i < TOKEN_HASH_BYTES; i++) {
        differ = (uint8_t)(differ | (a->byte[i] ^ b->byte[i]));
    }
    return differ == 0;
}

void token_line(const struct token_hash *hash, char ret_line[TOKEN_LINE_BYTES])
{
    memcpy(ret_line, PREFIX, sizeof PREFIX - 1);
    hex(hash->byte, sizeof hash->byte, ret_line + sizeof PREFIX - 1);
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int token_line_read(const char *line, struct token_hash *ret_hash, struct err *e)
{
    struct token_hash hash;
    bool good = strncmp(line, PREFIX, sizeof PREFIX - 1) == 0;
    const char *c = line + (good ? sizeof PREFIX - 1 : 0);
    for (unsigned i = 0; good && i < TOKEN_HASH_BYTES; i++) {
        int high = digit_of(c[0]);
        int low = high >= 0 ? digit_of(c[1]) : -1;
        good = low >= 0;
        hash.byte[i] = (uint8_t)(good ? high * 16 + low : 0);
        c += good ? 2 : 0;
    }
    if (!good || (*c != '\0' && !isspace((unsigned char)*c))) {
        return err_set(e, ERR_INVALID,
                       "not a line of `gpuctl token`: sha256: and 64 hexadecimal digits");
    }
    *ret_hash = hash;
    return 0;
}
