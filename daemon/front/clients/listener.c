/* The loop's side of the listener: delivers requests and ends of connections, enforces deadlines,
 * closes. */
#include "daemon/front/clients/listener.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/descriptors.h"
#include "daemon/front/clients/listener_int.h"

#define STALL_NS   (60 * NS_PER_S)
#define UNREAD_MAX (256ull * 1024 * 1024)

/* ---- the loop -------------------------------------------------------------------------------- */

/* May another request or end be delivered in this turn of the loop? */
static bool more(const struct listener *l, bool first)
{
    return l->closing || l->callbacks.more == NULL || l->callbacks.more(l->data, first);
}

static bool any_requests(struct listener *l)
{
    if (l->batch == NULL) {
        listener_lock(l);
        l->batch = rounds_take(l);
        listener_unlock(l);
    }
    return l->batch != NULL;
}

static void deliver_requests(struct listener *l)
{
    for (bool first = true; any_requests(l) && more(l, first); first = false) {
        struct request *r = l->batch;
        l->batch = r->next;
        r->next = NULL;
        (void)atomic_fetch_sub(&r->slot->connection->undelivered, 1);
        if (l->closing) {
            request_destroy(r);
        } else {
            l->callbacks.request(l->data, r);
        }
    }
}

static void deliver_ends(struct listener *l)
{
    for (bool first = true; l->batch_ended != NULL && more(l, first); first = false) {
        struct connection *c = l->batch_ended;
        uint32_t pipe = c->peer.pipe;
        bool announced = c->said_hello && !l->closing;
        listener_lock(l);
        connection_reported(c);
        listener_unlock(l);
        if (announced) {
            l->callbacks.closed(l->data, pipe);
        }
    }
}

/* A connection's end comes after its requests. What the turn has no room for comes in the next
 * turn. true: something is left. */
static bool drain(struct listener *l)
{
    listener_lock(l);
    l->waked = false;
    listener_unlock(l);
    deliver_requests(l);
    listener_lock(l);
    l->batch_ended = l->batch_ended == NULL ? rounds_ended(l) : l->batch_ended;
    listener_unlock(l);
    deliver_ends(l);
    listener_lock(l);
    bool left =
        l->batch != NULL || l->batch_ended != NULL || l->turns != NULL || l->ended_list != NULL;
    l->wake_pending = l->wake_pending || left;
    listener_unlock(l);
    return left;
}

static void end_expired(struct connection **list, uint64_t now, uint64_t *count)
{
    while (*list != NULL && (*list)->deadline_ns <= now) {
        ++*count;
        connection_end(*list); /* removes the connection from the list */
    }
}

static void timer_arm(struct listener *l);

static void on_timer(uv_timer_t *timer)
{
    struct listener *l = timer->data;
    uint64_t now = clock_now_ns();
    listener_lock(l);
    end_expired(&l->slow, now, &l->stats.silent);
    end_expired(&l->half, now, &l->stats.stalled);
    listener_unlock(l);
    doors_retry(l, now);
    timer_arm(l);
}

static void timer_arm(struct listener *l)
{
    listener_lock(l);
    uint64_t wake_ns = l->accept_ns;
    wake_ns = l->slow != NULL && l->slow->deadline_ns < wake_ns ? l->slow->deadline_ns : wake_ns;
    wake_ns = l->half != NULL && l->half->deadline_ns < wake_ns ? l->half->deadline_ns : wake_ns;
    listener_unlock(l);
    if (wake_ns == NS_NEVER) {
        return;
    }
    uint64_t now = clock_now_ns();
    uint64_t left = wake_ns > now ? wake_ns - now : 0;
    (void)uv_timer_start(&l->timer, on_timer, left / NS_PER_MS + 1, 0);
}

static void on_wake(uv_async_t *wake)
{
    struct listener *l = wake->data;
    (void)drain(l);
    if (!l->closing) {
        readers_resume(l);
        timer_arm(l);
    }
}

/* ---- begin ----------------------------------------------------------------------------------- */

static int start_closer(struct listener *l, struct err *e)
{
    l->closer_runs = true;
    int rc = pthread_create(&l->closer, NULL, connections_closer, l);
    if (rc != 0) {
        l->closer_runs = false;
        return err_set(e, ERR_NOMEM, "starting a thread: %s", strerror(rc));
    }
    return 0;
}

static void stop_closer(struct listener *l)
{
    if (!l->closer_runs) {
        return;
    }
    listener_lock(l);
    l->closer_runs = false;
    (void)pthread_cond_signal(&l->to_close);
    listener_unlock(l);
    (void)pthread_join(l->closer, NULL);
}

static int start(struct listener *l, struct err *e)
{
    int rc = nng_aio_alloc(&l->reply, NULL, NULL);
    if (rc != 0) {
        return err_set(e, ERR_NOMEM, "NNG: %s", nng_strerror(rc));
    }
    rc = start_closer(l, e);
    if (rc != 0) {
        return rc;
    }
    rc = uv_async_init(l->loop, &l->wake, on_wake);
    if (rc != 0) {
        return err_set(e, ERR_IO, "a wake-up: %s", uv_strerror(rc));
    }
    (void)uv_timer_init(l->loop, &l->timer);
    l->wake.data = l;
    l->timer.data = l;
    l->handles_open = 2;
    return 0;
}

static void set_options(struct listener *l, const struct listener_options *options)
{
    struct listener_options *o = &l->options;
    *o = *options;
    if (o->pipe_requests_max == 0) {
        o->pipe_requests_max = (o->requests_max + 1) / 2;
    }
    if (o->user_requests_max == 0) {
        o->user_requests_max = o->requests_max - o->requests_max / 4;
    }
    if (o->stall_ns == 0) {
        o->stall_ns = STALL_NS;
    }
    if (o->unread_max == 0) {
        o->unread_max = UNREAD_MAX;
    }
}

int listener_create(uv_loop_t *loop, const struct listener_options *options,
                    const struct listener_callbacks *callbacks, void *data,
                    struct listener **ret_listener, struct err *e)
{
    if (options->requests_max == 0 || options->requests_max > LISTENER_REQUESTS_MAX ||
        options->connections_max == 0) {
        return err_set(e, ERR_INVALID, "a listener for %u requests and %u connections",
                       options->requests_max, options->connections_max);
    }
    struct listener *l = calloc(1, sizeof *l);
    if (l == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a listener");
    }
    l->loop = loop;
    set_options(l, options);
    l->accept_ns = NS_NEVER;
    l->keepers.group = UINT32_MAX; /* none */
    l->callbacks = *callbacks;
    l->data = data;
    (void)pthread_mutex_init(&l->lock, NULL);
    (void)pthread_cond_init(&l->to_close, NULL);
    (void)pthread_cond_init(&l->ended, NULL);
    int rc = start(l, e);
    if (rc != 0) {
        stop_closer(l);
        listener_destroy(l);
        return rc;
    }
    *ret_listener = l;
    return 0;
}

int listener_add(struct listener *l, const char *url, struct err *e)
{
    char checked[LISTEN_URL_MAX];
    enum listen_kind kind = LISTEN_IPC;
    int rc = listen_url(url, checked, &kind, e);
    if (rc == 0 && kind == LISTEN_IPC) {
        rc = listen_take_over(checked + strlen("ipc://"), e);
    } else if (rc == 0 && kind == LISTEN_TLS && l->tls == NULL) {
        rc = err_set(e, ERR_STATE, "listening on %s: no certificate", url);
    }
    return rc == 0 ? door_open(l, checked, kind, 0, e) : rc;
}

int listener_add_tenant(struct listener *l, const char *path, uint32_t number, struct err *e)
{
    char url[LISTEN_URL_MAX];
    (void)snprintf(url, sizeof url, "ipc://%s", path);
    int rc = listen_take_over(path, e);
    return rc == 0 ? door_open(l, url, LISTEN_IPC, number, e) : rc;
}

void listener_remove_tenant(struct listener *l, uint32_t number)
{
    door_close(l, number);
}

bool listener_has(const struct listener *l, const char *url)
{
    char checked[LISTEN_URL_MAX];
    enum listen_kind kind = LISTEN_IPC;
    bool found = false;
    if (listen_url(url, checked, &kind, NULL) != 0) {
        return false;
    }
    for (const struct door *d = l->doors; d != NULL; d = d->next) {
        found = found || strcmp(d->url, checked) == 0;
    }
    return found;
}

/* ---- end ------------------------------------------------------------------------------------- */

static void handle_closed(uv_handle_t *handle)
{
    struct listener *l = handle->data;
    if (--l->handles_open == 0) {
        l->closed(l->closed_data);
    }
}

/* Blocks until no thread of NNG's is in our code any more. */
static void close_work(uv_work_t *work)
{
    struct listener *l = work->data;
    struct connection *c;
    struct connection *next;
    listener_lock(l);
    l->ending = true;
    listener_unlock(l);
    doors_close(l);
    listener_lock(l);
    HASH_ITER(hh, l->connections, c, next)
    {
        connection_end(c);
    }
    while (l->alive > 0) {
        (void)pthread_cond_wait(&l->ended, &l->lock);
    }
    listener_unlock(l);
    stop_closer(l);
}

static void close_handles(uv_work_t *work, int status)
{
    (void)status; /* the work is never cancelled */
    struct listener *l = work->data;
    while (drain(l)) {
    }
    uv_close((uv_handle_t *)&l->wake, handle_closed);
    uv_close((uv_handle_t *)&l->timer, handle_closed);
}

void listener_close(struct listener *l, void (*done)(void *data), void *data)
{
    l->closing = true;
    l->closed = done;
    l->closed_data = data;
    (void)uv_timer_stop(&l->timer);
    l->closing_work.data = l;
    /* close_work waits for NNG's threads. uv_queue_work fails only without a function. */
    (void)uv_queue_work(l->loop, &l->closing_work, close_work, close_handles);
}

void listener_destroy(struct listener *l)
{
    if (l == NULL) {
        return;
    }
    slots_destroy(l);
    tls_free(l);
    nng_aio_free(l->reply);
    (void)pthread_cond_destroy(&l->ended);
    (void)pthread_cond_destroy(&l->to_close);
    (void)pthread_mutex_destroy(&l->lock);
    free(l);
}

/* ---- calls of the front ---------------------------------------------------------------------- */

void listener_reply(struct listener *l, struct listener_slot *slot, struct bytes message)
{
    if (!l->closing) {
        writer_reply(l, slot, message);
    }
}

void listener_drop(struct listener *l, struct listener_slot *slot)
{
    if (!l->closing) {
        listener_lock(l);
        slot_free(l, slot);
        listener_unlock(l);
    }
}

void listener_close_pipe(struct listener *l, uint32_t pipe)
{
    listener_lock(l);
    struct connection *c = connection_find(l, pipe);
    if (c != NULL) {
        connection_end(c);
    }
    listener_unlock(l);
}

void listener_identified(struct listener *l, uint32_t pipe)
{
    listener_lock(l);
    struct connection *c = connection_find(l, pipe);
    if (c != NULL && c->stranger) {
        c->stranger = false;
        l->strangers--;
    }
    if (c != NULL && c->state == CONNECTION_SILENT) {
        (void)connection_step(c, CONNECTION_OPEN);
    } else if (c != NULL && c->state == CONNECTION_SILENT_HALF) {
        (void)connection_step(c, CONNECTION_HALF);
    }
    listener_unlock(l);
}

void listener_set_keepers(struct listener *l, const struct members *keepers)
{
    listener_lock(l);
    l->keepers = *keepers;
    listener_unlock(l);
}

void listener_set_limits(struct listener *l, unsigned requests_max, unsigned pipe_requests_max,
                         uint64_t unread_max)
{
    listener_lock(l);
    struct listener_options options = l->options;
    options.requests_max = requests_max;
    options.pipe_requests_max = pipe_requests_max;
    options.user_requests_max = 0;
    options.unread_max = unread_max;
    set_options(l, &options);
    l->wake_pending = l->wake_pending || l->parked != NULL;
    listener_unlock(l);
}

bool listener_starved(struct listener *l)
{
    bool starved = !descriptors_left();
    listener_lock(l);
    doors_starve(l, starved);
    listener_unlock(l);
    return starved;
}

void listener_stats(struct listener *l, struct listener_stats *ret_stats)
{
    listener_lock(l);
    *ret_stats = l->stats;
    ret_stats->connections = l->connected;
    listener_unlock(l);
}
