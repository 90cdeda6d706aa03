/*
 * A queue of entries by time, earliest first: lingering buffers, jobs with a deadline, sessions
 * that linger or wait. Each call is O(log n) or better. Thread: the loop's.
 */
#ifndef FRONT_MODEL_AGENDA_H
#define FRONT_MODEL_AGENDA_H

#include <stddef.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/heap.h"

struct agenda {
    struct heap heap; /* by time in ns */
};

/* Puts the entry in, or moves it. NS_NEVER: takes it out. */
static inline void agenda_set(struct agenda *a, struct heap_entry *x, uint64_t at_ns, void *what)
{
    if (at_ns == NS_NEVER) {
        heap_drop(&a->heap, x);
    } else {
        heap_put(&a->heap, x, at_ns, 0, what);
    }
}

/* Not in it: nothing happens. */
static inline void agenda_drop(struct agenda *a, struct heap_entry *x)
{
    heap_drop(&a->heap, x);
}

/* The `what` of the earliest entry, which stays in the agenda. NULL: its time is after now_ns, or
 * the agenda is empty. */
static inline void *agenda_due(const struct agenda *a, uint64_t now_ns)
{
    const struct heap_entry *first = a->heap.first;
    return first != NULL && first->key <= now_ns ? first->what : NULL;
}

/* The time of the earliest entry; NS_NEVER: the agenda is empty. */
static inline uint64_t agenda_next_ns(const struct agenda *a)
{
    return a->heap.first != NULL ? a->heap.first->key : NS_NEVER;
}

#endif
