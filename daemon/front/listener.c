#include "daemon/front/listener.h"
#include "daemon/front/nng_guard.h"

#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "daemon/front/listener_int.h"
#include "proto/limits.h"

#define REQUEST_ID_BYTES 4u   /* what REQ puts before a message */
#define END_MS           500u /* connections have to end when the socket closes */

/* Requests first: a connection's end is always behind its requests. */
static void deliver(struct listener *l, struct request *first, struct connection *gone)
{
    while (first != NULL) {
        struct request *r = first;
        first = r->next;
        r->next = NULL;
        if (l->closing) {
            request_destroy(r);
        } else {
            l->callbacks.request(l->data, r);
        }
    }
    while (gone != NULL) {
        struct connection *c = gone;
        DL_DELETE(gone, c);
        if (c->said_hello && !l->closing) {
            l->callbacks.closed(l->data, c->peer.pipe);
        }
        free(c);
    }
}

static struct listener_slot *slot_at(const struct listener *l, unsigned index)
{
    return &l->block[index / SLOT_BLOCK][index % SLOT_BLOCK];
}

/* Makes the slots of one more block, at most as many as the options say. */
static int add_block(struct listener *l, struct err *e)
{
    unsigned left = l->options.contexts - l->slots_made;
    unsigned end = l->slots_made + (left < SLOT_BLOCK ? left : SLOT_BLOCK);
    struct listener_slot **block = &l->block[l->slots_made / SLOT_BLOCK];
    if (*block == NULL) { /* else the last try had no memory for all of them */
        *block = calloc(SLOT_BLOCK, sizeof **block);
    }
    if (*block == NULL) {
        return err_set(e, ERR_NOMEM, "%u contexts", SLOT_BLOCK);
    }
    while (l->slots_made < end) {
        struct listener_slot *slot = slot_at(l, l->slots_made);
        int rc = slot_init(slot, l, e);
        if (rc != 0) {
            return rc;
        }
        l->slots_made++;
        slot_receive(slot);
    }
    return 0;
}

/* Keeps as many slots free as a burst of requests needs. Without memory it goes on with those that
 * are there; what comes meanwhile waits in its connection. */
static void grow(struct listener *l, unsigned busy)
{
    if (busy + SLOT_BLOCK / 2 > l->slots_made && l->slots_made < l->options.contexts) {
        (void)add_block(l, NULL);
    }
}

static void drain(struct listener *l)
{
    struct connection *c;
    pthread_mutex_lock(&l->lock);
    struct request *first = l->first;
    struct connection *gone = l->closed_list;
    l->first = NULL;
    l->last = &l->first;
    l->closed_list = NULL;
    l->waked = false;
    unsigned busy = l->busy;
    DL_FOREACH(gone, c)
    {
        HASH_DELETE(hh, l->connections, c);
        c->user->connections--;
        user_release(l, c->user);
    }
    pthread_mutex_unlock(&l->lock);
    if (!l->closing) {
        grow(l, busy);
    }
    deliver(l, first, gone);
}

static void on_wake(uv_async_t *wake)
{
    struct listener *l = wake->data;
    drain(l);
    if (!l->closing) {
        handshake_arm(l);
    }
}

static int open_socket(struct listener *l, struct err *e)
{
    int rc = nng_rep0_open(&l->socket);
    if (rc != 0) {
        return err_set(e, ERR_NOMEM, "a socket: %s", nng_strerror(rc));
    }
    /* Requests come straight from their clients: nobody forwards any. */
    rc = nng_socket_set_int(l->socket, NNG_OPT_MAXTTL, 1);
    if (rc == 0) {
        rc = nng_pipe_notify(l->socket, NNG_PIPE_EV_ADD_PRE, connection_event, l);
    }
    if (rc == 0) {
        rc = nng_pipe_notify(l->socket, NNG_PIPE_EV_REM_POST, connection_event, l);
    }
    return rc == 0 ? 0 : err_set(e, ERR_INTERNAL, "a socket's options: %s", nng_strerror(rc));
}

/* Connections go first, since a socket with one that is just being read might never close. */
static void end_connections(struct listener *l)
{
    const struct timespec pause = {.tv_nsec = (long)NS_PER_MS};
    for (unsigned i = 0; i < END_MS && !connections_end(l); i++) {
        (void)nanosleep(&pause, NULL);
    }
}

/* Blocks until no thread of NNG's is in our code any more. */
static void close_socket(struct listener *l)
{
    end_connections(l);
    (void)nng_close(l->socket);
    for (unsigned i = 0; i < l->slots_made; i++) {
        nng_aio_stop(slot_at(l, i)->aio);
        nng_aio_free(slot_at(l, i)->aio);
    }
    l->slots_made = 0;
}

static int start(struct listener *l, struct err *e)
{
    int rc = open_socket(l, e);
    if (rc == 0) {
        rc = add_block(l, e);
    }
    if (rc != 0) {
        return rc;
    }
    rc = uv_async_init(l->loop, &l->wake, on_wake);
    if (rc != 0) {
        return err_set(e, ERR_IO, "a wake-up: %s", uv_strerror(rc));
    }
    (void)uv_timer_init(l->loop, &l->handshake);
    l->wake.data = l;
    l->handshake.data = l;
    l->handles_open = 2;
    return 0;
}

int listener_create(uv_loop_t *loop, const struct listener_options *options,
                    const struct listener_callbacks *callbacks, void *data,
                    struct listener **ret_listener, struct err *e)
{
    nng_guard();
    if (options->contexts == 0 || options->contexts > SLOT_BLOCK * SLOT_BLOCKS ||
        options->connections_max == 0) {
        return err_set(e, ERR_INVALID, "a listener with %u contexts and %u connections",
                       options->contexts, options->connections_max);
    }
    struct listener *l = calloc(1, sizeof *l);
    if (l == NULL) {
        return err_set(e, ERR_NOMEM, "a listener's memory");
    }
    l->loop = loop;
    l->options = *options;
    if (l->options.pipe_requests_max == 0) {
        l->options.pipe_requests_max = (options->contexts + 1) / 2;
    }
    if (l->options.user_requests_max == 0) {
        l->options.user_requests_max = options->contexts - options->contexts / 4;
    }
    l->keepers.group = UINT32_MAX; /* none */
    l->callbacks = *callbacks;
    l->data = data;
    l->last = &l->first;
    (void)pthread_mutex_init(&l->lock, NULL);
    int rc = start(l, e);
    if (rc != 0) {
        close_socket(l);
        listener_destroy(l);
        return rc;
    }
    *ret_listener = l;
    return 0;
}

void listener_destroy(struct listener *l)
{
    if (l == NULL) {
        return;
    }
    connections_free(l);
    (void)pthread_mutex_destroy(&l->lock);
    for (unsigned i = 0; i < SLOT_BLOCKS; i++) {
        free(l->block[i]);
    }
    free(l);
}

static int nng_error(int rc, const char *url, struct err *e)
{
    int code = rc == NNG_EADDRINUSE ? ERR_EXISTS
               : rc == NNG_EPERM    ? ERR_PERMISSION
               : rc == NNG_ENOMEM   ? ERR_NOMEM
                                    : ERR_IO;
    return err_set(e, code, "listening on %s: %s", url, nng_strerror(rc));
}

int listener_add(struct listener *l, const char *url, struct err *e)
{
    char checked[LISTEN_URL_MAX];
    bool ipc = false;
    int rc = listen_url(url, checked, &ipc, e);
    if (rc == 0 && ipc) {
        rc = listen_take_over(checked + strlen("ipc://"), e);
    }
    if (rc != 0) {
        return rc;
    }
    nng_listener nng;
    rc = nng_listener_create(&nng, l->socket, checked);
    if (rc != 0) {
        return nng_error(rc, url, e);
    }
    rc = nng_listener_set_size(nng, NNG_OPT_RECVMAXSZ, PROTO_MESSAGE_MAX + REQUEST_ID_BYTES);
    if (rc == 0 && ipc) {
        rc = nng_listener_set_int(nng, NNG_OPT_IPC_PERMISSIONS, (int)l->options.ipc_mode);
    }
    if (rc == 0) {
        rc = nng_listener_start(nng, 0);
    }
    if (rc != 0) {
        (void)nng_listener_close(nng);
        return nng_error(rc, url, e);
    }
    return 0;
}

static void handle_closed(uv_handle_t *handle)
{
    struct listener *l = handle->data;
    if (--l->handles_open == 0) {
        l->closed(l->closed_data);
    }
}

static void close_work(uv_work_t *work)
{
    close_socket(work->data);
}

static void close_handles(uv_work_t *work, int status)
{
    (void)status; /* it is never cancelled */
    struct listener *l = work->data;
    drain(l);
    uv_close((uv_handle_t *)&l->wake, handle_closed);
    uv_close((uv_handle_t *)&l->handshake, handle_closed);
}

void listener_close(struct listener *l, void (*done)(void *data), void *data)
{
    l->closing = true;
    l->closed = done;
    l->closed_data = data;
    (void)uv_timer_stop(&l->handshake);
    l->closing_work.data = l;
    /* NNG waits for its own threads there; fails only without a function. */
    (void)uv_queue_work(l->loop, &l->closing_work, close_work, close_handles);
}

void listener_reply(struct listener *l, struct listener_slot *slot, struct bytes message)
{
    if (!l->closing) {
        slot_send(slot, message);
    }
}

void listener_drop(struct listener *l, struct listener_slot *slot)
{
    if (!l->closing) {
        slot_release(slot);
    }
}

void listener_close_pipe(struct listener *l, uint32_t pipe)
{
    if (!l->closing) {
        connection_close(l, pipe);
    }
}

void listener_set_keepers(struct listener *l, const struct members *keepers)
{
    pthread_mutex_lock(&l->lock);
    l->keepers = *keepers;
    pthread_mutex_unlock(&l->lock);
}

void listener_set_contexts(struct listener *l, unsigned contexts, unsigned pipe_requests_max)
{
    pthread_mutex_lock(&l->lock);
    l->options.contexts = contexts > l->slots_made ? contexts : l->slots_made;
    l->options.pipe_requests_max = pipe_requests_max;
    l->options.user_requests_max = contexts - contexts / 4;
    pthread_mutex_unlock(&l->lock);
}

void listener_stats(struct listener *l, struct listener_stats *ret_stats)
{
    pthread_mutex_lock(&l->lock);
    *ret_stats = l->stats;
    ret_stats->connections = l->connected;
    pthread_mutex_unlock(&l->lock);
}
