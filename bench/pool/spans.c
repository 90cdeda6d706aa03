#include "bench/pool/spans.h"

#include <stdlib.h>
#include <sys/mman.h>

#define SPANS_MAX (UINT32_C(1) << 23) /* addresses; pages are allocated at first access */

void spans_init(struct spans *s)
{
    *s = (struct spans){.random = 1};
    s->span = mmap(NULL, sizeof *s->span * SPANS_MAX, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s->span == MAP_FAILED) {
        abort();
    }
}

void spans_finish(struct spans *s)
{
    (void)munmap(s->span, sizeof *s->span * SPANS_MAX);
}

/* ---- ranges -----------------------------------------------------------------------------------*/

uint32_t span_make(struct spans *s, uint64_t at, uint64_t size, uint32_t before)
{
    uint32_t i = s->unused;
    if (i != SPAN_NONE) {
        s->unused = s->span[i].right;
    } else if (s->made + 1 < SPANS_MAX) {
        i = ++s->made;
    } else {
        abort();
    }
    s->random = s->random * 1664525u + 1013904223u;
    s->span[i] = (struct span){.at = at, .size = size, .before = before, .priority = s->random};
    if (before != SPAN_NONE) {
        s->span[i].after = s->span[before].after;
        s->span[before].after = i;
    }
    if (s->span[i].after != SPAN_NONE) {
        s->span[s->span[i].after].before = i;
    }
    return i;
}

void span_drop(struct spans *s, uint32_t i)
{
    const struct span *n = &s->span[i];
    if (n->before != SPAN_NONE) {
        s->span[n->before].after = n->after;
    }
    if (n->after != SPAN_NONE) {
        s->span[n->after].before = n->before;
    }
    s->span[i].right = s->unused;
    s->unused = i;
}

uint32_t span_cut(struct spans *s, uint32_t i, uint64_t size)
{
    struct span *n = &s->span[i];
    uint32_t rest = span_make(s, n->at + size, n->size - size, i);
    s->span[rest].group = n->group;
    n->size = size;
    return rest;
}

void span_join(struct spans *s, uint32_t i)
{
    uint32_t next = s->span[i].after;
    s->span[i].size += s->span[next].size;
    span_drop(s, next);
}

bool span_next_is(const struct spans *s, uint32_t i, enum span_state state)
{
    uint32_t next = s->span[i].after;
    return next != SPAN_NONE && s->span[next].state == state;
}

bool span_previous_is(const struct spans *s, uint32_t i, enum span_state state)
{
    uint32_t previous = s->span[i].before;
    return previous != SPAN_NONE && s->span[previous].state == state;
}

/* ---- trees: treaps by (size, at) --------------------------------------------------------------*/

/* Is span i before (size, at)? */
static bool below(const struct spans *s, uint32_t i, uint64_t size, uint64_t at)
{
    const struct span *n = &s->span[i];
    return n->size < size || (n->size == size && n->at < at);
}

/* Splits a tree: spans before (size, at) to *ret_low, the others to *ret_high. */
static void split(struct spans *s, uint32_t i, uint64_t size, uint64_t at, uint32_t *ret_low,
                  uint32_t *ret_high)
{
    while (i != SPAN_NONE) {
        struct span *n = &s->span[i];
        if (below(s, i, size, at)) {
            *ret_low = i;
            ret_low = &n->right;
            i = n->right;
        } else {
            *ret_high = i;
            ret_high = &n->left;
            i = n->left;
        }
    }
    *ret_low = SPAN_NONE;
    *ret_high = SPAN_NONE;
}

static uint32_t merge(struct spans *s, uint32_t low, uint32_t high)
{
    uint32_t root = SPAN_NONE;
    uint32_t *to = &root;
    while (low != SPAN_NONE && high != SPAN_NONE) {
        if (s->span[low].priority > s->span[high].priority) {
            *to = low;
            to = &s->span[low].right;
            low = *to;
        } else {
            *to = high;
            to = &s->span[high].left;
            high = *to;
        }
    }
    *to = low != SPAN_NONE ? low : high;
    return root;
}

void spans_insert(struct spans *s, uint32_t *root, uint32_t i)
{
    struct span *n = &s->span[i];
    uint32_t *to = root;
    while (*to != SPAN_NONE && s->span[*to].priority >= n->priority) {
        to = below(s, *to, n->size, n->at) ? &s->span[*to].right : &s->span[*to].left;
    }
    split(s, *to, n->size, n->at, &n->left, &n->right);
    *to = i;
}

void spans_remove(struct spans *s, uint32_t *root, uint32_t i)
{
    struct span *n = &s->span[i];
    uint32_t *to = root;
    while (*to != i) {
        to = below(s, *to, n->size, n->at) ? &s->span[*to].right : &s->span[*to].left;
    }
    *to = merge(s, n->left, n->right);
}

uint32_t spans_find(const struct spans *s, uint32_t root, uint64_t size, uint64_t at)
{
    uint32_t best = SPAN_NONE;
    for (uint32_t i = root; i != SPAN_NONE;) {
        if (below(s, i, size, at)) {
            i = s->span[i].right;
        } else {
            best = i;
            i = s->span[i].left;
        }
    }
    return best;
}
