/*
 * The states of a job in the worker, and the steps between them:
 *
 *   admitted  -> waiting    the device has no room for it, or it comes after a job that waits
 *   waiting   -> admitted   its memory is there, or it is not to wait any longer
 *   admitted  -> started    completion_add puts it among the running jobs
 *   started   -> graph      its steps cannot all go into its stream at once (graph.h)
 *   started   -> enqueued   all of its steps and its end mark are in its stream
 *   graph     -> enqueued   the same; or all of its steps were large copies, and they are over
 *   started   -> given up   it was refused, cancelled or late, or there is no memory for its graph
 *   graph     -> given up   it was cancelled or late before the device had anything of it
 *   given up  -> reported   its end is reported before the jobs that it comes after have ended
 *   reported  -> retired    the front has the report
 *   enqueued  -> finished   the device is done with it
 *   given up, reported, retired
 *             -> finished   the jobs that it comes after have ended
 *   started   -> finished   it has no steps and comes after no running job
 *   started, graph
 *             -> finished   the device is lost
 *
 * A job is among the running ones (completion.h) from started to finished, and in the ledger until
 * it is both finished and retired. A job that is given up keeps its place, because other jobs may
 * come after it.
 */
#ifndef WORKER_RUN_JOB_STATE_H
#define WORKER_RUN_JOB_STATE_H

#include <stdbool.h>

enum job_state {
    /* only in the ledger, within one turn of the loop: on arrival, or when its wait is over */
    JOB_ADMITTED,
    JOB_WAITING,  /* for device memory (spill/waiting.h) */
    JOB_STARTED,  /* its steps become commands, within one turn of the loop */
    JOB_GRAPH,    /* it has a graph: some of its steps wait for copies or for other jobs */
    JOB_ENQUEUED, /* the device has all of it: other jobs can wait for its end in their streams */
    JOB_GIVEN_UP, /* it will not run: it has no memory, and the device has nothing of it */
    JOB_REPORTED, /* given up, and its end is reported */
    JOB_RETIRED,  /* reported, and the front will not ask for the report again */
    JOB_FINISHED, /* it has ended, and its end is reported */
};
#define JOB_STATES 9u

bool job_state_possible(enum job_state from, enum job_state to);
/* Is it a state of a job that does not run and only keeps its place? */
bool job_state_given_up(enum job_state state);
/* Is it a state of a job whose end is reported? */
bool job_state_reported(enum job_state state);

#endif
