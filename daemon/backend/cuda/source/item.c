#include "daemon/backend/cuda/source/item.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/backend/cuda/source/list.h"

#define TOKENS_MAX     (512u * 1024u)
#define ITEMS_MAX      (64u * 1024u)
#define CONDITIONS_MAX 64u
#define LOOSE_MAX      8u    /* #ifs that leave something open, one inside of another */
#define ANGLES_MAX     1024u /* tokens between a template's "<" and ">" */

static bool annotation(const struct lex_token *t)
{
    static const char *const words[] = {"__global__", "__device__",  "__constant__",
                                        "__shared__", "__managed__", "__grid_constant__",
                                        NULL};
    return lex_one_of(t, words);
}

bool item_tokens_add(struct item_tokens *s, const struct lex_token *t)
{
    return LIST_ADD(s->token, s->count, s->capacity, TOKENS_MAX, *t);
}

static bool item_add(struct items *s, const struct item *item)
{
    return LIST_ADD(s->item, s->count, s->capacity, ITEMS_MAX, *item);
}

/* Of the item that comes next. */
static bool name_add(struct items *s, const struct lex_token *t)
{
    const struct item_name name = {bytes_of(t->text, t->size), s->count};
    return LIST_ADD(s->name, s->name_count, s->name_capacity, TOKENS_MAX, name);
}

/* ---- tokens and directives ------------------------------------------------------------------- */

/* An #if, or what is left of one that does not close what it opens. */
struct condition {
    const char *text; /* its line, from the word on */
    int open;         /* braces and parentheses that were when it began */
    int net;          /* how many more are behind its #endif */
    size_t from;      /* where that is in the code */
    bool branches;    /* it has an #else */
    bool dips;        /* it closes what was open before */
};

struct depths {
    int open;
    struct condition inside[CONDITIONS_MAX];
    unsigned conditions;
    struct condition loose[LOOSE_MAX]; /* whose braces another #if of the same words closes */
    unsigned loose_count;
    int loose_net;
};

/* Is all that stands between #if and #endif the begin of an extern "C", or the end of one? Those
 * two are there together, and declarations within mean the same without. */
static bool linkage_only(const struct item_tokens *code, size_t from)
{
    const struct lex_token *t = code->token + from;
    size_t count = code->count - from;
    return (count == 1 && lex_is(&t[0], "}")) || (count == 3 && lex_is(&t[0], "extern") &&
                                                  t[1].kind == LEX_LITERAL && lex_is(&t[2], "{"));
}

static bool lines_equal(const char *a, const char *b)
{
    size_t size = strcspn(a, "\n");
    return strcspn(b, "\n") == size && memcmp(a, b, size) == 0;
}

/* Braces that one #if opens, and another of the same words closes, are there together. What lies
 * between is as deep with them as without, so that it ends nothing around it. */
static bool loose_step(struct depths *d, struct items *s, const struct condition *c)
{
    if (c->net > 0 && c->open > 0 && d->loose_count < LOOSE_MAX) {
        d->loose[d->loose_count++] = *c;
        d->loose_net += c->net;
        return true;
    }
    const struct condition *first = d->loose_count > 0 ? &d->loose[d->loose_count - 1] : NULL;
    if (first == NULL || c->net != -first->net || !lines_equal(c->text, first->text) ||
        s->loose_count == ITEM_LOOSE_MAX) {
        return false;
    }
    s->loose[s->loose_count++] = (struct item_range){first->from, s->code.count};
    d->loose_net -= first->net;
    d->loose_count--;
    return true;
}

static bool condition_begin(struct depths *d, const struct items *s, const struct lex_token *t)
{
    if (d->conditions == CONDITIONS_MAX) {
        return false;
    }
    d->inside[d->conditions++] =
        (struct condition){.text = t->text, .open = d->open, .from = s->code.count};
    return true;
}

/* At the word behind "#". false: its branches do not open and close alike, or what there is one of
 * does not close what it opens. */
static bool condition_step(struct depths *d, struct items *s, const struct lex_token *t)
{
    static const char *const begin[] = {"if", "ifdef", "ifndef", NULL};
    static const char *const between[] = {"else", "elif", "elifdef", "elifndef", NULL};
    static const char *const defining[] = {"define", "undef", "include", NULL};
    if (lex_one_of(t, begin)) {
        return condition_begin(d, s, t);
    }
    bool ends = lex_is(t, "endif");
    bool branch = lex_one_of(t, between);
    if (!ends && !branch) {
        return d->loose_count == 0 || !lex_one_of(t, defining);
    }
    if (d->conditions == 0) {
        return false;
    }
    struct condition *c = &d->inside[d->conditions - 1];
    c->branches = c->branches || branch;
    c->net = d->open - c->open;
    d->conditions -= ends;
    if (c->net == 0) {
        return !c->dips || d->loose_count == 0;
    }
    bool linkage = d->loose_count == 0 && linkage_only(&s->code, c->from);
    return !c->branches && (linkage || loose_step(d, s, c));
}

/* false: it ends what lies around an #if that does not close what it opens. */
static bool depth_step(struct depths *d, const struct lex_token *t)
{
    d->open += lex_is(t, "{") || lex_is(t, "(");
    d->open -= lex_is(t, "}") || lex_is(t, ")");
    struct condition *now = d->conditions > 0 ? &d->inside[d->conditions - 1] : NULL;
    bool inside = now != NULL && now->open > d->open;
    if (inside) {
        now->dips = true; /* its #endif decides */
    }
    const struct condition *last = d->loose_count > 0 ? &d->loose[d->loose_count - 1] : NULL;
    return last == NULL || inside ||
           d->open - d->loose_net >= last->open - (d->loose_net - last->net);
}

/* A directive's token. */
static bool directive_step(struct items *s, struct lex *lex, struct lex_token *t, bool *define,
                           struct depths *d)
{
    bool angle;
    if (t->word == 2) {
        *define = lex_is(t, "define");
        if (lex_is(t, "include")) {
            (void)lex_header(lex, &angle);
        }
        return condition_step(d, s, t);
    }
    if (t->word < 2 || !*define) {
        return true;
    }
    t->first = t->word == 3; /* its name begins a new item */
    return item_tokens_add(&s->macros, t);
}

/* What would begin a directive if nothing stood before it in its line. */
static bool would_direct(const struct lex_token *t)
{
    return lex_is(t, "#") || lex_is(t, "%:");
}

static bool tokens_read(const char *text, struct items *s)
{
    struct lex lex;
    struct lex_token t = {.kind = LEX_END};
    struct depths d = {.open = 0};
    bool define = false;
    lex_init(&lex, text, "");
    while (lex_next(&lex, &t, NULL) == 0) {
        if (t.kind == LEX_END) {
            return d.open == 0 && d.conditions == 0 && d.loose_count == 0;
        }
        bool ok = t.word > 0
                      ? directive_step(s, &lex, &t, &define, &d)
                      : !would_direct(&t) && depth_step(&d, &t) && item_tokens_add(&s->code, &t);
        if (!ok) {
            return false;
        }
    }
    return false;
}

size_t item_skip(const struct lex_token *t, size_t at, size_t end)
{
    int depth = 0;
    for (; at < end; at++) {
        depth += lex_opens(&t[at]);
        depth -= lex_is(&t[at], ")") || lex_is(&t[at], "}") || lex_is(&t[at], "]");
        if (depth == 0) {
            return at + 1;
        }
    }
    return end;
}

size_t item_skip_angles(const struct lex_token *t, size_t at, size_t end)
{
    int depth = 0;
    end = end - at < ANGLES_MAX ? end : at + ANGLES_MAX;
    for (size_t i = at; i < end && lex_is(&t[at], "<"); i++) {
        if (lex_is(&t[i], "(")) {
            i = item_skip(t, i, end) - 1;
            continue;
        }
        if (lex_is(&t[i], ";") || lex_is(&t[i], "{")) {
            return at;
        }
        depth += lex_is(&t[i], "<");
        depth -= lex_is(&t[i], ">");
        if (depth == 0) {
            return i + 1;
        }
    }
    return at;
}

size_t item_skip_argument(const struct lex_token *t, size_t at, size_t end)
{
    while (at < end && !lex_is(&t[at], ",")) {
        size_t angles = item_skip_angles(t, at, end);
        at = lex_opens(&t[at]) ? item_skip(t, at, end) : angles > at ? angles : at + 1;
    }
    return at;
}

/* ---- one declaration ------------------------------------------------------------------------- */

/* Where in a declaration the reader is. */
struct reading {
    const struct lex_token *t;
    size_t at, end;
    struct item *item;
    struct items *names; /* where its names go; NULL: nowhere */
    bool type;           /* struct, class, union or enum was read */
    bool enumeration;
    bool alias;  /* using, typedef */
    bool value;  /* behind "=" */
    bool bases;  /* behind the ":" of a class */
    bool inits;  /* behind the ":" of a constructor */
    bool body;   /* of a type was read */
    bool failed; /* no memory */
    size_t word; /* the newest word that could be a name; 0 words: none since the last name */
    unsigned words;
    unsigned name_count;
};

static bool double_colon(const struct lex_token *t, size_t at)
{
    return lex_is(&t[at], ":") && ((at > 0 && t[at].glued && lex_is(&t[at - 1], ":")) ||
                                   (lex_is(&t[at + 1], ":") && t[at + 1].glued));
}

static void name_take(struct reading *r, size_t at)
{
    r->failed = r->failed || (r->names != NULL && !name_add(r->names, &r->t[at]));
    r->name_count++;
    r->words = 0;
}

/* What a type or a variable is called stands before what ends a name. */
static void name_look(struct reading *r)
{
    static const char *const ends[] = {"=", ";", ",", "[", "{", ":", NULL};
    if (r->words > 0 && r->item->params == 0 && !r->value && lex_one_of(&r->t[r->at], ends) &&
        !double_colon(r->t, r->at)) {
        name_take(r, r->word);
    }
}

/* "typedef void (CALLED name)(…)", with a macro for the pointer; behind the first parentheses. */
static void alias_take(struct reading *r, size_t open)
{
    size_t name = r->at - 2;
    bool named = name > open && r->t[name].kind == LEX_WORD;
    if (named && r->at < r->end && lex_is(&r->t[r->at], "(")) {
        name_take(r, name);
        r->at = item_skip(r->t, r->at, r->end);
    }
}

/* At "(" outside of other brackets: perhaps that of a function's parameters. */
static void parens_take(struct reading *r)
{
    const struct lex_token *t = r->t;
    struct item *item = r->item;
    size_t open = r->at;
    bool pointer = lex_is(&t[open + 1], "*") || lex_is(&t[open + 1], "&");
    r->at = item_skip(t, r->at, r->end);
    if (r->value || r->inits || item->params > 0 || (r->words == 0 && !item->overloads)) {
        return;
    }
    if (pointer && !item->overloads && r->at < r->end && lex_is(&t[r->at], "(")) {
        name_take(r, open + 2); /* a pointer to functions */
        r->at = item_skip(t, r->at, r->end);
        return;
    }
    if (r->alias) {
        alias_take(r, open);
        return;
    }
    item->params = open;
    item->kind = ITEM_FUNCTION;
    if (!item->overloads) {
        name_take(r, r->word);
    }
}

/* "operator" and its signs, up to its parameters. */
static void operator_take(struct reading *r)
{
    r->item->overloads = true;
    r->at++;
    if (lex_is(&r->t[r->at], "(")) {
        r->at = item_skip(r->t, r->at, r->end);
    }
    while (r->at < r->end && !lex_is(&r->t[r->at], "(") && !lex_is(&r->t[r->at], ";")) {
        r->at++;
    }
}

static bool alias_word(const struct lex_token *t)
{
    return lex_is(t, "typedef") || lex_is(t, "using");
}

/* What it says of the whole. */
static void word_note(struct reading *r, const struct lex_token *t)
{
    static const char *const constants[] = {"const", "constexpr", "consteval", "auto", NULL};
    struct item *item = r->item;
    item->device = item->device || annotation(t);
    r->enumeration = r->enumeration || lex_is(t, "enum");
    r->alias = r->alias || alias_word(t);
    if (!r->value) {
        item->constant = item->constant || lex_one_of(t, constants);
        r->type = r->type || (item->params == 0 && lex_type_key(t));
    }
}

static void word_take(struct reading *r)
{
    const struct lex_token *t = &r->t[r->at];
    word_note(r, t);
    if (lex_takes_parens(t)) {
        r->at++;
        r->at = lex_is(&r->t[r->at], "(") ? item_skip(r->t, r->at, r->end) : r->at;
    } else if (lex_is(t, "template")) {
        r->at = item_skip_angles(r->t, r->at + 1, r->end);
    } else if (lex_is(t, "operator") && !r->value) {
        operator_take(r);
    } else {
        if (!r->value && !r->bases && !lex_type_key(t) && !alias_word(t)) {
            r->word = r->at;
            r->words++;
        }
        r->at++;
    }
}

static void enumerators_take(struct reading *r, size_t open)
{
    for (size_t at = open + 1; at + 1 < r->at; at++) {
        bool begins = lex_is(&r->t[at - 1], "{") || lex_is(&r->t[at - 1], ",");
        if (begins && r->t[at].kind == LEX_WORD) {
            name_take(r, at);
        }
    }
}

/* At "{": true if it is a function's body, which ends the declaration. */
static bool braces_take(struct reading *r)
{
    struct item *item = r->item;
    size_t open = r->at;
    bool initial = r->inits && (r->t[open - 1].kind == LEX_WORD || lex_is(&r->t[open - 1], ">"));
    r->at = item_skip(r->t, r->at, r->end);
    if (item->params > 0 && !r->value && !initial) {
        item->body = item->body > 0 ? item->body : open;
        return true;
    }
    if (r->type && !r->value && !r->body) {
        r->body = true;
        r->bases = false;
        item->body = open;
        if (r->enumeration) {
            enumerators_take(r, open);
        }
    }
    return false;
}

static void colon_take(struct reading *r)
{
    bool alone = !r->value && !double_colon(r->t, r->at);
    if (alone && r->item->params > 0 && !r->inits) {
        r->inits = true;
        r->item->body = r->at;
    } else if (alone && r->type && !r->body) {
        r->bases = true;
    }
}

static void sign_take(struct reading *r)
{
    const struct lex_token *t = &r->t[r->at];
    size_t behind = r->at + 1;
    if (lex_is(t, "=")) {
        r->value = true;
    } else if (lex_is(t, ",") && r->item->params == 0) {
        r->value = false;
    } else if (lex_is(t, ":")) {
        colon_take(r);
    } else if (lex_is(t, "[")) {
        behind = item_skip(r->t, r->at, r->end);
    } else if (lex_is(t, "<") && !r->value && r->words > 0) {
        size_t close = item_skip_angles(r->t, r->at, r->end);
        behind = close > r->at ? close : behind;
    }
    r->at = behind;
}

/* May what looks like a function be something else: a macro's use, a deduction guide, a type with a
 * macro for an attribute? */
static bool function_doubtful(const struct reading *r)
{
    const struct item *item = r->item;
    const struct lex_token *t = r->t;
    if (item->overloads) {
        return false;
    }
    if (item->params < item->begin + 2) {
        return item->body == 0;
    }
    size_t behind = item_skip(t, item->params, item->end);
    bool arrow = lex_is(&t[behind], "-") && lex_is(&t[behind + 1], ">");
    return lex_type_key(&t[item->params - 2]) || (item->body == 0 && arrow);
}

static void kind_settle(struct reading *r)
{
    struct item *item = r->item;
    const struct lex_token *t = &r->t[item->begin];
    bool space = lex_is(t, "namespace") || (lex_is(t, "using") && lex_is(&t[1], "namespace"));
    if (item->kind == ITEM_FUNCTION) {
        item->kind = function_doubtful(r) ? ITEM_OTHER : ITEM_FUNCTION;
        return;
    }
    /* struct name; */
    bool forward =
        r->type && item->end >= item->begin + 3 && lex_type_key(&r->t[item->end - 3]) && !r->body;
    item->kind = space || r->name_count == 0      ? ITEM_OTHER
                 : r->alias || r->body || forward ? ITEM_TYPE
                                                  : ITEM_VARIABLE;
}

/* From its first token to behind its ";" or body. false: no memory */
static bool item_read(struct reading *r, size_t *ret_behind)
{
    const struct lex_token *t = r->t;
    while (r->at < r->end && !lex_is(&t[r->at], ";") && !lex_is(&t[r->at], "}")) {
        name_look(r);
        if (t[r->at].kind == LEX_WORD) {
            word_take(r);
        } else if (lex_is(&t[r->at], "(")) {
            parens_take(r);
        } else if (!lex_is(&t[r->at], "{")) {
            sign_take(r);
        } else if (braces_take(r)) {
            break;
        }
    }
    if (r->at < r->end && lex_is(&t[r->at], ";")) {
        name_look(r);
        r->at++;
    }
    r->item->end = r->at;
    kind_settle(r);
    *ret_behind = r->at;
    return !r->failed;
}

size_t item_read_member(const struct lex_token *t, size_t begin, size_t end, struct item *ret_item)
{
    *ret_item = (struct item){.kind = ITEM_OTHER, .begin = begin};
    struct reading r = {.t = t, .at = begin, .end = end, .item = ret_item};
    size_t behind = begin;
    (void)item_read(&r, &behind);
    return behind > begin ? behind : begin + 1;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Behind the "{" of a namespace or of extern "C"; `at` if it is none. Its name is before that. */
static size_t space_enter(const struct lex_token *t, size_t at, size_t end,
                          struct item_range *ret_name)
{
    size_t i = at + lex_is(&t[at], "inline");
    bool space = i < end && lex_is(&t[i], "namespace");
    bool linkage = lex_is(&t[at], "extern") && at + 2 < end && t[at + 1].kind == LEX_LITERAL;
    if (linkage && lex_is(&t[at + 2], "{")) {
        *ret_name = (struct item_range){at, at};
        return at + 3;
    }
    const size_t name = i + 1;
    for (i++; space && i < end; i++) {
        if (lex_is(&t[i], "{")) {
            *ret_name = (struct item_range){name, i};
            return i + 1;
        }
        if (t[i].kind != LEX_WORD && !lex_is(&t[i], ":")) {
            break;
        }
    }
    return at;
}

#define LEVELS_MAX 32u

static bool space_add(struct items *s, unsigned parent, struct item_range name)
{
    const struct item_space space = {parent, name};
    return LIST_ADD(s->space, s->space_count, s->space_capacity, ITEMS_MAX, space);
}

static bool code_items(struct items *s)
{
    const struct lex_token *t = s->code.token;
    unsigned inside[LEVELS_MAX + 1] = {0}; /* spaces */
    unsigned level = 0;
    if (!space_add(s, 0, (struct item_range){0, 0})) {
        return false;
    }
    for (size_t at = 0; at < s->code.count;) {
        if (lex_is(&t[at], ";") || lex_is(&t[at], "}")) {
            if (lex_is(&t[at], "}") && level == 0) {
                return false;
            }
            level -= lex_is(&t[at], "}");
            at++;
            continue;
        }
        struct item_range name;
        size_t entered = space_enter(t, at, s->code.count, &name);
        if (entered > at) {
            if (level == LEVELS_MAX || !space_add(s, inside[level], name)) {
                return false;
            }
            inside[++level] = s->space_count - 1;
            at = entered;
            continue;
        }
        struct item item = {.kind = ITEM_OTHER, .space = inside[level]};
        struct reading r = {.t = t, .at = at, .end = s->code.count, .item = &item, .names = s};
        size_t behind = at;
        item.begin = at;
        if (!item_read(&r, &behind) || behind == at || !item_add(s, &item)) {
            return false;
        }
        at = behind;
    }
    return level == 0;
}

/* Such #ifs are told only in a function's body, which is that however they come out. */
static bool loose_told(const struct items *s)
{
    for (unsigned k = 0; k < s->loose_count; k++) {
        const struct item_range *loose = &s->loose[k];
        bool told = false;
        for (unsigned i = 0; i < s->count; i++) {
            const struct item *item = &s->item[i];
            told = told || (item->kind == ITEM_FUNCTION && item->body > 0 &&
                            item->body < loose->begin && loose->end < item->end);
        }
        if (!told) {
            return false;
        }
    }
    return true;
}

static bool macro_items(struct items *s)
{
    for (size_t at = 0; at < s->macros.count;) {
        struct item item = {.kind = ITEM_MACRO, .begin = at};
        if (!name_add(s, &s->macros.token[at])) {
            return false;
        }
        do {
            item.device = item.device || annotation(&s->macros.token[at]);
            item.constant = item.constant || lex_is(&s->macros.token[at], "const") ||
                            lex_is(&s->macros.token[at], "constexpr");
            at++;
        } while (at < s->macros.count && !s->macros.token[at].first);
        item.end = at;
        if (!item_add(s, &item)) {
            return false;
        }
    }
    return true;
}

static int text_compare(struct bytes a, struct bytes b)
{
    int rc = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);
    return rc != 0 ? rc : (a.size > b.size) - (a.size < b.size);
}

static int name_compare(const void *a, const void *b)
{
    const struct item_name *x = a;
    const struct item_name *y = b;
    int rc = text_compare(x->text, y->text);
    return rc != 0 ? rc : (x->item > y->item) - (x->item < y->item);
}

bool items_read(const char *text, struct items *ret_items)
{
    struct items s = {.count = 0};
    /* what looks one token ahead or behind finds one */
    const struct lex_token end = {.kind = LEX_END, .text = "", .first = true};
    bool ok = tokens_read(text, &s) && item_tokens_add(&s.code, &end) &&
              item_tokens_add(&s.code, &end) && item_tokens_add(&s.code, &end) &&
              item_tokens_add(&s.macros, &end);
    s.code.count -= ok ? 3 : 0;
    s.macros.count -= ok ? 1 : 0;
    if (!ok || !code_items(&s) || !loose_told(&s) || !macro_items(&s)) {
        items_finish(&s);
        return false;
    }
    if (s.name_count > 0) {
        qsort(s.name, s.name_count, sizeof *s.name, name_compare);
    }
    *ret_items = s;
    return true;
}

size_t item_head_end(const struct lex_token *t, const struct item *item)
{
    size_t end = item->body > 0 ? item->body : item->end;
    size_t at = item->begin;
    while (item->kind == ITEM_VARIABLE && at < end && !lex_is(&t[at], "=")) {
        at++;
    }
    return item->kind == ITEM_VARIABLE ? at : end;
}

/* One whose type its body says, or that a compiler may compute, is not told apart by what stands
 * before it. */
bool item_for_host(const struct item *item)
{
    return item->kind == ITEM_FUNCTION && !item->device && !item->constant;
}

struct item *items_next(const struct items *s, const struct lex_token *t, const struct item *last)
{
    const struct item_name wanted = {bytes_of(t->text, t->size),
                                     last != NULL ? (unsigned)(last - s->item) + 1 : 0};
    size_t low = 0;
    size_t high = t->kind == LEX_WORD ? s->name_count : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (name_compare(&s->name[middle], &wanted) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool found =
        t->kind == LEX_WORD && low < s->name_count && bytes_equal(s->name[low].text, wanted.text);
    return found ? &s->item[s->name[low].item] : NULL;
}

const struct lex_token *items_tokens(const struct items *s, const struct item *item)
{
    return item->kind == ITEM_MACRO ? s->macros.token : s->code.token;
}

void items_finish(struct items *s)
{
    free(s->code.token);
    free(s->macros.token);
    free(s->item);
    free(s->name);
    free(s->space);
    *s = (struct items){.count = 0};
}
