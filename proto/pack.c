#include "proto/pack.h"

#include <endian.h>
#include <string.h>

/* First bytes of values. */
enum {
    LEAD_FIXMAP = 0x80,
    LEAD_FIXARRAY = 0x90,
    LEAD_FIXSTR = 0xa0,
    LEAD_NIL = PACK_NIL,
    LEAD_UNUSED = 0xc1,
    LEAD_FALSE = 0xc2,
    LEAD_BIN8 = 0xc4,
    LEAD_BIN16 = 0xc5,
    LEAD_BIN32 = 0xc6,
    LEAD_EXT8 = 0xc7,
    LEAD_U8 = 0xcc,
    LEAD_U16 = 0xcd,
    LEAD_U32 = 0xce,
    LEAD_U64 = 0xcf,
    LEAD_I8 = 0xd0,
    LEAD_I16 = 0xd1,
    LEAD_I32 = 0xd2,
    LEAD_I64 = 0xd3,
    LEAD_STR8 = 0xd9,
    LEAD_STR16 = 0xda,
    LEAD_STR32 = 0xdb,
    LEAD_ARRAY16 = 0xdc,
    LEAD_ARRAY32 = 0xdd,
    LEAD_MAP16 = 0xde,
    LEAD_MAP32 = 0xdf,
    LEAD_FIXNEG = 0xe0,
};

static size_t left(const struct cursor *c)
{
    return (size_t)(c->end - c->at);
}

static uint64_t big_endian(const uint8_t *at, size_t width)
{
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (width) {
    case 1:
        return *at;
    case 2:
        memcpy(&two, at, sizeof two);
        return be16toh(two);
    case 4:
        memcpy(&four, at, sizeof four);
        return be32toh(four);
    case 8:
        memcpy(&eight, at, sizeof eight);
        return be64toh(eight);
    default:
        return 0;
    }
}

/* Reads the lead byte and the number of `width` bytes after it. */
static enum pack_problem read_number(struct cursor *c, size_t width, uint64_t *ret_value)
{
    if (left(c) < 1 + width) {
        return PACK_CUT;
    }
    *ret_value = big_endian(c->at + 1, width);
    c->at += 1 + width;
    return PACK_OK;
}

/* As read_number, for a signed format: `ret_value` in two's complement. */
static enum pack_problem read_signed(struct cursor *c, size_t width, uint64_t *ret_value)
{
    uint64_t value = 0;
    enum pack_problem problem = read_number(c, width, &value);
    if (problem == PACK_OK) {
        uint64_t sign = UINT64_C(1) << (8 * width - 1);
        *ret_value = (value ^ sign) - sign;
    }
    return problem;
}

/* Reads any integer. *ret_negative: *ret_value is the two's complement of a negative number. */
static enum pack_problem read_integer(struct cursor *c, uint64_t *ret_value, bool *ret_negative)
{
    if (c->at == c->end) {
        return PACK_CUT;
    }
    uint8_t lead = *c->at;
    if (lead < LEAD_FIXMAP) {
        c->at++;
        *ret_value = lead;
        *ret_negative = false;
        return PACK_OK;
    }
    if (lead >= LEAD_FIXNEG) {
        c->at++;
        *ret_value = (uint64_t)(int64_t)(int8_t)lead;
        *ret_negative = true;
        return PACK_OK;
    }
    if (lead >= LEAD_U8 && lead <= LEAD_U64) {
        *ret_negative = false;
        return read_number(c, (size_t)1 << (lead - LEAD_U8), ret_value);
    }
    if (lead >= LEAD_I8 && lead <= LEAD_I64) {
        enum pack_problem problem = read_signed(c, (size_t)1 << (lead - LEAD_I8), ret_value);
        *ret_negative = problem == PACK_OK && (int64_t)*ret_value < 0;
        return problem;
    }
    return PACK_TYPE;
}

enum pack_problem pack_read_uint(struct cursor *c, uint64_t *ret_value)
{
    if (c->at < c->end && *c->at >= LEAD_U8 && *c->at <= LEAD_U64) { /* the usual case */
        return read_number(c, (size_t)1 << (*c->at - LEAD_U8), ret_value);
    }
    struct cursor start = *c;
    uint64_t value = 0;
    bool negative = false;
    enum pack_problem problem = read_integer(c, &value, &negative);
    if (problem == PACK_OK && negative) {
        *c = start;
        return PACK_RANGE;
    }
    if (problem == PACK_OK) {
        *ret_value = value;
    }
    return problem;
}

enum pack_problem pack_read_int(struct cursor *c, int64_t *ret_value)
{
    struct cursor start = *c;
    uint64_t value = 0;
    bool negative = false;
    enum pack_problem problem = read_integer(c, &value, &negative);
    if (problem == PACK_OK && !negative && value > INT64_MAX) {
        *c = start;
        return PACK_RANGE;
    }
    if (problem == PACK_OK) {
        *ret_value = (int64_t)value;
    }
    return problem;
}

/* Reads the length, `width` bytes after the lead byte, and the content after it. */
static enum pack_problem read_content(struct cursor *c, size_t width, struct bytes *ret_content)
{
    struct cursor probe = *c;
    uint64_t size = 0;
    enum pack_problem problem = read_number(&probe, width, &size);
    if (problem != PACK_OK) {
        return problem;
    }
    if (size > left(&probe)) {
        return PACK_CUT;
    }
    *ret_content = bytes_of(probe.at, (size_t)size);
    c->at = probe.at + size;
    return PACK_OK;
}

enum pack_problem pack_read_text(struct cursor *c, struct bytes *ret_text)
{
    if (c->at == c->end) {
        return PACK_CUT;
    }
    uint8_t lead = *c->at;
    if (lead >= LEAD_FIXSTR && lead < LEAD_NIL) {
        size_t size = lead & 0x1fu;
        if (left(c) < 1 + size) {
            return PACK_CUT;
        }
        *ret_text = bytes_of(c->at + 1, size);
        c->at += 1 + size;
        return PACK_OK;
    }
    if (lead >= LEAD_STR8 && lead <= LEAD_STR32) {
        return read_content(c, (size_t)1 << (lead - LEAD_STR8), ret_text);
    }
    return PACK_TYPE;
}

enum pack_problem pack_read_bin(struct cursor *c, struct bytes *ret_bytes)
{
    if (c->at == c->end) {
        return PACK_CUT;
    }
    uint8_t lead = *c->at;
    if (lead >= LEAD_BIN8 && lead <= LEAD_BIN32) {
        return read_content(c, (size_t)1 << (lead - LEAD_BIN8), ret_bytes);
    }
    return PACK_TYPE;
}

enum pack_problem pack_read_array(struct cursor *c, uint64_t *ret_count)
{
    if (c->at == c->end) {
        return PACK_CUT;
    }
    uint8_t lead = *c->at;
    if (lead >= LEAD_FIXARRAY && lead < LEAD_FIXSTR) {
        c->at++;
        *ret_count = lead & 0x0fu;
        return PACK_OK;
    }
    if (lead == LEAD_ARRAY16 || lead == LEAD_ARRAY32) {
        return read_number(c, lead == LEAD_ARRAY16 ? 2 : 4, ret_count);
    }
    return PACK_TYPE;
}

/* The form of a value after a lead byte of 0xc0 … 0xdf: `width` bytes of length and `fixed` bytes.
 * Then come as many bytes as the length says, or, in an array or map, `nested` values for each unit
 * of the length. */
struct shape_of_value {
    uint8_t width;
    uint8_t fixed;
    uint8_t nested;
};

static const struct shape_of_value values[LEAD_FIXNEG - LEAD_NIL] = {
    [LEAD_BIN8 - LEAD_NIL] = {1, 0, 0},    [LEAD_BIN16 - LEAD_NIL] = {2, 0, 0},
    [LEAD_BIN32 - LEAD_NIL] = {4, 0, 0},   [LEAD_EXT8 - LEAD_NIL] = {1, 1, 0},
    [0xc8 - LEAD_NIL] = {2, 1, 0},         [0xc9 - LEAD_NIL] = {4, 1, 0},
    [0xca - LEAD_NIL] = {0, 4, 0},         [0xcb - LEAD_NIL] = {0, 8, 0},
    [LEAD_U8 - LEAD_NIL] = {0, 1, 0},      [LEAD_U16 - LEAD_NIL] = {0, 2, 0},
    [LEAD_U32 - LEAD_NIL] = {0, 4, 0},     [LEAD_U64 - LEAD_NIL] = {0, 8, 0},
    [LEAD_I8 - LEAD_NIL] = {0, 1, 0},      [LEAD_I16 - LEAD_NIL] = {0, 2, 0},
    [LEAD_I32 - LEAD_NIL] = {0, 4, 0},     [LEAD_I64 - LEAD_NIL] = {0, 8, 0},
    [0xd4 - LEAD_NIL] = {0, 2, 0},         [0xd5 - LEAD_NIL] = {0, 3, 0},
    [0xd6 - LEAD_NIL] = {0, 5, 0},         [0xd7 - LEAD_NIL] = {0, 9, 0},
    [0xd8 - LEAD_NIL] = {0, 17, 0},        [LEAD_STR8 - LEAD_NIL] = {1, 0, 0},
    [LEAD_STR16 - LEAD_NIL] = {2, 0, 0},   [LEAD_STR32 - LEAD_NIL] = {4, 0, 0},
    [LEAD_ARRAY16 - LEAD_NIL] = {2, 0, 1}, [LEAD_ARRAY32 - LEAD_NIL] = {4, 0, 1},
    [LEAD_MAP16 - LEAD_NIL] = {2, 0, 2},   [LEAD_MAP32 - LEAD_NIL] = {4, 0, 2},
};

/* Skips a value up to its nested values, whose number it returns. */
static enum pack_problem skip_flat(struct cursor *c, uint64_t *ret_nested)
{
    if (c->at == c->end) {
        return PACK_CUT;
    }
    uint8_t lead = *c->at;
    *ret_nested = 0;
    if (lead >= LEAD_NIL && lead < LEAD_FIXNEG) {
        if (lead == LEAD_UNUSED) {
            return PACK_TYPE;
        }
        struct shape_of_value value = values[lead - LEAD_NIL];
        uint64_t length = 0;
        enum pack_problem problem = read_number(c, value.width, &length);
        if (problem != PACK_OK) {
            return problem;
        }
        *ret_nested = length * value.nested;
        uint64_t size = value.fixed + (value.nested > 0 ? 0 : length);
        if (size > left(c)) {
            return PACK_CUT;
        }
        c->at += size;
        return PACK_OK;
    }
    size_t size = 1;
    if (lead >= LEAD_FIXSTR && lead < LEAD_NIL) {
        size += lead & 0x1fu;
    } else if (lead >= LEAD_FIXARRAY && lead < LEAD_FIXSTR) {
        *ret_nested = lead & 0x0fu;
    } else if (lead >= LEAD_FIXMAP && lead < LEAD_FIXARRAY) {
        *ret_nested = 2 * (uint64_t)(lead & 0x0fu);
    }
    if (size > left(c)) {
        return PACK_CUT;
    }
    c->at += size;
    return PACK_OK;
}

enum pack_problem pack_skip(struct cursor *c, uint64_t count)
{
    uint64_t open[PACK_DEPTH_MAX + 1] = {count};
    size_t depth = 0;
    while (open[depth] > 0 || depth > 0) {
        if (open[depth] == 0) {
            depth--;
            continue;
        }
        open[depth]--;
        uint64_t nested = 0;
        enum pack_problem problem = skip_flat(c, &nested);
        if (problem != PACK_OK) {
            return problem;
        }
        if (nested > 0) {
            if (depth == PACK_DEPTH_MAX) {
                return PACK_DEPTH;
            }
            open[++depth] = nested;
        }
    }
    return PACK_OK;
}

/* Writes a lead byte and the low `width` bytes of `value`. */
static inline bool write_number(struct capbuf *out, uint8_t lead, uint64_t value, size_t width)
{
    uint8_t *at = capbuf_extend(out, 1 + width);
    if (at == NULL) {
        return false;
    }
    uint16_t two = htobe16((uint16_t)value);
    uint32_t four = htobe32((uint32_t)value);
    uint64_t eight = htobe64(value);
    *at++ = lead;
    switch (width) {
    case 1:
        *at = (uint8_t)value;
        break;
    case 2:
        memcpy(at, &two, sizeof two);
        break;
    case 4:
        memcpy(at, &four, sizeof four);
        break;
    case 8:
        memcpy(at, &eight, sizeof eight);
        break;
    default:
        break;
    }
    return true;
}

bool pack_uint(struct capbuf *out, uint64_t value)
{
    if (value < LEAD_FIXMAP) {
        return write_number(out, (uint8_t)value, 0, 0);
    }
    if (value <= UINT8_MAX) {
        return write_number(out, LEAD_U8, value, 1);
    }
    if (value <= UINT16_MAX) {
        return write_number(out, LEAD_U16, value, 2);
    }
    return value <= UINT32_MAX ? write_number(out, LEAD_U32, value, 4)
                               : write_number(out, LEAD_U64, value, 8);
}

bool pack_int(struct capbuf *out, int64_t value)
{
    uint64_t bits = (uint64_t)value;
    if (value >= 0) {
        return pack_uint(out, bits);
    }
    if (value >= -32) {
        return write_number(out, (uint8_t)bits, 0, 0);
    }
    if (value >= INT8_MIN) {
        return write_number(out, LEAD_I8, bits, 1);
    }
    if (value >= INT16_MIN) {
        return write_number(out, LEAD_I16, bits, 2);
    }
    return value >= INT32_MIN ? write_number(out, LEAD_I32, bits, 4)
                              : write_number(out, LEAD_I64, bits, 8);
}

bool pack_text(struct capbuf *out, struct bytes text)
{
    bool ok = text.size < 32           ? write_number(out, (uint8_t)(LEAD_FIXSTR | text.size), 0, 0)
              : text.size <= UINT8_MAX ? write_number(out, LEAD_STR8, text.size, 1)
              : text.size <= UINT16_MAX ? write_number(out, LEAD_STR16, text.size, 2)
                                        : write_number(out, LEAD_STR32, text.size, 4);
    return ok && capbuf_append(out, text.data, text.size);
}

bool pack_bin(struct capbuf *out, struct bytes bytes)
{
    bool ok = bytes.size <= UINT8_MAX    ? write_number(out, LEAD_BIN8, bytes.size, 1)
              : bytes.size <= UINT16_MAX ? write_number(out, LEAD_BIN16, bytes.size, 2)
                                         : write_number(out, LEAD_BIN32, bytes.size, 4);
    return ok && capbuf_append(out, bytes.data, bytes.size);
}

bool pack_array(struct capbuf *out, uint64_t count)
{
    return count < 16            ? write_number(out, (uint8_t)(LEAD_FIXARRAY | count), 0, 0)
           : count <= UINT16_MAX ? write_number(out, LEAD_ARRAY16, count, 2)
                                 : write_number(out, LEAD_ARRAY32, count, 4);
}
