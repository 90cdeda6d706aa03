/*
 * The states of a job, and the tables of steps between them. A `_step` function is the one way to
 * change a state. It ends the process when the table lacks the step, because going on could answer
 * a job twice or never. Thread: any; nothing is shared.
 */
#ifndef FRONT_MODEL_JOB_STATE_H
#define FRONT_MODEL_JOB_STATE_H

#include <stdbool.h>

/* Where a job comes from. It never changes. */
enum job_origin {
    ORIGIN_CLIENT,
    ORIGIN_PROBE,          /* the front: the first job of a device */
    ORIGIN_ADOPTED,        /* a job of an earlier front, found in a worker: its steps are unknown */
    ORIGIN_ADOPTED_ARENAS, /* such a job that also uses unknown parts of arenas */
};

/*
 * Where the job is:
 *
 *   queued → dispatched           it is sent to a worker
 *   queued → failed               its deadline passed, its inputs or kernels failed, its device was
 *                                 given up, or it could not be sent
 *   queued → cancelled            its client cancelled it, or its session ended
 *   dispatched → running          the worker reports that it began
 *   dispatched → queued           its frame could not be sent
 *   dispatched, running → queued  its worker ended, and the job can run again
 *   dispatched, running → done, failed, cancelled
 *                                 the worker reports its end, or ended with it
 *   dispatched, running → lost    its worker ended, and the job may have had effects
 *
 * Done, failed, cancelled and lost are final.
 */
enum job_state {
    JOB_QUEUED,
    JOB_DISPATCHED,
    JOB_RUNNING,
    JOB_DONE,
    JOB_FAILED,
    JOB_CANCELLED,
    JOB_LOST,
    JOB_STATES,
};

/* What a queued job waits for; WAIT_MEMORY is for a dispatched job that has not begun. Jobs in
 * other states have WAIT_NOTHING. */
enum job_wait {
    WAIT_NOTHING,
    WAIT_HAZARD,   /* jobs that use the same buffers */
    WAIT_WINDOW,   /* its turn: the device has enough in flight */
    WAIT_MODULE,   /* a module that is being compiled or loaded */
    WAIT_RESTORE,  /* the content of a buffer, which its device had no memory for */
    WAIT_STAGING,  /* staging memory */
    WAIT_FLIGHT,   /* the end of a job in flight: its tenant has as many as it may (gate.h) */
    WAIT_TRANSFER, /* the rate at which its tenant may transfer */
    WAIT_ALONE,    /* the end of all jobs in flight on its device, because it has to run alone */
    WAIT_MEMORY,   /* room on its device, or the content of a buffer there */
    JOB_WAITS,
};

/*
 * Its inputs:
 *
 *   sound → tainted           the job is in flight, and an earlier job failed that should have
 *                             written what this one reads
 *   tainted → tainted         another one failed
 *   sound, tainted → sound    its worker ended, and the job runs again
 *   sound, starved → starved  the job is queued, and an earlier job that should have written what
 *                             this one reads ended before it ran
 *
 * A starved job fails when its turn comes, a tainted one when it is done.
 */
enum job_inputs {
    INPUTS_SOUND,
    INPUTS_TAINTED,
    INPUTS_STARVED,
    INPUTS_STATES,
};

/*
 * Its trust, which says whether it runs beside other jobs:
 *
 *   shared → suspect       its worker ended by itself and had this job only
 *   shared, alone → alone  its worker ended, or one of several jobs passed a time limit: each runs
 *                          alone, which shows the one to blame
 *   shared, alone, suspect → suspect
 *                          the worker reports the job's fault after its client was answered
 *   suspect → alone        it is dispatched again, or its kernels got their strike
 *
 * A suspect also runs alone. If it is cancelled, or fails at its deadline, before that run, its
 * kernels get a strike.
 */
enum job_trust {
    TRUST_SHARED,
    TRUST_SUSPECT,
    TRUST_ALONE,
    TRUST_STATES,
};

/*
 * Where its answer is:
 *
 *   open → early           the client gets an error before the device is done with the job
 *   early → early acked    the client acknowledged that error
 *   open, early → sent     the job ended; its worker's ledger has an entry until the client
 *                          acknowledges the answer
 *   sent → kept            the job left the history unacknowledged
 *   any → closed           the job ended, and its answer is acknowledged, is not awaited, or gave
 *                          way to newer ones; no ledger has an entry
 */
enum job_answer {
    ANSWER_OPEN,
    ANSWER_EARLY,
    ANSWER_EARLY_ACKED,
    ANSWER_SENT,
    ANSWER_KEPT,
    ANSWER_CLOSED,
    ANSWER_STATES,
};

const char *job_state_name(enum job_state state);
const char *job_wait_name(enum job_wait wait);
void job_state_step(enum job_state *state, enum job_state to);
void job_inputs_step(enum job_inputs *inputs, enum job_inputs to);
void job_trust_step(enum job_trust *trust, enum job_trust to);
void job_answer_step(enum job_answer *answer, enum job_answer to);
/* Ends the process if a job in that state cannot have that wait. */
void job_wait_check(enum job_state state, enum job_wait wait);

#endif
