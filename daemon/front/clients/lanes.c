/* All lanes on their loop: who was rung for gets turns, as long as there is something. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <utlist.h>

#include "common/clock.h"
#include "daemon/front/clients/lane_int.h"

#define EVENTS      64
#define SPIN_CPUS   4  /* below, who spins takes the CPU of those it waits for */
#define SPIN_ROUNDS 64 /* looks before the loop sees to its descriptors again */

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
    l->current = lane;
    enum lane_state state = lane_turn(lane, l->options.batch, l->options.spin_ns > 0);
    l->current = NULL;
    if (lane->session == NULL) {
        lane_reap(lane);
    } else if (state == LANE_MORE) {
        lanes_wake(lane);
    }
}

/* One turn for each that is ready now; those that have more then come again behind the others. They
 * are counted: any of them may be closed in another's turn. */
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

/* Looks at the rings of those that were busy just now, without a system call. */
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

static void on_ends(uv_poll_t *poll, int status, int events)
{
    struct lanes *l = poll->data;
    struct epoll_event event[EVENTS];
    (void)status;
    (void)events;
    int count = epoll_wait(l->epoll, event, EVENTS, 0);
    for (int i = 0; i < count; i++) {
        struct lane *lane = event[i].data.ptr;
        if ((event[i].events & EPOLLERR) != 0) {
            lane->hung_up = true;
            lanes_wake(lane); /* its turn comes in this turn of the loop */
        }
    }
}

/* ---- make and unmake ----------------------------------------------------------------------- */

static uint64_t spin_allowed(uint64_t spin_ns)
{
    cpu_set_t set;
    bool spare = sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) >= SPIN_CPUS;
    return spare ? spin_ns : 0;
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
        return err_set(e, ERR_NOMEM, "ring lanes");
    }
    *l = (struct lanes){.loop = loop, .options = *options, .callbacks = *callbacks, .data = data};
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    int rc = l->epoll < 0 ? err_errno(e, ERR_IO, "watching lanes") : 0;
    if (rc == 0 && uv_poll_init(loop, &l->poll, l->epoll) != 0) {
        rc = err_set(e, ERR_IO, "watching lanes");
        (void)close(l->epoll);
    }
    if (rc != 0) {
        free(l);
        return rc;
    }
    lanes_spin(l, options->spin_ns);
    (void)uv_idle_init(loop, &l->idle); /* these cannot fail */
    l->poll.data = l->idle.data = l;
    l->handles_open = 2;
    (void)uv_poll_start(&l->poll, UV_READABLE, on_ends);
    *ret_lanes = l;
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct lanes *l = handle->data;
    if (--l->handles_open == 0) {
        (void)close(l->epoll);
        free(l);
    }
}

void lanes_destroy(struct lanes *l)
{
    if (l == NULL) {
        return;
    }
    l->closing = true;
    uv_close((uv_handle_t *)&l->poll, on_closed);
    uv_close((uv_handle_t *)&l->idle, on_closed);
}

void lanes_stats(const struct lanes *l, struct lanes_stats *ret_stats)
{
    *ret_stats = l->stats;
}
