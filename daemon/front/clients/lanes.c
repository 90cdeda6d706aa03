/* All lanes on their loop: a lane whose bell rang gets turns until its ring is empty. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <utlist.h>

#include "common/clock.h"
#include "daemon/front/clients/lane_int.h"

#define SPIN_CPUS   4  /* with fewer, spinning takes the CPU from the client that it waits for */
#define SPIN_ROUNDS 64 /* polls of all lanes before the loop polls its descriptors again */

void lanes_flush(struct lanes *l)
{
    while (l != NULL && l->dirty != NULL) {
        struct lane *lane = l->dirty;
        l->dirty = lane->dirty_next;
        lane->dirty = false;
        lane_publish(lane);
    }
}

/* ---- turns --------------------------------------------------------------------------------- */

static void turn(struct lanes *l, struct lane *lane)
{
    lane_unready(lane);
    lane_unpoll(lane);
    l->round = lane->round;
    l->current = lane;
    enum lane_state state = lane_turn(lane, l->options.batch, l->options.spin_ns > 0);
    l->current = NULL;
    if (lane->session == NULL) {
        lane_reap(lane);
    } else if (state == LANE_MORE) {
        lanes_wake(lane);
    }
}

/* Gives each lane that is ready now one turn. A lane with more records moves behind those of other
 * tenants that wait.
 * Counts the lanes first, because any lane may be closed in the turn of another. */
static void take_turns(struct lanes *l)
{
    const struct lane *lane;
    unsigned count = 0;
    DL_COUNT2(l->ready, lane, count, ready_next);
    for (bool first = true; count > 0 && l->ready != NULL && lanes_more(l, first); count--) {
        first = false;
        turn(l, l->ready);
    }
}

static void spin_end(struct lanes *l)
{
    l->spin_until_ns = 0;
    while (l->polled != NULL) {
        struct lane *lane = l->polled;
        lane_unpoll(lane);
        if (!ring_sleep(&lane->in)) {
            lanes_wake(lane);
        }
    }
}

/* Polls the rings of lanes that had a record recently, without a system call. */
static void spin(struct lanes *l)
{
    for (unsigned i = 0; i < SPIN_ROUNDS && l->ready == NULL; i++) {
        struct lane *lane;
        struct lane *next;
        DL_FOREACH_SAFE2(l->polled, lane, next, polled_next)
        {
            if (ring_ready(&lane->in)) {
                lanes_wake(lane);
            }
        }
    }
    if (l->ready == NULL && clock_now_ns() >= l->spin_until_ns) {
        spin_end(l);
    }
}

void lanes_turn(struct lanes *l)
{
    if (l == NULL) {
        return;
    }
    if (l->spin_until_ns != 0) {
        spin(l);
    }
    take_turns(l);
    if (l->ready == NULL && l->spin_until_ns == 0) {
        (void)uv_idle_stop(&l->idle);
    } else if (!l->closing) {
        lanes_awake(l);
    }
}

/* ---- make and unmake ----------------------------------------------------------------------- */

static uint64_t spin_allowed(uint64_t spin_ns)
{
    cpu_set_t set;
    bool enough = sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) >= SPIN_CPUS;
    return enough ? spin_ns : 0;
}

void lanes_spin(struct lanes *l, uint64_t spin_ns)
{
    l->options.spin_ns = spin_allowed(spin_ns);
    if (l->options.spin_ns == 0 && l->spin_until_ns != 0) {
        spin_end(l);
    }
}

int lanes_create(uv_loop_t *loop, const struct lanes_options *options,
                 const struct lanes_callbacks *callbacks, void *data, struct lanes **ret_lanes,
                 struct err *e)
{
    struct lanes *l = calloc(1, sizeof *l);
    if (l == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for ring lanes");
    }
    *l = (struct lanes){.loop = loop, .options = *options, .callbacks = *callbacks, .data = data};
    lanes_spin(l, options->spin_ns);
    (void)uv_idle_init(loop, &l->idle); /* cannot fail */
    l->idle.data = l;
    *ret_lanes = l;
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void lanes_destroy(struct lanes *l)
{
    if (l == NULL) {
        return;
    }
    l->closing = true;
    uv_close((uv_handle_t *)&l->idle, on_closed);
}

void lanes_stats(const struct lanes *l, struct lanes_stats *ret_stats)
{
    *ret_stats = l->stats;
}
