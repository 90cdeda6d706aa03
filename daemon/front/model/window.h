/*
 * How many jobs a worker has in flight, derived from the rate at which they complete. The window is
 * the smallest that keeps the device busy, because urgent jobs cannot overtake jobs in flight, and
 * jobs in flight run again when their worker ends.
 *
 * The search is a climb. While jobs wait for a place in the window, the rate is measured for an
 * epoch. The next epoch tries a window of twice or half the size. A larger window remains if the
 * rate grew by the factor WINDOW_GAIN, a smaller one if the factor WINDOW_KEEP of it is left. After
 * a trial in vain there is none for WINDOW_HOLD epochs. (The idea: Hellerstein and others,
 * "Optimizing concurrency levels in the .NET ThreadPool", MSDN 2009; the constants are our own.)
 * Pure.
 */
#ifndef FRONT_MODEL_WINDOW_H
#define FRONT_MODEL_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#define WINDOW_MIN      2u
#define WINDOW_MAX      64u
#define WINDOW_START    8u
#define WINDOW_EPOCH_NS UINT64_C(20000000) /* at least; and the completions of four windows */
#define WINDOW_HOLD     25u                /* epochs */
#define WINDOW_GAIN     1.05
#define WINDOW_KEEP     0.98

struct window {
    unsigned size;     /* jobs; 0: not begun */
    unsigned trial;    /* size that this epoch tries, 0: none */
    bool down;         /* the next trial is smaller */
    unsigned hold;     /* epochs until the next trial */
    double rate;       /* of `size`: completions per nanosecond */
    uint64_t began_ns; /* when the epoch began */
    unsigned done;     /* completions in the epoch */
    bool full;         /* jobs waited for a place all the epoch long */
};

/* Jobs that may be in flight now. */
unsigned window_size(const struct window *w);
/* A job completed. waiting: others wait for a place. */
void window_done(struct window *w, bool waiting, uint64_t now_ns);

#endif
