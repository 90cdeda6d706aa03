#include "daemon/front/requests/sweep.h"

#include <utlist.h>

#include "daemon/front/clients/reply.h"
#include "daemon/front/model/op.h"
#include "daemon/front/model/request.h"
#include "daemon/front/sched/history.h"
#include "proto/codec.h"

#define AT_ONCE  64u  /* numbers that one ack may forget at once */
#define FOR_ROOM 256u /* ops checked at once for a request that finds no room */
#define RETRY_NS (5 * NS_PER_MS)

/* The results of asynchronous jobs are acknowledged by WAIT. */
static void leave_job(struct front *f, const struct op *o)
{
    struct job *j = job_find(f->jobs, o->job);
    if (j == NULL || j->async) {
        return;
    }
    if (j->op == o) {
        j->op = NULL;
        job_part(j); /* the job runs on without an answer */
    }
    job_acknowledged(f, j);
}

void sweep_op(struct front *f, struct op *o)
{
    turn_count(f, 1);
    leave_job(f, o);
    op_destroy(o);
}

/* ---- the walk ----------------------------------------------------------------------------- */

static void begin(struct front *f, struct session *s)
{
    struct op_sweep *w = &s->sweep;
    if (w->state != SWEEP_OFF) {
        w->state = SWEEP_AGAIN;
        return;
    }
    w->state = SWEEP_ON;
    w->at = s->ops.all;
    DL_APPEND2(f->sweeping, s, sweep.prev, sweep.next);
    f->hooks.kick(f);
}

static void leave(struct front *f, struct session *s)
{
    s->sweep.state = SWEEP_OFF;
    s->sweep.at = NULL;
    DL_DELETE2(f->sweeping, s, sweep.prev, sweep.next);
}

static void answer(struct front *f, struct session *s)
{
    struct op_sweep *w = &s->sweep;
    struct msg_done done = {.value = w->count};
    struct capbuf out;
    struct request *r = w->request;
    w->request = NULL;
    ack_set_finish(&w->acked);
    capbuf_init(&out, 64);
    if (proto_encode(&schema_msg_done, &done, &out, NULL) == 0) {
        reply_plain(f, r, capbuf_view(&out));
        request_destroy(r);
    } else {
        reply_none(f, r);
    }
    capbuf_finish(&out);
}

/* Checks the next op. false: the walk is over. */
static bool step(struct front *f, struct session *s)
{
    struct op_sweep *w = &s->sweep;
    struct op *o = w->at;
    if (o == NULL && w->state == SWEEP_AGAIN) {
        w->state = SWEEP_ON;
        w->at = s->ops.all;
        return true;
    }
    if (o == NULL) {
        return false;
    }
    w->at = o->hh.next;
    bool named = op_answered(o) && o->seq < w->below && ack_set_end(&w->acked, o->seq) != 0;
    if (named || (op_answered(o) && op_acked(o)) || op_answered_before(o)) {
        w->count += named;
        sweep_op(f, o);
    }
    return true;
}

static void end(struct front *f, struct session *s)
{
    leave(f, s);
    if (s->sweep.request != NULL) {
        answer(f, s);
    }
}

void sweep_some(struct front *f)
{
    while (f->sweeping != NULL && turn_take(f, 1)) {
        struct session *s = f->sweeping;
        if (!step(f, s)) {
            end(f, s);
        }
    }
}

void sweep_left(struct front *f, struct session *s)
{
    begin(f, s);
    sweep_for_room(f, s); /* most sessions have few ops, and are done here */
}

void sweep_for_room(struct front *f, struct session *s)
{
    for (unsigned i = 0; s->sweep.state != SWEEP_OFF && i < FOR_ROOM; i++) {
        turn_count(f, 1);
        if (!step(f, s)) {
            end(f, s);
        }
    }
}

void sweep_stop(struct front *f, struct session *s)
{
    struct request *r = s->sweep.request;
    if (s->sweep.state != SWEEP_OFF) {
        leave(f, s);
    }
    s->sweep.request = NULL;
    if (r != NULL) {
        reply_none(f, r);
    }
}

/* ---- acknowledgements ----------------------------------------------------------------------- */

void sweep_ack(struct front *f, struct session *s, uint64_t ack)
{
    if (ack <= s->order.acked || ack >= s->order.expect) {
        return;
    }
    uint64_t first = s->order.acked + 1;
    if (ack - s->order.acked > AT_ONCE) { /* most of the numbers may have no op */
        s->order.acked = ack;
        begin(f, s);
        return;
    }
    for (uint64_t seq = first; seq <= ack; seq++) {
        struct op *o = op_find(s, seq);
        if (o != NULL && op_answered(o)) {
            sweep_op(f, o);
        }
    }
    s->order.acked = ack;
}

int sweep_taken(struct front *f, struct session *s, struct request *r, struct err *e)
{
    struct op_sweep *w = &s->sweep;
    if (w->request != NULL) {
        (void)err_set(e, ERR_BUSY, "an earlier TAKEN of this session has not finished");
        e->retry_after_ns = RETRY_NS;
        return e->code;
    }
    int rc = ack_set_read(r->msg.taken.taken, &w->acked, e);
    if (rc != 0) {
        return rc;
    }
    w->request = r;
    w->below = s->order.expect;
    w->count = 0;
    begin(f, s);
    return 0;
}
