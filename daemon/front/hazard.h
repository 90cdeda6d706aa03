/*
 * Hazards between jobs, inferred from declared access: readers of a buffer run together, a writer
 * runs alone, in the order of admission. Of arenas the same holds for parts that overlap, seen by
 * their offsets: memory that is mapped into two arenas is the client's business.
 * Pure: touches jobs, buffers and arenas only. Thread: the loop's.
 */
#ifndef FRONT_HAZARD_H
#define FRONT_HAZARD_H

#include <stdbool.h>

#include "common/err.h"

struct buffer;
struct job;

#define HAZARD_AFTER_MAX 32u /* predecessors that a worker is asked to wait for */

/* Enters a new job behind those that use the same buffers. Nothing is changed on failure. */
int hazard_enter(struct job *j, struct err *e);
/* An entered job reads one more buffer, which no job before it used. false: no memory, or it uses
 * WORK_USES_MAX buffers; nothing is changed then. */
bool hazard_join(struct job *j, struct buffer *b);
/* An unfinished job uses the buffer no more; whoever waits for it, waits on. For all that use it: a
 * writer taken out has no successor. */
void hazard_part(struct job *j, struct buffer *b);
/* Lets an entered job wait for one more. false: no memory. */
bool hazard_after(struct job *pred, struct job *succ);
/* Takes an ended job out: its buffers and successors forget it. Needs no memory. Where some before
 * it are unfinished its successors wait for those, and perhaps for one among themselves. */
void hazard_leave(struct job *j);
/* Frees the job's edges only, at the end of everything. */
void hazard_forget(struct job *j);
/* Has every predecessor ended, or is it in flight in the worker where this job is to run? */
bool hazard_clear(const struct job *j);

#endif
