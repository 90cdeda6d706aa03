#include "daemon/backend/cuda/source/macro.h"

#define ROUNDS_MAX    64u   /* until it is known which macros give to the device */
#define NAMESAKES_MAX 1024u /* declarations of one name */

static bool says_device(const struct item *macro)
{
    return macro->device;
}

static bool says_constant(const struct item *macro)
{
    return macro->constant;
}

/* Is there a macro among the words that says such a thing? */
static bool macro_says(const struct items *s, const struct lex_token *t, size_t at, size_t end,
                       bool (*says)(const struct item *macro))
{
    for (; at < end; at++) {
        const struct item *item = NULL;
        while ((item = items_next(s, &t[at], item)) != NULL) {
            if (item->kind == ITEM_MACRO && says(item)) {
                return true;
            }
        }
    }
    return false;
}

/* Macros that use a macro for the device are such ones, and so are declarations; the same holds for
 * variables and macros that say "const". false: they lie too deep. */
static bool says_settle(struct items *s)
{
    bool more = true;
    for (unsigned round = 0; more && round < ROUNDS_MAX; round++) {
        more = false;
        for (unsigned i = 0; i < s->count; i++) {
            struct item *item = &s->item[i];
            const struct lex_token *t = items_tokens(s, item);
            size_t end = item->body > 0 ? item->body : item->end;
            bool data = item->kind == ITEM_VARIABLE || item->kind == ITEM_MACRO;
            if (!item->device && macro_says(s, t, item->begin, end, says_device)) {
                item->device = true;
                more = true;
            }
            if (data && !item->constant &&
                macro_says(s, t, item->begin, item_head_end(t, item), says_constant)) {
                item->constant = true;
                more = true;
            }
        }
    }
    return !more;
}

bool macros_name(const struct items *s, const struct lex_token *t)
{
    const struct item *item = NULL;
    while ((item = items_next(s, t, item)) != NULL) {
        if (item->kind == ITEM_MACRO && s->macros.token[item->begin].text < t->text) {
            return true;
        }
    }
    return false;
}

/* A macro of the source with parentheses looks like a function: who knows what it makes. */
static void uses_settle(struct items *s)
{
    for (unsigned i = 0; i < s->count; i++) {
        struct item *item = &s->item[i];
        if (item->kind == ITEM_FUNCTION && item->params > item->begin &&
            macros_name(s, &s->code.token[item->params - 1])) {
            item->kind = ITEM_OTHER;
        }
    }
}

static bool namesakes_few(const struct items *s)
{
    size_t same = 0;
    for (size_t i = 1; i < s->name_count && same < NAMESAKES_MAX; i++) {
        bool alike = bytes_equal(s->name[i].text, s->name[i - 1].text);
        same = alike ? same + 1 : 0;
    }
    return same < NAMESAKES_MAX;
}

bool macros_say_device(const struct items *s, size_t at, size_t end)
{
    return macro_says(s, s->code.token, at, end, says_device);
}

bool macros_settle(struct items *s)
{
    if (!namesakes_few(s) || !says_settle(s)) {
        return false;
    }
    uses_settle(s);
    return true;
}
