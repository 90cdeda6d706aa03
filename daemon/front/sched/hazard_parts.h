/*
 * Hazards between parts of arenas, and single edges between jobs. Parts are bytes from … to; there
 * is no last writer, so each job that clashes gets an edge. A new job is compared with at most
 * ARENA_PARTS_MAX parts. Thread: the loop's. For hazard.c.
 */
#ifndef FRONT_SCHED_HAZARD_PARTS_H
#define FRONT_SCHED_HAZARD_PARTS_H

#include <stdbool.h>

#include "common/err.h"

struct job;

/* `succ` comes after `pred`; both may be the same. false: no memory. */
bool edge_add(struct job *pred, struct job *succ);
/* ERR_BUSY: the arenas that the new job names have too many parts in use. */
int parts_check(const struct job *j, struct err *e);
#define PARTS_A_UNIT 8u /* of the loop's work: parts that a new job is compared with */

/* Parts of unfinished jobs in all arenas that the job names, which it is compared with. */
unsigned parts_beside(const struct job *j);
/* To a new job, from all that have parts that clash with its own. false: no memory; some edges may
 * be there. */
bool edges_for_parts(struct job *j);
void parts_enter(struct job *j);
void parts_leave(struct job *j); /* not entered: nothing happens */
/* One that leaves before its predecessors: its successors wait for those from now on. */
void edges_bequeath(struct job *j);
void edges_drop(struct job *j); /* all of its own */

#endif
