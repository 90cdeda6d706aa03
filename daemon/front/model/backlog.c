#include "daemon/front/model/backlog.h"

#include <stdlib.h>
#include <utlist.h>

#include "common/saturate.h"

/* Widths of slots. A level takes deadlines that are less than DUES_SLOTS - 1 of its slots away. */
static const uint64_t width_ns[DUES_LEVELS] = {NS_PER_MS, 8 * NS_PER_MS, 64 * NS_PER_MS,
                                               512 * NS_PER_MS, 4096 * NS_PER_MS};

static unsigned level_of(uint64_t due_ns, uint64_t now_ns)
{
    uint64_t away = sat_sub(due_ns, now_ns);
    unsigned level = 0;
    while (level < DUES_LEVELS - 1 && away / width_ns[level] >= DUES_SLOTS - 1) {
        level++;
    }
    return level;
}

static uint64_t begin_of(unsigned level, const struct due_slot *s)
{
    return s->index * width_ns[level];
}

/* false: it has no slot. */
static bool add_due(struct dues *d, struct backlog_place *p, uint64_t now_ns)
{
    unsigned level = level_of(p->due_ns, now_ns);
    uint64_t index = p->due_ns / width_ns[level];
    unsigned at = (unsigned)(index % DUES_SLOTS);
    struct due_slot *s = &d->slot[level][at];
    if (s->jobs > 0 && s->index != index) {
        return false; /* the front is late to end jobs whose deadlines are long past */
    }
    s->index = index;
    s->jobs++;
    s->ns += p->ns;
    DL_APPEND(s->first, p);
    d->used[level] |= UINT64_C(1) << at;
    p->level = (uint8_t)level;
    p->slot = (uint8_t)at;
    return true;
}

static void drop_due(struct dues *d, struct backlog_place *p)
{
    struct due_slot *s = &d->slot[p->level][p->slot];
    s->ns -= p->ns;
    DL_DELETE(s->first, p);
    if (--s->jobs == 0) {
        d->used[p->level] &= ~(UINT64_C(1) << p->slot);
    }
}

void backlog_add(struct backlog *b, struct backlog_place *p, uint64_t due_ns, uint64_t now_ns,
                 uint64_t ns, bool sure)
{
    *p = (struct backlog_place){
        .in = true, .sure = sure, .ns = ns, .before = b->came, .due_ns = due_ns};
    if (due_ns != NS_NEVER && b->dues == NULL) {
        b->dues = calloc(1, sizeof *b->dues);
    }
    p->due = due_ns != NS_NEVER && b->dues != NULL && add_due(b->dues, p, now_ns);
    b->came += p->due ? 0 : ns;
    b->jobs++;
    b->unsure += !sure;
    b->ns += ns;
}

void backlog_drop(struct backlog *b, struct backlog_place *p)
{
    if (!p->in) {
        return;
    }
    if (p->due) {
        drop_due(b->dues, p);
    } else {
        b->gone += p->ns;
    }
    b->jobs--;
    b->unsure -= !p->sure;
    b->ns -= p->ns;
    *p = (struct backlog_place){.in = false};
}

/* Of all slots that begin by then. */
static uint64_t due_before(const struct dues *d, uint64_t due_ns)
{
    uint64_t sum = 0;
    for (unsigned level = 0; d != NULL && level < DUES_LEVELS; level++) {
        for (uint64_t left = d->used[level]; left != 0; left &= left - 1) {
            const struct due_slot *s = &d->slot[level][__builtin_ctzll(left)];
            sum += begin_of(level, s) <= due_ns ? s->ns : 0;
        }
    }
    return sum;
}

uint64_t backlog_before_new(const struct backlog *b, uint64_t due_ns)
{
    return due_ns == NS_NEVER ? b->ns : due_before(b->dues, due_ns);
}

uint64_t backlog_before(const struct backlog *b, const struct backlog_place *p, uint64_t due_ns)
{
    uint64_t due = due_before(b->dues, p->due ? due_ns : NS_NEVER);
    uint64_t plain = p->due ? 0 : sat_sub(p->before, b->gone);
    return sat_sub(due, p->due ? p->ns : 0) + plain;
}

/* A walk over the slots of one level, earliest first. */
struct walk {
    uint64_t left; /* a bit for each slot that is not visited, counted from `first` */
    unsigned first;
};

static struct walk walk_begin(const struct dues *d, unsigned level, uint64_t now_ns)
{
    unsigned first = (unsigned)(now_ns / width_ns[level] % DUES_SLOTS);
    uint64_t used = d->used[level];
    return (struct walk){.left = first == 0 ? used : used >> first | used << (DUES_SLOTS - first),
                         .first = first};
}

/* NULL: all were visited. */
static struct due_slot *walk_at(struct dues *d, unsigned level, const struct walk *w)
{
    unsigned at = w->left != 0 ? (w->first + (unsigned)__builtin_ctzll(w->left)) % DUES_SLOTS : 0;
    return w->left != 0 ? &d->slot[level][at] : NULL;
}

static void walk_on(struct walk *w)
{
    w->left &= w->left - 1;
}

/* The jobs of a slot that is near go to finer ones. */
static void refine(struct backlog *b, struct due_slot *s, uint64_t now_ns)
{
    struct backlog_place *p = s->first;
    while (p != NULL) {
        struct backlog_place *next = p->next;
        drop_due(b->dues, p);
        p->due = add_due(b->dues, p, now_ns);
        p->before = b->came;
        b->came += p->due ? 0 : p->ns;
        p = next;
    }
}

void backlog_pass(struct backlog *b, uint64_t now_ns)
{
    for (unsigned level = 1; b->dues != NULL && level < DUES_LEVELS; level++) {
        uint64_t near = now_ns + (DUES_SLOTS - 2) * width_ns[level - 1] - width_ns[level];
        struct walk w = walk_begin(b->dues, level, now_ns);
        struct due_slot *s = walk_at(b->dues, level, &w);
        while (s != NULL && begin_of(level, s) < near) {
            walk_on(&w);
            refine(b, s, now_ns);
            s = walk_at(b->dues, level, &w);
        }
    }
}

/* The level whose next slot begins first; DUES_LEVELS: none has one. */
static unsigned level_next(struct dues *d, const struct walk *walk)
{
    unsigned best = DUES_LEVELS;
    uint64_t first = NS_NEVER;
    for (unsigned level = 0; level < DUES_LEVELS; level++) {
        const struct due_slot *s = walk_at(d, level, &walk[level]);
        if (s != NULL && begin_of(level, s) < first) {
            first = begin_of(level, s);
            best = level;
        }
    }
    return best;
}

/* Others go beside the first jobs as much as beside the last: what they have is not spread over all
 * jobs. */
static double takes(const struct backlog_pace *p, double own_ns)
{
    double more_ns = own_ns * (p->times - 1);
    double ns = own_ns + (more_ns < p->others_ns ? more_ns : p->others_ns);
    double least_ns = own_ns * p->least;
    return (ns > least_ns ? ns : least_ns) * p->part;
}

bool backlog_fits(const struct backlog *b, uint64_t due_ns, uint64_t ns, uint64_t now_ns,
                  uint64_t begin_ns, const struct backlog_pace *pace, uint64_t *ret_late)
{
    struct walk walk[DUES_LEVELS];
    struct dues *d = b->dues;
    uint64_t before = ns;
    unsigned level = 0;
    *ret_late = NS_NEVER;
    for (unsigned i = 0; d != NULL && i < DUES_LEVELS; i++) {
        walk[i] = walk_begin(d, i, now_ns);
    }
    while (d != NULL && (level = level_next(d, walk)) < DUES_LEVELS) {
        const struct due_slot *s = walk_at(d, level, &walk[level]);
        uint64_t due = begin_of(level, s);
        walk_on(&walk[level]);
        before += s->ns;
        double own_ns = (double)before - (double)s->ns / (double)s->jobs;
        uint64_t last = begin_ns + (uint64_t)takes(pace, own_ns);
        if (due > due_ns && due > now_ns && last > due) {
            *ret_late = due;
            return false;
        }
    }
    return true;
}

void backlog_finish(struct backlog *b)
{
    free(b->dues);
    b->dues = NULL;
}
