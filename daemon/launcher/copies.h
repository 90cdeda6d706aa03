/*
 * Copies of buffers that the front keeps on the host while their domain has no worker: a duplicate
 * of each descriptor, so that the next front gets them. The launcher neither maps nor reads them.
 *
 * A copy belongs to the record of an ended worker, which says whose it is and whether it is still
 * true. Fixed storage. Nothing blocks. Thread: one.
 */
#ifndef LAUNCHER_COPIES_H
#define LAUNCHER_COPIES_H

#include <stdbool.h>
#include <stdint.h>

#define COPIES_MAX     16384u /* and at most half the descriptors that the process may have */
#define COPIES_BUCKETS 4096u

struct copy {
    uint64_t id;     /* the front's */
    uint64_t worker; /* whose record has it */
    uint32_t next;   /* in its bucket, or in the free list: index + 1; 0: none */
    int fd;          /* owned; -1: the place is free */
};

struct copies {
    struct copy copy[COPIES_MAX];
    uint32_t bucket[COPIES_BUCKETS]; /* index + 1 of the first; 0: none */
    uint32_t free;                   /* the same, of places that were used before */
    uint32_t used;                   /* places below may be in use */
    unsigned count, max;
};

/* The limit of descriptors must not change afterwards. */
void copies_init(struct copies *c);
/* Takes the descriptor. One that is kept with this id goes. false: there are as many as there may
 * be, and the caller keeps it. */
bool copies_keep(struct copies *c, uint64_t id, uint64_t worker, int fd);
void copies_release(struct copies *c, uint64_t id); /* no such copy: nothing happens */
/* Returns in turn all copies; NULL: no more. cursor: 0 at first. */
const struct copy *copies_next(const struct copies *c, uint32_t *cursor);
/* Does the record of this worker have one? O(number of copies). */
bool copies_of(const struct copies *c, uint64_t worker);
/* The record of `former` has gone to another worker. O(number of copies). */
void copies_move(struct copies *c, uint64_t former, uint64_t worker);

#endif
