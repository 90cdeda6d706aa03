/*
 * bench_mapping: how long the worker's loop is held up while device memory is mapped, with a driver
 * whose calls take 50 us each: calls on the loop, and on a thread. A turn is one request for
 * memory, or one look at what the thread has done.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/common/bench.h"
#include "bench/common/echo.h"
#include "common/clock.h"
#include "daemon/worker/memory/device.h"

#define PAGE      (UINT64_C(2) << 20)
#define PIECE     ((UINT64_C(50) << 30) - PAGE) /* handles of all sizes */
#define PIECE_MIN (UINT64_C(32) << 20)
#define PIECES    2u
#define LOOK_NS   (100 * (long)NS_PER_US)

static void wake(void *data)
{
    (void)data;
}

static uint64_t longer(uint64_t most, uint64_t since_ns)
{
    uint64_t took = clock_now_ns() - since_ns;
    return took > most ? took : most;
}

/* The longest turn in microseconds. *ret_ms: until all of it could be used. */
static double longest(uint64_t bytes, bool later, double *ret_ms)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    const struct device_options o = {.backend = "sim",
                                     .options = "memory=128G,map_us=50,speed=0",
                                     .wake = wake,
                                     .maps_later = later};
    struct device dev;
    struct err e = ERR_INIT;
    struct memory_piece piece[PIECES];
    if (device_open(&dev, &o, &e) != 0) {
        bench_die("a simulated device: %s", e.text);
    }
    uint64_t most = 0;
    uint64_t begin = clock_now_ns();
    for (unsigned i = 0; i < PIECES; i++) {
        const struct memory_ask ask = {.size = bytes, .stream = memory_service(&dev.memory)};
        uint64_t turn = clock_now_ns();
        if (memory_alloc(&dev.memory, &ask, &piece[i], &e) != 0) {
            bench_die("%s", e.text);
        }
        most = longer(most, turn);
    }
    for (unsigned i = 0; i < PIECES;) {
        uint64_t turn = clock_now_ns();
        (void)memory_poll(&dev.memory);
        enum pool_late late = memory_late(&dev.memory, &piece[i]);
        most = longer(most, turn);
        if (late == POOL_FAILED) {
            bench_die("mapping failed");
        }
        i += late == POOL_READY;
        if (late == POOL_WAITS) {
            (void)nanosleep(&pause, NULL);
        }
    }
    *ret_ms = (double)(clock_now_ns() - begin) / 1e6;
    for (unsigned i = 0; i < PIECES; i++) {
        memory_free(&dev.memory, &piece[i]);
    }
    device_close(&dev);
    return (double)most / 1e3;
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_begin(
        &b, "mapping",
        "The longest turn of the worker's loop while device memory is mapped, on a simulated\n"
        "device whose mapping calls take 50 us each: calls on the loop, and on a thread.",
        3, argc, argv);
    uint64_t bytes = bench_scale(&b, PIECE, PIECE_MIN);
    for (unsigned i = 0; i < b.repeat; i++) {
        double ms;
        double thread = longest(bytes, true, &ms);
        report_add(&b.report, "mapped", "on a thread", "longest turn", "us", thread);
        report_add(&b.report, "mapped", "on a thread", "all of it", "ms", ms);
        double loop = longest(bytes, false, &ms);
        report_add(&b.report, "mapped", "on the loop", "longest turn", "us", loop);
    }
    report_against(&b.report, "mapped", "on a thread", "longest turn", "on the loop");
    return bench_end(&b);
}
