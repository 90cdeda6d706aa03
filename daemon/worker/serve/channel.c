#include "daemon/worker/serve/channel.h"

#include <poll.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/doorbell.h"
#include "daemon/loop/bell.h"

#define QUEUE_LONG  256u /* packets: no frames are received from this length on */
#define QUEUE_SHORT 16u  /* packets: a process can certainly have so many descriptors in a queue */
#define FRAME_ROOM  512u /* bytes of stack for a frame, which most do not exceed */

static void on_poll(uv_poll_t *poll, int status, int events);

/* With rings the socket is watched all the time, because the next front speaks there. */
static void watch(struct channel *c)
{
    struct duplex *d = &c->duplex;
    bool readable = d->in_ring || d->queued < QUEUE_LONG;
    bool writable = d->queue != NULL && d->blocked == DUPLEX_BY_SOCKET;
    int events = (readable ? UV_READABLE : 0) | (writable ? UV_WRITABLE : 0);
    if (!c->closed && events != c->events) { /* each change is a system call */
        c->events = events;
        if (events != 0) {
            (void)uv_poll_start(&c->poll, events, on_poll);
        } else {
            (void)uv_poll_stop(&c->poll);
        }
    }
    if (c->paused && d->queued < QUEUE_LONG) {
        c->paused = false;
        duplex_again(d);
    }
}

bool channel_room(struct channel *c)
{
    c->wanted = c->duplex.queued >= QUEUE_SHORT;
    return !c->wanted;
}

/* Calls `room` if it was asked for and the queue has become short. */
static void report_room(struct channel *c)
{
    if (c->wanted && !c->closed && channel_room(c)) {
        c->callbacks.room(c->data);
    }
}

static void close_with(struct channel *c, const struct err *e)
{
    if (!c->closed) {
        c->closed = true;
        (void)uv_poll_stop(&c->poll);
        c->callbacks.closed(c->data, e);
    }
}

/* ---- in ------------------------------------------------------------------------------------ */

/* As duplex_next, but serves the frame. A malformed packet is handed on as an empty frame, which
 * is refused. */
static int take_one(struct channel *c, struct err *e)
{
    struct bytes frame = {0};
    struct frame_fds fds = {.count = 0};
    int rc = duplex_next(&c->duplex, &frame, &fds, e);
    if (rc < 0 && !c->duplex.failed) {
        frame = (struct bytes){0};
        rc = 1;
    }
    if (rc == 1) {
        c->callbacks.frame(c->data, frame, &fds);
    }
    frame_fds_close(&fds);
    return rc;
}

/* Takes one packet, or one batch from the ring: the front publishes all its frames in one batch,
 * so looking for another would find none. */
static int take(struct channel *c, struct err *e)
{
    int rc;
    do {
        rc = take_one(c, e);
    } while (rc == 1 && c->duplex.more && !c->closed);
    return rc;
}

static void leave_rings(struct channel *c)
{
    (void)c->callbacks.beat(c->data, NULL);
    bell_destroy(c->bell);
    c->bell = NULL;
    duplex_leave(&c->duplex);
}

/* Another front speaks: takes the rest of the former front's frames, then the new front's. */
static int change_front(struct channel *c, struct err *e)
{
    struct err why;
    err_init(&why);
    while (!c->closed && take_one(c, &why) == 1) {
    }
    if (c->closed) {
        return 0;
    }
    leave_rings(c); /* together with any error in them */
    return take(c, e);
}

static int receive(struct channel *c, struct err *e)
{
    int rc;
    if (!c->duplex.in_ring) {
        rc = take(c, e);
    } else {
        rc = duplex_read_socket(&c->duplex, e);
        if (rc == 1) {
            rc = change_front(c, e);
        } else if (rc == DUPLEX_END) { /* serve the frames that were sent before the end */
            while (!c->closed && take_one(c, e) == 1) {
            }
        }
    }
    return rc == DUPLEX_END ? err_set(e, ERR_CLOSED, "the channel was closed") : rc;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct channel *c = poll->data;
    struct err e;
    err_init(&e);
    if (status < 0) {
        c->events = 0; /* libuv has stopped the poll */
    }
    /* frames may precede an error on the socket: reading finds both */
    int rc = status == 0 && (events & UV_WRITABLE) != 0 ? duplex_resume(&c->duplex, &e) : 0;
    if (rc >= 0 && (status < 0 || (events & UV_READABLE) != 0)) {
        rc = receive(c, &e);
    }
    if (rc < 0) {
        close_with(c, &e);
        return;
    }
    report_room(c);
    watch(c);
}

static void on_bell(void *data)
{
    struct channel *c = data;
    struct err e;
    err_init(&e);
    if (c->closed) {
        return;
    }
    int rc = duplex_resume(&c->duplex, &e);
    c->paused = c->duplex.queued >= QUEUE_LONG;
    if (rc == 0 && !c->paused) {
        duplex_turn(&c->duplex);
        rc = take(c, &e);
        duplex_settle(&c->duplex);
    }
    if (rc < 0) {
        close_with(c, &e);
        return;
    }
    report_room(c);
    watch(c);
}

bool channel_more(const struct channel *c)
{
    return c->duplex.more;
}

/* ---- out ----------------------------------------------------------------------------------- */

void channel_flush(struct channel *c)
{
    struct err e;
    err_init(&e);
    if (duplex_flush(&c->duplex, &e) != 0) {
        close_with(c, &e);
    } else if (c->duplex.queue != NULL) {
        watch(c);
    }
}

static void on_prepare(uv_prepare_t *prepare)
{
    channel_flush(prepare->data);
}

int channel_send_bytes(struct channel *c, struct bytes frame, const struct frame_fds *fds,
                       struct err *e)
{
    int rc = duplex_send(&c->duplex, frame, fds, e);
    if (c->duplex.queue != NULL) {
        watch(c);
    }
    return rc;
}

int channel_send(struct channel *c, const struct schema *schema, const void *msg,
                 const struct frame_fds *fds, struct err *e)
{
    uint8_t room[FRAME_ROOM];
    struct capbuf out;
    capbuf_init_in(&out, FRAME_MAX_BYTES, room, sizeof room);
    int rc = proto_encode(schema, msg, &out, e);
    if (rc == 0) {
        rc = channel_send_bytes(c, capbuf_view(&out), fds, e);
    }
    capbuf_finish(&out);
    return rc;
}

void channel_drain(struct channel *c, int timeout_ms)
{
    struct duplex *d = &c->duplex;
    int ear = doorbell_listen(d->rings.bell);
    bool more = duplex_flush(d, NULL) == 0 && d->queue != NULL;
    while (more) {
        struct pollfd fd = {.fd = d->fd, .events = POLLOUT};
        more = d->blocked == DUPLEX_BY_RING ? doorbell_wait(ear, timeout_ms)
                                            : poll(&fd, 1, timeout_ms) > 0;
        more = more && duplex_resume(d, NULL) == 0 && d->queue != NULL;
        (void)duplex_flush(d, NULL);
    }
    descriptor_close(&ear);
}

/* ---- rings --------------------------------------------------------------------------------- */

static int take_rings(struct channel *c, struct frame_fds *fds, struct err *e)
{
    int rc = duplex_adopt(&c->duplex, fds, e);
    if (rc != 0) {
        return rc;
    }
    rc = bell_create(c->poll.loop, c->duplex.rings.bell, UV_WRITABLE, on_bell, c, &c->bell, e);
    if (rc != 0) {
        duplex_leave(&c->duplex);
    }
    return rc;
}

int channel_rings(struct channel *c, uint64_t nonce, struct frame_fds *fds, struct err *e)
{
    struct err why;
    err_init(&why);
    bool taken = take_rings(c, fds, &why) == 0;
    struct msg_w_rings m = {
        .nonce = nonce, .code = why.code, .text = bytes_str(taken ? "" : why.text)};
    struct frame_fds beater = {.fd = {-1}};
    if (taken) { /* before the answer, so that no beat is sent behind it */
        beater.fd[0] = c->callbacks.beat(c->data, duplex_beat(&c->duplex));
        beater.count = beater.fd[0] >= 0 ? 1 : 0;
    }
    int rc = channel_send(c, &schema_msg_w_rings, &m, &beater, e);
    if (rc != 0 && beater.count > 0) { /* perhaps no descriptor is left for a queued copy */
        rc = channel_send(c, &schema_msg_w_rings, &m, NULL, e);
    }
    rc = rc == 0 ? duplex_flush(&c->duplex, e) : rc;
    if (rc == 0 && taken) {
        duplex_join(&c->duplex);
    }
    return rc;
}

/* ---- make and unmake ----------------------------------------------------------------------- */

int channel_init(struct channel *c, uv_loop_t *loop, int fd, struct channel_callbacks callbacks,
                 void *data, struct err *e)
{
    duplex_init(&c->duplex, fd, SIZE_MAX, true);
    c->duplex.lossy = true; /* losing one frame is better than losing the resident buffers */
    c->callbacks = callbacks;
    c->data = data;
    c->bell = NULL;
    c->events = 0;
    c->closed = c->paused = c->wanted = false;
    int rc = uv_poll_init(loop, &c->poll, fd);
    if (rc != 0) {
        return err_set(e, ERR_IO, "watching the channel: %s", uv_strerror(rc));
    }
    (void)uv_prepare_init(loop, &c->before_sleep);
    c->poll.data = c;
    c->before_sleep.data = c;
    (void)uv_prepare_start(&c->before_sleep, on_prepare);
    watch(c);
    return 0;
}

void channel_finish(struct channel *c)
{
    c->closed = true;
    if (c->bell != NULL) {
        leave_rings(c);
    }
    (void)uv_poll_stop(&c->poll);
    uv_close((uv_handle_t *)&c->poll, NULL);
    uv_close((uv_handle_t *)&c->before_sleep, NULL);
    duplex_finish(&c->duplex);
}
