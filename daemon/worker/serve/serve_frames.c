/* The table of the front's frames: the function that serves each, and the answer that reports
 * its failure. */
#include "daemon/worker/serve/serve_int.h"

#include "common/log.h"

enum answer { ANSWER_NONE, ANSWER_BUFFER, ANSWER_MODULE, ANSWER_JOB };

static const struct {
    unsigned kind;
    enum answer answer; /* how a failure is reported to the front */
    int (*serve)(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e);
} FRAMES[] = {
    {FRAME_KIND_F_BUFFER_CREATE, ANSWER_BUFFER, serve_buffer_create},
    {FRAME_KIND_F_BUFFER_EXPORT, ANSWER_NONE, serve_buffer_export},
    {FRAME_KIND_F_BUFFER_FREE, ANSWER_NONE, serve_buffer_free},
    {FRAME_KIND_F_BUFFER_SEAL, ANSWER_BUFFER, serve_buffer_seal},
    {FRAME_KIND_F_BUFFER_RESTORE, ANSWER_BUFFER, serve_buffer_restore},
    {FRAME_KIND_F_MODULE_LOAD, ANSWER_MODULE, serve_module_load},
    {FRAME_KIND_F_MODULE_UNLOAD, ANSWER_NONE, serve_module_unload},
    {FRAME_KIND_F_JOB, ANSWER_JOB, serve_job},
    {FRAME_KIND_F_ARENA, ANSWER_NONE, serve_arena},
    {FRAME_KIND_F_ARENA_FREE, ANSWER_NONE, serve_arena_free},
    {FRAME_KIND_F_RETIRE, ANSWER_NONE, serve_retire},
    {FRAME_KIND_F_CANCEL, ANSWER_NONE, serve_cancel},
    {FRAME_KIND_F_INVENTORY, ANSWER_NONE, serve_inventory},
    {FRAME_KIND_F_POOL, ANSWER_NONE, serve_pool},
    {FRAME_KIND_F_QUIT, ANSWER_NONE, serve_quit},
    {FRAME_KIND_F_SNAPSHOT, ANSWER_NONE, serve_snapshot},
    {FRAME_KIND_F_TENANT, ANSWER_NONE, serve_tenant},
    {FRAME_KIND_F_RINGS, ANSWER_NONE, serve_rings},
    {FRAME_KIND_F_COALESCE, ANSWER_NONE, serve_coalesce},
    {FRAME_KIND_F_SPILL, ANSWER_NONE, serve_spill},
    {FRAME_KIND_F_BUDGET, ANSWER_NONE, serve_budget},
    {FRAME_KIND_F_PROGRAM_END, ANSWER_NONE, serve_program_end},
};

static void answer_error(struct server *s, enum answer answer, struct bytes frame,
                         const struct err *why)
{
    struct err e = ERR_INIT;
    uint64_t id = 0;
    if (answer == ANSWER_NONE || !answer_id_of(frame, &id)) {
        log_say(LOG_FRAME_REFUSED, "a frame of the front was refused: %s", why->text);
        return;
    }
    if (answer == ANSWER_MODULE) {
        server_module_refuse(s, id, why);
        return;
    }
    if (answer == ANSWER_BUFFER) {
        server_buffer_refuse(s, id, why);
        return;
    }
    int rc = answer_job_error(&s->channel, id, why, &e);
    server_must_send(s, rc, &e);
    if (device_is_lost(why->code)) {
        server_end_lost(s, why->text);
    }
}

static int serve_one(struct server *s, size_t i, struct bytes frame, struct frame_fds *fds,
                     struct err *e)
{
    unsigned kind = FRAMES[i].kind;
    /* these two report lost descriptors themselves */
    bool own = kind == FRAME_KIND_F_RINGS || kind == FRAME_KIND_F_ARENA;
    if (fds->lost && !own) {
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
                channel_flush(&s->channel); /* serving the frame may take long */
                server_start_jobs(s);
            }
            if (serve_one(s, i, frame, fds, &e) != 0) {
                answer_error(s, FRAMES[i].answer, frame, &e);
            }
            if (s->copies.count > 0 || s->transfers.first != NULL || s->device.memory.hung) {
                (void)server_ask_device(s); /* copies or transfers may begin at once */
            }
            upkeep_begin(&s->upkeep);
            if (!server_still(s)) {
                pump_kick(&s->pump);
            }
            return;
        }
    }
    log_say(LOG_FRAME_REFUSED, "a frame of unknown kind %u was refused", kind);
}

void server_frame(void *data, struct bytes frame, struct frame_fds *fds)
{
    struct server *s = data;
    bool job = proto_kind(frame) == FRAME_KIND_F_JOB;
    /* a batch costs time, so a single job opens none unless others may follow */
    if (job && (channel_more(&s->channel) ||
                coalesce_rule_wants(&s->coalesce.rule, server_device_busy(s)))) {
        batch_open(&s->executor.batch);
    }
    serve_frame(s, frame, fds);
    if (!channel_more(&s->channel) && !server_jobs_wait(s)) {
        server_start_jobs(s);
    }
}
