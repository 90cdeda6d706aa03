/* The states of a connection, and its places in lists and counts of the listener. */
#include "daemon/front/clients/listener_int.h"

#include <stdlib.h>

#include "common/clock.h"
#include "common/steps.h"

/* A bit for each state that may come next. */
static const unsigned steps[CONNECTION_STATES] = {
    [CONNECTION_NEW] = STEP_TO(CONNECTION_GREETING),
    [CONNECTION_GREETING] =
        STEP_TO(CONNECTION_SILENT) | STEP_TO(CONNECTION_SILENT_HALF) | STEP_TO(CONNECTION_CLOSING),
    [CONNECTION_SILENT] =
        STEP_TO(CONNECTION_SILENT_HALF) | STEP_TO(CONNECTION_OPEN) | STEP_TO(CONNECTION_CLOSING),
    [CONNECTION_SILENT_HALF] =
        STEP_TO(CONNECTION_SILENT) | STEP_TO(CONNECTION_HALF) | STEP_TO(CONNECTION_CLOSING),
    [CONNECTION_OPEN] = STEP_TO(CONNECTION_HALF) | STEP_TO(CONNECTION_CLOSING),
    [CONNECTION_HALF] =
        STEP_TO(CONNECTION_HALF) | STEP_TO(CONNECTION_OPEN) | STEP_TO(CONNECTION_CLOSING),
    [CONNECTION_CLOSING] = STEP_TO(CONNECTION_ENDED),
    [CONNECTION_ENDED] = STEP_TO(CONNECTION_REPORTED),
};

/* The list of connections in a state; NULL: the state has no list. */
static struct connection **list_of(struct listener *l, enum connection_state state)
{
    switch (state) {
    case CONNECTION_GREETING:
    case CONNECTION_SILENT:
    case CONNECTION_SILENT_HALF:
        return &l->slow;
    case CONNECTION_HALF:
        return &l->half;
    case CONNECTION_ENDED:
        return &l->ended_list;
    default:
        return NULL;
    }
}

static uint64_t time_of(const struct listener *l, enum connection_state state)
{
    return state == CONNECTION_HALF       ? ns_add(clock_now_ns(), l->options.stall_ns)
           : state == CONNECTION_GREETING ? ns_add(clock_now_ns(), l->options.handshake_ns)
                                          : NS_NEVER;
}

bool connection_step(struct connection *c, enum connection_state to)
{
    struct listener *l = c->listener;
    if (!step_exists(steps, c->state, to)) {
        return false;
    }
    /* the loop has moved ended connections to its own list, from which it reports them */
    struct connection **from = to == CONNECTION_REPORTED ? &l->batch_ended : list_of(l, c->state);
    struct connection **into = list_of(l, to);
    bool moves = from != into || to == CONNECTION_HALF;
    if (moves && from != NULL) {
        DL_DELETE(*from, c);
    }
    if (moves && into != NULL) {
        /* the first entry of a list wakes the loop, which arms its timer or delivers the end; a
         * timer that is set for an earlier time fires, finds nothing and is set again */
        l->wake_pending = l->wake_pending || (from != into && *into == NULL);
        c->deadline_ns = time_of(l, to);
        DL_APPEND(*into, c);
    }
    c->state = to;
    return true;
}

/* ---- its counts ------------------------------------------------------------------------------ */

void user_release(struct listener *l, struct user *u)
{
    if (u->connections == 0 && u->outstanding == 0) {
        HASH_DELETE(hh, l->users, u);
        free(u);
    }
}

unsigned *place_count(struct listener *l, const struct connection *c)
{
    return c->crowded ? &l->turned_away : &l->connected;
}

static void place_release(struct listener *l, struct connection *c)
{
    --*place_count(l, c);
    c->user->turned_away -= c->crowded;
    l->strangers -= c->stranger;
    c->stranger = false;
    c->user->placed -= !c->crowded;
}

/* ---- its end --------------------------------------------------------------------------------- */

static void hand_to_closer(struct connection *c)
{
    DL_APPEND(c->listener->closing_list, c);
    (void)pthread_cond_signal(&c->listener->to_close);
}

void connection_end(struct connection *c)
{
    struct listener *l = c->listener;
    if (!connection_step(c, CONNECTION_CLOSING)) {
        return;
    }
    place_release(l, c);
    if (c->parked) {
        c->parked = false;
        DL_DELETE2(l->parked, c, parked_prev, parked_next);
    }
    if (c->visits == 0) {
        hand_to_closer(c);
    }
}

void connection_visit(struct connection *c)
{
    c->visits++;
}

void connection_leave(struct connection *c)
{
    if (--c->visits == 0 && c->state == CONNECTION_CLOSING) {
        hand_to_closer(c);
    }
}

void connection_reported(struct connection *c)
{
    struct listener *l = c->listener;
    (void)connection_step(c, CONNECTION_REPORTED);
    HASH_DELETE(hh, l->connections, c);
    c->user->connections--;
    user_release(l, c->user);
    if (c->outstanding == 0) {
        connection_free(c);
    }
}

void connection_free(struct connection *c)
{
    free(c);
}

struct connection *connection_find(struct listener *l, uint32_t pipe)
{
    struct connection *c = NULL;
    HASH_FIND(hh, l->connections, &pipe, sizeof pipe, c);
    return c;
}
