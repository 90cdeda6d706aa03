/*
 * How far each stream has come, for the pool: points are markers behind jobs and transfers, counted
 * from 1 on each stream. Points lie in what they end. Pure bookkeeping; thread: the loop's.
 */
#ifndef WORKER_MEMORY_TIMELINE_H
#define WORKER_MEMORY_TIMELINE_H

#include <stdint.h>

#define TIMELINE_STREAMS 16u

struct backend_marker;

struct timeline_point {
    struct backend_marker *marker; /* not owned; NULL: not on the line */
    uint64_t seq;
    unsigned stream;
    struct timeline_point *prev, *next; /* of its stream, oldest first */
};

struct timeline {
    struct {
        struct timeline_point *first; /* not past yet */
        uint64_t last;                /* the newest point's number */
        uint64_t done;                /* all up to here are past */
    } stream[TIMELINE_STREAMS];
};

/* The newest point of its stream. The marker stays until timeline_pass. */
void timeline_add(struct timeline *t, unsigned stream, struct backend_marker *marker,
                  struct timeline_point *point);
/* Its marker is done, so all before it are past. Returns up to where its stream has come; 0: it is
 * not on the line. */
uint64_t timeline_pass(struct timeline *t, struct timeline_point *point);
/* What to wait for until `seq` is past; NULL: it is. */
struct backend_marker *timeline_marker(const struct timeline *t, unsigned stream, uint64_t seq);

#endif
