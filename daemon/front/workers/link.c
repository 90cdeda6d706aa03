#include "daemon/front/workers/link.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/duplex.h"
#include "daemon/loop/bell.h"

#define BATCH          64   /* packets of one link before others get their turn */
#define LAST_WORDS     4096 /* frames taken from the socket of a link that is not written any more */
#define RING_WORDS     (DUPLEX_RING_BYTES / (PACKET_FRAME_HEAD + 1u)) /* a ring has fewer frames */
#define BELLS_IDLE_MAX 4096u /* rings for nothing, one after the other */

struct link {
    struct duplex duplex; /* its socket is owned */
    struct link_callbacks callbacks;
    void *data;
    uv_poll_t poll;
    uv_timer_t last; /* runs when sending failed: what the other side said is taken first */
    uv_prepare_t before_sleep;
    struct bell *bell; /* owned; NULL: no rings */
    unsigned handles_open;
    int events; /* what the poll watches for */
    bool closing;
    bool broken; /* nothing more goes out */
    bool told;
    unsigned bells_idle;
    uint64_t nonce; /* of the offer of rings; 0: none was made */
    struct err error;
    struct capbuf out;
};

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
    l->broken = true;
    l->told = true;
    struct err e = l->error;
    if (e.code == 0) {
        (void)err_set(&e, ERR_CLOSED, "the other side hung up");
    }
    l->callbacks.broken(l->data, &e);
}

/* ---- in ------------------------------------------------------------------------------------ */

/* Hands on one frame; false: nothing more to take now. */
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
    bool end = rc == 0 && l->broken && !l->duplex.in_ring;
    if (rc < 0 || rc == DUPLEX_END || end) {
        if (rc < 0 && l->error.code == 0) {
            l->error = e;
        }
        report(l);
    }
    return rc == 1 && !l->closing && !l->told;
}

/* So many at most; false: nothing more. */
static bool take_frames(struct link *l, unsigned max)
{
    bool more = true;
    for (unsigned i = 0; more && i < max; i++) {
        more = take_frame(l);
    }
    return more;
}

/* What the other side said before its end: all that is in the ring, then what is in the socket. Who
 * goes on filling the ring meanwhile is not heard for ever. */
static void take_last_words(struct link *l)
{
    do { /* a second time, if the last word in the socket is that there are rings */
        if (l->duplex.in_ring) {
            (void)take_frames(l, RING_WORDS);
            duplex_by_socket(&l->duplex);
        }
        if (!l->closing && !l->told) {
            (void)take_frames(l, LAST_WORDS);
        }
    } while (l->duplex.in_ring && !l->closing && !l->told);
}

/* Out of a socket a packet is taken whole: nobody would call for the rest. */
static bool has_room(const struct link *l, bool first)
{
    return l->callbacks.more == NULL || l->callbacks.more(l->data, first) || first ||
           !l->duplex.in_ring;
}

/* All of a packet, or of what is in the ring, up to a batch. Who gathers has said all in one
 * packet: a look for another would find none. */
static bool take_turn(struct link *l)
{
    bool took = false;
    bool gathers = l->duplex.gathers;
    for (unsigned i = 0; !l->broken && (l->duplex.more || i < (gathers ? 1 : BATCH)); i++) {
        if (!has_room(l, !took) || !take_frame(l)) {
            return took;
        }
        took = true;
    }
    return took;
}

static void last_words(uv_timer_t *timer)
{
    struct link *l = timer->data;
    take_last_words(l);
    if (!l->closing && !l->told) {
        report(l);
    }
}

/* What cannot be sent breaks the link, but first the last words of the other side are taken. */
static void sending_failed(struct link *l, const struct err *e)
{
    if (l->broken) {
        return;
    }
    l->broken = true;
    l->error = *e;
    (void)uv_poll_stop(&l->poll);
    (void)uv_timer_start(&l->last, last_words, 0, 0);
}

/* ---- watching ------------------------------------------------------------------------------ */

static void set_events(struct link *l);

static void resume(struct link *l)
{
    struct err e;
    err_init(&e);
    if (duplex_resume(&l->duplex, &e) != 0) {
        sending_failed(l, &e);
    }
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct link *l = poll->data;
    if (status < 0 || (events & UV_DISCONNECT) != 0) {
        /* the other side is gone (libuv may say so as EBADF): what it said before still counts */
        struct err e = ERR_INIT;
        (void)err_set(&e, ERR_CLOSED, "the other side is gone%s%s", status < 0 ? ": " : "",
                      status < 0 ? uv_strerror(status) : "");
        sending_failed(l, &e);
        return;
    }
    if ((events & UV_WRITABLE) != 0) {
        resume(l);
    }
    if (!l->broken && !l->duplex.in_ring && (events & UV_READABLE) != 0) {
        (void)take_turn(l);
    }
    set_events(l);
}

/* With rings descriptors are taken off the socket where their markers stand, and not before: so
 * that nobody keeps us busy there. */
static void set_events(struct link *l)
{
    bool waits = l->duplex.queue != NULL && l->duplex.blocked == DUPLEX_BY_SOCKET;
    int events = (l->duplex.in_ring ? UV_DISCONNECT : UV_READABLE) | (waits ? UV_WRITABLE : 0);
    if (!l->broken && !l->closing && events != l->events) { /* each start is a system call */
        l->events = events;
        (void)uv_poll_start(&l->poll, events, on_poll);
    }
}

static void on_bell(void *data)
{
    struct link *l = data;
    if (l->broken || !l->duplex.in_ring) {
        return;
    }
    bool waited = l->duplex.queue != NULL;
    resume(l);
    duplex_turn(&l->duplex);
    bool took = take_turn(l);
    if (l->broken || l->closing) {
        return;
    }
    duplex_settle(&l->duplex);
    set_events(l);
    l->bells_idle = took || waited ? 0 : l->bells_idle + 1;
    if (l->bells_idle > BELLS_IDLE_MAX) {
        struct err e = ERR_INIT;
        (void)err_set(&e, ERR_PROTOCOL, "its doorbell rang %u times for nothing", l->bells_idle);
        sending_failed(l, &e);
    }
}

/* ---- out ----------------------------------------------------------------------------------- */

void link_flush(struct link *l)
{
    struct err e;
    if (l == NULL || l->broken) {
        return;
    }
    err_init(&e);
    if (duplex_flush(&l->duplex, &e) != 0) {
        sending_failed(l, &e);
    } else if (l->duplex.queue != NULL) {
        set_events(l);
    }
}

int link_send(struct link *l, const struct schema *schema, const void *msg,
              const struct frame_fds *fds, struct err *e)
{
    struct err why;
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
    err_init(&why);
    rc = duplex_send(&l->duplex, capbuf_view(&l->out), fds, &why);
    if (l->duplex.queue != NULL) {
        set_events(l);
    }
    if (rc == 0) {
        return 0;
    }
    if (l->duplex.failed) {
        sending_failed(l, &why);
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
    if (!l->told) {
        take_last_words(l);
    }
}

/* ---- rings --------------------------------------------------------------------------------- */

int link_offer_rings(struct link *l, struct err *e)
{
    struct frame_fds fds;
    if (l->nonce != 0 || l->broken) {
        return 0;
    }
    int rc = duplex_make(&l->duplex, &fds, e);
    if (rc != 0) {
        return rc;
    }
    rc = bell_create(l->poll.loop, l->duplex.rings.bell, on_bell, l, &l->bell, e);
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

bool link_beat(const struct link *l, uint64_t *ret_at_ns, uint64_t *ret_patience_ns)
{
    struct duplex_beat *beat = l->duplex.state == DUPLEX_RINGS ? duplex_beat(&l->duplex) : NULL;
    if (beat == NULL) {
        return false;
    }
    *ret_patience_ns = atomic_load(&beat->patience_ns); /* first: the beat is at least as new */
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
        return err_set(e, ERR_NOMEM, "a channel's memory");
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
    if (l == NULL || l->closing) {
        return;
    }
    link_flush(l);
    l->closing = true;
    l->broken = true;
    bell_destroy(l->bell); /* before its descriptor is closed */
    l->bell = NULL;
    uv_close((uv_handle_t *)&l->poll, handle_closed);
    uv_close((uv_handle_t *)&l->last, handle_closed);
    uv_close((uv_handle_t *)&l->before_sleep, handle_closed);
    (void)close(l->duplex.fd);
    l->duplex.fd = -1;
}
