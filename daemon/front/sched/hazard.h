/*
 * Hazards between jobs, inferred from declared access: readers of a buffer run together, a writer
 * runs alone, in the order of admission. Of arenas the same holds for parts that overlap, seen by
 * their offsets: memory that is mapped into two arenas is the client's business.
 *
 * Each buffer has a line of groups: a writer, or the readers between two writers. A job stands in
 * one group of each buffer that it uses and waits for the groups before those. To enter and to
 * leave is O(log n) for each buffer, however many others use it. What changes for those behind is
 * looked at afterwards, one job at a time (hazard_next).
 *
 * Touches jobs, buffers and arenas only. Thread: the loop's.
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

/* A job to look at: it may go on, or must wait again. */
struct hazard_look {
    struct job *job;
    int64_t rank; /* of the first of those that wait for it: its own is to be no later */
    bool urgent;  /* and so is it */
};

/* Enters a new job behind those that use the same buffers. Nothing is changed on failure. ERR_BUSY:
 * too many parts of its arenas are in use (ARENA_PARTS_MAX). */
int hazard_enter(struct job *j, struct err *e);
/* An entered job reads one more buffer, which no job before it used. false: no memory, or it uses
 * WORK_USES_MAX buffers; nothing is changed then. */
bool hazard_join(struct job *j, struct buffer *b);
/* An unfinished job uses the buffer no more; whoever waits for it, waits on. For all that use it: a
 * writer taken out has no successor. */
void hazard_part(struct hazards *h, struct job *j, struct buffer *b);
/* Lets an entered job wait for one more. false: no memory. */
bool hazard_after(struct job *pred, struct job *succ);
/* Takes an ended job out. Needs no memory. Those behind it wait for what it waited for. */
void hazard_leave(struct hazards *h, struct job *j);
/* Frees what it has here, at the end of everything. */
void hazard_forget(struct hazards *h, struct job *j);

/* Those that are unfinished and directly before it. false: there are more than fit. */
bool hazard_preds(const struct job *j, struct hazard_preds *ret_preds);
/* Has every predecessor ended, or is it in flight in the worker where this job is to run? */
bool hazard_clear(const struct job *j);

/* It was given to a worker, or came back: those behind it are to be looked at. */
void hazard_moved(struct hazards *h, const struct job *j);
/* Those before it are to go no later than it. */
void hazard_want(struct hazards *h, const struct job *j);
/* The next job to look at; false: none. */
bool hazard_next(struct hazards *h, struct hazard_look *ret_look);

/* Walks along the uses of a buffer behind one of them, in order of groups; NULL at the end. */
struct buffer_use *hazard_first(const struct buffer *b); /* of the buffer's line; NULL: nobody */
struct buffer_use *hazard_behind(const struct buffer_use *u);
/* The last writer before it that is unfinished; NULL: none. */
struct buffer_use *hazard_writer_before(const struct buffer_use *u);

#endif
