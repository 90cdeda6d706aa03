/*
 * How many jobs a worker has in flight, found from how fast they come back. A climb: while there
 * are more jobs than the window lets in, the rate of completions is measured for an epoch; then
 * another size is tried for an epoch, twice as large or half, and kept if it is larger and the rate
 * grew by WINDOW_GAIN, or smaller and the rate kept up. What is tried in vain is not tried again
 * for WINDOW_HOLD epochs. So the window is the smallest that keeps the device busy: what is in
 * flight cannot be overtaken by what is urgent, and runs again when its worker ends. (The idea:
 * Hellerstein and others, "Optimizing concurrency levels in the .NET ThreadPool", MSDN 2009; the
 * constants are our own.) Pure.
 */
#ifndef FRONT_MODEL_WINDOW_H
#define FRONT_MODEL_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#define WINDOW_MIN      2u
#define WINDOW_MAX      64u
#define WINDOW_START    8u
#define WINDOW_EPOCH_NS UINT64_C(20000000) /* at least, and four windows' completions */
#define WINDOW_HOLD     25u                /* epochs */
#define WINDOW_GAIN     1.05
#define WINDOW_KEEP     0.98

struct window {
    unsigned size;  /* 0: not begun */
    unsigned trial; /* what is being tried, 0: nothing */
    bool down;      /* the next trial is a smaller one */
    unsigned hold;  /* epochs until then */
    double rate;    /* of `size`: completions per nanosecond */
    uint64_t began_ns;
    unsigned done;
    bool full; /* all the epoch long there were jobs that it kept out */
};

/* Jobs that may be in flight now. */
unsigned window_size(const struct window *w);
/* A job came back. waiting: others wait for their turn. */
void window_done(struct window *w, bool waiting, uint64_t now_ns);

#endif
