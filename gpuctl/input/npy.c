#include "gpuctl/input/npy.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "'<' has to be this machine's order");

static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

/* The text of the header, a Python dict. */
struct cursor {
    const char *at;
    const char *end;
};

static void skip_space(struct cursor *c)
{
    while (c->at < c->end && isspace((unsigned char)*c->at)) {
        c->at++;
    }
}

static bool take(struct cursor *c, char expected)
{
    skip_space(c);
    if (c->at >= c->end || *c->at != expected) {
        return false;
    }
    c->at++;
    return true;
}

/* A Python string without escapes. */
static bool take_string(struct cursor *c, char *out, size_t size)
{
    skip_space(c);
    if (c->at >= c->end || (*c->at != '\'' && *c->at != '"')) {
        return false;
    }
    char quote = *c->at++;
    size_t used = 0;
    while (c->at < c->end && *c->at != quote) {
        if (*c->at == '\\' || *c->at == '\0' || used + 1 >= size) {
            return false;
        }
        out[used++] = *c->at++;
    }
    if (c->at >= c->end) {
        return false;
    }
    c->at++;
    out[used] = '\0';
    return true;
}

static bool take_word(struct cursor *c, const char *word)
{
    skip_space(c);
    size_t length = strlen(word);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0) {
        return false;
    }
    c->at += length;
    return true;
}

static bool take_number(struct cursor *c, uint64_t *ret_number)
{
    skip_space(c);
    uint64_t n = 0;
    const char *begin = c->at;
    for (; c->at < c->end && isdigit((unsigned char)*c->at); c->at++) {
        uint64_t digit = (uint64_t)(*c->at - '0');
        if (n > (UINT64_MAX - digit) / 10) {
            return false;
        }
        n = n * 10 + digit;
    }
    if (c->at == begin) {
        return false;
    }
    if (c->at < c->end && *c->at == 'L') {
        c->at++; /* a long integer of Python 2 */
    }
    *ret_number = n;
    return true;
}

struct type_row {
    char kind;
    char bytes;
    uint8_t dtype;
};

static int type_refused(const char *text, const char *code, struct ctl_err *e)
{
    if (strcmp(code, "c8") == 0 || strcmp(code, "c16") == 0) {
        const char *part = code[1] == '8' ? "float32" : "float64";
        return ctl_err_set(e, GPUD_ERR_UNSUPPORTED,
                           "complex elements ('%s'): a complex number is two numbers in the last "
                           "dimension here; save a.view('%s').reshape(a.shape + (2,))",
                           text, part);
    }
    return ctl_err_set(e, GPUD_ERR_UNSUPPORTED,
                       "elements of type '%s': gpud takes i8 to u64, f16, f32, f64; save "
                       "a.astype('float32') or the like",
                       text);
}

static int parse_descr(const char *text, struct npy *npy, struct ctl_err *e)
{
    static const struct type_row rows[] = {
        {'i', '1', GPUD_I8},  {'u', '1', GPUD_U8},  {'b', '1', GPUD_U8},  {'i', '2', GPUD_I16},
        {'u', '2', GPUD_U16}, {'i', '4', GPUD_I32}, {'u', '4', GPUD_U32}, {'i', '8', GPUD_I64},
        {'u', '8', GPUD_U64}, {'f', '2', GPUD_F16}, {'f', '4', GPUD_F32}, {'f', '8', GPUD_F64},
    };
    bool order = strchr("<>|=", text[0]) != NULL && text[0] != '\0';
    const char *code = text + (order ? 1 : 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strlen(code) == 2 && rows[i].kind == code[0] && rows[i].bytes == code[1]) {
            npy->shape.dtype = rows[i].dtype;
            npy->swap = text[0] == '>' && code[1] != '1';
            return 0;
        }
    }
    return type_refused(text, code, e);
}

static int parse_shape(struct cursor *c, struct npy *npy, struct ctl_err *e)
{
    if (!take(c, '(')) {
        return ctl_err_set(e, GPUD_ERR_INVALID, "the header's shape is no tuple");
    }
    npy->shape.ndim = 0;
    while (!take(c, ')')) {
        uint64_t n;
        if (!take_number(c, &n)) {
            return ctl_err_set(e, GPUD_ERR_INVALID, "the header's shape is malformed");
        }
        if (npy->shape.ndim == GPUD_MAX_DIMS) {
            return ctl_err_set(e, GPUD_ERR_UNSUPPORTED, "more than %d dimensions", GPUD_MAX_DIMS);
        }
        npy->shape.dim[npy->shape.ndim++] = n;
        if (!take(c, ',')) {
            if (!take(c, ')')) {
                return ctl_err_set(e, GPUD_ERR_INVALID, "the header's shape is malformed");
            }
            break;
        }
    }
    if (npy->shape.ndim == 0) {
        npy->shape.ndim = 1;
        npy->shape.dim[0] = 1;
    }
    return 0;
}

enum { KEY_DESCR = 1, KEY_ORDER = 2, KEY_SHAPE = 4 };

/* Parses the value of one key of the dict, and sets the key's bit in *seen. */
static int parse_value(struct cursor *c, const char *key, struct npy *npy, unsigned *seen,
                       struct ctl_err *e)
{
    if (strcmp(key, "descr") == 0) {
        char descr[16];
        if (!take_string(c, descr, sizeof descr)) {
            return ctl_err_set(e, GPUD_ERR_UNSUPPORTED,
                               "elements are records or of an unknown type");
        }
        *seen |= KEY_DESCR;
        return parse_descr(descr, npy, e);
    }
    if (strcmp(key, "shape") == 0) {
        *seen |= KEY_SHAPE;
        return parse_shape(c, npy, e);
    }
    if (strcmp(key, "fortran_order") == 0) {
        *seen |= KEY_ORDER;
        if (take_word(c, "True")) {
            npy->fortran = true;
            return 0;
        }
        if (take_word(c, "False")) {
            return 0;
        }
    }
    return ctl_err_set(e, GPUD_ERR_INVALID, "the header's value of '%s' is invalid", key);
}

static int parse_dict(struct cursor *c, struct npy *npy, struct ctl_err *e)
{
    unsigned seen = 0;
    if (!take(c, '{')) {
        return ctl_err_set(e, GPUD_ERR_INVALID, "the header is no dictionary");
    }
    while (!take(c, '}')) {
        char key[32];
        if (!take_string(c, key, sizeof key) || !take(c, ':')) {
            return ctl_err_set(e, GPUD_ERR_INVALID, "the header is malformed");
        }
        int rc = parse_value(c, key, npy, &seen, e);
        if (rc != 0) {
            return rc;
        }
        if (!take(c, ',') && (skip_space(c), c->at >= c->end || *c->at != '}')) {
            return ctl_err_set(e, GPUD_ERR_INVALID, "the header is malformed");
        }
    }
    if (seen != (KEY_DESCR | KEY_ORDER | KEY_SHAPE)) {
        return ctl_err_set(e, GPUD_ERR_INVALID,
                           "the header lacks one of descr, fortran_order and shape");
    }
    return 0;
}

/* Bytes of the data; false if they do not fit into 63 bits. Dimensions of 0 do not hide an overflow
 * of the others. */
static bool data_bytes(gpud_shape s, uint64_t *ret_bytes)
{
    uint64_t size = gpud_dtype_size((int)s.dtype);
    uint64_t room = (uint64_t)INT64_MAX / size;
    bool empty = false;
    for (uint32_t i = 0; i < s.ndim; i++) {
        if (s.dim[i] == 0) {
            empty = true;
            continue;
        }
        if (s.dim[i] > room) {
            return false;
        }
        room /= s.dim[i];
        size *= s.dim[i];
    }
    *ret_bytes = empty ? 0 : size;
    return true;
}

/* Finds the header's text. */
static int find_text(const unsigned char *file, size_t size, struct cursor *ret_text,
                     struct ctl_err *e)
{
    if (size < 10 || memcmp(file, magic, sizeof magic) != 0) {
        return ctl_err_set(e, GPUD_ERR_INVALID, "this is no .npy file");
    }
    if (file[6] < 1 || file[6] > 3) {
        return ctl_err_set(e, GPUD_ERR_UNSUPPORTED, "version %u of the .npy format is not known",
                           file[6]);
    }
    size_t start = file[6] == 1 ? 10 : 12;
    if (size < start) {
        return ctl_err_set(e, GPUD_ERR_INVALID, "the file ends inside its header");
    }
    size_t length = (size_t)file[8] | (size_t)file[9] << 8;
    if (file[6] > 1) {
        length |= (size_t)file[10] << 16 | (size_t)file[11] << 24;
    }
    if (length > NPY_HEADER_MAX - start) {
        return ctl_err_set(e, GPUD_ERR_UNSUPPORTED, "a header of %zu bytes is too long", length);
    }
    if (length > size - start) {
        return ctl_err_set(e, GPUD_ERR_INVALID, "the file ends inside its header");
    }
    ret_text->at = (const char *)file + start;
    ret_text->end = ret_text->at + length;
    return 0;
}

int npy_parse(const void *file, size_t size, struct npy *ret_npy, struct ctl_err *e)
{
    struct cursor c = {0};
    int rc = find_text(file, size, &c, e);
    if (rc != 0) {
        return rc;
    }
    struct npy npy = {.data_at = (size_t)(c.end - (const char *)file)};
    rc = parse_dict(&c, &npy, e);
    if (rc != 0) {
        return rc;
    }
    uint64_t bytes;
    if (!data_bytes(npy.shape, &bytes)) {
        return ctl_err_set(e, GPUD_ERR_INVALID, "the shape is larger than 2^63 bytes");
    }
    if (bytes != size - npy.data_at) {
        return ctl_err_set(e, GPUD_ERR_INVALID,
                           "the shape needs %" PRIu64 " bytes of data, the file has %zu", bytes,
                           size - npy.data_at);
    }
    *ret_npy = npy;
    return 0;
}

static void copy_element(unsigned char *to, const unsigned char *from, size_t size, bool swap)
{
    for (size_t i = 0; i < size; i++) {
        to[i] = from[swap ? size - 1 - i : i];
    }
}

void npy_copy(const struct npy *npy, const void *file, void *out)
{
    const unsigned char *from = (const unsigned char *)file + npy->data_at;
    unsigned char *to = out;
    size_t size = gpud_dtype_size((int)npy->shape.dtype);
    uint64_t count = gpud_shape_count(npy->shape);
    bool transpose = npy->fortran && npy->shape.ndim > 1;
    if (!npy->swap && !transpose) {
        if (count > 0) {
            memcpy(to, from, count * size);
        }
        return;
    }
    uint64_t index[GPUD_MAX_DIMS] = {0};
    for (uint64_t n = 0; n < count; n++) {
        uint64_t at = n;
        if (transpose) {
            at = 0;
            for (uint32_t d = npy->shape.ndim; d-- > 0;) {
                at = at * npy->shape.dim[d] + index[d];
            }
        }
        copy_element(to + n * size, from + at * size, size, npy->swap);
        for (uint32_t d = npy->shape.ndim; d-- > 0;) {
            if (++index[d] < npy->shape.dim[d]) {
                break;
            }
            index[d] = 0;
        }
    }
}

size_t npy_write_header(gpud_shape shape, char ret_header[NPY_WRITE_MAX])
{
    const char *name = gpud_dtype_name((int)shape.dtype);
    size_t size = gpud_dtype_size((int)shape.dtype);
    char text[NPY_WRITE_MAX];
    int used =
        snprintf(text, sizeof text, "{'descr': '%c%c%zu', 'fortran_order': False, 'shape': (",
                 size == 1 ? '|' : '<', name[0], size);
    for (uint32_t i = 0; i < shape.ndim; i++) {
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%" PRIu64, i > 0 ? ", " : "",
                         shape.dim[i]);
    }
    used += snprintf(text + used, sizeof text - (size_t)used, "%s), }", shape.ndim == 1 ? "," : "");
    size_t total = ((size_t)used + 10 + 1 + 63) / 64 * 64;
    memcpy(ret_header, magic, sizeof magic);
    ret_header[6] = 1;
    ret_header[7] = 0;
    ret_header[8] = (char)((total - 10) & 0xff);
    ret_header[9] = (char)((total - 10) >> 8);
    memcpy(ret_header + 10, text, (size_t)used);
    memset(ret_header + 10 + used, ' ', total - 10 - (size_t)used);
    ret_header[total - 1] = '\n';
    return total;
}
