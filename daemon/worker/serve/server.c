/* What is under way in the parts of the server, what may begin when something ends, and the end of
 * a server whose device is lost. */
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/worker/run/library.h"
#include "daemon/worker/serve/serve_int.h"

#define DRAIN_MS 200

bool server_nothing_moves(const struct server *s, const uint64_t *tenant)
{
    return !transfers_move(&s->transfers, tenant) && !spill_busy(&s->spill) &&
           !upkeep_busy(&s->upkeep);
}

bool server_still(void *data)
{
    const struct server *s = data;
    return s->completion.first == NULL && server_nothing_moves(s, NULL) &&
           s->waiting.first == NULL && s->creations.first == NULL &&
           !memory_mapping(&s->device.memory);
}

bool server_nothing_runs(void *data)
{
    const struct server *s = data;
    return completion_oldest(&s->completion) == NULL && server_nothing_moves(s, NULL) &&
           !memory_clears(&s->device.memory) && !s->device.memory.hung;
}

void server_must_send(struct server *s, int rc, const struct err *e)
{
    if (rc != 0 && !s->ended) {
        log_say(LOG_WORKER_GIVES_UP, "%s", e->text);
        _exit(EXIT_LOST);
    }
}

void server_end_lost(struct server *s, const char *text)
{
    log_say(LOG_WORKER_GIVES_UP, "%s", text);
    channel_drain(&s->channel, DRAIN_MS);
    _exit(EXIT_LOST);
}

void server_start_jobs(struct server *s)
{
    struct err e;
    err_init(&e);
    coalesce_end(&s->coalesce, batch_pending(&s->executor.batch));
    if (executor_start(&s->executor, &e) != 0) {
        server_end_lost(s, e.text);
    }
}

bool server_device_busy(const struct server *s)
{
    return s->completion.count > s->executor.batch.pending;
}

bool server_jobs_wait(struct server *s)
{
    struct batch *b = &s->executor.batch;
    bool wait = coalesce_keeps(&s->coalesce, batch_pending(b), server_device_busy(s));
    if (wait) {
        batch_waits(b);
    }
    return wait;
}

static void release_some(struct server *s)
{
    if (server_nothing_runs(s)) {
        library_tidy(&s->device);
    }
    releases_turn(&s->releases);
    modules_prepare_again(&s->modules);
}

static void recall_some(struct server *s)
{
    struct err e = ERR_INIT;
    if (budget_turn(&s->budget, clock_now_ns(), &e) != 0) {
        server_end_lost(s, e.text);
    }
}

bool server_ask_device(void *data)
{
    struct server *s = data;
    (void)memory_poll(&s->device.memory);
    do { /* what has ended may let another part begin something */
        uint64_t now = clock_now_ns();
        transfers_poll(&s->transfers);
        copies_poll(&s->copies);
        completion_poll(&s->completion, now);
        transfers_poll(&s->transfers);
        spill_poll(&s->spill);
        upkeep_poll(&s->upkeep);
        release_some(s);
        recall_some(s);
        /* first those for which buffers went: jobs would bring these back */
        if (!s->inventory.under_way) { /* it names those that wait */
            creations_poll(&s->creations, clock_now_ns());
        }
        waiting_poll(&s->waiting, clock_now_ns());
    } while (s->copies.fresh);
    if (waiting_moves(&s->waiting) || creations_move(&s->creations)) {
        pump_again(&s->pump);
    }
    if (s->coalesce.rule.start_ns != 0 && !server_jobs_wait(s)) {
        server_start_jobs(s); /* the batch need not wait any longer */
    }
    struct err e = ERR_INIT;
    if (memory_hung(&s->device.memory, &e) != 0) {
        server_end_lost(s, e.text);
    }
    return !server_still(s);
}
