/* Lists of lanes: ready for a turn, with answers to publish, polled while the loop spins. */
#include <utlist.h>

#include "common/clock.h"
#include "common/round.h"
#include "daemon/front/clients/lane_int.h"

static void on_idle(uv_idle_t *idle)
{
    (void)idle; /* an active idle handle keeps the loop from sleeping */
}

void lanes_awake(struct lanes *l)
{
    (void)uv_idle_start(&l->idle, on_idle);
}

/* Tenants take turns: the lanes of one, however many, do not hold up those of another. */
static void stand(struct lanes *l, struct lane *lane)
{
    bool known = l->callbacks.rounds != NULL && lane->session != NULL;
    lane->round = known ? round_next(l->callbacks.rounds(lane->session), l->round) : l->round;
    bool last = l->ready == NULL || l->ready->ready_prev->round <= lane->round;
    struct lane *at = last ? NULL : l->ready;
    while (at != NULL && at->round <= lane->round) {
        at = at->ready_next;
    }
    if (at != NULL) {
        DL_PREPEND_ELEM2(l->ready, at, lane, ready_prev, ready_next);
    } else {
        DL_APPEND2(l->ready, lane, ready_prev, ready_next);
    }
}

void lanes_wake(struct lane *lane)
{
    struct lanes *l = lane->lanes;
    if (!lane->ready && !l->closing) {
        lane->ready = true;
        stand(l, lane);
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
