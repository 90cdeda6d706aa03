/*
 * A queue of entries by time, earliest first: lingering buffers, jobs with a deadline, sessions
 * that linger or wait. Each call is O(log n) or better. Thread: the loop's.
 */
#ifndef FRONT_MODEL_AGENDA_H
#define FRONT_MODEL_AGENDA_H

#include <stdint.h>

#include "daemon/front/model/heap.h"

struct agenda {
    struct heap heap; /* by time in ns */
};

/* Puts the entry in, or moves it. NS_NEVER: takes it out. */
void agenda_set(struct agenda *a, struct heap_entry *x, uint64_t at_ns, void *what);
void agenda_drop(struct agenda *a, struct heap_entry *x); /* not in it: nothing happens */
/* The `what` of the earliest entry, which stays in the agenda. NULL: its time is after now_ns, or
 * the agenda is empty. */
void *agenda_due(const struct agenda *a, uint64_t now_ns);
/* The time of the earliest entry; NS_NEVER: the agenda is empty. */
uint64_t agenda_next_ns(const struct agenda *a);

#endif
