#include "daemon/front/command.h"

#include "daemon/front/conclude.h"
#include "daemon/front/link.h"
#include "daemon/front/meta.h"

/* A worker whose channel takes no more frames is as good as hung. */
static void sent(struct front *f, struct device *d, int rc, const struct err *e)
{
    if (rc != 0) {
        f->hooks.worker_end(f, d, NULL, e->text);
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

void command_buffer_create(struct front *f, struct buffer *b)
{
    struct device *d = device_of(f, b);
    if (d == NULL) {
        return;
    }
    struct err e = ERR_INIT;
    struct capbuf meta;
    capbuf_init(&meta, FRAME_META_MAX);
    int rc = meta_of_buffer(b, &meta, &e);
    if (rc == 0) {
        struct msg_f_buffer_create m = {.id = b->handle,
                                        .size = device_bytes(b),
                                        .zero = (b->flags & BUFFER_FLAG_ZERO) != 0,
                                        .meta = capbuf_view(&meta)};
        rc = link_send(d->link, &schema_msg_f_buffer_create, &m, NULL, &e);
    }
    capbuf_finish(&meta);
    sent(f, d, rc, &e);
}

void command_buffer_free(struct front *f, struct buffer *b)
{
    struct device *d = device_of(f, b);
    if (d == NULL || b->state == BUFFER_LOST) {
        return;
    }
    struct err e = ERR_INIT;
    struct msg_f_buffer_free m = {.id = b->handle};
    sent(f, d, link_send(d->link, &schema_msg_f_buffer_free, &m, NULL, &e), &e);
}

void command_buffer_meta(struct front *f, struct buffer *b)
{
    struct device *d = device_of(f, b);
    if (d == NULL || b->state != BUFFER_LIVE) {
        return;
    }
    struct err e = ERR_INIT;
    struct capbuf meta;
    capbuf_init(&meta, FRAME_META_MAX);
    int rc = meta_of_buffer(b, &meta, &e);
    if (rc == 0) {
        struct msg_f_buffer_meta m = {.id = b->handle, .meta = capbuf_view(&meta)};
        rc = link_send(d->link, &schema_msg_f_buffer_meta, &m, NULL, &e);
    }
    capbuf_finish(&meta);
    sent(f, d, rc, &e);
}

void command_buffer_seal(struct front *f, struct buffer *b)
{
    struct device *d = device_of(f, b);
    struct err e = ERR_INIT;
    if (d == NULL) {
        return;
    }
    struct memfd host = MEMFD_NONE;
    int rc = memfd_create_sealed("gpud-sealed", device_bytes(b), &host, &e);
    if (rc != 0) {
        struct op *o = b->pending;
        b->pending = NULL;
        b->sealed = false;
        f->hooks.answer_error(f, o, &e, (struct bytes){0});
        return;
    }
    struct frame_fds fds = {.fd = {host.fd}, .count = 1};
    struct msg_f_buffer_seal m = {.id = b->handle, .size = device_bytes(b)};
    rc = link_send(d->link, &schema_msg_f_buffer_seal, &m, &fds, &e);
    b->host_fd = host.fd;
    host.fd = -1; /* the buffer keeps it; the mapping is not needed */
    memfd_finish(&host);
    sent(f, d, rc, &e);
}

void command_buffer_restore(struct front *f, struct buffer *b)
{
    struct device *d = device_of(f, b);
    if (d == NULL) {
        return;
    }
    struct err e = ERR_INIT;
    struct capbuf meta;
    capbuf_init(&meta, FRAME_META_MAX);
    int rc = meta_of_buffer(b, &meta, &e);
    if (rc == 0) {
        struct frame_fds fds = {.fd = {b->host_fd}, .count = 1};
        struct msg_f_buffer_restore m = {
            .id = b->handle, .size = device_bytes(b), .meta = capbuf_view(&meta)};
        rc = link_send(d->link, &schema_msg_f_buffer_restore, &m, &fds, &e);
    }
    capbuf_finish(&meta);
    sent(f, d, rc, &e);
}

int command_module_load(struct device *d, const struct build *b, struct err *e)
{
    struct frame_fds fds = {.fd = {b->binary_fd}, .count = 1};
    struct msg_f_module_load m = {.module = b->module->id,
                                  .size = b->binary_size,
                                  .hash = bytes_of(b->hash.byte, sizeof b->hash.byte)};
    return link_send(d->link, &schema_msg_f_module_load, &m, &fds, e);
}

void command_module_unload(struct device *d, uint64_t module)
{
    if (d->link != NULL) {
        struct msg_f_module_unload m = {.module = module};
        (void)link_send(d->link, &schema_msg_f_module_unload, &m, NULL, NULL);
    }
}

static int add_step(const struct job *j, const struct work_step *s, struct capbuf *refs,
                    struct capbuf *steps, struct err *e)
{
    capbuf_reset(refs);
    for (unsigned i = 0; i < s->ref_count; i++) {
        const struct work_ref *r = &j->work.refs[s->first_ref + i];
        struct proto_ref ref = {.tag = r->tag, .id = r->id, .offset = r->offset, .size = r->size};
        if (r->tag == REF_VALUE) {
            ref.value = bytes_of(r->large != NULL ? r->large : r->value, r->size);
        }
        int rc = proto_list_add(&schema_ref, &ref, refs, e);
        if (rc != 0) {
            return rc;
        }
    }
    uint64_t base = s->op == OP_WRITE ? j->input : s->op == OP_READ ? j->output : 0;
    struct proto_wstep step = {
        .op = s->op,
        .step = s->step,
        .args = proto_list_of(refs, s->ref_count),
        .stage = base + s->stage,
        .pattern = bytes_of(s->pattern, s->pattern_size),
        .module = s->module != NULL ? s->module->id : 0,
        .entry = bytes_str(s->entry),
        .gx = s->global[0],
        .gy = s->global[1],
        .gz = s->global[2],
        .lx = s->local[0],
        .ly = s->local[1],
        .lz = s->local[2],
        .shared = s->shared,
    };
    return proto_list_add(&schema_wstep, &step, steps, e);
}

struct job_frame {
    struct capbuf refs, steps, temps, after, meta;
};

static int add_temps(const struct work *w, struct capbuf *temps, struct err *e)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < w->temp_count; i++) {
        struct proto_wtemp t = {.size = w->temps[i] > 0 ? w->temps[i] : 1};
        rc = proto_list_add(&schema_wtemp, &t, temps, e);
    }
    return rc;
}

static int build_frame(struct job *j, struct job_frame *b, struct msg_f_job *ret_m, struct err *e)
{
    int rc = add_temps(&j->work, &b->temps, e);
    for (unsigned i = 0; rc == 0 && i < j->work.step_count; i++) {
        rc = add_step(j, &j->work.steps[i], &b->refs, &b->steps, e);
    }
    uint64_t after = 0;
    for (const struct job_edge *x = j->preds; rc == 0 && x != NULL; x = x->next_pred) {
        struct proto_jobref ref = {.job = x->pred->id};
        rc = proto_list_add(&schema_jobref, &ref, &b->after, e);
        after++;
    }
    if (rc == 0) {
        rc = meta_of_job(j, &b->meta, e);
    }
    if (rc == 0) {
        *ret_m = (struct msg_f_job){
            .job = j->id,
            .stream = j->stream,
            .after = proto_list_of(&b->after, after),
            .temps = proto_list_of(&b->temps, j->work.temp_count),
            .steps = proto_list_of(&b->steps, j->work.step_count),
            .meta = capbuf_view(&b->meta),
        };
    }
    return rc;
}

void command_job(struct front *f, struct job *j)
{
    struct device *d = j->device;
    struct err e = ERR_INIT;
    struct job_frame b;
    capbuf_init(&b.refs, FRAME_MAX_BYTES);
    capbuf_init(&b.steps, FRAME_MAX_BYTES);
    capbuf_init(&b.temps, FRAME_MAX_BYTES);
    capbuf_init(&b.after, FRAME_MAX_BYTES);
    capbuf_init(&b.meta, FRAME_META_MAX);
    struct msg_f_job m;
    int rc = build_frame(j, &b, &m, &e);
    if (rc == 0) {
        rc = link_send(d->link, &schema_msg_f_job, &m, NULL, &e);
    }
    if (rc == ERR_LIMIT || rc == ERR_NOMEM) {
        j->retained = false;
        (void)err_wrap(&e, "job is too large: split it");
        job_conclude(f, j, JOB_FAILED, &e);
    } else {
        sent(f, d, rc, &e);
    }
    capbuf_finish(&b.refs);
    capbuf_finish(&b.steps);
    capbuf_finish(&b.temps);
    capbuf_finish(&b.after);
    capbuf_finish(&b.meta);
}

void command_retire(struct front *f, struct job *j)
{
    (void)f;
    struct device *d = j->device;
    if (d != NULL && d->link != NULL && d->epoch == j->epoch) {
        struct msg_f_retire m = {.job = j->id};
        (void)link_send(d->link, &schema_msg_f_retire, &m, NULL, NULL);
    }
}

void command_pool(struct device *d, bool trim)
{
    if (d->link != NULL) {
        struct msg_f_pool m = {.trim = trim};
        (void)link_send(d->link, &schema_msg_f_pool, &m, NULL, NULL);
    }
}

int command_inventory(struct device *d, uint64_t nonce, struct err *e)
{
    struct msg_f_inventory m = {.nonce = nonce};
    return link_send(d->link, &schema_msg_f_inventory, &m, NULL, e);
}
