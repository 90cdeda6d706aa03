#include "daemon/front/clients/shm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/descriptors.h"
#include "common/log.h"
#include "daemon/front/clients/offload.h"
#include "daemon/front/settings/listener_url.h"
#include "proto/codec.h"

#define CLAIM_BYTES_MAX 256u /* longest message that is received */
#define ANSWER_BYTES    2048u
#define ACCEPT_BATCH    16
#define PAUSE_NS        (100 * NS_PER_MS) /* when no connection can be accepted */
#define SOCKET_MODE     0660

const struct shm_options shm_defaults = {.connections_max = 256,
                                         .uid_max = 16,
                                         .tickets_max = 4096,
                                         .claim_ns = 5 * NS_PER_S,
                                         .ticket_ns = 30 * NS_PER_S};

struct shm_ticket {
    struct shm_ticket *next; /* oldest first */
    struct ticket is;
    uint8_t nonce[PROTO_NONCE_BYTES];
    uint64_t until_ns;
};

/* Receiving and closing are offloaded: a client can make both last as long as it wants. A
 * connection counts until it is closed, so that the threads of one client are few. */
struct shm_conn {
    struct offload_job job; /* receives, or closes; must be the first member */
    struct shm_conn *next;
    struct shm *shm;
    uv_poll_t poll;
    int fd;
    uint32_t uid;
    uint32_t listener; /* of the socket that accepted it */
    uint64_t until_ns; /* deadline of its CLAIM; NS_NEVER: the CLAIM came, or the connection ends */
    bool working;      /* a thread works on it */
    bool ended;   /* it is closed as soon as no thread works on it and the loop does not watch it */
    bool watched; /* `poll` is a handle of the loop */
    bool crowded; /* over a limit: it is only closed */
    uint8_t frame[CLAIM_BYTES_MAX]; /* the received message; the members below belong to it */
    size_t size;
    struct frame_fds given; /* the client's descriptors; those not kept are closed with it */
    int received;           /* result of seqpacket_recv */
    struct err e;
};

/* A socket that accepts connections. */
struct shm_port {
    struct shm_port *next;
    struct shm *shm;
    uint32_t listener; /* its number */
    char path[SHM_PATH_MAX + 1];
    int fd;
    uv_poll_t listening;
};

struct shm {
    struct shm_options options;
    struct shm_port *ports; /* owned */
    uv_loop_t *loop;
    uv_timer_t timer;
    uint64_t paused_ns; /* accepts no connection until then; 0: accepts */
    struct shm_conn *conns;
    struct shm_ticket *tickets;
    struct shm_stats stats;
    struct offload *offload;
    unsigned closing_crowded; /* connections over a limit, not closed yet */
    unsigned handles; /* of the loop, not closed yet, without the handle of `offload`, which is
                         closed last */
    bool closing;
};

static void set_timer(struct shm *s);

/* ---- tickets ------------------------------------------------------------------------------- */

static struct shm_ticket *ticket_take(struct shm *s, struct shm_ticket **at)
{
    struct shm_ticket *t = *at;
    *at = t->next;
    s->stats.tickets--;
    return t;
}

/* Takes the same time wherever the nonces differ. */
static bool same_nonce(const uint8_t *a, const uint8_t *b)
{
    volatile uint8_t differs = 0;
    for (size_t i = 0; i < PROTO_NONCE_BYTES; i++) {
        differs = (uint8_t)(differs | (a[i] ^ b[i]));
    }
    return differs == 0;
}

/* Removes the ticket from the list; the caller frees it. Compares all tickets, so that the time is
 * the same for every nonce. */
static struct shm_ticket *ticket_find(struct shm *s, struct bytes nonce)
{
    struct shm_ticket **found = NULL;
    if (nonce.size != PROTO_NONCE_BYTES) {
        return NULL;
    }
    for (struct shm_ticket **at = &s->tickets; *at != NULL; at = &(*at)->next) {
        found = same_nonce((*at)->nonce, nonce.data) ? at : found;
    }
    return found != NULL ? ticket_take(s, found) : NULL;
}

/* Are they one user? All that come by a tenant's socket are. */
static bool same_user(uint32_t listener, uint32_t uid, uint32_t other_listener, uint32_t other_uid)
{
    return listener == other_listener && (listener != 0 || uid == other_uid);
}

static unsigned tickets_of(const struct shm *s, const struct ticket *is)
{
    unsigned count = 0;
    for (const struct shm_ticket *t = s->tickets; t != NULL; t = t->next) {
        count += same_user(is->listener, is->uid, t->is.listener, t->is.uid);
    }
    return count;
}

int shm_offer(struct shm *s, const struct ticket *ticket, uint8_t ret_nonce[PROTO_NONCE_BYTES],
              struct err *e)
{
    if (s->stats.tickets >= s->options.tickets_max ||
        tickets_of(s, ticket) >= s->options.tickets_max / 4) {
        return err_set(e, ERR_BUSY,
                       "%u pieces of shared memory wait for their clients to fetch them",
                       s->stats.tickets);
    }
    struct shm_ticket *t = malloc(sizeof *t);
    if (t == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a ticket");
    }
    *t = (struct shm_ticket){.is = *ticket,
                             .until_ns = ns_add(clock_now_ns(), s->options.ticket_ns)};
    if (getrandom(t->nonce, sizeof t->nonce, 0) != (ssize_t)sizeof t->nonce) {
        free(t);
        return err_errno(e, ERR_IO, "random bytes");
    }
    struct shm_ticket **at = &s->tickets;
    while (*at != NULL) {
        at = &(*at)->next;
    }
    *at = t;
    s->stats.tickets++;
    memcpy(ret_nonce, t->nonce, sizeof t->nonce);
    set_timer(s);
    return 0;
}

void shm_withdraw(struct shm *s, const void *data)
{
    for (struct shm_ticket **at = &s->tickets; *at != NULL;) {
        if ((*at)->is.data == data) {
            free(ticket_take(s, at));
        } else {
            at = &(*at)->next;
        }
    }
}

static void expire_tickets(struct shm *s, uint64_t now)
{
    while (s->tickets != NULL && s->tickets->until_ns <= now) {
        struct shm_ticket *t = ticket_take(s, &s->tickets);
        if (t->is.expired != NULL) {
            t->is.expired(t->is.data);
        }
        free(t);
    }
}

/* ---- connections --------------------------------------------------------------------------- */

static void all_closed(void *data)
{
    free(data);
}

static void handle_closed(struct shm *s)
{
    if (--s->handles == 0) {
        offload_destroy(s->offload, all_closed, s);
    }
}

static struct shm_conn *conn_of(struct offload_job *job)
{
    return (struct shm_conn *)job;
}

/* In its thread. Unread messages are closed with the connection. */
static void close_work(struct offload_job *job)
{
    struct shm_conn *c = conn_of(job);
    frame_fds_close(&c->given);
    descriptor_close(&c->fd);
}

/* In its thread. Nothing was received, and all is closed unread. The close must be quick, or a
 * client over its limit would keep others from connecting. */
static void refuse_work(struct offload_job *job)
{
    descriptor_close_at_once(&conn_of(job)->fd);
}

static void close_done(struct offload_job *job)
{
    struct shm_conn *c = conn_of(job);
    struct shm *s = c->shm;
    struct shm_conn **at = &s->conns;
    while (*at != c) {
        at = &(*at)->next;
    }
    *at = c->next;
    if (c->crowded) {
        s->closing_crowded--;
    } else {
        s->stats.connections--;
    }
    free(c);
}

/* In its thread. The struct shm may be freed already. */
static void conn_orphaned(struct offload_job *job)
{
    close_work(job);
    free(conn_of(job));
}

static void conn_work(struct shm_conn *c, void (*work)(struct offload_job *job),
                      void (*done)(struct offload_job *job))
{
    c->working = true;
    c->job = (struct offload_job){.work = work, .done = done, .orphaned = conn_orphaned};
    offload_run(c->shm->offload, &c->job);
}

static void conn_close_if_free(struct shm_conn *c)
{
    if (c->ended && !c->watched && !c->working) {
        conn_work(c, c->crowded ? refuse_work : close_work, close_done);
    }
}

static void conn_unwatched(uv_handle_t *handle)
{
    struct shm_conn *c = handle->data;
    struct shm *s = c->shm;
    c->watched = false;
    conn_close_if_free(c);
    handle_closed(s); /* the last handle orphans the connections that threads still work on */
}

static void conn_end(struct shm_conn *c)
{
    if (!c->ended) {
        c->ended = true;
        c->until_ns = NS_NEVER;
        (void)uv_poll_stop(&c->poll);
        uv_close((uv_handle_t *)&c->poll, conn_unwatched);
    }
}

static int decode_claim(struct bytes frame, struct bytes *ret_nonce, struct err *e)
{
    struct msg_claim m;
    int rc = proto_decode(&schema_msg_claim, frame, &m, e);
    if (rc == 0) {
        *ret_nonce = m.nonce;
    }
    return rc;
}

/* A CLAIM uses up its ticket, even if it is refused. */
static int claim(struct shm_conn *c, struct bytes frame, struct frame_fds *given,
                 struct frame_fds *ret_fds, struct err *e)
{
    struct bytes nonce = {0};
    int rc = decode_claim(frame, &nonce, e);
    if (rc != 0) {
        return rc;
    }
    struct shm_ticket *t = ticket_find(c->shm, nonce);
    if (t == NULL) {
        return err_set(e, ERR_NOT_FOUND, "no such ticket: it was used before, or has expired");
    }
    struct ticket is = t->is;
    free(t);
    if (is.uid != c->uid || is.listener != c->listener) {
        rc = err_set(e, ERR_PERMISSION, "the ticket is another user's");
    } else if ((unsigned)given->count != is.give) {
        rc = err_set(e, ERR_PROTOCOL, "%d descriptors came with the ticket, not %u", given->count,
                     is.give);
    } else {
        return is.claim(is.data, given, ret_fds, e);
    }
    if (is.expired != NULL) {
        is.expired(is.data);
    }
    return rc;
}

/* Sends the descriptors, or the error. If that fails the connection ends. */
static void answer(struct shm_conn *c, int rc, const struct frame_fds *fds, const struct err *why)
{
    struct capbuf out;
    struct err e = ERR_INIT;
    struct msg_error failed;
    struct msg_granted granted = {.fds = (uint64_t)fds->count};
    capbuf_init(&out, ANSWER_BYTES);
    if (rc == 0) {
        rc = proto_encode(&schema_msg_granted, &granted, &out, &e);
    } else {
        proto_error_from(why, &failed);
        rc = proto_encode(&schema_msg_error, &failed, &out, &e);
    }
    if (rc == 0) {
        rc = seqpacket_send(c->fd, out.data, out.size, fds, &e);
    }
    if (rc != 0) {
        log_debug("an answer with descriptors was not sent: %s",
                  rc < 0 ? e.text : "no room for it");
        conn_end(c);
    }
    capbuf_finish(&out);
}

/* The first message of a connection. */
static void take_claim(struct shm_conn *c)
{
    struct frame_fds fds = {.count = 0};
    struct err e = c->e;
    c->until_ns = NS_NEVER;
    int rc = c->received;
    rc = rc != 0 ? rc : claim(c, bytes_of(c->frame, c->size), &c->given, &fds, &e);
    c->shm->stats.granted += rc == 0;
    c->shm->stats.refused += rc != 0;
    if (rc != 0) {
        log_debug("a claim by user %u was refused: %s", c->uid, e.text);
        fds.count = 0;
    }
    answer(c, rc, &fds, &e);
}

static void on_conn(uv_poll_t *poll, int status, int events);

static void receive_work(struct offload_job *job)
{
    struct shm_conn *c = conn_of(job);
    c->e = ERR_INIT;
    c->received = seqpacket_recv(c->fd, c->frame, sizeof c->frame, &c->size, &c->given, &c->e);
}

static bool given_left(const struct frame_fds *given)
{
    bool left = false;
    for (int i = 0; i < given->count; i++) {
        left = left || given->fd[i] >= 0;
    }
    return left;
}

static void receive_done(struct offload_job *job)
{
    struct shm_conn *c = conn_of(job);
    c->working = false;
    if (c->ended) {
        conn_close_if_free(c);
        return;
    }
    if (c->received == SEQPACKET_EOF) {
        conn_end(c);
        return;
    }
    if (c->received != SEQPACKET_AGAIN) {
        take_claim(c);
        /* one of them could be the client's end of this socket, which would then never close */
        if (given_left(&c->given)) {
            conn_end(c);
        }
    }
    if (!c->ended) {
        (void)uv_poll_start(&c->poll, UV_READABLE, on_conn);
    }
}

static void on_conn(uv_poll_t *poll, int status, int events)
{
    struct shm_conn *c = poll->data;
    (void)events;
    if (status < 0 || c->until_ns == NS_NEVER) {
        conn_end(c); /* the client has its answer, and then closed the connection or sent more */
        return;
    }
    (void)uv_poll_stop(poll);
    conn_work(c, receive_work, receive_done);
}

/* ---- accepting ----------------------------------------------------------------------------- */

static bool crowded(const struct shm *s, uint32_t listener, uint32_t uid)
{
    unsigned count = 0;
    for (const struct shm_conn *c = s->conns; c != NULL; c = c->next) {
        count += same_user(c->listener, c->uid, listener, uid) && !c->crowded;
    }
    return s->stats.connections >= s->options.connections_max || count >= s->options.uid_max;
}

/* Unread messages are closed with it. */
static void conn_refuse(struct shm *s, struct shm_conn *c)
{
    c->crowded = c->ended = true;
    c->until_ns = NS_NEVER;
    s->closing_crowded++;
    s->stats.crowded++;
    conn_close_if_free(c);
}

static void conn_watch(struct shm *s, struct shm_conn *c)
{
    c->watched = true;
    c->until_ns = ns_add(clock_now_ns(), s->options.claim_ns);
    c->poll.data = c;
    s->stats.connections++;
    s->handles++;
    (void)uv_poll_start(&c->poll, UV_READABLE, on_conn);
    set_timer(s);
}

static bool conn_open(struct shm_port *p, int fd)
{
    struct shm *s = p->shm;
    struct ucred peer;
    socklen_t size = sizeof peer;
    struct shm_conn *c = calloc(1, sizeof *c);
    if (c == NULL || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
        free(c);
        return false;
    }
    c->shm = s;
    c->fd = fd;
    c->uid = peer.uid;
    c->listener = p->listener;
    bool refused = descriptors_kept(fd) || crowded(s, p->listener, peer.uid) ||
                   uv_poll_init(s->loop, &c->poll, fd) != 0;
    c->next = s->conns;
    s->conns = c;
    if (refused) {
        conn_refuse(s, c);
    } else {
        conn_watch(s, c);
    }
    return true;
}

/* No connection can be accepted, for lack of descriptors or because too many are being closed. The
 * listening sockets remain readable, so the loop would spin. */
static void pause_listening(struct shm *s)
{
    for (struct shm_port *p = s->ports; p != NULL; p = p->next) {
        (void)uv_poll_stop(&p->listening);
    }
    s->paused_ns = ns_add(clock_now_ns(), PAUSE_NS);
    set_timer(s);
}

static void on_listening(uv_poll_t *poll, int status, int events)
{
    struct shm_port *p = poll->data;
    struct shm *s = p->shm;
    (void)status;
    (void)events;
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        if (s->closing_crowded >= s->options.connections_max) {
            pause_listening(s);
            return;
        }
        int fd = accept4(p->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) {
            continue;
        }
        if (fd < 0) {
            if (errno != EAGAIN && errno != EWOULDBLOCK) {
                pause_listening(s);
            }
            return;
        }
        if (!conn_open(p, fd)) {
            (void)close(fd);
        }
    }
}

static void listen_again(struct shm *s)
{
    s->paused_ns = 0;
    for (struct shm_port *p = s->ports; p != NULL; p = p->next) {
        (void)uv_poll_start(&p->listening, UV_READABLE, on_listening);
    }
}

/* ---- time ---------------------------------------------------------------------------------- */

static uint64_t next_wake_ns(const struct shm *s)
{
    uint64_t wake_ns = s->tickets != NULL ? s->tickets->until_ns : NS_NEVER;
    for (const struct shm_conn *c = s->conns; c != NULL; c = c->next) {
        wake_ns = c->until_ns < wake_ns ? c->until_ns : wake_ns;
    }
    return s->paused_ns != 0 && s->paused_ns < wake_ns ? s->paused_ns : wake_ns;
}

static void on_timer(uv_timer_t *timer)
{
    struct shm *s = timer->data;
    uint64_t now = clock_now_ns();
    struct shm_conn *next;
    for (struct shm_conn *c = s->conns; c != NULL; c = next) {
        next = c->next;
        if (c->until_ns <= now) {
            s->stats.silent++;
            conn_end(c);
        }
    }
    expire_tickets(s, now);
    if (s->paused_ns != 0 && s->paused_ns <= now) {
        listen_again(s);
    }
    set_timer(s);
}

/* A timer that fires too early finds nothing and is set again. */
static void set_timer(struct shm *s)
{
    uint64_t wake_ns = next_wake_ns(s);
    if (s->closing || wake_ns == NS_NEVER) {
        (void)uv_timer_stop(&s->timer);
        return;
    }
    uint64_t now = clock_now_ns();
    uint64_t ms = wake_ns > now ? (wake_ns - now + NS_PER_MS - 1) / NS_PER_MS : 0;
    uv_update_time(s->loop); /* the timer counts from the loop's time */
    (void)uv_timer_start(&s->timer, on_timer, ms, 0);
}

/* ---- ports --------------------------------------------------------------------------------- */

static struct shm_port **port_of(struct shm *s, uint32_t listener)
{
    struct shm_port **at = &s->ports;
    while (*at != NULL && (*at)->listener != listener) {
        at = &(*at)->next;
    }
    return at;
}

static void port_closed(uv_handle_t *handle)
{
    struct shm_port *p = handle->data;
    struct shm *s = p->shm;
    free(p);
    handle_closed(s);
}

struct closing {
    struct offload_job job; /* must be the first member */
    int fd;
};

static void closing_work(struct offload_job *job)
{
    (void)close(((struct closing *)job)->fd);
}

static void closing_free(struct offload_job *job)
{
    free(job);
}

/* Closes the socket in a thread, because connections that were not accepted may also have sent
 * descriptors. */
static void stop_listening(struct shm_port *p)
{
    struct closing *c = malloc(sizeof *c);
    if (c == NULL) {
        (void)close(p->fd);
        return;
    }
    *c = (struct closing){.fd = p->fd};
    c->job =
        (struct offload_job){.work = closing_work, .done = closing_free, .orphaned = closing_free};
    offload_run(p->shm->offload, &c->job);
}

static void port_close(struct shm_port **at)
{
    struct shm_port *p = *at;
    *at = p->next;
    (void)unlink(p->path);
    uv_close((uv_handle_t *)&p->listening, port_closed); /* the loop lets go of the socket now */
    stop_listening(p);
}

/* The socket has no permissions for others before it has its group. */
static int listen_on(const char *path, uint32_t mode, uint32_t gid, int *ret_fd, struct err *e)
{
    int fd = -1;
    int rc = listen_take_over(path, e);
    rc = rc == 0 ? seqpacket_listen(path, &fd, e) : rc;
    if (rc != 0) {
        return rc;
    }
    rc = listen_permit(path, mode, gid, e);
    if (rc != 0) {
        (void)close(fd);
        (void)unlink(path);
        return rc;
    }
    *ret_fd = fd;
    return 0;
}

int shm_listen(struct shm *s, uint32_t listener, const char *path, uint32_t mode, uint32_t gid,
               struct err *e)
{
    struct shm_port *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for socket for descriptors");
    }
    int rc = 0;
    if ((size_t)snprintf(p->path, sizeof p->path, "%s", path) >= sizeof p->path) {
        rc = err_set(e, ERR_INVALID, "%s: longer than %u bytes", path, SHM_PATH_MAX);
    }
    rc = rc == 0 ? listen_on(path, mode, gid, &p->fd, e) : rc;
    if (rc == 0 && uv_poll_init(s->loop, &p->listening, p->fd) != 0) {
        rc = err_set(e, ERR_IO, "watching %s", path);
        (void)close(p->fd);
        (void)unlink(path);
    }
    if (rc != 0) {
        free(p);
        return rc;
    }
    p->shm = s;
    p->listener = listener;
    p->listening.data = p;
    p->next = s->ports;
    s->ports = p;
    s->handles++;
    if (s->paused_ns == 0) {
        (void)uv_poll_start(&p->listening, UV_READABLE, on_listening);
    }
    return 0;
}

void shm_unlisten(struct shm *s, uint32_t listener)
{
    struct shm_port **at = port_of(s, listener);
    if (*at != NULL) {
        port_close(at);
    }
}

const char *shm_path(const struct shm *s, uint32_t listener)
{
    const struct shm_port *p = s->ports;
    while (p != NULL && p->listener != listener) {
        p = p->next;
    }
    return p != NULL ? p->path : "";
}

/* ---- begin and end ------------------------------------------------------------------------- */

static void own_closed(uv_handle_t *handle)
{
    handle_closed(handle->data);
}

int shm_create(uv_loop_t *loop, const char *path, const struct shm_options *options,
               struct shm **ret_shm, struct err *e)
{
    struct shm *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for socket for descriptors");
    }
    s->options = *options;
    s->loop = loop;
    int rc = offload_create(loop, &s->offload, e);
    if (rc != 0) {
        free(s);
        return rc;
    }
    rc = shm_listen(s, 0, path, SOCKET_MODE, UINT32_MAX, e);
    if (rc != 0) {
        offload_destroy(s->offload, all_closed, s);
        return rc;
    }
    (void)uv_timer_init(loop, &s->timer);
    s->timer.data = s;
    s->handles++;
    *ret_shm = s;
    return 0;
}

void shm_destroy(struct shm *s)
{
    if (s == NULL || s->closing) {
        return;
    }
    s->closing = true;
    for (struct shm_conn *c = s->conns; c != NULL; c = c->next) {
        conn_end(c);
    }
    while (s->tickets != NULL) {
        free(ticket_take(s, &s->tickets));
    }
    uv_close((uv_handle_t *)&s->timer, own_closed);
    while (s->ports != NULL) {
        port_close(&s->ports);
    }
}

void shm_stats(const struct shm *s, struct shm_stats *ret_stats)
{
    *ret_stats = s->stats;
    for (const struct shm_conn *c = s->conns; c != NULL; c = c->next) {
        ret_stats->working += c->working || c->ended ? 1 : 0;
    }
}
