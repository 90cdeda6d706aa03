#include "daemon/front/queue.h"

#include <utlist.h>

#include "daemon/front/hazard.h"

#define USES_A_UNIT 8u /* buffers of a job that are looked at in a unit of work */

/* ---- a heap of pairs ------------------------------------------------------------------------- */

/* The first one is the root; each is before its children, which are a list. */

static bool before(const struct job *a, const struct job *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->id < b->id;
}

static struct job *meld(struct job *a, struct job *b)
{
    if (a == NULL || b == NULL) {
        return a != NULL ? a : b;
    }
    struct job *root = before(b, a) ? b : a;
    struct job *child = root == a ? b : a;
    child->ready_prev = root;
    child->ready_next = root->ready_child;
    if (root->ready_child != NULL) {
        root->ready_child->ready_prev = child;
    }
    root->ready_child = child;
    root->ready_prev = root->ready_next = NULL;
    return root;
}

static struct job *cut_first(struct job **list)
{
    struct job *j = *list;
    if (j != NULL) {
        *list = j->ready_next;
        j->ready_prev = j->ready_next = NULL;
    }
    return j;
}

static struct job *meld_all(struct job *list)
{
    struct job *pairs = NULL;
    struct job *root = NULL;
    while (list != NULL) {
        struct job *a = cut_first(&list);
        struct job *pair = meld(a, cut_first(&list));
        pair->ready_next = pairs;
        pairs = pair;
    }
    while (pairs != NULL) {
        root = meld(root, cut_first(&pairs));
    }
    return root;
}

static struct job **root_of(struct front *f, struct job *j)
{
    return j->device != NULL ? &j->device->ready : &f->ready;
}

static void insert(struct front *f, struct job *j)
{
    struct job **root = root_of(f, j);
    j->ready_child = j->ready_prev = j->ready_next = NULL;
    *root = meld(*root, j);
    j->in_ready = true;
}

void queue_remove(struct front *f, struct job *j)
{
    if (!j->in_ready) {
        return;
    }
    struct job **root = root_of(f, j);
    struct job *children = meld_all(j->ready_child);
    if (j->ready_prev == NULL) {
        *root = children;
    } else {
        if (j->ready_prev->ready_child == j) {
            j->ready_prev->ready_child = j->ready_next;
        } else {
            j->ready_prev->ready_next = j->ready_next;
        }
        if (j->ready_next != NULL) {
            j->ready_next->ready_prev = j->ready_prev;
        }
        *root = meld(*root, children);
    }
    j->ready_child = j->ready_prev = j->ready_next = NULL;
    j->in_ready = false;
}

struct job *queue_head(const struct front *f, const struct device *d)
{
    if (f->ready == NULL || (d->ready != NULL && before(d->ready, f->ready))) {
        return d->ready;
    }
    return f->ready;
}

unsigned queue_ahead(const struct front *f, const struct job *j)
{
    unsigned ahead = 0;
    for (const struct job *x = f->jobs; x != NULL; x = x->hh.next) {
        ahead += x->in_ready && x->device == j->device && before(x, j);
    }
    return ahead;
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
    if (j->state != JOB_QUEUED || j->in_ready) {
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
    if (j->in_ready && !hazard_clear(j)) {
        queue_remove(f, j);
        j->wait = WAIT_HAZARD;
    } else if (j->wait == WAIT_HAZARD) {
        queue_offer(f, j);
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
