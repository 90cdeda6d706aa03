/*
 * Jobs that have ended: the history that clients can ask about, and the answers that workers keep
 * in their ledgers until clients acknowledge them. A job with an unacknowledged answer is kept
 * beyond the history, with its entry in the adoption record, because its request must not run
 * again, whether or not its worker has ended; at most KEPT_MAX jobs of all tenants.
 * Thread: the loop's.
 */
#ifndef FRONT_SCHED_HISTORY_H
#define FRONT_SCHED_HISTORY_H

#include "daemon/front/model/front.h"

/* Appends a job to the history. The job has ended and released what it used. */
void history_add(struct front *f, struct job *j);
/* Closes the answer of an ended job: frees its staging memory, and its entry in the worker's
 * ledger. Destroys the job if it is kept beyond the history. */
void job_release(struct front *f, struct job *j);
/* The client has the answer: closes it now, or at the job's end if the client was answered early.
 * May destroy the job. */
void job_acknowledged(struct front *f, struct job *j);
/* Frees the staging memory of a job only; the ledger and the record keep the job. */
void job_free_staging(struct front *f, struct job *j);
/* Shortens the history to the newest `keep` jobs. Older jobs with unacknowledged answers are kept
 * beyond it. */
void job_forget_history(struct front *f, unsigned keep);
/* Forgets all ended jobs of tenants without sessions, acknowledged or not, because no client can
 * ask about them. */
void job_forget_absent(struct front *f);

#endif
