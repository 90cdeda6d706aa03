#include "daemon/front/link.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/packet.h"

#define BATCH      64   /* frames of one link before others get their turn */
#define LAST_WORDS 4096 /* frames taken from a link that can no longer be written */

struct outgoing {
    struct outgoing *next;
    struct frame_fds fds; /* owned */
    size_t size;
    uint8_t data[];
};

struct link {
    int fd;
    struct link_callbacks callbacks;
    void *data;
    uv_poll_t poll;
    uv_timer_t last; /* runs when sending failed: what the other side said is taken first */
    unsigned handles_open;
    bool closing;
    bool broken; /* nothing more goes out */
    struct err error;
    struct outgoing *head;
    struct outgoing **tail;
    size_t queued;
    size_t queue_max;
    struct capbuf out;
    struct packet *gathered; /* owned; NULL: each frame goes at once */
    uv_prepare_t before_sleep;
    uint8_t in[FRAME_MAX_BYTES];
};

static void queue_drop(struct link *l)
{
    while (l->head != NULL) {
        struct outgoing *o = l->head;
        l->head = o->next;
        frame_fds_close(&o->fds);
        free(o);
    }
    l->tail = &l->head;
    l->queued = 0;
}

static void handle_closed(uv_handle_t *handle)
{
    struct link *l = handle->data;
    if (--l->handles_open == 0) {
        capbuf_finish(&l->out);
        free(l->gathered);
        free(l);
    }
}

/* The callback comes last: it may destroy the link. */
static void report(struct link *l)
{
    (void)uv_poll_stop(&l->poll);
    (void)uv_timer_stop(&l->last);
    l->broken = true;
    queue_drop(l);
    struct err e = l->error;
    if (e.code == 0) {
        (void)err_set(&e, ERR_CLOSED, "the other side hung up");
    }
    l->callbacks.broken(l->data, &e);
}

/* Hands on what is in a packet. */
static int take_packet(struct link *l, struct bytes packet, struct frame_fds *fds, struct err *e)
{
    struct bytes frame;
    bool first = true;
    int rc;
    while (!l->closing && (rc = packet_next(&packet, &first, &frame, e)) != 0) {
        unsigned kind = rc == 1 ? proto_kind(frame) : MSG_KIND_NONE;
        if (rc == 1 && kind == MSG_KIND_NONE) {
            rc = err_set(e, ERR_PROTOCOL, "a frame of %zu bytes has no kind", frame.size);
        }
        if (rc < 0) {
            return rc;
        }
        l->callbacks.frame(l->data, kind, frame, fds);
    }
    return 0;
}

/* Hands on one packet; false: nothing more to take now. */
static bool take_frame(struct link *l)
{
    struct frame_fds fds = {.count = 0};
    struct err e;
    err_init(&e);
    size_t size = 0;
    int rc = seqpacket_recv(l->fd, l->in, sizeof l->in, &size, &fds, &e);
    if (rc == SEQPACKET_AGAIN) {
        if (l->broken) {
            report(l);
        }
        return false;
    }
    if (rc != 0) {
        if (l->error.code == 0 && rc < 0) {
            l->error = e;
        }
        report(l);
        return false;
    }
    rc = take_packet(l, bytes_of(l->in, size), &fds, &e);
    frame_fds_close(&fds);
    if (rc != 0) {
        l->error = e;
        report(l);
        return false;
    }
    return !l->closing;
}

/* So many at most; false: nothing more. */
static bool take_frames(struct link *l, unsigned max, bool while_broken)
{
    bool more = true;
    for (unsigned i = 0; more && i < max && (while_broken || !l->broken); i++) {
        more = take_frame(l);
    }
    return more;
}

static void set_events(struct link *l);
static void last_words(uv_timer_t *timer);

/* What cannot be sent breaks the link, but first the last words of the other side are taken. */
static void sending_failed(struct link *l, const struct err *e)
{
    if (l->broken) {
        return;
    }
    l->broken = true;
    l->error = *e;
    queue_drop(l);
    (void)uv_poll_stop(&l->poll);
    (void)uv_timer_start(&l->last, last_words, 0, 0);
}

static void last_words(uv_timer_t *timer)
{
    struct link *l = timer->data;
    if (take_frames(l, LAST_WORDS, true)) {
        report(l);
    }
}

static void flush(struct link *l)
{
    while (l->head != NULL) {
        struct outgoing *o = l->head;
        struct err e = ERR_INIT;
        int rc = seqpacket_send(l->fd, o->data, o->size, &o->fds, &e);
        if (rc == SEQPACKET_AGAIN) {
            return;
        }
        if (rc < 0) {
            sending_failed(l, &e);
            return;
        }
        l->head = o->next;
        if (l->head == NULL) {
            l->tail = &l->head;
        }
        l->queued -= o->size;
        frame_fds_close(&o->fds);
        free(o);
    }
    set_events(l);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct link *l = poll->data;
    if (status < 0) {
        /* the other side is gone (libuv says so as EBADF): what it said before still counts */
        struct err e = ERR_INIT;
        (void)err_set(&e, ERR_CLOSED, "the other side is gone (%s)", uv_strerror(status));
        sending_failed(l, &e);
        return;
    }
    if ((events & UV_WRITABLE) != 0) {
        flush(l);
    }
    if (!l->broken && (events & UV_READABLE) != 0) {
        /* who gathers has said all in one packet: a look for another would find none */
        (void)take_frames(l, l->gathered != NULL ? 1 : BATCH, false);
    }
}

static void set_events(struct link *l)
{
    int events = UV_READABLE | (l->head != NULL ? UV_WRITABLE : 0);
    (void)uv_poll_start(&l->poll, events, on_poll);
}

int link_create(uv_loop_t *loop, int fd, size_t queue_max, const struct link_callbacks *callbacks,
                void *data, struct link **ret_link, struct err *e)
{
    struct link *l = calloc(1, sizeof *l);
    if (l == NULL) {
        (void)close(fd);
        return err_set(e, ERR_NOMEM, "a channel's memory");
    }
    l->fd = fd;
    l->callbacks = *callbacks;
    l->data = data;
    l->tail = &l->head;
    l->queue_max = queue_max;
    l->error = ERR_INIT;
    capbuf_init(&l->out, FRAME_MAX_BYTES);
    int rc = capbuf_extend(&l->out, FRAME_MAX_BYTES) != NULL ? 0 : UV_ENOMEM;
    if (rc == 0) {
        rc = uv_poll_init(loop, &l->poll, fd);
    }
    if (rc != 0) {
        capbuf_finish(&l->out);
        free(l);
        (void)close(fd);
        return err_set(e, rc == UV_ENOMEM ? ERR_NOMEM : ERR_IO, "watching a channel: %s",
                       uv_strerror(rc));
    }
    (void)uv_timer_init(loop, &l->last);
    l->poll.data = l;
    (void)uv_prepare_init(loop, &l->before_sleep);
    l->last.data = l;
    l->before_sleep.data = l;
    l->handles_open = 3;
    set_events(l);
    *ret_link = l;
    return 0;
}

void link_destroy(struct link *l)
{
    if (l == NULL || l->closing) {
        return;
    }
    link_flush(l);
    l->closing = true;
    l->broken = true;
    queue_drop(l);
    uv_close((uv_handle_t *)&l->poll, handle_closed);
    uv_close((uv_handle_t *)&l->last, handle_closed);
    uv_close((uv_handle_t *)&l->before_sleep, handle_closed);
    (void)close(l->fd);
    l->fd = -1;
}

static int duplicate(const struct frame_fds *fds, struct frame_fds *ret_fds, struct err *e)
{
    ret_fds->count = 0;
    for (int i = 0; fds != NULL && i < fds->count; i++) {
        int fd = fcntl(fds->fd[i], F_DUPFD_CLOEXEC, 0);
        if (fd < 0) {
            int rc = err_errno(e, ERR_IO, "duplicating a descriptor");
            frame_fds_close(ret_fds);
            return rc;
        }
        ret_fds->fd[ret_fds->count++] = fd;
    }
    return 0;
}

static int enqueue(struct link *l, struct bytes packet, const struct frame_fds *fds, struct err *e)
{
    if (packet.size > l->queue_max - l->queued) {
        struct err full = ERR_INIT;
        (void)err_set(&full, ERR_LIMIT, "over %zu bytes wait for a peer that does not read",
                      l->queue_max);
        sending_failed(l, &full);
        return err_set(e, full.code, "%s", full.text);
    }
    struct outgoing *o = malloc(sizeof *o + packet.size);
    if (o == NULL) {
        return err_set(e, ERR_NOMEM, "a queued frame");
    }
    int rc = duplicate(fds, &o->fds, e);
    if (rc != 0) {
        free(o);
        return rc;
    }
    o->next = NULL;
    o->size = packet.size;
    memcpy(o->data, packet.data, o->size);
    *l->tail = o;
    l->tail = &o->next;
    l->queued += o->size;
    set_events(l);
    return 0;
}

static int send_bytes(struct link *l, struct bytes packet, const struct frame_fds *fds,
                      struct err *e)
{
    if (l->head != NULL) {
        return enqueue(l, packet, fds, e);
    }
    struct err failed;
    err_init(&failed);
    int rc = seqpacket_send(l->fd, packet.data, packet.size, fds, &failed);
    if (rc == SEQPACKET_AGAIN) {
        return enqueue(l, packet, fds, e);
    }
    if (rc < 0) {
        sending_failed(l, &failed);
        return err_set(e, ERR_CLOSED, "sending: %s", failed.text);
    }
    return 0;
}

void link_flush(struct link *l)
{
    if (l == NULL || l->gathered == NULL || l->gathered->frames == 0) {
        return;
    }
    struct err e;
    err_init(&e);
    int rc = l->broken ? 0 : send_bytes(l, packet_view(l->gathered), NULL, &e);
    packet_reset(l->gathered);
    if (rc != 0) { /* frames were promised to be sent */
        sending_failed(l, &e);
    }
}

static int gather(struct link *l, struct err *e)
{
    if (!packet_add(l->gathered, capbuf_view(&l->out))) {
        link_flush(l);
        if (l->broken) {
            return err_set(e, ERR_CLOSED, "the channel is broken");
        }
        (void)packet_add(l->gathered, capbuf_view(&l->out));
    }
    return 0;
}

int link_send(struct link *l, const struct schema *schema, const void *msg,
              const struct frame_fds *fds, struct err *e)
{
    if (l->broken) {
        return err_set(e, ERR_CLOSED, "the channel is broken");
    }
    capbuf_reset(&l->out);
    int rc = proto_encode(schema, msg, &l->out, e);
    if (rc == ERR_NOMEM) { /* all that a frame may take was allocated at the start */
        return err_set(e, ERR_LIMIT, "%s: a frame has at most %u bytes", schema->name,
                       FRAME_MAX_BYTES);
    }
    if (rc != 0) {
        return rc;
    }
    if (l->gathered != NULL && (fds == NULL || fds->count == 0)) {
        return gather(l, e);
    }
    link_flush(l); /* nothing overtakes what was said before */
    return l->broken ? err_set(e, ERR_CLOSED, "the channel is broken")
                     : send_bytes(l, capbuf_view(&l->out), fds, e);
}

static void on_prepare(uv_prepare_t *prepare)
{
    link_flush(prepare->data);
}

int link_gather(struct link *l, struct err *e)
{
    l->gathered = malloc(sizeof *l->gathered);
    if (l->gathered == NULL) {
        return err_set(e, ERR_NOMEM, "a channel's memory");
    }
    packet_reset(l->gathered);
    (void)uv_prepare_start(&l->before_sleep, on_prepare);
    return 0;
}

int link_fd(const struct link *l)
{
    return l->fd;
}

void link_drain(struct link *l)
{
    (void)take_frames(l, LAST_WORDS, true);
}
