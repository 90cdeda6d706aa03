/*
 * What must hold in a world (sim.h). Each function ends the process if its rule is broken
 * (sim_fail), unless it says otherwise. Thread: one.
 */
#ifndef TEST_SIM_RULES_H
#define TEST_SIM_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/codec.h"

struct chance;
struct course_event;
struct device;
struct front;
struct job;
struct msg_f_budget;
struct msg_f_job;
struct sim;
struct sim_buffer;
struct sim_client;
struct sim_job;
struct sim_parcel;
struct sim_request;
struct sim_worker;
struct sim_worker_job;
struct tenant;

/* Another front knows the client, or not. */
void rules_resumed(struct sim *s, const struct sim_client *c, bool known);
/* Another front has answered the client's HELLO: it knows what ran for the client, and will not run
 * it again. */
void rules_remembered(struct sim *s, const struct sim_client *c);
void rules_step(struct sim *s); /* cheap */
/* Returns how much there was to look at. */
unsigned rules_all(struct sim *s);
void rules_end(struct sim *s); /* after the end of all sessions: nothing is left */
void rules_result(struct sim *s, struct sim_job *j);
/* The front says the id of the job. */
void rules_job_id(struct sim *s, const struct sim_job *j, uint64_t id);
/* The front answers a request. */
void rules_answer(struct sim *s, const struct sim_parcel *p, struct bytes message);
/* Whether one of the job's kernels is in quarantine for its tenant. */
bool rules_banned(const struct sim *s, const struct sim_job *j);
/* sim_strikes.c */
void strikes_count(struct sim *s, const struct sim_job *j); /* the client has its answer */
/* Until when the tenant is paused at least; 0: it need not be. */
uint64_t strikes_paused_ns(struct sim *s, uint32_t tenant);
bool strikes_ban(const struct sim *s, uint32_t tenant, unsigned kernel);
/* Whether its jobs may have ended enough workers for a pause. */
bool strikes_may_pause(const struct sim *s, uint32_t tenant);
void strikes_suspect(struct sim *s, const struct sim_worker *x); /* it ends by itself */
/* The front sends the job to a worker. */
void strikes_check_sent(struct sim *s, const struct sim_job *j);
void strikes_check_begins(struct sim *s, const struct sim_worker_job *j);
void rules_killed(struct sim *s, const struct sim_worker *x); /* the front ends it */
/* sim_domains.c */
/* sim_lease.c */
void lease_budget(struct sim *s, struct sim_worker *x, const struct msg_f_budget *m);
/* What the worker could not give it gives later. */
void lease_tick(struct sim *s, struct sim_worker *x);
/* The front asks for a worker. */
void lease_begin(struct sim *s, const struct sim_worker *x, const char *const *args);
/* The front sends a budget. */
void lease_sent(struct sim *s, const struct device *d, struct sim_worker *x,
                const struct msg_f_budget *m);
bool lease_hungers(struct sim *s, struct sim_worker *x, struct sim_worker_job *j);
void lease_check(struct sim *s, const struct device *d);
bool lease_is_slow(const struct sim *s, const struct sim_worker *x, uint64_t salt);
uint64_t lease_fat(const struct sim *s, const struct sim_worker *x); /* bytes that it uses, too */
/* Does the device's worker have the job, and did it wait for memory? */
bool lease_waited(struct sim *s, const struct device *d, uint64_t job);
void domain_check(struct sim *s, const struct device *d);
void domain_check_kept(struct sim *s);
void domain_check_taken(struct sim *s);
/* Whether the front ends the worker because nothing wants it. */
void domain_doubt(struct sim *s, const struct sim_worker *x); /* the front ends it */
bool domain_rests(struct sim *s, const struct sim_worker *x);
/* Did a client ask for its end, because of a job that may still be on its way there? */
void domain_unstarted(struct sim *s, unsigned slot, uint64_t r);
uint64_t domain_opens_ns(struct sim *s, const struct sim_worker *x, uint64_t usual_ns);
bool domain_is_unwanted(const struct sim *s, const struct sim_worker *x);
const struct job *domain_head(struct front *f, struct device *d);
void domain_check_alone(struct sim *s, const struct device *d, uint64_t job);
void domain_check_turn(struct sim *s, const struct device *d, uint64_t job);
void domain_check_overrun(struct sim *s, const struct device *base);
void rules_notices(struct sim *s);
void rules_lost(struct sim *s, const struct sim_buffer *b); /* the front says that it is */
/* sim_explain.c: one of the jobs that wait has a cause that the front names, and it is true. */
void rules_explain(struct sim *s);
/* sim_accounts.c: what a front's accounts have is what its jobs were charged */
void accounts_follow(struct sim *s); /* the front is new */
void accounts_check(struct sim *s);
/* killed: what it would do at its end is undone. */
void accounts_front_ends(struct sim *s, bool killed);
void accounts_front_ended(struct sim *s);
void accounts_finish(struct sim *s);
/* sim_metrics.c: collections of metrics in pieces */
void metrics_follow(struct sim *s); /* the front is new */
void metrics_check(struct sim *s);
void metrics_front_ends(bool killed);
void metrics_finish(void);
/* sim_gate.c: the limits of a tenant that hold its jobs back; whether `why` is of these. */
void rules_gate(struct sim *s, const struct tenant *t);
bool gate_explains(struct sim *s, const struct job *j, const char *why);
/* sim_due.c: deadlines, and what is refused for them */
void due_before(struct sim *s, const struct sim_request *q); /* the front gets it next */
void due_answer(struct sim *s, const struct sim_parcel *p, struct bytes message);
void due_sent(struct sim *s, const struct msg_f_job *m, const struct sim_job *j);
void due_begins(struct sim *s, const struct sim_job *j);
/* sim_fair.c: a client with small jobs beside a hostile one */
#define FAIR_CLIENT 2u
void fair_ask(struct sim *s, struct chance *r);
void fair_result(struct sim *s, struct sim_job *j);

#endif
