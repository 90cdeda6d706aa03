#include "daemon/backend/cuda/source/constant.h"

#include <stdlib.h>
#include <string.h>

#define ROUNDS_MAX 64u /* constants that others are computed of */

struct computing {
    const struct items *items;
    bool *computed; /* owned, for each item: the compiler can compute it */
};

/* What this becomes in the text: nvcc computes a "const float" from others, NVRTC "constexpr" ones
 * only. As long as "const", and a macro of what the text is compiled with. */
static const char computed_word[] = CONSTANT_COMPUTED;
_Static_assert(sizeof computed_word == sizeof "const", "columns stay");

/* Is the word at `at` a parameter of the macro that it stands in? */
static bool macro_parameter(const struct lex_token *t, const struct item *macro, size_t at)
{
    size_t open = macro->begin + 1;
    bool found = false;
    if (!lex_is(&t[open], "(") || !t[open].glued) {
        return false;
    }
    for (size_t i = open; i < macro->end && !lex_is(&t[i], ")"); i++) {
        found = found || lex_equal(&t[i], &t[at]);
    }
    return found;
}

/* A macro of elsewhere: M_PI. */
static bool all_capitals(const struct lex_token *t)
{
    bool all = true;
    for (size_t i = 0; i < t->size; i++) {
        all = all && (t->text[i] < 'a' || t->text[i] > 'z');
    }
    return all;
}

static bool says_constexpr(const struct lex_token *t, const struct item *item)
{
    bool found = false;
    for (size_t at = item->begin; item->kind == ITEM_FUNCTION && at < item->params; at++) {
        found = found || lex_is(&t[at], "constexpr") || lex_is(&t[at], "consteval");
    }
    return found;
}

/* May the token at `at` of the item stand in what a compiler computes? */
static bool token_computed(const struct computing *c, const struct item *item, size_t at)
{
    static const char *const words[] = {"true", "false", "sizeof", "const", NULL};
    const struct lex_token *t = &items_tokens(c->items, item)[at];
    const struct item *named = items_next(c->items, t, NULL);
    bool elsewhere = named == NULL;
    bool known = !elsewhere;
    for (; named != NULL; named = items_next(c->items, t, named)) {
        known = known && (named == item || c->computed[named - c->items->item] ||
                          says_constexpr(c->items->code.token, named));
    }
    if (t->kind != LEX_WORD) {
        return !lex_is(t, "[") && !lex_is(t, "{") && (t->kind != LEX_LITERAL || t->text[0] == '\'');
    }
    return known || lex_number(t) || lex_one_of(t, words) || (elsewhere && all_capitals(t)) ||
           (item->kind == ITEM_MACRO && macro_parameter(items_tokens(c->items, item), item, at));
}

static bool item_computed(const struct computing *c, const struct item *item)
{
    const struct lex_token *t = items_tokens(c->items, item);
    bool variable = item->kind == ITEM_VARIABLE && item->constant && !item->device;
    size_t at = variable ? item_head_end(t, item) : item->begin + 1;
    bool all = variable || item->kind == ITEM_MACRO || item->kind == ITEM_TYPE;
    for (; all && item->kind != ITEM_TYPE && at < item->end; at++) {
        all = token_computed(c, item, at);
    }
    return all;
}

static void computed_settle(struct computing *c)
{
    bool more = true;
    for (unsigned round = 0; more && round < ROUNDS_MAX; round++) {
        more = false;
        for (unsigned i = 0; i < c->items->count; i++) {
            if (!c->computed[i] && item_computed(c, &c->items->item[i])) {
                c->computed[i] = true;
                more = true;
            }
        }
    }
}

/* Behind the "const" of a number that may be no integer, which is one for NVRTC as it is; 0 if it
 * is of another form than "const TYPE NAME = …". */
static size_t real_constant(const struct computing *c, const struct item *item)
{
    static const char *const others[] = {"static", "inline", NULL};
    const struct lex_token *t = c->items->code.token;
    size_t end = item_head_end(t, item);
    size_t found = 0;
    unsigned words = 0;
    bool plain = end < item->end;
    for (size_t at = item->begin; plain && at < end; at++) {
        bool constant = lex_is(&t[at], "const");
        found = constant && found == 0 ? at + 1 : found;
        words += !constant && !lex_one_of(&t[at], others);
        plain = t[at].kind == LEX_WORD && !lex_integer(&t[at]) && !lex_is(&t[at], "bool");
    }
    return plain && words == 2 ? found : 0;
}

static void words_mark(const struct computing *c, const char *text, char *out)
{
    for (unsigned i = 0; i < c->items->count; i++) {
        const struct item *item = &c->items->item[i];
        bool real = item->kind == ITEM_VARIABLE && item->kept && c->computed[i];
        size_t behind = real ? real_constant(c, item) : 0;
        if (behind > 0) {
            const char *at = c->items->code.token[behind - 1].text;
            memcpy(out + (at - text), computed_word, sizeof computed_word - 1);
        }
    }
}

bool constants_mark(const struct items *items, const char *text, char *out)
{
    struct computing c = {.items = items, .computed = calloc(items->count + 1, sizeof(bool))};
    if (c.computed == NULL) {
        return false;
    }
    computed_settle(&c);
    words_mark(&c, text, out);
    free(c.computed);
    return true;
}
