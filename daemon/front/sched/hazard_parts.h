/*
 * Hazards between parts of arenas, and single edges between jobs; for hazard.c. A part is a range
 * of bytes. Parts form no line as buffers do, so a new job gets an edge from each job whose parts
 * clash with its own: they overlap, and one of both is written. At most ARENA_PARTS_MAX parts are
 * compared. Thread: the loop's.
 */
#ifndef FRONT_SCHED_HAZARD_PARTS_H
#define FRONT_SCHED_HAZARD_PARTS_H

#include <stdbool.h>

#include "common/err.h"

struct job;

/* Makes `succ` wait for `pred`. Does nothing if they are the same job, or the edge exists. false:
 * no memory. */
bool edge_add(struct job *pred, struct job *succ);
/* ERR_BUSY: the arenas that the new job names have more than ARENA_PARTS_MAX parts in use. */
int parts_check(const struct job *j, struct err *e);
#define PARTS_A_UNIT 8u /* parts that are compared in a unit of the loop's work */

/* Number of parts that entered jobs use in all arenas that the job names. */
unsigned parts_beside(const struct job *j);
/* Adds an edge to a new job from each job whose parts clash with its own. false: no memory; some
 * edges may exist, and the caller drops them. */
bool edges_for_parts(struct job *j);
void parts_enter(struct job *j);
void parts_leave(struct job *j); /* not entered: nothing happens */
/* The job has predecessors and successors and leaves first: its successors now wait for its
 * predecessors. Allocates nothing. */
void edges_bequeath(struct job *j);
void edges_drop(struct job *j); /* all edges of the job */

#endif
