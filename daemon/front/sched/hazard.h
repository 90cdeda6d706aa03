/*
 * Hazards between jobs, derived from declared access: readers of a buffer run together, a writer
 * runs alone, in the order of admission. The same holds for parts of an arena that overlap by their
 * offsets. If a client maps the same memory into two arenas, the front does not notice.
 *
 * Each buffer has a line of groups. A group is one writer, or all readers between two writers. A
 * job is in one group of each buffer that it uses, and waits for the group before it. Entering and
 * leaving is O(log n) for each buffer, however many jobs use it. The jobs behind are checked
 * afterwards, one at a time (hazard_next).
 *
 * Nothing but jobs, buffers and arenas is changed. Thread: the loop's.
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

/* A job to check: it may be free to run, or may have to wait again. */
struct hazard_check {
    struct job *job;
    int64_t rank; /* earliest rank of the jobs that wait for it; its own must not be later */
    bool urgent;  /* an urgent job waits for it */
};

/* Enters a new job behind the jobs that use the same buffers and parts of arenas. A failure changes
 * nothing. ERR_BUSY: too many parts of its arenas are in use (ARENA_PARTS_MAX). ERR_NOMEM. */
int hazard_enter(struct job *j, struct err *e);
/* The entered job goes to another device than before. */
void hazard_bound(const struct job *j);
/* Makes an entered job read one more buffer, which no earlier job uses. false: no memory, or it
 * uses WORK_USES_MAX buffers; nothing is changed. */
bool hazard_join(struct job *j, struct buffer *b);
/* Removes one buffer from an unfinished job. The caller must do this for all jobs that use the
 * buffer, because jobs behind a removed writer do not inherit what the writer waited for. */
void hazard_part(struct hazards *h, struct job *j, struct buffer *b);
/* Makes an entered job wait for one more job. false: no memory. */
bool hazard_after(struct job *pred, struct job *succ);
/* Removes an ended job; allocates nothing. The jobs behind it now wait for what it waited for. */
void hazard_leave(struct hazards *h, struct job *j);
/* Frees the entries of a job at the end of the process. The order of the other jobs is lost. */
void hazard_forget(struct hazards *h, struct job *j);

/* The direct unfinished predecessors of a job. false: more than fit into ret_preds. */
bool hazard_preds(const struct job *j, struct hazard_preds *ret_preds);
/* Whether every predecessor has ended, or is in flight on the device of this job, where the worker
 * keeps the order. For a job that runs alone, all must have ended. */
bool hazard_clear(const struct job *j);

/* The job was dispatched or queued again. Notes that the jobs behind it have to be checked. */
void hazard_moved(struct hazards *h, const struct job *j);
/* The jobs for which this job waits must not rank later than it. Notes that they have to be
 * checked. */
void hazard_want(struct hazards *h, const struct job *j);
/* Gets the next job to check. false: none. */
bool hazard_next(struct hazards *h, struct hazard_check *ret_check);

/* The first use in the line of the buffer; NULL: no unfinished job uses it. */
struct buffer_use *hazard_first(const struct buffer *b);
/* The last one; NULL: as above. */
struct buffer_use *hazard_last(const struct buffer *b);
/* The next use in the line, in the order of groups; NULL: `u` is the last. */
struct buffer_use *hazard_behind(const struct buffer_use *u);
/* The use before it in the line; NULL: `u` is the first. */
struct buffer_use *hazard_ahead(const struct buffer_use *u);
/* The last use of the group before its own; NULL: none. */
struct buffer_use *hazard_before(const struct buffer_use *u);
/* Are both in one group, so that neither waits for the other? */
bool hazard_beside(const struct buffer_use *u, const struct buffer_use *v);
/* The last writer in the line before `u`; NULL: none. */
struct buffer_use *hazard_writer_before(const struct buffer_use *u);

#endif
