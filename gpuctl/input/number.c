#include "gpuctl/input/number.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <gpud/gpud.h>

#include "gpuctl/input/half.h"

#define NUMBER_TEXT 64 /* characters of one number */

static int parse_float(int dtype, const char *text, uint64_t *ret_bits, struct ctl_err *e)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end != '\0') {
        return ctl_err_usage(e, "'%s' is no number", text);
    }
    bool overflow = errno == ERANGE && isinf(value);
    uint64_t bits = 0;
    if (dtype == GPUD_F64) {
        memcpy(&bits, &value, sizeof value);
    } else if (dtype == GPUD_F32) {
        float narrow = (float)value;
        overflow = overflow || (isinf(narrow) && !isinf(value));
        memcpy(&bits, &narrow, sizeof narrow);
    } else {
        bits = half_from_double(value);
        overflow = overflow || (isinf(half_to_double((uint16_t)bits)) && !isinf(value));
    }
    if (overflow) {
        return ctl_err_usage(e, "%s is too large for %s", text, gpud_dtype_name(dtype));
    }
    *ret_bits = bits;
    return 0;
}

static bool is_signed(int dtype)
{
    return dtype == GPUD_I8 || dtype == GPUD_I16 || dtype == GPUD_I32 || dtype == GPUD_I64;
}

static int parse_integer(int dtype, const char *text, uint64_t *ret_bits, struct ctl_err *e)
{
    bool negative = text[0] == '-';
    const char *digits = text + (negative || text[0] == '+' ? 1 : 0);
    int base = strncmp(digits, "0x", 2) == 0 ? 16 : 10;
    /* strtoull would accept blanks and a second sign here. */
    if (strspn(digits, "0123456789abcdefABCDEFx") != strlen(digits) || digits[0] == '\0') {
        return ctl_err_usage(e, "'%s' is no whole number", text);
    }
    char *end;
    errno = 0;
    uint64_t size = strtoull(digits, &end, base);
    if (*end != '\0') {
        return ctl_err_usage(e, "'%s' is no whole number", text);
    }
    unsigned width = 8 * (unsigned)gpud_dtype_size(dtype);
    uint64_t top = width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
    uint64_t max = is_signed(dtype) ? top / 2 + (negative ? 1 : 0) : negative ? 0 : top;
    if (errno == ERANGE || size > max) {
        return ctl_err_usage(e, "%s does not fit into %s", text, gpud_dtype_name(dtype));
    }
    *ret_bits = (negative ? 0 - size : size) & top;
    return 0;
}

static int type_unknown(const char *text, struct ctl_err *e)
{
    uint64_t bits;
    struct ctl_err ignored;
    const char *whole = parse_integer(GPUD_I64, text, &bits, &ignored) == 0 ? "i32" : "f64";
    return ctl_err_usage(e, "the type of %s is not known: write f32:%s or %s:%s", text, text, whole,
                         text);
}

int spec_scalar(int dtype, const char *text, uint64_t *ret_bits, struct ctl_err *e)
{
    switch (dtype) {
    case GPUD_F16:
    case GPUD_F32:
    case GPUD_F64:
        return parse_float(dtype, text, ret_bits, e);
    case GPUD_NONE:
        return type_unknown(text, e);
    default:
        return parse_integer(dtype, text, ret_bits, e);
    }
}

uint64_t spec_list_count(const char *text)
{
    if (text[0] == '\0') {
        return 0;
    }
    uint64_t count = 1;
    for (; *text != '\0'; text++) {
        count += *text == ',';
    }
    return count;
}

int spec_list(int dtype, const char *text, uint64_t count, void *out, struct ctl_err *e)
{
    size_t size = gpud_dtype_size(dtype);
    unsigned char *to = out;
    const char *at = text;
    for (uint64_t i = 0; i < count; i++) {
        size_t length = strcspn(at, ",");
        char word[NUMBER_TEXT];
        if (length >= sizeof word) {
            return ctl_err_usage(e, "element %" PRIu64 " is too long for a number", i);
        }
        memcpy(word, at, length);
        word[length] = '\0';
        uint64_t bits = 0;
        int rc = spec_scalar(dtype, word, &bits, e);
        if (rc != 0) {
            return ctl_err_wrap(e, "element %" PRIu64, i);
        }
        memcpy(to + i * size, &bits, size);
        at += length + (at[length] == ',' ? 1 : 0);
    }
    return 0;
}
