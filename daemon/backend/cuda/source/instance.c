#include "daemon/backend/cuda/source/instance.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/backend/cuda/source/local.h"

#define PARAMETERS_MAX 12u   /* of a template */
#define ARGUMENTS_MAX  32u   /* of a function */
#define SCOPES_MAX     256u  /* templates of the host with their arguments */
#define EXPRESSION_MAX 2048u /* bytes */
#define DEPTH_MAX      4u    /* values that other values tell */

/* "template <class T, int N = 1>" of a function. */
struct head {
    const struct item *item;
    unsigned count, required; /* parameters, and those without a default */
    bool plain;               /* each is a named type or value, and there is no pack */
    struct parameter {
        const struct lex_token *name;
        struct item_range declared; /* without its default */
        struct item_range value;    /* its default */
        bool type;
    } parameter[PARAMETERS_MAX];
};

/* One function or declaration whose mentions are looked for; a template with arguments. */
struct scope {
    const struct item *item;
    struct head head;
    char *text[PARAMETERS_MAX]; /* owned; of each parameter */
    bool spelled;
};

struct finder {
    const struct items *items;
    const bool *gone;
    const struct lex_token *t; /* of the code */
    struct instances *out;
    struct scope *scope; /* owned */
    unsigned scope_count;
    struct locals locals; /* of the scope that is looked at */
    bool *probed;         /* owned, for each item */
    bool failed;          /* no memory */
};

/* A text that grows. */
struct words {
    struct capbuf text;
    bool unknown; /* it names what nobody can tell */
    bool spelled; /* every word is the source's */
    const struct lex_token *last;
};

/* ---- templates ------------------------------------------------------------------------------- */

static bool type_word(const struct lex_token *t)
{
    return lex_is(t, "class") || lex_is(t, "typename");
}

/* Behind what begins at `at`: at a "," or at `end`. */
static size_t argument_end(const struct lex_token *t, size_t at, size_t end)
{
    while (at < end && !lex_is(&t[at], ",")) {
        size_t angles = lex_is(&t[at], "<") ? item_skip_angles(t, at, end) : at;
        bool opens = lex_is(&t[at], "(") || lex_is(&t[at], "{") || lex_is(&t[at], "[");
        at = opens ? item_skip(t, at, end) : angles > at ? angles : at + 1;
    }
    return at;
}

static unsigned arguments_read(const struct lex_token *t, struct item_range inside,
                               struct item_range *out, unsigned most)
{
    unsigned count = 0;
    for (size_t at = inside.begin; at < inside.end; at++) {
        size_t end = argument_end(t, at, inside.end);
        if (count == most) {
            return most + 1;
        }
        out[count++] = (struct item_range){at, end};
        at = end;
    }
    return count;
}

static bool parameter_read(const struct lex_token *t, struct item_range r, struct parameter *out)
{
    size_t equals = r.begin;
    bool plain = !lex_is(&t[r.begin], "template");
    while (equals < r.end && !lex_is(&t[equals], "=")) {
        plain = plain && !lex_is(&t[equals], ".") && !lex_is(&t[equals], "(");
        equals++;
    }
    out->type = type_word(&t[r.begin]);
    out->declared = (struct item_range){r.begin, equals};
    out->value = (struct item_range){equals < r.end ? equals + 1 : equals, r.end};
    out->name = equals > r.begin ? &t[equals - 1] : NULL;
    size_t words = equals - r.begin;
    return plain && words >= 2 && (!out->type || words == 2) && out->name->kind == LEX_WORD;
}

/* false: it is no template of a function, or a specialization of one. */
static bool head_read(const struct lex_token *t, const struct item *item, struct head *ret_head)
{
    struct head h = {.item = item, .plain = true};
    struct item_range part[PARAMETERS_MAX + 1];
    size_t open = item->begin + 1;
    if (item->kind == ITEM_MACRO || item->params < item->begin + 4 ||
        !lex_is(&t[item->begin], "template") || !lex_is(&t[open], "<")) {
        return false;
    }
    size_t end = item_skip_angles(t, open, item->params);
    unsigned count =
        arguments_read(t, (struct item_range){open + 1, end - 1}, part, PARAMETERS_MAX);
    if (end == open || count == 0 || count > PARAMETERS_MAX) {
        return false;
    }
    for (; h.count < count; h.count++) {
        struct parameter *p = &h.parameter[h.count];
        h.plain = parameter_read(t, part[h.count], p) && h.plain;
        h.required = p->value.begin == p->value.end ? h.count + 1 : h.required;
    }
    *ret_head = h;
    return true;
}

static bool names_kernel(const struct items *s, const struct item *item)
{
    const struct lex_token *t = s->code.token;
    for (size_t at = item->begin; at < item->params; at++) {
        if (lex_is(&t[at], "__global__")) {
            return true;
        }
        size_t stop = 0;
        for (size_t n = items_names(s, &t[at], &stop); n < stop; n++) {
            const struct item *macro = items_named(s, n);
            for (size_t i = macro->begin; macro->kind == ITEM_MACRO && i < macro->end; i++) {
                if (lex_is(&s->macros.token[i], "__global__")) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void text_put(struct words *w, const char *text)
{
    (void)capbuf_append(&w->text, text, strlen(text));
    w->last = NULL;
}

static void token_put(struct words *w, const struct lex_token *t)
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

/* How names are written. */
struct manner {
    bool constant; /* a template's argument: values are to be known */
    unsigned depth;
};

static void range_put(struct finder *f, const struct scope *s, struct item_range r,
                      struct manner manner, struct words *w);

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
    text_put(w, "__gpud_value<");
    for (size_t at = l->base.begin; at < l->base.end; at++) {
        if (!lex_one_of(&f->t[at], others)) {
            range_put(f, s, (struct item_range){at, at + 1}, deeper, w);
        }
    }
    range_put(f, s, l->pointers, deeper, w);
    range_put(f, s, l->extents, deeper, w);
    text_put(w, ">()");
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
        text_put(w, "(");
        range_put(f, s, l->value, manner, w);
        text_put(w, ")");
    } else {
        type_put(f, s, l, manner, w);
    }
}

/* A variable of the host's that no function has. false: it is none. */
static bool global_put(struct finder *f, const struct scope *s, const struct lex_token *word,
                       struct manner manner, struct words *w)
{
    size_t stop = 0;
    size_t n = items_names(f->items, word, &stop);
    const struct item *item = n + 1 == stop ? items_named(f->items, n) : NULL;
    struct locals own = {.count = 0};
    bool known = false;
    if (manner.constant || item == NULL || item->kind != ITEM_VARIABLE || item->kept) {
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

/* Does a declaration in the body around name it, which only is in force there? */
static bool inner(const struct finder *f, const struct item *around, const struct lex_token *word)
{
    static const char *const begins[] = {"using", "typedef", "enum", "struct",
                                         "class", "union",   NULL};
    bool declares = false;
    for (size_t at = around->body; around->body > 0 && at < around->end; at++) {
        declares = lex_one_of(&f->t[at], begins) || (declares && !lex_is(&f->t[at], ";"));
        if (declares && lex_equal(&f->t[at], word) && &f->t[at] != word) {
            return true;
        }
    }
    return false;
}

/* Is a macro of that name defined twice, or one that it mentions? */
static bool redefined(const struct items *s, const struct lex_token *word, unsigned depth)
{
    size_t stop = 0;
    unsigned macros = 0;
    bool twice = false;
    for (size_t n = items_names(s, word, &stop); n < stop; n++) {
        const struct item *item = items_named(s, n);
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
    size_t stop = 0;
    const struct item *first = NULL;
    for (size_t n = items_names(s, word, &stop); n < stop; n++) {
        const struct item *item = items_named(s, n);
        if (item->kind != ITEM_MACRO && first != NULL && item->space != first->space) {
            return true;
        }
        first = item->kind != ITEM_MACRO ? item : first;
    }
    return false;
}

static void word_put(struct finder *f, const struct scope *s, size_t at, struct manner manner,
                     struct words *w)
{
    const struct lex_token *word = &f->t[at];
    bool type = true;
    bool known = false;
    const char *text = argument_of(s, word, &type);
    const struct local *l = locals_find(&f->locals, f->t, word, manner.constant, &known);
    if (text != NULL) {
        bool blank = w->last != NULL && w->last->kind != LEX_SIGN;
        bool plain = type || strpbrk(text, "+-*/%&|^<>?=! ") == NULL;
        text_put(w, blank ? " " : "");
        text_put(w, plain ? "" : "(");
        text_put(w, text);
        text_put(w, plain ? "" : ")");
        w->spelled = w->spelled && s->spelled;
    } else if (known && l != NULL) {
        local_put(f, s, l, manner, w);
    } else if (known) {
        w->unknown = true;
    } else if (ambiguous(f->items, word) || inner(f, s->item, word)) {
        w->unknown = true;
    } else {
        w->spelled = w->spelled && !redefined(f->items, word, DEPTH_MAX);
        if (!global_put(f, s, word, manner, w)) {
            token_put(w, word);
        }
    }
}

static void range_put(struct finder *f, const struct scope *s, struct item_range r,
                      struct manner manner, struct words *w)
{
    for (size_t at = r.begin; at < r.end && !w->unknown; at++) {
        if (f->t[at].kind == LEX_WORD && !qualified(f->t, at)) {
            word_put(f, s, at, manner, w);
        } else {
            bool type = true;
            bool leads = f->t[at].kind == LEX_WORD && lex_is(&f->t[at + 1], ":");
            w->unknown = w->unknown || (leads && (argument_of(s, &f->t[at], &type) != NULL ||
                                                  ambiguous(f->items, &f->t[at]) ||
                                                  inner(f, s->item, &f->t[at])));
            token_put(w, &f->t[at]);
        }
        w->unknown = w->unknown || w->text.failed;
    }
}

/* The namespaces around, each with its "::". */
static void space_put(const struct finder *f, unsigned space, struct words *w)
{
    const struct item_space *own = &f->items->space[space];
    if (space == 0) {
        return;
    }
    space_put(f, own->parent, w);
    for (size_t at = own->name.begin; at < own->name.end; at++) {
        token_put(w, &f->t[at]);
    }
    if (own->name.end > own->name.begin) {
        text_put(w, "::");
    }
}

static struct words words_begin(void)
{
    struct words w = {.spelled = true};
    capbuf_init(&w.text, EXPRESSION_MAX);
    return w;
}

/* NULL: it says what nobody can tell. */
static char *words_end(struct words *w)
{
    char *text = NULL;
    bool whole = capbuf_append(&w->text, "", 1) && !w->unknown;
    if (whole) {
        text = strdup((const char *)w->text.data);
    }
    capbuf_finish(&w->text);
    return text;
}

/* ---- what compilers deduce ------------------------------------------------------------------- */

/* The function's parameters that say something of its template's: as ranges without their defaults,
 * and which they are. */
static unsigned dependent_read(const struct finder *f, const struct head *h, unsigned *ret_index,
                               struct item_range *ret_declared)
{
    struct item_range all[ARGUMENTS_MAX + 1];
    size_t close = item_skip(f->t, h->item->params, h->item->end) - 1;
    unsigned count =
        arguments_read(f->t, (struct item_range){h->item->params + 1, close}, all, ARGUMENTS_MAX);
    unsigned found = 0;
    for (unsigned i = 0; count <= ARGUMENTS_MAX && i < count; i++) {
        struct item_range r = all[i];
        bool depends = false;
        size_t at = r.begin;
        for (; at < r.end && !lex_is(&f->t[at], "="); at++) {
            for (unsigned p = 0; p < h->count; p++) {
                const struct lex_token *name = h->parameter[p].name;
                depends = depends || (name != NULL && lex_equal(name, &f->t[at]));
            }
        }
        if (depends) {
            ret_index[found] = i;
            ret_declared[found++] = (struct item_range){r.begin, at};
        }
    }
    return found;
}

/* "p7_1": the second parameter of the seventh item's template. */
static void tag_put(const struct finder *f, const struct head *h, unsigned parameter,
                    struct words *w)
{
    text_put(w, "");
    (void)capbuf_printf(&w->text, "__gpud_p%u_%u", (unsigned)(h->item - f->items->item), parameter);
}

static void verbatim_put(const struct finder *f, struct item_range r, struct words *w)
{
    for (size_t at = r.begin; at < r.end; at++) {
        if (!lex_is(&f->t[at], "__grid_constant__")) {
            token_put(w, &f->t[at]);
        }
    }
}

static void head_put(const struct finder *f, const struct head *h, bool defaults, struct words *w)
{
    text_put(w, "template <");
    for (unsigned i = 0; i < h->count; i++) {
        const struct parameter *p = &h->parameter[i];
        text_put(w, i > 0 ? "," : "");
        verbatim_put(f, p->declared, w);
        if (defaults && p->value.end > p->value.begin) {
            text_put(w, "=");
            verbatim_put(f, p->value, w);
        }
    }
    text_put(w, "> ");
}

/* The type that holds what was deduced, and the function that returns it. */
static void probe_put(struct finder *f, const struct head *h, struct words *w)
{
    unsigned index[ARGUMENTS_MAX];
    struct item_range declared[ARGUMENTS_MAX];
    unsigned count = dependent_read(f, h, index, declared);
    unsigned item = (unsigned)(h->item - f->items->item);
    text_put(w, " __gpud_probe(");
    head_put(f, h, false, w);
    (void)capbuf_printf(&w->text, "struct __gpud_held%u { ", item);
    for (unsigned i = 0; i < h->count; i++) {
        const struct parameter *p = &h->parameter[i];
        text_put(w, p->type ? "typedef " : "static constexpr decltype(");
        token_put(w, p->name);
        text_put(w, p->type ? " " : ") ");
        tag_put(f, h, i, w);
        if (!p->type) {
            text_put(w, " = ");
            token_put(w, p->name);
        }
        text_put(w, "; ");
    }
    text_put(w, "}; ");
    head_put(f, h, true, w);
    (void)capbuf_printf(&w->text, "__device__ __gpud_held%u<", item);
    for (unsigned i = 0; i < h->count; i++) {
        text_put(w, i > 0 ? "," : "");
        token_put(w, h->parameter[i].name);
    }
    text_put(w, "> __gpud_of_");
    token_put(w, &f->t[h->item->params - 1]);
    text_put(w, "(");
    for (unsigned i = 0; i < count; i++) {
        text_put(w, i > 0 ? "," : "");
        verbatim_put(f, declared[i], w);
    }
    text_put(w, ");) ");
}

/* Are the types there without the host's part? */
static bool types_stay(const struct finder *f, struct item_range r)
{
    bool stay = true;
    for (size_t at = r.begin; stay && at < r.end; at++) {
        size_t stop = 0;
        size_t n = items_names(f->items, &f->t[at], &stop);
        stay = !lex_is(&f->t[at], "std");
        for (; n < stop; n++) {
            const struct item *item = items_named(f->items, n);
            stay = stay && (item->kind != ITEM_TYPE || item->kept);
        }
    }
    return stay;
}

static bool parameters_stay(const struct finder *f, const struct head *h)
{
    unsigned index[ARGUMENTS_MAX];
    struct item_range declared[ARGUMENTS_MAX];
    unsigned count = dependent_read(f, h, index, declared);
    bool stay = true;
    for (unsigned i = 0; i < count; i++) {
        stay = stay && types_stay(f, declared[i]);
    }
    for (unsigned i = 0; i < h->count; i++) {
        stay =
            stay && types_stay(f, h->parameter[i].declared) && types_stay(f, h->parameter[i].value);
    }
    return stay;
}

/* Has the text what tells the arguments of that template? Puts it there when first asked. */
static bool probe_ready(struct finder *f, const struct head *h)
{
    size_t item = (size_t)(h->item - f->items->item);
    bool kernel = !f->gone[h->item->begin];
    if (f->probed[item]) {
        return true;
    }
    const char *begin = f->t[h->item->begin].text;
    const struct lex_token *last = &f->t[h->item->end - 1];
    size_t signature = (size_t)(f->t[h->item->params].text - begin);
    if (!h->plain || memchr(begin, '#', signature) != NULL || (!kernel && !parameters_stay(f, h))) {
        return false;
    }
    struct words w = words_begin();
    probe_put(f, h, &w);
    char *text = words_end(&w);
    void *grown = realloc(f->out->probe, (f->out->probe_count + 1) * sizeof *f->out->probe);
    f->failed = f->failed || grown == NULL;
    f->out->probe = grown != NULL ? grown : f->out->probe;
    if (text == NULL || grown == NULL) {
        free(text);
        return false;
    }
    f->out->probe[f->out->probe_count++] =
        (struct instance_probe){kernel ? last->text + last->size : begin, text};
    f->probed[item] = true;
    return true;
}

/* ---- mentions -------------------------------------------------------------------------------- */

/* "name<A, B><<<…>>>(c, d)" at a name. */
struct mention {
    const struct head *head;
    struct item_range given[PARAMETERS_MAX + 1]; /* A, B */
    unsigned given_count;
    struct item_range argument[ARGUMENTS_MAX + 1]; /* c, d */
    unsigned argument_count;
    bool called; /* there are arguments */
};

/* Behind the ">>>" of a launch that begins at `at`. */
static size_t launch_skip(const struct lex_token *t, size_t at, size_t end)
{
    for (at += 3; at + 3 < end && !lex_is_thrice(&t[at], ">"); at++) {
        at = lex_is(&t[at], "(") ? item_skip(t, at, end) - 1 : at;
    }
    return at + 3;
}

static bool mention_read(const struct lex_token *t, size_t name, size_t end, const struct head *h,
                         struct mention *out)
{
    size_t at = name + 1;
    out->head = h;
    out->given_count = out->argument_count = 0;
    if (lex_is(&t[at], "<") && !lex_is_thrice(&t[at], "<")) {
        size_t close = item_skip_angles(t, at, end);
        if (close == at) {
            return false;
        }
        out->given_count =
            arguments_read(t, (struct item_range){at + 1, close - 1}, out->given, PARAMETERS_MAX);
        at = close;
    }
    at = lex_is_thrice(&t[at], "<") ? launch_skip(t, at, end) : at;
    out->called = at < end && lex_is(&t[at], "(");
    if (out->called) {
        size_t close = item_skip(t, at, end) - 1;
        out->argument_count =
            arguments_read(t, (struct item_range){at + 1, close}, out->argument, ARGUMENTS_MAX);
    }
    return out->given_count <= PARAMETERS_MAX && out->argument_count <= ARGUMENTS_MAX;
}

static void given_put(struct finder *f, const struct scope *s, const struct mention *m,
                      struct words *w)
{
    for (unsigned i = 0; i < m->given_count; i++) {
        text_put(w, i > 0 ? "," : "");
        range_put(f, s, m->given[i], (struct manner){.constant = true}, w);
    }
}

/* What is deduced for the parameter. */
static void deduced_put(struct finder *f, const struct scope *s, const struct mention *m,
                        unsigned parameter, struct words *w)
{
    unsigned index[ARGUMENTS_MAX];
    struct item_range declared[ARGUMENTS_MAX];
    unsigned count = dependent_read(f, m->head, index, declared);
    w->spelled = false;
    w->unknown = w->unknown || !m->called || !probe_ready(f, m->head);
    text_put(w, "decltype(");
    space_put(f, m->head->item->space, w);
    text_put(w, "__gpud_of_");
    token_put(w, &f->t[m->head->item->params - 1]);
    if (m->given_count > 0) {
        text_put(w, "<");
        given_put(f, s, m, w);
        text_put(w, ">");
    }
    text_put(w, "(");
    for (unsigned i = 0; i < count && !w->unknown; i++) {
        w->unknown = index[i] >= m->argument_count;
        text_put(w, i > 0 ? "," : "");
        if (!w->unknown) {
            range_put(f, s, m->argument[index[i]], (struct manner){.constant = false}, w);
        }
    }
    text_put(w, "))::");
    tag_put(f, m->head, parameter, w);
}

static void argument_put(struct finder *f, const struct scope *s, const struct mention *m,
                         unsigned parameter, struct words *w)
{
    if (parameter < m->given_count) {
        range_put(f, s, m->given[parameter], (struct manner){.constant = true}, w);
    } else {
        deduced_put(f, s, m, parameter, w);
    }
}

static void name_put(struct finder *f, const struct item *kernel, struct words *w)
{
    space_put(f, kernel->space, w);
    token_put(w, &f->t[kernel->params - 1]);
}

static void asked_add(struct finder *f, const struct item *kernel)
{
    struct words w = words_begin();
    name_put(f, kernel, &w);
    char *name = words_end(&w);
    bool known = name == NULL || f->out->asked_count == INSTANCE_TEMPLATES_MAX;
    for (unsigned i = 0; !known && i < f->out->asked_count; i++) {
        known = strcmp(f->out->asked[i].name, name) == 0;
    }
    if (known) {
        free(name);
        return;
    }
    f->out->asked[f->out->asked_count++] =
        (struct instance_template){name, f->t[kernel->params - 1].line};
}

/* May the arguments of a call tell one that is not given? Its default counts only if they do not.
 */
static bool deducible(const struct finder *f, const struct head *h, unsigned from)
{
    size_t end = item_skip(f->t, h->item->params, h->item->end);
    for (size_t at = h->item->params; at < end; at++) {
        for (unsigned i = from; i < h->count; i++) {
            const struct lex_token *name = h->parameter[i].name;
            if (name != NULL && lex_equal(&f->t[at], name)) {
                return true;
            }
        }
    }
    return !h->plain;
}

static void instance_add(struct finder *f, const struct scope *s, const struct mention *m)
{
    struct words w = words_begin();
    bool told = m->given_count > 0 && (m->given_count >= m->head->required || !m->head->plain);
    asked_add(f, m->head->item);
    name_put(f, m->head->item, &w);
    text_put(&w, "<");
    if (told) {
        given_put(f, s, m, &w);
    }
    for (unsigned i = 0; !told && i < m->head->count; i++) {
        text_put(&w, i > 0 ? "," : "");
        argument_put(f, s, m, i, &w);
    }
    text_put(&w, ">");
    const bool spelled = w.spelled && !(told && deducible(f, m->head, m->given_count));
    char *text = words_end(&w);
    bool known = text == NULL || f->out->count == INSTANCES_MAX;
    for (unsigned i = 0; !known && i < f->out->count; i++) {
        known = strcmp(f->out->list[i].expression, text) == 0;
    }
    if (known) {
        free(text);
        return;
    }
    f->out->list[f->out->count++] = (struct instance){text, spelled};
}

static void scope_finish(struct scope *s)
{
    for (unsigned i = 0; i < s->head.count; i++) {
        free(s->text[i]);
    }
}

static bool scope_known(const struct finder *f, const struct scope *s)
{
    for (unsigned k = 0; k < f->scope_count; k++) {
        const struct scope *other = &f->scope[k];
        bool same = other->item == s->item;
        for (unsigned i = 0; same && i < s->head.count; i++) {
            same = strcmp(other->text[i], s->text[i]) == 0;
        }
        if (same) {
            return true;
        }
    }
    return false;
}

/* A template of the host with the arguments of one of its calls. */
static void scope_add(struct finder *f, const struct scope *caller, const struct mention *m)
{
    struct scope s = {.item = m->head->item, .head = *m->head, .spelled = true};
    bool known = f->scope_count < SCOPES_MAX;
    for (unsigned i = 0; known && i < s.head.count; i++) {
        const struct parameter *p = &s.head.parameter[i];
        struct words w = words_begin();
        if (i >= m->given_count && i >= s.head.required && m->given_count >= s.head.required) {
            range_put(f, &s, p->value, (struct manner){.constant = true}, &w);
        } else {
            argument_put(f, caller, m, i, &w);
        }
        s.spelled = s.spelled && w.spelled;
        s.text[i] = words_end(&w);
        known = s.text[i] != NULL;
    }
    if (known && !scope_known(f, &s)) {
        f->scope[f->scope_count++] = s;
    } else {
        scope_finish(&s);
    }
}

/* Is it one around the other, or the same? */
static bool encloses(const struct items *s, unsigned space, unsigned inner)
{
    const struct item_space *own = &s->space[space];
    bool unnamed = own->name.begin == own->name.end;
    unsigned outer = unnamed ? own->parent : space;
    while (inner != outer && inner != 0) {
        inner = s->space[inner].parent;
    }
    return inner == outer;
}

/* How well the template's name is what stands at `at`. */
static unsigned fits(const struct finder *f, const struct scope *s, const struct item *item,
                     size_t at)
{
    const struct item_space *space = &f->items->space[item->space];
    bool spaced = at > 2 && lex_is(&f->t[at - 1], ":") && lex_is(&f->t[at - 2], ":");
    if (!spaced) {
        return encloses(f->items, item->space, s->item->space) ? 2 : 1;
    }
    bool same =
        space->name.end > space->name.begin && lex_equal(&f->t[space->name.end - 1], &f->t[at - 3]);
    return same ? 2 : 1;
}

/* The word at `at` may be a template's name. */
static void word_look(struct finder *f, const struct scope *s, size_t at)
{
    size_t stop = 0;
    struct head best = {.item = NULL};
    unsigned best_fit = 0;
    bool several = false;
    for (size_t n = items_names(f->items, &f->t[at], &stop); n < stop; n++) {
        const struct item *item = items_named(f->items, n);
        struct head h;
        bool found = item->kind == ITEM_FUNCTION && item->body > 0 && at + 1 != item->params &&
                     head_read(f->t, item, &h);
        unsigned fit = found ? fits(f, s, item, at) : 0;
        several = fit == best_fit ? several || found : fit < best_fit && several;
        if (fit > best_fit) {
            best = h;
            best_fit = fit;
        }
    }
    struct mention m;
    if (best.item == NULL || several || !mention_read(f->t, at, s->item->end, &best, &m)) {
        return;
    }
    if (f->gone[best.item->begin]) {
        scope_add(f, s, &m);
    } else if (names_kernel(f->items, best.item)) {
        instance_add(f, s, &m);
    }
}

static void scope_look(struct finder *f, unsigned index)
{
    const struct item *item = f->scope[index].item;
    bool function = item->kind == ITEM_FUNCTION && item->params > 0;
    struct item_range body = {item->body > 0 ? item->body + 1 : item->begin, item->end};
    bool ok = true;
    if (function) {
        size_t close = item_skip(f->t, item->params, item->end) - 1;
        ok = locals_read_parameters(f->t, (struct item_range){item->params + 1, close}, &f->locals);
    }
    ok = ok && locals_read_body(f->t, body, &f->locals);
    for (size_t at = item->begin; ok && !f->failed && at < item->end; at++) {
        bool member = at > 0 && lex_is(&f->t[at - 1], ".");
        if (f->gone[at] && f->t[at].kind == LEX_WORD && !member) {
            word_look(f, &f->scope[index], at);
        }
    }
    locals_finish(&f->locals);
}

bool instances_find(const struct items *items, const bool *gone, struct instances *ret_instances)
{
    struct instances out = {.count = 0};
    struct finder f = {
        .items = items, .gone = gone, .t = items->code.token, .out = &out, .scope_count = 0};
    f.scope = calloc(SCOPES_MAX, sizeof *f.scope);
    f.probed = calloc(items->count + 1, sizeof *f.probed);
    f.failed = f.scope == NULL || f.probed == NULL;
    for (unsigned i = 0; !f.failed && i < items->count; i++) {
        struct head h;
        if (items->item[i].kind == ITEM_MACRO || head_read(f.t, &items->item[i], &h)) {
            continue;
        }
        f.scope[0] = (struct scope){.item = &items->item[i], .spelled = true};
        f.scope_count = f.scope_count > 0 ? f.scope_count : 1;
        scope_look(&f, 0);
    }
    for (unsigned i = 1; i < f.scope_count && !f.failed; i++) {
        scope_look(&f, i);
    }
    for (unsigned i = 1; i < f.scope_count; i++) {
        scope_finish(&f.scope[i]);
    }
    free(f.scope);
    free(f.probed);
    if (f.failed) {
        instances_finish(&out);
        return false;
    }
    *ret_instances = out;
    return true;
}

void instances_finish(struct instances *s)
{
    for (unsigned i = 0; i < s->count; i++) {
        free(s->list[i].expression);
    }
    for (unsigned i = 0; i < s->probe_count; i++) {
        free(s->probe[i].text);
    }
    for (unsigned i = 0; i < s->asked_count; i++) {
        free(s->asked[i].name);
    }
    free(s->probe);
    *s = (struct instances){.count = 0};
}
