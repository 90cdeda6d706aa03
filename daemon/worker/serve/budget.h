/*
 * The worker's share of the device's memory. The front may raise it, which counts at once, or
 * recall a part by a deadline. A recall goes in slices and blocks nothing: free memory goes back to
 * the driver first; then buffers that no job uses go to the host, in the order and within the
 * limits of spill.h, or move together. Jobs go on meanwhile, within what is left.
 *
 * After the deadline no buffer goes for it any more. What becomes free still goes back.
 *
 * Thread: the loop's.
 */
#ifndef WORKER_SERVE_BUDGET_H
#define WORKER_SERVE_BUDGET_H

#include <uv.h>

#include "daemon/pool/lease.h"
#include "daemon/worker/spill/spill.h"

/* Bytes that one turn gives back or evicts, at most; or one handle, or one buffer. */
#define BUDGET_SLICE (UINT64_C(64) << 20)

enum budget_state {
    BUDGET_HELD,     /* the worker has no more than its share */
    BUDGET_RECALLED, /* it gives memory back, until the deadline */
    BUDGET_OVERDUE,  /* the deadline has passed, and memory is missing */
};

struct budget_report {
    enum budget_state state;
    uint64_t asked;   /* bytes: the budget that this is about */
    uint64_t limit;   /* bytes: the share */
    uint64_t size;    /* bytes that the worker has */
    uint64_t missing; /* bytes that are still to be given back */
};

/* The recall has ended: the share is met, or the deadline has passed. */
typedef void (*budget_ended_fn)(void *data, const struct budget_report *report);

struct budget {
    struct spill *spill;     /* not owned */
    uv_timer_t timer;        /* the next turn of a recall */
    enum budget_state state; /* changed by one function */
    uint64_t until_ns;
    uint64_t packed; /* the pool's count of frees when pieces last moved together for it */
    budget_ended_fn ended;
    void *data;
};

/* What the front asks for. */
struct budget_ask {
    uint64_t limit;    /* bytes of device memory */
    uint64_t until_ns; /* the deadline; may have passed */
    uint64_t stay;     /* bytes of buffers that stay, of all tenants without a guarantee */
    uint64_t most;     /* what the limit may become for jobs that wait */
};

void budget_init(struct budget *b, struct spill *spill, uv_loop_t *loop, budget_ended_fn ended,
                 void *data);
void budget_finish(struct budget *b);
/* Begins a recall, or replaces the one under way, whose end is not reported then. `ended` follows
 * in any case. ERR_INVALID: no bytes. ERR_LIMIT: more than the device has, or less than what cannot
 * be recalled; the share is unchanged. */
int budget_set(struct budget *b, const struct budget_ask *ask, struct err *e);
/* One slice of a recall; cheap without one. To be called when memory may have become free. < 0: the
 * device is lost. */
int budget_turn(struct budget *b, uint64_t now_ns, struct err *e);
void budget_report(const struct budget *b, struct budget_report *ret_report);

#endif
