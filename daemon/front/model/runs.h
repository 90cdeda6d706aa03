/*
 * A queue of entries by key, then by tie, for entries that mostly come in order: runs, as a merge
 * sort knows them, and a heap for the others. An entry that is not before the last one of a run is
 * appended to it, so a queue of a million entries is not walked: runs_put and runs_drop touch the
 * entry and its neighbours. Where entries come in no order, both are O(log n). Entries are members
 * of the structs that they stand for, so no call allocates or fails. Thread: the loop's.
 */
#ifndef FRONT_MODEL_RUNS_H
#define FRONT_MODEL_RUNS_H

#include "common/heap.h"

#define RUNS_MAX 8u

struct run {
    struct heap_entry *first, *last;
    uint64_t last_key, last_tie; /* of `last`, which may not be in the cache */
};

struct runs {
    struct run run[RUNS_MAX];
    unsigned used; /* runs behind these are empty */
    struct heap rest;
};

/* Puts an entry that is in no queue into this one. */
void runs_put(struct runs *r, struct heap_entry *x, uint64_t key, uint64_t tie, void *what);
void runs_drop(struct runs *r, struct heap_entry *x); /* not in it: nothing happens */
/* The first entry; NULL: none. */
struct heap_entry *runs_first(const struct runs *r);
/* The entry behind `x` in the same run; NULL: none, or it is in no run. */
const struct heap_entry *runs_next(const struct heap_entry *x);
/* Counts entries that come before `x`, up to `max`. `x` may be in another queue. O(max). */
unsigned runs_ahead(const struct runs *r, const struct heap_entry *x, unsigned max);

#endif
