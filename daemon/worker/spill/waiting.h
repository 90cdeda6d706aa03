/*
 * Jobs that the device has no room for now, and those that come after them: in the order of their
 * rank, then of their coming. While one waits, what came later waits behind it, so that what runs
 * ends and there is room. One that cannot be served by anything that runs or moves fails, with what
 * was wanted and what there is; with a deadline it waits on, and lets others pass. So does one that
 * wants more than there is for its tenant at all, whatever runs. Who comes after one that waits
 * keeps nobody back. Thread: the loop's. Never blocks.
 */
#ifndef WORKER_SPILL_WAITING_H
#define WORKER_SPILL_WAITING_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/worker/run/ledger.h"
#include "daemon/worker/spill/spill.h"

struct waiting_job;

struct waiting_callbacks {
    /* It has its memory. The job is not waiting any more. */
    void (*start)(void *data, struct job *j, const struct msg_f_job *msg, struct bytes frame);
    void (*fail)(void *data, struct job *j, const struct err *why);
    /* It began or ceased to wait. */
    void (*tell)(void *data, const struct job *j, bool waits);
    /* Does nothing run or move that could free memory? tenant: of its own; NULL: anybody's. */
    bool (*still)(void *data, const uint64_t *tenant);
};

struct waiting {
    struct spill *spill;         /* not owned */
    const struct ledger *ledger; /* not owned */
    struct waiting_job *first;
    unsigned count;
    struct waiting_callbacks callbacks;
    void *data;
};

void waiting_init(struct waiting *w, struct spill *spill, const struct ledger *ledger,
                  struct waiting_callbacks callbacks, void *data);
/* Starts it, or lets it wait; `frame` holds the bytes of msg and is copied. < 0: neither, and it
 * has nothing. */
int waiting_offer(struct waiting *w, struct job *j, struct bytes frame, const struct msg_f_job *msg,
                  struct err *e);
/* A job that waits does so no more, and nothing is said of it. */
void waiting_remove(struct waiting *w, struct job *j);
/* Is one that it comes after waiting? */
bool waiting_behind(const struct waiting *w, const struct job *j);
void waiting_poll(struct waiting *w, uint64_t now);
void waiting_tell(struct waiting *w); /* of all, again */

#endif
