#include "daemon/front/model/window.h"

unsigned window_size(const struct window *w)
{
    unsigned size = w->size != 0 ? w->size : WINDOW_START;
    return w->trial != 0 ? w->trial : size;
}

static void begin(struct window *w, uint64_t now_ns)
{
    w->began_ns = now_ns;
    w->done = 0;
    w->full = true;
}

static void try_next(struct window *w)
{
    unsigned next = w->down ? w->size / 2 : w->size * 2;
    if (next < WINDOW_MIN || next > WINDOW_MAX) {
        w->down = !w->down;
        w->hold = WINDOW_HOLD;
    } else {
        w->trial = next;
    }
}

static void judge(struct window *w, double rate)
{
    bool better = rate > w->rate * (w->trial > w->size ? WINDOW_GAIN : WINDOW_KEEP);
    if (better) { /* the next trial goes in the same direction */
        w->size = w->trial;
        w->rate = rate > w->rate ? rate : w->rate; /* keeps the best rate, as small losses add up */
    } else {
        w->down = !w->down;
        w->hold = WINDOW_HOLD;
    }
    w->trial = 0;
}

void window_done(struct window *w, bool waiting, uint64_t now_ns)
{
    if (w->size == 0 || w->began_ns == 0) {
        w->size = w->size != 0 ? w->size : WINDOW_START;
        begin(w, now_ns);
        return;
    }
    w->done++;
    w->full = w->full && waiting;
    if (!w->full) { /* no job waited: the rate says nothing about the window */
        w->trial = 0;
        begin(w, now_ns);
        return;
    }
    if (now_ns - w->began_ns < WINDOW_EPOCH_NS || w->done < 4 * window_size(w)) {
        return;
    }
    double rate = (double)w->done / (double)(now_ns - w->began_ns);
    if (w->trial != 0) {
        judge(w, rate);
    } else {
        w->rate = rate;
    }
    if (w->trial == 0 && w->hold > 0) {
        w->hold--;
    } else if (w->trial == 0) {
        try_next(w);
    }
    begin(w, now_ns);
}

void window_break(struct window *w)
{
    w->trial = 0;
    w->began_ns = 0;
}
