#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fakecuda/fake.h"

/* As much of PTX as is needed to know its entries, their parameters and the module's variables.
 * Bodies are skipped: only the shared memory they declare is counted. */
struct token {
    const char *text;
    size_t size;
};

struct ptx {
    const char *at, *end;
    struct token token; /* the last one read; size 0: the end */
    unsigned line;
    struct image *image;
    bool wrong;
    char reason[128];
};

static void fail(struct ptx *p, const char *reason)
{
    if (!p->wrong) {
        p->wrong = true;
        snprintf(p->reason, sizeof p->reason, "%s, near '%.*s'", reason,
                 (int)(p->token.size > 40 ? 40 : p->token.size),
                 p->token.size ? p->token.text : "");
    }
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static bool word_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.' || c == '%';
}

static void skip_blank(struct ptx *p)
{
    while (p->at < p->end) {
        if (isspace((unsigned char)*p->at)) {
            p->line += *p->at == '\n';
            p->at++;
        } else if (p->end - p->at >= 2 && memcmp(p->at, "//", 2) == 0) {
            while (p->at < p->end && *p->at != '\n') {
                p->at++;
            }
        } else if (p->end - p->at >= 2 && memcmp(p->at, "/*", 2) == 0) {
            p->at += 2;
            while (p->end - p->at >= 2 && memcmp(p->at, "*/", 2) != 0) {
                p->line += *p->at == '\n';
                p->at++;
            }
            p->at = p->end - p->at >= 2 ? p->at + 2 : p->end;
        } else {
            return;
        }
    }
}

static bool next(struct ptx *p)
{
    skip_blank(p);
    const char *from = p->at;
    if (p->at == p->end) {
        p->token = (struct token){from, 0};
        return false;
    }
    if (*p->at == '"') {
        do {
            p->at++;
        } while (p->at < p->end && *p->at != '"');
        p->at += p->at < p->end;
    } else if (word_char(*p->at)) {
        while (p->at < p->end && word_char(*p->at)) {
            p->at++;
        }
    } else {
        p->at++;
    }
    p->token = (struct token){from, (size_t)(p->at - from)};
    return true;
}

static bool is(const struct ptx *p, const char *text)
{
    return p->token.size == strlen(text) && memcmp(p->token.text, text, p->token.size) == 0;
}

static bool starts(const struct ptx *p, const char *text)
{
    size_t size = strlen(text);
    return p->token.size >= size && memcmp(p->token.text, text, size) == 0;
}

static uint64_t number(const struct ptx *p)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%.*s", (int)p->token.size, p->token.text);
    return strtoull(digits, NULL, 0);
}

/* ---- declarations ---------------------------------------------------------------------------- */

struct decl {
    struct token name;
    uint64_t align, element, count;
    bool managed, open; /* open: [] */
};

/* Bytes of ".u64", ".v4" times; 0: not a type. */
static uint64_t type_size(const struct ptx *p)
{
    char digits[16];
    if (is(p, ".pred")) {
        return 1;
    }
    if (p->token.size < 3 || p->token.size > 8 || !strchr("busf", p->token.text[1])) {
        return 0;
    }
    snprintf(digits, sizeof digits, "%.*s", (int)(p->token.size - 2), p->token.text + 2);
    char *end = NULL;
    unsigned long bits = strtoul(digits, &end, 10);
    bool plain = *end == '\0' || strcmp(end, "x2") == 0;
    return plain && bits >= 8 && bits % 8 == 0 ? bits / 8 * (*end ? 2 : 1) : 0;
}

static void decl_word(struct ptx *p, struct decl *d, uint64_t *vector)
{
    if (is(p, ".align")) {
        next(p);
        d->align = number(p);
    } else if (is(p, ".v2") || is(p, ".v4")) {
        *vector = (uint64_t)(p->token.text[2] - '0');
    } else if (is(p, ".managed")) {
        d->managed = true;
    } else if (is(p, ".ptr") || is(p, ".global") || is(p, ".shared") || is(p, ".const") ||
               is(p, ".local")) {
        return; /* of what a pointer points to */
    } else if (type_size(p) > 0) {
        d->element = type_size(p);
    }
}

/* From behind the state space to behind the name and its extents; the token is what follows. */
static bool decl_read(struct ptx *p, struct decl *ret)
{
    struct decl d = {.count = 1};
    uint64_t vector = 1;
    while (next(p) && (p->token.text[0] == '.' || is(p, "(") || is(p, ")") || is(p, ",") ||
                       isdigit((unsigned char)p->token.text[0]))) {
        decl_word(p, &d, &vector);
    }
    if (d.element == 0 || p->token.size == 0 || !word_char(p->token.text[0])) {
        fail(p, "a declaration without type or name");
        return false;
    }
    d.name = p->token;
    d.element *= vector;
    while (next(p) && is(p, "[")) {
        next(p);
        if (is(p, "]")) {
            d.open = true;
            continue;
        }
        d.count *= number(p);
        next(p);
        if (!is(p, "]")) {
            fail(p, "] is missing");
        }
    }
    if (d.align == 0) {
        d.align = d.element;
    }
    *ret = d;
    return !p->wrong;
}

static void skip_to(struct ptx *p, const char *stop)
{
    while (!is(p, stop)) {
        if (!next(p)) {
            fail(p, "it ends too early");
            return;
        }
    }
}

/* ---- variables ------------------------------------------------------------------------------- */

/* One value of an initialiser: an integer, or the bits of a float (0f…, 0d…). */
static uint64_t value_bits(const struct ptx *p, bool negative)
{
    char text[40];
    snprintf(text, sizeof text, "%.*s", (int)p->token.size, p->token.text);
    if (strncmp(text, "0f", 2) == 0 || strncmp(text, "0F", 2) == 0 || strncmp(text, "0d", 2) == 0 ||
        strncmp(text, "0D", 2) == 0) {
        return strtoull(text + 2, NULL, 16);
    }
    uint64_t bits = strtoull(text, NULL, 0);
    return negative ? 0 - bits : bits;
}

static void init_read(struct ptx *p, struct variable *v, uint64_t element)
{
    bool negative = false;
    uint64_t at = 0;
    v->init = calloc(1, v->size ? v->size : 1);
    v->init_size = v->size;
    while (v->init && next(p) && !is(p, ";")) {
        if (is(p, "-")) {
            negative = true;
        } else if (isdigit((unsigned char)p->token.text[0]) && at + element <= v->size) {
            uint64_t bits = value_bits(p, negative);
            memcpy(v->init + at, &bits, element < sizeof bits ? element : sizeof bits);
            at += element;
            negative = false;
        }
    }
}

static void variable_read(struct ptx *p, bool external)
{
    struct decl d;
    if (!decl_read(p, &d)) {
        return;
    }
    if (!external && !d.open) {
        struct variable *v = image_variable(p->image, d.name.text, d.name.size);
        v->size = d.element * d.count;
        v->managed = d.managed;
        if (is(p, "=")) {
            init_read(p, v, d.element);
        }
    }
    skip_to(p, ";");
}

/* ---- entries --------------------------------------------------------------------------------- */

static void params_read(struct ptx *p, struct entry *e)
{
    struct decl d;
    uint32_t offset = 0;
    while (!p->wrong && next(p) && !is(p, ")")) {
        if (!is(p, ".param")) {
            fail(p, ".param is missing");
        } else if (decl_read(p, &d)) {
            uint64_t size = d.element * d.count;
            offset = (uint32_t)((offset + d.align - 1) / d.align * d.align);
            if (size > 32764 ||
                !entry_param(e, e->param_count, (struct param){offset, (uint32_t)size})) {
                fail(p, "too many parameters");
            }
            offset += (uint32_t)size;
        }
        if (is(p, ")")) {
            return;
        }
    }
}

static uint32_t dims_read(struct ptx *p)
{
    uint64_t product = 1;
    for (;;) {
        next(p);
        product *= number(p);
        const char *mark = p->at;
        unsigned line = p->line;
        next(p);
        if (!is(p, ",")) {
            p->at = mark;
            p->line = line;
            return (uint32_t)product;
        }
    }
}

static void body_read(struct ptx *p, struct entry *e)
{
    unsigned depth = 1;
    struct decl d;
    while (depth > 0 && !p->wrong && next(p)) {
        if (is(p, "{")) {
            depth++;
        } else if (is(p, "}")) {
            depth--;
        } else if (e && is(p, ".shared")) {
            if (decl_read(p, &d)) {
                uint64_t size = d.open ? 0 : d.element * d.count;
                e->shared = (uint32_t)((e->shared + d.align - 1) / d.align * d.align + size);
            }
        }
    }
    if (depth > 0) {
        fail(p, "it ends inside of a body");
    }
}

static void entry_read(struct ptx *p)
{
    next(p);
    if (p->token.size == 0 || !word_char(p->token.text[0])) {
        fail(p, ".entry without a name");
        return;
    }
    struct entry *e = image_entry(p->image, p->token.text, p->token.size);
    next(p);
    if (is(p, "(")) {
        params_read(p, e);
        next(p);
    }
    while (!p->wrong && !is(p, "{") && !is(p, ";")) {
        if (is(p, ".maxntid") || is(p, ".reqntid")) {
            e->max_threads = dims_read(p);
        }
        if (!next(p)) {
            fail(p, "an entry without a body");
        }
    }
    if (!p->wrong && is(p, "{")) {
        body_read(p, e);
    }
}

static void function_skip(struct ptx *p)
{
    while (!is(p, "{") && !is(p, ";")) {
        if (!next(p)) {
            fail(p, "a function without a body");
            return;
        }
    }
    if (is(p, "{")) {
        body_read(p, NULL);
    }
}

/* ---- the module ------------------------------------------------------------------------------ */

static void target_read(struct ptx *p)
{
    next(p);
    if (!starts(p, "sm_")) {
        fail(p, "a target that is no sm_NN");
        return;
    }
    p->image->arch = atoi(p->token.text + 3);
}

static void version_read(struct ptx *p)
{
    char text[16];
    next(p);
    snprintf(text, sizeof text, "%.*s", (int)p->token.size, p->token.text);
    unsigned major = 0, minor = 0;
    if (sscanf(text, "%u.%u", &major, &minor) != 2) {
        fail(p, "a version that is none");
    }
    p->image->ptx = (int)(major * 10 + minor);
}

static void module_read(struct ptx *p)
{
    bool external = false;
    while (!p->wrong && next(p)) {
        if (is(p, ".version")) {
            version_read(p);
        } else if (is(p, ".target")) {
            target_read(p);
        } else if (is(p, ".entry")) {
            entry_read(p);
        } else if (is(p, ".func")) {
            function_skip(p);
        } else if (is(p, ".global") || is(p, ".const")) {
            variable_read(p, external);
        } else if (is(p, ".shared")) {
            variable_read(p, true);
        } else if (is(p, "{") || is(p, "}")) {
            p->token.text[0] == '{' ? body_read(p, NULL) : fail(p, "a brace too many");
        }
        external = is(p, ".extern");
    }
}

/* A driver reads the PTX of its own toolkit and of older ones: CUDA 13.0 has PTX 9.0, 12.x 8.x. */
static int ptx_newest(void)
{
    int major = fake.script.driver / 1000, minor = fake.script.driver % 1000 / 10;
    return major >= 13 ? 90 + minor : 80 + minor;
}

CUresult ptx_parse(const char *text, size_t size, int arch, struct image *ret_image, char *ret_log,
                   size_t log_size)
{
    struct ptx p = {.at = text, .end = text + size, .line = 1, .image = ret_image};
    module_read(&p);
    if (!p.wrong && (ret_image->ptx == 0 || ret_image->arch == 0)) {
        fail(&p, "no .version or no .target");
    }
    if (p.wrong) {
        snprintf(ret_log, log_size, "ptxas application ptx input, line %u; fatal   : %s", p.line,
                 p.reason);
        return CUDA_ERROR_INVALID_PTX;
    }
    if (ret_image->ptx > ptx_newest()) {
        snprintf(ret_log, log_size,
                 "ptxas application ptx input, line 1; fatal   : Unsupported "
                 ".version");
        return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    }
    return ret_image->arch > arch ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_SUCCESS;
}
