/*
 * Parked sessions: their next request is a job that waits for room (SUBMIT with BLOCK). The list is
 * in the order in which they are tried again, and a session keeps its place after a failed try. New
 * requests leave to them the room that all sessions share (sched/admission.c). Thread: the loop's.
 */
#ifndef FRONT_MODEL_PARKING_H
#define FRONT_MODEL_PARKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/front/model/agenda.h"

struct session;

struct parking {
    struct session *first;   /* the first in the list */
    struct session *turn;    /* is being tried now, out of the list; NULL: none */
    struct session *behind;  /* `turn` goes back before it if it finds no room; NULL: at the end */
    struct session *next;    /* is tried next; NULL: all have been tried since a job ended */
    unsigned common;         /* number of sessions that wait for room that all sessions share */
    uint64_t common_bytes;   /* bytes of the requests of those sessions */
    bool ended;              /* a job has left since the tries began */
    uint64_t bytes;          /* bytes of all parked requests: at most staging.input_bytes */
    struct agenda deadlines; /* sessions, by the deadlines of their jobs */
};

/* Parks the session, whose next request of so many bytes waits for room: at the end of the list;
 * `again`: where it was before its turn. until_ns: the job's deadline; NS_NEVER: none. A parked
 * session: nothing happens. */
void parking_add(struct parking *p, struct session *s, size_t bytes, uint64_t until_ns, bool again);
void parking_remove(struct parking *p, struct session *s); /* not parked: nothing happens */
/* Whether the session's request `seq` is being tried again now. */
bool parking_in_turn(const struct parking *p, const struct session *s, uint64_t seq);

#endif
