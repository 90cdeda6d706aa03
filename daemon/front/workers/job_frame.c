#include "daemon/front/workers/job_frame.h"

#include "daemon/front/model/module.h"
#include "daemon/front/model/program.h"
#include "daemon/front/model/tenant.h"

/* bytes; the error names the size of smaller frames only */
#define MEASURED_MAX  (16u * 1024u * 1024u)
#define AFTER_BYTES   (3u + 10u * HAZARD_AFTER_MAX)
#define PROGRAM_BYTES 9u /* a program has no handle yet when its frame is measured */
#define FAR           (UINT64_C(1) << 40) /* an offset whose encoding is as long as any */

static int add_step(const struct job *j, const struct work_step *s, struct capbuf *refs,
                    struct capbuf *steps, struct err *e)
{
    capbuf_reset(refs);
    for (unsigned i = 0; i < s->ref_count; i++) {
        const struct work_ref *r = &j->work.refs[s->first_ref + i];
        struct proto_ref ref = {.tag = r->tag,
                                .id = r->id,
                                .offset = r->offset,
                                .size = r->size,
                                .access = (uint64_t)r->access};
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
        .dtype = (uint64_t)s->dtype,
        .after = s->after,
        .covers = s->covers,
    };
    return proto_list_add(&schema_wstep, &step, steps, e);
}

static int add_temps(const struct work *w, struct capbuf *temps, struct err *e)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < w->temp_count; i++) {
        struct proto_wtemp t = {.size = w->temps[i] > 0 ? w->temps[i] : 1};
        rc = proto_list_add(&schema_wtemp, &t, temps, e);
    }
    return rc;
}

void job_frame_init(struct job_frame *b, size_t limit)
{
    capbuf_init(&b->refs, limit);
    capbuf_init(&b->steps, limit);
    capbuf_init(&b->temps, limit);
    capbuf_init(&b->after, limit);
}

void job_frame_finish(struct job_frame *b)
{
    capbuf_finish(&b->refs);
    capbuf_finish(&b->steps);
    capbuf_finish(&b->temps);
    capbuf_finish(&b->after);
}

int job_frame_build(const struct job *j, const struct hazard_preds *preds, struct job_frame *b,
                    struct msg_f_job *ret_m, struct err *e)
{
    int rc = add_temps(&j->work, &b->temps, e);
    for (unsigned i = 0; rc == 0 && i < j->work.step_count; i++) {
        rc = add_step(j, &j->work.steps[i], &b->refs, &b->steps, e);
    }
    if (rc == 0 && preds == NULL) {
        rc = err_set(e, ERR_STATE, "more than %u jobs before it", HAZARD_AFTER_MAX);
    }
    for (unsigned i = 0; rc == 0 && i < preds->count; i++) {
        struct proto_jobref ref = {.job = preds->job[i]->id};
        rc = proto_list_add(&schema_jobref, &ref, &b->after, e);
    }
    if (rc == 0) {
        *ret_m = (struct msg_f_job){
            .job = j->id,
            .stream = j->stream,
            .after = proto_list_of(&b->after, preds->count),
            .temps = proto_list_of(&b->temps, j->work.temp_count),
            .steps = proto_list_of(&b->steps, j->work.step_count),
            .tenant = tenant_key(j->tenant),
            .rank = j->sched.rank,
            .deadline_ns = j->deadline_ns,
            .program = j->program != NULL ? j->program->handle : 0,
        };
    }
    return rc;
}

/* An upper bound of the frame's bytes, without encoding. */
static size_t bound(const struct work *w)
{
    size_t bytes = 64 + PROGRAM_BYTES + AFTER_BYTES + (size_t)w->temp_count * 10;
    for (unsigned i = 0; i < w->step_count; i++) {
        bytes += 120 + FRAME_PATTERN_MAX + sizeof w->steps[i].entry;
    }
    for (unsigned i = 0; i < w->ref_count; i++) {
        bytes += 37 + (w->refs[i].tag == REF_VALUE ? w->refs[i].size : 0);
    }
    return bytes;
}

static int measure(const struct job *j, size_t *ret_bytes, struct err *e)
{
    const struct hazard_preds preds = {.count = 0}; /* job_frame_check adds AFTER_BYTES for them */
    struct job_frame frame;
    struct capbuf out;
    struct msg_f_job m;
    job_frame_init(&frame, MEASURED_MAX);
    capbuf_init(&out, MEASURED_MAX);
    int rc = job_frame_build(j, &preds, &frame, &m, e);
    if (rc == 0) {
        rc = proto_encode(&schema_msg_f_job, &m, &out, e);
    }
    *ret_bytes = out.size;
    capbuf_finish(&out);
    job_frame_finish(&frame);
    return rc;
}

int job_frame_check(const struct job *j, bool complete, struct err *e)
{
    size_t bytes = bound(&j->work);
    if (bytes <= FRAME_MAX_BYTES) {
        return 0;
    }
    struct job as_sent = *j;
    as_sent.id = complete ? UINT64_MAX : 0;
    as_sent.seq = as_sent.id;
    as_sent.input = complete ? FAR : 0;
    as_sent.output = as_sent.input;
    int rc = measure(&as_sent, &bytes, e);
    bytes += PROGRAM_BYTES + (complete ? AFTER_BYTES : 0);
    if (rc == 0 && bytes > FRAME_MAX_BYTES) {
        rc = err_set(e, ERR_LIMIT,
                     "%u primitive steps take %zu bytes, a worker takes at most %u at once: split "
                     "them into several jobs",
                     j->work.step_count, bytes, FRAME_MAX_BYTES);
    }
    return rc;
}
