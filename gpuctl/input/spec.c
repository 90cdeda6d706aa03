#include "gpuctl/input/spec.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "gpuctl/input/number.h"

static bool identifier_char(char c, bool first)
{
    return isalpha((unsigned char)c) || c == '_' || (!first && isdigit((unsigned char)c));
}

/* Length of NAME in "NAME=…"; 0 if the text has no such beginning. */
static size_t name_length(const char *text)
{
    size_t n = 0;
    while (identifier_char(text[n], n == 0)) {
        n++;
    }
    return n > 0 && text[n] == '=' ? n : 0;
}

static bool same(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

static int access_of(const char *text, size_t length)
{
    return same(text, length, "in")      ? GPUD_IN
           : same(text, length, "out")   ? GPUD_OUT
           : same(text, length, "inout") ? GPUD_INOUT
                                         : GPUD_AS_KERNEL;
}

static int dtype_of(const char *text, size_t length)
{
    char name[8];
    if (length == 0 || length >= sizeof name) {
        return GPUD_NONE;
    }
    memcpy(name, text, length);
    name[length] = '\0';
    return gpud_dtype_from_name(name);
}

static int parse_dtype(const char *text, size_t length, int *ret_dtype, struct ctl_err *e)
{
    *ret_dtype = dtype_of(text, length);
    return *ret_dtype != GPUD_NONE
               ? 0
               : ctl_err_usage(e, "'%.*s' is no element type (i8 to u64, f16, f32, f64)",
                               (int)length, text);
}

/* [DTYPE][+raw][/VIEW]. Without DTYPE before a view, the type is the file's or the buffer's. */
static int parse_types(const char *text, size_t length, struct spec *spec, struct ctl_err *e)
{
    const char *slash = memchr(text, '/', length);
    size_t word = slash != NULL ? (size_t)(slash - text) : length;
    int rc = 0;
    if (slash != NULL) {
        rc = parse_dtype(slash + 1, length - word - 1, &spec->view, e);
    }
    if (word > 4 && memcmp(text + word - 4, "+raw", 4) == 0) {
        spec->raw = true;
        word -= 4;
    }
    return rc != 0 || (word == 0 && slash != NULL) ? rc : parse_dtype(text, word, &spec->dtype, e);
}

/* The types and DIMS between ':' and the end of the head. */
static int parse_type(const char *text, size_t length, struct spec *spec, struct ctl_err *e)
{
    const char *colon = memchr(text, ':', length);
    size_t type = colon != NULL ? (size_t)(colon - text) : length;
    if (parse_types(text, type, spec, e) != 0) {
        return e->code;
    }
    if (colon != NULL && spec->dtype == GPUD_NONE) {
        return ctl_err_usage(e, "a size needs its type before the '/': f32/u8:1024");
    }
    if (colon == NULL) {
        return 0;
    }
    int rc = spec_dims(colon + 1, length - type - 1, &spec->shape, e);
    spec->shape.dtype = (uint32_t)spec->dtype;
    if (rc == 0 && gpud_shape_bytes(spec->shape) == 0) {
        for (uint32_t i = 0; i < spec->shape.ndim; i++) {
            if (spec->shape.dim[i] == 0) {
                return 0;
            }
        }
        return ctl_err_usage(e, "an array of %.*s is larger than 2^63 bytes", (int)length, text);
    }
    return rc;
}

static int check_out(const struct spec *spec, struct ctl_err *e)
{
    if (spec->file != NULL || spec->text != NULL) {
        return ctl_err_usage(e, "an out array starts undefined: give no data (or use inout)");
    }
    if (spec->shape.ndim == 0) {
        return ctl_err_usage(e, "an out array needs its type and size: out:f32:1024x16");
    }
    return 0;
}

/* Refuses combinations that are impossible in an array's description. */
static int check_array(const struct spec *spec, struct ctl_err *e)
{
    const char *access = spec->access == GPUD_IN ? "in" : "inout";
    if (spec->raw && spec->file == NULL) {
        return ctl_err_usage(e, "+raw needs a file: @FILE");
    }
    if (spec->access == GPUD_OUT) {
        return check_out(spec, e);
    }
    if (spec->file != NULL) {
        return spec->file[0] != '\0' ? 0 : ctl_err_usage(e, "a file name is missing after '@'");
    }
    if (spec->text != NULL) {
        return spec->dtype != GPUD_NONE
                   ? 0
                   : ctl_err_usage(e, "a list needs its type: %s:f32=1,2,3", access);
    }
    if (spec->access == GPUD_IN || spec->shape.ndim == 0) {
        return ctl_err_usage(e, "an array needs data: %s:@FILE.npy, %s:f32=1,2,3 or %s:%%name",
                             access, access, access);
    }
    return 0;
}

/* `rest` is what follows the access word. */
static int parse_array(const char *rest, struct spec *spec, struct ctl_err *e)
{
    spec->kind = SPEC_ARRAY;
    size_t types = strcspn(rest, "%@=");
    if (rest[0] == ':' && rest[types] == '%' && (types == 1 || rest[1] == '/')) {
        spec->kind = SPEC_PUBLISHED;
        spec->text = rest + types + 1;
        if (types > 1 && parse_types(rest + 1, types - 1, spec, e) != 0) {
            return e->code;
        }
        if (spec->text[0] == '\0' || strlen(spec->text) >= GPUD_NAME) {
            return ctl_err_usage(e, "'%s' is no name of a published buffer", spec->text);
        }
        return 0;
    }
    size_t head = strcspn(rest, "@=");
    if (rest[head] == '@') {
        spec->file = rest + head + 1;
    } else if (rest[head] == '=') {
        spec->text = rest + head + 1;
    }
    /* "in:@x.npy": nothing between the colon and the file */
    if (head > 1) {
        int rc = parse_type(rest + 1, head - 1, spec, e);
        if (rc != 0) {
            return rc;
        }
    } else if (head == 1 && spec->file == NULL) {
        return ctl_err_usage(e, "a value is missing after ':'");
    }
    return check_array(spec, e);
}

static int parse_value_of_type(struct spec *spec, struct ctl_err *e)
{
    uint64_t bits[SPEC_VECTOR_MAX];
    if (strchr(spec->text, ',') == NULL) {
        return spec_scalar(spec->dtype, spec->text, &bits[0], e);
    }
    spec->kind = SPEC_VECTOR;
    uint64_t count = spec_list_count(spec->text);
    if (count > SPEC_VECTOR_MAX) {
        return ctl_err_usage(e, "a value of more than %u elements", SPEC_VECTOR_MAX);
    }
    return spec_list(spec->dtype, spec->text, count, bits, e);
}

static int parse_scalar(const char *text, struct spec *spec, struct ctl_err *e)
{
    spec->kind = SPEC_SCALAR;
    spec->text = text;
    const char *colon = strchr(text, ':');
    if (colon != NULL) {
        spec->dtype = dtype_of(text, (size_t)(colon - text));
        spec->text = colon + 1;
        if (spec->dtype == GPUD_NONE) {
            return ctl_err_usage(e, "'%.*s' is neither an access (in, out, inout) nor a type",
                                 (int)(colon - text), text);
        }
        return parse_value_of_type(spec, e);
    }
    /* without a type, only the number's form can be checked here */
    uint64_t bits;
    struct ctl_err ignored;
    if (spec_scalar(GPUD_F64, text, &bits, &ignored) != 0) {
        return ctl_err_usage(e, "'%s' is neither a number nor an array (in:@x.npy, out:f32:1024)",
                             text);
    }
    return 0;
}

static int parse_local(const char *text, struct spec *spec, struct ctl_err *e)
{
    spec->kind = SPEC_LOCAL;
    return spec_number("local", text, 1, UINT32_MAX, &spec->bytes, e);
}

static int parse_bytes(const char *text, struct spec *spec, struct ctl_err *e)
{
    spec->kind = SPEC_BYTES;
    spec->file = text + 1;
    return text[0] == '@' && text[1] != '\0' ? 0
                                             : ctl_err_usage(e, "a file is expected: bytes:@FILE");
}

static int parse_value(const char *text, struct spec *spec, struct ctl_err *e)
{
    size_t word = strcspn(text, ":@=");
    if (same(text, word, "local") || same(text, word, "scratch")) { /* the former name */
        return parse_local(text[word] == ':' ? text + word + 1 : "", spec, e);
    }
    if (same(text, word, "bytes")) {
        return parse_bytes(text[word] == ':' ? text + word + 1 : "", spec, e);
    }
    spec->access = access_of(text, word);
    if (spec->access != GPUD_AS_KERNEL) {
        return parse_array(text + word, spec, e);
    }
    return parse_scalar(text, spec, e);
}

int spec_parse(const char *text, struct spec *ret_spec, struct ctl_err *e)
{
    struct spec spec = {0};
    size_t name = name_length(text);
    /* "in=1,2" is a list without a type rather than an argument called "in". */
    if (name > 0 && access_of(text, name) == GPUD_AS_KERNEL) {
        if (name >= sizeof spec.name) {
            return ctl_err_usage(e, "the name '%.*s' is too long", (int)name, text);
        }
        memcpy(spec.name, text, name);
        text += name + 1;
    }
    int rc = parse_value(text, &spec, e);
    if (rc != 0) {
        return ctl_err_wrap(e, "--arg %s%s%.200s", spec.name, spec.name[0] != '\0' ? "=" : "",
                            text);
    }
    *ret_spec = spec;
    return 0;
}

int spec_dims(const char *text, size_t length, gpud_shape *ret_shape, struct ctl_err *e)
{
    gpud_shape shape = {0};
    const char *at = text;
    const char *end = text + length;
    for (;;) {
        if (shape.ndim == GPUD_MAX_DIMS) {
            return ctl_err_usage(e, "'%.*s' has more than %d dimensions", (int)length, text,
                                 GPUD_MAX_DIMS);
        }
        uint64_t n = 0;
        const char *begin = at;
        for (; at < end && isdigit((unsigned char)*at); at++) {
            uint64_t digit = (uint64_t)(*at - '0');
            if (n > ((uint64_t)INT64_MAX - digit) / 10) {
                return ctl_err_usage(e, "'%.*s' is larger than 2^63", (int)length, text);
            }
            n = n * 10 + digit;
        }
        if (at == begin || (at < end && *at != 'x')) {
            return ctl_err_usage(e, "'%.*s' is no size such as 1024x16", (int)length, text);
        }
        shape.dim[shape.ndim++] = n;
        if (at == end) {
            break;
        }
        at++;
    }
    *ret_shape = shape;
    return 0;
}

int spec_grid(const char *text, uint64_t ret_size[3], struct ctl_err *e)
{
    uint64_t size[3] = {1, 1, 1};
    const char *at = text;
    for (unsigned i = 0;; i++) {
        size_t length = strcspn(at, ",");
        char word[24];
        if (i == 3 || length == 0 || length >= sizeof word) {
            return ctl_err_usage(e, "'%s' is no size X[,Y[,Z]]", text);
        }
        memcpy(word, at, length);
        word[length] = '\0';
        int rc = spec_number("size", word, 1, (uint64_t)1 << 62, &size[i], e);
        if (rc != 0) {
            return rc;
        }
        if (at[length] == '\0') {
            break;
        }
        at += length + 1;
    }
    memcpy(ret_size, size, sizeof size);
    return 0;
}

int spec_number(const char *words, const char *text, uint64_t min, uint64_t max,
                uint64_t *ret_number, struct ctl_err *e)
{
    uint64_t bits = 0;
    struct ctl_err ignored;
    if (spec_scalar(GPUD_U64, text, &bits, &ignored) != 0 || bits < min || bits > max) {
        return ctl_err_usage(e, "%s: '%s' is no whole number from %llu to %llu", words, text,
                             (unsigned long long)min, (unsigned long long)max);
    }
    *ret_number = bits;
    return 0;
}

int spec_size(const char *words, const char *text, uint64_t min, uint64_t max, uint64_t *ret_bytes,
              struct ctl_err *e)
{
    static const char units[] = "KMGT";
    char digits[24];
    size_t length = strlen(text);
    const char *unit = length > 0 ? strchr(units, text[length - 1]) : NULL;
    unsigned shift = unit != NULL ? (unsigned)(unit - units + 1) * 10 : 0;
    length -= unit != NULL ? 1 : 0;
    uint64_t number = 0;
    struct ctl_err ignored;
    snprintf(digits, sizeof digits, "%.*s", (int)(length < sizeof digits ? length : 0), text);
    if (spec_number(words, digits, 0, UINT64_MAX >> shift, &number, &ignored) != 0 ||
        number << shift < min || number << shift > max) {
        return ctl_err_usage(e, "%s: '%s' is no size from %llu to %llu bytes (512M, 4G)", words,
                             text, (unsigned long long)min, (unsigned long long)max);
    }
    *ret_bytes = number << shift;
    return 0;
}

int spec_save_parse(const char *text, struct spec_save *ret_save, struct ctl_err *e)
{
    struct spec_save save = {0};
    const char *equals = strchr(text, '=');
    size_t length = equals != NULL ? (size_t)(equals - text) : 0;
    if (length == 0 || length >= sizeof save.name) {
        return ctl_err_usage(e, "--save %.200s: NAME=FILE or INDEX=FILE is expected", text);
    }
    memcpy(save.name, text, length);
    if (isdigit((unsigned char)text[0])) {
        uint64_t index = 0;
        int rc = spec_number("--save", save.name, 0, 255, &index, e);
        if (rc != 0) {
            return rc;
        }
        save.index = (uint32_t)index;
        save.name[0] = '\0';
    } else if (name_length(text) != length) {
        return ctl_err_usage(e, "--save %.200s: '%s' is no name of an argument", text, save.name);
    }
    save.file = equals + 1;
    if (strncmp(save.file, "raw:", 4) == 0) {
        save.raw = true;
        save.file += 4;
    }
    size_t end = strlen(save.file);
    if (end == 0 || save.file[end - 1] == '/') {
        return ctl_err_usage(e, "--save %.200s: no file name", text);
    }
    if (!save.raw && (end < 5 || strcmp(save.file + end - 4, ".npy") != 0)) {
        return ctl_err_usage(e, "--save %.200s: the file must end in .npy, or say raw:FILE", text);
    }
    *ret_save = save;
    return 0;
}
