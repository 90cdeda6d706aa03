#include "daemon/worker/serve.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/worker/answer.h"
#include "daemon/worker/graph.h"

#define DRAIN_MS 200

/* Does nothing move outside jobs? tenant: into and out of its buffers; NULL: anybody's. What spills
 * counts whosever it is: it is soon over, and it has room on the host. */
static bool nothing_moves(const struct server *s, const uint64_t *tenant)
{
    return !transfers_move(&s->transfers, tenant) && !spill_busy(&s->spill) &&
           !upkeep_busy(&s->upkeep);
}

static bool still(void *data)
{
    const struct server *s = data;
    return s->completion.first == NULL && nothing_moves(s, NULL) && s->waiting.first == NULL;
}

/* For a job that waits for memory. */
static bool nothing_frees(void *data, const uint64_t *tenant)
{
    struct server *s = data;
    return nothing_moves(s, tenant) && !completion_frees(&s->completion, tenant);
}

bool server_idle(struct server *s)
{
    return still(s) && s->modules.loads == NULL;
}

/* A frame that cannot be sent leaves the front with a wrong picture: end, so that it sees that. */
static void must_send(struct server *s, int rc, const struct err *e)
{
    if (rc != 0 && !s->ended) {
        log_error("%s", e->text);
        _exit(EXIT_LOST);
    }
}

/* The process is not to be trusted any more: what is known is told, the rest is the front's. */
static void end_lost(struct server *s, const char *text)
{
    log_error("%s", text);
    channel_drain(&s->channel, DRAIN_MS);
    _exit(EXIT_LOST);
}

/* ---- what happens on the device ----------------------------------------------------------- */

static void on_job_done(void *data, struct job *j)
{
    struct server *s = data;
    struct err e;
    err_init(&e);
    memory_stamp(&s->device.memory, clock_now_ns());
    must_send(s, channel_send_bytes(&s->channel, bytes_of(j->done, j->done_size), NULL, &e), &e);
    if (device_is_lost(j->e.code)) {
        end_lost(s, j->e.text);
    }
}

static void on_job_started(void *data, struct job *j)
{
    struct server *s = data;
    struct err e = ERR_INIT;
    must_send(s, answer_started(&s->channel, j, &e), &e);
}

static void on_transfer_done(void *data, struct buffer *b, const struct err *why)
{
    struct server *s = data;
    struct err e = ERR_INIT;
    must_send(s, answer_buffer(&s->channel, b->id, why, &e), &e);
    if (device_is_lost(why->code)) {
        end_lost(s, why->text);
    }
    if (b->broken && !b->freed) {
        buffer_free(&s->buffers, b);
    }
}

static bool buffer_used(void *data, const struct buffer *b, uint64_t behind)
{
    const struct server *s = data;
    for (const struct job *j = s->completion.first; j != NULL && j->arrival <= behind;
         j = j->next) {
        for (unsigned i = 0; i < j->buffer_count; i++) {
            if (j->buffers[i] == b) {
                return true;
            }
        }
    }
    return false;
}

static int read_away(void *data, const struct buffer *b, uint64_t at, void *to, uint64_t bytes,
                     struct err *e)
{
    const struct server *s = data;
    return spill_read(&s->spill, b, at, to, bytes, e);
}

static void on_arena_ready(void *data, const struct arena *a)
{
    struct server *s = data;
    struct err e = ERR_INIT;
    struct msg_w_arena msg = {.arena = a->id, .align = a->align};
    must_send(s, channel_send(&s->channel, &schema_msg_w_arena, &msg, NULL, &e), &e);
}

/* ---- jobs that wait for memory --------------------------------------------------------------- */

static void job_start(void *data, struct job *j, const struct msg_f_job *msg, struct bytes frame)
{
    struct server *s = data;
    struct err e;
    err_init(&e);
    completion_add(&s->completion, j);
    if (msg->steps.count == 0 && completion_at_once(&s->completion, j)) {
        return;
    }
    if (executor_enqueue(&s->executor, j, msg, frame, &e) != 0) {
        j->e = e;
        completion_fail(&s->completion, j); /* does not return: the device is lost */
    }
}

static void job_fail(void *data, struct job *j, const struct err *why)
{
    struct server *s = data;
    completion_add(&s->completion, j);
    if (device_is_lost(why->code)) {
        j->e = *why;
        completion_fail(&s->completion, j); /* does not return */
        return;
    }
    /* those behind it wait for it alone: it ends when those before it have */
    completion_give_up(&s->completion, j, why);
    (void)completion_at_once(&s->completion, j);
}

static void job_tell(void *data, const struct job *j, bool waits)
{
    struct server *s = data;
    struct err e = ERR_INIT;
    struct msg_w_waiting msg = {.job = j->id, .waits = waits};
    must_send(s, channel_send(&s->channel, &schema_msg_w_waiting, &msg, NULL, &e), &e);
}

static void kick(void *data)
{
    struct server *s = data;
    pump_kick(&s->pump);
}

/* Jobs that came together start together. */
static void start_jobs(struct server *s)
{
    struct err e;
    err_init(&e);
    hold_end(&s->hold, batch_held(&s->executor.batch));
    if (executor_start(&s->executor, &e) != 0) {
        end_lost(s, e.text);
    }
}

static void start_held(void *data)
{
    start_jobs(data);
}

/* Has the device other work than what is to be started? */
static bool device_busy(const struct server *s)
{
    return s->completion.count > s->executor.batch.held;
}

/* Do the jobs that came together wait for more of their kind? */
static bool jobs_wait(struct server *s)
{
    struct batch *b = &s->executor.batch;
    bool wait = hold_keeps(&s->hold, batch_held(b), device_busy(s));
    if (wait) {
        batch_waits(b);
    }
    return wait;
}

static bool ask_device(void *data)
{
    struct server *s = data;
    do { /* what ends lets other things begin */
        transfers_poll(&s->transfers);
        copies_poll(&s->copies);
        completion_poll(&s->completion, clock_now_ns());
        transfers_poll(&s->transfers);
        spill_poll(&s->spill);
        upkeep_poll(&s->upkeep);
        waiting_poll(&s->waiting, clock_now_ns());
    } while (s->copies.fresh);
    if (s->hold.rule.due_ns != 0 && !jobs_wait(s)) { /* something came to an end, or was begun */
        start_jobs(s);
    }
    struct err e = ERR_INIT;
    if (memory_hung(&s->device.memory, &e) != 0) {
        end_lost(s, e.text);
    }
    releases_turn(&s->releases);
    return !still(s);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static int on_buffer_create(struct server *s, struct bytes frame, struct frame_fds *fds,
                            struct err *e)
{
    struct msg_f_buffer_create msg;
    struct buffer *b = NULL;
    (void)fds;
    int rc = proto_decode(&schema_msg_f_buffer_create, frame, &msg, e);
    const struct buffer_ask ask = {.id = msg.id,
                                   .size = msg.size,
                                   .tenant = msg.tenant,
                                   .meta = msg.meta,
                                   .exported = msg.exported != 0,
                                   .managed = msg.managed != 0,
                                   .module = msg.module,
                                   .variable = msg.variable};
    rc = rc == 0 ? buffer_create(&s->buffers, &ask, &b, e) : rc;
    if (rc != 0) {
        return rc;
    }
    memory_stamp(&s->device.memory, clock_now_ns());
    b->content = b->module != NULL ? BUFFER_BYTES : msg.zero != 0 ? BUFFER_ZEROS : BUFFER_UNDEFINED;
    bool settled = !b->piece.waits && !memory_service_busy(&s->device.memory);
    bool clean = msg.zero == 0 && !b->piece.dirty && settled;
    if (clean || b->piece.ref.block == NULL) {
        struct err ok = ERR_INIT;
        return answer_buffer(&s->channel, msg.id, &ok, e);
    }
    bool zero = msg.zero != 0 || b->piece.dirty;
    rc = transfer_start(&s->transfers, zero ? TRANSFER_ZERO : TRANSFER_SETTLE, b, NULL, 0, e);
    if (rc != 0) {
        buffer_free(&s->buffers, b);
    }
    return rc;
}

static int on_buffer_export(struct server *s, struct bytes frame, struct frame_fds *fds,
                            struct err *e)
{
    struct msg_f_buffer_export msg;
    struct msg_w_exported answer = {0};
    struct frame_fds out = {.count = 1};
    struct err why = ERR_INIT;
    (void)fds;
    int rc = proto_decode(&schema_msg_f_buffer_export, frame, &msg, e);
    if (rc != 0) {
        return rc;
    }
    struct buffer *b = buffer_find(&s->buffers, msg.id, &why);
    answer.id = msg.id;
    rc = b == NULL ? ERR_BAD_HANDLE
                   : memory_share(&s->device.memory, &b->piece, &out.fd[0], &answer.bytes, &why);
    answer.code = rc;
    answer.vendor = rc != 0 ? why.vendor : 0;
    answer.text = bytes_str(rc != 0 ? why.text : "");
    must_send(
        s, channel_send(&s->channel, &schema_msg_w_exported, &answer, rc == 0 ? &out : NULL, e), e);
    if (rc == 0) {
        (void)close(out.fd[0]);
    } else if (device_is_lost(rc)) {
        end_lost(s, why.text);
    }
    return 0;
}

static int on_buffer_free(struct server *s, struct bytes frame, struct frame_fds *fds,
                          struct err *e)
{
    struct msg_f_buffer_free msg;
    (void)fds;
    int rc = proto_decode(&schema_msg_f_buffer_free, frame, &msg, e);
    struct buffer *b = rc == 0 ? buffer_find(&s->buffers, msg.id, e) : NULL;
    if (b == NULL) {
        return ERR_BAD_HANDLE;
    }
    buffer_free(&s->buffers, b);
    memory_stamp(&s->device.memory, clock_now_ns());
    return 0;
}

static int on_buffer_meta(struct server *s, struct bytes frame, struct frame_fds *fds,
                          struct err *e)
{
    struct msg_f_buffer_meta msg;
    (void)fds;
    int rc = proto_decode(&schema_msg_f_buffer_meta, frame, &msg, e);
    struct buffer *b = rc == 0 ? buffer_find(&s->buffers, msg.id, e) : NULL;
    if (b == NULL) {
        return ERR_BAD_HANDLE;
    }
    return buffer_set_meta(b, msg.meta, e);
}

static int host_take(struct frame_fds *fds, uint64_t size, bool writable, struct memfd *ret_m,
                     struct err *e)
{
    if (fds->count != 1 || size == 0 || size > SIZE_MAX / 2) {
        return err_set(e, ERR_PROTOCOL, "a host copy of %" PRIu64 " bytes needs one descriptor",
                       size);
    }
    int rc = memfd_adopt(fds->fd[0], (size_t)size, writable, ret_m, e);
    fds->count = rc == 0 ? 0 : fds->count;
    return rc;
}

static int on_buffer_seal(struct server *s, struct bytes frame, struct frame_fds *fds,
                          struct err *e)
{
    struct msg_f_buffer_seal msg;
    struct memfd host = MEMFD_NONE;
    int rc = proto_decode(&schema_msg_f_buffer_seal, frame, &msg, e);
    struct buffer *b = rc == 0 ? buffer_find(&s->buffers, msg.id, e) : NULL;
    if (b == NULL) {
        return rc != 0 ? rc : ERR_BAD_HANDLE;
    }
    if (b->size != msg.size) {
        return err_set(e, ERR_STATE, "buffer %" PRIu64 " of %" PRIu64 " bytes cannot be sealed",
                       b->id, b->size);
    }
    rc = host_take(fds, msg.size, true, &host, e);
    if (rc == 0) { /* a front before this one may have asked for it: only the last copy counts */
        transfers_supersede(&s->transfers, b);
    }
    /* the copy is of what the jobs that were given before leave in the buffer */
    rc = rc == 0 ? transfer_start(&s->transfers, TRANSFER_SEAL, b, &host, s->completion.arrivals, e)
                 : rc;
    memfd_finish(&host);
    return rc;
}

static int on_buffer_restore(struct server *s, struct bytes frame, struct frame_fds *fds,
                             struct err *e)
{
    struct msg_f_buffer_restore msg;
    struct memfd host = MEMFD_NONE;
    struct buffer *b = NULL;
    int rc = proto_decode(&schema_msg_f_buffer_restore, frame, &msg, e);
    rc = rc == 0 ? host_take(fds, msg.size, false, &host, e) : rc;
    const struct buffer_ask ask = {.id = msg.id,
                                   .size = msg.size,
                                   .tenant = msg.tenant,
                                   .meta = msg.meta,
                                   .exported = msg.exported != 0,
                                   .managed = msg.managed != 0};
    rc = rc == 0 ? buffer_create(&s->buffers, &ask, &b, e) : rc;
    if (rc == 0) {
        b->content = BUFFER_BYTES;
    }
    if (rc == 0 && b->piece.ref.block == NULL) { /* a job that needs it brings it */
        struct err ok = ERR_INIT;
        b->sealed_fd = host.fd;
        host.fd = -1;
        memfd_finish(&host);
        return answer_buffer(&s->channel, b->id, &ok, e);
    }
    rc = rc == 0 ? transfer_start(&s->transfers, TRANSFER_RESTORE, b, &host, 0, e) : rc;
    if (rc != 0 && b != NULL) {
        buffer_free(&s->buffers, b);
    }
    memfd_finish(&host);
    return rc;
}

static int on_module_load(struct server *s, struct bytes frame, struct frame_fds *fds,
                          struct err *e)
{
    struct msg_f_module_load msg;
    int rc = proto_decode(&schema_msg_f_module_load, frame, &msg, e);
    if (rc == 0 && fds->count != 1) {
        rc = err_set(e, ERR_PROTOCOL, "module with %d descriptors", fds->count);
    }
    if (rc != 0) {
        return rc;
    }
    fds->count = 0;
    return module_load(&s->modules, msg.module, msg.hash, fds->fd[0], msg.size, e);
}

static int on_module_unload(struct server *s, struct bytes frame, struct frame_fds *fds,
                            struct err *e)
{
    struct msg_f_module_unload msg;
    (void)fds;
    int rc = proto_decode(&schema_msg_f_module_unload, frame, &msg, e);
    struct module *m = rc == 0 ? module_find(&s->modules, msg.module, e) : NULL;
    if (m == NULL) {
        return ERR_BAD_HANDLE;
    }
    module_unload(&s->modules, m);
    return 0;
}

/* A job that is known was given again: its answer is sent when it is there, or once more. */
static int job_again(struct server *s, const struct job *j, struct err *e)
{
    return j->finished || j->told
               ? channel_send_bytes(&s->channel, bytes_of(j->done, j->done_size), NULL, e)
               : 0;
}

/* What a job comes after was given before it: so no two can wait for each other. Others are left
 * out. */
static int after_known(const struct ledger *l, struct job *j, struct err *e)
{
    unsigned known = 0;
    int rc = 0;
    for (unsigned i = 0; i < j->after_count; i++) {
        if (ledger_find(l, j->after[i]) != NULL) {
            j->after[known++] = j->after[i];
        } else {
            rc = err_set(e, ERR_PROTOCOL,
                         "job %" PRIu64 " is to come after %" PRIu64
                         ", which was not given before it",
                         j->id, j->after[i]);
        }
    }
    j->after_count = known;
    return rc;
}

/* One that cannot be served keeps its place, for those that come after it. */
static int job_admit(struct server *s, struct bytes frame, const struct msg_f_job *msg,
                     struct job **ret_job, struct err *e)
{
    struct job *j = NULL;
    int rc = ledger_full(&s->ledger)
                 ? err_set(e, ERR_LIMIT, "a worker keeps at most %u jobs", LEDGER_MAX)
                 : job_create(&s->executor.scope, msg, &j, e);
    if (rc != 0 && (j = job_refused(msg)) == NULL) {
        end_lost(s, "no memory for a job");
    }
    int after = after_known(&s->ledger, j, rc == 0 ? e : NULL);
    rc = rc == 0 ? after : rc;
    ledger_add(&s->ledger, j);
    batch_join(&s->executor.batch, j);
    if (msg->deadline_ns != NS_NEVER &&
        hold_rule_hurries(&s->hold.rule, msg->deadline_ns, clock_now_ns())) {
        batch_hurry(&s->executor.batch);
    }
    *ret_job = j;
    return rc == 0 ? waiting_offer(&s->waiting, j, frame, msg, e) : rc;
}

static int on_job(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_job msg;
    struct job *j = NULL;
    (void)fds;
    int rc = proto_decode(&schema_msg_f_job, frame, &msg, e);
    if (rc != 0) {
        return rc;
    }
    const struct job *known = ledger_find(&s->ledger, msg.job);
    if (known != NULL) {
        return job_again(s, known, e);
    }
    if (job_admit(s, frame, &msg, &j, e) != 0) {
        job_fail(s, j, e);
    }
    return 0;
}

static int on_retire(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_retire msg;
    (void)fds;
    int rc = proto_decode(&schema_msg_f_retire, frame, &msg, e);
    struct job *j = rc == 0 ? ledger_find(&s->ledger, msg.job) : NULL;
    bool ended = j != NULL && (j->finished || j->told);
    if (ended && msg.keep != 0) {
        j->gone = true;
    } else if (ended && !j->finished) {
        j->retired = true;
    } else if (ended) {
        ledger_retire(&s->ledger, j);
    }
    return rc;
}

/* Has the device something of it, if only a wait for those whose memory it got? */
static bool job_begun(const struct job *j)
{
    bool begun = j->graph != NULL && !graph_untouched(j->graph);
    for (unsigned i = 0; !begun && i < j->piece_count; i++) {
        begun = j->pieces[i].waits;
    }
    return begun;
}

/* What the device has of a job runs to its end: a stream takes nothing back. */
static int on_cancel(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_cancel msg;
    struct err why = ERR_INIT;
    (void)fds;
    int rc = proto_decode(&schema_msg_f_cancel, frame, &msg, e);
    struct job *j = rc == 0 ? ledger_find(&s->ledger, msg.job) : NULL;
    if (j == NULL || j->finished || j->given_up || j->enqueued) {
        return rc;
    }
    if (j->waiting != NULL) {
        waiting_remove(&s->waiting, j);
        completion_add(&s->completion, j);
    }
    bool begun = job_begun(j);
    (void)err_set(&why, ERR_CANCELLED, "cancelled %s",
                  begun ? "while it ran: the steps that had not begun did not" : "before it began");
    if (begun) {
        graph_stop(j->graph, &s->executor, j, &why);
    } else {
        completion_cancel(&s->completion, j, &why);
    }
    (void)ask_device(s); /* others may have waited for what it held */
    return 0;
}

static int on_arena(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_arena msg;
    int rc = proto_decode(&schema_msg_f_arena, frame, &msg, e);
    if (rc == 0 && fds->count != 1) {
        rc = err_set(e, ERR_PROTOCOL, "arena with %d descriptors", fds->count);
    }
    if (rc == 0) {
        fds->count = 0;
        rc = arena_add(&s->arenas, msg.arena, msg.size, fds->fd[0], e);
    }
    return rc;
}

static int on_arena_free(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_arena_free msg;
    struct arena *a = NULL;
    (void)fds;
    int rc = proto_decode(&schema_msg_f_arena_free, frame, &msg, e);
    if (rc == 0) {
        HASH_FIND(hh, s->arenas.by_id, &msg.arena, sizeof msg.arena, a);
        rc = a != NULL ? 0 : err_set(e, ERR_BAD_HANDLE, "worker holds no such arena");
    }
    if (rc == 0) {
        arena_free(&s->arenas, a);
    }
    return rc;
}

static void inventory_go_on(void *data)
{
    struct server *s = data;
    struct err e = ERR_INIT;
    if (!s->inventory.under_way) {
        return;
    }
    int rc = answer_inventory(&s->channel, &s->buffers, &s->modules, &s->ledger, &s->inventory, &e);
    must_send(s, rc, &e); /* half an inventory has no end that the front would wait for */
    if (!s->inventory.under_way) {
        waiting_tell(&s->waiting);
    }
}

static int on_inventory(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_inventory msg;
    (void)fds;
    int rc = proto_decode(&schema_msg_f_inventory, frame, &msg, e);
    if (rc != 0) {
        return rc;
    }
    arenas_forget(&s->arenas);
    memory_untold(&s->device.memory);
    memory_unlimit(&s->device.memory);
    must_send(s, answer_ready(&s->channel, &s->device, s->spill.limit, s->build, e), e);
    s->inventory = (struct inventory){
        .under_way = true, .nonce = msg.nonce, .from = 1, .to = s->buffers.made + 1};
    inventory_go_on(s);
    return 0;
}

static int on_pool(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_pool msg;
    (void)fds;
    int rc = proto_decode(&schema_msg_f_pool, frame, &msg, e);
    if (rc != 0) {
        return rc;
    }
    if (msg.trim != 0) {
        memory_trim(&s->device.memory);
    }
    must_send(s, answer_pool(&s->channel, &s->device.memory, &s->spill, &s->executor.batch, e), e);
    return 0;
}

static int on_tenant(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_tenant msg;
    char name[PROTO_NAME_MAX + 1];
    (void)fds;
    int rc = proto_decode(&schema_msg_f_tenant, frame, &msg, e);
    if (rc != 0 || !bytes_to_str(msg.name, name, sizeof name)) {
        return rc != 0 ? rc : err_set(e, ERR_INVALID, "the name of a tenant");
    }
    const struct memory_limits limits = {
        .device = {.hard = msg.hard, .soft = msg.soft, .guaranteed = msg.guaranteed},
        .spilled = msg.spilled};
    struct err why = ERR_INIT;
    if (memory_quota(&s->device.memory, msg.tenant, name, &limits, &why) != 0) {
        must_send(s, answer_tenant_refused(&s->channel, msg.tenant, &why, e), e);
    }
    if (spill_shed(&s->spill, msg.tenant, e) != 0) {
        end_lost(s, e->text);
    }
    return 0;
}

static int on_coalesce(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_coalesce msg;
    (void)fds;
    int rc = proto_decode(&schema_msg_f_coalesce, frame, &msg, e);
    if (rc == 0) {
        hold_set(&s->hold, msg.window_ns);
    }
    return rc;
}

static int on_spill(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_spill msg;
    (void)fds;
    int rc = proto_decode(&schema_msg_f_spill, frame, &msg, e);
    if (rc == 0) {
        spill_set_limit(&s->spill, msg.limit);
    }
    return rc;
}

static int on_picture(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_picture msg;
    (void)fds;
    int rc = proto_decode(&schema_msg_f_picture, frame, &msg, e);
    if (rc == 0) {
        must_send(s, picture_ask(&s->picture, msg.nonce, msg.detail != 0, e), e);
    }
    return rc;
}

static int on_rings(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_rings msg;
    int rc = proto_decode(&schema_msg_f_rings, frame, &msg, e);
    if (rc == 0) {
        must_send(s, channel_rings(&s->channel, msg.nonce, fds, e), e);
    }
    return rc;
}

static int on_quit(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    (void)frame;
    (void)fds;
    (void)e;
    s->ended = true;
    uv_stop(s->loop);
    return 0;
}

enum answer { ANSWER_NONE, ANSWER_BUFFER, ANSWER_MODULE, ANSWER_JOB };

static const struct {
    unsigned kind;
    enum answer answer; /* what tells the front that it failed */
    int (*serve)(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e);
} FRAMES[] = {
    {FRAME_KIND_F_BUFFER_CREATE, ANSWER_BUFFER, on_buffer_create},
    {FRAME_KIND_F_BUFFER_EXPORT, ANSWER_NONE, on_buffer_export},
    {FRAME_KIND_F_BUFFER_FREE, ANSWER_NONE, on_buffer_free},
    {FRAME_KIND_F_BUFFER_META, ANSWER_NONE, on_buffer_meta},
    {FRAME_KIND_F_BUFFER_SEAL, ANSWER_BUFFER, on_buffer_seal},
    {FRAME_KIND_F_BUFFER_RESTORE, ANSWER_BUFFER, on_buffer_restore},
    {FRAME_KIND_F_MODULE_LOAD, ANSWER_MODULE, on_module_load},
    {FRAME_KIND_F_MODULE_UNLOAD, ANSWER_NONE, on_module_unload},
    {FRAME_KIND_F_JOB, ANSWER_JOB, on_job},
    {FRAME_KIND_F_ARENA, ANSWER_NONE, on_arena},
    {FRAME_KIND_F_ARENA_FREE, ANSWER_NONE, on_arena_free},
    {FRAME_KIND_F_RETIRE, ANSWER_NONE, on_retire},
    {FRAME_KIND_F_CANCEL, ANSWER_NONE, on_cancel},
    {FRAME_KIND_F_INVENTORY, ANSWER_NONE, on_inventory},
    {FRAME_KIND_F_POOL, ANSWER_NONE, on_pool},
    {FRAME_KIND_F_QUIT, ANSWER_NONE, on_quit},
    {FRAME_KIND_F_PICTURE, ANSWER_NONE, on_picture},
    {FRAME_KIND_F_TENANT, ANSWER_NONE, on_tenant},
    {FRAME_KIND_F_RINGS, ANSWER_NONE, on_rings},
    {FRAME_KIND_F_COALESCE, ANSWER_NONE, on_coalesce},
    {FRAME_KIND_F_SPILL, ANSWER_NONE, on_spill},
};

/* answers, and ends the process if nothing is to be expected of it any more */
static void module_refuse(struct server *s, uint64_t id, const struct err *why)
{
    struct err e = ERR_INIT;
    if (device_is_lost(why->code) && !still(s)) {
        (void)ask_device(s);    /* tells whose job it was, and does not return then */
        end_lost(s, why->text); /* what runs is to blame: the module is as good as before */
    }
    must_send(s, answer_module_error(&s->channel, id, why, &e), &e);
    if (device_is_lost(why->code)) {
        end_lost(s, why->text);
    }
}

static void on_module_loaded(void *data, struct module *m, const struct err *why)
{
    struct server *s = data;
    struct err e = *why;
    if (e.code == ERR_TIMEOUT) { /* its thread is still at it */
        must_send(s, answer_module_error(&s->channel, m->id, why, &e), &e);
        end_lost(s, why->text);
    } else if (e.code == 0 && answer_module(&s->channel, m, &e) != 0) {
        module_refuse(s, m->id, &e);
        module_unload(&s->modules, m); /* what cannot be told of is not held */
    } else if (e.code != 0) {
        module_refuse(s, m->id, &e);
    }
    channel_flush(&s->channel);
}

static void answer_error(struct server *s, enum answer answer, struct bytes frame,
                         const struct err *why)
{
    struct err e = ERR_INIT;
    uint64_t id = 0;
    int rc = 0;
    if (answer == ANSWER_NONE || !answer_id_of(frame, &id)) {
        log_warn("a frame of the front was refused: %s", why->text);
        return;
    }
    if (answer == ANSWER_MODULE) {
        module_refuse(s, id, why);
        return;
    }
    if (answer == ANSWER_BUFFER) {
        rc = answer_buffer(&s->channel, id, why, &e);
    } else {
        rc = answer_job_error(&s->channel, id, why, &e);
    }
    must_send(s, rc, &e);
    if (device_is_lost(why->code)) {
        end_lost(s, why->text);
    }
}

static int serve_one(struct server *s, size_t i, struct bytes frame, struct frame_fds *fds,
                     struct err *e)
{
    if (fds->lost && FRAMES[i].kind != FRAME_KIND_F_RINGS) { /* that has an answer of its own */
        return err_set(e, ERR_LIMIT,
                       "the worker has no descriptor left for it (limit of open files)");
    }
    return FRAMES[i].serve(s, frame, fds, e);
}

static void serve_frame(struct server *s, struct bytes frame, struct frame_fds *fds)
{
    unsigned kind = proto_kind(frame);
    for (size_t i = 0; i < sizeof FRAMES / sizeof FRAMES[0]; i++) {
        if (FRAMES[i].kind == kind) {
            struct err e;
            err_init(&e);
            if (kind != FRAME_KIND_F_JOB && kind != FRAME_KIND_F_RETIRE) {
                channel_flush(&s->channel); /* it may take long */
                start_jobs(s);
            }
            if (serve_one(s, i, frame, fds, &e) != 0) {
                answer_error(s, FRAMES[i].answer, frame, &e);
            }
            if (s->copies.count > 0 || s->transfers.first != NULL || s->device.memory.hung) {
                (void)ask_device(s); /* something may begin at once */
            }
            upkeep_begin(&s->upkeep);
            if (!still(s)) {
                pump_kick(&s->pump);
            }
            return;
        }
    }
    log_warn("a frame of unknown kind %u was refused", kind);
}

static void on_frame(void *data, struct bytes frame, struct frame_fds *fds)
{
    struct server *s = data;
    bool job = proto_kind(frame) == FRAME_KIND_F_JOB;
    /* not one alone, unless others may come: that costs */
    if (job && (channel_more(&s->channel) || hold_rule_wants(&s->hold.rule, device_busy(s)))) {
        batch_open(&s->executor.batch);
    }
    serve_frame(s, frame, fds);
    if (!channel_more(&s->channel) && !jobs_wait(s)) {
        start_jobs(s);
    }
}

static void on_closed(void *data, const struct err *e)
{
    struct server *s = data;
    log_info("%s", e->text);
    s->ended = true;
    uv_stop(s->loop);
}

static void on_beat_words(void *data, struct duplex_beat *beat)
{
    struct server *s = data;
    beat_share(&s->beat, beat);
}

int server_start(struct server *s, uv_loop_t *loop, int channel_fd, const char *build,
                 uint64_t spill_limit, struct err *e)
{
    struct device *dev = &s->device;
    s->loop = loop;
    s->build = build;
    buffers_init(&s->buffers, &dev->memory, &s->modules);
    arenas_init(&s->arenas, dev, loop, on_arena_ready, s);
    modules_init(&s->modules, dev->b, dev->d, loop, on_module_loaded, s);
    releases_init(&s->releases, still, s, &s->completion);
    s->arenas.releases = s->modules.releases = dev->b->release_waits ? &s->releases : NULL;
    s->executor = (struct executor){.scope = {.device = dev,
                                              .buffers = &s->buffers,
                                              .arenas = &s->arenas,
                                              .modules = &s->modules,
                                              .staging = &s->staging},
                                    .ledger = &s->ledger,
                                    .copies = &s->copies};
    batch_init(&s->executor.batch, dev, &s->ledger);
    hold_init(&s->hold, loop, start_held, s);
    completion_init(&s->completion, &s->executor,
                    (struct completion_callbacks){.done = on_job_done, .started = on_job_started},
                    s);
    transfers_init(&s->transfers, dev, &s->copies, &s->buffers, on_transfer_done, buffer_used, s);
    s->transfers.away = read_away;
    picture_init(&s->picture, loop, &s->channel, &dev->memory, &s->buffers, &s->completion,
                 &s->arenas);
    pump_start(&s->pump, dev->wakes, ask_device, s);
    upkeep_init(&s->upkeep, loop, dev, still, kick, s);
    copies_init(&s->copies, dev, loop, pump_wake, &s->pump);
    int rc = spill_init(&s->spill, dev, &s->buffers, spill_limit, e);
    if (rc != 0) {
        return rc;
    }
    waiting_init(
        &s->waiting, &s->spill, &s->ledger,
        (struct waiting_callbacks){
            .start = job_start, .fail = job_fail, .tell = job_tell, .still = nothing_frees},
        s);
    rc = channel_init(
        &s->channel, loop, channel_fd,
        (struct channel_callbacks){
            .frame = on_frame, .closed = on_closed, .beat = on_beat_words, .room = inventory_go_on},
        s, e);
    return rc == 0 ? answer_ready(&s->channel, dev, spill_limit, build, e) : rc;
}

void server_finish(struct server *s)
{
    picture_finish(&s->picture);
    upkeep_finish(&s->upkeep);
    hold_finish(&s->hold);
    arenas_finish(&s->arenas);
    channel_finish(&s->channel);
    ledger_finish(&s->ledger);
    buffers_finish(&s->buffers);
    modules_finish(&s->modules);
    releases_finish(&s->releases);
}
