/*
 * What comes first, by a number and then by a tie: a leftist heap (C. A. Crane, 1972). Entries lie
 * in what they are about, so that nothing here can fail. heap_put and heap_drop are O(log n),
 * however often an entry was moved. Thread: the loop's.
 */
#ifndef FRONT_MODEL_HEAP_H
#define FRONT_MODEL_HEAP_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: in no heap. */
struct heap_entry {
    uint64_t key; /* the smaller ones come first */
    uint64_t tie; /* of the same key the smaller ones */
    void *what;   /* what it lies in */
    bool in;      /* a heap */
    unsigned rank;
    struct heap_entry *parent, *left, *right;
};

struct heap {
    struct heap_entry *first;
};

/* Puts the entry in, or moves it. */
void heap_put(struct heap *h, struct heap_entry *x, uint64_t key, uint64_t tie, void *what);
void heap_drop(struct heap *h, struct heap_entry *x); /* not in it: nothing happens */
bool heap_before(const struct heap_entry *a, const struct heap_entry *b);
/* How many entries come before `x`, which may be in another heap: at most `max`. O(max). */
unsigned heap_ahead(const struct heap *h, const struct heap_entry *x, unsigned max);

#endif
