#include "daemon/front/shm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/descriptors.h"
#include "common/log.h"
#include "daemon/front/listener_url.h"
#include "proto/codec.h"

#define CLAIM_BYTES_MAX 256u /* of a message that comes in */
#define ANSWER_BYTES    2048u
#define ACCEPT_BATCH    16
#define PAUSE_NS        (100 * NS_PER_MS) /* without descriptors for who connects */
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

struct shm_conn {
    struct shm_conn *next;
    struct shm *shm;
    uv_poll_t poll;
    int fd;
    uint32_t uid;
    uint64_t until_ns; /* by when it has to show something; NS_NEVER: it has */
};

struct shm {
    struct shm_options options;
    char path[SHM_PATH_MAX + 1];
    int fd;
    uv_poll_t listening;
    uv_timer_t timer;
    uint64_t paused_ns; /* accepts nobody until then, 0: does */
    struct shm_conn *conns;
    struct shm_ticket *tickets;
    struct shm_stats stats;
    unsigned handles; /* of the loop, not closed yet; the last one frees */
    bool closing;
};

static void set_timer(struct shm *s);
static void listen_again(struct shm *s);

/* ---- tickets ------------------------------------------------------------------------------- */

static struct shm_ticket *ticket_take(struct shm *s, struct shm_ticket **at)
{
    struct shm_ticket *t = *at;
    *at = t->next;
    s->stats.tickets--;
    return t;
}

/* In the same time wherever they differ. */
static bool same_nonce(const uint8_t *a, const uint8_t *b)
{
    volatile uint8_t differs = 0;
    for (size_t i = 0; i < PROTO_NONCE_BYTES; i++) {
        differs = (uint8_t)(differs | (a[i] ^ b[i]));
    }
    return differs == 0;
}

/* Takes it out; the caller frees it. All are compared, found or not. */
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

static unsigned tickets_of(const struct shm *s, uint32_t uid)
{
    unsigned count = 0;
    for (const struct shm_ticket *t = s->tickets; t != NULL; t = t->next) {
        count += t->is.uid == uid;
    }
    return count;
}

int shm_offer(struct shm *s, const struct ticket *ticket, uint8_t ret_nonce[PROTO_NONCE_BYTES],
              struct err *e)
{
    if (s->stats.tickets >= s->options.tickets_max ||
        tickets_of(s, ticket->uid) >= s->options.tickets_max / 4) {
        return err_set(e, ERR_BUSY, "%u pieces of shared memory were not taken yet",
                       s->stats.tickets);
    }
    struct shm_ticket *t = malloc(sizeof *t);
    if (t == NULL) {
        return err_set(e, ERR_NOMEM, "ticket");
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
        if (t->is.gone != NULL) {
            t->is.gone(t->is.data);
        }
        free(t);
    }
}

/* ---- connections --------------------------------------------------------------------------- */

static void handle_closed(struct shm *s)
{
    if (--s->handles == 0) {
        free(s);
    }
}

static void conn_closed(uv_handle_t *handle)
{
    struct shm_conn *c = handle->data;
    struct shm *s = c->shm;
    free(c);
    handle_closed(s);
}

static void conn_end(struct shm_conn *c)
{
    struct shm *s = c->shm;
    struct shm_conn **at = &s->conns;
    while (*at != c) {
        at = &(*at)->next;
    }
    *at = c->next;
    s->stats.connections--;
    (void)uv_poll_stop(&c->poll);
    uv_close((uv_handle_t *)&c->poll, conn_closed);
    (void)close(c->fd);
}

static void close_given(struct frame_fds *given)
{
    for (int i = 0; i < given->count; i++) {
        if (given->fd[i] >= 0) {
            (void)close(given->fd[i]);
        }
    }
    given->count = 0;
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

/* Whoever shows a ticket has used it up, be it in the wrong way. */
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
        return err_set(e, ERR_NOT_FOUND, "no such ticket: it was shown before, or too late");
    }
    struct ticket is = t->is;
    free(t);
    if (is.uid != c->uid) {
        rc = err_set(e, ERR_PERMISSION, "the ticket is another user's");
    } else if ((unsigned)given->count != is.give) {
        rc = err_set(e, ERR_PROTOCOL, "%d descriptors came with the ticket, not %u", given->count,
                     is.give);
    } else {
        return is.claim(is.data, given, ret_fds, e);
    }
    if (is.gone != NULL) {
        is.gone(is.data);
    }
    return rc;
}

/* Has the descriptors sent, or says why not. What cannot be sent is the client's to notice. */
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
        log_debug("an answer over %s was not sent: %s", c->shm->path,
                  rc < 0 ? e.text : "no room for it");
        conn_end(c);
    }
    capbuf_finish(&out);
}

static void take_claim(struct shm_conn *c)
{
    uint8_t frame[CLAIM_BYTES_MAX];
    size_t size = 0;
    struct frame_fds given = {.count = 0};
    struct frame_fds fds = {.count = 0};
    struct err e = ERR_INIT;
    int rc = seqpacket_recv(c->fd, frame, sizeof frame, &size, &given, &e);
    if (rc == SEQPACKET_AGAIN) {
        return;
    }
    if (rc == SEQPACKET_EOF || (rc == 0 && c->until_ns == NS_NEVER)) {
        close_given(&given); /* it has what it came for, or wants more than that */
        conn_end(c);
        return;
    }
    c->until_ns = NS_NEVER;
    rc = rc != 0 ? rc : claim(c, bytes_of(frame, size), &given, &fds, &e);
    close_given(&given);
    c->shm->stats.granted += rc == 0;
    c->shm->stats.refused += rc != 0;
    if (rc != 0) {
        log_debug("a claim by user %u was refused: %s", c->uid, e.text);
        fds.count = 0;
    }
    answer(c, rc, &fds, &e);
}

static void on_conn(uv_poll_t *poll, int status, int events)
{
    struct shm_conn *c = poll->data;
    (void)events;
    if (status < 0) {
        conn_end(c);
        return;
    }
    take_claim(c);
}

/* ---- who connects -------------------------------------------------------------------------- */

static bool crowded(const struct shm *s, uint32_t uid)
{
    unsigned count = 0;
    for (const struct shm_conn *c = s->conns; c != NULL; c = c->next) {
        count += c->uid == uid;
    }
    return s->stats.connections >= s->options.connections_max || count >= s->options.uid_max;
}

static bool conn_open(struct shm *s, int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
        return false;
    }
    if (descriptors_kept(fd) || crowded(s, peer.uid)) {
        s->stats.crowded++;
        return false;
    }
    struct shm_conn *c = calloc(1, sizeof *c);
    if (c == NULL || uv_poll_init(s->timer.loop, &c->poll, fd) != 0) {
        free(c);
        return false;
    }
    c->shm = s;
    c->fd = fd;
    c->uid = peer.uid;
    c->until_ns = ns_add(clock_now_ns(), s->options.claim_ns);
    c->poll.data = c;
    c->next = s->conns;
    s->conns = c;
    s->stats.connections++;
    s->handles++;
    (void)uv_poll_start(&c->poll, UV_READABLE, on_conn);
    set_timer(s);
    return true;
}

/* Without descriptors the listening one would stay readable, and the loop would spin. */
static void pause_listening(struct shm *s)
{
    (void)uv_poll_stop(&s->listening);
    s->paused_ns = ns_add(clock_now_ns(), PAUSE_NS);
    set_timer(s);
}

static void on_listening(uv_poll_t *poll, int status, int events)
{
    struct shm *s = poll->data;
    (void)status;
    (void)events;
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        int fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) {
            continue;
        }
        if (fd < 0) {
            if (errno != EAGAIN && errno != EWOULDBLOCK) {
                pause_listening(s);
            }
            return;
        }
        if (!conn_open(s, fd)) {
            (void)close(fd);
        }
    }
}

static void listen_again(struct shm *s)
{
    s->paused_ns = 0;
    (void)uv_poll_start(&s->listening, UV_READABLE, on_listening);
}

/* ---- time ---------------------------------------------------------------------------------- */

static uint64_t next_due(const struct shm *s)
{
    uint64_t due = s->tickets != NULL ? s->tickets->until_ns : NS_NEVER;
    for (const struct shm_conn *c = s->conns; c != NULL; c = c->next) {
        due = c->until_ns < due ? c->until_ns : due;
    }
    return s->paused_ns != 0 && s->paused_ns < due ? s->paused_ns : due;
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

/* One that is set earlier than needed finds nothing and is set again. */
static void set_timer(struct shm *s)
{
    uint64_t due = next_due(s);
    if (s->closing || due == NS_NEVER) {
        (void)uv_timer_stop(&s->timer);
        return;
    }
    uint64_t now = clock_now_ns();
    uint64_t ms = due > now ? (due - now + NS_PER_MS - 1) / NS_PER_MS : 0;
    uv_update_time(s->timer.loop); /* the timer counts from there */
    (void)uv_timer_start(&s->timer, on_timer, ms, 0);
}

/* ---- begin and end ------------------------------------------------------------------------- */

static int listen_on(const char *path, int *ret_fd, struct err *e)
{
    int fd = -1;
    int rc = listen_take_over(path, e);
    if (rc == 0) {
        rc = seqpacket_listen(path, &fd, e);
    }
    if (rc == 0 && chmod(path, SOCKET_MODE) != 0) {
        rc = err_errno(e, ERR_IO, "permissions of %s", path);
        (void)close(fd);
    }
    if (rc == 0) {
        *ret_fd = fd;
    }
    return rc;
}

int shm_create(uv_loop_t *loop, const char *path, const struct shm_options *options,
               struct shm **ret_shm, struct err *e)
{
    struct shm *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return err_set(e, ERR_NOMEM, "socket for descriptors");
    }
    s->options = *options;
    if ((size_t)snprintf(s->path, sizeof s->path, "%s", path) >= sizeof s->path) {
        free(s);
        return err_set(e, ERR_INVALID, "%s: longer than %u bytes", path, SHM_PATH_MAX);
    }
    int rc = listen_on(path, &s->fd, e);
    if (rc == 0 && uv_poll_init(loop, &s->listening, s->fd) != 0) {
        rc = err_set(e, ERR_IO, "watching %s", path);
        (void)close(s->fd);
        (void)unlink(path);
    }
    if (rc != 0) {
        free(s);
        return rc;
    }
    (void)uv_timer_init(loop, &s->timer);
    s->listening.data = s;
    s->timer.data = s;
    s->handles = 2;
    listen_again(s);
    *ret_shm = s;
    return 0;
}

static void own_closed(uv_handle_t *handle)
{
    handle_closed(handle->data);
}

void shm_destroy(struct shm *s)
{
    if (s == NULL || s->closing) {
        return;
    }
    s->closing = true;
    while (s->conns != NULL) {
        conn_end(s->conns);
    }
    while (s->tickets != NULL) {
        free(ticket_take(s, &s->tickets));
    }
    uv_close((uv_handle_t *)&s->listening, own_closed);
    uv_close((uv_handle_t *)&s->timer, own_closed);
    (void)close(s->fd);
    (void)unlink(s->path);
}

const char *shm_path(const struct shm *s)
{
    return s->path;
}

void shm_stats(const struct shm *s, struct shm_stats *ret_stats)
{
    *ret_stats = s->stats;
}
