/*
 * Hazards between jobs, derived from declared access: readers of a buffer run together, a writer
 * runs alone, in the order of admission. The same holds for parts of an arena that overlap by their
 * offsets. The front does not see that a client maps the same memory into two arenas.
 *
 * Each buffer has a line of groups: a writer, or the readers between two writers. A job is in one
 * group of each buffer that it uses, and waits for the groups before those. Entering and leaving is
 * O(log n) for each buffer, however many jobs use it. The jobs behind are checked afterwards, one
 * at a time (hazard_next).
 *
 * Changes jobs, buffers and arenas only. Thread: the loop's.
 */
#ifndef FRONT_SCHED_HAZARD_H
#define FRONT_SCHED_HAZARD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

struct buffer;
struct buffer_use;
struct hazard_preds;
struct hazards;
struct job;

/* A job to check: it may be free to run, or have to wait again. */
struct hazard_check {
    struct job *job;
    int64_t rank; /* the earliest of the jobs that wait for it; its own is to be no later */
    bool urgent;  /* an urgent job waits for it */
};

/* Enters a new job behind those that use the same buffers. Nothing is changed on failure. ERR_BUSY:
 * too many parts of its arenas are in use (ARENA_PARTS_MAX). */
int hazard_enter(struct job *j, struct err *e);
/* An entered job reads one more buffer, which no job before it used. false: no memory, or it uses
 * WORK_USES_MAX buffers; nothing is changed. */
bool hazard_join(struct job *j, struct buffer *b);
/* An unfinished job uses the buffer no longer. The caller does this for all jobs that use it,
 * because jobs behind a writer do not inherit what the writer waited for. */
void hazard_part(struct hazards *h, struct job *j, struct buffer *b);
/* An entered job waits for one more job. false: no memory. */
bool hazard_after(struct job *pred, struct job *succ);
/* Removes an ended job; allocates nothing. The jobs behind it wait for what it waited for. */
void hazard_leave(struct hazards *h, struct job *j);
/* Frees the job's entries when the process ends: the order of the others is lost. */
void hazard_forget(struct hazards *h, struct job *j);

/* Its direct unfinished predecessors. false: there are more than fit. */
bool hazard_preds(const struct job *j, struct hazard_preds *ret_preds);
/* Has every predecessor ended, or is it in flight in the worker that this job is to run in? */
bool hazard_clear(const struct job *j);

/* The job was dispatched or is queued again: the jobs behind it are to be checked. */
void hazard_moved(struct hazards *h, const struct job *j);
/* The jobs before it are to have no later rank. */
void hazard_want(struct hazards *h, const struct job *j);
/* The next job to check; false: none. */
bool hazard_next(struct hazards *h, struct hazard_check *ret_check);

/* The first use in the buffer's line; NULL: it has none. */
struct buffer_use *hazard_first(const struct buffer *b);
/* The next use in the line, in the order of groups; NULL: it was the last. */
struct buffer_use *hazard_behind(const struct buffer_use *u);
/* The last unfinished writer before it; NULL: none. */
struct buffer_use *hazard_writer_before(const struct buffer_use *u);

#endif
