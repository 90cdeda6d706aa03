#include "daemon/front/agenda.h"

#include <stddef.h>

#include "common/clock.h"

static unsigned rank_of(const struct agenda_entry *x)
{
    return x != NULL ? x->rank : 0;
}

/* The way down to the right is the shorter one: at most O(log n). */
static void lean(struct agenda_entry *x)
{
    if (rank_of(x->left) < rank_of(x->right)) {
        struct agenda_entry *left = x->left;
        x->left = x->right;
        x->right = left;
    }
    x->rank = rank_of(x->right) + 1;
}

static struct agenda_entry *meld(struct agenda_entry *a, struct agenda_entry *b)
{
    struct agenda_entry *root = NULL;
    struct agenda_entry *last = NULL;
    struct agenda_entry **at = &root;
    while (a != NULL && b != NULL) {
        struct agenda_entry *first = b->at_ns < a->at_ns ? b : a;
        struct agenda_entry *other = first == a ? b : a;
        *at = first;
        first->parent = last;
        last = first;
        at = &first->right;
        a = first->right;
        b = other;
    }
    *at = a != NULL ? a : b;
    if (*at != NULL) {
        (*at)->parent = last;
    }
    for (struct agenda_entry *x = last; x != NULL; x = x->parent) {
        lean(x);
    }
    return root;
}

void agenda_drop(struct agenda *a, struct agenda_entry *x)
{
    if (!x->in) {
        return;
    }
    struct agenda_entry *up = x->parent;
    struct agenda_entry *rest = meld(x->left, x->right);
    if (rest != NULL) {
        rest->parent = up;
    }
    if (up == NULL) {
        a->first = rest;
    } else if (up->left == x) {
        up->left = rest;
    } else {
        up->right = rest;
    }
    for (bool changed = true; changed && up != NULL; up = up->parent) {
        unsigned before = up->rank;
        lean(up);
        changed = up->rank != before;
    }
    *x = (struct agenda_entry){.at_ns = NS_NEVER};
}

void agenda_set(struct agenda *a, struct agenda_entry *x, uint64_t at_ns, void *what)
{
    agenda_drop(a, x);
    if (at_ns != NS_NEVER) {
        *x = (struct agenda_entry){.at_ns = at_ns, .what = what, .in = true, .rank = 1};
        a->first = meld(a->first, x);
    }
}

void *agenda_due(const struct agenda *a, uint64_t now_ns)
{
    return a->first != NULL && a->first->at_ns <= now_ns ? a->first->what : NULL;
}

uint64_t agenda_next_ns(const struct agenda *a)
{
    return a->first != NULL ? a->first->at_ns : NS_NEVER;
}
