/*
 * Jobs that the device has no room for, and jobs that come after those: in the order of their rank,
 * then of their arrival. While a job waits, later ones wait behind it, so that running jobs end and
 * there is room. A job that no running job or copy can help fails, and the error says what was
 * wanted and what there is. With a deadline it waits on and lets others pass. So does a job that
 * wants more than its tenant can ever have. A job that comes after a waiting one holds up no
 * others. Never blocks. Thread: the loop's.
 */
#ifndef WORKER_SPILL_WAITING_H
#define WORKER_SPILL_WAITING_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/worker/run/ledger.h"
#include "daemon/worker/spill/spill.h"

struct waiting_job;

struct waiting_callbacks {
    /* The job has its memory, and waits no more. */
    void (*start)(void *data, struct job *j, const struct msg_f_job *msg, struct bytes frame);
    void (*fail)(void *data, struct job *j, const struct err *why);
    /* The job began or ceased to wait. */
    void (*announce)(void *data, const struct job *j, bool waits);
    /* Is there nothing under way that could free memory? tenant: memory of that tenant's; NULL: any
     * memory. */
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
/* Starts the job, or lets it wait; `frame` holds the bytes of msg and is copied. < 0: neither, and
 * the job has no memory. */
int waiting_offer(struct waiting *w, struct job *j, struct bytes frame, const struct msg_f_job *msg,
                  struct err *e);
/* Takes out a job that waits. Nothing is announced. */
void waiting_remove(struct waiting *w, struct job *j);
/* Does it come after a job that waits? */
bool waiting_behind(const struct waiting *w, const struct job *j);
void waiting_poll(struct waiting *w, uint64_t now);
void waiting_announce(struct waiting *w); /* announces all waiting jobs again */

#endif
