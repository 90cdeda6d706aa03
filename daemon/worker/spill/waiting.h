/*
 * Jobs that wait for device memory, and jobs that come after those, ordered by rank and then by
 * arrival. While a job waits, later ones wait behind it, so that running jobs end and make room.
 * Never blocks. Thread: the loop's.
 *
 * A job that has its memory waits here, too, until that is mapped, until its buffers have their
 * content, and until the arenas are registered that its kernels work on. Later jobs do not wait
 * behind it.
 *
 * A job fails when nothing under way can help it; its error says how much was wanted and how much
 * there is. If it has a deadline it waits on, and later jobs may pass it. The same holds for a job
 * that wants more than its tenant can ever have. A job that comes after a waiting job holds up no
 * others.
 */
#ifndef WORKER_SPILL_WAITING_H
#define WORKER_SPILL_WAITING_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/worker/run/ledger.h"
#include "daemon/worker/spill/spill.h"

struct waiting_job;

struct waiting_callbacks {
    /* The job has its memory, and no longer waits. */
    void (*start)(void *data, struct job *j, const struct msg_f_job *msg, struct bytes frame);
    void (*fail)(void *data, struct job *j, const struct err *why);
    /* The job began or ceased to wait; for the front. */
    void (*announce)(void *data, const struct job *j, bool waits);
    /* Is nothing under way that could free memory? tenant: memory of that tenant's; NULL: any. */
    bool (*still)(void *data, const uint64_t *tenant);
};

struct waiting {
    struct spill *spill;         /* not owned */
    const struct ledger *ledger; /* not owned */
    struct waiting_job *first;
    unsigned count;
    uint64_t moved; /* ns: the last poll in which buffers moved for a job, as far as it may */
    struct waiting_callbacks callbacks;
    void *data;
};

void waiting_init(struct waiting *w, struct spill *spill, const struct ledger *ledger,
                  struct waiting_callbacks callbacks, void *data);
/* Starts the job, or keeps it waiting with a copy of `frame`, which holds the bytes of msg. < 0:
 * neither, and the job has no memory. */
int waiting_offer(struct waiting *w, struct job *j, struct bytes frame, const struct msg_f_job *msg,
                  struct err *e);
/* Removes a job that waits, without a call of announce. */
void waiting_remove(struct waiting *w, struct job *j);
/* Does the job come after a job that waits? */
bool waiting_behind(const struct waiting *w, const struct job *j);
/* Does a job wait whose memory is being mapped? It will run, and free memory. tenant: of this
 * tenant; NULL: of any. */
bool waiting_maps(const struct waiting *w, const uint64_t *tenant);
void waiting_poll(struct waiting *w, uint64_t now);
/* Does a job wait for waiting_poll in the next turn of the loop, which moves more buffers? */
bool waiting_moves(const struct waiting *w);
void waiting_announce(struct waiting *w); /* announces all waiting jobs again */
/* The same in the next poll, those that still wait then. */
void waiting_renew(struct waiting *w);
/* Bytes by which the budget would have to grow for a job that waits; 0: it does not. */
uint64_t waiting_wants(const struct waiting *w, const struct job *j);

#endif
