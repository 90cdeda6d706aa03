/* All jobs of this worker by id: those that wait or run, and ended ones until the front retires
 * them. Thread: the loop's. */
#ifndef WORKER_RUN_LEDGER_H
#define WORKER_RUN_LEDGER_H

#include <stdbool.h>

#include "daemon/worker/run/job.h"

#define LEDGER_MAX 16384u

struct ledger {
    struct job *by_id;
};

bool ledger_full(const struct ledger *l);
/* Owns the job from now on; its id must be new. False: no memory, and the job is the caller's. */
bool ledger_add(struct ledger *l, struct job *j);
struct job *ledger_find(const struct ledger *l, uint64_t id); /* NULL: unknown or retired */
/* Drops the predecessors that are not in the ledger, so that no two jobs can wait for each
 * other. ERR_PROTOCOL if it dropped any. */
int ledger_after(const struct ledger *l, struct job *j, struct err *e);
void ledger_retire(struct ledger *l, struct job *j); /* a finished job; destroys it */
void ledger_finish(struct ledger *l);                /* all jobs are finished; destroys them */

#endif
