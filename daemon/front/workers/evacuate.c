#include "daemon/front/workers/evacuate.h"

#include <unistd.h>
#include <utlist.h>

#include "common/descriptors.h"
#include "common/log.h"
#include "common/saturate.h"
#include "common/steps.h"
#include "daemon/front/model/about.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/workers/command.h"
#include "daemon/front/workers/keep.h"

/* Limit of unanswered requests: each that waits for the channel needs a second descriptor. */
#define COPIES_MAX 32u
/* Copies that a domain has in any case, or else a part of those that are left: each is a
 * descriptor, and other tenants need some, too. */
#define DOMAIN_COPIES 1024u
#define COPIES_PART   2u

#define BUFFERS_A_UNIT 16u

/* The slowest that a worker may be: a pause, and so many bytes a second. */
#define LATE_NS    (20 * NS_PER_S)
#define SLOW_BYTES (UINT64_C(64) << 20)

/* ---- states ---------------------------------------------------------------------------------- */

static bool is_coming(enum buffer_copy copy)
{
    return copy == COPY_DUE || copy == COPY_ASKED || copy == COPY_VOID;
}

/* The one way to change b->copy. */
static void copy_is(struct front *f, struct buffer *b, enum buffer_copy copy)
{
    static const unsigned steps[BUFFER_COPIES] = {
        [COPY_NONE] = STEP_TO(COPY_DUE) | STEP_TO(COPY_KEPT),
        [COPY_DUE] = STEP_TO(COPY_ASKED) | STEP_TO(COPY_NONE),
        [COPY_ASKED] = STEP_TO(COPY_KEPT) | STEP_TO(COPY_VOID) | STEP_TO(COPY_NONE),
        [COPY_VOID] = STEP_TO(COPY_NONE),
        [COPY_KEPT] = STEP_TO(COPY_NONE),
    };
    step_check(steps, b->copy, copy);
    if (!b->passes) { /* else the launcher is not to keep it */
        f->copies_coming += is_coming(copy);
        f->copies_coming -= is_coming(b->copy);
    }
    b->copy = copy;
    b->passes = b->passes && is_coming(copy);
}

static void charge(struct front *f, struct buffer *b)
{
    f->device[b->device]->evacuation.bytes += b->bytes;
    f->evacuated_bytes += b->bytes;
}

/* The one place where the state of an evacuation changes. */
static void step(struct front *f, struct device *d, enum evacuation state)
{
    d->evacuation.state = state;
    if (state == EVACUATION_OVER || state == EVACUATION_FAILED) {
        wake_at(f, front_now(f));
    }
}

/* ---- what may go ----------------------------------------------------------------------------- */

/* Does a request wait for its worker, or for that of the device where it moves? A seal that waits
 * for jobs goes on with the next worker. */
static bool is_asked(const struct buffer *b)
{
    return b->sealing || b->move != MOVE_NONE || (b->pending != NULL && !b->seal_wanted);
}

bool evacuate_keeps(const struct buffer *b)
{
    return buffer_state(b) == BUFFER_LOST || (buffer_restorable(b) && !is_asked(b));
}

bool evacuate_movable(const struct buffer *b)
{
    bool own = (b->flags & (BUFFER_FLAG_EXPORT | BUFFER_FLAG_VARIABLE)) == 0;
    bool plain = !b->sealed || b->seal_wanted;
    return buffer_state(b) == BUFFER_LIVE && own && plain && !is_asked(b) && b->copy == COPY_NONE;
}

uint64_t evacuate_room(const struct front *f)
{
    return sat_sub(device_spill_limit(f->config.domain_host_bytes, 1), f->evacuated_bytes);
}

/* Has the host room for so much more of the device? What an operator moves counts against no
 * tenant. */
static bool fits(const struct front *f, const struct device *d, uint64_t bytes)
{
    bool own = d->owner == NULL || device_drains(d) ||
               sat_add(d->evacuation.bytes, bytes) <=
                   amount_of(&d->owner->limits.spilled, device_whole(d));
    return bytes <= evacuate_room(f) && own;
}

/* The launcher has yet to keep its copy. */
static bool is_due(const struct buffer *b)
{
    return buffer_restorable(b) && !b->handed;
}

/* No worker was asked for it: the next one is. */
static bool is_to_come(const struct buffer *b)
{
    return b->state == BUFFER_CREATING && !b->asked && (b->flags & BUFFER_FLAG_VARIABLE) == 0;
}

static enum keeper keeper_of(const struct buffer *b)
{
    return (b->flags & BUFFER_FLAG_VARIABLE) != 0 ? KEEPER_VARIABLE
           : (b->flags & BUFFER_FLAG_EXPORT) != 0 ? KEEPER_EXPORT
                                                  : KEEPER_REQUEST;
}

bool evacuate_count(const struct buffer *b, struct evacuation_load *load)
{
    if (evacuate_movable(b)) {
        load->bytes = sat_add(load->bytes, b->bytes);
        load->buffers++;
        return true;
    }
    load->copies += is_due(b);
    if (evacuate_keeps(b) || is_to_come(b)) {
        return true;
    }
    enum keeper k = keeper_of(b);
    load->keeper = load->keeper == KEEPER_NONE || k < load->keeper ? k : load->keeper;
    return false;
}

static bool has_copies(const struct front *f, const struct evacuation_load *load)
{
    uint64_t all = (uint64_t)load->buffers + load->copies;
    uint64_t room = keep_room(f);
    return all <= room && (all <= DOMAIN_COPIES || all <= room / COPIES_PART);
}

enum keeper evacuate_keeper(const struct front *f, const struct device *d,
                            const struct evacuation_load *load)
{
    bool moves = load->buffers > 0;
    return load->keeper != KEEPER_NONE                               ? load->keeper
           : moves && (d->state != DEVICE_READY || d->link == NULL)  ? KEEPER_REQUEST
           : moves && !fits(f, d, load->bytes)                       ? KEEPER_HOST
           : !has_copies(f, load) || (moves && !descriptors_spare()) ? KEEPER_COPIES
                                                                     : KEEPER_NONE;
}

/* ---- copies ---------------------------------------------------------------------------------- */

static void fail(struct front *f, struct device *d, const char *why)
{
    log_about(LOG_DOMAIN, about_device(d),
              "device %u: %s%s stays: its buffers cannot go to the host: %s", device_shown(d),
              d->owner != NULL ? "the worker of tenant " : "its worker",
              d->owner != NULL ? d->owner->name : "", why);
    step(f, d, EVACUATION_FAILED);
}

static void go_on(struct front *f, struct device *d)
{
    struct evacuation_state *v = &d->evacuation;
    struct err e = ERR_INIT;
    while (v->state == EVACUATION_COPIES && v->due != NULL && v->asked < COPIES_MAX) {
        struct buffer *b = v->due;
        int rc = descriptors_spare() ? command_buffer_lend(f, b, &e)
                                     : err_set(&e, ERR_LIMIT, "too few descriptors are left");
        if (rc != 0) {
            fail(f, d, e.text);
            return;
        }
        DL_DELETE2(v->due, b, restore_prev, restore_next);
        copy_is(f, b, COPY_ASKED);
        v->asked++;
    }
    if (v->state == EVACUATION_COPIES && v->due == NULL && v->asked == 0) {
        step(f, d, EVACUATION_OVER);
    }
}

void evacuate_begin(struct front *f, struct device *d)
{
    uint32_t cursor = 0;
    unsigned count = 0;
    bool full = false; /* several may begin after one look at what there is */
    for (struct buffer *b; (b = idmap_next(&f->buffers, &cursor, NULL)) != NULL; count++) {
        bool goes = b->device == d->index && evacuate_movable(b);
        full = full || (goes && (!fits(f, d, b->bytes) || keep_room(f) == 0));
        if (goes && !full) {
            copy_is(f, b, COPY_DUE);
            charge(f, b);
            DL_APPEND2(d->evacuation.due, b, restore_prev, restore_next);
        }
        if (b->device == d->index && is_due(b)) {
            full = full || keep_room(f) == 0;
            keep_copy(f, b);
        }
    }
    turn_count(f, count / BUFFERS_A_UNIT);
    d->evacuation.heard_ns = front_now(f);
    step(f, d, EVACUATION_COPIES);
    if (full) {
        fail(f, d,
             "[domains] host_memory_max, the tenant's memory_spilled, or the number of copies "
             "that the launcher keeps, is used up");
    }
    go_on(f, d);
    if (d->evacuation.state == EVACUATION_COPIES) {
        wake_at(f, evacuate_late_ns(d));
    }
}

int evacuate_one(struct front *f, struct buffer *b, struct err *e)
{
    struct device *d = f->device[b->device];
    bool full = b->bytes > evacuate_room(f);
    if (d->evacuation.asked >= COPIES_MAX || !descriptors_spare() || (full && f->moving > 0)) {
        return err_set(e, ERR_BUSY, "other buffers go to the host first");
    }
    if (full) {
        return err_set(e, ERR_LIMIT,
                       "%llu bytes have to pass through the host, which has %llu for copies "
                       "([domains] host_memory_max)",
                       (unsigned long long)b->bytes, (unsigned long long)evacuate_room(f));
    }
    int rc = command_buffer_lend(f, b, e);
    if (rc == 0) {
        b->passes = true;
        copy_is(f, b, COPY_DUE);
        charge(f, b);
        copy_is(f, b, COPY_ASKED);
        d->evacuation.asked++;
    }
    return rc;
}

void evacuate_leave(struct front *f, const struct buffer *b, struct device *to)
{
    if (b->copy != COPY_NONE) {
        f->device[b->device]->evacuation.bytes -= b->bytes;
        to->evacuation.bytes += b->bytes;
    }
}

void evacuate_drop(struct front *f, struct buffer *b)
{
    struct device *d = f->device[b->device];
    bool asked = b->copy == COPY_ASKED || b->copy == COPY_VOID;
    keep_release(f, b);
    if (b->copy == COPY_NONE) {
        return;
    }
    if (b->copy == COPY_DUE) {
        DL_DELETE2(d->evacuation.due, b, restore_prev, restore_next);
    }
    d->evacuation.asked -= asked && !buffer_outlived(b); /* its answer finds no buffer */
    d->evacuation.bytes -= b->bytes;
    f->evacuated_bytes -= b->bytes;
    descriptor_close(&b->host_fd);
    copy_is(f, b, COPY_NONE);
    go_on(f, d);
}

/* An unanswered request stays with the buffer: what answers it is no answer to the next. */
static void give_up(struct front *f, struct buffer *b)
{
    if (b->copy == COPY_ASKED) {
        copy_is(f, b, COPY_VOID);
    } else if (b->copy != COPY_VOID) {
        evacuate_drop(f, b);
    }
}

void evacuate_cancel(struct front *f, struct device *d)
{
    uint32_t cursor = 0;
    unsigned count = 0;
    for (struct buffer *b; (b = idmap_next(&f->buffers, &cursor, NULL)) != NULL; count++) {
        /* the worker has yet to get one that is restored: only the host has it */
        if (b->device == d->index && buffer_state(b) != BUFFER_RESTORING) {
            give_up(f, b);
        }
    }
    turn_count(f, count / BUFFERS_A_UNIT);
    step(f, d, EVACUATION_NONE);
}

uint64_t evacuate_late_ns(const struct device *d)
{
    uint64_t seconds = d->evacuation.bytes / SLOW_BYTES;
    return ns_add(d->evacuation.heard_ns, LATE_NS + seconds * NS_PER_S);
}

void evacuate_answered(struct front *f, struct buffer *b, const struct err *e)
{
    struct device *d = f->device[b->device];
    d->evacuation.heard_ns = front_now(f);
    if (b->copy == COPY_ASKED && e->code == 0) {
        copy_is(f, b, COPY_KEPT);
        if (b->move == MOVE_NONE) { /* else its worker keeps the content */
            keep_copy(f, b);
        }
        d->evacuation.asked--;
        go_on(f, d);
        return;
    }
    if (b->copy == COPY_ASKED && b->move == MOVE_NONE) {
        fail(f, d, e->text);
    }
    evacuate_drop(f, b);
}

void evacuate_lost(struct device *d)
{
    d->evacuation.asked = 0;
    d->evacuation.state = EVACUATION_NONE;
}

void evacuate_adopt(struct front *f, struct buffer *b)
{
    copy_is(f, b, COPY_KEPT);
    charge(f, b);
}
