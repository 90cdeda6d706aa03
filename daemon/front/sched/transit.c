#include "daemon/front/sched/transit.h"

#include "common/saturate.h"
#include "daemon/front/sched/hazard.h"

#define LARGE    ((uint64_t)1 << 20) /* of such a buffer the bytes decide */
#define PART     4                   /* a move counts for so much of the mean */
#define SURE     4u                  /* moves, after which the time counts as known */
#define FIXED_NS 1e6                 /* until something is known */
#define BYTE_NS  1.0

/* ---- what moves took ------------------------------------------------------------------------- */

static void note(double *mean, unsigned *count, double value)
{
    *mean = *count == 0 ? value : *mean + (value - *mean) / PART;
    *count += *count < SURE;
}

static double fixed_of(const struct pace *p)
{
    return p->small > 0 ? p->fixed_ns : FIXED_NS;
}

static void learn(struct pace *p, uint64_t bytes, uint64_t ns)
{
    if (bytes < LARGE) {
        note(&p->fixed_ns, &p->small, (double)ns);
    } else {
        double rest = (double)ns - (p->small > 0 ? p->fixed_ns : 0);
        note(&p->byte_ns, &p->large, (rest > 0 ? rest : 0) / (double)bytes);
    }
}

void transit_left(const struct front *f, const struct buffer *b, uint64_t ns)
{
    learn(&device_base(f->device[b->device])->transit.out, b->bytes, ns);
}

void transit_came(const struct buffer *b, struct device *to, uint64_t ns)
{
    learn(&device_base(to)->transit.in, b->bytes, ns);
}

/* ---- what they will take --------------------------------------------------------------------- */

static struct estimate leg(const struct pace *p, uint64_t bytes)
{
    double byte_ns = p->large > 0 ? p->byte_ns : BYTE_NS;
    double ns = fixed_of(p) + (bytes < LARGE ? 0 : byte_ns * (double)bytes);
    bool sure = (bytes < LARGE ? p->small : p->large) >= SURE;
    return (struct estimate){.ns = (uint64_t)ns, .sure = sure};
}

static struct estimate out_of(const struct buffer *b, struct device *from)
{
    return buffer_restorable(b) ? (struct estimate){.sure = true}
                                : leg(&device_base(from)->transit.out, b->bytes);
}

static struct estimate sum(struct estimate a, struct estimate b)
{
    return (struct estimate){.ns = sat_add(a.ns, b.ns), .sure = a.sure && b.sure};
}

struct estimate transit_cost(const struct buffer *b, struct device *from, struct device *to)
{
    return from == to ? (struct estimate){.sure = true}
                      : sum(out_of(b, from), leg(&device_base(to)->transit.in, b->bytes));
}

/* Of one on its way there. */
static struct estimate rest_of(const struct buffer *b, struct device *from, struct device *to,
                               uint64_t now_ns)
{
    struct estimate in = leg(&device_base(to)->transit.in, b->bytes);
    struct estimate now = b->move == MOVE_COPIES ? out_of(b, from) : in;
    now.ns = sat_sub(now.ns, sat_sub(now_ns, b->move_ns));
    return b->move == MOVE_COPIES ? sum(now, in) : now;
}

/* The device that the buffer comes from: where the use before it is. Not of a reader of the same
 * group there, which it does not wait for: one way brings the buffer to both. NULL: it is not known
 * to go elsewhere before. */
static struct device *left_at(const struct job *j, const struct work_use *u)
{
    const struct buffer_use *x = u->entry != NULL ? hazard_ahead(u->entry) : NULL;
    if (x != NULL && hazard_beside(x, u->entry) && x->job->device == j->device) {
        x = hazard_before(u->entry);
    }
    return x != NULL ? x->job->device : NULL;
}

static struct estimate of_use(const struct front *f, const struct job *j, const struct work_use *u,
                              uint64_t now_ns)
{
    const struct buffer *b = u->buffer;
    struct device *from = f->device[b->device];
    struct device *left = left_at(j, u);
    if (left != NULL) {
        return transit_cost(b, left, j->device);
    }
    bool comes =
        b->move == MOVE_COPIES || (b->move == MOVE_ARRIVES && b->move_to == j->device->index);
    return comes && from != j->device ? rest_of(b, from, j->device, now_ns)
                                      : transit_cost(b, from, j->device);
}

struct estimate transit_of(const struct front *f, const struct job *j, uint64_t now_ns)
{
    struct estimate x = {.sure = true};
    for (unsigned i = 0; i < j->work.use_count && j->device != NULL; i++) {
        const struct work_use *u = &j->work.uses[i];
        const struct buffer *b = u->buffer;
        bool still = b->device == j->device->index && !b->roams; /* mostly so */
        if (!still && (b->flags & BUFFER_FLAG_VARIABLE) == 0) {
            x = sum(x, of_use(f, j, u, now_ns));
        }
    }
    return x;
}

bool transit_began(const struct job *j)
{
    bool all = j->work.use_count > 0;
    for (unsigned i = 0; i < j->work.use_count && all; i++) {
        const struct buffer *b = j->work.uses[i].buffer;
        const struct buffer_use *first = hazard_first(b);
        bool near = first != NULL && first->job->device == j->device;
        bool there = b->device == j->device->index && buffer_state(b) == BUFFER_LIVE;
        all = near && (b->device == j->device->index ? there && b->move == MOVE_NONE
                                                     : b->move != MOVE_NONE);
    }
    return all;
}
