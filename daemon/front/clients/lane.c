/* One lane: its memory, the requests in one ring, the answers in the other and those that wait for
 * room. */
#include "daemon/front/clients/lane.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <utlist.h>

#include "common/descriptors.h"
#include "common/doorbell.h"
#include "common/log.h"
#include "daemon/front/clients/lane_int.h"
#include "daemon/loop/bell.h"
#include "proto/codec.h"

#define BELLS_IDLE_MAX 4096u

/* ---- make and unmake ----------------------------------------------------------------------- */

static int bells_make(struct lane *lane, struct err *e)
{
    lane->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (lane->bell < 0) {
        return err_errno(e, ERR_IO, "making a doorbell");
    }
    int rc = doorbell_create(&lane->client_bell, e);
    if (rc == 0 && descriptors_kept(lane->client_bell)) {
        rc = err_set(e, ERR_BUSY,
                     "no descriptors are left for doorbells: raise LimitNOFILE= of the unit");
    }
    return rc;
}

static void on_bell(void *data)
{
    struct lane *lane = data;
    lane->belled = true;
    lane->lanes->stats.bells++;
    lanes_wake(lane); /* the lane gets its turn in this turn of the loop */
}

static void waiting_pop(struct lane *lane)
{
    struct lane_out *w = lane->waiting;
    LL_DELETE(lane->waiting, w);
    session_let_go(lane->session, &lane->session->ops.kept_bytes, w->size);
    free(w);
}

static void waiting_drop(struct lane *lane)
{
    while (lane->waiting != NULL) {
        uint64_t seq = lane->waiting->seq;
        struct op *o = seq != 0 ? op_find(lane->session, seq) : NULL;
        if (o != NULL) {
            o->ring_id = 0; /* the op keeps the answer until the client asks for it */
        }
        waiting_pop(lane);
    }
}

static void lane_free(struct lane *lane)
{
    bell_destroy(lane->ear); /* before its descriptor is closed */
    descriptor_close(&lane->bell);
    descriptor_close(&lane->client_bell);
    memfd_finish(&lane->memory);
    free(lane);
}

static int lane_make(struct lane *lane, struct err *e)
{
    lane->memory = MEMFD_NONE;
    lane->bell = lane->client_bell = -1;
    int rc = memfd_create_sealed("gpud-lane", LANE_BYTES, &lane->memory, e);
    rc = rc == 0 ? bells_make(lane, e) : rc;
    rc = rc == 0
             ? bell_create(lane->lanes->loop, lane->bell, UV_READABLE, on_bell, lane, &lane->ear, e)
             : rc;
    if (rc != 0) {
        return rc;
    }
    /* not touched before the client touches it, so that the pages are charged to the client */
    struct lane_shared *shared = (struct lane_shared *)(void *)lane->memory.data;
    uint8_t *data = lane->memory.data + LANE_DATA_OFFSET;
    ring_consumer_init(&lane->in, &shared->submit, data, LANE_SUBMIT_BYTES);
    ring_producer_init(&lane->out, &shared->complete, data + LANE_SUBMIT_BYTES,
                       LANE_COMPLETE_BYTES);
    return 0;
}

int lane_open(struct lanes *l, struct session *s, struct err *e)
{
    lane_close(s->lane);
    struct lane *lane = calloc(1, sizeof *lane);
    if (lane == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for ring lane");
    }
    lane->lanes = l;
    lane->session = s;
    int rc = lane_make(lane, e);
    if (rc != 0) {
        lane_free(lane);
        return rc;
    }
    DL_APPEND(l->all, lane);
    l->stats.lanes++;
    s->lane = lane;
    return 0;
}

void lane_fds(const struct lane *lane, struct frame_fds *ret_fds)
{
    ret_fds->fd[LANE_FD_MEMORY] = lane->memory.fd;
    ret_fds->fd[LANE_FD_DAEMON_BELL] = lane->bell;
    ret_fds->fd[LANE_FD_CLIENT_BELL] = lane->client_bell;
    ret_fds->count = LANE_FDS;
}

void lane_close(struct lane *lane)
{
    if (lane == NULL) {
        return;
    }
    struct lanes *l = lane->lanes;
    struct session *s = lane->session;
    l->callbacks.closed(l->data, lane);
    waiting_drop(lane);
    bell_destroy(lane->ear); /* the client may keep its duplicate of the bell open for ever */
    lane->ear = NULL;
    lanes_forget(lane);
    DL_DELETE(l->all, lane);
    l->stats.lanes--;
    session_lane_closed(s);
    if (l->current == lane) {
        lane->session = NULL; /* freed when its turn ends */
        return;
    }
    lane_free(lane);
}

/* Closes the lane. A word of the shared memory reports that to the client, which sends its requests
 * again over the socket. It may open another lane unless it broke the rules. */
static void broken(struct lane *lane, const struct err *e)
{
    struct lane_shared *shared = (struct lane_shared *)(void *)lane->memory.data;
    struct session *s = lane->session;
    log_say(LOG_CLIENT_ENDED, "session %llu (%s): its ring is closed: %s",
            (unsigned long long)s->id, s->name, e->text);
    if (e->code != ERR_NOMEM) {
        lane->lanes->stats.violated++;
        s->lane_error = e->code;
    }
    atomic_store(&shared->closed, (unsigned)-e->code);
    lane_ring(lane);
    lane_close(lane);
}

/* ---- answers ------------------------------------------------------------------------------- */

void lane_ring(struct lane *lane)
{
    doorbell_ring(lane->client_bell);
    lane->lanes->stats.rung++;
}

/* The message in place of an answer that is too long for a ring; the client asks again over its
 * socket. */
static struct bytes elsewhere(struct capbuf *out)
{
    struct msg_elsewhere m = {0};
    capbuf_init(out, 16);
    (void)proto_encode(&schema_msg_elsewhere, &m, out, NULL);
    return capbuf_view(out);
}

/* Puts an answer into the ring. o: the answered op; NULL: none. 1: done. 0: no room. */
static int put(struct lane *lane, uint32_t id, struct op *o, struct bytes reply, struct err *e)
{
    struct capbuf small = {0};
    struct bytes what = reply;
    bool fits = reply.size <= ring_record_max(lane->out.size);
    if (!fits) {
        what = elsewhere(&small);
    }
    int rc = ring_put(&lane->out, id, what, (struct bytes){0}, e);
    capbuf_finish(&small);
    if (rc != 1) {
        return rc;
    }
    lanes_dirty(lane);
    if (o != NULL) {
        o->ring_id = 0;
    }
    if (o != NULL && fits && o->state == OP_ANSWERED) {
        op_enter_ring(o, lane->out.head);
    }
    return 1;
}

static bool wait_for_room(struct lane *lane, uint32_t id, uint64_t seq, struct bytes reply)
{
    size_t size = seq != 0 ? 0 : reply.size; /* an op keeps its answer itself */
    struct lane_out *w = malloc(sizeof *w + size);
    if (w == NULL) {
        return false;
    }
    *w = (struct lane_out){.id = id, .seq = seq, .size = size};
    if (size > 0) {
        memcpy(w->data, reply.data, size);
    }
    LL_APPEND(lane->waiting, w);
    session_keep(lane->session, &lane->session->ops.kept_bytes, size);
    lane->lanes->stats.waited++;
    lanes_wake(lane); /* the lane checks for room in its turn */
    return true;
}

static void send_or_wait(struct lane *lane, struct op *o, uint32_t id, struct bytes reply)
{
    struct err e;
    err_init(&e);
    int rc = lane->waiting == NULL ? put(lane, id, o, reply, &e) : 0;
    bool kept = o == NULL || o->reply != NULL;
    if (rc == 0 && (!kept || !wait_for_room(lane, id, o != NULL ? o->seq : 0, reply))) {
        rc = err_set(&e, ERR_NOMEM, "no memory for an answer");
    }
    if (rc < 0) {
        broken(lane, &e);
    }
}

void lane_answer(struct lane *lane, struct op *o, struct bytes reply)
{
    send_or_wait(lane, o, o->ring_id, reply);
}

void lane_reply(struct lane *lane, uint32_t ring_id, struct bytes reply)
{
    send_or_wait(lane, NULL, ring_id, reply);
}

/* Sends the oldest waiting answer. 1: sent, or not needed any more. 0: no room. */
static int send_waiting(struct lane *lane, struct lane_out *w, size_t *ret_size, struct err *e)
{
    struct op *o = w->seq != 0 ? op_find(lane->session, w->seq) : NULL;
    if (w->seq != 0 && (o == NULL || !op_answered(o) || o->ring_id != w->id)) {
        return 1; /* the client acknowledged the answer, or asked for it over the socket */
    }
    struct bytes reply = o != NULL ? bytes_of(o->reply, o->reply_size) : bytes_of(w->data, w->size);
    *ret_size = reply.size;
    return put(lane, w->id, o, reply, e);
}

/* 1: all are sent; 0: sleeps until there is room for the next. */
static int send_all_waiting(struct lane *lane, struct err *e)
{
    ring_full_wake(&lane->out);
    while (lane->waiting != NULL) {
        struct lane_out *w = lane->waiting;
        size_t size = 0;
        int rc = send_waiting(lane, w, &size, e);
        if (rc < 0) {
            return rc;
        }
        if (rc == 0) {
            size = size <= ring_record_max(lane->out.size) ? size : 0;
            lane_publish(lane);
            if (ring_full_sleep(&lane->out, size)) {
                return 0;
            }
            continue;
        }
        waiting_pop(lane);
    }
    return 1;
}

void lane_publish(struct lane *lane)
{
    if (ring_publish(&lane->out)) {
        lane_ring(lane);
    }
}

/* Acknowledges the answers that the client has consumed from its ring. */
static int acknowledge(struct lane *lane, struct err *e)
{
    struct session *s = lane->session;
    uint32_t tail = 0;
    int rc = s->ops.in_ring != NULL ? ring_consumed(&lane->out, &tail, e) : 0;
    while (rc == 0 && s->ops.in_ring != NULL && (int32_t)(tail - s->ops.in_ring->ring_end) >= 0) {
        /* removes the op from the list */
        lane->lanes->callbacks.acked(lane->lanes->data, s->ops.in_ring);
    }
    return rc;
}

/* ---- requests ------------------------------------------------------------------------------ */

/* Copies the record, then decodes the copy, because the client can still write to the ring. */
static int receive(struct lane *lane, uint32_t id, uint32_t size, struct request **ret_r,
                   struct err *e)
{
    struct request *r = malloc(sizeof *r + size);
    if (r == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a request of %u bytes", size);
    }
    memset(r, 0, offsetof(struct request, msg));
    uint8_t *copy = (uint8_t *)(r + 1);
    ring_take(&lane->in, size, copy);
    struct bytes message = bytes_of(copy, size);
    r->kind = proto_kind(message);
    const struct schema *schema = r->kind < PROTO_REQUEST_KINDS ? schema_find(r->kind) : NULL;
    int rc = 0;
    if (schema == NULL) {
        rc = err_set(e, ERR_UNSUPPORTED, "requests of kind %u are not known here", r->kind);
    } else {
        rc = proto_decode(schema, message, &r->msg, e);
    }
    if (rc != 0) {
        free(r);
        return rc;
    }
    r->size = size;
    r->body = NULL;
    r->ring_id = id;
    r->session = lane->session;
    *ret_r = r;
    return 0;
}

static void refuse(struct lane *lane, uint32_t id, const struct err *e)
{
    uint8_t room[PROTO_ERROR_BYTES];
    lane_reply(lane, id, proto_error_put(e, true, room));
}

/* 1: received a request. 0: the ring is empty. */
static int take_one(struct lane *lane)
{
    struct lanes *l = lane->lanes;
    struct err e;
    err_init(&e);
    uint32_t id = 0;
    uint32_t size = 0;
    int rc = ring_next(&lane->in, &id, &size, &e);
    if (rc <= 0) {
        if (rc < 0) {
            broken(lane, &e);
        }
        return rc;
    }
    if (id == 0) {
        (void)err_set(&e, ERR_PROTOCOL, "ring: a request has the id 0");
        broken(lane, &e);
        return e.code;
    }
    struct request *r = NULL;
    l->stats.records++;
    lane->idle_bells = 0;
    int received = receive(lane, id, size, &r, &e);
    /* the client still has the request, and sends it over the socket */
    if (received == ERR_NOMEM) {
        broken(lane, &e);
        return received;
    }
    if (received != 0) {
        refuse(lane, id, &e);
    } else {
        l->callbacks.request(l->data, lane->session, r);
    }
    return 1;
}

/* Without a limit a client could keep the loop busy with its doorbell alone. */
static bool bells_too_many(struct lane *lane, bool took)
{
    if (took || !lane->belled) {
        return false;
    }
    if (++lane->idle_bells < BELLS_IDLE_MAX) {
        return false;
    }
    struct err e = ERR_INIT;
    (void)err_set(&e, ERR_LIMIT, "its doorbell rang %u times without a request", lane->idle_bells);
    broken(lane, &e);
    return true;
}

/* The ring is empty: the lane sleeps, or is polled for a while. */
static enum lane_state settle(struct lane *lane, bool took, bool spins)
{
    if (took && spins) {
        lane_poll(lane);
        return LANE_IDLE;
    }
    return ring_sleep(&lane->in) ? LANE_IDLE : LANE_MORE;
}

/* The client gave the lane up: it sends its requests over the socket from now on. */
static bool given_up(const struct lane *lane)
{
    const struct lane_shared *shared = (const struct lane_shared *)(void *)lane->memory.data;
    return atomic_load_explicit(&shared->left, memory_order_relaxed) != 0;
}

static int begin_turn(struct lane *lane)
{
    struct err e;
    err_init(&e);
    descriptor_close(&lane->memory.fd); /* the client rang, so it has mapped the memory */
    ring_wake(&lane->in);
    int rc = acknowledge(lane, &e);
    rc = rc == 0 ? send_all_waiting(lane, &e) : rc;
    if (rc < 0) {
        broken(lane, &e);
    }
    return rc;
}

/* lane->session is NULL if the lane was closed in its own turn. */
enum lane_state lane_turn(struct lane *lane, unsigned batch, bool spins)
{
    unsigned received = 0;
    if (given_up(lane)) {
        lane_close(lane);
        return LANE_CLOSED;
    }
    int rc = begin_turn(lane);
    bool answers_go = rc == 1;
    while (rc == 1 && received < batch && lane->session != NULL && lane->waiting == NULL &&
           (received == 0 || lanes_more(lane->lanes, false))) {
        rc = take_one(lane);
        received += rc == 1;
    }
    if (lane->session == NULL || bells_too_many(lane, received > 0)) {
        return LANE_CLOSED;
    }
    lane->belled = false;
    if (ring_release(&lane->in)) {
        lane_ring(lane);
    }
    /* requests wait for the answers before them; the client rings when there is room */
    if (!answers_go) {
        return LANE_IDLE;
    }
    return rc == 1 ? LANE_MORE : settle(lane, received > 0, spins);
}

void lane_reap(struct lane *lane)
{
    lane_free(lane);
}
