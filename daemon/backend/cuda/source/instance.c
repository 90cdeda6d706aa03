#include "daemon/backend/cuda/source/instance_int.h"

#include <stdlib.h>
#include <string.h>

#define SCOPES_MAX 256u /* templates of the host with their arguments */

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
            head_arguments(t, (struct item_range){at + 1, close - 1}, out->given, PARAMETERS_MAX);
        at = close;
    }
    at = lex_is_thrice(&t[at], "<") ? launch_skip(t, at, end) : at;
    out->called = at < end && lex_is(&t[at], "(");
    if (out->called) {
        size_t close = item_skip(t, at, end) - 1;
        out->argument_count =
            head_arguments(t, (struct item_range){at + 1, close}, out->argument, ARGUMENTS_MAX);
    }
    return out->given_count <= PARAMETERS_MAX && out->argument_count <= ARGUMENTS_MAX;
}

static void given_put(struct finder *f, const struct scope *s, const struct mention *m,
                      struct words *w)
{
    for (unsigned i = 0; i < m->given_count; i++) {
        words_text(w, i > 0 ? "," : "");
        words_range(f, s, m->given[i], (struct manner){.constant = true}, w);
    }
}

/* What is deduced for the parameter. */
static void deduced_put(struct finder *f, const struct scope *s, const struct mention *m,
                        unsigned parameter, struct words *w)
{
    unsigned index[ARGUMENTS_MAX];
    struct item_range declared[ARGUMENTS_MAX];
    unsigned count = probe_parameters(f, m->head, index, declared);
    w->spelled = false;
    w->unknown = w->unknown || !m->called || !probe_ready(f, m->head);
    words_text(w, "decltype(");
    words_space(f, m->head->item->space, w);
    words_text(w, "__gpud_of_");
    words_token(w, &f->t[m->head->item->params - 1]);
    if (m->given_count > 0) {
        words_text(w, "<");
        given_put(f, s, m, w);
        words_text(w, ">");
    }
    words_text(w, "(");
    for (unsigned i = 0; i < count && !w->unknown; i++) {
        w->unknown = index[i] >= m->argument_count;
        words_text(w, i > 0 ? "," : "");
        if (!w->unknown) {
            words_range(f, s, m->argument[index[i]], (struct manner){.constant = false}, w);
        }
    }
    words_text(w, "))::");
    probe_tag(f, m->head, parameter, w);
}

static void argument_put(struct finder *f, const struct scope *s, const struct mention *m,
                         unsigned parameter, struct words *w)
{
    if (parameter < m->given_count) {
        words_range(f, s, m->given[parameter], (struct manner){.constant = true}, w);
    } else {
        deduced_put(f, s, m, parameter, w);
    }
}

static void name_put(struct finder *f, const struct item *kernel, struct words *w)
{
    words_space(f, kernel->space, w);
    words_token(w, &f->t[kernel->params - 1]);
}

/* NULL: it is one of too many. */
static struct instance_template *asked_find(struct finder *f, const struct item *kernel)
{
    struct words w = words_begin();
    name_put(f, kernel, &w);
    char *name = words_end(&w);
    for (unsigned i = 0; name != NULL && i < f->out->asked_count; i++) {
        if (strcmp(f->out->asked[i].name, name) == 0) {
            free(name);
            return &f->out->asked[i];
        }
    }
    if (name == NULL || f->out->asked_count == INSTANCE_TEMPLATES_MAX) {
        free(name);
        return NULL;
    }
    struct instance_template *fresh = &f->out->asked[f->out->asked_count++];
    *fresh = (struct instance_template){name, f->t[kernel->params - 1].line, false};
    return fresh;
}

/* Once; false: it cannot be told, or is one of too many. */
static bool list_add(struct instances *out, struct instance fresh)
{
    bool known = false;
    for (unsigned i = 0; fresh.expression != NULL && !known && i < out->count; i++) {
        known = strcmp(out->list[i].expression, fresh.expression) == 0;
    }
    bool added = fresh.expression != NULL && !known && out->count < INSTANCES_MAX;
    if (added) {
        out->list[out->count++] = fresh;
    } else {
        free(fresh.expression);
    }
    return added || known;
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
    struct instance_template *asked = asked_find(f, m->head->item);
    name_put(f, m->head->item, &w);
    words_text(&w, "<");
    if (told) {
        given_put(f, s, m, &w);
    }
    for (unsigned i = 0; !told && i < m->head->count; i++) {
        words_text(&w, i > 0 ? "," : "");
        argument_put(f, s, m, i, &w);
    }
    words_text(&w, ">");
    const bool spelled = w.spelled && !(told && deducible(f, m->head, m->given_count));
    bool listed = list_add(f->out, (struct instance){words_end(&w), spelled});
    if (asked != NULL && !listed) {
        asked->untold = true;
    }
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
            words_range(f, &s, p->value, (struct manner){.constant = true}, &w);
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
    struct head best = {.item = NULL};
    unsigned best_fit = 0;
    bool several = false;
    const struct item *item = NULL;
    while ((item = items_next(f->items, &f->t[at], item)) != NULL) {
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
    } else if (head_names_kernel(f->items, best.item)) {
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
