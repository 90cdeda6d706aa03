/*
 * Private places of programs. A program is run again and again, and each run's temporaries are one
 * piece. When a run ends, the piece's memory is given up and its addresses are kept (pool's
 * place.h), so the next run finds the same addresses; others use the memory meanwhile, in the order
 * of streams.
 *
 * Runs in flight at once have a place each, up to PLACES_EACH; further ones get memory anywhere. A
 * run takes a place that its own stream left, or that is past: it never waits for another stream
 * because of a place. Places end with the program (F_PROGRAM_END), with the oldest program above
 * PLACES_PROGRAMS, and where the pool needs their addresses.
 *
 * Places are whole pages. Temporaries get whole pages where that costs at most an eighth more;
 * smaller ones, and those of sources of blocks, have no place. Thread: the loop's.
 */
#ifndef WORKER_MEMORY_PLACES_H
#define WORKER_MEMORY_PLACES_H

#include "daemon/worker/memory/memory.h"

#define PLACES_EACH     4u   /* of one program */
#define PLACES_PROGRAMS 256u /* with places */

struct program_places;

struct places {
    struct memory *memory; /* not owned */
    struct program_places *by_id;
    struct program_places *oldest; /* the program that ran longest ago; a list */
    unsigned programs;
    uint64_t returns; /* runs that had the addresses of an earlier run */
    uint64_t others;  /* runs that had others: first ones, too */
};

/* What the front shows. */
struct places_use {
    uint64_t count; /* places that are kept, between runs */
    uint64_t bytes; /* of their addresses */
};

void places_init(struct places *t, struct memory *memory);
void places_finish(struct places *t); /* before memory_finish; not initialised is allowed */
/* Bytes of a program's piece for `bytes` of temporaries: whole pages; 0: it has no place. */
uint64_t places_bytes(const struct places *t, uint64_t bytes);
/* The place that a request for the next run should name; size 0: none suits. It is the caller's
 * until places_taken or places_back. */
void places_take(struct places *t, uint64_t program, const struct memory_ask *ask,
                 struct pool_place *ret_place);
/* The run has its memory; `place`: what places_take returned. */
void places_taken(struct places *t, const struct pool_place *place,
                  const struct memory_piece *piece);
/* The request failed: the place is kept for the next one. */
void places_back(struct places *t, uint64_t program, const struct pool_place *place);
/* The run's last command is before the point `seq` of the stream (0: it has completed): frees its
 * piece, and keeps the place if it can. */
void places_leave(struct places *t, uint64_t program, struct memory_piece *piece, unsigned stream,
                  uint64_t seq);
void places_end(struct places *t, uint64_t program); /* the program has ended; unknown is allowed */
void places_end_all(struct places *t);
void places_use(const struct places *t, struct places_use *ret_use);

#endif
