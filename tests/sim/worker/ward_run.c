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
#define FIRST_NS  (1001 * NS_PER_S) /* of the events */

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
    char text[VERDICT_BYTES - 128];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    ward_log(w, "BROKEN %s: %s", rule, text);
    if (w->log != NULL) {
        (void)fflush(w->log);
    }
    (void)snprintf(ward_report, VERDICT_BYTES, "%s: %s (at %.6f ms)", rule, text,
                   (double)w->now_ns / 1e6);
    ward_time_end(w);
    _exit(1);
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Has the loop something to do now? */
static bool pending(struct ward *w)
{
    struct pollfd p = {.fd = uv_backend_fd(&w->loop), .events = POLLIN};
    return w->works != NULL || uv_backend_timeout(&w->loop) == 0 || poll(&p, 1, 0) > 0;
}

static void turn(struct ward *w)
{
    (void)ward_works_end(w);
    (void)uv_run(&w->loop, UV_RUN_NOWAIT);
    if (w->params.prompt != 0) { /* what libuv does before it sleeps */
        (void)uv_run(&w->loop, UV_RUN_NOWAIT);
    }
    if (w->params.prompt != 0 && !pending(w)) { /* that run may have heard something, too */
        (void)uv_run(&w->loop, UV_RUN_NOWAIT);
    }
    if (w->front != NULL && w->front_open) {
        if (ward_sent() || w->params.rings != 0) {
            ward_front_hear(w);
        }
        ward_front_send(w);
    }
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
        next = next < until_ns ? next : until_ns;
        ward_advance(w, next != NS_NEVER ? next : w->now_ns + NS_PER_MS); /* nothing comes */
    }
    turn(w);
}

static void act(struct ward *w, void *actor, uint64_t a)
{
    (void)actor;
    ward_front_act(w, &w->course->event[a]);
}

static void open_worker(struct ward *w, struct server *s)
{
    const struct device_options o = {.backend = "ward",
                                     .through = ward_backend(w),
                                     .options = "",
                                     .memory_limit = w->params.limit_kib << 10,
                                     .spill_limit = w->params.spill_kib << 10,
                                     .managed_limit = w->params.managed_kib << 10,
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
    const struct ward_course *c = w->course;
    for (unsigned i = 0; i < c->count; i++) {
        ward_at(w, FIRST_NS + c->event[i].at_ns, act, NULL, i);
    }
    uint64_t last_ns = FIRST_NS + (c->count > 0 ? c->event[c->count - 1].at_ns : 0);
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

uint64_t ward_run(const struct ward_course *c, FILE *log)
{
    static struct server server;
    static struct ward world;
    struct ward *w = &world;
    uint64_t blocks = ward_heap_blocks();
    memset(&server, 0, sizeof server);
    *w = (struct ward){
        .params = c->params,
        .course = c,
        .chance = chance_of(c->params.times != 0 ? c->params.times : c->seed, 3),
        .log = log,
        .now_ns = FIRST_NS - NS_PER_S,
        .server = &server,
    };
    ward_time_begin(w);
    ward_front_begin(w);
    open_worker(w, &server);
    ward_mems_checked(w->device);
    w->front_open = true;
    play(w);
    close_worker(w, &server);
    ward_front_end(w);
    ward_time_end(w);
    if (!w->closing) { /* the worker's process ends as it is */
        (void)fflush(NULL);
        _exit(0);
    }
    if (ward_heap_blocks() != blocks) {
        ward_broken(w, "left", "%" PRIu64 " blocks of the heap", ward_heap_blocks() - blocks);
    }
    return w->now_ns;
}
