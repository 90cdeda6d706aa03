#include "daemon/backend/cuda/source/attribute.h"

#include <stdlib.h>

#include "daemon/backend/cuda/source/item.h"

#define DEPTH_MAX 128u /* braces, or #ifs, one inside of another; deeper ones are not looked at */

/* A text's tokens: of directives only the word, as LEX_HASH; macros begin with their name, as that.
 */
struct mover {
    char *text;
    const char *file;
    struct item_tokens code, macros;
    struct err *e;
};

static bool attribute(const struct lex_token *t)
{
    static const char *const words[] = {"__attribute__", "__attribute", "__align__",
                                        "__builtin_align__", NULL};
    return lex_one_of(t, words);
}

/* Attributes that each compiler gives to the variable. */
static bool annotation(const struct lex_token *t)
{
    static const char *const words[] = {"__device__", "__constant__", "__shared__", "__managed__",
                                        NULL};
    return t->kind == LEX_HASH || lex_one_of(t, words);
}

/* Behind these all is the variable's; an alignas there is an error. */
static bool specifier(const struct lex_token *t)
{
    static const char *const words[] = {"const",   "volatile",     "static",    "extern",  "inline",
                                        "mutable", "thread_local", "constexpr", "alignas", NULL};
    return lex_one_of(t, words);
}

/* Is it a macro that holds an attribute? */
static bool attribute_macro(const struct mover *m, const struct lex_token *name)
{
    bool inside = false;
    for (size_t i = 0; i < m->macros.count; i++) {
        const struct lex_token *t = &m->macros.token[i];
        inside = t->kind == LEX_HASH ? lex_equal(t, name) : inside;
        if (inside && attribute(t)) {
            return true;
        }
    }
    return false;
}

/* Behind the attribute at `at`; `at` if there is none. One word more than a declaration has is a
 * macro for one, if any: what else it may be is an error before the type's name. */
static size_t attribute_end(const struct mover *m, const struct lex_token *t, size_t at, size_t end)
{
    size_t behind = at + 1;
    if (at >= end || t[at].kind != LEX_WORD || specifier(&t[at])) {
        return at;
    }
    behind = lex_is(&t[behind], "(") ? item_skip(t, behind, end) : behind;
    const struct lex_token *next = &t[behind];
    bool more = next->kind == LEX_WORD && !attribute(next) && !annotation(next) &&
                !specifier(next) && !attribute_macro(m, next);
    return more || attribute(&t[at]) || attribute_macro(m, &t[at]) ? behind : at;
}

static bool single_colon(const struct lex_token *t, size_t at)
{
    return at > 0 && lex_is(&t[at], ":") && !lex_is(&t[at + 1], ":") && !lex_is(&t[at - 1], ":");
}

/* The "struct" of the type whose body is at `open`; `open` if that is something else's. */
static size_t type_key(const struct lex_token *t, size_t open)
{
    static const char *const before[] = {";", "{", "}", NULL};
    size_t key = open;
    size_t words = 0; /* since that, or since the parentheses of an attribute */
    bool bases = false;
    size_t at = open;
    while (at > 0 && !lex_one_of(&t[at - 1], before)) {
        at--;
    }
    for (; at < open; at++) {
        if (lex_is(&t[at], "template")) {
            at = item_skip_angles(t, at + 1, open) - 1;
        } else if (lex_type_key(&t[at])) {
            key = at;
            words = 0;
            bases = false;
        } else if (lex_is(&t[at], "=") || (lex_is(&t[at], "(") && words > 1 && !bases)) {
            return open; /* a value, or a function */
        } else if (lex_is(&t[at], "(")) {
            at = item_skip(t, at, open) - 1;
            words = 0;
        } else {
            bases = bases || single_colon(t, at);
            words += key < open && t[at].kind != LEX_HASH;
        }
    }
    return key;
}

static void reverse(char *at, char *end)
{
    while (at + 1 < end) {
        char c = *at;
        *at++ = *--end;
        *end = c;
    }
}

/* What lies in [from, to) comes to `at`, before that. */
static void rotate(char *at, char *from, char *to)
{
    reverse(at, from);
    reverse(from, to);
    reverse(at, to);
}

static char *token_end(const struct mover *m, const struct lex_token *t)
{
    return m->text + (t->text - m->text) + t->size; /* t->text is const */
}

/* What stands behind the type's body, which is between two braces; *ret_last is the last token of
 * what was moved: those before are no longer what they were. */
static int behind_look(const struct mover *m, const struct lex_token *t, struct item_range body,
                       size_t end, size_t *ret_last)
{
    size_t key = type_key(t, body.begin);
    for (size_t at = body.end + 1; key < body.begin && at < end; at++) {
        size_t behind = annotation(&t[at]) ? at + 1 : attribute_end(m, t, at, end);
        if (behind == at) {
            break;
        }
        if (annotation(&t[at])) {
            continue;
        }
        bool directive = false;
        for (size_t i = key; i < behind; i++) {
            directive = directive || t[i].kind == LEX_HASH;
        }
        if (directive || t[at].glued) {
            return lex_refuse(m->text, m->file, &t[at], m->e,
                              "an attribute behind the body of a type: put it before the type's "
                              "name: struct ",
                              bytes_of(t[at].text, t[at].size), "(…) name {");
        }
        rotate(token_end(m, &t[key]), token_end(m, &t[at - 1]), token_end(m, &t[behind - 1]));
        *ret_last = at = behind - 1;
    }
    return 0;
}

/* How many braces are open behind a directive: what an #else begins with is what its #if did. */
static size_t directive_depth(const struct lex_token *word, size_t depth, size_t *at_if,
                              size_t *conditions)
{
    static const char *const begin[] = {"if", "ifdef", "ifndef", NULL};
    static const char *const between[] = {"else", "elif", "elifdef", "elifndef", NULL};
    const struct lex_token t = {.kind = LEX_WORD, .text = word->text, .size = word->size};
    if (lex_one_of(&t, begin) && *conditions < DEPTH_MAX) {
        at_if[(*conditions)++] = depth;
    } else if (*conditions > 0 && lex_one_of(&t, between)) {
        return at_if[*conditions - 1];
    }
    *conditions -= *conditions > 0 && lex_is(&t, "endif");
    return depth;
}

static int tokens_look(const struct mover *m, const struct item_tokens *s)
{
    size_t open[DEPTH_MAX];
    size_t at_if[DEPTH_MAX];
    size_t depth = 0;
    size_t conditions = 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < s->count; i++) {
        const struct lex_token *t = &s->token[i];
        if (t->kind == LEX_HASH) {
            depth = s == &m->macros ? 0 : directive_depth(t, depth, at_if, &conditions);
        } else if (lex_is(t, "{")) {
            open[depth < DEPTH_MAX ? depth : DEPTH_MAX - 1] = i;
            depth++;
        } else if (lex_is(t, "}") && depth > 0 && --depth < DEPTH_MAX) {
            rc = behind_look(m, s->token, (struct item_range){open[depth], i}, s->count, &i);
        }
    }
    return rc;
}

/* false: no memory, or too many. What is no token is refused elsewhere. */
static bool tokens_read(struct mover *m)
{
    struct lex lex;
    struct lex_token t = {.kind = LEX_END};
    bool define = false;
    bool ok = true;
    lex_init(&lex, m->text, m->file);
    while (ok && lex_next(&lex, &t, NULL) == 0 && t.kind != LEX_END) {
        define = t.word == 2 ? lex_is(&t, "define") : define && t.word > 2;
        t.kind = t.word == 2 || t.word == 3 ? LEX_HASH : t.kind;
        ok = (t.word != 0 && t.word != 2) || item_tokens_add(&m->code, &t);
        ok = ok && (t.word < 3 || !define || item_tokens_add(&m->macros, &t));
    }
    t = (struct lex_token){.kind = LEX_END, .text = lex.end};
    ok = ok && item_tokens_add(&m->code, &t) && item_tokens_add(&m->macros, &t);
    m->code.count -= ok;
    m->macros.count -= ok;
    return ok;
}

int attributes_move(char *text, const char *file, struct err *e)
{
    struct mover m = {.text = text, .file = file, .e = e};
    int rc = tokens_read(&m) ? 0 : err_set(e, ERR_COMPILE_LIMIT, "%s: too many tokens", file);
    rc = rc == 0 ? tokens_look(&m, &m.code) : rc;
    rc = rc == 0 ? tokens_look(&m, &m.macros) : rc;
    free(m.code.token);
    free(m.macros.token);
    return rc;
}
