/* Admission: limits of connections and of unanswered requests, and places reserved for keepers
 * (administrators, see listener_set_keepers). */
#include <stdlib.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/log.h"
#include "daemon/front/clients/listener_int.h"

#define FULL_NS         (10 * NS_PER_S) /* between two lines of the log about full places */
#define AGAIN_NS        NS_PER_S        /* until a refused client may try again */
#define TURNED_AWAY_MAX 64u             /* connections without a place; more are closed */

/* The user of a peer, made if it is new. NULL: no memory. The caller counts the connection. */
static struct user *user_of(struct listener *l, const struct peer *peer)
{
    uint32_t uid = peer->local ? peer->uid : UINT32_MAX;
    uint64_t key = peer->listener != 0 ? (uint64_t)peer->listener << 32 : uid;
    struct user *u = NULL;
    HASH_FIND(hh, l->users, &key, sizeof key, u);
    if (u != NULL) {
        return u;
    }
    u = calloc(1, sizeof *u);
    if (u != NULL) {
        u->key = key;
        u->uid = uid;
        HASH_ADD(hh, l->users, key, sizeof u->key, u);
    }
    if (u != NULL && !HASH_ENTERED(u->hh)) {
        free(u);
        u = NULL;
    }
    return u;
}

static void log_full(struct listener *l, const char *what, const struct peer *p)
{
    uint64_t now = clock_now_ns();
    if (l->full_logged_ns == 0 || now - l->full_logged_ns >= FULL_NS) {
        l->full_logged_ns = now;
        log_say(LOG_CLIENTS_FULL,
                "%s, of user %u: %u are open, connections_max = %u; %llu were refused before it",
                what, p->local ? p->uid : UINT32_MAX, l->connected, l->options.connections_max,
                (unsigned long long)l->stats.refused);
    }
}

static bool idle(const struct connection *c)
{
    return c->state >= CONNECTION_GREETING && c->state <= CONNECTION_OPEN &&
           c->outstanding == c->waits;
}

/* The keepers' connection that is idle longest; NULL: none is idle. */
static struct connection *idlest_keeper(const struct listener *l)
{
    struct connection *found = NULL;
    for (struct connection *c = l->connections; c != NULL; c = c->hh.next) {
        bool may = c->keeper && !c->crowded && idle(c);
        if (may && (found == NULL || c->active_ns < found->active_ns)) {
            found = c;
        }
    }
    return found;
}

/* Keepers have reserved places. When these are in use, the idlest connection of a keeper is
 * closed. */
static bool has_place(struct listener *l, const struct connection *c)
{
    unsigned places =
        l->options.connections_max + (c->keeper ? l->options.connections_reserved : 0);
    unsigned own = l->options.connections_max - l->options.connections_max / 4;
    if (!c->keeper && c->user->placed >= own) {
        log_full(l, "a connection is refused", &c->peer);
        return false;
    }
    if (l->connected < places) {
        return true;
    }
    struct connection *idlest =
        c->keeper && l->options.connections_reserved > 0 ? idlest_keeper(l) : NULL;
    if (idlest == NULL) {
        log_full(l, "a connection is refused", &c->peer);
        return false;
    }
    log_full(l, "an administrator's idle connection is closed for a new one", &idlest->peer);
    l->stats.displaced++;
    connection_end(idlest);
    return true;
}

/* Is there room for one more connection that is only refused? A user may have at most as many as
 * are still free. */
static bool may_be_refused(const struct listener *l, const struct user *u)
{
    return u->turned_away < TURNED_AWAY_MAX - l->turned_away;
}

static bool list(struct listener *l, struct connection *c)
{
    do {
        c->peer.pipe = ++l->last_pipe;
    } while (c->peer.pipe == 0 || connection_find(l, c->peer.pipe) != NULL);
    HASH_ADD(hh, l->connections, peer.pipe, sizeof c->peer.pipe, c);
    return HASH_ENTERED(c->hh);
}

/* Strangers of the network may take a quarter of all places, and none for longer than
 * handshake_ns. */
static bool too_strange(struct listener *l, const struct connection *c)
{
    unsigned most = (l->options.connections_max + 3) / 4;
    if (!c->peer.tls || l->strangers < most) {
        return false;
    }
    log_full(l, "a connection over TLS is closed, as too many wait for their HELLO", &c->peer);
    l->stats.refused++;
    return true;
}

bool place_take(struct listener *l, struct connection *c)
{
    if (too_strange(l, c)) {
        return false;
    }
    c->user = l->ending ? NULL : user_of(l, &c->peer);
    if (c->user == NULL) {
        return false;
    }
    c->keeper = c->peer.local && c->peer.listener == 0 &&
                members_have(&l->keepers, c->peer.uid, c->peer.gid);
    c->crowded = !has_place(l, c);
    bool in = (!c->crowded || may_be_refused(l, c->user)) && list(l, c);
    l->stats.refused += !in || c->crowded;
    if (!in) {
        user_release(l, c->user);
        return false;
    }
    c->stranger = c->peer.tls;
    l->strangers += c->stranger;
    c->user->connections++;
    c->user->turned_away += c->crowded;
    c->user->placed += !c->crowded;
    ++*place_count(l, c);
    return true;
}

int place_refusal(const struct listener *l, struct err *e)
{
    int rc = err_set(e, ERR_BUSY,
                     "%u connections are open, the most that connections_max allows: close some, "
                     "or raise it in [daemon] and restart gpud",
                     l->options.connections_max);
    e->retry_after_ns = AGAIN_NS;
    return rc;
}
