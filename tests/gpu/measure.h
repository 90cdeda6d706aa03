/* Samples of times, and the back end as the worker uses it. Ends the program as direct.h says. */
#ifndef GPU_MEASURE_H
#define GPU_MEASURE_H

#include <stdint.h>

#include "daemon/backend/backend.h"

struct samples {
    uint64_t *ns; /* owned */
    unsigned count, room;
};

void samples_init(struct samples *s, unsigned room);
void samples_finish(struct samples *s);
void samples_add(struct samples *s, uint64_t ns); /* further ones are dropped when it is full */
/* 0 … 1; 0.5 is the median. Sorts. In microseconds. */
double samples_us(struct samples *s, double part);

/* The CUDA back end's first device. */
struct bench {
    const struct backend *b;
    struct backend_device *device;
    struct backend_info info;
};

void bench_open(struct bench *b, const char *options);
void bench_close(struct bench *b);
/* The suite's kernels, through the back end's own compiler and loader. */
struct backend_module *bench_module(struct bench *b);
struct backend_stream *bench_stream(struct bench *b);
struct backend_marker *bench_mark(struct bench *b, struct backend_stream *s);
/* Waits for it, takes its times and releases it. */
void bench_settle(struct bench *b, struct backend_marker *m, uint64_t *ret_begin_ns,
                  uint64_t *ret_end_ns);
void bench_drain(struct bench *b, struct backend_stream *s);
void bench_spin(struct bench *b, struct backend_stream *s, struct backend_module *m, uint64_t ns);

/* A call of the back end that must succeed. */
#define must_ok(call)                                                                              \
    do {                                                                                           \
        struct err must_e = ERR_INIT;                                                              \
        struct err *e = &must_e;                                                                   \
        if ((call) != 0) {                                                                         \
            measure_die(#call, e);                                                                 \
        }                                                                                          \
    } while (0)

_Noreturn void measure_die(const char *call, const struct err *e);

#endif
