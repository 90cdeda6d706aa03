/*
 * Clients do not pay for each other: a tenant that asks for many tables delays another one by the
 * table under way and one more, and no request takes the work of more than a turn. A worker that is
 * to end is asked for no buffers, and no worker twice for one that it has yet to make.
 */
#include "tests/sim/front/rules/sim_fronts.h"

#include <inttypes.h>
#include <string.h>

#include "daemon/front/model/crowd.h"
#include "daemon/front/model/op.h"
#include "daemon/front/model/sessions.h"
#include "daemon/front/sched/hazard.h"
#include "tests/sim/front/rules/sim_moves.h"

#define WAITERS 512u
#define OTHERS  8u /* tenants; what further ones get is not counted */
#define PASSES  2u

/* A table that waits, and how many tables others got since. */
struct waiter {
    uint64_t parcel; /* 0: none */
    uint64_t era;
    bool only; /* its tenant had asked for no other */
    struct {
        uint32_t tenant;
        unsigned count;
    } other[OTHERS];
    unsigned others;
};

static struct {
    struct waiter waiter[WAITERS];
    bool crowded;
    uint64_t kept; /* answers, before the request */
    bool apart;    /* the request has copies only, between buffers on two devices */
} turns;

void turns_begin(void)
{
    memset(&turns, 0, sizeof turns);
}

/* Tables that take turns: they have rows by elements. */
static bool is_long(const struct sim_request *q)
{
    static const char *const names[] = {"jobs",    "timeline", "sessions", "tenants", "accounts",
                                        "buffers", "kernels",  "program",  "trace"};
    struct msg_query m;
    bool found = false;
    if (q->kind != MSG_KIND_QUERY ||
        proto_decode(&schema_msg_query, bytes_of(q->data, q->size), &m, NULL) != 0) {
        return false;
    }
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        found = found || bytes_equal_str(m.what, names[i]);
    }
    return found;
}

static bool waits(const struct sim *s, const struct waiter *w)
{
    return w->parcel != 0 && w->era == s->era && w->parcel <= s->parcels &&
           !s->parcel[w->parcel].over;
}

static uint32_t tenant_of(const struct sim *s, const struct waiter *w)
{
    return s->parcel[w->parcel].request->client->tenant;
}

/* Answers that the session keeps; 0: there is none. */
static uint64_t kept(const struct sim *s, const struct sim_parcel *p)
{
    const struct session *x = s->f != NULL ? sessions_find(s->f, p->pipe) : NULL;
    return x != NULL ? x->ops.count : 0;
}

/* It comes again. */
static bool kept_already(const struct sim *s, const struct sim_parcel *p)
{
    struct session *x = s->f != NULL ? sessions_find(s->f, p->pipe) : NULL;
    return x == NULL || op_find(x, p->request->seq) != NULL;
}

/* Where it will be when all jobs of now have run. */
static unsigned place_of(const struct buffer *b)
{
    const struct buffer_use *last = b->roams ? hazard_last(b) : NULL;
    return last != NULL && last->job->device != NULL ? last->job->device->index : b->device;
}

static bool copies_apart(const struct sim *s, const struct sim_job *j)
{
    bool apart = false;
    bool only = j != NULL && j->steps > 0;
    for (unsigned i = 0; only && i < j->steps; i++) {
        const struct sim_step *t = &j->step[i];
        only = t->op == OP_COPY && t->to != NULL && t->from != NULL;
        const struct buffer *to = only ? idmap_get(&s->f->buffers, t->to->handle) : NULL;
        const struct buffer *from = only ? idmap_get(&s->f->buffers, t->from->handle) : NULL;
        apart = apart || (to != NULL && from != NULL && place_of(to) != place_of(from));
    }
    return only && apart;
}

/* A copy is how a client puts content on another device: no buffer moves for it. */
static void check_apart(struct sim *s, const struct sim_parcel *p)
{
    struct session *x = sessions_find(s->f, p->pipe);
    const struct op *o = turns.apart && x != NULL ? op_find(x, p->request->seq) : NULL;
    if (o != NULL && o->job != 0 && !memory_failed()) {
        sim_fail(s, "moves: request %" PRIu64 " of client %u copies between devices, and is a job",
                 p->request->seq, p->request->client->index);
    }
}

void turns_before(struct sim *s, const struct sim_parcel *p)
{
    struct waiter *room = NULL;
    turns.kept = kept(s, p);
    turns.apart = !kept_already(s, p) && copies_apart(s, p->request->job);
    if (!is_long(p->request)) {
        return;
    }
    bool only = true;
    for (unsigned i = 0; i < WAITERS; i++) {
        struct waiter *w = &turns.waiter[i];
        bool there = waits(s, w);
        room = there ? room : w;
        only = only && !(there && tenant_of(s, w) == p->request->client->tenant);
    }
    turns.crowded = turns.crowded || room == NULL; /* some are not known */
    if (room != NULL) {
        *room = (struct waiter){.parcel = (uint64_t)(p - s->parcel), .era = s->era};
        room->only = only && !turns.crowded;
    }
}

void turns_after(struct sim *s, const struct sim_parcel *p)
{
    uint64_t now = kept(s, p);
    check_apart(s, p);
    if (now > 0 && now + TURN_UNITS < turns.kept) {
        sim_fail(s, "turns: a request of client %u takes %" PRIu64 " answers away at once",
                 p->request->client->index, turns.kept - now);
    }
}

/* Another tenant gets a table. */
static void pass(struct sim *s, struct waiter *w, uint32_t tenant)
{
    unsigned i = 0;
    while (i < w->others && w->other[i].tenant != tenant) {
        i++;
    }
    if (i == OTHERS) {
        return;
    }
    w->others = i == w->others ? i + 1 : w->others;
    w->other[i].tenant = tenant;
    if (++w->other[i].count > PASSES) {
        sim_fail(s, "turns: the table of client %u waits, and one tenant gets %u tables meanwhile",
                 s->parcel[w->parcel].request->client->index, w->other[i].count);
    }
}

void turns_answer(struct sim *s, const struct sim_parcel *p, struct bytes message)
{
    uint32_t tenant = p->request->client->tenant;
    if (proto_kind(message) != MSG_KIND_TABLE || !is_long(p->request)) {
        return;
    }
    for (unsigned i = 0; i < WAITERS; i++) {
        struct waiter *w = &turns.waiter[i];
        if (w->only && waits(s, w) && tenant_of(s, w) != tenant) {
            pass(s, w, tenant);
        }
    }
}

/* A client of a crowd, of whose jobs as many were just refused as take the front from the shortest
 * pause to a longer one, is not asked to come back after the shortest. */
void turns_crowd(struct sim *s, const struct sim_client *c, uint64_t pause_ns)
{
    unsigned user = c->uid == SIM_STRANGER ? 0 : c->tenant < 1000 ? 1 : 2 + c->tenant - 1000;
    struct sim_crowd *x = &s->crowd[user];
    if (x->era != s->era || s->now_ns - x->since_ns >= CROWD_PAUSE_NS) {
        *x = (struct sim_crowd){.since_ns = s->now_ns, .era = s->era};
    }
    x->count++;
    if (x->count > 3 * CROWD_FEW && pause_ns == CROWD_PAUSE_NS) {
        sim_fail(s,
                 "crowd: %u jobs of user %u are refused at once, and may come again in %" PRIu64
                 " ms",
                 x->count, c->tenant, pause_ns / NS_PER_MS);
    }
}

/* Other clients, kernels or processes have what leads to where it is. */
static void check_move(struct sim *s, const struct msg_f_buffer_seal *m)
{
    const struct buffer *b = idmap_get(&s->f->buffers, m->id);
    bool known = b != NULL && (b->name[0] != '\0' || b->openers > 0 || b->variable != NULL);
    if (known && b->move != MOVE_NONE) {
        sim_fail(s, "frame: buffer %#" PRIx64 " moves, and others know it where it is", m->id);
    }
}

/* A worker that has yet to open its device is asked for buffers when it has. One whose buffers go
 * to the host, as it is to end, is asked for none. */
static void check_asked(struct sim *s, const struct device *d, struct sim_worker *x, uint64_t id)
{
    bool runs = x->state == WORKER_RUNS && !x->lied;
    bool leaves = d->state == DEVICE_RESTING || d->killed_ns != 0 || device_yields(d);
    if (runs && (!x->ready || moves_has(x, id))) {
        sim_fail(s, "frame: worker %" PRIu64 " is asked for buffer %#" PRIx64 ", %s", x->id, id,
                 x->ready ? "which it has" : "and has not opened its device");
    }
    if (leaves) {
        sim_fail(s, "frame: the worker of device %u is to end, and is asked for a buffer",
                 d->index);
    }
}

void frames_sent(struct sim *s, const struct device *d, struct sim_worker *x,
                 const struct schema *schema, const void *msg)
{
    bool asks = schema == &schema_msg_f_buffer_create || schema == &schema_msg_f_buffer_restore;
    if (asks && !memory_failed()) {
        check_asked(s, d, x, *(const uint64_t *)msg);
    }
    if (schema == &schema_msg_f_buffer_seal) {
        check_move(s, msg);
    }
}

/* A buffer that the worker has yet to make is asked for once. */
void frames_once(struct sim *s, const struct sim_worker *x, const struct sim_inbox *last)
{
    bool asks =
        last->schema == &schema_msg_f_buffer_create || last->schema == &schema_msg_f_buffer_restore;
    for (const struct sim_inbox *in = x->inbox; in != NULL && asks && !memory_failed();
         in = in->next) {
        if (in->schema == last->schema && in->size == last->size && !x->lied &&
            memcmp(in->data, last->data, in->size) == 0) {
            sim_fail(s, "frame: worker %" PRIu64 " is asked for a buffer twice", x->id);
        }
    }
}
