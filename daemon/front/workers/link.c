#include "daemon/front/workers/link.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/duplex.h"
#include "common/steps.h"
#include "daemon/loop/bell.h"

#define BATCH          64   /* packets of one link before other links get their turn */
#define LAST_FRAMES    4096 /* frames read from the socket of a failed link, at most */
#define RING_FRAMES    (DUPLEX_RING_BYTES / (PACKET_FRAME_HEAD + 1u)) /* more than a ring holds */
#define BELLS_IDLE_MAX 4096u /* successive rings of the bell without a frame */

/* described in link.h */
enum link_state { LINK_OPEN, LINK_FAILED, LINK_REPORTED, LINK_CLOSED, LINK_STATES };

struct link {
    struct duplex duplex; /* its socket is owned */
    struct link_callbacks callbacks;
    void *data;
    uv_poll_t poll;
    uv_timer_t last; /* reads the last frames of a failed link, then reports it */
    uv_prepare_t before_sleep;
    struct bell *bell; /* owned; NULL: no rings */
    unsigned handles_open;
    int events; /* what the poll watches for */
    enum link_state state;
    unsigned bells_idle; /* successive rings without a frame */
    uint64_t nonce;      /* of the offer of rings; 0: none was made */
    struct err error;    /* why it failed */
    struct capbuf out;   /* the frame being encoded */
};

static const unsigned state_steps[LINK_STATES] = {
    [LINK_OPEN] = STEP_TO(LINK_FAILED) | STEP_TO(LINK_REPORTED) | STEP_TO(LINK_CLOSED),
    [LINK_FAILED] = STEP_TO(LINK_REPORTED) | STEP_TO(LINK_CLOSED),
    [LINK_REPORTED] = STEP_TO(LINK_CLOSED),
};

static void become(struct link *l, enum link_state next)
{
    step_check(state_steps, l->state, next);
    l->state = next;
}

/* Are frames of the other side still delivered? */
static bool hears(const struct link *l)
{
    return l->state == LINK_OPEN || l->state == LINK_FAILED;
}

static void handle_closed(uv_handle_t *handle)
{
    struct link *l = handle->data;
    if (--l->handles_open == 0) {
        duplex_finish(&l->duplex);
        capbuf_finish(&l->out);
        free(l);
    }
}

/* The callback comes last: it may destroy the link. */
static void report(struct link *l)
{
    (void)uv_poll_stop(&l->poll);
    (void)uv_timer_stop(&l->last);
    become(l, LINK_REPORTED);
    struct err e = l->error;
    if (e.code == 0) {
        (void)err_set(&e, ERR_CLOSED, "the peer closed the channel");
    }
    l->callbacks.broken(l->data, &e);
}

/* ---- in ------------------------------------------------------------------------------------ */

/* Hands one frame to its receiver; false: there are no more now. */
static bool take_frame(struct link *l)
{
    struct bytes frame;
    struct frame_fds fds = {.count = 0};
    struct err e;
    err_init(&e);
    int rc = duplex_next(&l->duplex, &frame, &fds, &e);
    if (rc == 1) {
        unsigned kind = proto_kind(frame);
        if (kind == MSG_KIND_NONE) {
            rc = err_set(&e, ERR_PROTOCOL, "a frame of %zu bytes has no kind", frame.size);
        } else {
            l->callbacks.frame(l->data, kind, frame, &fds);
        }
    }
    frame_fds_close(&fds);
    bool end = rc == 0 && l->state != LINK_OPEN && !l->duplex.in_ring;
    if (rc < 0 || rc == DUPLEX_END || end) {
        if (rc < 0 && l->error.code == 0) {
            l->error = e;
        }
        report(l);
    }
    return rc == 1 && hears(l);
}

/* At most `max` frames; false: there are no more. */
static bool take_frames(struct link *l, unsigned max)
{
    bool more = true;
    for (unsigned i = 0; more && i < max; i++) {
        more = take_frame(l);
    }
    return more;
}

/* The last frames of the other side: those in the ring, then those in the socket. Their number is
 * limited, because the other side may continue to fill the ring. */
static void take_last_frames(struct link *l)
{
    do { /* a second time if the last frame of the socket accepts the rings */
        if (l->duplex.in_ring) {
            (void)take_frames(l, RING_FRAMES);
            duplex_by_socket(&l->duplex);
        }
        if (hears(l)) {
            (void)take_frames(l, LAST_FRAMES);
        }
    } while (l->duplex.in_ring && hears(l));
}

/* A packet from a socket is taken whole, because no event would call for its rest. */
static bool has_room(const struct link *l, bool first)
{
    return l->callbacks.more == NULL || l->callbacks.more(l->data, first) || first ||
           !l->duplex.in_ring;
}

/* Takes a packet, or the frames of the ring up to a batch. A side that gathers sends one packet a
 * turn, so trying for a second one would cost a call for nothing. */
static bool take_turn(struct link *l)
{
    bool took = false;
    bool gathers = l->duplex.gathers;
    for (unsigned i = 0; l->state == LINK_OPEN && (l->duplex.more || i < (gathers ? 1 : BATCH));
         i++) {
        if (!has_room(l, !took) || !take_frame(l)) {
            return took;
        }
        took = true;
    }
    return took;
}

static void on_last(uv_timer_t *timer)
{
    struct link *l = timer->data;
    take_last_frames(l);
    if (hears(l)) {
        report(l);
    }
}

/* Stops sending. The last frames of the other side are delivered before the failure is reported. */
static void fail(struct link *l, const struct err *e)
{
    if (l->state != LINK_OPEN) {
        return;
    }
    become(l, LINK_FAILED);
    l->error = *e;
    (void)uv_poll_stop(&l->poll);
    (void)uv_timer_start(&l->last, on_last, 0, 0);
}

/* ---- watching ------------------------------------------------------------------------------ */

static void set_events(struct link *l);

static void resume(struct link *l)
{
    struct err e;
    err_init(&e);
    if (duplex_resume(&l->duplex, &e) != 0) {
        fail(l, &e);
    }
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct link *l = poll->data;
    if (status < 0 || (events & UV_DISCONNECT) != 0) {
        /* libuv may report the end of the other side as EBADF */
        struct err e = ERR_INIT;
        (void)err_set(&e, ERR_CLOSED, "the peer closed the channel%s%s", status < 0 ? ": " : "",
                      status < 0 ? uv_strerror(status) : "");
        fail(l, &e);
        return;
    }
    if ((events & UV_WRITABLE) != 0) {
        resume(l);
    }
    if (l->state == LINK_OPEN && !l->duplex.in_ring && (events & UV_READABLE) != 0) {
        (void)take_turn(l);
    }
    set_events(l);
}

/* With rings, descriptors leave the socket only at their markers in the ring, so the other side
 * cannot keep the loop busy with the socket. */
static void set_events(struct link *l)
{
    bool waits = l->duplex.queue != NULL && l->duplex.blocked == DUPLEX_BY_SOCKET;
    int events = (l->duplex.in_ring ? UV_DISCONNECT : UV_READABLE) | (waits ? UV_WRITABLE : 0);
    if (l->state == LINK_OPEN && events != l->events) { /* each start is a system call */
        l->events = events;
        (void)uv_poll_start(&l->poll, events, on_poll);
    }
}

static void on_bell(void *data)
{
    struct link *l = data;
    if (l->state != LINK_OPEN || !l->duplex.in_ring) {
        return;
    }
    bool waited = l->duplex.queue != NULL;
    resume(l);
    duplex_turn(&l->duplex);
    bool took = take_turn(l);
    if (l->state != LINK_OPEN) {
        return;
    }
    duplex_settle(&l->duplex);
    set_events(l);
    l->bells_idle = took || waited ? 0 : l->bells_idle + 1;
    if (l->bells_idle > BELLS_IDLE_MAX) {
        struct err e = ERR_INIT;
        (void)err_set(&e, ERR_PROTOCOL, "its doorbell rang %u times without a frame",
                      l->bells_idle);
        fail(l, &e);
    }
}

/* ---- out ----------------------------------------------------------------------------------- */

void link_flush(struct link *l)
{
    struct err e;
    if (l == NULL || l->state != LINK_OPEN) {
        return;
    }
    err_init(&e);
    if (duplex_flush(&l->duplex, &e) != 0) {
        fail(l, &e);
    } else if (l->duplex.queue != NULL) {
        set_events(l);
    }
}

int link_send(struct link *l, const struct schema *schema, const void *msg,
              const struct frame_fds *fds, struct err *e)
{
    struct err why;
    if (l->state != LINK_OPEN) {
        return err_set(e, ERR_CLOSED, "the channel to the peer is closed");
    }
    capbuf_reset(&l->out);
    int rc = proto_encode(schema, msg, &l->out, e);
    /* the buffer has its full size from the start, so the frame is too long */
    if (rc == ERR_NOMEM) {
        return err_set(e, ERR_LIMIT, "%s: a frame has at most %u bytes", schema->name,
                       FRAME_MAX_BYTES);
    }
    if (rc != 0) {
        return rc;
    }
    err_init(&why);
    rc = duplex_send(&l->duplex, capbuf_view(&l->out), fds, &why);
    if (l->duplex.queue != NULL) {
        set_events(l);
    }
    if (rc == 0) {
        return 0;
    }
    if (l->duplex.failed) {
        fail(l, &why);
    }
    return err_set(e, rc == ERR_LIMIT || !l->duplex.failed ? rc : ERR_CLOSED, "sending: %s",
                   why.text);
}

static void on_prepare(uv_prepare_t *prepare)
{
    link_flush(prepare->data);
}

void link_gather(struct link *l)
{
    l->duplex.gathers = true;
    (void)uv_prepare_start(&l->before_sleep, on_prepare);
}

void link_drain(struct link *l)
{
    if (hears(l)) {
        take_last_frames(l);
    }
}

/* ---- rings --------------------------------------------------------------------------------- */

int link_offer_rings(struct link *l, struct err *e)
{
    struct frame_fds fds;
    if (l->nonce != 0 || l->state != LINK_OPEN) {
        return 0;
    }
    int rc = duplex_make(&l->duplex, &fds, e);
    if (rc != 0) {
        return rc;
    }
    rc = bell_create(l->poll.loop, l->duplex.rings.bell, UV_WRITABLE, on_bell, l, &l->bell, e);
    struct msg_f_rings m = {.nonce = clock_now_ns()};
    rc = rc == 0 ? link_send(l, &schema_msg_f_rings, &m, &fds, e) : rc;
    if (rc != 0) {
        bell_destroy(l->bell);
        l->bell = NULL;
        duplex_refused(&l->duplex);
        return rc;
    }
    l->nonce = m.nonce;
    duplex_offered(&l->duplex);
    return 0;
}

bool link_pressed(const struct link *l)
{
    return l != NULL && l->duplex.queued_bytes > l->duplex.queue_max / 4;
}

bool link_offers(const struct link *l)
{
    return l != NULL && l->duplex.state == DUPLEX_OFFERED;
}

void link_rings_answered(struct link *l, uint64_t nonce, int code)
{
    if (l->duplex.state != DUPLEX_OFFERED || nonce != l->nonce) {
        return;
    }
    if (code == 0) {
        duplex_join(&l->duplex);
    } else {
        bell_destroy(l->bell);
        l->bell = NULL;
        duplex_refused(&l->duplex);
    }
    resume(l);
    set_events(l);
}

bool link_unread(const struct link *l)
{
    return l != NULL && hears(l) && duplex_unread(&l->duplex);
}

bool link_beat(const struct link *l, uint64_t *ret_at_ns, uint64_t *ret_patience_ns)
{
    struct duplex_beat *beat = l->duplex.state == DUPLEX_RINGS ? duplex_beat(&l->duplex) : NULL;
    if (beat == NULL) {
        return false;
    }
    /* read first, so that the beat is at least as new */
    *ret_patience_ns = atomic_load(&beat->patience_ns);
    *ret_at_ns = atomic_load(&beat->at_ns);
    return true;
}

/* ---- make and unmake ----------------------------------------------------------------------- */

int link_create(uv_loop_t *loop, int fd, size_t queue_max, const struct link_callbacks *callbacks,
                void *data, struct link **ret_link, struct err *e)
{
    struct link *l = calloc(1, sizeof *l);
    if (l == NULL) {
        (void)close(fd);
        return err_set(e, ERR_NOMEM, "no memory for a channel");
    }
    duplex_init(&l->duplex, fd, queue_max, false);
    l->callbacks = *callbacks;
    l->data = data;
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
    (void)uv_prepare_init(loop, &l->before_sleep);
    l->poll.data = l->last.data = l->before_sleep.data = l;
    l->handles_open = 3;
    set_events(l);
    *ret_link = l;
    return 0;
}

void link_destroy(struct link *l)
{
    if (l == NULL || l->state == LINK_CLOSED) {
        return;
    }
    link_flush(l);
    become(l, LINK_CLOSED);
    bell_destroy(l->bell); /* before its descriptor is closed */
    l->bell = NULL;
    uv_close((uv_handle_t *)&l->poll, handle_closed);
    uv_close((uv_handle_t *)&l->last, handle_closed);
    uv_close((uv_handle_t *)&l->before_sleep, handle_closed);
    (void)close(l->duplex.fd);
    l->duplex.fd = -1;
}
