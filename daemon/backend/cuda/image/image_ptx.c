#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/shape.h"
#include "daemon/backend/cuda/image/image_readers.h"

/* Reads words of PTX: whatever stands between blanks and signs. Dots and percent signs belong to
 * words. */
struct reader {
    const char *at, *end;
    unsigned line;
    char word[160]; /* the current word, truncated to fit; "" at the end */
    struct err *e;
};

static bool word_char(char c)
{
    return isalnum((unsigned char)c) || (c != '\0' && strchr("_.$%@", c) != NULL);
}

static void blanks_skip(struct reader *r)
{
    while (r->at < r->end) {
        if (r->at[0] == '/' && r->at[1] == '/') {
            r->at += strcspn(r->at, "\n");
        } else if (r->at[0] == '/' && r->at[1] == '*') {
            const char *close = strstr(r->at + 2, "*/");
            const char *stop = close != NULL ? close + 2 : r->end;
            for (; r->at < stop; r->at++) {
                r->line += *r->at == '\n';
            }
        } else if (isspace((unsigned char)*r->at)) {
            r->line += *r->at++ == '\n';
        } else {
            return;
        }
    }
}

/* Reads the next word or sign into r->word. */
static void next(struct reader *r)
{
    size_t used = 0;
    blanks_skip(r);
    if (r->at < r->end && *r->at == '"') {
        r->at += 1 + strcspn(r->at + 1, "\"\n");
        r->at += *r->at == '"';
        r->word[used++] = '"';
    } else if (r->at < r->end && !word_char(*r->at)) {
        r->word[used++] = *r->at++;
    } else {
        for (; r->at < r->end && word_char(*r->at); r->at++) {
            if (used + 1 < sizeof r->word) {
                r->word[used++] = *r->at;
            }
        }
    }
    r->word[used] = '\0';
}

static bool is(const struct reader *r, const char *word)
{
    return strcmp(r->word, word) == 0;
}

/* Skips the current word if it is `word`. */
static bool take(struct reader *r, const char *word)
{
    bool there = is(r, word);
    if (there) {
        next(r);
    }
    return there;
}

static int refuse(const struct reader *r, const char *what)
{
    return err_set(r->e, ERR_INVALID, "line %u of the PTX: %s", r->line, what);
}

/* Skips "{ … }", including nested ones. */
static int block_skip(struct reader *r)
{
    unsigned depth = 0;
    do {
        depth += is(r, "{");
        depth -= is(r, "}");
        next(r);
    } while (depth > 0 && r->word[0] != '\0');
    return depth == 0 ? 0 : refuse(r, "it ends within a function: it is cut off");
}

/* ---- parameters ----------------------------------------------------------------------------- */

static uint32_t type_bytes(const char *word)
{
    static const char *const bits[] = {"8", "16", "32", "64", "128"};
    bool type = word[0] == '.' && word[1] != '\0' && strchr("busf", word[1]) != NULL;
    for (size_t i = 0; type && i < sizeof bits / sizeof bits[0]; i++) {
        if (strcmp(word + 2, bits[i]) == 0) {
            return 1u << i;
        }
    }
    return 0;
}

/* Reads one parameter, like ".param .align 8 .b8 name[16]", up to "," or ")". */
static int param_read(struct reader *r, struct backend_compiled_arg *arg)
{
    uint32_t bytes = 0;
    bool pointer = false;
    for (; !is(r, ",") && !is(r, ")"); next(r)) {
        if (r->word[0] == '\0' || is(r, "{")) {
            return refuse(r, "a kernel's parameters do not end");
        }
        if (bytes == 0) {
            bytes = type_bytes(r->word);
        }
        pointer = pointer || is(r, ".ptr");
        if (take(r, "[")) {
            unsigned long count = strtoul(r->word, NULL, 10);
            if (count == 0 || count > 32768) {
                return refuse(r, "a parameter of no size that a kernel can take");
            }
            bytes *= (uint32_t)count;
        }
    }
    *arg = (struct backend_compiled_arg){.kind = pointer      ? BACKEND_KIND_ARRAY
                                                 : bytes == 8 ? BACKEND_KIND_UNKNOWN
                                                              : BACKEND_KIND_STRUCT,
                                         .access = pointer ? ACCESS_INOUT : ACCESS_NONE,
                                         .bytes = bytes};
    return bytes > 0 ? 0 : refuse(r, "a parameter of unknown type");
}

static int params_read(struct reader *r, struct backend_compiled_kernel *k)
{
    struct backend_compiled_arg arg;
    int rc = 0;
    if (!take(r, "(")) {
        return 0;
    }
    while (rc == 0 && !is(r, ")")) {
        rc = param_read(r, &arg);
        if (rc == 0 && k->arg_count < IMAGE_ARGS_MAX) {
            k->arg[k->arg_count] = arg;
        }
        k->arg_count++;
        (void)take(r, ",");
    }
    return rc;
}

/* Reads ".reqntid 16, 8" and the like, up to the body. */
static void limits_read(struct reader *r, struct backend_compiled_kernel *k)
{
    while (r->word[0] != '\0' && !is(r, "{") && !is(r, ";")) {
        bool required = is(r, ".reqntid");
        bool most = is(r, ".maxntid");
        uint64_t size[3] = {1, 1, 1};
        next(r);
        for (unsigned i = 0; (required || most) && i < 3; i++) {
            size[i] = strtoul(r->word, NULL, 10);
            next(r);
            if (!take(r, ",")) {
                break;
            }
        }
        if (required) {
            memcpy(k->required_local, size, sizeof size);
        } else if (most) {
            k->max_group = size[0] * size[1] * size[2];
        }
    }
}

/* ---- the whole ------------------------------------------------------------------------------ */

static int entry_read(struct reader *r, struct image *out)
{
    struct backend_compiled_kernel *k = NULL;
    next(r);
    if (r->word[0] == '\0' || !word_char(r->word[0])) {
        return refuse(r, "an .entry without a name");
    }
    int rc = image_kernel_add(out, r->word, &k, r->e);
    next(r);
    rc = rc == 0 ? params_read(r, k) : rc;
    if (rc != 0) {
        return rc;
    }
    limits_read(r, k);
    return is(r, "{") ? block_skip(r) : refuse(r, "an .entry without a body");
}

static int target_check(const struct reader *r, const struct image_arch *device)
{
    struct image_arch arch;
    if (!image_arch_read(r->word, &arch)) {
        return refuse(r, ".target without an architecture");
    }
    bool family = arch.number / 10 == device->number / 10;
    bool runs = arch.variant == 'a'   ? arch.number == device->number
                : arch.variant == 'f' ? family && arch.number <= device->number
                                      : arch.number <= device->number;
    if (!runs) {
        return err_set(r->e, ERR_UNSUPPORTED, "the PTX is for %s, the device is sm_%u", r->word,
                       device->number);
    }
    return 0;
}

/* Reads ".version 8.4 .target sm_80, debug .address_size 64", which must come first, in this
 * order. */
static int head_read(struct reader *r, const struct image_arch *device)
{
    next(r);
    if (!take(r, ".version")) {
        return refuse(r, "it does not begin with .version: this is no PTX");
    }
    if (!isdigit((unsigned char)r->word[0]) || strchr(r->word, '.') == NULL) {
        return refuse(r, ".version without a number");
    }
    next(r);
    if (!take(r, ".target")) {
        return refuse(r, "no .target after .version");
    }
    int rc = target_check(r, device);
    next(r);
    while (take(r, ",")) {
        next(r);
    }
    if (rc == 0 && take(r, ".address_size")) {
        rc = is(r, "64") ? 0 : refuse(r, "only addresses of 64 bits are supported");
        next(r);
    }
    return rc;
}

/* Copies the text without the NULs at its end, which some tools write and which pad it in a
 * fatbin. */
static int text_copy(struct bytes text, char **ret_text, struct err *e)
{
    size_t size = text.size;
    while (size > 0 && text.data[size - 1] == '\0') {
        size--;
    }
    if (memchr(text.data, '\0', size) != NULL) {
        return err_set(e, ERR_INVALID, "the PTX contains a NUL");
    }
    *ret_text = strndup((const char *)text.data, size);
    return *ret_text != NULL ? 0 : err_set(e, ERR_NOMEM, "no memory for PTX of %zu bytes", size);
}

int image_ptx_read(struct bytes text, const struct image_arch *device, struct image *ret_image,
                   struct err *e)
{
    char *copy = NULL;
    struct image out = {.kernels = NULL};
    int rc = text_copy(text, &copy, e);
    if (rc != 0) {
        return rc;
    }
    struct reader r = {.at = copy, .end = copy + strlen(copy), .line = 1, .e = e};
    rc = head_read(&r, device);
    while (rc == 0 && r.word[0] != '\0') {
        if (is(&r, ".entry")) {
            rc = entry_read(&r, &out);
        } else if (is(&r, "{")) {
            rc = block_skip(&r);
        } else {
            next(&r);
        }
    }
    if (rc == 0 && out.kernel_count + out.left_out == 0) {
        rc = err_set(e, ERR_INVALID, "the PTX has no .entry: no kernel is in it");
    }
    free(copy);
    return image_done(&out, rc, ret_image);
}
