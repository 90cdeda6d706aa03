#include "daemon/backend/cuda/source/instance_int.h"

#include <string.h>

#define EXPRESSION_MAX 2048u /* bytes */
#define DEPTH_MAX      4u    /* values that other values tell */

void words_text(struct words *w, const char *text)
{
    (void)capbuf_append(&w->text, text, strlen(text));
    w->last = NULL;
}

void words_token(struct words *w, const struct lex_token *t)
{
    bool word = t->kind != LEX_SIGN;
    bool after_word = w->last != NULL && w->last->kind != LEX_SIGN;
    bool doubled = w->last != NULL && !word && lex_equal(w->last, t) && !t->glued &&
                   (lex_is(t, "-") || lex_is(t, "+") || lex_is(t, "&"));
    if ((word && after_word) || doubled) {
        (void)capbuf_append(&w->text, " ", 1);
    }
    (void)capbuf_append(&w->text, t->text, t->size);
    w->last = t;
}

/* Is the word at `at` looked up in what stands before it, or what stands behind it in it? */
static bool qualified(const struct lex_token *t, size_t at)
{
    bool member = at > 0 && lex_is(&t[at - 1], ".");
    bool arrow = at > 1 && lex_is(&t[at - 1], ">") && lex_is(&t[at - 2], "-") && t[at - 1].glued;
    bool inside = at > 1 && lex_is(&t[at - 1], ":") && lex_is(&t[at - 2], ":");
    return member || arrow || inside || (lex_is(&t[at + 1], ":") && lex_is(&t[at + 2], ":"));
}

static bool automatic(const struct lex_token *t, const struct local *l)
{
    for (size_t at = l->base.begin; at < l->base.end; at++) {
        if (lex_is(&t[at], "auto")) {
            return true;
        }
    }
    return false;
}

static void type_put(struct finder *f, const struct scope *s, const struct local *l,
                     struct manner manner, struct words *w)
{
    static const char *const others[] = {"static", "register", "constexpr",    "extern",
                                         "inline", "typename", "thread_local", NULL};
    const struct manner deeper = {.constant = true, .depth = manner.depth + 1};
    words_text(w, "__gpud_value<");
    for (size_t at = l->base.begin; at < l->base.end; at++) {
        if (!lex_one_of(&f->t[at], others)) {
            words_range(f, s, (struct item_range){at, at + 1}, deeper, w);
        }
    }
    words_range(f, s, l->pointers, deeper, w);
    words_range(f, s, l->extents, deeper, w);
    words_text(w, ">()");
}

static void local_put(struct finder *f, const struct scope *s, const struct local *l,
                      struct manner manner, struct words *w)
{
    bool valued = l->value.end > l->value.begin;
    bool by_value = manner.constant || automatic(f->t, l);
    bool known =
        manner.depth < DEPTH_MAX && (!by_value || (valued && (l->constant || !manner.constant)));
    w->spelled = false;
    w->unknown = w->unknown || !known;
    if (!known) {
        return;
    }
    manner.depth++;
    if (by_value) {
        words_text(w, "(");
        words_range(f, s, l->value, manner, w);
        words_text(w, ")");
    } else {
        type_put(f, s, l, manner, w);
    }
}

/* A variable of the host's that no function has. false: it is none. */
static bool global_put(struct finder *f, const struct scope *s, const struct lex_token *word,
                       struct manner manner, struct words *w)
{
    const struct item *item = items_next(f->items, word, NULL);
    bool several = item != NULL && items_next(f->items, word, item) != NULL;
    struct locals own = {.count = 0};
    bool known = false;
    if (manner.constant || item == NULL || several || item->kind != ITEM_VARIABLE || item->kept) {
        return false;
    }
    (void)locals_read_body(f->t, (struct item_range){item->begin, item->end}, &own);
    const struct local *l = locals_find(&own, f->t, word, false, &known);
    if (l != NULL) {
        local_put(f, s, l, manner, w);
    }
    locals_finish(&own);
    return l != NULL;
}

/* What the template's parameter is here; NULL: it is none of them. */
static const char *argument_of(const struct scope *s, const struct lex_token *word, bool *ret_type)
{
    for (unsigned i = 0; i < s->head.count; i++) {
        const struct parameter *p = &s->head.parameter[i];
        if (s->text[i] != NULL && p->name != NULL && lex_equal(p->name, word)) {
            *ret_type = p->type;
            return s->text[i];
        }
    }
    return NULL;
}

/* What the declaration from `begin` on calls by the word at `at` of it; empty: not what can be put
 * in its place. false: the word is none that it declares. */
static bool inner_read(const struct lex_token *t, size_t begin, size_t at, struct item_range *ret)
{
    static const char *const ends[] = {";", ",", "[", "(", ")", NULL};
    bool typedefs = lex_is(&t[begin], "typedef");
    bool equals = lex_is(&t[begin], "using") && at == begin + 1 && lex_is(&t[at + 1], "=");
    *ret = (struct item_range){at, at};
    if (typedefs && lex_is(&t[at + 1], ";")) {
        *ret = (struct item_range){begin + 1, at};
    }
    for (size_t end = at; equals && !lex_is(&t[end], ";"); end++) {
        *ret = (struct item_range){at + 2, end + 1};
    }
    return typedefs ? lex_one_of(&t[at + 1], ends)
                    : equals || !lex_is(&t[begin], "using") || lex_is(&t[at + 1], ";");
}

/* Does a declaration in the body around name it, which only is in force there? */
static bool inner(const struct finder *f, const struct item *around, const struct lex_token *word,
                  struct item_range *ret_alias)
{
    size_t begin = 0; /* of a declaration; 0: in none */
    unsigned found = 0;
    for (size_t at = around->body; around->body > 0 && at < around->end; at++) {
        struct item_range alias;
        bool begins =
            lex_type_key(&f->t[at]) || lex_is(&f->t[at], "using") || lex_is(&f->t[at], "typedef");
        begin = lex_is(&f->t[at], ";") ? 0 : begins && begin == 0 ? at : begin;
        if (begin > 0 && lex_equal(&f->t[at], word) && &f->t[at] != word &&
            inner_read(f->t, begin, at, &alias)) {
            *ret_alias = found++ == 0 ? alias : (struct item_range){at, at};
        }
    }
    return found > 0;
}

/* Is a macro of that name defined twice, or one that it mentions? */
static bool redefined(const struct items *s, const struct lex_token *word, unsigned depth)
{
    const struct item *item = NULL;
    unsigned macros = 0;
    bool twice = false;
    while ((item = items_next(s, word, item)) != NULL) {
        bool macro = item->kind == ITEM_MACRO;
        macros += macro;
        for (size_t i = item->begin; macro && depth > 0 && !twice && i < item->end; i++) {
            const struct lex_token *t = &s->macros.token[i];
            twice = t->kind == LEX_WORD && !lex_equal(t, word) && redefined(s, t, depth - 1);
        }
    }
    return twice || macros > 1;
}

/* Names are looked up behind all of the source: those of which there are several, in several
 * spaces, may be others there. */
static bool ambiguous(const struct items *s, const struct lex_token *word)
{
    const struct item *first = NULL;
    const struct item *item = NULL;
    while ((item = items_next(s, word, item)) != NULL) {
        if (item->kind != ITEM_MACRO && first != NULL && item->space != first->space) {
            return true;
        }
        first = item->kind != ITEM_MACRO ? item : first;
    }
    return false;
}

/* An argument of the template's, for its parameter. */
static void text_put(const char *text, bool type, struct words *w)
{
    bool blank = w->last != NULL && w->last->kind != LEX_SIGN;
    bool plain = type || strpbrk(text, "+-*/%&|^<>?=! ") == NULL;
    words_text(w, blank ? " " : "");
    words_text(w, plain ? "" : "(");
    words_text(w, text);
    words_text(w, plain ? "" : ")");
}

static void alias_put(struct finder *f, const struct scope *s, struct item_range alias,
                      struct manner manner, struct words *w)
{
    w->spelled = false;
    w->unknown = w->unknown || alias.begin == alias.end || manner.depth == DEPTH_MAX;
    manner.depth++;
    words_range(f, s, alias, manner, w);
}

static void word_put(struct finder *f, const struct scope *s, size_t at, struct manner manner,
                     struct words *w)
{
    const struct lex_token *word = &f->t[at];
    bool type = true;
    bool known = false;
    const char *text = argument_of(s, word, &type);
    const struct local *l = locals_find(&f->locals, f->t, word, manner.constant, &known);
    struct item_range alias = {0, 0};
    if (text != NULL) {
        text_put(text, type, w);
        w->spelled = w->spelled && s->spelled;
    } else if (known && l != NULL) {
        local_put(f, s, l, manner, w);
    } else if (known) {
        w->unknown = true;
    } else if (inner(f, s->item, word, &alias)) {
        alias_put(f, s, alias, manner, w);
    } else if (ambiguous(f->items, word)) {
        w->unknown = true;
    } else {
        w->spelled = w->spelled && !redefined(f->items, word, DEPTH_MAX);
        if (!global_put(f, s, word, manner, w)) {
            words_token(w, word);
        }
    }
}

void words_range(struct finder *f, const struct scope *s, struct item_range r, struct manner manner,
                 struct words *w)
{
    for (size_t at = r.begin; at < r.end && !w->unknown; at++) {
        if (f->t[at].kind == LEX_WORD && !qualified(f->t, at)) {
            word_put(f, s, at, manner, w);
        } else {
            bool type = true;
            struct item_range alias;
            bool leads = f->t[at].kind == LEX_WORD && lex_is(&f->t[at + 1], ":");
            w->unknown = w->unknown || (leads && (argument_of(s, &f->t[at], &type) != NULL ||
                                                  ambiguous(f->items, &f->t[at]) ||
                                                  inner(f, s->item, &f->t[at], &alias)));
            words_token(w, &f->t[at]);
        }
        w->unknown = w->unknown || w->text.failed;
    }
}

void words_space(const struct finder *f, unsigned space, struct words *w)
{
    const struct item_space *own = &f->items->space[space];
    if (space == 0) {
        return;
    }
    words_space(f, own->parent, w);
    for (size_t at = own->name.begin; at < own->name.end; at++) {
        words_token(w, &f->t[at]);
    }
    if (own->name.end > own->name.begin) {
        words_text(w, "::");
    }
}

struct words words_begin(void)
{
    struct words w = {.spelled = true};
    capbuf_init(&w.text, EXPRESSION_MAX);
    return w;
}

char *words_end(struct words *w)
{
    char *text = NULL;
    bool whole = capbuf_append(&w->text, "", 1) && !w->unknown;
    if (whole) {
        text = strdup((const char *)w->text.data);
    }
    capbuf_finish(&w->text);
    return text;
}
