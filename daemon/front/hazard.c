#include "daemon/front/hazard.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/shape.h"
#include "daemon/front/arena.h"
#include "daemon/front/buffer.h"
#include "daemon/front/job.h"

#define BEQUEST_MAX 1024u /* edges of one job that ends before its predecessors */

static bool edge_exists(const struct job *pred, const struct job *succ)
{
    for (const struct job_edge *x = succ->preds; x != NULL; x = x->next_pred) {
        if (x->pred == pred) {
            return true;
        }
    }
    return false;
}

static bool edge_add(struct job *pred, struct job *succ)
{
    if (pred == NULL || pred == succ || edge_exists(pred, succ)) {
        return true;
    }
    struct job_edge *x = malloc(sizeof *x);
    if (x == NULL) {
        return false;
    }
    *x = (struct job_edge){
        .pred = pred, .succ = succ, .next_succ = pred->succs, .next_pred = succ->preds};
    pred->succs = x;
    succ->preds = x;
    return true;
}

static void unlink_pred(struct job_edge *x)
{
    struct job_edge **at = &x->succ->preds;
    while (*at != x) {
        at = &(*at)->next_pred;
    }
    *at = x->next_pred;
}

static void unlink_succ(struct job_edge *x)
{
    struct job_edge **at = &x->pred->succs;
    while (*at != x) {
        at = &(*at)->next_succ;
    }
    *at = x->next_succ;
}

static void drop_preds(struct job *j)
{
    while (j->preds != NULL) {
        struct job_edge *x = j->preds;
        unlink_succ(x);
        j->preds = x->next_pred;
        free(x);
    }
}

static void drop_succs(struct job *j)
{
    while (j->succs != NULL) {
        struct job_edge *x = j->succs;
        unlink_pred(x);
        j->succs = x->next_succ;
        free(x);
    }
}

/* A writer comes after them. What they brought stays with the buffer until they end: whoever takes
 * the writer out again needs it. */
static void readers_displace(struct buffer *b)
{
    while (b->readers != NULL) {
        struct buffer_use *u = b->readers;
        b->readers = u->next;
        u->next = b->displaced;
        b->displaced = u;
    }
}

/* Each reader takes away as much as it brought. */
static void reader_remove(struct buffer *b, const struct job *j)
{
    struct buffer_use **at = &b->readers;
    while (*at != NULL && (*at)->job != j) {
        at = &(*at)->next;
    }
    at = *at != NULL ? at : &b->displaced;
    struct buffer_use *u = *at;
    if (u != NULL) { /* else it was forgotten before */
        *at = u->next;
        free(u);
    }
}

static bool only_reads(const struct work_use *use)
{
    return (use->access & ACCESS_OUT) == 0;
}

/* All that can fail comes first: edges, then the readers' entries. */
static bool edges_for(struct job *j, const struct work_use *use)
{
    struct buffer *b = use->buffer;
    bool ok = edge_add(b->writer, j);
    if ((use->access & ACCESS_OUT) != 0) {
        for (const struct buffer_use *u = b->readers; ok && u != NULL; u = u->next) {
            ok = edge_add(u->job, j);
        }
    }
    return ok;
}

/*
 * Parts of arenas are many and small; there is no last writer. All that unfinished jobs have of an
 * arena are gone through once for a new job, whose own parts are in order: what begins before
 * another part's end lies in front, and of those the one that reaches farthest tells.
 */
struct own_part {
    const struct work_arena *part;
    uint64_t reach;       /* the farthest end of the parts up to here */
    uint64_t write_reach; /* of those that are written */
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

/* The first ones, of the same arena: finds how far they reach. Their number. */
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

/* Does one of them overlap with the part, one of both written? */
static bool own_clashes(const struct own_part *own, unsigned count, const struct work_arena *part)
{
    unsigned before = 0; /* so many begin before its end */
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

static bool edges_for_group(struct job *j, const struct own_part *own, unsigned count)
{
    bool ok = true;
    const struct job *last = NULL; /* a job's parts lie together: one edge is enough */
    const struct work_arena *p = own[0].part->arena->parts;
    for (; ok && p != NULL; p = p->next_part) {
        if (p->job != last && own_clashes(own, count, p)) {
            ok = edge_add(p->job, j);
            last = p->job;
        }
    }
    return ok;
}

static bool edges_for_parts(struct job *j)
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
    return ok;
}

static void parts_enter(struct job *j)
{
    for (unsigned i = 0; i < j->work.arena_count; i++) {
        struct work_arena *part = &j->work.arenas[i];
        part->job = j;
        DL_PREPEND2(part->arena->parts, part, prev_part, next_part);
        part->arena->users++;
    }
}

static void parts_leave(struct job *j)
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

static bool reader_add(struct job *j, struct buffer *b)
{
    struct buffer_use *u = malloc(sizeof *u);
    if (u == NULL) {
        return false;
    }
    *u = (struct buffer_use){.job = j, .next = b->readers};
    b->readers = u;
    return true;
}

/* Of the first so many uses. */
static void readers_remove(struct job *j, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (only_reads(&j->work.uses[i])) {
            reader_remove(j->work.uses[i].buffer, j);
        }
    }
}

int hazard_enter(struct job *j, struct err *e)
{
    bool ok = true;
    for (unsigned i = 0; ok && i < j->work.use_count; i++) {
        ok = edges_for(j, &j->work.uses[i]);
    }
    ok = ok && edges_for_parts(j);
    unsigned entered = 0;
    for (; ok && entered < j->work.use_count; entered++) {
        const struct work_use *use = &j->work.uses[entered];
        if (only_reads(use) && !reader_add(j, use->buffer)) {
            ok = false;
            break;
        }
    }
    if (!ok) {
        drop_preds(j);
        readers_remove(j, entered);
        return err_set(e, ERR_NOMEM, "order of %u buffers", j->work.use_count);
    }
    parts_enter(j);
    for (unsigned i = 0; i < j->work.use_count; i++) {
        struct buffer *b = j->work.uses[i].buffer;
        b->users++;
        if ((j->work.uses[i].access & ACCESS_OUT) != 0) {
            readers_displace(b);
            b->writer = j;
        }
    }
    return 0;
}

bool hazard_join(struct job *j, struct buffer *b)
{
    if (!reader_add(j, b)) {
        return false;
    }
    struct work_use *use = work_use_of(&j->work, b);
    if (use == NULL) {
        reader_remove(b, j);
        return false;
    }
    use->access = ACCESS_IN;
    b->users++;
    return true;
}

void hazard_part(struct job *j, struct buffer *b)
{
    struct work *w = &j->work;
    unsigned at = 0;
    while (at < w->use_count && w->uses[at].buffer != b) {
        at++;
    }
    if (at == w->use_count) {
        return;
    }
    if (only_reads(&w->uses[at])) {
        reader_remove(b, j);
    }
    w->use_count--;
    memmove(&w->uses[at], &w->uses[at + 1], (w->use_count - at) * sizeof w->uses[0]);
    b->writer = b->writer == j ? NULL : b->writer;
    b->users--;
}

static bool reads(const struct job *j, const struct buffer *b)
{
    const struct buffer_use *u = b->readers;
    while (u != NULL && u->job != j) {
        u = u->next;
    }
    return u != NULL;
}

/* A reader that was displaced is one again. */
static void reader_back(struct job *j, struct buffer *b)
{
    struct buffer_use *u = b->displaced;
    b->displaced = u->next;
    *u = (struct buffer_use){.job = j, .next = b->readers};
    b->readers = u;
}

/* Who is before `j` for one buffer's sake, is among the last ones to use it again. One that is
 * before `j` for another buffer's sake may have been handed back before. */
static void hand_back_one(struct job *pred, struct buffer *b)
{
    for (unsigned i = 0; i < pred->work.use_count; i++) {
        const struct work_use *use = &pred->work.uses[i];
        if (use->buffer != b) {
            continue;
        }
        if (!only_reads(use)) {
            b->writer = b->writer == NULL || b->writer->id < pred->id ? pred : b->writer;
        } else if (!reads(pred, b)) {
            reader_back(pred, b);
        }
    }
}

/* Those before `j`, and before the hubs among them, which may not use the buffer themselves. */
static void hand_back(struct job *j, struct buffer *b)
{
    struct job *last = j;
    j->walk_next = NULL;
    for (const struct job *at = j; at != NULL; at = at->walk_next) {
        for (const struct job_edge *x = at->preds; x != NULL; x = x->next_pred) {
            hand_back_one(x->pred, b);
            if (x->pred->hub && !x->pred->walked) {
                x->pred->walked = true;
                x->pred->walk_next = NULL;
                last->walk_next = x->pred;
                last = x->pred;
            }
        }
    }
    for (struct job *at = j; at != NULL; at = at->walk_next) {
        at->walked = false;
    }
}

/* Each successor waits for each predecessor. false: not all of them do. */
static bool bequeath_each(struct job *j)
{
    bool ok = true;
    for (struct job_edge *x = j->preds; x != NULL; x = x->next_pred) {
        for (struct job_edge *y = j->succs; ok && y != NULL; y = y->next_succ) {
            ok = edge_add(x->pred, y->succ);
        }
    }
    return ok;
}

/* Its predecessors are the hub's. */
static void move_preds(struct job *j, struct job *hub)
{
    while (j->preds != NULL) {
        struct job_edge *x = j->preds;
        j->preds = x->next_pred;
        if (x->pred == hub || edge_exists(x->pred, hub)) {
            unlink_succ(x);
            free(x);
        } else {
            x->succ = hub;
            x->next_pred = hub->preds;
            hub->preds = x;
        }
    }
}

static void move_succs(struct job *j, struct job *hub)
{
    while (j->succs != NULL) {
        struct job_edge *x = j->succs;
        j->succs = x->next_succ;
        if (x->succ == hub || edge_exists(hub, x->succ)) {
            unlink_pred(x);
            free(x);
        } else {
            x->pred = hub;
            x->next_succ = hub->succs;
            hub->succs = x;
        }
    }
}

static struct job *oldest_succ(const struct job *j)
{
    struct job *oldest = j->succs->succ;
    for (const struct job_edge *x = j->succs; x != NULL; x = x->next_succ) {
        oldest = x->succ->id < oldest->id ? x->succ : oldest;
    }
    return oldest;
}

/* Are there so few that each pair may have an edge? Where one side is a single job, there are as
 * many as the job has itself. */
static bool pairs_fit(const struct job *j)
{
    unsigned before = 0;
    unsigned behind = 0;
    for (const struct job_edge *x = j->preds; x != NULL; x = x->next_pred) {
        before++;
    }
    for (const struct job_edge *x = j->succs; x != NULL; x = x->next_succ) {
        behind++;
    }
    return before > 1 && behind > 1 && (uint64_t)before * behind <= BEQUEST_MAX;
}

/* One that ends before its predecessors (cancelled, say) stands between them and its successors no
 * more: these wait for those from now on. Where there are too many pairs, or no memory for them,
 * with the edges that it has: the oldest successor waits for all before, and the others for that
 * one. */
static void bequeath(struct job *j)
{
    if (j->preds == NULL || j->succs == NULL || (pairs_fit(j) && bequeath_each(j))) {
        return;
    }
    bool single = j->preds->next_pred == NULL;
    struct job *hub = single ? j->preds->pred : oldest_succ(j);
    hub->hub = hub->hub || !single;
    move_preds(j, hub);
    move_succs(j, hub);
}

void hazard_leave(struct job *j)
{
    parts_leave(j);
    for (unsigned i = 0; i < j->work.use_count; i++) {
        struct buffer *b = j->work.uses[i].buffer;
        b->users--;
        if (b->writer == j) {
            b->writer = NULL;
            hand_back(j, b);
        }
    }
    readers_remove(j, j->work.use_count);
    bequeath(j);
    drop_preds(j);
    drop_succs(j);
}

void hazard_forget(struct job *j)
{
    readers_remove(j, j->work.use_count);
    parts_leave(j);
    drop_preds(j);
    drop_succs(j);
}

bool hazard_after(struct job *pred, struct job *succ)
{
    return edge_add(pred, succ);
}

bool hazard_clear(const struct job *j)
{
    unsigned in_flight = 0;
    for (const struct job_edge *x = j->preds; x != NULL; x = x->next_pred) {
        const struct job *pred = x->pred;
        bool there = (pred->state == JOB_DISPATCHED || pred->state == JOB_RUNNING) &&
                     pred->device == j->device && !j->alone;
        if (!there || ++in_flight > HAZARD_AFTER_MAX) {
            return false;
        }
    }
    return true;
}
