#include "daemon/worker/serve/serve.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/worker/run/library.h"
#include "daemon/worker/serve/serve_int.h"

#define DRAIN_MS 200

/* Does nothing move outside jobs? tenant: into and out of its buffers; NULL: anybody's. What spills
 * counts whosever it is: it is soon over, and it has room on the host. */
static bool nothing_moves(const struct server *s, const uint64_t *tenant)
{
    return !transfers_move(&s->transfers, tenant) && !spill_busy(&s->spill) &&
           !upkeep_busy(&s->upkeep);
}

bool server_still(void *data)
{
    const struct server *s = data;
    return s->completion.first == NULL && nothing_moves(s, NULL) && s->waiting.first == NULL;
}

/* Has a driver nothing to wait for? Jobs that wait have nothing on the device, nor have those that
 * were added and wait for these. */
static bool nothing_runs(void *data)
{
    const struct server *s = data;
    return completion_oldest(&s->completion) == NULL && nothing_moves(s, NULL) &&
           !s->device.memory.hung;
}

static uint64_t runs_since(void *data)
{
    const struct server *s = data;
    const struct job *oldest = completion_oldest(&s->completion);
    return oldest != NULL ? oldest->added_ns : 0;
}

/* For a job that waits for memory. */
static bool nothing_frees(void *data, const uint64_t *tenant)
{
    struct server *s = data;
    return nothing_moves(s, tenant) && memory_leaving(&s->device.memory, tenant) == 0 &&
           !completion_frees(&s->completion, tenant);
}

bool server_idle(struct server *s)
{
    return server_still(s) && s->modules.loads == NULL && s->modules.preparing == NULL &&
           !pinning_busy(&s->pinning);
}

void server_must_send(struct server *s, int rc, const struct err *e)
{
    if (rc != 0 && !s->ended) {
        log_error("%s", e->text);
        _exit(EXIT_LOST);
    }
}

void server_end_lost(struct server *s, const char *text)
{
    log_error("%s", text);
    channel_drain(&s->channel, DRAIN_MS);
    _exit(EXIT_LOST);
}

static void kick(void *data)
{
    struct server *s = data;
    pump_kick(&s->pump);
}

void server_start_jobs(struct server *s)
{
    struct err e;
    err_init(&e);
    hold_end(&s->hold, batch_held(&s->executor.batch));
    if (executor_start(&s->executor, &e) != 0) {
        server_end_lost(s, e.text);
    }
}

static void start_held(void *data)
{
    server_start_jobs(data);
}

bool server_device_busy(const struct server *s)
{
    return s->completion.count > s->executor.batch.held;
}

bool server_jobs_wait(struct server *s)
{
    struct batch *b = &s->executor.batch;
    bool wait = hold_keeps(&s->hold, batch_held(b), server_device_busy(s));
    if (wait) {
        batch_waits(b);
    }
    return wait;
}

static void release_some(struct server *s)
{
    if (nothing_runs(s)) {
        library_tidy(&s->device);
    }
    releases_turn(&s->releases);
    modules_prepare_again(&s->modules);
}

bool server_ask_device(void *data)
{
    struct server *s = data;
    do { /* what ends lets other things begin */
        transfers_poll(&s->transfers);
        copies_poll(&s->copies);
        completion_poll(&s->completion, clock_now_ns());
        transfers_poll(&s->transfers);
        spill_poll(&s->spill);
        upkeep_poll(&s->upkeep);
        release_some(s);
        waiting_poll(&s->waiting, clock_now_ns());
    } while (s->copies.fresh);
    if (s->hold.rule.due_ns != 0 && !server_jobs_wait(s)) {
        server_start_jobs(s); /* something came to an end, or was begun */
    }
    struct err e = ERR_INIT;
    if (memory_hung(&s->device.memory, &e) != 0) {
        server_end_lost(s, e.text);
    }
    return !server_still(s);
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
    arenas_init(&s->arenas, dev, loop, server_arena_ready, s);
    modules_init(&s->modules, dev->b, dev->d, loop, server_module_loaded, s);
    releases_init(&s->releases, nothing_runs, runs_since, s);
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
    hold_init(&s->hold, loop, start_held, s);
    completion_init(&s->completion, &s->executor,
                    (struct completion_callbacks){.done = server_job_done,
                                                  .turned = server_job_turned,
                                                  .late = server_job_late},
                    s);
    transfers_init(&s->transfers, dev, &s->copies, &s->buffers, server_transfer_done,
                   server_buffer_used, s);
    s->transfers.away = server_read_away;
    picture_init(&s->picture, loop, &s->channel, &dev->memory, &s->buffers, &s->completion,
                 &s->arenas);
    pump_start(&s->pump, dev->wakes, server_ask_device, s);
    upkeep_init(&s->upkeep, loop, dev, server_still, kick, s);
    copies_init(&s->copies, dev, loop, pump_wake, &s->pump);
    int rc = spill_init(&s->spill, dev, &s->buffers, &s->copies, &s->transfers, spill_limit, e);
    if (rc != 0) {
        return rc;
    }
    waiting_init(&s->waiting, &s->spill, &s->ledger,
                 (struct waiting_callbacks){.start = server_job_start,
                                            .fail = server_job_fail,
                                            .tell = server_job_tell,
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
    pinning_start(&s->pinning, dev, &s->staging, loop); /* what takes long goes on meanwhile */
    return answer_ready(&s->channel, dev, spill_limit, build, e);
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
    s->device.memory.releases = NULL; /* its pool goes later */
}
