#include "tests/unit/worker/local.h"

#include <check.h>
#include <string.h>
#include <time.h>

static const struct timespec PAUSE = {0, 100000};

static void no_wake(void *data)
{
    (void)data;
}

static void wake_count(void *data)
{
    ((struct local *)data)->wakes++;
}

void local_start(struct local *t, const char *backend, const char *options, uint64_t limit,
                 uint64_t spill_limit)
{
    struct err e = ERR_INIT;
    const struct device_options o = {.backend = backend,
                                     .options = options,
                                     .streams = 2,
                                     .memory_limit = limit,
                                     .wake = no_wake};
    memset(t, 0, sizeof *t);
    ck_assert_msg(device_open(&t->device, &o, &e) == 0, "%s", e.text);
    buffers_init(&t->buffers, &t->device.memory, NULL);
    ck_assert_int_eq(uv_loop_init(&t->loop), 0);
    copies_init(&t->copies, &t->device, &t->loop, wake_count, t);
    transfers_init(&t->transfers, &t->device, &t->copies, &t->buffers, NULL, NULL, NULL);
    ck_assert_msg(spill_init(&t->spill, &t->device, &t->buffers, &t->copies, &t->transfers, NULL,
                             spill_limit, &e) == 0,
                  "%s", e.text);
}

static void check_books(const struct local *t)
{
    struct err e = ERR_INIT;
    ck_assert_msg(pool_check(t->device.memory.pool, &e) == 0, "%s", e.text);
}

void local_stop(struct local *t)
{
    local_quiet(t);
    check_books(t);
    buffers_finish(&t->buffers);
    check_books(t);
    spill_finish(&t->spill);
    copies_finish(&t->copies);
    ck_assert_int_eq(uv_loop_close(&t->loop), 0);
    device_close(&t->device);
}

void local_quiet(struct local *t)
{
    while (spill_busy(&t->spill) || transfers_move(&t->transfers, NULL)) {
        (void)uv_run(&t->loop, UV_RUN_NOWAIT);
        transfers_poll(&t->transfers);
        copies_poll(&t->copies);
        spill_poll(&t->spill);
        (void)nanosleep(&PAUSE, NULL);
    }
}

void local_wait(struct local *t, struct backend_stream *s)
{
    struct backend_marker *marker = NULL;
    struct err e = ERR_INIT;
    enum backend_state state = BACKEND_PENDING;
    ck_assert_int_eq(device_mark(&t->device, s, &marker, &e), 0);
    while (state != BACKEND_DONE) {
        state = t->device.b->marker->state(marker, &e);
        ck_assert_int_ne(state, BACKEND_FAILED);
        (void)nanosleep(&PAUSE, NULL);
    }
    t->device.b->marker->release(marker);
}
