#include "daemon/front/requests/sweep.h"

#include <utlist.h>

#include "daemon/front/clients/reply.h"
#include "daemon/front/model/request.h"
#include "daemon/front/sched/conclude.h"
#include "proto/codec.h"

#define AT_ONCE  64u  /* numbers of an ack that are looked up when it comes */
#define FOR_ROOM 256u /* ops that are looked at for a request that finds no room */
#define RETRY_NS (5 * NS_PER_MS)

/* EVENTS reports the result of an asynchronous job. */
static void leave_job(struct front *f, const struct op *o)
{
    struct job *j = job_find(f->jobs, o->job);
    if (j == NULL || j->async) {
        return;
    }
    if (j->op == o) {
        j->op = NULL;
        job_part(j); /* runs on */
    }
    job_taken(f, j);
}

void sweep_op(struct front *f, struct op *o)
{
    turn_count(f, 1);
    leave_job(f, o);
    op_destroy(o);
}

/* ---- all of a session's ------------------------------------------------------------------- */

static void begin(struct front *f, struct session *s)
{
    struct op_sweep *w = &s->sweep;
    if (w->on) {
        w->again = true;
        return;
    }
    w->on = true;
    w->at = s->ops;
    DL_APPEND2(f->sweeping, s, sweep.prev, sweep.next);
    f->hooks.kick(f);
}

static void leave(struct front *f, struct session *s)
{
    s->sweep.on = false;
    s->sweep.again = false;
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
    taken_finish(&w->taken);
    capbuf_init(&out, 64);
    if (proto_encode(&schema_msg_done, &done, &out, NULL) == 0) {
        reply_plain(f, r, capbuf_view(&out));
        request_destroy(r);
    } else {
        reply_none(f, r);
    }
    capbuf_finish(&out);
}

/* The next op. false: that was all. */
static bool step(struct front *f, struct session *s)
{
    struct op_sweep *w = &s->sweep;
    struct op *o = w->at;
    if (o == NULL && w->again) {
        w->again = false;
        w->at = s->ops;
        return true;
    }
    if (o == NULL) {
        return false;
    }
    w->at = o->hh.next;
    bool told = o->answered && o->seq < w->below && taken_end(&w->taken, o->seq) != 0;
    if (told || (o->answered && op_passed(o)) || op_left(o)) {
        w->count += told;
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
    sweep_for_room(f, s); /* those of most sessions go at once */
}

void sweep_for_room(struct front *f, struct session *s)
{
    for (unsigned i = 0; s->sweep.on && i < FOR_ROOM; i++) {
        turn_count(f, 1);
        if (!step(f, s)) {
            end(f, s);
        }
    }
}

void sweep_stop(struct front *f, struct session *s)
{
    struct request *r = s->sweep.request;
    if (s->sweep.on) {
        leave(f, s);
    }
    s->sweep.request = NULL;
    if (r != NULL) {
        reply_none(f, r);
    }
}

/* ---- what was taken ------------------------------------------------------------------------- */

void sweep_ack(struct front *f, struct session *s, uint64_t ack)
{
    if (ack <= s->acked || ack >= s->expect) {
        return;
    }
    uint64_t first = s->acked + 1;
    if (ack - s->acked > AT_ONCE) { /* numbers can run far ahead of what is kept */
        s->acked = ack;
        begin(f, s);
        return;
    }
    for (uint64_t seq = first; seq <= ack; seq++) {
        struct op *o = op_find(s, seq);
        if (o != NULL && o->answered) {
            sweep_op(f, o);
        }
    }
    s->acked = ack;
}

int sweep_taken(struct front *f, struct session *s, struct request *r, struct err *e)
{
    struct op_sweep *w = &s->sweep;
    if (w->request != NULL) {
        (void)err_set(e, ERR_BUSY, "another TAKEN of this session is not done");
        e->retry_after_ns = RETRY_NS;
        return e->code;
    }
    int rc = taken_read(r->msg.taken.taken, &w->taken, e);
    if (rc != 0) {
        return rc;
    }
    w->request = r;
    w->below = s->expect;
    w->count = 0;
    begin(f, s);
    return 0;
}
