#include "daemon/front/model/op.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/hash.h"
#include "common/steps.h"
#include "daemon/front/model/freelist.h"
#include "daemon/front/model/request.h"

static const unsigned steps[OP_STATES] = {
    [OP_PENDING] = STEP_TO(OP_ANSWERED),
    [OP_ANSWERED] = STEP_TO(OP_IN_RING),
    [OP_IN_RING] = STEP_TO(OP_ANSWERED),
};

void op_step(struct op *o, enum op_state to)
{
    step_check(steps, o->state, to);
    o->state = to;
}

struct op *op_find(struct session *s, uint64_t seq)
{
    struct op *o = NULL;
    if (seq > s->ops.last_seq) { /* the usual case: a new number */
        return NULL;
    }
    HASH_FIND_BYHASHVALUE(hh, s->ops.all, &seq, sizeof seq, hash_number(seq), o);
    bool acked = o != NULL && ((op_answered(o) && op_acked(o)) || op_answered_before(o));
    return acked ? NULL : o;
}

struct op *op_create(struct session *s, uint64_t seq, struct listener_slot *slot)
{
    struct op *o = freelist_take(s->ops.freelist, sizeof *o);
    if (o == NULL) {
        return NULL;
    }
    o->seq = seq;
    o->session = s;
    o->slot = slot;
    HASH_ADD_BYHASHVALUE(hh, s->ops.all, seq, sizeof o->seq, hash_number(seq), o);
    if (!HASH_ENTERED(o->hh)) {
        freelist_give(s->ops.freelist, o);
        return NULL;
    }
    s->ops.count++;
    s->ops.open_count++;
    DL_APPEND2(s->ops.open, o, open_prev, open_next);
    s->ops.last_seq = seq > s->ops.last_seq ? seq : s->ops.last_seq;
    return o;
}

struct op *op_create_unnumbered(struct session *s, struct listener_slot *slot)
{
    struct op *o = freelist_take(s->ops.freelist, sizeof *o);
    if (o != NULL) {
        o->session = s;
        o->slot = slot;
    }
    return o;
}

bool op_acked(const struct op *o)
{
    return !op_unnumbered(o) && o->seq <= o->session->order.acked;
}

bool op_answered_before(const struct op *o)
{
    return o->seq < o->session->order.resumed || session_acked_before(o->session, o->seq);
}

static void leave_open(struct op *o)
{
    if (!op_unnumbered(o) && o->state == OP_PENDING) {
        o->session->ops.open_count--;
        DL_DELETE2(o->session->ops.open, o, open_prev, open_next);
    }
}

bool op_answer(struct op *o, struct bytes reply)
{
    leave_open(o);
    op_step(o, OP_ANSWERED);
    o->reply = reply.size <= sizeof o->small ? o->small : malloc(reply.size);
    if (o->reply == NULL) {
        return false;
    }
    if (reply.size > 0) {
        memcpy(o->reply, reply.data, reply.size);
    }
    o->reply_size = reply.size;
    session_keep(o->session, &o->session->ops.kept_bytes, reply.size);
    return true;
}

void op_enter_ring(struct op *o, uint32_t ring_end)
{
    op_step(o, OP_IN_RING);
    o->ring_end = ring_end;
    DL_APPEND2(o->session->ops.in_ring, o, ring_prev, ring_next);
}

void op_leave_ring(struct op *o)
{
    if (o->state == OP_IN_RING) {
        op_step(o, OP_ANSWERED);
        DL_DELETE2(o->session->ops.in_ring, o, ring_prev, ring_next);
    }
}

void session_lane_closed(struct session *s)
{
    s->lane = NULL;
    while (s->ops.in_ring != NULL) {
        op_leave_ring(s->ops.in_ring);
    }
    for (struct op *o = s->ops.open; o != NULL; o = o->open_next) {
        o->ring_id = 0;
    }
    for (struct request *r = s->early.first; r != NULL; r = r->next) {
        r->ring_id = 0; /* the front keeps their answers until the client asks again */
    }
}

void op_destroy(struct op *o)
{
    struct session *s = o->session;
    op_leave_ring(o);
    leave_open(o);
    if (!op_unnumbered(o)) {
        s->sweep.at = s->sweep.at == o ? o->hh.next : s->sweep.at;
        HASH_DEL(s->ops.all, o);
        s->ops.count--;
        session_let_go(s, &s->ops.kept_bytes, o->reply_size);
    }
    if (o->reply != o->small) {
        free(o->reply);
    }
    freelist_give(s->ops.freelist, o);
}

bool session_acked_before(const struct session *s, uint64_t seq)
{
    return ack_set_end(&s->order.before, seq) != 0;
}

static int by_number(const struct op *a, const struct op *b)
{
    return a->seq < b->seq ? -1 : a->seq > b->seq;
}

void session_index_answers(struct session *s)
{
    ack_set_finish(&s->order.known);
    s->order.known.ranges = malloc((s->ops.count + 1) * sizeof *s->order.known.ranges);
    if (s->order.known.ranges == NULL) {
        return;
    }
    HASH_SORT(s->ops.all, by_number);
    for (const struct op *o = s->ops.all; o != NULL; o = o->hh.next) {
        if (op_answered(o)) {
            ack_set_add(&s->order.known, o->seq);
        }
    }
}

static uint64_t range_end(const struct session *s, uint64_t number)
{
    uint64_t taken = ack_set_end(&s->order.before, number);
    uint64_t known = ack_set_end(&s->order.known, number);
    return taken > known ? taken : known;
}

/* Frees ranges that `expect` has passed. It must wait for the first numbered request, because until
 * then HELLO may come again and set them anew; and for the end of a sweep, which reads them. */
static void forget_ranges(struct session *s)
{
    if (s->order.fresh || s->sweep.state != SWEEP_OFF) {
        return;
    }
    if (s->order.before.count > 0 && s->order.expect >= ack_set_last(&s->order.before)) {
        ack_set_finish(&s->order.before);
    }
    if (s->order.known.ranges != NULL && s->order.expect >= ack_set_last(&s->order.known)) {
        ack_set_finish(&s->order.known);
    }
}

uint64_t session_skip(struct session *s, bool answered)
{
    uint64_t visited = 1;
    for (;; visited++) {
        uint64_t end = range_end(s, s->order.expect);
        const struct op *o = end == 0 ? op_find(s, s->order.expect) : NULL;
        if (end == 0 && (o == NULL || (answered && !op_answered(o)))) {
            break;
        }
        s->order.expect = end > 0 ? end : s->order.expect + 1;
    }
    forget_ranges(s);
    return visited;
}
