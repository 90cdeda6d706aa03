#include "daemon/backend/cuda/source/instance_int.h"

#include <stdlib.h>
#include <string.h>

unsigned probe_parameters(const struct finder *f, const struct head *h, unsigned *ret_index,
                          struct item_range *ret_declared)
{
    struct item_range all[ARGUMENTS_MAX + 1];
    size_t close = item_skip(f->t, h->item->params, h->item->end) - 1;
    unsigned count =
        head_arguments(f->t, (struct item_range){h->item->params + 1, close}, all, ARGUMENTS_MAX);
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

void probe_tag(const struct finder *f, const struct head *h, unsigned parameter, struct words *w)
{
    words_text(w, "");
    (void)capbuf_printf(&w->text, "__gpud_p%u_%u", (unsigned)(h->item - f->items->item), parameter);
}

static void verbatim_put(const struct finder *f, struct item_range r, struct words *w)
{
    for (size_t at = r.begin; at < r.end; at++) {
        if (!lex_is(&f->t[at], "__grid_constant__")) {
            words_token(w, &f->t[at]);
        }
    }
}

static void head_put(const struct finder *f, const struct head *h, bool defaults, struct words *w)
{
    words_text(w, "template <");
    for (unsigned i = 0; i < h->count; i++) {
        const struct parameter *p = &h->parameter[i];
        words_text(w, i > 0 ? "," : "");
        verbatim_put(f, p->declared, w);
        if (defaults && p->value.end > p->value.begin) {
            words_text(w, "=");
            verbatim_put(f, p->value, w);
        }
    }
    words_text(w, "> ");
}

/* The type that holds what was deduced, and the function that returns it. */
static void probe_put(struct finder *f, const struct head *h, struct words *w)
{
    unsigned index[ARGUMENTS_MAX];
    struct item_range declared[ARGUMENTS_MAX];
    unsigned count = probe_parameters(f, h, index, declared);
    unsigned item = (unsigned)(h->item - f->items->item);
    words_text(w, " __gpud_probe(");
    head_put(f, h, false, w);
    (void)capbuf_printf(&w->text, "struct __gpud_held%u { ", item);
    for (unsigned i = 0; i < h->count; i++) {
        const struct parameter *p = &h->parameter[i];
        words_text(w, p->type ? "typedef " : "static constexpr decltype(");
        words_token(w, p->name);
        words_text(w, p->type ? " " : ") ");
        probe_tag(f, h, i, w);
        if (!p->type) {
            words_text(w, " = ");
            words_token(w, p->name);
        }
        words_text(w, "; ");
    }
    words_text(w, "}; ");
    head_put(f, h, true, w);
    (void)capbuf_printf(&w->text, "__device__ __gpud_held%u<", item);
    for (unsigned i = 0; i < h->count; i++) {
        words_text(w, i > 0 ? "," : "");
        words_token(w, h->parameter[i].name);
    }
    words_text(w, "> __gpud_of_");
    words_token(w, &f->t[h->item->params - 1]);
    words_text(w, "(");
    for (unsigned i = 0; i < count; i++) {
        words_text(w, i > 0 ? "," : "");
        verbatim_put(f, declared[i], w);
    }
    words_text(w, ");) ");
}

/* Are the types there without the host's part? */
static bool types_stay(const struct finder *f, struct item_range r)
{
    bool stay = true;
    for (size_t at = r.begin; stay && at < r.end; at++) {
        const struct item *item = NULL;
        stay = !lex_is(&f->t[at], "std");
        while ((item = items_next(f->items, &f->t[at], item)) != NULL) {
            stay = stay && (item->kind != ITEM_TYPE || item->kept);
        }
    }
    return stay;
}

static bool parameters_stay(const struct finder *f, const struct head *h)
{
    unsigned index[ARGUMENTS_MAX];
    struct item_range declared[ARGUMENTS_MAX];
    unsigned count = probe_parameters(f, h, index, declared);
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

bool probe_ready(struct finder *f, const struct head *h)
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
