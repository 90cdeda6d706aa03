#include "client/src/link/lane.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "client/src/base/state.h"
#include "client/src/link/answers.h"
#include "client/src/link/lane_memory.h"
#include "client/src/link/send.h"
#include "client/src/wire/environment.h"
#include "client/src/wire/reply.h"
#include "client/src/wire/shm.h"
#include "common/clock.h"
#include "common/descriptors.h"
#include "common/seqpacket.h"

#define AGAIN_AFTER  256u /* sequenced requests until a refused lane is asked for again */
#define PAGE         4096u
#define ANSWER_BYTES 4096u
#define SPIN_US      30u /* longer than an answer takes if no thread has to be woken */
#define SPIN_US_MAX  1000u

static int spin_init(struct lane *l, struct err *e)
{
    cpu_set_t set;
    uint64_t us = 0;
    int rc = environment_number("GPUD_SPIN_US", SPIN_US_MAX, SPIN_US, &us, e);
    if (rc != 0) {
        return rc;
    }
    /* on the only processor a spinning thread keeps the daemon from answering */
    bool several = sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 1;
    l->spin_ns = several ? us * NS_PER_US : 0;
    return 0;
}

int lane_init(struct lane *l, struct err *e)
{
    const char *mode = environment_text("GPUD_LANE");
    *l = (struct lane){.claim_fd = -1, .daemon_bell = -1, .bell = -1, .pause = LANE_FIRST_AFTER};
    l->memory = l->retired = MEMFD_NONE;
    if (mode == NULL || strcmp(mode, "auto") == 0) {
        l->mode = LANE_AUTO;
    } else if (strcmp(mode, "nng") == 0) {
        l->mode = LANE_NEVER;
    } else if (strcmp(mode, "ring") == 0) {
        l->mode = LANE_ALWAYS;
    } else {
        return err_set(e, ERR_INVALID, "GPUD_LANE is '%.32s', not auto, nng or ring", mode);
    }
    return spin_init(l, e);
}

bool lane_is_up(const struct gpud_client *c)
{
    return c->lane.state == LANE_UP;
}

static void ring_daemon(struct lane *l)
{
    const uint64_t one = 1;
    ssize_t n;
    do {
        n = write(l->daemon_bell, &one, sizeof one);
    } while (n < 0 && errno == EINTR);
}

/* Reports to the daemon that the client no longer uses the lane; the connection remains. */
static void leave(struct lane *l)
{
    struct lane_shared *shared = (struct lane_shared *)(void *)l->memory.data;
    atomic_store(&shared->left, 1);
    ring_daemon(l);
}

/* Ends a lane that failed or was refused: all requests go over the socket. */
static void give_up(struct gpud_client *c, const struct err *why)
{
    struct lane *l = &c->lane;
    bool was_up = l->state == LANE_UP;
    bool again = err_retriable(why->code);
    if (was_up) {
        leave(l);
    }
    lane_release(c);
    l->failure = *why;
    lane_step(l, again && l->mode == LANE_AUTO ? LANE_OFF : LANE_REFUSED);
    l->pause = AGAIN_AFTER;
    if (was_up) {
        session_resend_ring(c);
    }
}

/* ---- opening ------------------------------------------------------------------------------- */

static int claim(struct gpud_client *c, const struct msg_ring *ring, struct err *e)
{
    struct lane *l = &c->lane;
    if (ring->memory != LANE_BYTES || ring->submit != LANE_SUBMIT_BYTES ||
        ring->complete != LANE_COMPLETE_BYTES) {
        return err_set(e, ERR_PROTOCOL, "the daemon's rings have other sizes");
    }
    int rc = seqpacket_connect(c->session.shm, &l->claim_fd, e);
    rc = rc == 0 ? shm_show(l->claim_fd, ring->nonce, NULL, e) : rc;
    return rc == 0 ? conn_watch(&c->conn, l->claim_fd, EPOLLIN, e) : rc;
}

static void open_answered(struct gpud_client *c, struct request *r, struct message *m,
                          const struct err *e)
{
    struct lane *l = &c->lane;
    struct msg_ring ring;
    struct err failed = ERR_INIT;
    (void)e;
    requests_retire(&c->requests, r);
    if (m == NULL) { /* the connection was lost, and lane_drop has run */
        lane_step(l, LANE_OFF);
        return;
    }
    int rc = reply_decode(m, &schema_msg_ring, &ring, &failed);
    if (rc == 0) {
        rc = claim(c, &ring, &failed);
    }
    if (rc != 0) {
        give_up(c, &failed);
    } else {
        lane_step(l, LANE_CLAIMING);
    }
}

void lane_ask(struct gpud_client *c)
{
    struct lane *l = &c->lane;
    struct msg_ring_open msg = {.version = LANE_VERSION};
    struct err e = ERR_INIT;
    if (l->mode == LANE_NEVER || l->state != LANE_OFF || l->open.id != 0) {
        return;
    }
    if (c->session.shm[0] == '\0') {
        (void)err_set(&e, ERR_UNSUPPORTED, "the daemon has no rings for this connection");
        give_up(c, &e);
        return;
    }
    int rc = request_encode(&l->open, &schema_msg_ring_open, &msg, &e);
    if (rc == 0) {
        lane_step(l, LANE_ASKING);
        rc = session_ask(c, &l->open, open_answered, &e);
        if (rc != 0) {
            request_finish(&l->open);
        }
    }
    if (rc != 0) {
        give_up(c, &e);
    }
}

void lane_wish(struct gpud_client *c)
{
    struct lane *l = &c->lane;
    if (l->state == LANE_OFF && l->mode != LANE_NEVER && --l->pause == 0) {
        l->pause = AGAIN_AFTER;
        lane_ask(c);
    }
}

/* Maps the memory, and touches its pages first, so that they are charged to this process. */
static int map(struct gpud_client *c, struct frame_fds *fds, struct err *e)
{
    struct lane *l = &c->lane;
    int rc = memfd_adopt(fds->fd[LANE_FD_MEMORY], LANE_BYTES, true, &l->memory, e);
    if (rc != 0) {
        return rc;
    }
    (void)close(l->memory.fd);
    l->memory.fd = -1;
    l->daemon_bell = fds->fd[LANE_FD_DAEMON_BELL];
    l->bell = fds->fd[LANE_FD_CLIENT_BELL];
    fds->count = 0;
    for (size_t at = 0; at < LANE_BYTES; at += PAGE) {
        *(volatile uint8_t *)(l->memory.data + at) = 0;
    }
    return conn_watch(&c->conn, l->bell, EPOLLOUT | EPOLLET, e);
}

static int answer_check(struct bytes frame, const struct frame_fds *fds, struct err *e)
{
    struct msg_granted granted;
    struct msg_error refused;
    if (proto_kind(frame) == MSG_KIND_ERROR &&
        proto_decode(&schema_msg_error, frame, &refused, e) == 0) {
        proto_error_to(&refused, e);
        return e->code;
    }
    int rc = proto_decode(&schema_msg_granted, frame, &granted, e);
    if (rc == 0 && fds->count != LANE_FDS) {
        rc = err_set(e, ERR_PROTOCOL, "%d descriptors came with a ring", fds->count);
    }
    return rc;
}

void lane_claimed(struct gpud_client *c)
{
    struct lane *l = &c->lane;
    uint8_t frame[ANSWER_BYTES];
    struct frame_fds fds = {.count = 0};
    struct err e = ERR_INIT;
    size_t size = 0;
    if (l->state != LANE_CLAIMING) {
        return;
    }
    int rc = seqpacket_recv(l->claim_fd, frame, sizeof frame, &size, &fds, &e);
    if (rc == SEQPACKET_AGAIN) {
        return;
    }
    rc = rc > 0 ? err_set(&e, ERR_BUSY, "the daemon hands out no descriptors now") : rc;
    rc = rc == 0 ? answer_check(bytes_of(frame, size), &fds, &e) : rc;
    rc = rc == 0 ? map(c, &fds, &e) : rc;
    frame_fds_close(&fds);
    if (rc != 0) {
        give_up(c, &e);
        return;
    }
    lane_fd_close(c, &l->claim_fd);
    struct lane_shared *shared = (struct lane_shared *)(void *)l->memory.data;
    uint8_t *data = l->memory.data + LANE_DATA_OFFSET;
    ring_producer_init(&l->out, &shared->submit, data, LANE_SUBMIT_BYTES);
    ring_consumer_init(&l->in, &shared->complete, data + LANE_SUBMIT_BYTES, LANE_COMPLETE_BYTES);
    (void)ring_sleep(&l->in);
    lane_step(l, LANE_UP);
    ring_daemon(l); /* the daemon reads the ring from the first bell on */
}

/* ---- requests ------------------------------------------------------------------------------ */

bool lane_send(struct gpud_client *c, struct request *r)
{
    struct lane *l = &c->lane;
    struct err e;
    err_init(&e);
    if (l->state != LANE_UP || r->kind == MSG_KIND_BYE) {
        return false;
    }
    requests_ring_head(&c->requests, r);
    int rc = ring_put(&l->out, r->id, bytes_of(r->out.head, r->out.head_size), r->out.body, &e);
    if (rc < 0 && rc != ERR_LIMIT) {
        give_up(c, &e);
    }
    if (rc != 1) {
        return false;
    }
    r->by_ring = true;
    if (ring_publish(&l->out)) {
        ring_daemon(l);
    }
    return true;
}

/* ---- answers ------------------------------------------------------------------------------- */

/* Takes one answer. false: the lane has ended. */
static bool take_one(struct gpud_client *c, uint32_t id, uint32_t size)
{
    struct lane *l = &c->lane;
    struct err e;
    err_init(&e);
    struct message *m = message_create(size);
    if (m == NULL) {
        (void)err_set(&e, ERR_NOMEM, "no memory for an answer of %u bytes", size);
        give_up(c, &e);
        return false;
    }
    ring_take(&l->in, size, m->data);
    m->id = id;
    if (session_message(c, m, &e) != 0) {
        give_up(c, &e);
    }
    message_unref(m);
    return l->state == LANE_UP;
}

static bool take_all(struct gpud_client *c)
{
    struct lane *l = &c->lane;
    struct err e;
    err_init(&e);
    uint32_t id = 0;
    uint32_t size = 0;
    int rc;
    ring_wake(&l->in);
    while ((rc = ring_next(&l->in, &id, &size, &e)) == 1) {
        if (!take_one(c, id, size)) {
            return false;
        }
    }
    if (rc < 0) {
        give_up(c, &e);
        return false;
    }
    if (ring_release(&l->in)) {
        ring_daemon(l);
    }
    return true;
}

static bool closed(struct gpud_client *c)
{
    const struct lane_shared *shared = (const struct lane_shared *)(void *)c->lane.memory.data;
    unsigned code = atomic_load_explicit(&shared->closed, memory_order_relaxed);
    if (code == 0) {
        return false;
    }
    struct err e = ERR_INIT;
    (void)err_set(&e, -(int)code, "the daemon closed the ring: %s", err_text(-(int)code));
    give_up(c, &e);
    return true;
}

bool lane_take(struct gpud_client *c)
{
    struct lane *l = &c->lane;
    if (l->state != LANE_UP || closed(c) || !ring_ready(&l->in)) {
        return false;
    }
    do {
        if (!take_all(c)) {
            return true;
        }
    } while (!ring_sleep(&l->in));
    return true;
}

void lane_woken(struct gpud_client *c)
{
    struct lane *l = &c->lane;
    if (!lane_take(c) && l->state == LANE_UP && !ring_sleep(&l->in)) {
        (void)lane_take(c);
    }
}
