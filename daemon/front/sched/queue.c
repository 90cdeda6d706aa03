#include "daemon/front/sched/queue.h"

#include <utlist.h>

#include "daemon/front/sched/gate.h"
#include "daemon/front/sched/hazard.h"
#include "daemon/front/sched/shares.h"

#define USES_A_UNIT 8u /* buffers of a job that are checked in a unit of work */

/* ---- ready jobs ------------------------------------------------------------------------------ */

#define AHEAD_MAX 1000u

void queue_remove(struct front *f, struct job *j)
{
    shares_drop(f, j);
    gate_leave(f, j);
}

unsigned queue_ahead(struct front *f, const struct job *j, bool *ret_more)
{
    unsigned ahead = shares_ahead(j, AHEAD_MAX + 1);
    turn_count(f, ahead);
    *ret_more = ahead > AHEAD_MAX;
    return *ret_more ? AHEAD_MAX : ahead;
}

/* ---- jobs that wait for a kernel, or for a buffer's content ------------------------------------
 */

void queue_await(struct front *f, struct job *j, enum job_wait why)
{
    queue_remove(f, j);
    job_set_wait(j, why);
    if (j->await.prev == NULL) {
        f->awaiting_count++;
        DL_APPEND2(f->awaiting, j, await.prev, await.next);
    }
}

void queue_leave_awaiting(struct front *f, struct job *j)
{
    if (j->await.prev != NULL) {
        f->awaiting_count--;
        DL_DELETE2(f->awaiting, j, await.prev, await.next);
        j->await.prev = j->await.next = NULL;
    }
}

bool queue_offer_awaiting(struct front *f)
{
    f->awaiting_offers = f->awaiting_count;
    f->hooks.kick(f);
    return f->awaiting_offers > 0;
}

void queue_awaiting_turn(struct front *f)
{
    while (f->awaiting_offers > 0 && f->awaiting != NULL && turn_take(f, 1)) {
        f->awaiting_offers--;
        queue_offer(f, f->awaiting); /* removes it from the list */
    }
}

void queue_gates_turn(struct front *f)
{
    struct job *j;
    while ((j = gate_next(f)) != NULL) {
        queue_offer(f, j);
        if (j->sched.ready.in) {
            gate_offered(j);
        }
    }
}

/* ---- jobs come and go ------------------------------------------------------------------------ */

void queue_offer(struct front *f, struct job *j)
{
    if (j->state != JOB_QUEUED || j->sched.ready.in) {
        return;
    }
    queue_leave_awaiting(f, j);
    gate_leave(f, j);
    if (!hazard_clear(j)) {
        job_set_wait(j, WAIT_HAZARD);
        return;
    }
    job_set_wait(j, WAIT_WINDOW);
    shares_put(f, j);
    f->hooks.kick(f);
}

static void reconsider(struct front *f, struct job *j)
{
    if (j->state != JOB_QUEUED) {
        return;
    }
    if (j->sched.ready.in && !hazard_clear(j)) {
        queue_remove(f, j);
        job_set_wait(j, WAIT_HAZARD);
    } else if (j->wait == WAIT_HAZARD) {
        queue_offer(f, j);
    }
}

static void set_rank(struct front *f, struct job *j, int64_t rank)
{
    bool ready = j->sched.ready.in;
    shares_drop(f, j);
    j->sched.rank = rank;
    gate_moved(j);
    if (ready) {
        shares_put(f, j);
        f->hooks.kick(f); /* it may go now, where its class had to wait */
    }
}

/* Gives the rank of a job to the jobs that it waits for by edges, and to those that they wait for
 * in turn. hazard_want asks the groups before it in the lines of its buffers. */
static void want_all(struct front *f, struct job *j)
{
    struct job *todo = j;
    j->await.raise_next = NULL;
    while (todo != NULL) {
        const struct job *waiter = todo;
        todo = todo->await.raise_next;
        hazard_want(&f->hazards, waiter);
        for (struct job_edge *x = waiter->order.preds; x != NULL; x = x->next_pred) {
            if (x->pred->state == JOB_QUEUED && x->pred->sched.rank > waiter->sched.rank) {
                x->pred->sched.urgent = x->pred->sched.urgent || waiter->sched.urgent;
                set_rank(f, x->pred, waiter->sched.rank);
                x->pred->await.raise_next = todo;
                todo = x->pred;
            }
        }
    }
}

static void check_job(struct front *f, const struct hazard_check *check)
{
    struct job *j = check->job;
    if (j->state == JOB_QUEUED && check->rank < j->sched.rank) {
        j->sched.urgent = j->sched.urgent || check->urgent;
        set_rank(f, j, check->rank);
        want_all(f, j);
    }
    reconsider(f, j);
    turn_count(f, j->work.use_count / USES_A_UNIT);
}

void queue_turn(struct front *f)
{
    struct hazard_check check;
    while (f->hazards.unchecked != NULL && turn_take(f, 1) && hazard_next(&f->hazards, &check)) {
        check_job(f, &check);
    }
}

void queue_moved(struct front *f, struct job *j)
{
    for (struct job_edge *x = j->order.succs; x != NULL; x = x->next_succ) {
        reconsider(f, x->succ);
    }
    hazard_moved(&f->hazards, j);
    queue_turn(f);
}

void queue_raise(struct front *f, struct job *j)
{
    want_all(f, j);
    queue_turn(f);
}

void queue_first(struct front *f, struct job *j)
{
    if (j->sched.rank != INT64_MIN) {
        set_rank(f, j, INT64_MIN);
        queue_raise(f, j);
        f->hooks.kick(f);
    }
}
