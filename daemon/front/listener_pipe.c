/* Connections: who they are, how many, and those that never say who they are. */
#include <stdlib.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/front/listener_int.h"
#include "daemon/front/nng_guard.h"

#define QUIET_NS        (20 * NS_PER_MS) /* nothing came for so long: nothing is half read */
#define FULL_NS         (10 * NS_PER_S)  /* between two lines of the log that say so */
#define AGAIN_NS        NS_PER_S         /* when who finds no place may try again */
#define TURNED_AWAY_MAX 64u              /* who are told so at once; more are closed */

/* To be called with the lock, for one that is not gone: NNG has its descriptor until then. */
static void end(const struct connection *c)
{
    (void)shutdown(c->fd, SHUT_RDWR); /* fails only if the peer was first */
}

static struct connection *find(struct listener *l, uint32_t pipe)
{
    struct connection *c = NULL;
    HASH_FIND(hh, l->connections, &pipe, sizeof pipe, c);
    return c;
}

/* To be called with the lock; true: the caller wakes the loop once it gave the lock back. */
static bool must_wake(struct listener *l)
{
    bool first = !l->waked;
    l->waked = true;
    return first;
}

/* To be called with the lock, for one that is not gone. */
static void doom(struct listener *l, struct connection *c)
{
    if (c->doomed) {
        return;
    }
    if (!c->identified) {
        DL_DELETE(l->silent, c);
        c->identified = true;
    }
    c->doomed = true;
    if (c->fd >= 0) {
        end(c);
    } else {
        c->deadline_ns = ns_add(clock_now_ns(), QUIET_NS);
        DL_APPEND(l->doomed, c);
    }
}

void connection_close(struct listener *l, uint32_t pipe)
{
    bool wake = false;
    pthread_mutex_lock(&l->lock);
    struct connection *c = find(l, pipe);
    if (c != NULL && !c->gone) {
        doom(l, c);
        wake = must_wake(l);
    }
    pthread_mutex_unlock(&l->lock);
    if (wake) {
        (void)uv_async_send(&l->wake);
    }
}

static struct peer peer_of(nng_pipe pipe)
{
    struct peer peer = {.pipe = (uint32_t)nng_pipe_id(pipe)};
    uint64_t uid = 0;
    uint64_t gid = 0;
    uint64_t pid = 0;
    if (nng_pipe_get_uint64(pipe, NNG_OPT_IPC_PEER_UID, &uid) == 0 &&
        nng_pipe_get_uint64(pipe, NNG_OPT_IPC_PEER_GID, &gid) == 0 &&
        nng_pipe_get_uint64(pipe, NNG_OPT_IPC_PEER_PID, &pid) == 0) {
        peer.local = true;
        peer.uid = (uint32_t)uid;
        peer.gid = (uint32_t)gid;
        peer.pid = (int32_t)pid;
    }
    return peer;
}

/* To be called with the lock; NULL: no memory. The caller counts a connection to it. */
static struct user *user_of(struct listener *l, const struct peer *peer)
{
    uint32_t uid = peer->local ? peer->uid : UINT32_MAX;
    struct user *u = NULL;
    HASH_FIND(hh, l->users, &uid, sizeof uid, u);
    if (u != NULL) {
        return u;
    }
    u = calloc(1, sizeof *u);
    if (u != NULL) {
        u->uid = uid;
        HASH_ADD(hh, l->users, uid, sizeof u->uid, u);
    }
    if (u != NULL && u->hh.tbl == NULL) {
        free(u);
        u = NULL;
    }
    return u;
}

void user_release(struct listener *l, struct user *u)
{
    if (u->connections == 0 && u->outstanding == 0) {
        HASH_DELETE(hh, l->users, u);
        free(u);
    }
}

/* To be called with the lock. */
static unsigned places(const struct listener *l, const struct peer *p)
{
    bool keeper = p->local && members_have(&l->keepers, p->uid, p->gid);
    return l->options.connections_max + (keeper ? l->options.connections_spare : 0);
}

/* To be called with the lock. */
static void tell_full(struct listener *l, const struct peer *p)
{
    uint64_t now = clock_now_ns();
    if (l->full_told_ns == 0 || now - l->full_told_ns >= FULL_NS) {
        l->full_told_ns = now;
        log_warn("a connection of user %u is turned away: %u are open, connections_max = %u; "
                 "%llu found no place before it",
                 p->local ? p->uid : UINT32_MAX, l->connected, l->options.connections_max,
                 (unsigned long long)l->stats.refused);
    }
}

/* To be called with the lock: in what it is counted. */
static unsigned *count_of(struct listener *l, const struct connection *c)
{
    return c->crowded ? &l->turned_away : &l->connected;
}

/* To be called with the lock: is there one of the places left of those who are told so? A user has
 * no more of them than are left for all others. */
static bool may_be_told(const struct listener *l, const struct user *u)
{
    return u->turned_away < TURNED_AWAY_MAX - l->turned_away;
}

/* To be called with the lock; false: memory is out. */
static bool list(struct listener *l, struct connection *c)
{
    HASH_ADD(hh, l->connections, peer.pipe, sizeof c->peer.pipe, c);
    return c->hh.tbl != NULL;
}

/* To be called with the lock. One too many is let in to be told so. */
static bool enter(struct listener *l, struct connection *c)
{
    c->crowded = l->connected >= places(l, &c->peer);
    if (c->crowded) {
        tell_full(l, &c->peer);
    }
    c->user = user_of(l, &c->peer);
    if (c->user == NULL) {
        return false;
    }
    if ((c->crowded && !may_be_told(l, c->user)) || !list(l, c)) {
        user_release(l, c->user);
        return false;
    }
    c->user->connections++;
    c->user->turned_away += c->crowded;
    ++*count_of(l, c);
    return true;
}

static bool admit(struct listener *l, struct connection *c)
{
    bool wake = false;
    pthread_mutex_lock(&l->lock);
    bool room = !l->ending && enter(l, c);
    if (room) {
        wake = l->silent == NULL && must_wake(l);
        DL_APPEND(l->silent, c);
    }
    l->stats.refused += !room || c->crowded;
    pthread_mutex_unlock(&l->lock);
    if (wake) {
        (void)uv_async_send(&l->wake);
    }
    return room;
}

static void arrived(struct listener *l, nng_pipe pipe)
{
    struct connection *c = calloc(1, sizeof *c);
    if (c != NULL) {
        c->peer = peer_of(pipe);
        c->fd = nng_guard_descriptor(pipe);
        c->deadline_ns = ns_add(clock_now_ns(), l->options.handshake_ns);
    }
    if (c == NULL || !admit(l, c)) {
        free(c);
        (void)nng_pipe_close(pipe);
    }
}

static void departed(struct listener *l, uint32_t pipe)
{
    bool wake = false;
    pthread_mutex_lock(&l->lock);
    struct connection *c = find(l, pipe);
    if (c != NULL && !c->gone) {
        if (!c->identified) {
            DL_DELETE(l->silent, c);
        } else if (c->doomed && c->fd < 0 && !c->closing) {
            DL_DELETE(l->doomed, c);
        }
        c->gone = true;
        --*count_of(l, c);
        c->user->turned_away -= c->crowded;
        DL_APPEND(l->closed_list, c);
        wake = must_wake(l);
    }
    pthread_mutex_unlock(&l->lock);
    if (wake) {
        (void)uv_async_send(&l->wake);
    }
}

bool connections_end(struct listener *l)
{
    struct connection *c;
    struct connection *next;
    pthread_mutex_lock(&l->lock);
    l->ending = true;
    bool none = l->connected + l->turned_away == 0;
    HASH_ITER(hh, l->connections, c, next)
    {
        if (!c->gone && c->fd >= 0) {
            end(c);
        }
    }
    pthread_mutex_unlock(&l->lock);
    return none;
}

void connection_event(nng_pipe pipe, nng_pipe_ev event, void *data)
{
    if (event == NNG_PIPE_EV_ADD_PRE) {
        arrived(data, pipe);
    } else if (event == NNG_PIPE_EV_REM_POST) {
        departed(data, (uint32_t)nng_pipe_id(pipe));
    }
}

/* To be called with the lock. */
static bool room_for(struct listener *l, struct connection *c, bool *ret_wake)
{
    if (c == NULL || c->gone) {
        return false;
    }
    if (c->doomed) {
        c->deadline_ns = ns_add(clock_now_ns(), QUIET_NS);
        return false;
    }
    bool user = c->user->outstanding >= l->options.user_requests_max;
    if (!user && c->outstanding < l->options.pipe_requests_max) {
        return true;
    }
    l->stats.crowded++;
    doom(l, c);
    *ret_wake = must_wake(l);
    log_warn("a connection of user %u is closed: %u requests of %s are unanswered, at most %u",
             c->user->uid, user ? c->user->outstanding : c->outstanding, user ? "the user" : "it",
             user ? l->options.user_requests_max : l->options.pipe_requests_max);
    return false;
}

/* To be called with the lock. */
static void hand_over(struct listener *l, struct connection *c, struct request *r)
{
    c->said_hello = c->said_hello || r->kind == MSG_KIND_HELLO;
    r->peer = c->peer;
    *l->last = r;
    l->last = &r->next;
    l->stats.requests++;
}

bool connection_take(struct listener_slot *slot, struct request *r)
{
    struct listener *l = slot->listener;
    bool wake = false;
    pthread_mutex_lock(&l->lock);
    /* Under one lock with `departed`, so that the loop hears of a connection's end last. */
    struct connection *c = find(l, slot->pipe);
    bool crowded = r != NULL && c != NULL && c->crowded;
    bool taken = !crowded && room_for(l, c, &wake);
    if (taken) {
        c->outstanding++;
        c->user->outstanding++;
        l->busy++;
        slot->user = c->user;
    }
    if (taken && r != NULL) {
        hand_over(l, c, r);
        wake = must_wake(l);
    }
    pthread_mutex_unlock(&l->lock);
    if (wake) {
        (void)uv_async_send(&l->wake);
    }
    return taken;
}

int connection_crowded(const struct listener_slot *slot, struct err *e)
{
    struct listener *l = slot->listener;
    pthread_mutex_lock(&l->lock);
    const struct connection *c = find(l, slot->pipe);
    bool crowded = c != NULL && c->crowded;
    pthread_mutex_unlock(&l->lock);
    if (!crowded) {
        return 0;
    }
    int rc = err_set(e, ERR_BUSY,
                     "%u connections are open, as many as connections_max lets: close some, or "
                     "raise it in [daemon] and restart gpud",
                     l->options.connections_max);
    if (e != NULL) {
        e->retry_after_ns = AGAIN_NS;
    }
    return rc;
}

void connection_answered(struct listener_slot *slot)
{
    struct listener *l = slot->listener;
    struct user *u = slot->user;
    if (u == NULL) {
        return;
    }
    slot->user = NULL;
    pthread_mutex_lock(&l->lock);
    struct connection *c = find(l, slot->pipe);
    if (c != NULL) {
        c->outstanding--;
    }
    l->busy--;
    u->outstanding--;
    user_release(l, u);
    pthread_mutex_unlock(&l->lock);
}

void listener_identified(struct listener *l, uint32_t pipe)
{
    pthread_mutex_lock(&l->lock);
    struct connection *c = find(l, pipe);
    if (c != NULL && !c->gone && !c->identified) {
        DL_DELETE(l->silent, c);
        c->identified = true;
    }
    pthread_mutex_unlock(&l->lock);
}

static void doom_silent(struct listener *l, uint64_t now)
{
    while (l->silent != NULL && l->silent->deadline_ns <= now) {
        l->stats.silent++;
        doom(l, l->silent);
    }
}

static uint32_t take_quiet(struct listener *l, uint64_t now)
{
    struct connection *c;
    DL_FOREACH(l->doomed, c)
    {
        if (c->deadline_ns <= now) {
            DL_DELETE(l->doomed, c);
            c->closing = true;
            return c->peer.pipe;
        }
    }
    return 0;
}

static void close_due(uv_timer_t *timer)
{
    struct listener *l = timer->data;
    uint64_t now = clock_now_ns();
    uint32_t pipe;
    do {
        pthread_mutex_lock(&l->lock);
        doom_silent(l, now);
        pipe = take_quiet(l, now);
        pthread_mutex_unlock(&l->lock);
        if (pipe != 0) {
            (void)nng_pipe_close((nng_pipe){.id = pipe}); /* fails only if it is gone */
        }
    } while (pipe != 0);
    handshake_arm(l);
}

void handshake_arm(struct listener *l)
{
    const struct connection *c;
    pthread_mutex_lock(&l->lock);
    uint64_t deadline = l->silent != NULL ? l->silent->deadline_ns : NS_NEVER;
    DL_FOREACH(l->doomed, c)
    {
        deadline = c->deadline_ns < deadline ? c->deadline_ns : deadline;
    }
    pthread_mutex_unlock(&l->lock);
    if (deadline == NS_NEVER) {
        return;
    }
    uint64_t now = clock_now_ns();
    uint64_t left = deadline > now ? deadline - now : 0;
    (void)uv_timer_start(&l->handshake, close_due, left / NS_PER_MS + 1, 0);
}

void connections_free(struct listener *l)
{
    struct connection *c;
    struct connection *next;
    struct user *u;
    struct user *after;
    HASH_ITER(hh, l->connections, c, next)
    {
        HASH_DELETE(hh, l->connections, c);
        free(c);
    }
    HASH_ITER(hh, l->users, u, after)
    {
        HASH_DELETE(hh, l->users, u);
        free(u);
    }
    l->silent = NULL;
    l->doomed = NULL;
    l->closed_list = NULL;
    l->connected = 0;
    l->turned_away = 0;
}
