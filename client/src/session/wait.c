/*
 * Waiting without a thread of the library: of all waiting threads, one watches the connection and
 * takes every answer. The others sleep until their answer is there or the watching thread leaves.
 */
#include "client/src/session/wait.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "client/src/base/events.h"
#include "client/src/link/answers.h"
#include "client/src/link/lane.h"
#include "client/src/link/lane_memory.h"
#include "client/src/link/lost.h"
#include "client/src/link/route.h"
#include "client/src/session/session.h"
#include "common/clock.h"

#define FULL_POLL  64   /* one glance in so many checks the socket, too */
#define POSTED_MAX 128u /* unanswered requests */

struct waiter {
    struct waiter *next;
    pthread_cond_t wake;
    bool (*ready)(void *arg);
    void *arg;
};

/* Takes all messages that the socket has. */
static void read_socket(struct gpud_client *c)
{
    for (;;) {
        struct message *m = NULL;
        struct err e = ERR_INIT;
        int rc = conn_step(&c->conn, &m, &e);
        if (rc > 0) {
            rc = session_message(c, m, &e);
            message_unref(m);
            if (rc == 0) {
                continue;
            }
        }
        if (rc < 0) {
            session_lost(c, &e);
        }
        break;
    }
}

void client_process(struct gpud_client *c, bool socket)
{
    conn_timer_clear(&c->conn);
    if (socket) {
        read_socket(c);
    }
    lane_claimed(c);
    lane_woken(c);
    session_go_on(c);
    conn_timer_set(&c->conn, session_tick(c, clock_now_ns()));
    client_arm(c);
}

/* Wakes the threads whose wait is over, and one to watch the connection if no thread does. */
static void wake(struct gpud_client *c)
{
    struct waiter *heir = NULL;
    for (struct waiter *w = c->waiters; w != NULL; w = w->next) {
        if (w->ready(w->arg)) {
            (void)pthread_cond_signal(&w->wake);
        } else if (heir == NULL) {
            heir = w;
        }
    }
    if (c->leader != NULL && c->leader->ready(c->leader->arg)) {
        conn_timer_set(&c->conn, 0); /* wakes it: another thread has taken its answer */
    }
    if (!c->leading && heir != NULL) {
        (void)pthread_cond_signal(&heir->wake);
    }
}

void client_poll(struct gpud_client *c)
{
    bool socket = true;
    if (c->lane.state >= LANE_CLAIMING && c->lane.state <= LANE_UP) {
        socket = conn_wait(&c->conn, c->conn.fd, 0); /* also clears the bell's edge */
    }
    client_process(c, socket);
    wake(c);
}

void client_glance(struct gpud_client *c)
{
    if (!lane_is_up(c) || ++c->glances % FULL_POLL == 0) {
        client_poll(c);
    } else if (lane_take(c)) {
        session_go_on(c);
        /* a refusal may be among the answers: its request goes again at a time, without an event */
        conn_timer_set(&c->conn, session_tick(c, clock_now_ns()));
        client_arm(c);
        wake(c);
    }
}

void client_make_room(struct gpud_client *c)
{
    if (c->requests.live >= POSTED_MAX) {
        client_poll(c);
    }
}

/* Rounded up, so that a wait is never cut short; -1: for ever. */
static int timeout_ms(uint64_t deadline_ns)
{
    if (deadline_ns == NS_NEVER) {
        return -1;
    }
    uint64_t now = clock_now_ns();
    uint64_t ms = deadline_ns > now ? (deadline_ns - now + NS_PER_MS - 1) / NS_PER_MS : 0;
    return ms < 3600000 ? (int)ms : 3600000;
}

/* Spins on the ring; true: an answer is there. */
static bool spin(struct gpud_client *c, uint64_t deadline_ns)
{
    struct lane_spin ring;
    if (!lane_spin_begin(c, deadline_ns, &ring)) {
        return false;
    }
    (void)pthread_mutex_unlock(&c->lock);
    bool found = lane_spin(&ring);
    (void)pthread_mutex_lock(&c->lock);
    return lane_spin_end(c, found);
}

static void lead(struct gpud_client *c, struct waiter *w, uint64_t deadline_ns)
{
    int fd = c->conn.fd;
    bool socket = false;
    c->leading = true;
    c->leader = w;
    if (!spin(c, deadline_ns) && !w->ready(w->arg)) {
        (void)pthread_mutex_unlock(&c->lock);
        socket = conn_wait(&c->conn, fd, timeout_ms(deadline_ns));
        (void)pthread_mutex_lock(&c->lock);
    }
    c->leader = NULL;
    client_process(c, socket || c->conn.fd != fd);
    c->leading = false;
    wake(c);
}

static void follow(struct gpud_client *c, struct waiter *w, uint64_t deadline_ns)
{
    if (deadline_ns == NS_NEVER) {
        (void)pthread_cond_wait(&w->wake, &c->lock);
        return;
    }
    struct timespec at = {
        .tv_sec = (time_t)(deadline_ns / NS_PER_S),
        .tv_nsec = (long)(deadline_ns % NS_PER_S),
    };
    (void)pthread_cond_timedwait(&w->wake, &c->lock, &at);
}

static int cond_init(pthread_cond_t *cond, struct err *e)
{
    pthread_condattr_t attr;
    if (pthread_condattr_init(&attr) != 0) {
        return err_set(e, ERR_NOMEM, "no memory for a condition variable");
    }
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    int rc = pthread_cond_init(cond, &attr);
    (void)pthread_condattr_destroy(&attr);
    return rc == 0 ? 0 : err_set(e, ERR_NOMEM, "no memory for a condition variable");
}

static void waiter_remove(struct gpud_client *c, struct waiter *w)
{
    struct waiter **at = &c->waiters;
    while (*at != w) {
        at = &(*at)->next;
    }
    *at = w->next;
}

int client_wait(struct gpud_client *c, bool (*ready)(void *arg), void *arg, uint64_t deadline_ns,
                struct err *e)
{
    if (ready(arg)) {
        return 0;
    }
    struct waiter w = {.ready = ready, .arg = arg, .next = c->waiters};
    int rc = cond_init(&w.wake, e);
    if (rc != 0) {
        return rc;
    }
    c->waiters = &w;
    while (!ready(arg)) {
        if (deadline_ns != NS_NEVER && clock_now_ns() >= deadline_ns) {
            rc = err_set(e, ERR_TIMEOUT, "not finished within the time waited");
            break;
        }
        if (c->leading) {
            follow(c, &w, deadline_ns);
        } else {
            lead(c, &w, deadline_ns);
        }
    }
    waiter_remove(c, &w);
    (void)pthread_cond_destroy(&w.wake);
    if (!c->leading) {
        wake(c); /* this thread may have received the signal to watch, and leaves */
    }
    return rc;
}
