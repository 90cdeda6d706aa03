#include "daemon/backend/cuda/source/local.h"

#include <stdlib.h>

#include "daemon/backend/cuda/source/list.h"

#define LOCALS_MAX 65536u

static bool keyword(const struct lex_token *t)
{
    static const char *const words[] = {"return", "delete",  "new",      "else",      "case",
                                        "goto",   "throw",   "using",    "typedef",   "do",
                                        "if",     "while",   "for",      "switch",    "template",
                                        "sizeof", "default", "operator", "namespace", NULL};
    return lex_one_of(t, words);
}

/* Words that stand with a type and are none of it. */
static bool storage(const struct lex_token *t)
{
    static const char *const words[] = {"static",       "register", "constexpr", "extern", "inline",
                                        "thread_local", "typename", "struct",    NULL};
    return lex_one_of(t, words);
}

static bool qualifier(const struct lex_token *t)
{
    static const char *const words[] = {"const", "volatile", "__restrict__", "__restrict", NULL};
    return lex_one_of(t, words);
}

/* Behind "unsigned long", or "a::b<c>::d"; `at` if there is no type. */
static size_t type_skip(const struct lex_token *t, size_t at, size_t end)
{
    size_t from = at;
    while (at < end && lex_integer(&t[at])) {
        at++;
    }
    if (at > from) {
        return at;
    }
    while (at + 1 < end) {
        bool colons = lex_is(&t[at], ":") && lex_is(&t[at + 1], ":") && t[at + 1].glued;
        at += colons ? 2 : 0;
        if (at >= end || t[at].kind != LEX_WORD || keyword(&t[at]) || (at > from && !colons)) {
            break;
        }
        at++;
        at = lex_is(&t[at], "<") ? item_skip_angles(t, at, end) : at;
        if (!lex_is(&t[at], ":")) {
            break;
        }
    }
    return at;
}

/* Behind a declarator's value, at "," or ";" or ")". */
static size_t value_skip(const struct lex_token *t, size_t at, size_t end)
{
    while (at < end && !lex_is(&t[at], ",") && !lex_is(&t[at], ";") && !lex_is(&t[at], ")")) {
        at = lex_opens(&t[at]) ? item_skip(t, at, end) : at + 1;
    }
    return at;
}

/* "*a[4] = b" at `at`; returns behind it, `at` if it is none. */
static size_t declarator_read(const struct lex_token *t, size_t at, size_t end, struct local *l)
{
    static const char *const ends[] = {"=", ";", ",", ")", "[", "(", "{", NULL};
    size_t from = at;
    while (at < end && (lex_is(&t[at], "*") || lex_is(&t[at], "&") || qualifier(&t[at]))) {
        at++;
    }
    l->pointers = (struct item_range){from, at};
    if (at + 1 >= end || t[at].kind != LEX_WORD || keyword(&t[at]) ||
        !lex_one_of(&t[at + 1], ends)) {
        return from;
    }
    l->name = &t[at++];
    l->extents.begin = at;
    while (lex_is(&t[at], "[")) {
        at = item_skip(t, at, end);
    }
    l->extents.end = at;
    l->value.begin = lex_is(&t[at], "=") ? at + 1 : at;
    l->value.end = value_skip(t, at, end);
    l->value.begin = lex_is(&t[at], "=") ? l->value.begin : l->value.end;
    return l->value.end;
}

/* "static const float" at the begin. Returns behind it, 0 if it is no type. */
static size_t base_read(const struct lex_token *t, struct item_range where, bool *ret_constant)
{
    size_t at = where.begin;
    while (at < where.end && (storage(&t[at]) || qualifier(&t[at]))) {
        at++;
    }
    size_t behind = type_skip(t, at, where.end);
    bool none = behind == at;
    while (behind < where.end && qualifier(&t[behind])) {
        behind++;
    }
    *ret_constant = false;
    for (at = where.begin; at < behind; at++) {
        *ret_constant = *ret_constant || lex_is(&t[at], "const") || lex_is(&t[at], "constexpr");
    }
    return none ? 0 : behind;
}

/* What may be a declaration at the begin; of a parameter there is one, without a value. */
static bool declaration_read(const struct lex_token *t, struct item_range where, bool parameter,
                             struct locals *s)
{
    struct local l = {.name = NULL};
    bool constant = false;
    size_t behind = base_read(t, where, &constant);
    bool more = behind > 0;
    l.base = (struct item_range){where.begin, behind};
    while (more) {
        size_t at = declarator_read(t, behind, where.end, &l);
        l.constant = constant && !parameter && l.pointers.begin == l.pointers.end;
        if (at > behind && !LIST_ADD(s->list, s->count, s->capacity, LOCALS_MAX, l)) {
            return false;
        }
        more = at > behind && !parameter && lex_is(&t[at], ",");
        behind = at + 1;
    }
    return true;
}

bool locals_read_body(const struct lex_token *t, struct item_range where, struct locals *s)
{
    static const char *const before[] = {";", "{", "}", NULL};
    for (size_t at = where.begin; at < where.end; at++) {
        bool loop = at > where.begin + 1 && lex_is(&t[at - 1], "(") && lex_is(&t[at - 2], "for");
        bool begins = at == where.begin || loop || lex_one_of(&t[at - 1], before);
        if (begins && !declaration_read(t, (struct item_range){at, where.end}, false, s)) {
            return false;
        }
    }
    return true;
}

bool locals_read_parameters(const struct lex_token *t, struct item_range where, struct locals *s)
{
    for (size_t at = where.begin; at < where.end;) {
        if (!declaration_read(t, (struct item_range){at, where.end + 1}, true, s)) {
            return false;
        }
        at = item_skip_argument(t, at, where.end) + 1;
    }
    return true;
}

void locals_finish(struct locals *s)
{
    free(s->list);
    *s = (struct locals){.count = 0};
}

static bool same(const struct lex_token *t, struct item_range a, struct item_range b)
{
    bool all = a.end - a.begin == b.end - b.begin;
    for (size_t i = 0; all && i < a.end - a.begin; i++) {
        all = lex_equal(&t[a.begin + i], &t[b.begin + i]);
    }
    return all;
}

const struct local *locals_find(const struct locals *s, const struct lex_token *t,
                                const struct lex_token *name, bool by_value, bool *ret_known)
{
    const struct local *found = NULL;
    bool alike = true;
    for (size_t i = 0; i < s->count; i++) {
        const struct local *l = &s->list[i];
        if (!lex_equal(l->name, name)) {
            continue;
        }
        alike = alike && (found == NULL ||
                          (same(t, l->base, found->base) && same(t, l->pointers, found->pointers) &&
                           same(t, l->extents, found->extents) &&
                           (!by_value || same(t, l->value, found->value))));
        found = l;
    }
    *ret_known = found != NULL;
    return alike ? found : NULL;
}
