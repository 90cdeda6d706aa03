#include "client/src/wire/heap.h"

#include <stdlib.h>

#define LOOK_MAX 8 /* pieces of the request's own class to try before larger classes */

uint64_t heap_rounded(uint64_t size)
{
    uint64_t wanted = size > 0 ? size : 1;
    return wanted > UINT64_MAX - HEAP_ALIGN ? 0
                                            : (wanted + HEAP_ALIGN - 1) / HEAP_ALIGN * HEAP_ALIGN;
}

/* The power of two at or below the size; 63: 2^63 bytes and more. */
static unsigned bin_of(uint64_t size)
{
    return 63u - (unsigned)__builtin_clzll(size);
}

static void bin_put(struct heap *h, struct heap_piece *p)
{
    struct heap_piece **bin = &h->bin[bin_of(p->size)];
    p->taken = false;
    p->bin_prev = NULL;
    p->bin_next = *bin;
    if (*bin != NULL) {
        (*bin)->bin_prev = p;
    }
    *bin = p;
}

static void bin_remove(struct heap *h, struct heap_piece *p)
{
    if (p->bin_prev != NULL) {
        p->bin_prev->bin_next = p->bin_next;
    } else {
        h->bin[bin_of(p->size)] = p->bin_next;
    }
    if (p->bin_next != NULL) {
        p->bin_next->bin_prev = p->bin_prev;
    }
}

bool heap_init(struct heap *h, uint64_t size)
{
    *h = (struct heap){.size = size};
    h->first = calloc(1, sizeof *h->first);
    h->taken = calloc(size / HEAP_ALIGN + 1, sizeof(struct heap_piece *));
    if (h->first == NULL || h->taken == NULL) {
        free(h->first);
        free(h->taken);
        h->first = NULL;
        h->taken = NULL;
        return false;
    }
    h->first->size = size;
    bin_put(h, h->first);
    return true;
}

void heap_finish(struct heap *h)
{
    for (struct heap_piece *p = h->first; p != NULL;) {
        struct heap_piece *after = p->after;
        free(p);
        p = after;
    }
    free(h->taken);
    *h = (struct heap){.size = 0};
}

static struct heap_piece *find(const struct heap *h, uint64_t size)
{
    unsigned own = bin_of(size);
    struct heap_piece *p = h->bin[own];
    for (int i = 0; p != NULL && p->size < size && i < LOOK_MAX; i++) {
        p = p->bin_next;
    }
    if (p != NULL && p->size >= size) {
        return p;
    }
    for (unsigned bin = own + 1; bin < HEAP_BINS; bin++) { /* any of these is large enough */
        if (h->bin[bin] != NULL) {
            return h->bin[bin];
        }
    }
    for (; p != NULL; p = p->bin_next) { /* last, the rest of its own class */
        if (p->size >= size) {
            return p;
        }
    }
    return NULL;
}

/* Cuts a piece to `size`; the rest becomes a free piece. */
static bool split(struct heap *h, struct heap_piece *p, uint64_t size)
{
    struct heap_piece *rest = calloc(1, sizeof *rest);
    if (rest == NULL) {
        return false;
    }
    rest->offset = p->offset + size;
    rest->size = p->size - size;
    rest->before = p;
    rest->after = p->after;
    if (p->after != NULL) {
        p->after->before = rest;
    }
    p->after = rest;
    p->size = size;
    bin_put(h, rest);
    return true;
}

uint64_t heap_alloc(struct heap *h, uint64_t size)
{
    uint64_t wanted = heap_rounded(size);
    struct heap_piece *p = wanted > 0 && wanted <= h->size ? find(h, wanted) : NULL;
    if (p == NULL) {
        return HEAP_NONE;
    }
    bin_remove(h, p);
    if (p->size > wanted && !split(h, p, wanted)) {
        bin_put(h, p);
        return HEAP_NONE;
    }
    p->taken = true;
    h->taken[p->offset / HEAP_ALIGN] = p;
    h->used += p->size;
    return p->offset;
}

static struct heap_piece *taken_at(const struct heap *h, uint64_t offset)
{
    return offset < h->size && offset % HEAP_ALIGN == 0 ? h->taken[offset / HEAP_ALIGN] : NULL;
}

/* Merges two neighbours that are in no bin into the first one. */
static void join(struct heap_piece *p)
{
    struct heap_piece *next = p->after;
    p->size += next->size;
    p->after = next->after;
    if (p->after != NULL) {
        p->after->before = p;
    }
    free(next);
}

bool heap_free(struct heap *h, uint64_t offset)
{
    struct heap_piece *p = taken_at(h, offset);
    if (p == NULL) {
        return false;
    }
    h->taken[offset / HEAP_ALIGN] = NULL;
    h->used -= p->size;
    if (p->after != NULL && !p->after->taken) {
        bin_remove(h, p->after);
        join(p);
    }
    if (p->before != NULL && !p->before->taken) {
        p = p->before;
        bin_remove(h, p);
        join(p);
    }
    bin_put(h, p);
    return true;
}

uint64_t heap_size(const struct heap *h, uint64_t offset)
{
    const struct heap_piece *p = taken_at(h, offset);
    return p != NULL ? p->size : 0;
}
