#include "daemon/worker/channel.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define QUEUE_LONG 256  /* frames: read no more until it is shorter */
#define FRAME_ROOM 512u /* bytes: most are shorter */

struct channel_out {
    struct channel_out *next;
    struct frame_fds fds; /* owned */
    size_t size;
    uint8_t data[];
};

static void on_poll(uv_poll_t *poll, int status, int events);

static void watch(struct channel *c)
{
    int events = (c->queued < QUEUE_LONG ? UV_READABLE : 0) | (c->queued > 0 ? UV_WRITABLE : 0);
    if (!c->closed && events != c->events) { /* each start is a system call */
        c->events = events;
        (void)uv_poll_start(&c->poll, events, on_poll);
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

/* As seqpacket_send; frees what was sent. */
static int flush(struct channel *c, struct err *e)
{
    while (c->first != NULL) {
        struct channel_out *out = c->first;
        int rc = seqpacket_send(c->fd, out->data, out->size, &out->fds, e);
        if (rc != 0) {
            return rc;
        }
        c->first = out->next;
        c->last = c->first != NULL ? c->last : NULL;
        c->queued--;
        frame_fds_close(&out->fds);
        free(out);
    }
    return 0;
}

/* What cannot be taken apart is handed on as a frame that is none: it is refused as such. */
static void take_packet(struct channel *c, struct bytes packet, struct frame_fds *fds)
{
    struct bytes frame;
    bool first = true;
    int rc = 1;
    while (!c->closed && (rc = packet_next(&packet, &first, &frame, NULL)) == 1) {
        c->more = packet.size > 0;
        c->callbacks.frame(c->data, frame, fds);
    }
    c->more = false;
    if (rc < 0) {
        c->callbacks.frame(c->data, (struct bytes){0}, fds);
    }
}

/* One packet: the front says all that it has in one, and a look for another would find none. */
static int receive(struct channel *c, struct err *e)
{
    static uint8_t packet[FRAME_MAX_BYTES];
    size_t size = 0;
    struct frame_fds fds = {.count = 0};
    int rc = seqpacket_recv(c->fd, packet, sizeof packet, &size, &fds, e);
    if (rc == SEQPACKET_EOF) {
        return err_set(e, ERR_CLOSED, "the channel was closed");
    }
    if (rc != 0) {
        return rc == SEQPACKET_AGAIN ? 0 : rc;
    }
    take_packet(c, bytes_of(packet, size), &fds);
    frame_fds_close(&fds);
    return 0;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct channel *c = poll->data;
    struct err e;
    err_init(&e);
    /* an error on the socket may stand before frames that came first: reading tells */
    int rc = status == 0 && c->queued > 0 ? flush(c, &e) : 0;
    if (rc >= 0 && (status < 0 || (events & UV_READABLE) != 0)) {
        rc = receive(c, &e);
    }
    if (rc < 0) {
        close_with(c, &e);
        return;
    }
    watch(c);
}

static void on_prepare(uv_prepare_t *prepare)
{
    channel_flush(prepare->data);
}

int channel_init(struct channel *c, uv_loop_t *loop, int fd, struct channel_callbacks callbacks,
                 void *data, struct err *e)
{
    *c = (struct channel){.fd = fd, .callbacks = callbacks, .data = data};
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

static int enqueue(struct channel *c, struct bytes frame, const struct frame_fds *fds,
                   struct err *e)
{
    struct channel_out *out = malloc(sizeof *out + frame.size);
    if (out == NULL) {
        return err_set(e, ERR_NOMEM, "frame of %zu bytes", frame.size);
    }
    *out = (struct channel_out){.size = frame.size};
    memcpy(out->data, frame.data, frame.size);
    for (int i = 0; fds != NULL && i < fds->count; i++) {
        int fd = fcntl(fds->fd[i], F_DUPFD_CLOEXEC, 0);
        if (fd < 0) {
            int rc = err_errno(e, ERR_IO, "keeping a descriptor for the channel");
            frame_fds_close(&out->fds);
            free(out);
            return rc;
        }
        out->fds.fd[out->fds.count++] = fd;
    }
    *(c->last != NULL ? &c->last->next : &c->first) = out;
    c->last = out;
    c->queued++;
    watch(c);
    return 0;
}

static int send_packet(struct channel *c, struct bytes packet, const struct frame_fds *fds,
                       struct err *e)
{
    int rc = SEQPACKET_AGAIN;
    if (c->first == NULL) {
        rc = seqpacket_send(c->fd, packet.data, packet.size, fds, e);
    }
    return rc == SEQPACKET_AGAIN ? enqueue(c, packet, fds, e) : rc;
}

static int send_gathered(struct channel *c, struct err *e)
{
    int rc = 0;
    if (c->gathered.frames > 0) {
        rc = send_packet(c, packet_view(&c->gathered), NULL, e);
        packet_reset(&c->gathered);
    }
    return rc;
}

void channel_flush(struct channel *c)
{
    struct err e;
    err_init(&e);
    if (send_gathered(c, &e) != 0) {
        close_with(c, &e);
    }
}

int channel_send_bytes(struct channel *c, struct bytes frame, const struct frame_fds *fds,
                       struct err *e)
{
    bool plain = fds == NULL || fds->count == 0;
    if (plain && packet_add(&c->gathered, frame)) {
        return 0;
    }
    int rc = send_gathered(c, e); /* nothing overtakes what was said before */
    if (rc != 0) {
        return rc;
    }
    if (plain) {
        (void)packet_add(&c->gathered, frame);
        return 0;
    }
    return send_packet(c, frame, fds, e);
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
    struct pollfd fd = {.fd = c->fd, .events = POLLOUT};
    (void)send_gathered(c, NULL);
    while (flush(c, NULL) == SEQPACKET_AGAIN && poll(&fd, 1, timeout_ms) > 0) {
    }
}

void channel_finish(struct channel *c)
{
    c->closed = true;
    (void)uv_poll_stop(&c->poll);
    uv_close((uv_handle_t *)&c->poll, NULL);
    uv_close((uv_handle_t *)&c->before_sleep, NULL);
    while (c->first != NULL) {
        struct channel_out *out = c->first;
        c->first = out->next;
        frame_fds_close(&out->fds);
        free(out);
    }
    c->last = NULL;
    c->queued = 0;
}
