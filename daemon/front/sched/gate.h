/*
 * A tenant's own limits of jobs in flight (inflight_max) and of transferred bytes (transfer_rate).
 * They delay its own jobs, and refuse none: a job that reaches the head of its line while its
 * tenant is at a limit leaves the ready jobs and is held. The jobs of other tenants go on.
 *
 * Bytes are paid for after they went (a token bucket): a job with transfers goes while what went
 * before is paid for, and then its own bytes are due at the tenant's rate. A tenant that sent
 * little has GATE_BURST_NS in advance. Jobs without transfers do not wait for this.
 *
 * As many held jobs become ready again, smallest rank first, as the limit lets go: when jobs in
 * flight end, when transfers are paid for, and when settings change. Each costs O(log n). Thread:
 * the loop's.
 */
#ifndef FRONT_SCHED_GATE_H
#define FRONT_SCHED_GATE_H

#include "daemon/front/model/front.h"

#define GATE_BURST_NS (100 * NS_PER_MS)

/* What a ready job of a tenant has to wait for at its limits; WAIT_NOTHING: it may go. */
enum job_wait gate_wait(struct front *f, const struct job *j);
/* The job, which is not ready, is held for that reason. */
void gate_hold(struct front *f, struct job *j, enum job_wait wait);
/* The job is not held any more, or not ready any more. Neither: nothing happens. */
void gate_leave(struct front *f, struct job *j);
/* The rank of the job changed. */
void gate_moved(struct job *j);
/* The job goes to a worker: what it transfers is charged. */
void gate_charge(struct front *f, struct job *j);
/* Takes out the next held job that may be tried now, as far as this turn has units for; NULL:
 * none. The caller offers it to the queue. */
struct job *gate_next(struct front *f);
void gate_offered(struct job *j); /* it is ready, and counts until it is tried */
/* The timer fired: asks for a turn if a gate is due, and for the next wake. */
void gates_watch(struct front *f, uint64_t now_ns);
/* How long until the transfers of the tenant are paid for. */
uint64_t gate_unpaid_ns(const struct tenant *t, uint64_t now_ns);

#endif
