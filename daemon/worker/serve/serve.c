#include "daemon/worker/serve/serve.h"

#include "common/log.h"
#include "daemon/worker/serve/serve_int.h"

static uint64_t runs_since(void *data)
{
    const struct server *s = data;
    const struct job *oldest = completion_oldest(&s->completion);
    return oldest != NULL ? oldest->watch.added_ns : 0;
}

/* Can nothing that is under way free memory for a waiting job? */
static bool nothing_frees(void *data, const uint64_t *tenant)
{
    struct server *s = data;
    return server_nothing_moves(s, tenant) && !waiting_maps(&s->waiting, tenant) &&
           !memory_mapping(&s->device.memory) && !spill_grows(&s->spill) &&
           memory_leaving(&s->device.memory, tenant) == 0 &&
           !completion_frees(&s->completion, tenant);
}

bool server_idle(struct server *s)
{
    return server_still(s) && !modules_busy(&s->modules) && !pinning_busy(&s->pinning) &&
           !registrar_busy(&s->registrar);
}

static void kick(void *data)
{
    struct server *s = data;
    pump_kick(&s->pump);
}

static void ask_again(void *data)
{
    struct server *s = data;
    pump_again(&s->pump);
}

static void start_pending(void *data)
{
    server_start_jobs(data);
}

static void on_closed(void *data, const struct err *e)
{
    struct server *s = data;
    log_say(LOG_FRONT_LEFT, "%s", e->text);
    s->ended = true;
    uv_stop(s->loop);
}

static int on_beat_words(void *data, struct duplex_beat *beat)
{
    struct server *s = data;
    beat_share(&s->beat, beat);
    return s->beat.state_fd;
}

int server_start(struct server *s, uv_loop_t *loop, int channel_fd, const char *build,
                 uint64_t spill_limit, struct err *e)
{
    struct device *dev = &s->device;
    s->loop = loop;
    s->build = build;
    buffers_init(&s->buffers, &dev->memory, &s->modules);
    registrar_init(&s->registrar, dev->b, dev->d, loop);
    arenas_init(&s->arenas, dev, &s->registrar, server_arena_ready, s);
    modules_init(&s->modules, dev->b, dev->d, loop, server_module_loaded, s);
    releases_init(&s->releases, server_nothing_runs, runs_since, s);
    s->arenas.releases = s->modules.releases = dev->memory.releases =
        dev->b->release_waits ? &s->releases : NULL;
    s->executor = (struct executor){.scope = {.device = dev,
                                              .buffers = &s->buffers,
                                              .arenas = &s->arenas,
                                              .modules = &s->modules,
                                              .staging = &s->staging},
                                    .ledger = &s->ledger,
                                    .copies = &s->copies};
    batch_init(&s->executor.batch, dev, &s->ledger);
    coalesce_init(&s->coalesce, loop, start_pending, s);
    completion_init(&s->completion, &s->executor,
                    (struct completion_callbacks){.done = server_job_done,
                                                  .turned = server_job_turned,
                                                  .late = server_job_late},
                    s);
    transfers_init(&s->transfers, dev, &s->copies, &s->buffers, server_transfer_done,
                   server_buffer_used, s);
    s->transfers.away = server_read_away;
    snapshot_init(&s->snapshot, loop, &s->channel, &dev->memory, &s->buffers, &s->completion,
                  &s->arenas);
    pump_start(&s->pump, dev->wakes, server_ask_device, s);
    upkeep_init(&s->upkeep, loop, dev, server_still, kick, s);
    copies_init(&s->copies, dev, loop, pump_wake, &s->pump);
    int rc = spill_init(&s->spill, dev, &s->buffers, &s->copies, &s->transfers, &s->registrar,
                        spill_limit, e);
    if (rc != 0) {
        return rc;
    }
    spill_on_growth(&s->spill, ask_again, s);
    budget_init(&s->budget, &s->spill, loop, server_budget_ended, s);
    creations_init(&s->creations, &dev->memory, server_buffer_create, server_buffer_refuse, s);
    waiting_init(&s->waiting, &s->spill, &s->ledger,
                 (struct waiting_callbacks){.start = server_job_start,
                                            .fail = server_job_fail,
                                            .announce = server_job_announce,
                                            .still = nothing_frees},
                 s);
    rc = channel_init(&s->channel, loop, channel_fd,
                      (struct channel_callbacks){.frame = server_frame,
                                                 .closed = on_closed,
                                                 .beat = on_beat_words,
                                                 .room = server_inventory_go_on},
                      s, e);
    if (rc != 0) {
        return rc;
    }
    /* it may go on after this */
    pinning_start(&s->pinning, dev, &s->staging, loop);
    return answer_ready(&s->channel, dev, spill_limit, build, e);
}

void server_finish(struct server *s)
{
    snapshot_finish(&s->snapshot);
    upkeep_finish(&s->upkeep);
    budget_finish(&s->budget);
    coalesce_finish(&s->coalesce);
    arenas_finish(&s->arenas);
    channel_finish(&s->channel);
    creations_finish(&s->creations);
    ledger_finish(&s->ledger);
    buffers_finish(&s->buffers);
    modules_finish(&s->modules);
    releases_finish(&s->releases);
    s->device.memory.releases = NULL; /* the pool is freed later, without releases */
}
