#include "daemon/backend/cuda/source/instance_int.h"

static bool type_word(const struct lex_token *t)
{
    return lex_is(t, "class") || lex_is(t, "typename");
}

unsigned head_arguments(const struct lex_token *t, struct item_range inside, struct item_range *out,
                        unsigned most)
{
    unsigned count = 0;
    for (size_t at = inside.begin; at < inside.end; at++) {
        size_t end = item_skip_argument(t, at, inside.end);
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

bool head_read(const struct lex_token *t, const struct item *item, struct head *ret_head)
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
        head_arguments(t, (struct item_range){open + 1, end - 1}, part, PARAMETERS_MAX);
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

bool head_names_kernel(const struct items *s, const struct item *item)
{
    const struct lex_token *t = s->code.token;
    for (size_t at = item->begin; at < item->params; at++) {
        if (lex_is(&t[at], "__global__")) {
            return true;
        }
        const struct item *macro = NULL;
        while ((macro = items_next(s, &t[at], macro)) != NULL) {
            for (size_t i = macro->begin; macro->kind == ITEM_MACRO && i < macro->end; i++) {
                if (lex_is(&s->macros.token[i], "__global__")) {
                    return true;
                }
            }
        }
    }
    return false;
}
