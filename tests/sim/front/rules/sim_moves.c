#include "tests/sim/front/rules/sim_moves.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/front/model/request.h"
#include "daemon/front/model/tenant.h"
#include "daemon/front/sched/hazard.h"
#include "daemon/front/workers/arrivals.h"
#include "daemon/front/workers/evacuate.h"
#include "tests/sim/front/rules/sim_sooner.h"
#include "tests/sim/front/rules/sim_told.h"
#include "tests/sim/front/sim.h"

#define TAKE_MS  40u                /* until a worker has taken the content */
#define SLOW_MS  6000u              /* the same, of a slow one */
#define START_NS (5 * NS_PER_S / 2) /* jobs that wait are offered again after a second */

/* ---- workers --------------------------------------------------------------------------------- */

static const struct buffer *moving(const struct sim *s, uint64_t id)
{
    const struct buffer *b = s->f != NULL ? idmap_get(&s->f->buffers, id) : NULL;
    return b != NULL && b->move != MOVE_NONE ? b : NULL;
}

uint64_t worker_lends_ns(const struct sim *s, uint64_t id)
{
    uint64_t usual = (1 + id % 50) * NS_PER_MS * (s->p.aim != 0 ? 10 : 1);
    return stray_is(s) || told_on(s) ? STRAY_LEAVES_NS : usual;
}

/* One in ten of those that move finds no memory. */
bool moves_refused(const struct sim *s, uint64_t id)
{
    struct chance r = chance_of(chance_mix(s->now_ns ^ id), 91);
    bool refused = stray_is(s) && moving(s, id) != NULL && !s->settling && chance_percent(&r, 10);
    if (refused) {
        sooner_refused(s, id);
    }
    return refused;
}

void moves_begin(struct sim *s, struct sim_worker *x, uint64_t id, uint64_t ns)
{
    if (moving(s, id) != NULL) {
        aim_begins(s, x, ns);
    }
}

void copy_write(struct sim *s, const struct sim_worker_buffer *b, int fd)
{
    size_t size = b->size < SIM_CONTENT ? b->size : SIM_CONTENT;
    if (pwrite(fd, b->content, size, 0) != (ssize_t)size) {
        sim_fail(s, "worker: cannot write a copy");
    }
}

static void say(struct sim *s, struct sim_worker *x, struct sim_worker_buffer *b)
{
    const struct msg_w_buffer m = {.id = b->id};
    b->comes = false;
    worker_send(s, x, &schema_msg_w_buffer, &m, NULL);
}

/* Another front than the one that asked gets the answer, too. */
static void on_taken(struct sim *s, const struct hap *h)
{
    struct sim_worker *x = h->actor;
    struct sim_worker_buffer *b = x->epoch == h->a ? worker_buffer(x, h->b) : NULL;
    if (b != NULL && b->comes && x->state == WORKER_RUNS) {
        say(s, x, b);
    }
}

/* In half of the worlds where buffers move a third of them takes long, so that its job is cancelled
 * and its workers idle meanwhile. */
static uint64_t take_ns(const struct sim *s, uint64_t id)
{
    uint64_t r = chance_mix(s->now_ns ^ id);
    if (stray_is(s) || told_on(s)) {
        return STRAY_COMES_NS;
    }
    bool slow = s->p.spread > 0 && s->p.spread % 2 == 0 && !s->settling && r % 3 == 0;
    return (1 + r / 3 % (slow ? SLOW_MS : TAKE_MS)) * NS_PER_MS;
}

/* Was the worker asked for it as one that moves there? Its own device may want it meanwhile. */
static bool arrives(struct sim *s, const struct sim_worker *x, uint64_t id)
{
    bool any = false;
    const struct device *d;
    for (unsigned at = 0; s->f != NULL && !any && (d = front_next_device(s->f, &at)) != NULL;) {
        any = d->worker == x->id && arrivals_has(d, id);
    }
    return any;
}

void moves_take(struct sim *s, struct sim_worker *x, struct sim_worker_buffer *b)
{
    uint64_t ns = take_ns(s, b->id);
    b->comes = arrives(s, x, b->id);
    if (b->comes) {
        moves_begin(s, x, b->id, ns);
        sim_at(s, s->now_ns + ns, on_taken, x, x->epoch, b->id);
        return;
    }
    struct sim_buffer *known = model_find(s, b->id);
    if (known != NULL && b->copy < 0 && (known->moved_era != 0 || known->copied)) {
        known->moved_era = 0; /* it comes back from the host */
        known->copied = false;
        known->worker = x->id;
    }
    say(s, x, b);
}

/* The newest with the id: a front that finds no workers counts from 1 again. */
static unsigned slot_of(const struct sim *s, uint64_t worker)
{
    unsigned slot = UINT_MAX;
    for (unsigned i = s->workers; i > 0 && slot == UINT_MAX; i--) {
        slot = s->worker[i - 1]->id == worker ? s->worker[i - 1]->number : slot;
    }
    return slot;
}

/* A buffer has moved: its content goes with another worker from now on. */
static void note_moved(struct sim *s)
{
    for (unsigned i = 0; i < s->buffers; i++) {
        struct sim_buffer *known = s->buffer[i];
        const struct buffer *b =
            known->handle != 0 ? idmap_get(&s->f->buffers, known->handle) : NULL;
        const struct device *d = b != NULL ? s->f->device[b->device] : NULL;
        bool lives = b != NULL && b->state == BUFFER_LIVE && !buffer_outlived(b);
        if (lives && known->worker != 0 && d->worker != 0 &&
            slot_of(s, known->worker) != worker_slot_of(s, d)) {
            sim_log(s, "buffer %#" PRIx64 " has moved to worker %" PRIu64, known->handle,
                    d->worker);
            known->worker = d->worker;
            known->moved_era = 0;
        }
    }
}

bool moves_frees(const struct sim_worker *x, uint64_t id)
{
    bool freed = false;
    for (const struct sim_inbox *in = x->inbox; in != NULL && !freed; in = in->next) {
        struct msg_f_buffer_free m;
        freed = in->schema == &schema_msg_f_buffer_free &&
                proto_decode(in->schema, bytes_of(in->data, in->size), &m, NULL) == 0 && m.id == id;
    }
    return freed;
}

bool moves_has(struct sim_worker *x, uint64_t id)
{
    return worker_buffer(x, id) != NULL && !moves_frees(x, id);
}

/* ---- what clients hear ----------------------------------------------------------------------- */

/* Has the job that the text names one of its buffers before it, elsewhere? */
static bool is_behind(const struct sim *s, const struct job *j, const char *why)
{
    static const char before[] = "waits for job ";
    const struct job *other = job_find(s->f->jobs, strtoull(why + sizeof before - 1, NULL, 10));
    bool meets = false;
    for (unsigned i = 0; other != NULL && i < j->work.use_count && !meets; i++) {
        const struct buffer_use *u = hazard_first(j->work.uses[i].buffer);
        meets = u != NULL && u->job == other && other->device != j->device;
    }
    return meets;
}

bool moves_explained(const struct sim *s, const struct job *j, const char *why)
{
    if (strncmp(why, "waits for job", 13) == 0) {
        return is_behind(s, j, why);
    }
    bool held = strstr(why, " through the host: device ") != NULL;
    bool far = false;
    for (unsigned i = 0; i < j->work.use_count && !far; i++) {
        const struct buffer *b = j->work.uses[i].buffer;
        bool may = device_takes(s->f->device[b->device]) && device_takes(j->device);
        far = (b->device != j->device->index || b->move != MOVE_NONE) && (!held || !may);
    }
    return far;
}

/* ---- what goes on its way -------------------------------------------------------------------- */

static bool flies(const struct buffer *b)
{
    bool any = false;
    for (const struct buffer_use *u = hazard_first(b); u != NULL && !any; u = hazard_behind(u)) {
        any = u->job->state == JOB_DISPATCHED || u->job->state == JOB_RUNNING;
    }
    return any;
}

static bool is_still(const struct buffer *b)
{
    bool pending = b->pending != NULL && !b->seal_wanted; /* such a seal waits for the jobs */
    bool asked = pending || b->sealing || b->move != MOVE_NONE;
    return !asked && (b->flags & BUFFER_FLAG_VARIABLE) == 0 && !flies(b) &&
           (b->copy == COPY_NONE || b->copy == COPY_KEPT);
}

/* Does nothing keep the buffer from its way to the job's device? */
static bool may_start(const struct sim *s, const struct job *j, const struct buffer *b)
{
    const struct front *f = s->f;
    const struct device *from = f->device[b->device];
    const struct buffer_use *first = hazard_first(b);
    enum buffer_state state = buffer_state(b);
    bool near = first != NULL && first->job->device == j->device;
    bool there =
        state == BUFFER_RESTORING ? !b->restore_asked : state == BUFFER_LIVE && device_takes(from);
    bool room = arrivals_room(j->device) && !arrivals_has(j->device, b->handle) && f->moving == 0 &&
                from->evacuation.asked == 0;
    return b->device != j->device->index && near && there && is_still(b) && room &&
           device_takes(j->device);
}

/* A buffer of those that may start: `wanted` if it is among them, else the first. 0: none. */
static uint64_t one_that_may(const struct sim *s, uint64_t wanted)
{
    uint64_t first = 0;
    for (const struct job *j = s->f->awaiting; j != NULL; j = j->await.next) {
        bool waits = j->wait == WAIT_RESTORE && j->device != NULL;
        for (unsigned i = 0; waits && i < j->work.use_count; i++) {
            const struct buffer *b = j->work.uses[i].buffer;
            bool may = may_start(s, j, b);
            if (may && b->handle == wanted) {
                return wanted;
            }
            first = may && first == 0 ? b->handle : first;
        }
    }
    return first;
}

/* ---- places, copies, accounts ---------------------------------------------------------------- */

/* Its devices serve as long as it moves, and no job has it. */
static void check_moving(struct sim *s, const struct buffer *b)
{
    const struct front *f = s->f;
    const struct device *from = f->device[b->device];
    const struct device *to = b->move == MOVE_ARRIVES ? f->device[b->move_to] : NULL;
    if (!buffer_outlived(b) && b->state == BUFFER_LIVE && from->state == DEVICE_RESTING) {
        sim_fail(s, "moves: buffer %#" PRIx64 " leaves device %u, whose worker is to end",
                 b->handle, b->device);
    }
    if (to != NULL && !to->losing &&
        (to->state == DEVICE_RESTING || !arrivals_has(to, b->handle))) {
        sim_fail(s, "moves: buffer %#" PRIx64 " moves to device %u, which does not take it",
                 b->handle, b->move_to);
    }
    if (flies(b)) {
        sim_fail(s, "moves: a job has buffer %#" PRIx64 ", which moves", b->handle);
    }
}

static void check_all_moving(struct sim *s)
{
    const struct front *f = s->f;
    uint32_t cursor = 0;
    unsigned count = 0;
    for (const struct buffer *b;
         f->moving > 0 && (b = idmap_next(&f->buffers, &cursor, NULL)) != NULL;) {
        count += b->move != MOVE_NONE;
        if (b->move != MOVE_NONE) {
            check_moving(s, b);
        }
    }
    if (count != f->moving) {
        sim_fail(s, "moves: %u buffers move, %u are counted", count, f->moving);
    }
}

/* A copy of a buffer that stays where jobs can write it would be old. */
static void check_copy(struct sim *s, const struct buffer *b)
{
    const struct device *d = s->f->device[b->device];
    bool lives = b->state == BUFFER_LIVE && !buffer_outlived(b);
    if (b->copy == COPY_KEPT && lives && b->move == MOVE_NONE && device_takes(d) &&
        d->evacuation.state == EVACUATION_NONE) {
        sim_fail(s, "moves: buffer %#" PRIx64 " has a copy, and its device takes jobs", b->handle);
    }
}

static void check_sums(struct sim *s, const struct tenant *t, const uint64_t *bytes)
{
    for (unsigned i = 0; i < PLACES_MAX; i++) {
        if (t->device_bytes[i] != bytes[i]) {
            sim_fail(s,
                     "moves: tenant %s has buffers of %" PRIu64 " bytes on device %u, and %" PRIu64
                     " are counted",
                     t->name, bytes[i], i, t->device_bytes[i]);
        }
    }
}

/* What each tenant has on each device. */
static void check_accounts(struct sim *s)
{
    for (const struct tenant *t = s->f->tenants; t != NULL; t = t->hh.next) {
        uint64_t bytes[PLACES_MAX] = {0};
        uint32_t cursor = 0;
        for (const struct buffer *b; (b = idmap_next(&s->f->buffers, &cursor, NULL)) != NULL;) {
            bool charged = b->tenant == t && !b->freed && b->state != BUFFER_LOST;
            bytes[b->device] += charged ? buffer_charged(b) : 0;
        }
        check_sums(s, t, bytes);
    }
}

/* ---- elsewhere, as that is sooner ------------------------------------------------------------ */

/* Where all its buffers are, if no other job uses them, and the job is bound to another device that
 * it does not name; NULL: not so. */
static struct device *left_by(const struct sim *s, const struct job *j)
{
    bool leaves = j->device != NULL && j->work.use_count > 0 && j->request != NULL &&
                  j->request->kind == MSG_KIND_SUBMIT && j->request->msg.submit.device == 0;
    struct device *home = leaves ? s->f->device[j->work.uses[0].buffer->device] : NULL;
    for (unsigned i = 0; i < j->work.use_count && leaves; i++) {
        const struct buffer *b = j->work.uses[i].buffer;
        const struct buffer_use *first = hazard_first(b);
        leaves = b->device == home->index && home != j->device && b->users == 1 && first != NULL &&
                 first->job == j;
    }
    return leaves ? home : NULL;
}

static bool names(const struct sim_job *k, const struct job *j)
{
    bool any = false;
    for (unsigned i = 0; i < k->steps * j->work.use_count && !any; i++) {
        const struct sim_step *t = &k->step[i % k->steps];
        uint64_t handle = j->work.uses[i / k->steps].buffer->handle;
        any = (t->to != NULL && t->to->handle == handle) ||
              (t->from != NULL && t->from->handle == handle);
    }
    return any;
}

/* Did the other job, which has ended and is of no session any more, name a buffer of the job? */
static bool shared(const struct sim *s, const struct job *other, const struct job *j)
{
    bool any = false;
    for (unsigned i = s->jobs; i > 0 && !any; i--) {
        const struct sim_job *k = s->job[i - 1];
        any = k->request->seq == other->seq && k->client->session == other->session_id &&
              k->life == k->client->lives && names(k, j);
    }
    return any;
}

/* Did a job before it name a buffer of the job, and end since the last look? The front may list it
 * no more, so its device is unknown. */
static bool forgotten_before(const struct sim *s, const struct job *j)
{
    bool any = false;
    for (unsigned i = s->jobs; i > 0 && !any; i--) {
        const struct sim_job *k = s->job[i - 1];
        any = k->id != 0 && k->id < j->id && k->ended_ns >= s->still.looked_ns &&
              job_find(s->f->jobs, k->id) == NULL && names(k, j);
    }
    return any;
}

/* Was another job of its buffers before it, which goes to the same device, when it came? The place
 * of a new job is that of the last in the line, and remains, though that one ends in the same turn:
 * one whose inputs are undefined does. */
static bool followed(const struct sim *s, const struct job *j)
{
    bool any = false;
    for (const struct job *k = s->f->jobs; k != NULL && !any; k = k->hh.next) {
        any = k->id < j->id && job_ended(k) && k->ended_ns >= s->still.looked_ns &&
              k->device == j->device && shared(s, k, j);
    }
    return any || forgotten_before(s, j);
}

/* Has a worker of the device, as the workers know, something to do? */
static bool works(struct sim *s, const struct device *base)
{
    bool busy = base->worker != 0 && exec_busy(s, worker_slot_of(s, base));
    for (const struct device *d = base->domains; d != NULL && !busy; d = d->domain_next) {
        busy = d->worker != 0 && exec_busy(s, worker_slot_of(s, d));
    }
    return busy;
}

static bool has_jobs(const struct sim *s, const struct device *base)
{
    bool any = false;
    for (const struct job *j = s->f->jobs; j != NULL && !any; j = j->hh.next) {
        any = !job_ended(j) && j->device != NULL && device_shown(j->device) == base->index;
    }
    return any;
}

/* Buffers leave a device only for a job that would wait there: for an idle one, or one of two that
 * work. A job behind another one goes where that goes. */
static void check_leaving(struct sim *s, const struct job *j)
{
    struct device *home = left_by(s, j);
    if (home == NULL) {
        return;
    }
    struct device *from = device_base(home);
    struct device *to = device_base(j->device);
    sim_log(s, "job %" PRIu64 " takes its buffers from device %u to %u", j->id, from->index,
            to->index);
    if (!j->strays) {
        sim_fail(s, "moves: job %" PRIu64 " left its buffers, and would not come back to them",
                 j->id);
    }
    if (followed(s, j)) {
        return;
    }
    if (!works(s, from) && !has_jobs(s, from)) {
        sim_fail(s, "moves: job %" PRIu64 " leaves device %u, which has nothing to do", j->id,
                 from->index);
    }
    if (works(s, to) && !works(s, from)) {
        sim_fail(s, "moves: job %" PRIu64 " leaves device %u for device %u, which works", j->id,
                 from->index, to->index);
    }
    sooner_check(s, j, home);
}

/* Was it published before the last look? One request of its maker has done that. */
static bool was_published(const struct sim *s, const struct sim_buffer *known)
{
    const struct sim_request *q = s->requests;
    bool once = known != NULL && known->published && known->publishes == 1 && !known->freed;
    while (
        once && q != NULL &&
        (q->kind != MSG_KIND_BUFFER_PUBLISH || q->buffer != known || q->client != known->maker)) {
        q = q->next;
    }
    return once && q != NULL && q->answered && q->asked_ns < s->still.looked_ns;
}

/* Others use a published buffer where it is, unless it was to move before it was published. */
static void check_bound(struct sim *s, const struct job *j)
{
    for (unsigned i = 0; i < j->work.use_count && j->device != NULL && !memory_failed(); i++) {
        const struct buffer *b = j->work.uses[i].buffer;
        bool leaves = b->device != j->device->index && b->users == 1 && b->move == MOVE_NONE;
        if (leaves && was_published(s, model_find(s, b->handle)) && !followed(s, j)) {
            sim_fail(s,
                     "moves: job %" PRIu64 " takes buffer %#" PRIx64
                     ", which is published, from device %u to %u",
                     j->id, b->handle, b->device, j->device->index);
        }
    }
}

/* Jobs that came since the last look: the newest are at the end. */
static void check_new(struct sim *s)
{
    struct job *const first = s->f->jobs;
    uint64_t seen = s->still.job_era == s->era ? s->still.job : 0;
    struct job *j = first != NULL ? ELMT_FROM_HH(first->hh.tbl, first->hh.tbl->tail) : NULL;
    s->still.job = j != NULL && j->id > seen ? j->id : seen;
    s->still.job_era = s->era;
    for (; j != NULL && j->id > seen; j = j->hh.prev) {
        if (j->state == JOB_QUEUED) {
            check_bound(s, j);
            check_leaving(s, j);
            sooner_follow(s, j);
            if (!followed(s, j)) {
                sooner_check_used(s, j);
            }
        }
    }
    s->still.looked_ns = s->now_ns;
}

void moves_check(struct sim *s)
{
    if (s->p.devices > 1) {
        check_new(s);
        sooner_look(s);
    }
    if (s->f->count.moved != s->still.moved) {
        note_moved(s);
        s->still.moved = s->f->count.moved;
    }
    check_all_moving(s);
    uint64_t one = one_that_may(s, s->still.buffer);
    if (one == 0 || one != s->still.buffer) {
        s->still.buffer = one;
        s->still.since_ns = s->now_ns;
    }
    if (s->now_ns > s->still.since_ns + START_NS && s->now_ns > s->stalled_ns + START_NS &&
        !memory_failed()) {
        sim_fail(s, "moves: a job waits for buffer %#" PRIx64 ", and nothing keeps it from moving",
                 one);
    }
}

void moves_check_all(struct sim *s)
{
    uint32_t cursor = 0;
    for (const struct buffer *b; (b = idmap_next(&s->f->buffers, &cursor, NULL)) != NULL;) {
        check_copy(s, b);
    }
    if (s->p.spread > 0) {
        check_accounts(s);
    }
}
