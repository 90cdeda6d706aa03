#include "daemon/front/workers/record_encode.h"

#include "daemon/front/workers/record.h"

/* Lists at most RECORD_OPENERS_MAX openers. After an adoption the others do not count: they lose
 * the buffer when its owner and the listed openers have let it go. */
static int add_openers(const struct buffer *b, struct capbuf *out, uint64_t *ret_count,
                       struct err *e)
{
    uint64_t count = 0;
    int rc = 0;
    for (const struct buffer_opener *o = b->opener;
         rc == 0 && o != NULL && count < RECORD_OPENERS_MAX; o = o->next, count++) {
        struct proto_record_opener m = {
            .client_id = bytes_of(o->session->key.client_id, PROTO_CLIENT_ID_BYTES),
            .uid = session_user(&o->session->key),
            .seq = o->seq};
        rc = proto_list_add(&schema_record_opener, &m, out, e);
    }
    *ret_count = count;
    return rc;
}

int record_encode_buffer(const struct buffer *b, struct capbuf *out, struct err *e)
{
    const uint64_t *d = b->shape.dim;
    struct capbuf openers;
    uint64_t opener_count = 0;
    capbuf_init(&openers, RECORD_BYTES_MAX);
    int rc = add_openers(b, &openers, &opener_count, e);
    struct msg_record_buffer m = {
        .client_id = bytes_of(b->client_id, sizeof b->client_id),
        .uid = b->user,
        .seq = b->seq,
        .dtype = b->shape.dtype,
        .ndim = b->shape.ndim,
        .d0 = d[0],
        .d1 = d[1],
        .d2 = d[2],
        .d3 = d[3],
        .flags = b->flags,
        .label = bytes_str(b->label),
        .name = bytes_str(b->name),
        .rights = b->rights,
        .linger_ns = b->linger_ns,
        .defined = spans_cover(&b->defined, 0, b->bytes),
        .left = b->owner == NULL,
        .openers = proto_list_of(&openers, opener_count),
        .tenant = bytes_str(b->tenant->name),
        .freed = b->freed_by,
        .grants = bytes_str(b->grants != NULL ? b->grants : ""),
        .kept = !b->handed             ? RECORD_NOT_KEPT
                : b->copy == COPY_KEPT ? RECORD_MOVED
                                       : RECORD_SEALED,
    };
    rc = rc == 0 ? proto_encode(&schema_msg_record_buffer, &m, out, e) : rc;
    capbuf_finish(&openers);
    return rc;
}

static int add_uses(const struct work *w, struct capbuf *out, struct err *e)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < w->use_count; i++) {
        struct proto_record_use use = {.handle = w->uses[i].buffer->handle,
                                       .access = (uint64_t)w->uses[i].access,
                                       .fills = work_fills(&w->uses[i]),
                                       .begin = w->uses[i].write_begin,
                                       .end = w->uses[i].write_end};
        rc = proto_list_add(&schema_record_use, &use, out, e);
    }
    return rc;
}

static int add_outputs(const struct work *w, struct capbuf *out, struct err *e)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < w->output_count; i++) {
        const struct work_output *o = &w->outputs[i];
        struct proto_record_output output = {
            .step = o->step, .arg = o->arg, .offset = o->offset, .size = o->size};
        rc = proto_list_add(&schema_record_output, &output, out, e);
    }
    return rc;
}

int record_encode_job(const struct job *j, struct capbuf *out, struct err *e)
{
    static const uint8_t nobody[PROTO_CLIENT_ID_BYTES];
    struct capbuf uses;
    struct capbuf outputs;
    capbuf_init(&uses, RECORD_BYTES_MAX);
    capbuf_init(&outputs, RECORD_BYTES_MAX);
    int rc = add_uses(&j->work, &uses, e);
    if (rc == 0) {
        rc = add_outputs(&j->work, &outputs, e);
    }
    if (rc == 0) {
        const uint8_t *client = j->session != NULL ? j->session->key.client_id : nobody;
        struct msg_record_job m = {
            .client_id = bytes_of(client, PROTO_CLIENT_ID_BYTES),
            .uid = j->session != NULL ? session_user(&j->session->key) : 0,
            .seq = j->seq,
            .async = j->async,
            .limit_ns = j->limit_ns,
            .submitted_ns = j->submitted_ns,
            .label = bytes_str(j->label),
            .input = j->input,
            .input_size = j->work.input_bytes,
            .output = j->output,
            .output_size = j->work.output_bytes,
            .uses = proto_list_of(&uses, j->work.use_count),
            .outputs = proto_list_of(&outputs, j->work.output_count),
            .arenas = j->work.arena_count > 0,
            .repeatable = job_repeatable(j),
            .tenant = bytes_str(j->tenant != NULL ? j->tenant->name : ""),
            .to_device = j->to_device,
            .from_device = j->from_device,
        };
        rc = proto_encode(&schema_msg_record_job, &m, out, e);
    }
    capbuf_finish(&uses);
    capbuf_finish(&outputs);
    return rc;
}
