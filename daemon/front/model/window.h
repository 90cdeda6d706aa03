/*
 * The window: how many jobs a worker may have in flight, derived from the rate at which they
 * complete. The aim is the smallest window that keeps the device busy, because urgent jobs cannot
 * overtake jobs in flight, and jobs in flight run again when their worker ends.
 *
 * The search is hill climbing. While jobs wait for a place in the window, the rate is measured for
 * an epoch. The next epoch tries a window of twice or half the size. A larger window is kept if the
 * rate grew by the factor WINDOW_GAIN, a smaller one if WINDOW_KEEP of the rate is left. After a
 * failed trial, WINDOW_HOLD epochs pass without one. (The idea: Hellerstein and others, "Optimizing
 * concurrency levels in the .NET ThreadPool", MSDN 2009; the constants are our own.) Pure.
 */
#ifndef FRONT_MODEL_WINDOW_H
#define FRONT_MODEL_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#define WINDOW_MIN      2u
#define WINDOW_MAX      64u
#define WINDOW_START    8u
#define WINDOW_EPOCH_NS UINT64_C(20000000) /* at least; and four windows of completions */
#define WINDOW_HOLD     25u                /* epochs */
#define WINDOW_GAIN     1.05
#define WINDOW_KEEP     0.98

struct window {
    unsigned size;     /* in jobs; 0: nothing measured yet */
    unsigned trial;    /* size that this epoch tries; 0: none */
    bool down;         /* the next trial is smaller */
    unsigned hold;     /* epochs until the next trial */
    double rate;       /* completions per nanosecond at `size` */
    uint64_t began_ns; /* when the epoch began */
    unsigned done;     /* completions in the epoch */
    bool full;         /* jobs waited for a place during the whole epoch */
};

/* Jobs that may be in flight now. */
unsigned window_size(const struct window *w);
/* A job completed. waiting: other jobs wait for a place. */
void window_done(struct window *w, bool waiting, uint64_t now_ns);

/* What the next completions say about the rate does not go with the last ones. */
void window_break(struct window *w);

#endif
