/* Frames that a worker must not send: about jobs and buffers of others, with wrong values, in the
 * wrong state, twice; and wrong inventories. Some of them the front has to notice, and ends the
 * worker. Others it has to believe: of the jobs and buffers of this worker nothing is certain then,
 * but those of other workers are as before. */
#include <sys/mman.h>
#include <unistd.h>

#include "tests/sim/front/sim.h"

/* A job that another worker has. 0: none has any. */
static uint64_t job_of_other(const struct sim *s, const struct sim_worker *x)
{
    for (const struct job *j = s->f->jobs; j != NULL; j = j->hh.next) {
        if (j->device != NULL && j->device->worker != x->id && j->state == JOB_DISPATCHED) {
            return j->id;
        }
    }
    return 0;
}

static uint64_t some_job(struct sim *s, const struct sim_worker *x, struct chance *r)
{
    uint64_t other = chance_percent(r, 30) ? job_of_other(s, x) : 0;
    if (other != 0) {
        return other;
    }
    uint64_t next = s->f->next_job;
    if (x->job != NULL && chance_percent(r, 40)) {
        const struct sim_worker_job *j = x->job;
        for (uint64_t n = chance_below(r, 8); n > 0 && j->next != NULL; n--) {
            j = j->next;
        }
        return j->id;
    }
    uint64_t recent = next > 6 ? next - chance_below(r, 6) : 1 + chance_below(r, next + 1);
    return chance_percent(r, 70) ? recent : 1 + chance_below(r, next + 1);
}

static uint64_t some_buffer(struct sim *s, struct chance *r)
{
    if (s->buffers == 0 || chance_percent(r, 20)) {
        return chance_next(r);
    }
    return s->buffer[chance_below(r, s->buffers)]->handle;
}

static bool is_of_other(const struct sim *s, const struct sim_worker *x, uint64_t id)
{
    const struct buffer *b = idmap_get(&s->f->buffers, id);
    return b != NULL && s->f->device[b->device]->worker != x->id;
}

/* The first buffer of another worker from the n-th on; without one `otherwise`. */
static uint64_t buffer_of_other(const struct sim *s, const struct sim_worker *x, uint64_t n,
                                uint64_t otherwise)
{
    for (unsigned i = 0; i < s->buffers; i++) {
        uint64_t id = s->buffer[(n + i) % s->buffers]->handle;
        if (is_of_other(s, x, id)) {
            return id;
        }
    }
    return otherwise;
}

/* From now on nothing is certain about the worker's jobs and buffers. */
static void doubt_worker(struct sim *s, struct sim_worker *x)
{
    s->lies = x->lied = true;
    for (const struct sim_inbox *in = x->inbox; in != NULL; in = in->next) {
        if (in->job != NULL) {
            in->job->lied = true;
        }
    }
    for (const struct sim_worker_job *j = x->job; j != NULL; j = j->next) {
        if (j->job != NULL && (j->state != WJOB_ENDED || !j->retired)) {
            j->job->lied = true;
        }
    }
    for (unsigned i = 0; i < s->buffers; i++) {
        struct sim_buffer *b = s->buffer[i];
        b->lied = b->lied || b->worker == x->id || worker_buffer(x, b->handle) != NULL;
    }
}

static void doubt_buffer(struct sim *s, const struct sim_worker *x, uint64_t id)
{
    struct sim_buffer *b = model_find(s, id);
    if (b != NULL && b->worker == x->id) {
        b->vague = true;
    }
}

static bool doubt_job(const struct sim_worker *x, uint64_t id)
{
    for (struct sim_worker_job *j = x->job; j != NULL; j = j->next) {
        if (j->id == id && j->job != NULL) {
            j->job->vague = true;
            model_doubt(j->job);
            return true;
        }
    }
    return false;
}

/* The front can tell that this frame is wrong. It has to end the worker soon. */
static void expose(struct sim *s, struct sim_worker *x)
{
    const struct device *d = NULL;
    const struct device *each;
    for (unsigned at = 0; (each = front_next_device(s->f, &at)) != NULL;) {
        d = each->worker == x->id ? each : d;
    }
    if (d != NULL && device_serves(d) && x->exposed_ns == 0) {
        x->exposed_ns = s->now_ns;
        x->exposed_era = s->era;
    }
}

/* ---- about jobs ------------------------------------------------------------------------------ */

static void lie_done(struct sim *s, struct sim_worker *x, uint64_t job, struct chance *r)
{
    static const int64_t wrong[] = {-1000, 7, INT64_MIN, INT32_MIN, INT64_MAX};
    struct msg_w_done m = {
        .job = job, .code = -(int)chance_below(r, 60), .effects = 1, .step = -1, .arg = -1};
    const struct job *j = job_find(s->f->jobs, job);
    bool other = j != NULL && !job_ended(j) && j->device != NULL && j->device->worker != x->id;
    if (chance_percent(r, 30)) {
        m.code = wrong[chance_below(r, sizeof wrong / sizeof wrong[0])];
        expose(s, x);
    } else if (other && j->state != JOB_QUEUED) {
        expose(s, x);
    }
    worker_send(s, x, &schema_msg_w_done, &m, NULL);
}

static void lie_of_job(struct sim *s, struct sim_worker *x, struct chance *r)
{
    uint64_t job = some_job(s, x, r);
    bool own = doubt_job(x, job);
    const struct msg_w_started started = {.job = job, .at_ns = chance_next(r)};
    const struct msg_w_paused paused = {.job = job};
    const struct msg_w_waiting waiting = {.job = job, .waits = own ? 0 : chance_below(r, 2)};
    const struct msg_w_late late = {.job = job};
    const struct msg_w_inventory_job inventory = {.job = job, .finished = chance_below(r, 2)};
    switch (chance_below(r, 8)) {
    case 0:
        worker_send(s, x, &schema_msg_w_started, &started, NULL);
        break;
    case 1:
        worker_send(s, x, &schema_msg_w_paused, &paused, NULL);
        break;
    case 2:
        worker_send(s, x, &schema_msg_w_waiting, &waiting, NULL);
        break;
    case 3:
        worker_send(s, x, &schema_msg_w_late, &late, NULL);
        break;
    case 4:
        worker_send(s, x, &schema_msg_w_inventory_job, &inventory, NULL);
        break;
    default:
        lie_done(s, x, job, r);
        break;
    }
}

/* ---- about other things ---------------------------------------------------------------------- */

static void lie_of_thing(struct sim *s, struct sim_worker *x, struct chance *r)
{
    uint64_t id = some_buffer(s, r);
    int code = -(int)chance_below(r, 60);
    const struct msg_w_buffer buffer = {.id = code % 2 == 0 ? id : buffer_of_other(s, x, id, id),
                                        .code = code};
    const struct msg_w_module module = {
        .module = x->modules > 0 ? x->module[chance_below(r, x->modules)] : 1, .code = code};
    const struct msg_w_inventory_buffer inventory = {.id = id, .size = 64};
    const struct msg_w_exported exported = {.id = id, .code = code};
    doubt_buffer(s, x, id);
    switch (chance_below(r, 5)) {
    case 0:
        if (is_of_other(s, x, buffer.id)) {
            expose(s, x);
        }
        worker_send(s, x, &schema_msg_w_buffer, &buffer, NULL);
        break;
    case 1:
        worker_send(s, x, &schema_msg_w_module, &module, NULL);
        break;
    case 2:
        worker_send(s, x, &schema_msg_w_inventory_buffer, &inventory, NULL);
        break;
    case 3:
        worker_send(s, x, &schema_msg_w_exported, &exported, NULL);
        break;
    default:
        expose(s, x);
        worker_say_ready(s, x);
        x->rings_asked = false;
        break;
    }
}

static void babble(struct sim *s, struct sim_worker *x, struct chance *r)
{
    uint8_t garbage[16];
    for (unsigned i = 0; i < sizeof garbage; i++) {
        garbage[i] = (uint8_t)chance_next(r);
    }
    worker_send_bytes(s, x, bytes_of(garbage, 1 + chance_below(r, sizeof garbage)), NULL);
}

void lie_event(struct sim *s, struct sim_worker *x, struct chance *r)
{
    unsigned n = (unsigned)chance_below(r, 12);
    if (x->silent) {
        return;
    }
    doubt_worker(s, x);
    if (n < 7) {
        lie_of_job(s, x, r);
    } else if (n < 11) {
        lie_of_thing(s, x, r);
    } else {
        babble(s, x, r);
    }
}

void lie_again(struct sim *s, struct sim_worker *x)
{
    struct msg_w_buffer m;
    const struct bytes last = bytes_of(x->last, x->last_size);
    if (x->silent || x->last_size == 0) {
        return;
    }
    doubt_worker(s, x);
    if (proto_decode(&schema_msg_w_buffer, last, &m, NULL) == 0) {
        doubt_buffer(s, x, m.id); /* it may be taken for the answer to a later request */
    }
    worker_send_bytes(s, x, last, NULL);
}

/* ---- inventories ----------------------------------------------------------------------------- */

enum forgery { FORGE_NONE, FORGE_SIZE, FORGE_COPY, FORGE_MISSING_COPY };

void lie_inventory(struct sim *s, struct sim_worker *x, struct msg_w_inventory_buffer *m,
                   struct frame_fds *fds)
{
    struct sim_buffer *b = model_find(s, m->id);
    enum forgery what = (enum forgery)x->forges;
    if (what == FORGE_NONE || b == NULL || b->handle == 0 || b->freed ||
        (what != FORGE_SIZE && m->sealed == 0)) {
        return;
    }
    doubt_worker(s, x);
    x->forges = FORGE_NONE;
    if (what == FORGE_SIZE) {
        m->size += 64;
    } else if (what == FORGE_COPY) { /* memory that can be cut off under its reader */
        fds->fd[0] = memfd_create("forged", MFD_CLOEXEC);
        if (fds->fd[0] < 0 || ftruncate(fds->fd[0], (off_t)m->size) != 0) {
            sim_fail(s, "worker: no memory for a copy");
        }
    } else {
        fds->count = 0;
    }
    x->exposed_ns = s->now_ns;
    x->exposed_era = s->era;
}
