#include "daemon/front/sched/hazard_parts.h"

#include <stdlib.h>
#include <utlist.h>

#include "common/shape.h"
#include "daemon/front/model/arena.h"
#include "daemon/front/model/job.h"

/* ---- edges --------------------------------------------------------------------------------- */

static void edge_link(struct job_edge *x, struct job *pred, struct job *succ)
{
    x->pred = pred;
    x->succ = succ;
    DL_PREPEND2(pred->order.succs, x, prev_succ, next_succ);
    DL_PREPEND2(succ->order.preds, x, prev_pred, next_pred);
}

static void edge_unlink(struct job_edge *x)
{
    DL_DELETE2(x->pred->order.succs, x, prev_succ, next_succ);
    DL_DELETE2(x->succ->order.preds, x, prev_pred, next_pred);
}

static void edge_drop(struct job_edge *x)
{
    edge_unlink(x);
    free(x);
}

/* Walks both lists in step, so the shorter one bounds the walk. */
static bool edge_exists(const struct job *pred, const struct job *succ)
{
    const struct job_edge *x = succ->order.preds;
    const struct job_edge *y = pred->order.succs;
    while (x != NULL && y != NULL && x->pred != pred && y->succ != succ) {
        x = x->next_pred;
        y = y->next_succ;
    }
    return x != NULL && y != NULL;
}

static bool edge_make(struct job *pred, struct job *succ)
{
    struct job_edge *x = malloc(sizeof *x);
    if (x == NULL) {
        return false;
    }
    edge_link(x, pred, succ);
    return true;
}

bool edge_add(struct job *pred, struct job *succ)
{
    return pred == succ || edge_exists(pred, succ) || edge_make(pred, succ);
}

void edges_drop(struct job *j)
{
    while (j->order.preds != NULL) {
        edge_drop(j->order.preds);
    }
    while (j->order.succs != NULL) {
        edge_drop(j->order.succs);
    }
}

static void mark_preds(struct job *j, bool marked)
{
    for (struct job_edge *x = j->order.preds; x != NULL; x = x->next_pred) {
        x->pred->order.marked = marked;
    }
}

static void mark_succs(struct job *j, bool marked)
{
    for (struct job_edge *x = j->order.succs; x != NULL; x = x->next_succ) {
        x->succ->order.marked = marked;
    }
}

/* Moves the job's predecessors to the hub. Drops edges that the hub has already. */
static void move_preds(struct job *j, struct job *hub)
{
    mark_preds(hub, true);
    while (j->order.preds != NULL) {
        struct job_edge *x = j->order.preds;
        struct job *pred = x->pred;
        edge_unlink(x);
        if (pred == hub || pred->order.marked) {
            free(x);
        } else {
            edge_link(x, pred, hub);
            pred->order.marked = true;
        }
    }
    mark_preds(hub, false);
}

static void move_succs(struct job *j, struct job *hub)
{
    mark_succs(hub, true);
    while (j->order.succs != NULL) {
        struct job_edge *x = j->order.succs;
        struct job *succ = x->succ;
        edge_unlink(x);
        if (succ == hub || succ->order.marked) {
            free(x);
        } else {
            edge_link(x, hub, succ);
            succ->order.marked = true;
        }
    }
    mark_succs(hub, false);
}

static struct job *oldest_succ(const struct job *j)
{
    struct job *oldest = j->order.succs->succ;
    for (const struct job_edge *x = j->order.succs; x != NULL; x = x->next_succ) {
        oldest = x->succ->id < oldest->id ? x->succ : oldest;
    }
    return oldest;
}

/* Reuses edges instead of linking each predecessor to each successor. A single predecessor gets all
 * successors. With several predecessors, the oldest successor waits for them, and the other
 * successors wait for the oldest. */
void edges_bequeath(struct job *j)
{
    struct job *hub = j->order.preds->next_pred == NULL ? j->order.preds->pred : oldest_succ(j);
    move_preds(j, hub);
    move_succs(j, hub);
}

/* ---- parts --------------------------------------------------------------------------------- */

/*
 * Parts of arenas are many and small. Each part that unfinished jobs have of an arena is compared
 * once with the new job. The job's own parts are sorted by their begin, and each knows the farthest
 * end of the parts up to it. So one binary search finds whether any own part overlaps another job's
 * part.
 */
struct own_part {
    const struct work_arena *part;
    uint64_t reach;       /* the farthest end of the parts up to this one */
    uint64_t write_reach; /* the farthest end of those that are written */
};

static int own_order(const void *a, const void *b)
{
    const struct work_arena *x = ((const struct own_part *)a)->part;
    const struct work_arena *y = ((const struct own_part *)b)->part;
    if (x->arena != y->arena) {
        return (uintptr_t)x->arena < (uintptr_t)y->arena ? -1 : 1;
    }
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Fills in the reaches of the leading parts that belong to one arena. Returns their number. */
static unsigned own_group(struct own_part *own, unsigned count)
{
    uint64_t reach = 0;
    uint64_t write_reach = 0;
    unsigned n = 0;
    for (; n < count && own[n].part->arena == own[0].part->arena; n++) {
        uint64_t end = own[n].part->end;
        bool writes = (own[n].part->access & ACCESS_OUT) != 0;
        reach = end > reach ? end : reach;
        write_reach = writes && end > write_reach ? end : write_reach;
        own[n].reach = reach;
        own[n].write_reach = write_reach;
    }
    return n;
}

/* Whether an own part overlaps the part, and one of both is written. */
static bool own_clashes(const struct own_part *own, unsigned count, const struct work_arena *part)
{
    unsigned before = 0; /* number of own parts that begin before the part's end */
    for (unsigned above = count; before < above;) {
        unsigned middle = before + (above - before) / 2;
        if (own[middle].part->begin < part->end) {
            before = middle + 1;
        } else {
            above = middle;
        }
    }
    if (before == 0) {
        return false;
    }
    const struct own_part *last = &own[before - 1];
    bool written = (part->access & ACCESS_OUT) != 0;
    return (written ? last->reach : last->write_reach) > part->begin;
}

/* The job is new and has no other edges, so a job that is marked here has its edge already. */
static bool edges_for_group(struct job *j, const struct own_part *own, unsigned count)
{
    bool ok = true;
    const struct work_arena *p = own[0].part->arena->parts;
    for (; ok && p != NULL; p = p->next_part) {
        if (!p->job->order.marked && own_clashes(own, count, p)) {
            ok = edge_make(p->job, j);
            p->job->order.marked = ok;
        }
    }
    return ok;
}

unsigned parts_beside(const struct job *j)
{
    unsigned parts = 0;
    for (unsigned i = 0; i < j->work.arena_count; i++) {
        struct arena *a = j->work.arenas[i].arena;
        parts += a->counted ? 0 : a->users;
        a->counted = true;
    }
    for (unsigned i = 0; i < j->work.arena_count; i++) {
        j->work.arenas[i].arena->counted = false;
    }
    return parts;
}

int parts_check(const struct job *j, struct err *e)
{
    unsigned parts = parts_beside(j) + j->work.arena_count;
    if (parts <= ARENA_PARTS_MAX) {
        return 0;
    }
    return err_set(e, ERR_BUSY,
                   "unfinished jobs would use %u parts of the arenas that this job names, at most "
                   "%u (ARENA_PARTS_MAX): let some jobs end, or use more arenas",
                   parts, ARENA_PARTS_MAX);
}

bool edges_for_parts(struct job *j)
{
    struct own_part own[WORK_USES_MAX]; /* as many as work_add_arena allows */
    unsigned count = j->work.arena_count;
    bool ok = true;
    for (unsigned i = 0; i < count; i++) {
        own[i] = (struct own_part){.part = &j->work.arenas[i]};
    }
    if (count > 1) {
        qsort(own, count, sizeof own[0], own_order);
    }
    for (unsigned i = 0; ok && i < count;) {
        unsigned n = own_group(own + i, count - i);
        ok = edges_for_group(j, own + i, n);
        i += n;
    }
    mark_preds(j, false);
    return ok;
}

void parts_enter(struct job *j)
{
    for (unsigned i = 0; i < j->work.arena_count; i++) {
        struct work_arena *part = &j->work.arenas[i];
        part->job = j;
        DL_PREPEND2(part->arena->parts, part, prev_part, next_part);
        part->arena->users++;
    }
}

void parts_leave(struct job *j)
{
    for (unsigned i = 0; i < j->work.arena_count; i++) {
        struct work_arena *part = &j->work.arenas[i];
        if (part->job != NULL) {
            DL_DELETE2(part->arena->parts, part, prev_part, next_part);
            part->job = NULL;
            part->arena->users--;
        }
    }
}
