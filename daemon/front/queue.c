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

/* By id, which is the order of admission: a job that comes back takes its old place. */
static void insert(struct front *f, struct job *j)
{
    struct ends q = ends_of(f, j);
    if (*q.tail != NULL && (*q.tail)->id < j->id) {
        (*q.tail)->ready_next = j;
        *q.tail = j;
        j->ready_next = NULL;
        j->in_ready = true;
        return;
    }
    struct job **at = q.head;
    while (*at != NULL && (*at)->id < j->id) {
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
    struct job *before = NULL;
    struct job **at = q.head;
    while (*at != j) {
        before = *at;
        at = &before->ready_next;
    }
    *at = j->ready_next;
    if (*q.tail == j) {
        *q.tail = before;
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

struct job *queue_head(const struct front *f, const struct device *d)
{
    if (f->ready == NULL || (d->ready != NULL && d->ready->id < f->ready->id)) {
        return d->ready;
    }
    return f->ready;
}
