#include "daemon/backend/cuda/source/attribute.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/backend/cuda/source/item.h"
#include "daemon/backend/cuda/source/list.h"

#define DEPTH_MAX    128u /* braces, or #ifs, one inside of another; deeper ones are not looked at */
#define MACROS_MAX   (1u << 20)
#define ROUNDS_MAX   64u   /* how deep macros use macros */
#define ARGUMENT_MAX 1024u /* tokens */

/* What a word holds, or by the macros that it names stands for. */
enum {
    HOLDS_ATTRIBUTE = 1,
    HOLDS_LAYOUT = 2, /* an attribute that moves members */
    HOLDS_ALIGN = 4,
    HOLDS_ALIGNS = 8, /* more than one */
    HOLDS_ANNOTATION = 16,
    HOLDS_BRACE = 32, /* more that open than close, or fewer */
};

struct attribute_macro {
    const struct lex_token *name;
    size_t end;     /* of its tokens, which follow the name */
    unsigned holds; /* of the first of a name: what all of them do */
};

/* A text's tokens: of directives only the word, as LEX_HASH; macros begin with their name, as that.
 */
struct mover {
    char *text;
    const char *file;
    struct item_tokens code, macros;
    struct attribute_macro *macro; /* owned; by name */
    size_t macro_count, macro_capacity;
    struct err *e;
};

static bool attribute(const struct lex_token *t)
{
    static const char *const words[] = {"__attribute__", "__attribute", "__align__",
                                        "__builtin_align__", NULL};
    return lex_one_of(t, words);
}

/* Of one type's, nvcc takes the last and NVRTC the largest; it refuses a different alignas itself.
 */
static bool alignment(const struct lex_token *t)
{
    static const char *const words[] = {"aligned", "__aligned__", "__align__", "__builtin_align__",
                                        NULL};
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

/* ---- what macros hold ------------------------------------------------------------------------ */

static int name_compare(const struct lex_token *a, const struct lex_token *b)
{
    int order = memcmp(a->text, b->text, a->size < b->size ? a->size : b->size);
    return order != 0 ? order : (a->size > b->size) - (a->size < b->size);
}

static int macro_compare(const void *a, const void *b)
{
    return name_compare(((const struct attribute_macro *)a)->name,
                        ((const struct attribute_macro *)b)->name);
}

/* The first of that name; NULL: it is none's. */
static struct attribute_macro *macro_find(const struct mover *m, const struct lex_token *name)
{
    size_t low = 0;
    size_t high = m->macro_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        bool less = name_compare(m->macro[middle].name, name) < 0;
        low = less ? middle + 1 : low;
        high = less ? high : middle;
    }
    return low < m->macro_count && name_compare(m->macro[low].name, name) == 0 ? &m->macro[low]
                                                                               : NULL;
}

static unsigned word_holds(const struct mover *m, const struct lex_token *t)
{
    static const char *const packed[] = {"packed", "__packed__", NULL};
    if (t->kind != LEX_WORD) {
        return 0;
    }
    const struct attribute_macro *found = macro_find(m, t);
    unsigned holds = found != NULL ? found->holds : 0;
    holds |= attribute(t) ? HOLDS_ATTRIBUTE : 0;
    holds |= alignment(t) ? HOLDS_ALIGN | HOLDS_LAYOUT : 0;
    holds |= lex_one_of(t, packed) ? HOLDS_LAYOUT : 0;
    return holds | (annotation(t) ? HOLDS_ANNOTATION : 0);
}

static unsigned range_holds(const struct mover *m, const struct lex_token *t, size_t at, size_t end)
{
    unsigned holds = 0;
    int braces = 0;
    for (; at < end; at++) {
        unsigned more = word_holds(m, &t[at]);
        holds |= more | ((holds & more & HOLDS_ALIGN) != 0 ? HOLDS_ALIGNS : 0);
        braces += lex_is(&t[at], "{");
        braces -= lex_is(&t[at], "}");
    }
    return holds | (braces != 0 ? HOLDS_BRACE : 0);
}

static bool macros_read(struct mover *m)
{
    const struct lex_token *t = m->macros.token;
    for (size_t i = 0; i < m->macros.count; i++) {
        struct attribute_macro one = {.name = &t[i], .end = i + 1};
        while (one.end < m->macros.count && t[one.end].kind != LEX_HASH) {
            one.end++;
        }
        if (!LIST_ADD(m->macro, m->macro_count, m->macro_capacity, MACROS_MAX, one)) {
            return false;
        }
        i = one.end - 1;
    }
    if (m->macro_count > 0) {
        qsort(m->macro, m->macro_count, sizeof *m->macro, macro_compare);
    }
    return true;
}

/* Macros hold what those hold that they name. false: they lie too deep. */
static bool macros_resolve(struct mover *m)
{
    bool changed = true;
    for (unsigned round = 0; changed && round < ROUNDS_MAX; round++) {
        changed = false;
        for (size_t i = 0; i < m->macro_count; i++) {
            struct attribute_macro *first = macro_find(m, m->macro[i].name);
            size_t begin = (size_t)(m->macro[i].name - m->macros.token) + 1;
            unsigned holds = first->holds | range_holds(m, m->macros.token, begin, m->macro[i].end);
            changed = changed || holds != first->holds;
            first->holds = holds;
        }
    }
    return !changed;
}

/* ---- what stands behind a body --------------------------------------------------------------- */

static bool points(const struct lex_token *t)
{
    return lex_is(t, "*") || lex_is(t, "&");
}

/* A word that only a declaration's parentheses follow, not its own: "AL (*p)". */
static bool before_pointer(const struct lex_token *t, size_t at)
{
    return lex_is(&t[at + 1], "(") && points(&t[at + 2]);
}

/* Behind the attribute at `at`; `at` if there is none. One word more than a declaration has is a
 * macro for one, if any: what else it may be is an error before the type's name. Behind a template
 * is no declaration. */
static size_t attribute_end(const struct mover *m, const struct lex_token *t, size_t at, size_t end,
                            bool template)
{
    if (at >= end || t[at].kind != LEX_WORD || specifier(&t[at])) {
        return at;
    }
    size_t behind = at + 1;
    bool sure = (word_holds(m, &t[at]) & HOLDS_ATTRIBUTE) != 0;
    bool parens = lex_is(&t[behind], "(") && !(sure && before_pointer(t, at));
    behind = parens ? item_skip(t, behind, end) : behind;
    const struct lex_token *next = &t[behind];
    bool word = next->kind == LEX_WORD && !specifier(next) &&
                (word_holds(m, next) & (HOLDS_ATTRIBUTE | HOLDS_ANNOTATION)) == 0;
    bool more = word || points(next) || lex_is(next, "(") || (template && lex_is(next, ";"));
    return more || sure ? behind : at;
}

static bool single_colon(const struct lex_token *t, size_t at)
{
    return at > 0 && lex_is(&t[at], ":") && !lex_is(&t[at + 1], ":") && !lex_is(&t[at - 1], ":");
}

/* Behind what a type's head has besides words, and what is no function's: "[[…]]", the arguments
 * of a template, and those of an attribute; `at` if nothing of that is there. */
static size_t head_skip(const struct mover *m, const struct lex_token *t, size_t at, size_t open,
                        bool named)
{
    if (lex_is(&t[at], "[")) {
        return item_skip(t, at, open);
    }
    if (lex_is(&t[at], "(") && at > 0 && (word_holds(m, &t[at - 1]) & HOLDS_ATTRIBUTE) != 0) {
        return item_skip(t, at, open);
    }
    return named ? item_skip_angles(t, at, open) : at;
}

/* The "struct" of the type whose body is at `open`; `open` if that is something else's. */
static size_t type_key(const struct mover *m, const struct lex_token *t, size_t open,
                       bool *ret_template)
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
        size_t skipped = head_skip(m, t, at, open, key < open);
        if (lex_is(&t[at], "template")) {
            *ret_template = true;
            at = item_skip_angles(t, at + 1, open) - 1;
        } else if (skipped > at) {
            words = lex_is(&t[at], "(") ? 0 : words;
            at = skipped - 1;
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

static int refuse(const struct mover *m, const struct lex_token *t)
{
    return lex_refuse(m->text, m->file, t, m->e,
                      "an attribute behind the body of a type: put it before the type's "
                      "name: struct ",
                      bytes_of(t->text, t->size), "(…) name {");
}

/* A body, from its "{" to its "}", that is not known to be a type's. What places members is a
 * type's all the same where no other declaration can follow. */
static int other_look(const struct mover *m, const struct item_tokens *s, size_t at, bool hidden)
{
    static const char *const ends[] = {";", ",", "*", "&", NULL};
    static const char *const behind_name[] = {";", ",", "=", "[", NULL};
    const struct lex_token *t = s->token;
    while (at < s->count && annotation(&t[at]) && t[at].kind != LEX_HASH) {
        at++;
    }
    size_t behind = at < s->count ? attribute_end(m, t, at, s->count, false) : at;
    unsigned holds = range_holds(m, t, at, behind);
    if ((holds & HOLDS_ATTRIBUTE) == 0 || (holds & HOLDS_LAYOUT) == 0) {
        return 0;
    }
    bool last = s == &m->macros && (behind >= s->count || t[behind].kind == LEX_HASH);
    bool name =
        behind < s->count && t[behind].kind == LEX_WORD && lex_one_of(&t[behind + 1], behind_name);
    return hidden || last || name || lex_one_of(&t[behind], ends) ? refuse(m, &t[at]) : 0;
}

/* Of a type: the tokens of its first alignment. */
struct aligns {
    struct item_range first;
};

/* Is there another one in the range that may differ? */
static bool aligns_differ(const struct mover *m, const struct lex_token *t, struct item_range in,
                          struct aligns *a)
{
    for (size_t i = in.begin; i < in.end; i++) {
        unsigned holds = word_holds(m, &t[i]);
        if ((holds & HOLDS_ALIGN) == 0) {
            continue;
        }
        size_t end = lex_is(&t[i + 1], "(") ? item_skip(t, i + 1, in.end) : i + 1;
        struct item_range r = {alignment(&t[i]) ? i + 1 : i, end};
        struct item_range *f = &a->first;
        bool same = f->end == 0 || f->end - f->begin == r.end - r.begin;
        for (size_t k = 0; f->end != 0 && same && r.begin + k < r.end; k++) {
            same = name_compare(&t[f->begin + k], &t[r.begin + k]) == 0;
        }
        if (!same || (holds & HOLDS_ALIGNS) != 0) {
            return true;
        }
        *f = r;
        i = end - 1;
    }
    return false;
}

/* A type's body and what stands behind it. */
struct type {
    size_t key;
    struct item_range body;
    bool template, directive; /* one stands before the body's end, from the key on */
    struct aligns aligns;
};

/* May the attribute in [at, behind) be given to the type, so that it is what nvcc makes of it? */
static bool movable(const struct mover *m, const struct lex_token *t, struct type *y, size_t at,
                    size_t behind)
{
    unsigned holds = range_holds(m, t, at, behind);
    bool sure = (holds & HOLDS_ATTRIBUTE) != 0;
    bool directive = y->directive;
    for (size_t i = y->body.end; i < behind; i++) {
        directive = directive || t[i].kind == LEX_HASH;
    }
    /* nvcc does not align an enum by what stands there */
    bool enumeration = lex_is(&t[y->key], "enum") && (!sure || (holds & HOLDS_ALIGN) != 0);
    /* the blank behind the key has to part it from what has none */
    const struct lex_token *name = &t[y->key + 1];
    bool stuck = t[at].glued && (name->glued || at != y->body.end + 1 ||
                                 (name->kind == LEX_WORD && !lex_is(&t[behind - 1], ")")));
    bool both = (holds & HOLDS_ANNOTATION) != 0 && sure;
    return !directive && !enumeration && !stuck && !both &&
           !aligns_differ(m, t, (struct item_range){at, behind}, &y->aligns);
}

/* From the end of the token before, with the blanks between. What has none, before the name. */
static void move(const struct mover *m, const struct lex_token *t, const struct type *y, size_t at,
                 size_t behind)
{
    char *into = t[at].glued ? m->text + (t[y->key + 1].text - m->text) : token_end(m, &t[y->key]);
    rotate(into, token_end(m, &t[at - 1]), token_end(m, &t[behind - 1]));
}

/* As attribute_end: those that stick together move together. */
static size_t attributes_end(const struct mover *m, const struct item_tokens *s, size_t at,
                             bool template)
{
    const struct lex_token *t = s->token;
    size_t behind = attribute_end(m, t, at, s->count, template);
    while (behind > at && behind < s->count && t[behind].glued &&
           (word_holds(m, &t[behind]) & HOLDS_ATTRIBUTE) != 0) {
        behind = attribute_end(m, t, behind, s->count, false);
    }
    return behind;
}

/* What stands behind the type's body; *ret_last is the last token of what was moved: those before
 * are no longer what they were. `moves`: else it is only looked whether that can be done. */
static int behind_look(const struct mover *m, const struct item_tokens *s, struct type *y,
                       bool moves, size_t *ret_last)
{
    const struct lex_token *t = s->token;
    for (size_t at = y->body.end + 1; at < s->count; at++) {
        unsigned holds = word_holds(m, &t[at]);
        if (annotation(&t[at]) ||
            (holds & (HOLDS_ANNOTATION | HOLDS_ATTRIBUTE)) == HOLDS_ANNOTATION) {
            continue;
        }
        size_t behind = attributes_end(m, s, at, y->template);
        bool pointer = behind == at && t[at].kind == LEX_WORD && before_pointer(t, at);
        if (behind == at && !pointer) {
            break;
        }
        if (pointer || (!moves && !movable(m, t, y, at, behind))) {
            return refuse(m, &t[at]);
        }
        if (moves) {
            move(m, t, y, at, behind);
            *ret_last = behind - 1;
        }
        at = behind - 1;
    }
    return 0;
}

static int body_look(const struct mover *m, const struct item_tokens *s, struct item_range body,
                     bool hidden, size_t *ret_last)
{
    struct type y = {.body = body};
    const struct lex_token *t = s->token;
    y.key = type_key(m, t, body.begin, &y.template);
    if (y.key == body.begin || hidden) {
        return other_look(m, s, body.end + 1, hidden);
    }
    for (size_t i = y.key; !y.directive && i < body.end; i++) {
        y.directive = t[i].kind == LEX_HASH;
    }
    bool plain = true;
    for (size_t i = y.key; i < body.begin; i++) {
        plain = plain && t[i].kind != LEX_HASH;
    }
    struct item_range head = {y.key + 1, body.begin};
    if (plain && aligns_differ(m, t, head, &y.aligns)) {
        return lex_refuse(m->text, m->file, &t[y.key], m->e, "two alignments of one ",
                          bytes_of(t[y.key].text, t[y.key].size),
                          ", of which compilers take different ones: leave one");
    }
    int rc = behind_look(m, s, &y, false, ret_last);
    return rc == 0 ? behind_look(m, s, &y, true, ret_last) : rc;
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

/* At what may close a body without "}": "%>", or a macro, behind which is *ret_loose then. */
static int hidden_look(const struct mover *m, const struct item_tokens *s, size_t at,
                       size_t *ret_loose)
{
    const struct lex_token *t = &s->token[at];
    if (lex_is(t, ">") && t->glued && at > 0 && lex_is(t - 1, "%")) {
        return other_look(m, s, at + 1, false);
    }
    if (s != &m->code || (word_holds(m, t) & HOLDS_BRACE) == 0) {
        return 0;
    }
    size_t end = s->count - at > ARGUMENT_MAX ? at + ARGUMENT_MAX : s->count;
    *ret_loose = lex_is(t + 1, "(") ? item_skip(s->token, at + 1, end) : at + 1;
    return other_look(m, s, *ret_loose, false);
}

static int tokens_look(const struct mover *m, const struct item_tokens *s)
{
    size_t open[DEPTH_MAX];
    size_t at_if[DEPTH_MAX];
    size_t depth = 0;
    size_t conditions = 0;
    size_t loose = 0; /* behind the last macro that opens or closes what cannot be seen */
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < s->count; i++) {
        const struct lex_token *t = &s->token[i];
        if (t->kind == LEX_HASH) {
            depth = s == &m->macros ? 0 : directive_depth(t, depth, at_if, &conditions);
        } else if (lex_is(t, "{")) {
            open[depth < DEPTH_MAX ? depth : DEPTH_MAX - 1] = i;
            depth++;
        } else if (lex_is(t, "}") && depth == 0) {
            rc = other_look(m, s, i + 1, false);
        } else if (lex_is(t, "}") && --depth < DEPTH_MAX) {
            rc = body_look(m, s, (struct item_range){open[depth], i}, loose > open[depth], &i);
        } else {
            rc = hidden_look(m, s, i, &loose);
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
    if (rc == 0 && (!macros_read(&m) || !macros_resolve(&m))) {
        rc = err_set(e, ERR_COMPILE_LIMIT, "%s: too many macros", file);
    }
    rc = rc == 0 ? tokens_look(&m, &m.code) : rc;
    rc = rc == 0 ? tokens_look(&m, &m.macros) : rc;
    free(m.macro);
    free(m.code.token);
    free(m.macros.token);
    return rc;
}
