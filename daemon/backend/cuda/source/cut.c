#include "daemon/backend/cuda/source/cut.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/backend/cuda/source/constant.h"
#include "daemon/backend/cuda/source/macro.h"
#include "daemon/backend/cuda/source/stay.h"

#define CLASSES_MAX 8u /* one inside of another */

/* One source on its way. */
struct cutting {
    struct items items;
    bool *gone;       /* owned, for each token of code: it becomes a blank */
    unsigned members; /* functions of classes whose bodies go */
};

/* ---- what goes ------------------------------------------------------------------------------- */

static void tokens_cut(struct cutting *c, size_t at, size_t end)
{
    for (; at < end; at++) {
        c->gone[at] = true;
    }
}

static size_t access_skip(const struct lex_token *t, size_t at, size_t end)
{
    while (at + 1 < end && lex_is(&t[at + 1], ":") &&
           (lex_is(&t[at], "public") || lex_is(&t[at], "private") || lex_is(&t[at], "protected"))) {
        at += 2;
    }
    return at;
}

/* Of the host's functions the declarations stay, so that a class is what it was. */
static void member_cut(struct cutting *c, const struct item *member, size_t end)
{
    const struct lex_token *t = c->items.code.token;
    if (member->body == 0 || member->params <= member->begin ||
        macros_name(&c->items, &t[member->params - 1])) {
        return;
    }
    tokens_cut(c, member->body, member->end);
    for (size_t i = access_skip(t, member->begin, end); i < member->body; i++) {
        c->gone[i] = lex_is(&t[i], "__host__");
    }
    c->members++;
}

static void class_cut(struct cutting *c, size_t open, size_t end, unsigned depth)
{
    const struct lex_token *t = c->items.code.token;
    size_t close = item_skip(t, open, end) - 1;
    for (size_t at = open + 1; at < close && depth < CLASSES_MAX;) {
        struct item member;
        at = item_read_member(t, at, close, &member);
        size_t head = member.body > 0 ? member.body : member.end;
        if (item_for_host(&member) && !macros_say_device(&c->items, member.begin, head)) {
            member_cut(c, &member, close);
        } else if (member.body > 0 && member.kind == ITEM_TYPE) {
            class_cut(c, member.body, member.end, depth + 1);
        }
    }
}

static void classes_cut(struct cutting *c)
{
    for (unsigned i = 0; i < c->items.count; i++) {
        const struct item *item = &c->items.item[i];
        if (item->kind == ITEM_TYPE && item->body > 0) {
            class_cut(c, item->body, item->end, 0);
        }
    }
}

static void items_cut(struct cutting *c, struct host_cut *out)
{
    for (unsigned i = 0; i < c->items.count; i++) {
        const struct item *item = &c->items.item[i];
        if (item->kind == ITEM_MACRO || item->kept) {
            continue;
        }
        tokens_cut(c, item->begin, item->end);
        out->functions += item->kind == ITEM_FUNCTION;
        out->others += item->kind != ITEM_FUNCTION;
        out->line = out->line == 0 ? c->items.code.token[item->begin].line : out->line;
    }
}

/* A body that goes while its declaration stays leaves a ";". */
static void text_cut(const struct cutting *c, const char *text, char *out)
{
    const struct lex_token *t = c->items.code.token;
    for (size_t i = 0; i < c->items.code.count; i++) {
        char *at = out + (t[i].text - text);
        for (size_t k = 0; c->gone[i] && k < t[i].size; k++) {
            at[k] = at[k] == '\n' ? '\n' : ' ';
        }
        bool begins = c->gone[i] && i > 0 && !c->gone[i - 1];
        bool body = lex_is(&t[i], "{") || lex_is(&t[i], ":");
        bool declared = begins && !lex_is(&t[i - 1], ";") && !lex_is(&t[i - 1], "}");
        if (declared && body) {
            *at = ';';
        }
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int probe_compare(const void *a, const void *b)
{
    const char *x = ((const struct instance_probe *)a)->at;
    const char *y = ((const struct instance_probe *)b)->at;
    return (x > y) - (x < y);
}

static bool probes_insert(const char *text, struct host_cut *out)
{
    struct instances *s = &out->instances;
    size_t size = strlen(out->text) + 1;
    if (s->probe_count == 0) {
        return true;
    }
    qsort(s->probe, s->probe_count, sizeof *s->probe, probe_compare);
    for (unsigned i = 0; i < s->probe_count; i++) {
        size += strlen(s->probe[i].text);
    }
    char *whole = malloc(size);
    char *to = whole;
    const char *from = out->text;
    for (unsigned i = 0; whole != NULL && i < s->probe_count; i++) {
        const char *stop = out->text + (s->probe[i].at - text);
        size_t probe = strlen(s->probe[i].text);
        memcpy(to, from, (size_t)(stop - from));
        to += stop - from;
        memcpy(to, s->probe[i].text, probe);
        to += probe;
        from = stop;
    }
    if (whole != NULL) {
        memcpy(to, from, strlen(from) + 1);
        free(out->text);
        out->text = whole;
    }
    return whole != NULL;
}

static bool cut(struct cutting *c, const char *text, const char *const *expressions,
                unsigned expression_count, struct host_cut *out)
{
    c->gone = calloc(c->items.code.count + 1, sizeof *c->gone);
    out->text = strdup(text);
    if (c->gone == NULL || out->text == NULL) {
        return false;
    }
    classes_cut(c);
    if (!stay_find(&c->items, c->gone, expressions, expression_count)) {
        return false;
    }
    items_cut(c, out);
    out->functions += c->members;
    text_cut(c, text, out->text);
    return constants_mark(&c->items, text, out->text) && strcmp(text, out->text) != 0 &&
           instances_find(&c->items, c->gone, &out->instances) && probes_insert(text, out);
}

bool host_cut(const char *text, const char *const *expressions, unsigned expression_count,
              struct host_cut *ret_cut)
{
    struct cutting c = {.members = 0};
    struct host_cut out = {.text = NULL};
    if (!items_read(text, &c.items)) {
        return false;
    }
    bool ok = macros_settle(&c.items) && cut(&c, text, expressions, expression_count, &out);
    items_finish(&c.items);
    free(c.gone);
    if (!ok) {
        host_cut_finish(&out);
        return false;
    }
    *ret_cut = out;
    return true;
}

void host_cut_finish(struct host_cut *c)
{
    instances_finish(&c->instances);
    free(c->text);
    *c = (struct host_cut){.text = NULL};
}
