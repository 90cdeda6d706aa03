/*
 * What tenants get of a device, by the simulation's own count, against what their weights and
 * classes entitle them to (sim_load.h). Thread: the simulation's.
 *
 * Fair queueing with jobs in flight (SFQ(D): W. Jin, J. Chase, J. Kaur, SIGMETRICS 2004) bounds
 * what one tenant is ahead of another that always has ready jobs: in the time since any moment the
 * other one's share, divided by its weight, is no more than D + 1 jobs of each behind. Here D is
 * what was in flight at once, and a job is what the longest took. Turns add their length, and what
 * gpud lets a tenant be ahead of one that may have no more in flight adds 20 ms.
 */
#ifndef TEST_SIM_SHARES_H
#define TEST_SIM_SHARES_H

#include "tests/sim/front/sim_load.h"

struct sim_worker;

void shares_book_begin(struct sim *s);
void shares_book_finish(struct sim *s);
/* To be called before a job begins or ends, or a worker does: counts the time until now. */
void shares_pass(struct sim *s);
/* A job begins, which takes so long. */
void shares_began(struct sim *s, const struct sim_worker *x, const struct sim_job *j, uint64_t ns);
void shares_ended(struct sim *s, const struct sim_worker *x, const struct sim_job *j);
/* A worker of the device ended, or settings have changed: what follows is judged by itself. */
void shares_anew(struct sim *s);
/* The front sends a job of the client to a worker of the device. */
void shares_sent(struct sim *s, unsigned device, unsigned client);
/* The device goes to the worker, from another one. */
void shares_turn(struct sim *s, unsigned device, const struct sim_worker *x);
void shares_check(struct sim *s); /* at every step */
/* Jobs of the flow that have ended on the device; LOAD_FLOWS + client: all jobs of a client. */
unsigned shares_known(const struct sim *s, unsigned device, unsigned flow);
/* What the jobs of a flow have had of a device so far, in ns. */
struct share_sum {
    double got, longest;
    double turns; /* in which its worker got the device */
    unsigned ready;
};
struct share_sum shares_sum(const struct sim *s, unsigned device, unsigned flow);
unsigned shares_most(const struct sim *s, unsigned device); /* jobs in flight at once */
/* The client's worker had no ready job when its last turn ended. */
bool shares_drained(const struct sim *s, unsigned device, unsigned client);
/* sim_cuts.c */
void cuts_anew(void);
void cuts_check(struct sim *s); /* at every step */
/* sim_ledger.c */
void ledger_anew(void);
void ledger_check(struct sim *s); /* at every step */
/* sim_lines.c */
void lines_check(struct sim *s); /* now and then */
void rest_sent(struct sim *s, const struct device *d, uint64_t job);
void rest_check(struct sim *s); /* at every step; the front may run in it */
/* sim_limits.c */
void limits_sent(struct sim *s, uint64_t job);
void limits_check(struct sim *s, const struct tenant *t); /* now and then */
/* sim_forecast.c */
void forecast_sent(struct sim *s, uint64_t worker, uint64_t job, const struct sim_job *k);
void forecast_check(struct sim *s); /* now and then */
void forecast_ended(struct sim *s, const struct sim_job *k, unsigned device);
/* sim_charge.c */
void charge_begin(struct sim *s);
void charge_finish(struct sim *s);
void charge_sent(struct sim *s, const struct device *d, uint64_t job);
void charge_ended(struct sim *s, const struct job *j);
void charge_step(struct sim *s); /* at every step */
/* sim_overrun.c */
void overrun_killed(struct sim *s, const struct sim_worker *x);
void overrun_step(struct sim *s); /* at every step */
/* sim_caps.c */
void caps_anew(void);
void caps_check(struct sim *s); /* at every step */
/* Whether the text says that the job's tenant has had its part. It fails if that cannot be. */
bool caps_explain(struct sim *s, const struct job *j, const char *why);
/* sim_order.c: the front sends the job to the worker of `d`. */
void order_sent(struct sim *s, const struct device *d, uint64_t job);

#endif
