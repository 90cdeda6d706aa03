#include "daemon/backend/cuda/source/scan.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/backend/cuda/source/header.h"
#include "daemon/backend/cuda/source/lex.h"
#include "daemon/backend/cuda/source/param.h"

#define PARAM_TOKENS_MAX 32u

/* The state of a scan. */
struct walk {
    struct lex lex;
    const char *text; /* the text that the lexer reads */
    struct scan *out;
    const char
        *asked; /* the last "ifdef" or "ifndef" after "#": the word behind it is only a name */
    bool is_template; /* "template" was read since the statement began */
    bool is_static;
    struct lex_token before;
    struct err *e;
};

static struct scan_place place_of(const struct lex_token *t)
{
    return (struct scan_place){t->line, t->column};
}

static int refuse(const struct walk *w, const struct lex_token *t, const char *what,
                  struct bytes name, const char *advice)
{
    return lex_refuse(w->text, w->lex.file, t, w->e, what, name, advice);
}

/* ---- includes ------------------------------------------------------------------------------- */

static bool header_name_ok(struct bytes name)
{
    const char *text = (const char *)name.data;
    if (name.size == 0 || text[0] == '/' || memmem(text, name.size, "..", 2) != NULL) {
        return false;
    }
    for (size_t i = 0; i < name.size; i++) {
        if (!isalnum((unsigned char)text[i]) && strchr("_./+-", text[i]) == NULL) {
            return false;
        }
    }
    return true;
}

static int header_check(struct walk *w, const struct lex_token *t)
{
    static const char advice[] = ": files are not read; put its text into the source";
    bool angle = false;
    struct bytes name = lex_header(&w->lex, &angle);
    if (name.size == 0) {
        return refuse(w, t, "#include of a macro", name, ": name a header of the toolkit");
    }
    if (!angle && !header_known(name)) {
        return refuse(w, t, "#include of ", name, advice);
    }
    if (!header_name_ok(name)) {
        return refuse(w, t, "#include of ", name, " is not allowed");
    }
    bool cub = name.size > 4 && memcmp(name.data, "cub/", 4) == 0;
    w->out->cub = w->out->cub || (cub && !w->out->defines);
    return 0;
}

/* Checks the other words after "#", which lead to no file. */
static int directive_check(struct walk *w, const struct lex_token *t)
{
    w->asked = lex_is(t, "ifdef") || lex_is(t, "ifndef") ? t->text : w->asked;
    w->out->defines = w->out->defines || lex_is(t, "define") || lex_is(t, "undef");
    return lex_is(t, "import") || lex_is(t, "embed")
               ? refuse(w, t, "#", bytes_of(t->text, t->size), " is not allowed")
               : 0;
}

static int word_check(struct walk *w, const struct lex_token *t)
{
    struct bytes word = bytes_of(t->text, t->size);
    bool after_hash = w->before.kind == LEX_HASH;
    if (after_hash && (lex_is(t, "include") || lex_is(t, "include_next"))) {
        w->out->includes = true;
        return header_check(w, t);
    }
    if (lex_is(t, "__has_include") || lex_is(t, "__has_include_next")) {
        return w->asked && w->before.text == w->asked ? 0 : header_check(w, t);
    }
    if (after_hash) {
        return directive_check(w, t);
    }
    if (lex_is(t, "__has_embed") || lex_is(t, "__has_") || lex_is(t, "include_alias")) {
        return refuse(w, t, "", word, " is not allowed");
    }
    return 0;
}

/* ---- kernels -------------------------------------------------------------------------------- */

static int next(struct walk *w, struct lex_token *t)
{
    w->before = *t;
    int rc = lex_next(&w->lex, t, w->e);
    return rc == 0 && t->kind == LEX_WORD ? word_check(w, t) : rc;
}

/* Skips from "(" to behind its ")". */
static int skip_parens(struct walk *w, struct lex_token *t)
{
    unsigned depth = 0;
    int rc = 0;
    do {
        depth += lex_is(t, "(");
        depth -= lex_is(t, ")");
        rc = next(w, t);
    } while (rc == 0 && depth > 0 && t->kind != LEX_END);
    return rc;
}

/* Goes from behind __global__ to the "(" of the parameters. name.kind LEX_END: it is not a
 * function. */
static int kernel_name(struct walk *w, struct lex_token *t, struct lex_token *ret_name)
{
    struct lex_token name = {.kind = LEX_END};
    int rc = 0;
    while (rc == 0 && t->kind != LEX_END && !lex_is(t, ";") && !lex_is(t, "{")) {
        if (lex_takes_parens(t)) {
            rc = next(w, t);
            rc = rc == 0 && lex_is(t, "(") ? skip_parens(w, t) : rc;
            continue;
        }
        if (lex_is(t, "(")) {
            break;
        }
        w->is_static = w->is_static || lex_is(t, "static");
        name = t->kind == LEX_WORD ? *t : (struct lex_token){.kind = LEX_END};
        rc = next(w, t);
    }
    *ret_name = lex_is(t, "(") ? name : (struct lex_token){.kind = LEX_END};
    return rc;
}

static bool param_add(struct scan_kernel *k, const struct lex_token *token, unsigned count)
{
    struct backend_compiled_arg arg;
    if (k->param_count == SCAN_PARAMS_MAX || !param_read(token, count, &arg)) {
        return false;
    }
    struct backend_compiled_arg *grown = realloc(k->param, (k->param_count + 1) * sizeof *k->param);
    if (grown == NULL) {
        return false;
    }
    k->param = grown;
    k->param[k->param_count++] = arg;
    return true;
}

/* Collects the tokens of one parameter at a time. */
struct params {
    struct lex_token token[PARAM_TOKENS_MAX];
    unsigned count;
    unsigned depth; /* nesting of all brackets */
};

static void param_end(struct params *p, struct scan_kernel *k)
{
    bool none = p->count == 1 && k->param_count == 0 && lex_is(&p->token[0], "void");
    bool empty = p->count == 0 && k->param_count == 0;
    if (!none && !empty) {
        k->readable = k->readable && param_add(k, p->token, p->count);
    }
    p->count = 0;
}

static void param_token(struct params *p, const struct lex_token *t, struct scan_kernel *k)
{
    if (p->depth == 1 && (lex_is(t, ")") || lex_is(t, ","))) {
        param_end(p, k);
    } else if (p->count == PARAM_TOKENS_MAX || t->kind == LEX_HASH) {
        k->readable = false; /* too many tokens, or a directive among them */
    } else {
        p->token[p->count++] = *t;
    }
    p->depth += lex_is(t, "(") || lex_is(t, "<") || lex_is(t, "[");
    p->depth -= lex_is(t, ")") || lex_is(t, ">") || lex_is(t, "]");
}

/* Goes from "(" to behind its ")". A parameter that cannot be read makes the kernel unreadable. */
static int kernel_params(struct walk *w, struct lex_token *t, struct scan_kernel *k)
{
    struct params p = {.depth = 1};
    int rc = next(w, t);
    while (rc == 0 && p.depth > 0 && t->kind != LEX_END) {
        param_token(&p, t, k);
        rc = next(w, t);
    }
    return rc;
}

static bool kernel_keep(struct scan *s, const struct scan_kernel *k)
{
    if (s->kernel_count == SCAN_KERNELS_MAX) {
        return false;
    }
    if (s->kernel == NULL) {
        s->kernel = calloc(SCAN_KERNELS_MAX, sizeof *s->kernel);
    }
    if (s->kernel == NULL) {
        return false;
    }
    s->kernel[s->kernel_count++] = *k;
    return true;
}

/* Reads a kernel; the current token is __global__. */
static int kernel_read(struct walk *w, struct lex_token *t)
{
    struct lex_token name;
    w->out->globals++;
    int rc = next(w, t);
    rc = rc == 0 ? kernel_name(w, t, &name) : rc;
    if (rc != 0 || name.kind != LEX_WORD) {
        return rc;
    }
    struct scan_kernel k = {.place = place_of(&name),
                            .is_template = w->is_template,
                            .is_static = w->is_static,
                            .readable = name.size < sizeof k.name};
    snprintf(k.name, sizeof k.name, "%.*s", (int)(name.size < 127 ? name.size : 127), name.text);
    rc = kernel_params(w, t, &k);
    bool defined = rc == 0 && lex_is(t, "{");
    if (!defined || !kernel_keep(w->out, &k)) {
        free(k.param);
    }
    return rc;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static int step(struct walk *w, struct lex_token *t)
{
    if (t->word > 0) {
        return next(w, t);
    }
    if (lex_is(t, ";") || lex_is(t, "{") || lex_is(t, "}")) {
        w->is_template = false;
        w->is_static = false;
    }
    w->is_template = w->is_template || lex_is(t, "template");
    w->is_static = w->is_static || lex_is(t, "static");
    return lex_is(t, "__global__") ? kernel_read(w, t) : next(w, t);
}

int scan_source(const char *text, const char *file, struct scan *ret_scan, struct err *e)
{
    struct scan out = {0};
    struct walk w = {.text = text, .out = &out, .e = e};
    struct lex_token t = {.kind = LEX_END};
    lex_init(&w.lex, text, file);
    int rc = next(&w, &t);
    while (rc == 0 && t.kind != LEX_END) {
        rc = step(&w, &t);
    }
    if (rc != 0) {
        scan_finish(&out);
        return rc;
    }
    *ret_scan = out;
    return 0;
}

void scan_finish(struct scan *s)
{
    for (unsigned i = 0; i < s->kernel_count; i++) {
        free(s->kernel[i].param);
    }
    free(s->kernel);
    *s = (struct scan){0};
}

static bool same_params(const struct scan_kernel *a, const struct scan_kernel *b)
{
    return a->param_count == b->param_count &&
           (a->param_count == 0 ||
            memcmp(a->param, b->param, a->param_count * sizeof *a->param) == 0);
}

const struct scan_kernel *scan_find(const struct scan *s, const char *name)
{
    const struct scan_kernel *found = NULL;
    for (unsigned i = 0; i < s->kernel_count; i++) {
        const struct scan_kernel *k = &s->kernel[i];
        if (strcmp(k->name, name) != 0) {
            continue;
        }
        if (!k->readable || (found != NULL && !same_params(found, k))) {
            return NULL;
        }
        found = k;
    }
    return found;
}
