/*
 * Jobs that have ended: the history that clients can ask about, and the answers that workers keep
 * in their ledgers until clients acknowledge them. A job whose answer is unacknowledged is known
 * beyond the history, up to KEPT_MAX of all tenants, because its request must not run again.
 * Thread: the loop's.
 */
#ifndef FRONT_SCHED_HISTORY_H
#define FRONT_SCHED_HISTORY_H

#include "daemon/front/model/front.h"

/* The job ended and has left everything else. It is the newest of the history. */
void history_add(struct front *f, struct job *j);
/* Closes the answer of an ended job: frees its staging memory, and its entry in the worker's
 * ledger. A job that is kept beyond the history is destroyed. */
void job_release(struct front *f, struct job *j);
/* The client has the answer: it is closed, at the job's end if that is still to come. */
void job_acknowledged(struct front *f, struct job *j);
/* Frees its staging memory only; the worker's ledger keeps the entry. */
void job_free_staging(struct front *f, struct job *j);
/* Shortens the history to `keep` jobs. Those with unacknowledged answers are kept beyond it. */
void job_forget_history(struct front *f, unsigned keep);
/* Forgets the ended jobs of tenants without sessions, acknowledged or not, because no client can
 * ask about them. */
void job_forget_absent(struct front *f);

#endif
