#include "daemon/front/memory/moves.h"

#include <inttypes.h>

#include "common/saturate.h"
#include "daemon/front/model/work.h"
#include "daemon/front/sched/conclude.h"
#include "daemon/front/sched/hazard.h"
#include "daemon/front/sched/placing.h"
#include "daemon/front/sched/queue.h"
#include "daemon/front/sched/transit.h"
#include "daemon/front/workers/arrivals.h"
#include "daemon/front/workers/command.h"
#include "daemon/front/workers/evacuate.h"

#define MOVE_TRIES    10u
#define MOVE_RETRY_NS (NS_PER_S / 2) /* housekeeping offers jobs that wait each second */

/* Says which buffer it is, and where it was to go. */
static int wrap(const struct buffer *b, const struct device *to, struct err *e)
{
    char title[BUFFER_TITLE];
    return err_wrap(e, "%s cannot move from device %u to device %u", buffer_title(b, title),
                    b->shown, device_shown(to));
}

/* The one way to change b->move. */
static void move_is(struct front *f, struct buffer *b, enum buffer_move move)
{
    b->move_ns = move != MOVE_NONE ? turn_now(f) : 0;
    f->moving += move != MOVE_NONE;
    f->moving -= b->move != MOVE_NONE;
    b->move = move;
}

static bool flies(struct front *f, const struct buffer *b)
{
    unsigned count = 0;
    bool any = false;
    for (const struct buffer_use *u = hazard_first(b); u != NULL && !any; u = hazard_behind(u)) {
        any = u->job->state == JOB_DISPATCHED || u->job->state == JOB_RUNNING;
        count++;
    }
    turn_count(f, count / 8);
    return any;
}

/* May the buffer go on its way, or go on there? A worker that is to leave gets nothing new: only
 * devices that take jobs take part. If only the host has the content, its own device has no part.
 */
static bool may_go(const struct front *f, const struct buffer *b, const struct device *to)
{
    bool away = buffer_state(b) == BUFFER_RESTORING && !b->restore_asked;
    return device_takes(to) && (away || device_takes(f->device[b->device])) && arrivals_room(to) &&
           !arrivals_has(to, b->handle);
}

static bool has_room(const struct buffer *b, const struct device *to, struct err *e)
{
    return b->freed || b->bytes <= tenant_room_to_move(b->tenant, to->index, device_whole(to)) ||
           tenant_refuse(b->tenant, to, b->bytes, e) == 0;
}

/* The worker of `to` is asked for the content, which the host has. */
static int carry(struct front *f, struct buffer *b, struct device *to, struct err *e)
{
    if (!has_room(b, to, e)) {
        return e->code;
    }
    arrivals_add(to, b->handle, true);
    move_is(f, b, MOVE_ARRIVES);
    b->move_to = to->index;
    command_buffer_carry(f, to, b);
    return 0;
}

/* The copy serves the move alone: jobs may write the buffer from now on. */
static void drop_copy(struct front *f, struct buffer *b)
{
    if (b->state == BUFFER_LIVE && !buffer_outlived(b)) {
        evacuate_drop(f, b);
    }
}

int move_need(struct front *f, struct buffer *b, struct device *to, struct err *e)
{
    /* a seal that is wanted waits for the jobs that wait for the move */
    bool there = buffer_restorable(b) && (b->pending == NULL || b->seal_wanted);
    bool pauses = turn_now(f) < b->move_retry_ns;
    if (b->move != MOVE_NONE || pauses || !may_go(f, b, to) || flies(f, b)) {
        return 0;
    }
    int rc = 0;
    if (there) {
        rc = carry(f, b, to, e);
    } else if (evacuate_movable(b)) {
        rc = evacuate_one(f, b, e);
        move_is(f, b, rc == 0 ? MOVE_COPIES : MOVE_NONE);
        rc = rc == ERR_BUSY ? 0 : rc;
    }
    return rc == 0 ? 0 : wrap(b, to, e);
}

/* The first job in its line; NULL: no job waits for it to move. */
static struct job *wanter(const struct buffer *b)
{
    const struct buffer_use *u = hazard_first(b);
    return u != NULL && u->job->state == JOB_QUEUED && u->job->device->index != b->device ? u->job
                                                                                          : NULL;
}

static void fail(struct front *f, struct buffer *b, const struct err *why)
{
    struct job *j = wanter(b);
    struct err e = *why;
    b->move_tries = 0;
    b->move_retry_ns = 0;
    if (j != NULL && !placing_back(f, j, b)) {
        (void)wrap(b, j->device, &e);
        job_conclude(f, j, JOB_FAILED, &e);
    }
}

void move_copied(struct front *f, struct buffer *b, const struct err *e)
{
    struct job *j = wanter(b);
    if (e->code == 0) {
        transit_left(f, b, sat_sub(turn_now(f), b->move_ns));
    }
    move_is(f, b, MOVE_NONE);
    if (e->code != 0) {
        fail(f, b, e);
    } else if (j == NULL || !may_go(f, b, j->device) || !buffer_restorable(b)) {
        drop_copy(f, b); /* the job asks again */
    } else {
        struct err why = ERR_INIT;
        if (carry(f, b, j->device, &why) != 0) {
            drop_copy(f, b);
            fail(f, b, &why);
        }
    }
    (void)queue_offer_awaiting(f);
}

static void refused(struct front *f, struct buffer *b, const struct err *e)
{
    bool lacked = e->code == ERR_LIMIT || e->code == ERR_NOMEM || e->code == ERR_DEVICE_MEMORY;
    const struct job *j = wanter(b);
    drop_copy(f, b);
    b->move_retry_ns = ns_add(turn_now(f), MOVE_RETRY_NS);
    if (!lacked || (j != NULL && j->strays) || ++b->move_tries == MOVE_TRIES) {
        fail(f, b, e);
    }
}

/* The buffer is on `to` from now on. */
static void arrive(struct front *f, struct buffer *b, struct device *to)
{
    struct device *from = f->device[b->device];
    bool there = b->state == BUFFER_LIVE && !buffer_outlived(b);
    f->count.moved++;
    f->count.moved_bytes += b->bytes;
    b->move_tries = 0;
    b->move_retry_ns = 0;
    evacuate_leave(f, b, to);
    buffer_move_to(b, from, to, turn_now(f));
    buffer_set_state(b, BUFFER_LIVE);
    command_buffer_moved(f, b, from);
    evacuate_drop(f, b);
    if (there) {
        command_forget_buffer(from, b->handle);
    }
}

bool move_arrived(struct front *f, struct buffer *b, struct device *to, const struct err *e)
{
    struct err why = ERR_INIT;
    bool serves = to->state == DEVICE_READY && to->killed_ns == 0;
    bool still = !b->restore_asked && !b->sealing && b->state != BUFFER_LOST;
    if (e->code == 0) {
        transit_came(b, to, sat_sub(turn_now(f), b->move_ns));
    }
    move_is(f, b, MOVE_NONE);
    if (e->code != 0) {
        refused(f, b, e);
        return false;
    }
    if (serves && still && has_room(b, to, &why)) { /* others may have come since it was asked */
        arrive(f, b, to);
        return true;
    }
    command_forget_buffer(to, b->handle);
    drop_copy(f, b);
    if (why.code != 0) {
        fail(f, b, &why);
    }
    return false;
}

void move_cancel(struct front *f, struct buffer *b)
{
    if (b->move == MOVE_ARRIVES) {
        arrivals_refuse(f->device[b->move_to], b->handle);
    }
    move_is(f, b, MOVE_NONE);
}

void move_interrupted(struct front *f, struct buffer *b, const struct device *d)
{
    if (b->move == MOVE_ARRIVES && b->move_to == d->index) {
        move_is(f, b, MOVE_NONE);
        drop_copy(f, b);
    }
}
