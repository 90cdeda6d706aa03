/*
 * What is due when, earliest first: buffers that nobody holds, jobs with a deadline, sessions that
 * linger or wait. Entries lie in what they are about, so that nothing here can fail. Each call is
 * O(log n), however often an entry was moved. Thread: the loop's.
 */
#ifndef FRONT_AGENDA_H
#define FRONT_AGENDA_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: in no agenda. */
struct agenda_entry {
    uint64_t at_ns;
    void *what; /* what it lies in */
    bool in;    /* an agenda */
    unsigned rank;
    struct agenda_entry *parent, *left, *right;
};

struct agenda {
    struct agenda_entry *first; /* the root of a leftist heap */
};

/* Puts the entry in, or moves it. NS_NEVER: takes it out. */
void agenda_set(struct agenda *a, struct agenda_entry *x, uint64_t at_ns, void *what);
void agenda_drop(struct agenda *a, struct agenda_entry *x); /* not in it: nothing happens */
/* The earliest one's; NULL: none is due by then. It stays in. */
void *agenda_due(const struct agenda *a, uint64_t now_ns);
/* When the earliest is due; NS_NEVER: it is empty. */
uint64_t agenda_next_ns(const struct agenda *a);

#endif
