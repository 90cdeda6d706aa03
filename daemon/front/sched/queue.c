#include "daemon/front/sched/queue.h"

#include <utlist.h>

#include "daemon/front/sched/hazard.h"

#define USES_A_UNIT 8u /* buffers of a job that are looked at in a unit of work */

/* ---- those that are ready -------------------------------------------------------------------- */

#define AHEAD_MAX 1000u

static struct heap *heap_of(struct front *f, const struct job *j)
{
    return j->device != NULL ? &j->device->ready : &f->ready;
}

static void insert(struct front *f, struct job *j)
{
    uint64_t key = (uint64_t)j->rank ^ (UINT64_C(1) << 63); /* in the order of signed numbers */
    heap_put(heap_of(f, j), &j->ready, key, j->id, j);
}

void queue_remove(struct front *f, struct job *j)
{
    heap_drop(heap_of(f, j), &j->ready);
}

struct job *queue_head(const struct front *f, const struct device *d)
{
    const struct heap_entry *any = f->ready.first;
    const struct heap_entry *own = d->ready.first;
    const struct heap_entry *first =
        any == NULL || (own != NULL && heap_before(own, any)) ? own : any;
    return first != NULL ? first->what : NULL;
}

unsigned queue_ahead(struct front *f, const struct job *j, bool *ret_more)
{
    unsigned ahead = j->ready.in ? heap_ahead(heap_of(f, j), &j->ready, AHEAD_MAX + 1) : 0;
    turn_count(f, ahead);
    *ret_more = ahead > AHEAD_MAX;
    return *ret_more ? AHEAD_MAX : ahead;
}

/* ---- jobs that wait for a kernel ------------------------------------------------------------- */

void queue_await_module(struct front *f, struct job *j)
{
    queue_remove(f, j);
    j->wait = WAIT_MODULE;
    if (!j->for_module) {
        j->for_module = true;
        f->module_count++;
        DL_APPEND2(f->module_jobs, j, module_prev, module_next);
    }
}

void queue_leave_module(struct front *f, struct job *j)
{
    if (j->for_module) {
        j->for_module = false;
        f->module_count--;
        DL_DELETE2(f->module_jobs, j, module_prev, module_next);
    }
}

bool queue_offer_modules(struct front *f)
{
    f->module_offers = f->module_count;
    f->hooks.kick(f);
    return f->module_offers > 0;
}

void queue_modules_turn(struct front *f)
{
    while (f->module_offers > 0 && f->module_jobs != NULL && turn_take(f, 1)) {
        f->module_offers--;
        queue_offer(f, f->module_jobs); /* takes it out */
    }
}

/* ---- jobs come and go ------------------------------------------------------------------------ */

void queue_offer(struct front *f, struct job *j)
{
    if (j->state != JOB_QUEUED || j->ready.in) {
        return;
    }
    queue_leave_module(f, j);
    if (!hazard_clear(j)) {
        j->wait = WAIT_HAZARD;
        return;
    }
    j->wait = WAIT_WINDOW;
    insert(f, j);
    f->hooks.kick(f);
}

static void reconsider(struct front *f, struct job *j)
{
    if (j->state != JOB_QUEUED) {
        return;
    }
    if (j->ready.in && !hazard_clear(j)) {
        queue_remove(f, j);
        j->wait = WAIT_HAZARD;
    } else if (j->wait == WAIT_HAZARD) {
        queue_offer(f, j);
    }
}

static void set_rank(struct front *f, struct job *j, int64_t rank)
{
    bool ready = j->ready.in;
    queue_remove(f, j);
    j->rank = rank;
    if (ready) {
        insert(f, j);
    }
}

/* What it waits for by an edge, and so on; of those in lines the groups are asked. */
static void want_all(struct front *f, struct job *j)
{
    struct job *todo = j;
    j->raise_next = NULL;
    while (todo != NULL) {
        const struct job *waiter = todo;
        todo = todo->raise_next;
        hazard_want(&f->hazards, waiter);
        for (struct job_edge *x = waiter->preds; x != NULL; x = x->next_pred) {
            if (x->pred->state == JOB_QUEUED && x->pred->rank > waiter->rank) {
                x->pred->urgent = x->pred->urgent || waiter->urgent;
                set_rank(f, x->pred, waiter->rank);
                x->pred->raise_next = todo;
                todo = x->pred;
            }
        }
    }
}

static void look_at(struct front *f, const struct hazard_look *look)
{
    struct job *j = look->job;
    if (j->state == JOB_QUEUED && look->rank < j->rank) {
        j->urgent = j->urgent || look->urgent;
        set_rank(f, j, look->rank);
        want_all(f, j);
    }
    reconsider(f, j);
    turn_count(f, j->work.use_count / USES_A_UNIT);
}

void queue_turn(struct front *f)
{
    struct hazard_look look;
    while (f->hazards.due != NULL && turn_take(f, 1) && hazard_next(&f->hazards, &look)) {
        look_at(f, &look);
    }
}

void queue_moved(struct front *f, struct job *j)
{
    for (struct job_edge *x = j->succs; x != NULL; x = x->next_succ) {
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
    if (j->rank != INT64_MIN) {
        set_rank(f, j, INT64_MIN);
        queue_raise(f, j);
        f->hooks.kick(f);
    }
}
