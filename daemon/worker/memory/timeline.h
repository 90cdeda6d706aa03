/*
 * How far each stream has come, for the pool. A point is a marker behind a job or a transfer; the
 * points of each stream are counted from 1. A point is a member of the job or transfer that it
 * ends. Thread: the loop's.
 */
#ifndef WORKER_MEMORY_TIMELINE_H
#define WORKER_MEMORY_TIMELINE_H

#include <stdint.h>

#define TIMELINE_STREAMS 16u

struct backend_marker;
struct backend_marker_ops;

struct timeline_point {
    struct backend_marker *marker; /* not owned; NULL: the point is not on the timeline */
    uint64_t seq;
    unsigned stream;
    struct timeline_point *prev, *next; /* neighbours in the stream's list, oldest first */
};

struct timeline {
    struct {
        struct timeline_point *first; /* points that were not passed, oldest first */
        struct timeline_point *open;  /* of these, the oldest that is not known to be over */
        uint64_t last;                /* number of the newest point */
        /* number of the newest point that was passed; all before it were passed, too */
        uint64_t done;
    } stream[TIMELINE_STREAMS];
};

/* Adds the newest point of a stream. The marker must stay valid until timeline_pass. */
void timeline_add(struct timeline *t, unsigned stream, struct backend_marker *marker,
                  struct timeline_point *point);
/* To be called when the point's marker is done: this point and all before it were passed.
 * Returns the number of the newest such point; 0: the point is not on the timeline. */
uint64_t timeline_pass(struct timeline *t, struct timeline_point *point);
/* Asks the device which points of a stream are over, and returns the number of the newest such
 * point. The oldest marker is asked first, because it is over before the others, and a marker that
 * was over is not asked again: all calls together ask each marker about once. A marker that failed
 * ends the search until it is passed. Points are passed later all the same. Never blocks. */
#define TIMELINE_ASKED 16u /* markers in one call, at most */
uint64_t timeline_ask(struct timeline *t, unsigned stream, const struct backend_marker_ops *ops);
/* The marker to wait for so that point `seq` is passed; NULL: it was passed. */
struct backend_marker *timeline_marker(const struct timeline *t, unsigned stream, uint64_t seq);

#endif
