/*
 * A heap of entries by key, then by tie: a leftist heap (C. A. Crane, 1972). Entries are members of
 * the structs that they stand for, so no call allocates or fails. heap_put and heap_drop are O(log
 * n), however often an entry was moved. Thread: one.
 */
#ifndef COMMON_HEAP_H
#define COMMON_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed: in no heap. */
struct heap_entry {
    uint64_t key; /* smaller keys come first */
    uint64_t tie; /* among equal keys, smaller ties come first */
    void *what;   /* the struct that it stands for */
    bool in;      /* it is in a heap */
    unsigned rank;
    unsigned run; /* runs.h's; 0: it is in a heap */
    struct heap_entry *parent, *left, *right;
};

struct heap {
    struct heap_entry *first;
};

/* Puts the entry into the heap, or moves it. */
void heap_put(struct heap *h, struct heap_entry *x, uint64_t key, uint64_t tie, void *what);
void heap_drop(struct heap *h, struct heap_entry *x); /* not in it: nothing happens */
bool heap_before(const struct heap_entry *a, const struct heap_entry *b);
/* Counts entries that come before `x`, up to `max`. `x` may be in another heap. O(max). */
unsigned heap_ahead(const struct heap *h, const struct heap_entry *x, unsigned max);

#endif
