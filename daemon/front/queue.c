#include "daemon/front/queue.h"

#include "daemon/front/hazard.h"

struct ends {
    struct job **head;
    struct job **tail;
};

static struct ends ends_of(struct front *f, struct job *j)
{
    return j->device != NULL ? (struct ends){&j->device->ready, &j->device->ready_tail}
                             : (struct ends){&f->ready, &f->ready_tail};
}

static bool before(const struct job *a, const struct job *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->id < b->id;
}

/* A job that comes back takes its old place. */
static void insert(struct front *f, struct job *j)
{
    struct ends q = ends_of(f, j);
    if (*q.tail != NULL && before(*q.tail, j)) {
        (*q.tail)->ready_next = j;
        *q.tail = j;
        j->ready_next = NULL;
        j->in_ready = true;
        return;
    }
    struct job **at = q.head;
    while (*at != NULL && before(*at, j)) {
        at = &(*at)->ready_next;
    }
    j->ready_next = *at;
    *at = j;
    if (j->ready_next == NULL) {
        *q.tail = j;
    }
    j->in_ready = true;
}

void queue_offer(struct front *f, struct job *j)
{
    if (j->state != JOB_QUEUED || j->in_ready) {
        return;
    }
    if (!hazard_clear(j)) {
        j->wait = WAIT_HAZARD;
        return;
    }
    j->wait = WAIT_WINDOW;
    insert(f, j);
    f->hooks.kick(f);
}

void queue_remove(struct front *f, struct job *j)
{
    if (!j->in_ready) {
        return;
    }
    struct ends q = ends_of(f, j);
    struct job *previous = NULL;
    struct job **at = q.head;
    while (*at != j) {
        previous = *at;
        at = &previous->ready_next;
    }
    *at = j->ready_next;
    if (*q.tail == j) {
        *q.tail = previous;
    }
    j->ready_next = NULL;
    j->in_ready = false;
}

void queue_successors(struct front *f, struct job *j)
{
    for (struct job_edge *x = j->succs; x != NULL; x = x->next_succ) {
        struct job *succ = x->succ;
        if (succ->in_ready && !hazard_clear(succ)) {
            queue_remove(f, succ);
            succ->wait = WAIT_HAZARD;
        } else if (succ->wait == WAIT_HAZARD) {
            queue_offer(f, succ);
        }
    }
}

static void set_rank(struct front *f, struct job *j, int64_t rank)
{
    bool ready = j->in_ready;
    queue_remove(f, j);
    j->rank = rank;
    if (ready) {
        insert(f, j);
    }
}

static void raise_one(struct front *f, struct job *j, const struct job *waiter)
{
    j->urgent = j->urgent || waiter->urgent;
    set_rank(f, j, waiter->rank);
}

void queue_raise(struct front *f, struct job *j)
{
    struct job *todo = j;
    j->raise_next = NULL;
    while (todo != NULL) {
        const struct job *waiter = todo;
        todo = todo->raise_next;
        for (struct job_edge *x = waiter->preds; x != NULL; x = x->next_pred) {
            if (x->pred->state == JOB_QUEUED && x->pred->rank > waiter->rank) {
                raise_one(f, x->pred, waiter);
                x->pred->raise_next = todo;
                todo = x->pred;
            }
        }
    }
}

void queue_first(struct front *f, struct job *j)
{
    if (j->rank != INT64_MIN) {
        set_rank(f, j, INT64_MIN);
        queue_raise(f, j);
        f->hooks.kick(f);
    }
}

struct job *queue_head(const struct front *f, const struct device *d)
{
    if (f->ready == NULL || (d->ready != NULL && before(d->ready, f->ready))) {
        return d->ready;
    }
    return f->ready;
}
