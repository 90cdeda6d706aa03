/* Lists of lanes: ready for a turn, with answers to publish, polled while the loop spins. */
#include <utlist.h>

#include "common/clock.h"
#include "daemon/front/clients/lane_int.h"

static void on_idle(uv_idle_t *idle)
{
    (void)idle; /* an active idle handle keeps the loop from sleeping */
}

void lanes_awake(struct lanes *l)
{
    (void)uv_idle_start(&l->idle, on_idle);
}

void lanes_wake(struct lane *lane)
{
    struct lanes *l = lane->lanes;
    if (!lane->ready && !l->closing) {
        lane->ready = true;
        DL_APPEND2(l->ready, lane, ready_prev, ready_next);
        lanes_awake(l);
    }
}

void lanes_dirty(struct lane *lane)
{
    if (!lane->dirty) {
        lane->dirty = true;
        LL_PREPEND2(lane->lanes->dirty, lane, dirty_next);
    }
}

void lane_unready(struct lane *lane)
{
    if (lane->ready) {
        lane->ready = false;
        DL_DELETE2(lane->lanes->ready, lane, ready_prev, ready_next);
    }
}

void lane_unpoll(struct lane *lane)
{
    if (lane->polled) {
        lane->polled = false;
        DL_DELETE2(lane->lanes->polled, lane, polled_prev, polled_next);
    }
}

void lane_poll(struct lane *lane)
{
    struct lanes *l = lane->lanes;
    if (!lane->polled) {
        lane->polled = true;
        DL_APPEND2(l->polled, lane, polled_prev, polled_next);
    }
    l->spin_until_ns = clock_now_ns() + l->options.spin_ns;
}

void lanes_forget(struct lane *lane)
{
    lane_unready(lane);
    lane_unpoll(lane);
    if (lane->dirty) {
        lane->dirty = false;
        LL_DELETE2(lane->lanes->dirty, lane, dirty_next);
    }
}

bool lanes_more(const struct lanes *l, bool first)
{
    return l->callbacks.more == NULL || l->callbacks.more(l->data, first);
}
