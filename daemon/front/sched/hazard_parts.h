/*
 * Hazards between parts of arenas, and single edges between jobs; for hazard.c. A part is a range
 * of bytes. Parts form no line, so a new job gets an edge from each job that it clashes with. It is
 * compared with at most ARENA_PARTS_MAX parts. Thread: the loop's.
 */
#ifndef FRONT_SCHED_HAZARD_PARTS_H
#define FRONT_SCHED_HAZARD_PARTS_H

#include <stdbool.h>

#include "common/err.h"

struct job;

/* `succ` waits for `pred`. Nothing happens if they are the same job. false: no memory. */
bool edge_add(struct job *pred, struct job *succ);
/* ERR_BUSY: the arenas that the new job names have too many parts in use. */
int parts_check(const struct job *j, struct err *e);
#define PARTS_A_UNIT 8u /* parts that are compared in a unit of the loop's work */

/* Number of parts of unfinished jobs in all arenas that the job names. */
unsigned parts_beside(const struct job *j);
/* Adds the edges to a new job from all jobs whose parts clash with its own. false: no memory, and
 * some edges may exist. */
bool edges_for_parts(struct job *j);
void parts_enter(struct job *j);
void parts_leave(struct job *j); /* not entered: nothing happens */
/* The job leaves before its predecessors: its successors wait for them from now on. */
void edges_bequeath(struct job *j);
void edges_drop(struct job *j); /* all edges of the job */

#endif
