#include "daemon/front/workers/command.h"

#include <utlist.h>

#include "common/log.h"
#include "daemon/front/clients/reply.h"
#include "daemon/front/model/about.h"
#include "daemon/front/model/program.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/workers/job_frame.h"
#include "daemon/front/workers/record.h"
#include "daemon/front/workers/record_encode.h"
#include "daemon/front/workers/worker_end.h"

#define RECORD_UNITS 64u /* units of work to update a record */

/* A worker whose channel takes no more frames counts as hung. */
static void sent(struct front *f, struct device *d, int rc, const struct err *e)
{
    if (rc != 0) {
        worker_end(f, d, NULL, e->text);
    }
}

/* A frame that ends something in a worker. Without it a worker would keep that until it ends: a
 * place in the table of jobs, memory, a module. */
static void given_up(struct device *d, const struct schema *schema, const void *msg)
{
    struct err e = ERR_INIT;
    int rc = d->front->io.send(d->link, schema, msg, NULL, &e);
    if (rc != 0 && rc != ERR_CLOSED) { /* else it ends already */
        worker_end(d->front, d, NULL, e.text);
    }
}

static struct device *device_of(struct front *f, const struct buffer *b)
{
    struct device *d = f->device[b->device];
    return d->link != NULL ? d : NULL;
}

static uint64_t device_bytes(const struct buffer *b)
{
    return b->bytes > 0 ? b->bytes : 1; /* a buffer without elements still has an address */
}

/* A buffer without an entry does not survive this front. */
static void record_buffer(struct device *d, struct buffer *b)
{
    struct err e = ERR_INIT;
    struct capbuf bytes;
    capbuf_init(&bytes, RECORD_BYTES_MAX);
    record_entry entry =
        record_encode_buffer(b, &bytes, &e) == 0
            ? record_put(d->record, b->record, RECORD_BUFFER, b->handle, capbuf_view(&bytes))
            : 0;
    if (entry != 0) {
        b->record = entry;
    } else { /* the old entry may say that content is defined which is so no more */
        record_drop(d->record, b->record);
        b->record = 0;
        log_about(LOG_JOB_UNRECORDED, about_device(d),
                  "device %u: buffer %#llx will not survive a restart of gpud: %s", device_shown(d),
                  (unsigned long long)b->handle, e.code != 0 ? e.text : "no memory");
    }
    capbuf_finish(&bytes);
}

uint64_t command_job_id(struct front *f)
{
    uint64_t id = f->next_job++;
    struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        record_note(d->record, RECORD_JOB, id);
    }
    return id;
}

static void record_job(struct device *d, struct job *j)
{
    struct err e = ERR_INIT;
    struct capbuf bytes;
    uint8_t room[512]; /* enough for most jobs */
    capbuf_init_in(&bytes, RECORD_BYTES_MAX, room, sizeof room);
    record_entry entry =
        record_encode_job(j, &bytes, &e) == 0
            ? record_put(d->record, j->record, RECORD_JOB, j->id, capbuf_view(&bytes))
            : 0;
    if (entry != 0) {
        j->record = entry;
    } else {
        log_about(LOG_JOB_UNRECORDED, about_job(j),
                  "device %u: job %llu will not survive a restart of gpud: %s", device_shown(d),
                  (unsigned long long)j->id, e.code != 0 ? e.text : "no memory");
    }
    capbuf_finish(&bytes);
}

void command_buffer_create(struct front *f, struct buffer *b)
{
    struct device *d = device_of(f, b);
    if (d == NULL) {
        return;
    }
    wake_for_pool(f, d);
    struct err e = ERR_INIT;
    struct msg_f_buffer_create m = {.id = b->handle,
                                    .size = device_bytes(b),
                                    .zero = (b->flags & BUFFER_FLAG_ZERO) != 0,
                                    .tenant = tenant_key(b->tenant),
                                    .exported = (b->flags & BUFFER_FLAG_EXPORT) != 0,
                                    .managed = (b->flags & BUFFER_FLAG_MANAGED) != 0,
                                    .stays = (b->flags & BUFFER_FLAG_STAY) != 0};
    if (b->variable != NULL) {
        m.module = b->variable->module->id;
        m.variable = bytes_str(b->variable->name);
    }
    record_buffer(d, b);
    sent(f, d, f->io.send(d->link, &schema_msg_f_buffer_create, &m, NULL, &e), &e);
}

static void record_done(struct front *f, struct buffer *b)
{
    if (b->record_pending) {
        b->record_pending = false;
        DL_DELETE2(f->records_pending, b, record_prev, record_next);
    }
}

/* The record goes first: if this front ends before the frame is sent, the next front finds no entry
 * and frees the buffer. */
void command_buffer_free(struct front *f, struct buffer *b)
{
    struct device *d = device_of(f, b);
    record_done(f, b);
    record_drop(f->device[b->device]->record, b->record);
    b->record = 0;
    bool there = b->state != BUFFER_LOST && (b->state != BUFFER_RESTORING || b->restore_asked);
    if (d == NULL || !there || (b->variable != NULL && !b->variable->asked)) {
        return;
    }
    wake_for_pool(f, d);
    struct err e = ERR_INIT;
    const struct msg_f_buffer_free m = {.id = b->handle};
    sent(f, d, f->io.send(d->link, &schema_msg_f_buffer_free, &m, NULL, &e), &e);
}

void command_forget_buffer(struct device *d, uint64_t id)
{
    const struct msg_f_buffer_free m = {.id = id};
    if (d->link != NULL) {
        given_up(d, &schema_msg_f_buffer_free, &m);
    }
}

void command_buffer_note(struct front *f, struct buffer *b)
{
    record_buffer(f->device[b->device], b);
}

static void record_send(struct front *f, struct buffer *b)
{
    if (b->handed || (device_of(f, b) != NULL && b->state == BUFFER_LIVE)) {
        command_buffer_note(f, b);
    }
}

void command_buffer_record(struct front *f, struct buffer *b)
{
    if (!b->record_pending && (f->records_pending != NULL || front_pressed(f, b->device) ||
                               !turn_take(f, RECORD_UNITS))) {
        b->record_pending = true;
        DL_APPEND2(f->records_pending, b, record_prev, record_next);
    }
    if (!b->record_pending) {
        record_send(f, b);
    }
}

void command_records(struct front *f)
{
    while (f->records_pending != NULL && !front_pressed(f, f->records_pending->device) &&
           turn_take(f, RECORD_UNITS)) {
        struct buffer *b = f->records_pending;
        record_done(f, b);
        record_send(f, b);
    }
}

void command_buffer_export(struct front *f, struct buffer *b)
{
    struct device *d = device_of(f, b);
    struct err e = ERR_INIT;
    struct msg_f_buffer_export m = {.id = b->handle};
    if (d != NULL) {
        sent(f, d, f->io.send(d->link, &schema_msg_f_buffer_export, &m, NULL, &e), &e);
    }
}

/* Makes the host copy and asks the worker to fill it. */
static int ask_for_copy(struct front *f, struct device *d, struct buffer *b, bool lent,
                        struct err *e)
{
    struct memfd host = MEMFD_NONE;
    struct err why = ERR_INIT;
    int rc = lent ? memfd_create_sealed("gpud-lent", device_bytes(b), &host, e)
                  : memfd_create_freezable("gpud-sealed", device_bytes(b), &host, e);
    if (rc != 0) {
        return rc;
    }
    b->host_fd = host.fd;
    host.fd = -1;        /* the buffer owns it */
    memfd_finish(&host); /* with a mapping here a worker that is quick could not freeze it */
    struct frame_fds fds = {.fd = {b->host_fd}, .count = 1};
    struct msg_f_buffer_seal m = {.id = b->handle, .size = device_bytes(b), .lent = lent};
    rc = f->io.send(d->link, &schema_msg_f_buffer_seal, &m, &fds, &why);
    sent(f, d, rc, &why);
    return 0;
}

void command_buffer_seal(struct front *f, struct buffer *b)
{
    struct device *d = device_of(f, b);
    struct err e = ERR_INIT;
    if (d == NULL) {
        return;
    }
    b->sealing = ask_for_copy(f, d, b, false, &e) == 0;
    if (!b->sealing) {
        struct op *o = b->pending;
        b->pending = NULL;
        b->sealed = false;
        if (o != NULL) {
            reply_answer_error(f, o, &e, (struct bytes){0});
        }
    }
}

int command_buffer_lend(struct front *f, struct buffer *b, struct err *e)
{
    struct device *d = device_of(f, b);
    return d != NULL ? ask_for_copy(f, d, b, true, e)
                     : err_set(e, ERR_WORKER_LOST, "the worker has ended");
}

static void send_content(struct front *f, struct device *d, const struct buffer *b)
{
    struct err e = ERR_INIT;
    struct frame_fds fds = {.fd = {b->host_fd}, .count = 1};
    struct msg_f_buffer_restore m = {.id = b->handle,
                                     .size = device_bytes(b),
                                     .tenant = tenant_key(b->tenant),
                                     .exported = (b->flags & BUFFER_FLAG_EXPORT) != 0,
                                     .managed = (b->flags & BUFFER_FLAG_MANAGED) != 0,
                                     .stays = (b->flags & BUFFER_FLAG_STAY) != 0,
                                     .lent = b->copy == COPY_KEPT};
    sent(f, d, f->io.send(d->link, &schema_msg_f_buffer_restore, &m, &fds, &e), &e);
}

void command_buffer_restore(struct front *f, struct buffer *b)
{
    struct device *d = device_of(f, b);
    if (d != NULL) {
        record_buffer(d, b);
        send_content(f, d, b);
    }
}

void command_buffer_carry(struct front *f, struct device *to, const struct buffer *b)
{
    if (to->link != NULL) {
        send_content(f, to, b);
    }
}

/* The new entry goes first: if this front ends between the two, the next one finds both, and frees
 * what the second names. */
void command_buffer_moved(struct front *f, struct buffer *b, struct device *from)
{
    uint64_t old = b->record;
    b->record = 0;
    record_buffer(f->device[b->device], b);
    record_drop(from->record, old);
}

/* A worker gets an arena before the first job that names it. */
static int send_arenas(struct device *d, const struct work *w, struct err *e)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < w->arena_count; i++) {
        struct arena *a = w->arenas[i].arena;
        if (device_set_has(&a->known, d->index)) {
            continue;
        }
        struct frame_fds fds = {.fd = {a->fd}, .count = 1};
        struct msg_f_arena m = {
            .arena = a->handle, .size = a->bytes, .tenant = tenant_key(a->tenant)};
        rc = d->front->io.send(d->link, &schema_msg_f_arena, &m, &fds, e);
        if (rc == 0) {
            device_set_put(&a->known, d->index);
        }
    }
    return rc;
}

void command_arena_drop(const struct device *d, const struct arena *a)
{
    if (device_set_has(&a->known, d->index) && d->link != NULL) {
        struct msg_f_arena_free m = {.arena = a->handle};
        given_up(d->front->device[d->index], &schema_msg_f_arena_free, &m);
    }
}

void command_arena_free(struct front *f, struct arena *a)
{
    const struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        command_arena_drop(d, a);
    }
}

int command_module_load(struct device *d, const struct build *b, struct err *e)
{
    struct frame_fds fds = {.fd = {b->binary_fd}, .count = 1};
    struct msg_f_module_load m = {.module = b->module->id,
                                  .size = b->binary_size,
                                  .hash = bytes_of(b->hash.byte, sizeof b->hash.byte),
                                  .tenant = tenant_key(b->module->tenant)};
    return d->front->io.send(d->link, &schema_msg_f_module_load, &m, &fds, e);
}

void command_module_unload(struct device *d, uint64_t module)
{
    if (d->link != NULL) {
        struct msg_f_module_unload m = {.module = module};
        given_up(d, &schema_msg_f_module_unload, &m);
    }
}

void command_job_unrecord(struct job *j)
{
    if (j->device != NULL) {
        record_drop(j->device->record, j->record);
    }
    j->record = 0;
}

int command_job(struct front *f, struct job *j, const struct hazard_preds *preds, struct err *e)
{
    struct device *d = j->device;
    struct err why;
    struct job_frame frame;
    struct msg_f_job m;
    err_init(&why);
    job_frame_init(&frame, FRAME_MAX_BYTES);
    int rc = job_frame_build(j, preds, &frame, &m, &why);
    turn_count(f, work_units(&j->work));
    if (rc == 0) {
        rc = send_arenas(d, &j->work, &why);
    }
    if (rc == 0) {
        record_job(d, j);
        if (j->program != NULL) {
            device_set_put(&j->program->known, d->index);
        }
        rc = f->io.send(d->link, &schema_msg_f_job, &m, NULL, &why);
    }
    wake_for_pool(f, d);
    job_frame_finish(&frame);
    if (rc == ERR_LIMIT || rc == ERR_NOMEM) {
        command_job_unrecord(j);
        *e = why;
        return rc;
    }
    sent(f, d, rc, &why);
    return 0;
}

void command_program_unref(struct front *f, struct program *p)
{
    const struct msg_f_program_end m = {.program = p != NULL ? p->handle : 0};
    struct device *d;
    for (unsigned at = 0;
         p != NULL && p->references == 1 && (d = front_next_device(f, &at)) != NULL;) {
        if (device_set_has(&p->known, d->index) && d->link != NULL) {
            wake_for_pool(f, d);
            given_up(d, &schema_msg_f_program_end, &m);
        }
    }
    program_unref(p);
}

void command_job_cancel(struct front *f, struct job *j)
{
    struct device *d = j->device;
    if (d == NULL || d->link == NULL || d->epoch != j->epoch) {
        return;
    }
    struct err e = ERR_INIT;
    const struct msg_f_cancel m = {.job = j->id};
    sent(f, d, f->io.send(d->link, &schema_msg_f_cancel, &m, NULL, &e), &e);
}

void command_forget_job(struct device *d, uint64_t id)
{
    const struct msg_f_retire m = {.job = id};
    if (d->link != NULL) {
        given_up(d, &schema_msg_f_retire, &m);
    }
}

void command_retire(struct front *f, struct job *j)
{
    (void)f;
    struct device *d = j->device;
    command_job_unrecord(j);
    if (d != NULL && d->epoch == j->epoch) {
        command_forget_job(d, j->id);
    }
}

void command_job_ended(struct front *f, struct job *j)
{
    struct device *d = j->device;
    /* entries of buffers that are out of date follow; until then the next front asks the worker */
    if (d != NULL) {
        record_ended(d->record, j->record, d->epoch == j->epoch && f->records_pending == NULL);
    }
}

void command_job_tainted(struct job *j)
{
    struct device *d = j->device;
    if (d != NULL && d->epoch == j->epoch) {
        record_tainted(d->record, j->record);
    }
}

void command_outputs_released(struct front *f, struct job *j)
{
    (void)f;
    record_staging_reused(j->device->record, j->record);
}

void command_pool(struct device *d, bool trim)
{
    if (d->link != NULL) {
        struct msg_f_pool m = {.trim = trim};
        (void)d->front->io.send(d->link, &schema_msg_f_pool, &m, NULL, NULL);
    }
}

void command_coalesce(struct device *d, uint64_t window_ns)
{
    if (d->link != NULL) {
        const struct msg_f_coalesce m = {.window_ns = window_ns};
        (void)d->front->io.send(d->link, &schema_msg_f_coalesce, &m, NULL, NULL);
    }
}

void command_spill(struct front *f, struct device *d)
{
    const struct msg_f_spill m = {
        .limit = device_spill_limit(f->config.spill_limit, f->device_count + f->domain_count)};
    struct err e = ERR_INIT;
    if (d->link == NULL || d->progress < WORKER_UP || d->spill_limit == m.limit) {
        return;
    }
    d->spill_limit = m.limit;
    wake_for_pool(f, d);
    sent(f, d, f->io.send(d->link, &schema_msg_f_spill, &m, NULL, &e), &e);
}

int command_inventory(struct device *d, uint64_t nonce, struct err *e)
{
    struct msg_f_inventory m = {.nonce = nonce};
    return d->front->io.send(d->link, &schema_msg_f_inventory, &m, NULL, e);
}
