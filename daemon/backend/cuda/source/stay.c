#include "daemon/backend/cuda/source/stay.h"

#include <stdlib.h>

#define ARGUMENTS_MAX 32u /* tokens between the brackets of an instance */

/* One source whose declarations are followed. */
struct staying {
    struct items *items;
    const bool *gone;
    struct item **queue; /* owned: items that were kept and not yet looked into */
    unsigned queued;
    const char *const *expression;
    unsigned expression_count;
    bool mentioned;   /* what stays names a function that would go, … */
    bool doubtful;    /* … which may not be the host's */
    bool looked;      /* or the name of a variable of the host's */
    bool unevaluated; /* names are looked up there by what does not run */
};

static bool host_variable(const struct item *item)
{
    return item->kind == ITEM_VARIABLE && !item->device && !item->constant;
}

/* Is it computed by a call of the host's functions alone? Then the host's compiler alone knows it.
 */
static bool host_computes(const struct staying *c, const struct item *item)
{
    const struct lex_token *t = c->items->code.token;
    if (item->kind != ITEM_VARIABLE || item->device) {
        return false;
    }
    for (size_t at = item_head_end(t, item); at < item->end; at++) {
        const struct item *called =
            lex_is(&t[at + 1], "(") ? items_next(c->items, &t[at], NULL) : NULL;
        bool host = called != NULL;
        for (; called != NULL; called = items_next(c->items, &t[at], called)) {
            host = host && item_for_host(called);
        }
        if (host) {
            return true;
        }
    }
    return false;
}

/* "template void name<int>(…);" declares nothing: what is found by the name is the template. Of
 * what is the device's it would say so. */
static bool instantiates(const struct lex_token *t, const struct item *item)
{
    size_t at = item->begin + lex_is(&t[item->begin], "extern");
    return lex_is(&t[at], "template") && !lex_is(&t[at + 1], "<");
}

/* "type C::name(…) { … }": what is found by the name is the declaration in the class, which stays.
 */
static bool defines_member(const struct lex_token *t, const struct item *item)
{
    size_t name = item->params - 1;
    return item->body > 0 && item->params > item->begin + 2 &&
           (lex_is(&t[name - 1], ":") || lex_is(&t[name - 1], "~"));
}

/* Behind the "template <…>" at `at`; `at` if there is none. */
static size_t template_skip(const struct lex_token *t, size_t at, size_t end)
{
    bool templated = lex_is(&t[at], "template") && lex_is(&t[at + 1], "<");
    return templated ? item_skip_angles(t, at + 1, end) : at;
}

/* May a word before its name be a macro of elsewhere, which gives it to the device? One such word
 * is its type, if nothing else is. Nor is it told of a specialization, which has a template's. */
static bool annotation_doubtful(const struct lex_token *t, const struct item *item)
{
    static const char *const others[] = {"static", "inline", "extern", "__host__", NULL};
    size_t at = template_skip(t, item->begin, item->params);
    bool specializes = at == item->begin + 3;
    unsigned unknown = 0;
    unsigned known = 0;
    for (int depth = 0; at + 1 < item->params; at++) {
        depth += lex_is(&t[at], "<");
        depth -= lex_is(&t[at], ">");
        bool word = depth == 0 && t[at].kind == LEX_WORD && !lex_is(&t[at + 1], ":");
        bool type = word && (lex_number(&t[at]) || lex_is(&t[at], "void"));
        known += type;
        unknown += word && !type && !lex_one_of(&t[at], others);
    }
    return specializes || unknown > 1 || (unknown == 1 && known > 0);
}

/* May the word at `at` of what is looked up and not run be a function of the host's, or lead to
 * one: a macro, an operator? */
static bool leads_to_host(const struct staying *c, const struct lex_token *t, size_t at)
{
    static const char *const operators[] = {"+", "-", "/", "%", "^", "!", "~", "|", "[", "=", NULL};
    static const char *const pointers[] = {"*", "&", NULL};
    bool leads = lex_one_of(&t[at], operators) ||
                 (lex_one_of(&t[at], pointers) && t[at + 1].kind != LEX_SIGN);
    const struct item *item = NULL;
    while ((item = items_next(c->items, &t[at], item)) != NULL) {
        leads = leads || item_for_host(item) || host_variable(item) || item->kind == ITEM_MACRO;
    }
    return leads;
}

/* Is what lies between parentheses in a macro the same wherever it is used: closed, and without the
 * macro's parameters? */
static bool fixed_in_macro(const struct lex_token *t, const struct item *macro, size_t open,
                           size_t end)
{
    static const char *const varied[] = {"#", "__VA_ARGS__", "__VA_OPT__", NULL};
    size_t list = macro->begin + 1;
    bool takes = lex_is(&t[list], "(") && t[list].glued;
    size_t list_end = takes ? item_skip(t, list, macro->end) : list;
    bool fixed = end <= macro->end;
    for (size_t at = open; fixed && at < end; at++) {
        fixed = !lex_one_of(&t[at], varied);
        for (size_t i = list; fixed && i < list_end; i++) {
            fixed = t[at].kind != LEX_WORD || !lex_equal(&t[at], &t[i]);
        }
    }
    return fixed;
}

/* What is looked up by name and not run finds the host's functions, too. */
static bool unevaluated(const struct staying *c, const struct item *user, const struct lex_token *t,
                        size_t at)
{
    static const char *const words[] = {"decltype", "sizeof", "noexcept",   "requires", "typeof",
                                        "alignof",  "typeid", "__typeof__", NULL};
    bool finds = lex_one_of(&t[at], words);
    bool plain = finds && lex_is(&t[at + 1], "(");
    bool macro = user->kind == ITEM_MACRO;
    /* one more: what is not closed in the macro ends behind it */
    size_t end = plain ? item_skip(t, at + 1, user->end + macro) : at;
    plain = plain && (!macro || fixed_in_macro(t, user, at + 1, end));
    for (size_t i = at + 1; finds && plain && i < end; i++) {
        if (leads_to_host(c, t, i)) {
            return true;
        }
    }
    return finds && (!plain || lex_is(&t[at], "requires"));
}

/* `user`, which stays, names a function that would go, as tokens[at]. What runs on the device
 * cannot call it, so that it is another one or a variable; but for what this cannot tell, and for a
 * constant, which the host computes. */
static void mention(struct staying *c, const struct item *user, const struct item *item,
                    const struct lex_token *tokens, size_t at)
{
    const struct lex_token *t = c->items->code.token;
    const struct lex_token *next = &tokens[at + 1];
    bool calls = lex_is(next, "(") || lex_is(next, "<") || lex_is(next, ">") ||
                 (at > 0 && lex_is(&tokens[at - 1], "&"));
    if (calls && !defines_member(t, item) && !instantiates(t, item)) {
        c->mentioned = true;
        c->doubtful = c->doubtful || user->kind == ITEM_VARIABLE || annotation_doubtful(t, item);
    }
}

static void enqueue(struct staying *c, struct item *item)
{
    if (!item->kept) {
        item->kept = true;
        c->queue[c->queued++] = item;
    }
}

/* A variable of the host that is named is no device's: its name is another thing's, or an error. */
static void keep(struct staying *c, const struct item *user, struct item *item,
                 const struct lex_token *tokens, size_t at)
{
    if (item_for_host(item)) {
        mention(c, user, item, tokens, at);
    } else if (host_variable(item)) {
        c->looked = true;
    } else if (!host_computes(c, item)) {
        enqueue(c, item);
    }
}

/* Is the type a specialization of a template, "template <…> struct name<…>", or in another space
 * than it is declared in? Then who uses the template may be elsewhere. */
static bool specializes(const struct staying *c, const struct item *item)
{
    static const char *const ends[] = {"{", ";", "=", NULL};
    const struct lex_token *t = c->items->code.token;
    size_t at = template_skip(t, item->begin, item->end);
    bool of_template = at > item->begin;
    bool found = false;
    for (; of_template && !found && at < item->end && !lex_one_of(&t[at], ends); at++) {
        bool colons = lex_is(&t[at], ":") && lex_is(&t[at + 1], ":") && t[at + 1].glued;
        if (lex_is(&t[at], ":") && !colons) {
            break; /* what follows are its bases */
        }
        found = colons || lex_is(&t[at], "<") || lex_is(&t[at], "(");
    }
    return found;
}

/* "typedef float real;", which instances of kernels may be named by. */
static bool plain_alias(const struct lex_token *t, const struct item *item)
{
    bool equals = lex_is(&t[item->begin], "using") && lex_is(&t[item->begin + 2], "=");
    size_t at = item->begin + (equals ? 3 : 1);
    size_t end = item->end - (equals ? 1 : 2);
    bool plain = at < end && (equals || lex_is(&t[item->begin], "typedef"));
    for (; plain && at < end; at++) {
        plain = lex_number(&t[at]);
    }
    return plain;
}

static bool stays(const struct staying *c, const struct item *item)
{
    return item->device || plain_alias(c->items->code.token, item) || item->kind == ITEM_OTHER ||
           (item->kind == ITEM_TYPE && specializes(c, item));
}

/* Keeps all that an item mentions, but for bodies that go. */
static void look_into(struct staying *c, const struct item *item)
{
    const struct lex_token *t = items_tokens(c->items, item);
    bool macro = item->kind == ITEM_MACRO;
    for (size_t i = item->begin; i < item->end; i++) {
        bool read = macro || !c->gone[i];
        for (struct item *named = NULL;
             read && (named = items_next(c->items, &t[i], named)) != NULL;) {
            keep(c, item, named, t, i);
        }
        c->unevaluated = c->unevaluated || unevaluated(c, item, t, i);
    }
}

/* The "<" of "name<…>" before the "<<<" at `launch`; 0: there is none. */
static size_t arguments_open(const struct lex_token *t, size_t launch)
{
    size_t open = launch;
    int depth = 0;
    do {
        open--;
        depth += lex_is(&t[open], ">");
        depth -= lex_is(&t[open], "<");
    } while (depth > 0 && open > 0 && open + ARGUMENTS_MAX > launch);
    bool named = open + 1 < launch && depth == 0 && open > 0 && t[open - 1].kind == LEX_WORD;
    return named ? open : 0;
}

/* A type or a constant that an instance of a kernel is named by. */
static void argument_keep(struct staying *c, const struct lex_token *t)
{
    struct item *item = NULL;
    while ((item = items_next(c->items, t, item)) != NULL) {
        if (item->kind == ITEM_TYPE || (item->kind == ITEM_VARIABLE && item->constant)) {
            enqueue(c, item);
        }
    }
}

static void expression_keep(struct staying *c, const char *expression)
{
    struct lex lex;
    struct lex_token t = {.kind = LEX_WORD};
    lex_init(&lex, expression, "");
    while (t.kind != LEX_END && lex_next(&lex, &t, NULL) == 0) {
        argument_keep(c, &t);
    }
}

/* Those of "name<…>" before each "<<<". */
static void launches_keep(struct staying *c)
{
    const struct lex_token *t = c->items->code.token;
    for (size_t i = 1; i < c->items->code.count; i++) {
        size_t open = lex_is_thrice(&t[i], "<") ? arguments_open(t, i) : 0;
        for (size_t at = open; open > 0 && at < i; at++) {
            argument_keep(c, &t[at]);
        }
    }
}

static void reach(struct staying *c)
{
    launches_keep(c);
    for (unsigned i = 0; i < c->expression_count; i++) {
        expression_keep(c, c->expression[i]);
    }
    for (unsigned i = 0; i < c->items->count; i++) {
        struct item *item = &c->items->item[i];
        if (item->kind != ITEM_MACRO && stays(c, item)) {
            keep(c, item, item, c->items->code.token, item->begin);
        }
    }
    while (c->queued > 0) {
        look_into(c, c->queue[--c->queued]);
    }
}

bool stay_find(struct items *items, const bool *gone, const char *const *expressions,
               unsigned expression_count)
{
    struct staying c = {.items = items,
                        .gone = gone,
                        .queue = calloc(items->count + 1, sizeof *c.queue),
                        .expression = expressions,
                        .expression_count = expression_count};
    if (c.queue == NULL) {
        return false;
    }
    reach(&c);
    free(c.queue);
    bool operators = false; /* they go, and have no name to be mentioned by */
    for (unsigned i = 0; i < items->count; i++) {
        const struct item *item = &items->item[i];
        operators = operators || (item->overloads && item_for_host(item));
    }
    return !(c.doubtful && c.mentioned) &&
           !(c.unevaluated && (c.mentioned || c.looked || operators));
}
