#include "common/heap.h"

#include <stddef.h>

bool heap_before(const struct heap_entry *a, const struct heap_entry *b)
{
    return a->key != b->key ? a->key < b->key : a->tie < b->tie;
}

static unsigned rank_of(const struct heap_entry *x)
{
    return x != NULL ? x->rank : 0;
}

/* Keeps the path to the right the shorter one, so that it has O(log n) entries. */
static void lean(struct heap_entry *x)
{
    if (rank_of(x->left) < rank_of(x->right)) {
        struct heap_entry *left = x->left;
        x->left = x->right;
        x->right = left;
    }
    x->rank = rank_of(x->right) + 1;
}

static struct heap_entry *meld(struct heap_entry *a, struct heap_entry *b)
{
    struct heap_entry *root = NULL;
    struct heap_entry *last = NULL;
    struct heap_entry **at = &root;
    while (a != NULL && b != NULL) {
        struct heap_entry *first = heap_before(b, a) ? b : a;
        struct heap_entry *other = first == a ? b : a;
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
    for (struct heap_entry *x = last; x != NULL; x = x->parent) {
        lean(x);
    }
    return root;
}

void heap_drop(struct heap *h, struct heap_entry *x)
{
    if (!x->in) {
        return;
    }
    struct heap_entry *up = x->parent;
    struct heap_entry *rest = meld(x->left, x->right);
    if (rest != NULL) {
        rest->parent = up;
    }
    if (up == NULL) {
        h->first = rest;
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
    *x = (struct heap_entry){.in = false};
}

void heap_put(struct heap *h, struct heap_entry *x, uint64_t key, uint64_t tie, void *what)
{
    heap_drop(h, x);
    *x = (struct heap_entry){.key = key, .tie = tie, .what = what, .in = true, .rank = 1};
    h->first = meld(h->first, x);
}

/* An entry that is not before `x` has no child that is. */
static struct heap_entry *if_before(struct heap_entry *y, const struct heap_entry *x)
{
    return y != NULL && heap_before(y, x) ? y : NULL;
}

/* The next entry before `x`, parents first; NULL: none is left. */
static struct heap_entry *next_before(struct heap_entry *y, const struct heap_entry *x)
{
    struct heap_entry *down = if_before(y->left, x);
    down = down != NULL ? down : if_before(y->right, x);
    while (down == NULL && y->parent != NULL) {
        struct heap_entry *up = y->parent;
        down = y == up->left ? if_before(up->right, x) : NULL;
        y = up;
    }
    return down;
}

unsigned heap_ahead(const struct heap *h, const struct heap_entry *x, unsigned max)
{
    unsigned ahead = 0;
    struct heap_entry *y = if_before(h->first, x);
    while (y != NULL && ahead < max) {
        ahead++;
        y = next_before(y, x);
    }
    return ahead;
}
