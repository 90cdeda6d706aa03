#include "daemon/front/memory/buffers.h"

#include <unistd.h>
#include <utlist.h>

#include "common/clock.h"
#include "common/descriptors.h"
#include "daemon/front/clients/reply.h"
#include "daemon/front/clients/shm.h"
#include "daemon/front/memory/moves.h"
#include "daemon/front/memory/variable.h"
#include "daemon/front/model/op.h"
#include "daemon/front/model/session_events.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/sched/queue.h"
#include "daemon/front/workers/arrivals.h"
#include "daemon/front/workers/command.h"
#include "daemon/front/workers/domains.h"
#include "daemon/front/workers/evacuate.h"

#define RESTORE_PAUSE_NS (100 * NS_PER_MS)
#define RESTORE_TRIES    30u

/* Limit of unanswered requests to restore: each that waits for the channel needs a second
 * descriptor. */
#define RESTORES_MAX   32u
#define LOSE_UNITS     2u  /* units of work to mark a lost buffer */
#define OPENERS_A_UNIT 16u /* openers that get a notice in a unit of work */

static void answer_buffer(struct front *f, struct buffer *b)
{
    struct op *o = b->pending;
    b->pending = NULL;
    if (o == NULL) {
        return;
    }
    struct err e = ERR_INIT;
    struct capbuf out;
    capbuf_init(&out, 4096);
    if (buffer_encode(b, &out, &e) == 0) {
        reply_answer(f, o, capbuf_view(&out));
    } else {
        reply_answer_error(f, o, &e, (struct bytes){0});
    }
    capbuf_finish(&out);
}

static void answer_failure(struct front *f, struct buffer *b, const struct err *e)
{
    struct op *o = b->pending;
    b->pending = NULL;
    if (o != NULL) {
        reply_answer_error(f, o, e, (struct bytes){0});
    }
}

void buffer_ask(struct front *f, struct buffer *b)
{
    const struct device *d = f->device[b->device];
    bool up = d->state == DEVICE_READY || d->state == DEVICE_PROBING;
    if (d->killed_ns != 0 || !up || device_yields(d)) {
        return;
    }
    b->asked = true;
    if (b->variable != NULL) {
        struct err e = ERR_INIT;
        if (variable_ask(f, b->variable, &e) != 0) {
            buffer_create_failed(f, b, &e);
        }
    } else if (b->sealed) { /* a copy of a granted buffer */
        command_buffer_restore(f, b);
    } else {
        command_buffer_create(f, b);
    }
}

/* ---- what the worker answers
 * ---------------------------------------------------------------------- */

/* Subtracts the buffer's bytes from its device's count. Those of a freed buffer are subtracted
 * already. */
static void discount(struct front *f, const struct buffer *b)
{
    if (!b->freed) {
        buffer_discharge(b, f->device[b->device], turn_now(f));
    }
}

/* Does this opener's session get a notice? Each session gets one for a buffer: the owner's as
 * owner, another one for its newest opener. */
static bool gets_notice(struct buffer *b, const struct buffer_opener *o)
{
    return o->session != b->owner && buffer_opener_newest(b, o);
}

void buffer_unexport(struct front *f, struct buffer *b)
{
    if (b->export_fd < 0) {
        return;
    }
    if (f->shm != NULL) {
        shm_withdraw(f->shm, b);
    }
    (void)close(b->export_fd);
    b->export_fd = -1;
}

static void restore_forget(struct device *d, struct buffer *b)
{
    if (b->restore_due) {
        b->restore_due = false;
        DL_DELETE2(d->restoring, b, restore_prev, restore_next);
    }
}

void buffer_restore_later(struct device *d, struct buffer *b)
{
    buffer_set_state(b, BUFFER_RESTORING);
    if (!b->restore_due) {
        b->restore_due = true;
        DL_APPEND2(d->restoring, b, restore_prev, restore_next);
    }
}

/* Marks it lost: it can only be freed. Its owner and openers get a notice with the next EVENTS. */
static void buffer_lost(struct front *f, struct buffer *b)
{
    discount(f, b);
    restore_forget(f->device[b->device], b);
    move_cancel(f, b);
    evacuate_drop(f, b);
    buffer_set_state(b, BUFFER_LOST);
    buffer_unexport(f, b);
    b->seal_wanted = false;
    b->sealing = false;
    b->defined.count = 0;
    descriptor_close(&b->host_fd);
    if (b->owner != NULL) {
        (void)session_notice(b->owner, f->config.tenant_notices_max, NOTICE_BUFFER_LOST, b->handle);
    }
    for (const struct buffer_opener *o = b->opener; o != NULL; o = o->next) {
        if (gets_notice(b, o)) {
            (void)session_notice(o->session, f->config.tenant_notices_max, NOTICE_BUFFER_LOST,
                                 b->handle);
        }
    }
}

void buffer_create_failed(struct front *f, struct buffer *b, const struct err *e)
{
    answer_failure(f, b, e);
    discount(f, b);
    variable_failed(f, b->variable);
    buffer_set_state(b, BUFFER_LOST); /* the worker has nothing to free */
    buffer_drop(f, b);
}

static void created(struct front *f, struct buffer *b, const struct err *e)
{
    if (e->code == 0) {
        buffer_set_state(b, BUFFER_LIVE);
        answer_buffer(f, b);
    } else {
        buffer_create_failed(f, b, e);
    }
}

static void sealed(struct front *f, struct buffer *b, const struct err *e)
{
    b->sealing = false;
    (void)queue_offer_awaiting(f); /* it may have to move for a job now */
    if (e->code == 0) {
        answer_buffer(f, b);
        return;
    }
    b->sealed = false;
    descriptor_close(&b->host_fd);
    answer_failure(f, b, e);
}

/* ---- restoring ----------------------------------------------------------------------------- */

/* Those that the worker refused are behind the others, and wait for buffer_restore_watch. */
static bool restore_waits(const struct device *d)
{
    return d->restoring == NULL || (d->restoring->restore_tries > 0 && d->restore_ns != 0);
}

static void restore_more(struct front *f, struct device *d)
{
    /* it is to end, and the host has the content */
    bool rests = d->state == DEVICE_RESTING || device_yields(d) || d->killed_ns != 0;
    while (d->restores < RESTORES_MAX && d->link != NULL && !rests && !restore_waits(d)) {
        struct buffer *b = d->restoring;
        restore_forget(d, b);
        b->restore_asked = true;
        d->restores++;
        command_buffer_restore(f, b);
    }
}

/* A request to restore was answered or is void. Asks for the next ones, or announces that the
 * device has restored all. */
static void restore_next(struct front *f, struct device *d)
{
    d->restores--;
    restore_more(f, d);
    if (d->killed_ns == 0) {
        f->hooks.worker_ready(f, d);
    }
}

void buffer_restore_watch(struct front *f)
{
    struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        if (d->restore_ns != 0 && turn_now(f) >= d->restore_ns) {
            d->restore_ns = 0;
            restore_more(f, d);
        } else if (d->restore_ns != 0) {
            wake_at(f, d->restore_ns);
        }
    }
}

/* Whether the worker may be able to restore it later: it lacked memory or descriptors. */
static bool restore_retry(struct front *f, struct buffer *b, int code)
{
    struct device *d = f->device[b->device];
    bool lacked = code == ERR_LIMIT || code == ERR_NOMEM || code == ERR_DEVICE_MEMORY;
    if (!lacked || !b->restore_asked || b->host_fd < 0 || b->restore_tries == RESTORE_TRIES) {
        return false;
    }
    b->restore_tries++;
    d->restore_ns = ns_add(turn_now(f), RESTORE_PAUSE_NS);
    wake_at(f, d->restore_ns);
    buffer_restore_later(d, b);
    return true;
}

static void restored(struct front *f, struct buffer *b, const struct err *e)
{
    if (e->code == 0) {
        buffer_set_state(b, BUFFER_LIVE);
        b->restore_tries = 0;
        evacuate_drop(f, b); /* jobs may write it from now on */
        buffer_seal_next(f, b);
    } else if (!restore_retry(f, b, e->code)) {
        answer_failure(f, b, e);
        buffer_lost(f, b);
        f->hooks.sessions_notify(f);
    }
    if (buffer_state(b) != BUFFER_RESTORING) {
        (void)queue_offer_awaiting(f);
    }
    if (b->restore_asked) {
        b->restore_asked = false;
        restore_next(f, f->device[b->device]);
    }
}

/* What the worker's answer says. */
static struct err error_of(const struct buffer *b, const struct msg_w_buffer *m)
{
    struct err e = ERR_INIT;
    if (m->code != 0) {
        (void)err_set_vendor(&e, (int)m->code, (int)m->vendor, "%.*s", (int)m->text.size,
                             (const char *)m->text.data);
        (void)err_wrap(&e, "buffer %s of %llu bytes for %s", b->label, (unsigned long long)b->bytes,
                       b->tenant->name);
    }
    return e;
}

/* An answer for a buffer that moves to the device, or was to do so. */
static void moved(struct front *f, struct device *d, const struct msg_w_buffer *m)
{
    bool wanted = arrivals_end(d, m->id);
    struct buffer *b = idmap_get(&f->buffers, m->id);
    if (wanted && b != NULL) {
        struct device *from = f->device[b->device];
        struct err e = error_of(b, m);
        if (move_arrived(f, b, d, &e)) {
            restore_forget(from, b);
        }
        buffer_seal_next(f, b);
    } else if (m->code == 0) {
        command_forget_buffer(d, m->id);
    }
    (void)queue_offer_awaiting(f);
}

void buffer_answered(struct front *f, struct device *d, const struct msg_w_buffer *m)
{
    if (arrivals_has(d, m->id)) {
        moved(f, d, m);
        return;
    }
    struct buffer *b = idmap_get(&f->buffers, m->id);
    if (b == NULL || b->device != d->index) {
        return;
    }
    struct err e = error_of(b, m);
    if (b->state == BUFFER_CREATING) {
        created(f, b, &e);
    } else if (b->state == BUFFER_RESTORING) {
        restored(f, b, &e);
    } else {
        if (b->sealing) {
            sealed(f, b, &e);
        } else if (b->copy != COPY_NONE) {
            evacuate_answered(f, b, &e);
            if (b->move == MOVE_COPIES) {
                move_copied(f, b, &e);
            }
            buffer_seal_next(f, b);
        }
        if (b->state == BUFFER_LIVE && m->gone != 0) { /* a former front asked for its memory */
            buffer_lost(f, b);
            f->hooks.sessions_notify(f);
        }
    }
}

void buffer_let_linger(struct front *f, struct buffer *b)
{
    if (b->owner == NULL && b->openers == 0) {
        b->linger_until_ns = ns_add(front_now(f), b->linger_ns);
        agenda_set(&f->lingering, &b->linger, b->linger_until_ns, b);
        wake_at(f, b->linger_until_ns);
    }
}

/* ---- freeing and sealing ------------------------------------------------------------------- */

/* Removes the handle; jobs that use the buffer keep its memory. */
static void let_go(struct front *f, struct buffer *b)
{
    buffer_unexport(f, b);
    idmap_disown(&f->buffers, b->handle, b->owner != NULL ? b->owner->id : UINT64_MAX);
    if (b->state != BUFFER_LOST) {
        discount(f, b);
    }
    if (b->owner != NULL) {
        b->owner->buffers--;
        buffer_unown(b);
    }
    b->freed = true;
    agenda_drop(&f->lingering, &b->linger);
    (void)buffer_rename(b, "");
    if (b->users > 0 && b->variable == NULL) {
        /* the next front needs it only for jobs that it repeats */
        b->linger_ns = f->config.session_linger_ms * NS_PER_MS;
        command_buffer_record(f, b);
    }
}

void buffer_drop(struct front *f, struct buffer *b)
{
    if (!b->freed) {
        let_go(f, b);
        if (f->watchers > 0) {
            f->hooks.buffer_freed(f, b);
        }
    }
    buffer_settle(f, b);
}

void buffer_settle(struct front *f, struct buffer *b)
{
    if (!b->freed || b->users > 0) {
        return;
    }
    struct device *d = f->device[b->device];
    bool asked = b->restore_asked && !buffer_outlived(b);
    restore_forget(d, b);
    (void)idmap_remove(&f->buffers, b->handle);
    b->tenant->held[TENANT_BUFFERS]--;
    command_buffer_free(f, b);
    move_cancel(f, b);
    evacuate_drop(f, b);
    variable_detach(f, b->variable);
    buffer_destroy(b);
    if (asked) {
        restore_next(f, d);
    }
}

/* The last job that wrote it has ended, and its worker leaves or has left: only the seal wants the
 * next one. */
static void want_worker(struct front *f, struct buffer *b)
{
    struct device *d = f->device[b->device];
    struct err e = ERR_INIT;
    bool rests = d->state == DEVICE_RESTING || device_yields(d);
    if (rests && b->move == MOVE_NONE && domain_want(f, d, &e) != 0) {
        b->seal_wanted = b->sealed = false;
        answer_failure(f, b, &e);
    }
}

void buffer_seal_next(struct front *f, struct buffer *b)
{
    bool still = b->copy == COPY_NONE && b->move == MOVE_NONE;
    bool live = buffer_state(b) == BUFFER_LIVE && still;
    if (!b->seal_wanted || b->writers > 0 || !live || device_yields(f->device[b->device])) {
        return;
    }
    b->seal_wanted = false;
    if (spans_cover(&b->defined, 0, b->bytes)) {
        command_buffer_seal(f, b);
        return;
    }
    struct err e = ERR_INIT;
    char title[BUFFER_TITLE];
    (void)err_set(&e, ERR_UNDEFINED, "%s is not fully written: it cannot be sealed",
                  buffer_title(b, title));
    b->sealed = false;
    answer_failure(f, b, &e);
}

void buffer_seal_left(struct front *f, struct buffer *b)
{
    if (b->seal_wanted && b->writers == 0) {
        want_worker(f, b);
    }
    buffer_seal_next(f, b);
}

void buffer_module_settled(struct front *f, struct module *m)
{
    struct variable *v;
    struct variable *next;
    HASH_ITER(hh, m->variables, v, next)
    {
        if (v->buffer->state == BUFFER_CREATING && !v->asked) {
            buffer_ask(f, v->buffer);
        }
    }
}

/* ---- workers come and go
 * -------------------------------------------------------------------------- */

/* A buffer that was being created loses nothing: the front asks the next worker for it. */
static void mark_lost(struct front *f, struct device *d, struct buffer *b)
{
    b->asked = b->asked && b->device != d->index;
    move_interrupted(f, b, d);
    if (b->device != d->index || b->state == BUFFER_LOST || b->state == BUFFER_CREATING ||
        !buffer_outlived(b)) {
        return;
    }
    struct err e = ERR_INIT;
    b->restore_asked = false;
    b->restore_tries = 0;
    turn_count(f, b->openers / OPENERS_A_UNIT);
    if (buffer_restorable(b)) {
        buffer_restore_later(d, b);
        buffer_unexport(f, b); /* the restored buffer gets new memory */
        (void)err_set(&e, ERR_WORKER_LOST, "the worker ended before the buffer was exported");
        if (!b->seal_wanted) { /* the next worker seals it */
            answer_failure(f, b, &e);
        }
        return;
    }
    (void)err_set(&e, ERR_WORKER_LOST, "the worker ended before the buffer was sealed");
    answer_failure(f, b, &e);
    buffer_lost(f, b);
}

static void lose_some(struct front *f, struct device *d)
{
    struct buffer *b = NULL;
    while (d->losing && turn_take(f, LOSE_UNITS)) {
        b = idmap_next(&f->buffers, &d->losing_at, NULL);
        if (b != NULL) {
            mark_lost(f, d, b);
        } else {
            d->losing = false;
            f->losing--;
            f->hooks.sessions_notify(f);
            (void)queue_offer_awaiting(f); /* jobs that wait for what is lost now */
            wake_at(f, d->restart_ns);
        }
    }
}

void buffer_lose_some(struct front *f)
{
    struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        lose_some(f, d);
    }
}

void buffer_device_lost(struct front *f, struct device *d)
{
    evacuate_lost(d);
    arrivals_forget(d);
    d->restores = 0;
    d->restore_ns = 0;
    d->losses++;
    f->losing += !d->losing;
    d->losing = true;
    d->losing_at = 0;
    lose_some(f, d);
}

void buffer_device_given_up(struct front *f, struct device *d)
{
    uint32_t cursor = 0;
    struct buffer *b;
    struct err e = ERR_INIT;
    (void)err_set(&e, ERR_NO_DEVICE, "device %u: %s", device_shown(d), d->reason);
    while ((b = idmap_next(&f->buffers, &cursor, NULL)) != NULL) {
        if (b->device == d->index && b->state == BUFFER_CREATING) {
            buffer_create_failed(f, b, &e);
        } else if (b->device == d->index && buffer_state(b) == BUFFER_RESTORING) {
            answer_failure(f, b, &e);
            b->restore_asked = false;
            buffer_lost(f, b);
        }
    }
    d->restores = 0;
    f->hooks.sessions_notify(f);
}

void buffer_device_ready(struct front *f, struct device *d)
{
    uint32_t cursor = 0;
    struct buffer *b;
    while ((b = idmap_next(&f->buffers, &cursor, NULL)) != NULL) {
        if (b->device == d->index && b->state == BUFFER_CREATING) {
            if (!b->asked) { /* one that stays may not have answered yet */
                buffer_ask(f, b);
            }
        } else if (b->device == d->index) {
            buffer_seal_next(f, b);
        }
    }
    restore_more(f, d);
}

bool buffer_restoring(const struct device *d)
{
    return d->restores > 0 || (d->restoring != NULL && d->restoring->restore_tries == 0);
}
