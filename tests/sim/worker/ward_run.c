/* A world from its beginning to its end: the worker's process without a process. */
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/worker/serve/serve.h"
#include "tests/sim/worker/ward.h"

#define TURNS_MAX 20000000u

char *ward_report;

void ward_log(struct ward *w, const char *fmt, ...)
{
    va_list args;
    if (w->log == NULL) {
        return;
    }
    (void)fprintf(w->log, "%14.6f  ", (double)w->now_ns / 1e6);
    va_start(args, fmt);
    (void)vfprintf(w->log, fmt, args);
    va_end(args);
    (void)fputc('\n', w->log);
}

void ward_broken(struct ward *w, const char *rule, const char *fmt, ...)
{
    char text[WARD_FAIL_BYTES - 128];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    ward_log(w, "BROKEN %s: %s", rule, text);
    if (w->log != NULL) {
        (void)fflush(w->log);
    }
    (void)snprintf(ward_report, WARD_FAIL_BYTES, "%s: %s (at %.6f ms)", rule, text,
                   (double)w->now_ns / 1e6);
    ward_time_end(w);
    _exit(1);
}

/* ---- parameters ------------------------------------------------------------------------------ */

static void choose_memory(struct chance *c, struct ward_params *p)
{
    static const uint64_t PAGES[] = {64, 256, 2048};
    p->page_kib = chance_percent(c, 25) ? 0 : PAGES[chance_below(c, 3)];
    p->limit_kib = (p->page_kib == 2048 ? 16u : 4u) * 1024 * (1 + chance_below(c, 2));
    p->memory_kib = p->limit_kib + (chance_percent(c, 50) ? 0 : 4096);
    p->spill_kib = chance_percent(c, 10) ? 0 : chance_spread(c, 1024, 4 * p->limit_kib);
    p->buffer_kib =
        chance_percent(c, 40) ? chance_spread(c, 4, 256) : chance_spread(c, 256, p->limit_kib / 3);
    p->wanted_kib = p->limit_kib / 4 * (1 + chance_below(c, 12));
    p->limits = chance_percent(c, 50);
    p->foreign = chance_percent(c, 75) ? 0 : 1 + chance_below(c, 30);
}

static void choose_refusals(struct chance *c, struct ward_params *p)
{
    if (chance_percent(c, 40)) {
        p->refuse_memory = chance_percent(c, 50) ? 1 + chance_below(c, 100) : 0;
        p->refuse_host = chance_percent(c, 50) ? 1 + chance_below(c, 400) : 0;
        p->refuse_launch = chance_percent(c, 50) ? 1 + chance_below(c, 60) : 0;
        p->refuse_unmap = chance_percent(c, 15) ? 1 + chance_below(c, 30) : 0;
    }
    p->fault = chance_percent(c, 90) ? 0 : 1 + chance_below(c, 60);
}

static void choose(struct chance *c, struct ward_params *p)
{
    p->events = chance_spread(c, 20, 400);
    p->tenants = 1 + chance_below(c, 5);
    p->streams = 1 + chance_below(c, 4);
    choose_memory(c, p);
    p->later = chance_percent(c, 80);
    p->wakes = chance_percent(c, 70);
    p->quiet = p->wakes && chance_percent(c, 50);
    p->batches = chance_percent(c, 50);
    p->registers = chance_percent(c, 60);
    p->slices = chance_percent(c, 50);
    p->imports = chance_percent(c, 60);
    p->release_waits = chance_percent(c, 50);
    p->run_ns = chance_spread(c, 200, 3000000);
    p->call_ns = chance_spread(c, 200, 1000000);
    choose_refusals(c, p);
    p->deadlines = chance_percent(c, 50) ? 30 : chance_below(c, 101);
    p->cancels = chance_percent(c, 60) ? 0 : chance_below(c, 30);
    p->fronts = chance_percent(c, 70) ? 0 : 1 + chance_below(c, 20);
    p->pause_us = chance_spread(c, 5, 20000);
    p->window_us = chance_percent(c, 70) ? 0 : chance_spread(c, 10, 5000);
}

void ward_make(uint64_t seed, struct ward *ret_ward)
{
    struct chance c = chance_of(seed, 1);
    struct ward w = {.seed = seed, .chance = chance_of(seed, 3)};
    choose(&c, &w.params);
    w.events = (unsigned)w.params.events;
    w.event = calloc(w.events, sizeof *w.event);
    uint64_t at_ns = 1001 * NS_PER_S;
    for (unsigned i = 0; i < w.events; i++) {
        uint64_t n = chance_below(&c, 100);
        uint64_t usual_ns = w.params.pause_us * 1000;
        at_ns += n < 40   ? 0
                 : n < 98 ? chance_below(&c, 2 * usual_ns + 1)
                          : chance_below(&c, 5 * NS_PER_S);
        w.event[i] = (struct ward_event){.at_ns = at_ns, .r = chance_next(&c)};
    }
    *ret_ward = w;
}

void ward_params_write(const struct ward *w, FILE *out)
{
#define X(name) (void)fprintf(out, "%s %" PRIu64 "\n", #name, w->params.name);
    WARD_PARAMS(X)
#undef X
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void turn(struct ward *w)
{
    (void)ward_works_end(w);
    (void)uv_run(&w->loop, UV_RUN_NOWAIT);
    if (w->front != NULL && w->front_open) {
        ward_front_hear(w);
        ward_front_send(w);
    }
}

/* Has the loop something to do now? */
static bool pending(struct ward *w)
{
    struct pollfd p = {.fd = uv_backend_fd(&w->loop), .events = POLLIN};
    return w->works != NULL || uv_backend_timeout(&w->loop) == 0 || poll(&p, 1, 0) > 0;
}

/* The time of the next event of any kind; NS_NEVER: there is none. */
static uint64_t next_ns(struct ward *w)
{
    int ms = uv_backend_timeout(&w->loop);
    uint64_t timer_ns = ms < 0 ? NS_NEVER : (uv_now(&w->loop) + (uint64_t)ms) * NS_PER_MS;
    uint64_t hap_ns = ward_next_ns(w);
    return timer_ns < hap_ns ? timer_ns : hap_ns;
}

static void step(struct ward *w, uint64_t until_ns)
{
    if (pending(w)) {
        ward_advance(w, w->now_ns + 300 + chance_below(&w->chance, 3000));
    } else {
        uint64_t next = next_ns(w);
        ward_advance(w, next < until_ns ? next : until_ns);
    }
    turn(w);
}

static void act(struct ward *w, void *actor, uint64_t a)
{
    (void)actor;
    ward_front_act(w, &w->event[a]);
}

static void open_worker(struct ward *w, struct server *s)
{
    const struct device_options o = {.backend = "ward",
                                     .through = ward_backend(w),
                                     .options = "",
                                     .memory_limit = w->params.limit_kib << 10,
                                     .spill_limit = w->params.spill_kib << 10,
                                     .streams = (unsigned)w->params.streams,
                                     .wake = pump_wake,
                                     .wake_data = &s->pump,
                                     .maps_later = w->params.later != 0};
    struct err e = ERR_INIT;
    int rc = uv_loop_init(&w->loop);
    rc = rc == 0 ? pump_init(&s->pump, &w->loop, &e) : rc;
    rc = rc == 0 ? staging_init(&s->staging, ward_front_fd(w, 1), ward_front_fd(w, 2), &e) : rc;
    rc = rc == 0 ? device_open(&s->device, &o, &e) : rc;
    rc = rc == 0 ? server_start(s, &w->loop, ward_front_fd(w, 0), "sim", o.spill_limit, &e) : rc;
    if (rc != 0) {
        ward_broken(w, "start", "%d: %s", rc, e.text);
    }
}

static void close_worker(struct ward *w, struct server *s)
{
    struct err e = ERR_INIT;
    w->closing = true;
    if (pool_check(s->device.memory.pool, &e) != 0) {
        ward_broken(w, "books", "%s", e.text);
    }
    channel_drain(&s->channel, 0);
    if (!server_idle(s)) { /* its process ends as it is */
        w->closing = false;
        return;
    }
    server_finish(s);
    pump_stop(&s->pump);
    while (uv_loop_alive(&w->loop) || ward_threads_work(w)) {
        step(w, w->now_ns + NS_PER_S);
    }
    copies_finish(&s->copies);
    spill_finish(&s->spill);
    pinning_finish(&s->pinning);
    device_close(&s->device);
    pump_finish(&s->pump);
    staging_finish(&s->staging);
    if (uv_loop_close(&w->loop) != 0) {
        ward_broken(w, "left", "the loop has handles at its end");
    }
}

static void play(struct ward *w)
{
    uint64_t turns = 0;
    for (unsigned i = 0; i < w->events; i++) {
        ward_at(w, w->event[i].at_ns, act, NULL, i);
    }
    uint64_t last_ns = w->events > 0 ? w->event[w->events - 1].at_ns : 0;
    bool left = false;
    while (!w->server->ended) {
        bool leaving = w->now_ns > last_ns;
        step(w, leaving ? w->now_ns + NS_PER_S : NS_NEVER);
        if (leaving && !left) {
            left = ward_front_leave(w);
        }
        if (++turns > TURNS_MAX) {
            ward_broken(w, "progress", "the loop turns for ever");
        }
    }
}

uint64_t ward_run(struct ward *w)
{
    static struct server server;
    uint64_t blocks = ward_heap_blocks();
    memset(&server, 0, sizeof server);
    w->now_ns = 1000 * NS_PER_S;
    w->server = &server;
    ward_time_begin(w);
    ward_front_begin(w);
    open_worker(w, &server);
    ward_mems_checked(w->device);
    w->front_open = true;
    play(w);
    close_worker(w, &server);
    ward_front_end(w);
    ward_time_end(w);
    if (w->closing && ward_heap_blocks() != blocks) {
        ward_broken(w, "left", "%" PRIu64 " blocks of the heap", ward_heap_blocks() - blocks);
    }
    return w->now_ns;
}
