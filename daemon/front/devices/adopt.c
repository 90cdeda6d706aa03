#include "daemon/front/devices/adopt.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/front/devices/discover.h"
#include "daemon/front/memory/buffers.h"
#include "daemon/front/model/about.h"
#include "daemon/front/model/domain.h"
#include "daemon/front/model/flight.h"
#include "daemon/front/model/op.h"
#include "daemon/front/model/session_events.h"
#include "daemon/front/model/sessions.h"
#include "daemon/front/sched/completion.h"
#include "daemon/front/sched/hazard.h"
#include "daemon/front/sched/shares.h"
#include "daemon/front/tenants/forget.h"
#include "daemon/front/tenants/tenant_quota.h"
#include "daemon/front/workers/arrivals.h"
#include "daemon/front/workers/command.h"
#include "daemon/front/workers/departing.h"
#include "daemon/front/workers/domains.h"
#include "daemon/front/workers/evacuate.h"
#include "daemon/front/workers/keep.h"
#include "daemon/front/workers/record.h"
#include "daemon/front/workers/record_encode.h"
#include "daemon/front/workers/worker.h"

/* Finds or makes the tenant with the name of the record. NULL: no name, or no memory. */
static struct tenant *tenant_of(struct front *f, struct bytes name)
{
    char text[PROTO_NAME_MAX + 1];
    return name.size > 0 && bytes_to_str(name, text, sizeof text) ? quota_tenant(f, text) : NULL;
}

/* Its client cannot come back before all workers have reported, so its time to do so begins then:
 * adopt_over. */
static struct session *owner_of(struct front *f, struct bytes client_id, uint64_t user,
                                struct tenant *t)
{
    if (client_id.size != PROTO_CLIENT_ID_BYTES || t == NULL) {
        return NULL;
    }
    const struct session_key key = session_key(client_id.data, user);
    struct session *s = sessions_obtain(f, &key, t);
    if (s != NULL && s->state == SESSION_LINGERING) {
        s->lingers_until_ns = NS_NEVER;
        session_set_timer(f, s);
    }
    return s;
}

/* Do the worker's reports count? Not those of a worker that is being ended, because its clients get
 * another answer. */
static bool adopting(const struct device *d)
{
    return d->state == DEVICE_ADOPTING && d->killed_ns == 0;
}

/* ---- buffers ------------------------------------------------------------------------------ */

static struct buffer *buffer_from(struct front *f, struct device *d,
                                  const struct msg_record_buffer *m)
{
    uint64_t dims[] = {m->d0, m->d1, m->d2, m->d3};
    char name[PROTO_NAME_MAX + 1];
    struct shape shape;
    struct tenant *t = tenant_of(f, m->tenant);
    struct session *s = m->left != 0 ? NULL : owner_of(f, m->client_id, m->uid, t);
    struct buffer *b = t != NULL && (s != NULL || m->left != 0) ? calloc(1, sizeof *b) : NULL;
    if (b == NULL || m->client_id.size != sizeof b->client_id ||
        shape_make((int)m->dtype, (unsigned)m->ndim, dims, &shape, NULL) != 0 ||
        !bytes_to_str(m->label, b->label, sizeof b->label) ||
        !bytes_to_str(m->name, name, sizeof name)) {
        free(b);
        return NULL;
    }
    b->shape = shape;
    b->bytes = shape_bytes(&shape);
    b->flags = m->flags;
    b->tenant = t;
    b->user = m->uid;
    b->seq = m->seq;
    b->freed_by = m->freed;
    b->device = d->index;
    b->shown = device_shown(d);
    b->losses = &d->losses;
    b->rights = (unsigned)m->rights;
    b->linger_ns = m->linger_ns;
    b->linger_until_ns = NS_NEVER;
    b->host_fd = -1;
    b->export_fd = -1;
    if (s != NULL) {
        buffer_own(b, s);
    }
    memcpy(b->client_id, m->client_id.data, sizeof b->client_id);
    if (buffer_named(t, name) == NULL) { /* if another buffer has the name, the record is damaged */
        (void)buffer_rename(b, name);    /* without memory it is not published */
    }
    if (buffer_check_grants(m->grants, NULL) == 0) {
        (void)buffer_set_grants(b, m->grants); /* without memory it is not granted */
    }
    if (m->defined != 0) {
        spans_add(&b->defined, 0, b->bytes);
    }
    return b;
}

/* A client may repeat the request that made or opened the buffer, and gets the first one's
 * answer. */
static void answer_again(const struct buffer *b, struct session *s, uint64_t seq)
{
    if (s == NULL || seq == 0 || op_find(s, seq) != NULL) {
        return;
    }
    struct op *o = op_create(s, seq, NULL);
    if (o == NULL) {
        return;
    }
    struct capbuf out;
    capbuf_init(&out, 4096);
    if (buffer_encode(b, &out, NULL) == 0) {
        (void)op_answer(o, capbuf_view(&out));
    }
    capbuf_finish(&out);
}

static void take_openers(struct front *f, struct buffer *b, const struct msg_record_buffer *m)
{
    struct proto_iter it = proto_iter_of(m->openers);
    struct proto_record_opener o;
    while (proto_list_next(&it, &schema_record_opener, &o)) {
        struct session *s = owner_of(f, o.client_id, o.uid, b->tenant);
        if (s != NULL && buffer_opener_add(b, s, o.seq)) {
            answer_again(b, s, o.seq);
        }
    }
    buffer_let_linger(f, b);
}

static void lost(struct front *f, struct buffer *b)
{
    command_buffer_free(f, b);
    evacuate_drop(f, b);
    buffer_set_state(b, BUFFER_LOST);
    if (b->owner != NULL) {
        (void)session_notice(b->owner, f->config.tenant_notices_max, NOTICE_BUFFER_LOST, b->handle);
    }
}

/* The record's entry for a reported id: none, used by an earlier report, unused. */
enum entry { ENTRY_NONE, ENTRY_USED, ENTRY_FRESH };

/* Finds the entry for the id. Reports count only while the worker is being adopted; all others get
 * ENTRY_USED. */
static enum entry entry_of(struct device *d, enum record_kind kind, uint64_t id,
                           struct record_view *ret_view)
{
    bool taken = false;
    if (!adopting(d)) {
        return ENTRY_USED;
    }
    bool found = record_find(d->record, kind, id, ret_view, &taken);
    return !found ? ENTRY_NONE : taken ? ENTRY_USED : ENTRY_FRESH;
}

/* The worker sends memory that the former front made. Its size is checked, because a worker is not
 * trusted. */
static int check_copy(int fd, uint64_t bytes, struct err *e)
{
    struct memfd m = MEMFD_NONE;
    int rc = memfd_adopt(fd, bytes, false, &m, e);
    m.fd = -1; /* memfd_finish undoes the mapping only; the caller keeps the descriptor */
    memfd_finish(&m);
    return rc;
}

static int check_inventory(const struct buffer *b, const struct msg_w_inventory_buffer *m, int fd,
                           struct err *e)
{
    uint64_t bytes = b->bytes > 0 ? b->bytes : 1;
    if (m->size != bytes) {
        return err_set(e, ERR_PROTOCOL, "the worker has %llu bytes for buffer %#llx of %llu bytes",
                       (unsigned long long)m->size, (unsigned long long)m->id,
                       (unsigned long long)bytes);
    }
    if ((m->sealed != 0 || m->lent != 0) != (fd >= 0) || (m->lent != 0 && m->arriving == 0)) {
        return err_set(e, ERR_PROTOCOL, "the worker sent %s copy of buffer %#llx",
                       fd >= 0 ? "an unrequested" : "no", (unsigned long long)m->id);
    }
    int rc = fd >= 0 ? check_copy(fd, bytes, e) : 0;
    return rc == 0 ? 0
                   : err_set(e, ERR_PROTOCOL, "the worker's copy of buffer %#llx is invalid",
                             (unsigned long long)m->id);
}

/* All that a tenant has is in workers of its own, or in those that tenants share. One that is
 * trusted since may be in the latter while a worker of its own, which has been taken over before,
 * has yet to end. */
static void place_tenant(struct tenant *t, const struct device *d)
{
    t->apart = d->owner != NULL;
}

/* Counts it for its tenant and its owner. false: it is lost. */
static bool count_buffer(struct front *f, struct device *d, struct buffer *b)
{
    buffer_set_state(b, BUFFER_LIVE);
    place_tenant(b->tenant, d);
    b->tenant->held[TENANT_BUFFERS]++;
    if (b->owner != NULL) {
        b->owner->buffers++;
    }
    /* a variable is lost with its module, which this front unloads */
    if ((b->flags & BUFFER_FLAG_VARIABLE) != 0) {
        lost(f, b);
        return false;
    }
    if (!buffer_charge(b, d, turn_now(f))) {
        log_about(LOG_BUFFER_LOST, about_device(d),
                  "device %u: a buffer of %llu bytes is more than can be counted", device_shown(d),
                  (unsigned long long)b->bytes);
        lost(f, b);
        return false;
    }
    return true;
}

static void take_buffer(struct front *f, struct device *d, const struct msg_w_inventory_buffer *m,
                        struct buffer *b, const struct msg_record_buffer *record)
{
    if (!count_buffer(f, d, b)) {
        return;
    }
    /* the former front asked to restore the copy, and this front gets the answer */
    if (m->lent != 0) {
        evacuate_adopt(f, b);
    }
    if ((b->sealed || b->copy == COPY_KEPT) && m->arriving != 0) {
        buffer_set_state(b, BUFFER_RESTORING);
        b->restore_asked = true;
        d->restores++;
    }
    answer_again(b, b->owner, b->seq);
    take_openers(f, b, record);
    if (record->kept != RECORD_NOT_KEPT &&
        (b->state != BUFFER_RESTORING || !keep_claim_for(f, b))) {
        command_buffer_note(f, b); /* jobs may write it: its copy is not true any more */
    }
}

/* The buffer cannot be taken over. The worker frees it when no job uses it any more. */
static void forget(struct device *d, uint64_t id, record_entry entry)
{
    log_about(LOG_BUFFER_LOST, about_device(d),
              "device %u: buffer %#llx could not be taken over, and is lost", device_shown(d),
              (unsigned long long)id);
    record_drop(d->record, entry);
    command_forget_buffer(d, id);
}

/* Makes the buffer of the record's entry. NULL: no entry, a damaged entry, or no memory. */
static struct buffer *buffer_given(struct front *f, struct device *d,
                                   const struct msg_w_inventory_buffer *m,
                                   struct record_view *ret_view, struct msg_record_buffer *ret_meta)
{
    enum entry entry = entry_of(d, RECORD_BUFFER, m->id, ret_view);
    /* the former front freed the buffer, and ended before it sent the frame; or the buffer was
     * moving here, and the worker has yet to answer for it */
    if (entry == ENTRY_NONE && m->arriving != 0 && arrivals_room(d)) {
        arrivals_add(d, m->id, false);
    } else if (entry == ENTRY_NONE) {
        command_forget_buffer(d, m->id);
    }
    if (entry != ENTRY_FRESH) {
        return NULL;
    }
    struct buffer *b = NULL;
    if (proto_decode(&schema_msg_record_buffer, ret_view->bytes, ret_meta, NULL) == 0) {
        b = buffer_from(f, d, ret_meta);
    }
    if (b == NULL) {
        forget(d, m->id, ret_view->entry);
    }
    return b;
}

int adopt_buffer(struct front *f, struct device *d, const struct msg_w_inventory_buffer *m, int fd,
                 struct err *e)
{
    struct msg_record_buffer record;
    struct record_view view;
    struct buffer *b = buffer_given(f, d, m, &view, &record);
    int rc = b != NULL ? check_inventory(b, m, fd, e) : 0;
    if (rc != 0) {
        record_drop(d->record, view.entry);
    }
    bool restored = rc == 0 && b != NULL && idmap_restore(&f->buffers, m->id, b);
    if (rc == 0 && b != NULL && !restored) {
        forget(d, m->id, view.entry);
    }
    if (!restored) {
        buffer_destroy(b);
        if (fd >= 0) {
            (void)close(fd);
        }
        return rc;
    }
    b->handle = m->id;
    b->record = view.entry;
    b->sealed = m->sealed != 0 && m->lent == 0;
    b->host_fd = fd;
    take_buffer(f, d, m, b, &record);
    return 0;
}

/* ---- buffers without a worker -------------------------------------------------------------- */

/* The launcher has the copy on the host that the entry names. */
static void take_kept(struct front *f, struct device *d, const struct record_view *view)
{
    struct msg_record_buffer m;
    bool good = proto_decode(&schema_msg_record_buffer, view->bytes, &m, NULL) == 0;
    struct buffer *b = good && m.kept != RECORD_NOT_KEPT ? buffer_from(f, d, &m) : NULL;
    if (b == NULL) {
        return;
    }
    b->handle = view->id;
    bool has =
        keep_claim_for(f, b) && check_copy(b->host_fd, b->bytes > 0 ? b->bytes : 1, NULL) == 0;
    if (!has || !idmap_restore(&f->buffers, b->handle, b)) {
        log_about(LOG_BUFFER_LOST, about_device(d),
                  "device %u: buffer %#llx could not be taken over, and is lost", device_shown(d),
                  (unsigned long long)b->handle);
        keep_release(f, b);
        buffer_destroy(b);
        return;
    }
    record_keep(d->record, b->handle);
    b->record = view->entry;
    b->sealed = m.kept == RECORD_SEALED;
    if (!count_buffer(f, d, b)) {
        return;
    }
    if (!b->sealed) {
        evacuate_adopt(f, b);
    }
    buffer_restore_later(d, b);
    answer_again(b, b->owner, b->seq);
    take_openers(f, b, &m);
}

/* Those of which the device's worker, if it has one, has said nothing. */
static void take_all_kept(struct front *f, struct device *d)
{
    struct record_view view;
    size_t cursor = 0;
    while (record_unfound(d->record, &cursor, &view)) {
        take_kept(f, d, &view);
    }
}

/* Does the record of an ended worker name a copy? */
static bool has_kept(struct record *r)
{
    struct record_view view;
    struct msg_record_buffer m;
    size_t cursor = 0;
    bool any = false;
    while (!any && record_unfound(r, &cursor, &view)) {
        any = proto_decode(&schema_msg_record_buffer, view.bytes, &m, NULL) == 0 &&
              m.kept != RECORD_NOT_KEPT;
    }
    return any;
}

/* ---- jobs --------------------------------------------------------------------------------- */

static void take_uses(struct front *f, struct job *j, const struct msg_record_job *m)
{
    struct proto_iter it = proto_iter_of(m->uses);
    struct proto_record_use use;
    while (proto_list_next(&it, &schema_record_use, &use)) {
        struct buffer *b = idmap_get(&f->buffers, use.handle);
        struct work_use *u =
            b != NULL && b->device == j->device->index ? work_use_of(&j->work, b) : NULL;
        if (u != NULL) {
            u->access = (int)use.access;
            bool writes = (use.access & ACCESS_OUT) != 0;
            bool inside = use.begin <= use.end && use.end <= b->bytes;
            u->write_begin = writes && inside ? use.begin : 0;
            u->write_end = writes && inside ? use.end : writes ? b->bytes : 0;
            if (writes && inside && use.fills != 0) {
                span_add(u->part, &u->part_count, WORK_PARTS, use.begin, use.end);
            }
        }
    }
}

static void take_outputs(struct job *j, const struct msg_record_job *m)
{
    struct proto_iter it = proto_iter_of(m->outputs);
    struct proto_record_output o;
    uint64_t offset = 0;
    while (proto_list_next(&it, &schema_record_output, &o)) {
        if (o.offset > m->output_size || o.size > m->output_size - o.offset ||
            work_add_output(&j->work, (unsigned)o.step, (unsigned)o.arg, o.size, &offset, NULL) !=
                0) {
            return;
        }
        j->work.outputs[j->work.output_count - 1].offset = o.offset;
    }
}

static void take_staging(struct device *d, struct job *j, const struct msg_record_job *m)
{
    if (m->input_size > 0 && range_take(&d->input_range, m->input, m->input_size)) {
        j->input = m->input;
    }
    if (m->output_size > 0 && range_take(&d->output_range, m->output, m->output_size)) {
        j->output = m->output;
    }
}

/* The client's next request would run the job again. This front ends, and leaves the records to the
 * next one as they are. */
static void lacks_memory(struct front *f, uint64_t job)
{
    log_say(LOG_NO_MEMORY, "no memory to give job %llu of the former gpud back to its session",
            (unsigned long long)job);
    f->unadopted = true;
}

/* Has the entry a session that this front may have? One that is damaged has none, and neither has
 * one whose tenant finds the table full. */
static bool has_owner(const struct front *f, const struct msg_record_job *m, const struct tenant *t)
{
    bool named = m->client_id.size == PROTO_CLIENT_ID_BYTES && m->tenant.size > 0 &&
                 m->tenant.size <= PROTO_NAME_MAX;
    return named && (t != NULL || HASH_COUNT(f->tenants) < TENANTS_MAX);
}

static void join_owner(struct front *f, struct job *j, const struct msg_record_job *m)
{
    bool awaited = (m->seq != 0 || m->async != 0) && has_owner(f, m, j->tenant);
    struct session *s = awaited ? owner_of(f, m->client_id, m->uid, j->tenant) : NULL;
    if (awaited && (s == NULL || !job_join(j, s))) {
        lacks_memory(f, j->id);
    }
}

/* A repeated submit gets the answer that the first one got or will get. */
static void tie_op(struct front *f, struct job *j)
{
    struct session *s = j->session;
    if (s == NULL || j->seq == 0) {
        return;
    }
    struct op *o = op_find(s, j->seq);
    if (o == NULL) {
        o = op_create(s, j->seq, NULL);
    }
    if (o == NULL) {
        lacks_memory(f, j->id);
        return;
    }
    if (o->job != 0 || op_answered(o)) {
        job_part(j); /* another request has the number: the job runs on without an answer */
        return;
    }
    o->job = j->id;
    if (!j->async) {
        j->op = o;
        return;
    }
    struct msg_accepted m = {.job = j->id};
    struct capbuf out;
    capbuf_init(&out, 64);
    if (proto_encode(&schema_msg_accepted, &m, &out, NULL) == 0) {
        (void)op_answer(o, capbuf_view(&out));
    }
    capbuf_finish(&out);
}

static void enter(struct front *f, struct device *d, struct job *j, unsigned stream,
                  const struct msg_record_job *m)
{
    j->stream = stream < STREAMS_MAX ? stream : 0;
    j->epoch = d->epoch;
    if (j->id >= f->next_job) {
        f->next_job = j->id + 1;
    }
    f->job_count++;
    if (j->tenant != NULL) {
        place_tenant(j->tenant, d);
        j->tenant->held[TENANT_JOBS]++;
        d->jobs++;
    }
    job_set_state(j, JOB_DISPATCHED, front_now(f));
    shares_adopted(f, j);
    job_join_device(j);
    f->adopted_arenas += j->origin == ORIGIN_ADOPTED_ARENAS;
    join_owner(f, j, m);
    tie_op(f, j);
}

static struct job *job_from(struct front *f, struct device *d, const struct record_view *view,
                            const struct msg_record_job *m)
{
    struct job *j = calloc(1, sizeof *j);
    if (j == NULL) {
        return NULL;
    }
    work_init(&j->work);
    j->id = view->id;
    j->record = view->entry;
    j->error = ERR_INIT;
    j->origin = m->arenas != 0 ? ORIGIN_ADOPTED_ARENAS : ORIGIN_ADOPTED;
    j->device = d;
    j->input = RANGE_NONE;
    j->output = RANGE_NONE;
    j->deadline_ns = NS_NEVER;
    j->limit_ns = m->limit_ns;
    j->submitted_ns = m->submitted_ns;
    j->async = m->async != 0;
    j->result = j->async ? async_result_reserve() : NULL;
    j->seq = m->seq;
    j->work.device = (int)d->index;
    (void)bytes_to_str(m->label, j->label, sizeof j->label);
    j->tenant = tenant_of(f, m->tenant);
    j->ceiling_ns = f->config.time_limit_ms * NS_PER_MS;
    if (j->tenant != NULL) {
        j->ceiling_ns = tenant_time_limit_ns(j->tenant, j->ceiling_ns);
    }
    j->counted = view->counted;
    j->to_device = m->to_device;
    j->from_device = m->from_device;
    return j;
}

/* Takes the job over if there is memory. j: owned; NULL: there was none. */
static bool admit(struct front *f, struct device *d, struct job *j, const struct msg_record_job *m,
                  unsigned stream)
{
    bool admitted = j != NULL && !j->work.no_memory && hazard_enter(j, NULL) == 0;
    if (admitted && !job_put(&f->jobs, j)) {
        hazard_leave(&f->hazards, j);
        admitted = false;
    }
    if (admitted) {
        enter(f, d, j, stream, m);
    } else {
        job_destroy(j);
    }
    return admitted;
}

static int not_taken(const struct msg_w_inventory_job *m, struct err *e)
{
    return err_set(e, ERR_NOMEM, "job %llu, which it has, could not be taken over",
                   (unsigned long long)m->job);
}

/* The client has acknowledged the answer of one that has ended. The worker must not go on with one
 * that runs: other jobs would use its buffers at the same time. */
static int unknown_job(struct device *d, const struct msg_w_inventory_job *m, struct err *e)
{
    if (m->finished == 0) {
        return not_taken(m, e);
    }
    command_forget_job(d, m->job);
    return 0;
}

int adopt_job(struct front *f, struct device *d, const struct msg_w_inventory_job *inventory,
              struct err *e)
{
    struct msg_record_job m;
    struct record_view view;
    enum entry entry = entry_of(d, RECORD_JOB, inventory->job, &view);
    if (entry != ENTRY_FRESH) {
        return entry == ENTRY_NONE ? unknown_job(d, inventory, e) : 0;
    }
    bool good = job_find(f->jobs, inventory->job) == NULL &&
                proto_decode(&schema_msg_record_job, view.bytes, &m, NULL) == 0;
    struct job *j = good ? job_from(f, d, &view, &m) : NULL;
    if (j != NULL && view.tainted) {
        job_set_inputs(j, INPUTS_TAINTED, NULL);
    }
    if (j != NULL && !view.ended) { /* else later jobs may have written there, and failed */
        take_uses(f, j, &m);
    }
    if (!admit(f, d, j, &m, (unsigned)inventory->stream)) {
        record_unfind(d->record, RECORD_JOB, inventory->job); /* the end of its worker answers it */
        return not_taken(inventory, e);
    }
    take_outputs(j, &m);
    if (!view.staging_reused) {
        take_staging(d, j, &m);
    }
    return 0;
}

/* ---- jobs of workers that have ended ------------------------------------------------------- */

/* Has the client no request that would run the job again? Such a job gets an answer. */
static bool is_awaited(const struct front *f, const struct record_view *view,
                       struct msg_record_job *ret_m)
{
    return job_find(f->jobs, view->id) == NULL &&
           proto_decode(&schema_msg_record_job, view->bytes, ret_m, NULL) == 0 &&
           ret_m->repeatable == 0 && (ret_m->async != 0 || ret_m->seq != 0);
}

static void take_departed(struct front *f, struct device *d, const struct record_view *view,
                          const struct msg_record_job *m, const char *why)
{
    struct job *j = job_from(f, d, view, m);
    if (!admit(f, d, j, m, 0)) {
        lacks_memory(f, view->id);
    } else if (!f->unadopted) {  /* else its entry has to stay */
        j->epoch = d->epoch - 1; /* of an earlier worker */
        completion_departed(f, j, why);
    }
}

/* present: those of the device's present worker, too, unless it has reported them. */
static void take_all_departed(struct front *f, struct device *d, bool present, const char *why)
{
    struct record_view view;
    struct msg_record_job m;
    size_t cursor = 0;
    take_all_kept(f, d);
    while (record_departed(d->record, present, &cursor, &view)) {
        if (is_awaited(f, &view, &m)) {
            take_departed(f, d, &view, &m, why);
        } else {
            record_drop(d->record, view.entry);
        }
    }
    record_settle(d->record);
}

void adopt_lost(struct front *f, struct device *d, const char *why)
{
    if (record_adopting(d->record)) {
        take_all_departed(f, d, true, why);
    }
}

/* ---- jobs of workers that cannot be taken over ----------------------------------------------- */

/* Also an asynchronous job is told as the answer to its submission. */
static void answer_lost(struct front *f, uint64_t job, const struct msg_record_job *m)
{
    struct tenant *t = tenant_of(f, m->tenant);
    struct session *s = owner_of(f, m->client_id, m->uid, t);
    if (m->seq == 0 || !has_owner(f, m, t) || (s != NULL && op_find(s, m->seq) != NULL)) {
        return;
    }
    struct op *o = s != NULL ? op_create(s, m->seq, NULL) : NULL;
    uint8_t room[PROTO_ERROR_BYTES];
    struct err e = ERR_INIT;
    (void)err_set(&e, ERR_WORKER_LOST,
                  "the worker of job %llu could not be taken over; it may have had effects",
                  (unsigned long long)job);
    e.effects = ERR_EFFECTS_MAYBE;
    if (o == NULL || !op_answer(o, proto_error_put(&e, false, room))) {
        lacks_memory(f, job);
    }
}

static void answer_all_lost(struct front *f, struct record *r)
{
    struct record_view view;
    struct msg_record_job m;
    size_t cursor = 0;
    while (record_departed(r, true, &cursor, &view)) {
        if (is_awaited(f, &view, &m)) {
            answer_lost(f, view.id, &m);
        }
    }
}

/* Where clients may have connected, the jobs have their answers, and this front serves. */
static void lacks_record(struct front *f, const struct err *why)
{
    f->unadopted = f->unadopted || (f->listener == NULL && why->code == ERR_NOMEM);
}

/* The launcher keeps the record, so a next front says the same. */
static void leave_record(struct front *f, struct record *r)
{
    if (f->listener == NULL) {
        answer_all_lost(f, r);
    }
    record_destroy(r);
}

/* Takes the record's descriptor. */
static void forsake(struct front *f, const struct launcher_inventory *inventory)
{
    struct record *r = NULL;
    struct err e = ERR_INIT;
    int fd = inventory->fd[WORKER_RECORD];
    if (record_adopt((uint32_t)inventory->id, fd, &r, &e) != 0) {
        lacks_record(f, &e);
        (void)close(fd);
        return;
    }
    leave_record(f, r);
}

static bool has_awaited(const struct front *f, struct record *r)
{
    struct record_view view;
    struct msg_record_job m;
    size_t cursor = 0;
    bool any = false;
    while (!any && record_departed(r, true, &cursor, &view)) {
        any = is_awaited(f, &view, &m);
    }
    return any;
}

/* What the former front called a worker's device. */
struct device_name {
    char backend[16];
    unsigned number;
    char owner[PROTO_NAME_MAX + 1]; /* the tenant whose domain it was; "": it was shared */
};

/* false: the launcher's text is none. */
static bool device_name(const struct launcher_inventory *inventory, struct device_name *ret_name)
{
    struct msg_record_worker m;
    *ret_name = (struct device_name){.number = 0};
    if (proto_decode(&schema_msg_record_worker, inventory->device, &m, NULL) != 0 ||
        !bytes_to_str(m.backend, ret_name->backend, sizeof ret_name->backend) ||
        !bytes_to_str(m.tenant, ret_name->owner, sizeof ret_name->owner)) {
        return false;
    }
    ret_name->number = (unsigned)m.index;
    return true;
}

/* Nothing would be lost with it, and this front does not know what it has run since. */
static bool is_spare(const struct device_name *name)
{
    return strncmp(name->owner, DOMAIN_SPARE, sizeof DOMAIN_SPARE - 1) == 0;
}

/* NULL: unknown, a spare worker, or no memory. */
static struct device *device_of(struct front *f, const struct launcher_inventory *inventory)
{
    struct device_name name;
    struct device *base =
        device_name(inventory, &name) ? discover_device(f, name.backend, name.number) : NULL;
    if (base == NULL || name.owner[0] == '\0') {
        return base;
    }
    struct tenant *t = !is_spare(&name) ? quota_tenant(f, name.owner) : NULL;
    struct device *d = t != NULL ? domain_adopt(f, t, base) : NULL;
    if (d != NULL) {
        (void)snprintf(d->backend, sizeof d->backend, "%s", name.backend);
        d->number = name.number;
    }
    return d;
}

static void turn_away(struct front *f, const struct launcher_inventory *inventory)
{
    struct device_name name;
    bool named = device_name(inventory, &name);
    if (named && is_spare(&name)) {
        log_say(LOG_DOMAIN, "worker %d is a spare one of the former gpud: ending it",
                (int)inventory->pid);
        name.owner[sizeof DOMAIN_SPARE - 1] = '\0'; /* as this front calls them */
    } else {
        log_say(LOG_WORKER_UNKNOWN, "worker %d is unknown or reported too late: ending it",
                (int)inventory->pid);
    }
    (void)close(inventory->channel);
    (void)close(inventory->fd[WORKER_INPUT]);
    (void)close(inventory->fd[WORKER_OUTPUT]);
    forsake(f, inventory);
    if (named) {
        departing_add(f, inventory->id, name.backend, name.number,
                      name.owner[0] != '\0' ? tenant_key_of(name.owner) : 0);
    }
    (void)f->io.kill(f->launcher, inventory->id, SIGKILL, NULL);
}

/* Clients may connect already, or the worker was given up with its launcher. */
static bool is_late(const struct front *f, const struct device *d)
{
    return d->worker != 0 || d->restarts > 0 || f->listener != NULL;
}

/* The record of a worker that has ended. Only a device whose jobs are awaited, or whose buffers are
 * on the host, is known to exist. */
static void adopt_record(struct front *f, const struct launcher_inventory *inventory)
{
    struct record *r = NULL;
    struct err e = ERR_INIT;
    int fd = inventory->fd[WORKER_RECORD];
    if (record_adopt((uint32_t)inventory->id, fd, &r, &e) != 0) {
        log_say(LOG_BUFFER_LOST,
                "jobs of an ended worker may run again, and its buffers are lost: %s", e.text);
        lacks_record(f, &e);
        (void)close(fd);
        return;
    }
    uint64_t last = record_last(r, RECORD_JOB);
    f->next_job = last >= f->next_job ? last + 1 : f->next_job;
    bool counts = has_awaited(f, r) || has_kept(r);
    struct device *d = counts ? device_of(f, inventory) : NULL;
    if (d == NULL || d->record != NULL || is_late(f, d)) {
        if (counts) {
            log_say(LOG_BUFFER_LOST,
                    "the device of an ended worker is unknown or has another: its jobs and buffers "
                    "are lost");
        }
        leave_record(f, r);
        return;
    }
    d->record = r;
    d->recorded = inventory->id;
    d->proven = true;
    adopt_lost(f, d, "its worker ended before this gpud started");
}

void adopt_worker(struct front *f, const struct launcher_inventory *inventory)
{
    if (inventory->id >= f->next_worker) {
        f->next_worker = inventory->id + 1;
    }
    if (inventory->pid == 0) {
        adopt_record(f, inventory);
        return;
    }
    struct device *d = device_of(f, inventory);
    if (d == NULL || is_late(f, d)) {
        turn_away(f, inventory);
        return;
    }
    log_about(LOG_WORKER_KEPT, about_device(d), "device %u: taking over worker %d", device_shown(d),
              (int)inventory->pid);
    worker_adopt(f, d, inventory);
    domain_keep(f, d, record_lease(d->record));
}

void adopt_over(struct front *f)
{
    keep_settle(f);
    for (struct session *s = f->sessions; s != NULL; s = s->hh.next) {
        session_index_answers(s);
        if (s->state == SESSION_LINGERING) {
            session_linger(f, s);
        }
    }
}

void adopt_end(struct front *f, struct device *d)
{
    if (!adopting(d)) {
        return;
    }
    take_all_departed(f, d, false, "an earlier worker of its device ended");
    device_set_state(d, DEVICE_OPENED, "taken over");
    f->hooks.worker_ready(f, d);
}
