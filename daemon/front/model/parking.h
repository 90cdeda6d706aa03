/*
 * Sessions whose next job waits for room, in the order in which they are tried again. A session
 * that waits for room common to all keeps its place before later ones. One that waits for an end of
 * its own jobs, or of its tenant's, moves behind the others when it was tried. Thread: the loop's.
 */
#ifndef FRONT_MODEL_PARKING_H
#define FRONT_MODEL_PARKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/front/model/agenda.h"

struct session;

struct parking {
    struct session *first;   /* waits longest */
    struct session *turn;    /* is tried now, and not in the list meanwhile; NULL: none */
    struct session *behind;  /* before which `turn` is put back without room; NULL: the end */
    struct session *next;    /* is tried next; NULL: all were tried since a job ended */
    unsigned common;         /* sessions that wait for common room, which newer ones must not use */
    uint64_t common_bytes;   /* of their requests */
    bool ended;              /* a job ended since they were tried */
    uint64_t bytes;          /* of all these requests: at most staging.input_bytes */
    struct agenda deadlines; /* sessions, by the deadlines of their jobs */
};

/* The session's next request, of so many bytes, waits for room: behind all others; with `again`,
 * where it was before its turn. until_ns: the job's deadline; NS_NEVER: none. */
void parking_add(struct parking *p, struct session *s, size_t bytes, uint64_t until_ns, bool again);
void parking_remove(struct parking *p, struct session *s); /* not in it: nothing happens */
/* Is request `seq` tried now because it waited? */
bool parking_in_turn(const struct parking *p, const struct session *s, uint64_t seq);
/* When request `seq` was tried first; `now_ns` if this is its first try. */
uint64_t parking_arrived(const struct session *s, uint64_t seq, uint64_t now_ns);

#endif
