#include "daemon/front/sched/hazard.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/shape.h"
#include "daemon/front/model/buffer.h"
#include "daemon/front/model/device.h"
#include "daemon/front/model/job.h"
#include "daemon/front/sched/hazard_parts.h"

/* One writer, or all readers between two writers. */
struct hazard_group {
    struct buffer *buffer;
    struct hazard_group *prev, *next; /* in the buffer's line, oldest first */
    struct hazard_group *into;        /* group that it was merged into; then only `refs` is valid */
    unsigned refs;                    /* uses and merged groups that point here */
    struct buffer_use *members;
    unsigned count;
    bool writes;
    bool urgent;      /* a member is or was urgent */
    int64_t earliest; /* bound: no member has an earlier rank */
    int64_t latest;   /* bound: no member has a later rank */
    int64_t wanted;   /* latest rank that jobs behind allow its members; INT64_MAX: any */
    bool wanted_urgent;
    bool listed;                   /* in hazards->unchecked */
    struct buffer_use *next_check; /* the next member to check; NULL: all are checked */
    struct hazard_group *unchecked_prev, *unchecked_next;
};

static bool only_reads(const struct work_use *use)
{
    return (use->access & ACCESS_OUT) == 0;
}

/* The group of a use. Merging puts the smaller group into the larger, so the chain has O(log n)
 * links. */
static struct hazard_group *group_of(const struct buffer_use *u)
{
    struct hazard_group *g = u->group;
    while (g->into != NULL) {
        g = g->into;
    }
    return g;
}

static struct hazard_group *before(const struct hazard_group *g)
{
    return g == g->buffer->groups ? NULL : g->prev;
}

static void unref(struct hazard_group *g)
{
    while (g != NULL && --g->refs == 0) {
        struct hazard_group *into = g->into;
        free(g);
        g = into;
    }
}

/* ---- members to check ------------------------------------------------------------------------ */

static void drop_checks(struct hazards *h, struct hazard_group *g)
{
    if (g->listed) {
        g->listed = false;
        g->next_check = NULL;
        DL_DELETE2(h->unchecked, g, unchecked_prev, unchecked_next);
    }
}

static void check_from(struct hazards *h, struct hazard_group *g, struct buffer_use *from)
{
    g->next_check = from;
    if (!g->listed) {
        g->listed = true;
        DL_APPEND2(h->unchecked, g, unchecked_prev, unchecked_next);
    }
}

static void want(struct hazards *h, struct hazard_group *g, int64_t rank, bool urgent)
{
    if (g != NULL && rank < g->latest && rank < g->wanted) {
        g->wanted = rank;
        g->wanted_urgent = g->wanted_urgent || urgent;
        check_from(h, g, g->members);
    }
}

/* This group waits for the group before it, which must therefore not rank later. */
static void want_before(struct hazards *h, struct hazard_group *g)
{
    want(h, before(g), g->earliest, g->urgent);
}

void hazard_want(struct hazards *h, const struct job *j)
{
    for (unsigned i = 0; i < j->work.use_count; i++) {
        struct hazard_group *g = group_of(j->work.uses[i].entry);
        g->earliest = j->sched.rank < g->earliest ? j->sched.rank : g->earliest;
        g->urgent = g->urgent || j->sched.urgent;
        want_before(h, g);
    }
}

/* Jobs behind a group of more than HAZARD_AFTER_MAX members cannot be sent. They are checked when
 * enough members have left. */
static void check_behind(struct hazards *h, const struct hazard_group *g)
{
    if (g->next != NULL && g->count <= HAZARD_AFTER_MAX) {
        check_from(h, g->next, g->next->members);
    }
}

void hazard_moved(struct hazards *h, const struct job *j)
{
    for (unsigned i = 0; i < j->work.use_count; i++) {
        check_behind(h, group_of(j->work.uses[i].entry));
    }
}

bool hazard_next(struct hazards *h, struct hazard_check *ret_check)
{
    while (h->unchecked != NULL) {
        struct hazard_group *g = h->unchecked;
        struct buffer_use *u = g->next_check;
        if (u == NULL) {
            drop_checks(h, g);
            continue;
        }
        g->next_check = u->next;
        *ret_check =
            (struct hazard_check){.job = u->job, .rank = g->wanted, .urgent = g->wanted_urgent};
        return true;
    }
    return false;
}

/* ---- enter ----------------------------------------------------------------------------------- */

static struct hazard_group *group_create(struct buffer *b, bool writes)
{
    struct hazard_group *g = malloc(sizeof *g);
    if (g != NULL) {
        *g = (struct hazard_group){.buffer = b,
                                   .writes = writes,
                                   .earliest = INT64_MAX,
                                   .latest = INT64_MIN,
                                   .wanted = INT64_MAX};
    }
    return g;
}

/* Does everything that can fail. entry_link then makes the entry visible. */
static bool entry_create(struct job *j, unsigned index)
{
    struct work_use *use = &j->work.uses[index];
    struct buffer *b = use->buffer;
    struct hazard_group *last = b->groups != NULL ? b->groups->prev : NULL;
    bool writes = !only_reads(use);
    bool joins = !writes && last != NULL && !last->writes;
    struct buffer_use *u = malloc(sizeof *u);
    struct hazard_group *g = joins ? last : group_create(b, writes);
    if (u == NULL || g == NULL) {
        free(u);
        free(joins ? NULL : g);
        return false;
    }
    *u = (struct buffer_use){.job = j, .index = index, .group = g};
    g->refs++;
    use->entry = u;
    return true;
}

static void entry_discard(struct work_use *use)
{
    unref(use->entry->group);
    free(use->entry);
    use->entry = NULL;
}

static void note_place(struct buffer *b, const struct job *j)
{
    b->roams = b->roams || (j->device != NULL && j->device->index != b->device);
}

static void entry_link(struct work_use *use)
{
    struct buffer *b = use->buffer;
    struct buffer_use *u = use->entry;
    struct hazard_group *g = u->group;
    const struct job *j = u->job;
    if (g->count == 0) {
        DL_APPEND(b->groups, g);
    }
    DL_APPEND(g->members, u);
    g->count++;
    g->earliest = j->sched.rank < g->earliest ? j->sched.rank : g->earliest;
    g->latest = j->sched.rank > g->latest ? j->sched.rank : g->latest;
    g->urgent = g->urgent || j->sched.urgent;
    b->writers += g->writes;
    b->users++;
    note_place(b, j);
}

/* Everything that can fail comes first, so that a failure changes nothing. */
int hazard_enter(struct job *j, struct err *e)
{
    bool parts = j->work.arena_count > 0;
    int rc = parts ? parts_check(j, e) : 0;
    if (rc != 0) {
        return rc;
    }
    bool ok = !parts || edges_for_parts(j);
    unsigned made = 0;
    while (ok && made < j->work.use_count) {
        ok = entry_create(j, made);
        made += ok;
    }
    if (!ok) {
        edges_drop(j);
        for (unsigned i = 0; i < made; i++) {
            entry_discard(&j->work.uses[i]);
        }
        return err_set(e, ERR_NOMEM, "no memory to order jobs by %u buffers", j->work.use_count);
    }
    if (parts) {
        parts_enter(j);
    }
    for (unsigned i = 0; i < j->work.use_count; i++) {
        entry_link(&j->work.uses[i]);
    }
    return 0;
}

void hazard_bound(const struct job *j)
{
    for (unsigned i = 0; i < j->work.use_count; i++) {
        note_place(j->work.uses[i].buffer, j);
    }
}

bool hazard_join(struct job *j, struct buffer *b)
{
    struct work_use *use = work_use_of(&j->work, b);
    if (use == NULL) {
        return false;
    }
    use->access = ACCESS_IN;
    if (!entry_create(j, (unsigned)(use - j->work.uses))) {
        j->work.use_count--; /* work_use_of added it as the last one */
        return false;
    }
    entry_link(use);
    return true;
}

bool hazard_after(struct job *pred, struct job *succ)
{
    return edge_add(pred, succ);
}

/* ---- leave ----------------------------------------------------------------------------------- */

static void replace(struct hazard_group *old, struct hazard_group *with)
{
    struct buffer *b = old->buffer;
    DL_PREPEND_ELEM(b->groups, old, with);
    DL_DELETE(b->groups, old);
}

/* Merges two groups of readers after the writer between them has left. Checks continue at the first
 * unchecked member of the older group, or else with the newer group. */
static void merge(struct hazards *h, struct hazard_group *p, struct hazard_group *n)
{
    struct buffer *b = p->buffer;
    struct buffer_use *from = p->listed && p->next_check != NULL ? p->next_check : n->members;
    struct buffer_use *members = p->members;
    struct hazard_group *to = p->refs >= n->refs ? p : n;
    struct hazard_group *merged = to == p ? n : p;
    drop_checks(h, p);
    drop_checks(h, n);
    DL_DELETE(b->groups, n);
    if (to == n) {
        replace(p, n);
    }
    DL_CONCAT(members, n->members);
    to->members = members;
    to->count = p->count + n->count;
    to->earliest = p->earliest < n->earliest ? p->earliest : n->earliest;
    to->latest = p->latest > n->latest ? p->latest : n->latest;
    to->wanted = p->wanted < n->wanted ? p->wanted : n->wanted;
    to->urgent = p->urgent || n->urgent;
    to->wanted_urgent = p->wanted_urgent || n->wanted_urgent;
    merged->members = NULL;
    merged->count = 0;
    merged->into = to;
    to->refs++;
    check_from(h, to, from);
    want_before(h, to);
    if (to->next != NULL) {
        want_before(h, to->next);
    }
}

/* The last member of the group has left. */
static void group_leave(struct hazards *h, struct hazard_group *g)
{
    struct buffer *b = g->buffer;
    struct hazard_group *p = before(g);
    struct hazard_group *n = g->next;
    drop_checks(h, g);
    DL_DELETE(b->groups, g);
    if (n != NULL && p != NULL && !p->writes && !n->writes) {
        merge(h, p, n);
    } else if (n != NULL) {
        check_from(h, n, n->members);
        want_before(h, n);
    }
}

static void entry_leave(struct hazards *h, struct work_use *use)
{
    struct buffer_use *u = use->entry;
    if (u == NULL) {
        return; /* hazard_forget removed it */
    }
    struct hazard_group *g = group_of(u);
    if (h->walk == u) {
        h->walk = hazard_behind(u);
    }
    g->next_check = g->next_check == u ? u->next : g->next_check;
    DL_DELETE(g->members, u);
    g->count--;
    use->buffer->writers -= g->writes;
    if (g->count == 0) {
        group_leave(h, g);
    } else {
        check_behind(h, g);
    }
    if (use->buffer->groups == NULL) {
        use->buffer->roams = use->buffer->move != MOVE_NONE;
    }
    entry_discard(use);
}

void hazard_part(struct hazards *h, struct job *j, struct buffer *b)
{
    struct work *w = &j->work;
    unsigned at = 0;
    while (at < w->use_count && w->uses[at].buffer != b) {
        at++;
    }
    if (at == w->use_count) {
        return;
    }
    entry_leave(h, &w->uses[at]);
    b->users--;
    w->use_count--;
    memmove(&w->uses[at], &w->uses[at + 1], (w->use_count - at) * sizeof w->uses[0]);
    for (unsigned i = at; i < w->use_count; i++) {
        w->uses[i].entry->index = i;
    }
}

static void leave_edges_and_parts(struct job *j)
{
    if (j->work.arena_count > 0) {
        parts_leave(j);
    }
    if (j->order.preds != NULL || j->order.succs != NULL) {
        edges_drop(j);
    }
}

void hazard_leave(struct hazards *h, struct job *j)
{
    for (unsigned i = 0; i < j->work.use_count; i++) {
        entry_leave(h, &j->work.uses[i]);
        j->work.uses[i].buffer->users--;
    }
    if (j->order.preds != NULL && j->order.succs != NULL) {
        edges_bequeath(j);
    }
    leave_edges_and_parts(j);
}

void hazard_forget(struct hazards *h, struct job *j)
{
    for (unsigned i = 0; i < j->work.use_count; i++) {
        entry_leave(h, &j->work.uses[i]);
    }
    leave_edges_and_parts(j);
}

/* ---- predecessors and successors ------------------------------------------------------------- */

static bool add(struct hazard_preds *p, struct job *pred)
{
    if (pred->order.marked) {
        return true;
    }
    if (p->count == HAZARD_AFTER_MAX) {
        return false;
    }
    pred->order.marked = true;
    p->job[p->count++] = pred;
    return true;
}

bool hazard_preds(const struct job *j, struct hazard_preds *ret_preds)
{
    struct hazard_preds *p = ret_preds;
    bool fit = true;
    p->count = 0;
    for (const struct job_edge *x = j->order.preds; fit && x != NULL; x = x->next_pred) {
        fit = add(p, x->pred);
    }
    for (unsigned i = 0; fit && i < j->work.use_count; i++) {
        const struct buffer_use *u = j->work.uses[i].entry;
        const struct hazard_group *g = u != NULL ? before(group_of(u)) : NULL;
        fit = g == NULL || g->count <= HAZARD_AFTER_MAX;
        for (const struct buffer_use *m = g != NULL ? g->members : NULL; fit && m != NULL;
             m = m->next) {
            fit = add(p, m->job);
        }
    }
    for (unsigned i = 0; i < p->count; i++) {
        p->job[i]->order.marked = false;
    }
    return fit;
}

static bool in_flight_with(const struct job *pred, const struct job *j)
{
    return (pred->state == JOB_DISPATCHED || pred->state == JOB_RUNNING) &&
           pred->device == j->device && j->trust == TRUST_SHARED;
}

/* A quick test before hazard_preds: in most cases the first predecessor decides. */
static bool blocked(const struct job *j, const struct work_use *use)
{
    const struct hazard_group *g = before(group_of(use->entry));
    return g != NULL && (g->count > HAZARD_AFTER_MAX || !in_flight_with(g->members->job, j));
}

bool hazard_clear(const struct job *j)
{
    struct hazard_preds p;
    for (unsigned i = 0; i < j->work.use_count; i++) {
        if (blocked(j, &j->work.uses[i])) {
            return false;
        }
    }
    if (!hazard_preds(j, &p)) {
        return false;
    }
    for (unsigned i = 0; i < p.count; i++) {
        if (!in_flight_with(p.job[i], j)) {
            return false;
        }
    }
    return true;
}

struct buffer_use *hazard_first(const struct buffer *b)
{
    return b->groups != NULL ? b->groups->members : NULL;
}

struct buffer_use *hazard_last(const struct buffer *b)
{
    return b->groups != NULL ? b->groups->prev->members->prev : NULL;
}

struct buffer_use *hazard_behind(const struct buffer_use *u)
{
    if (u->next != NULL) {
        return u->next;
    }
    const struct hazard_group *n = group_of(u)->next;
    return n != NULL ? n->members : NULL;
}

struct buffer_use *hazard_before(const struct buffer_use *u)
{
    const struct hazard_group *p = before(group_of(u));
    return p != NULL ? p->members->prev : NULL;
}

struct buffer_use *hazard_ahead(const struct buffer_use *u)
{
    return u != group_of(u)->members ? u->prev : hazard_before(u);
}

bool hazard_beside(const struct buffer_use *u, const struct buffer_use *v)
{
    return group_of(u) == group_of(v);
}

struct buffer_use *hazard_writer_before(const struct buffer_use *u)
{
    const struct hazard_group *g = before(group_of(u));
    while (g != NULL && !g->writes) {
        g = before(g);
    }
    return g != NULL ? g->members : NULL;
}
