#include "common/duplex.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/doorbell.h"

enum { RECORD_PACKET = 0, RECORD_MARKER = 1 };

struct duplex_shared {        /* zeros at first; the bytes of the two rings follow */
    struct ring_control down; /* from maker to adopter */
    struct ring_control up;   /* from adopter to maker */
    _Alignas(RING_LINE) struct duplex_beat beat;
};

#define SHARED_BYTES (sizeof(struct duplex_shared) + 2 * (size_t)DUPLEX_RING_BYTES)

struct duplex_packet {
    struct duplex_packet *next;
    struct frame_fds fds; /* owned */
    bool plain;           /* goes over the socket even when rings are in use */
    size_t size;
    uint8_t data[];
};

#define RINGS_NONE ((struct duplex_rings){.memory = MEMFD_NONE, .bell = -1, .far_bell = -1})

/* ---- packets ------------------------------------------------------------------------------- */

static struct duplex_packet *packet_new(struct bytes bytes)
{
    struct duplex_packet *p = malloc(sizeof *p + bytes.size);
    if (p != NULL) {
        *p = (struct duplex_packet){.size = bytes.size};
        memcpy(p->data, bytes.data, bytes.size);
    }
    return p;
}

static void packet_free(struct duplex_packet *p)
{
    if (p != NULL) {
        frame_fds_close(&p->fds);
        free(p);
    }
}

static void packets_free(struct duplex_packet **list)
{
    while (*list != NULL) {
        struct duplex_packet *p = *list;
        *list = p->next;
        packet_free(p);
    }
}

static int duplicate(const struct frame_fds *fds, struct frame_fds *ret_fds, struct err *e)
{
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

/* ---- rings --------------------------------------------------------------------------------- */

static struct duplex_shared *shared_of(const struct duplex_rings *r)
{
    return (struct duplex_shared *)(void *)r->memory.data;
}

static void rings_init(struct duplex_rings *r, bool maker)
{
    struct duplex_shared *s = shared_of(r);
    uint8_t *data = r->memory.data + sizeof *s;
    uint8_t *down = data;
    uint8_t *up = data + DUPLEX_RING_BYTES;
    ring_producer_init(&r->out, maker ? &s->down : &s->up, maker ? down : up, DUPLEX_RING_BYTES);
    ring_consumer_init(&r->in, maker ? &s->up : &s->down, maker ? up : down, DUPLEX_RING_BYTES);
}

static void rings_finish(struct duplex_rings *r)
{
    memfd_finish(&r->memory);
    descriptor_close(&r->bell);
    descriptor_close(&r->far_bell);
    *r = RINGS_NONE;
}

void duplex_init(struct duplex *d, int fd, size_t queue_max, bool gathers)
{
    d->fd = fd;
    d->state = DUPLEX_SOCKET;
    d->in_ring = d->failed = d->more = false;
    d->gathers = gathers;
    d->lossy = false;
    d->rings = RINGS_NONE;
    d->queue = d->kept = d->newer = NULL;
    d->queue_end = &d->queue;
    d->queued = 0;
    d->queued_bytes = 0;
    d->queue_max = queue_max;
    d->blocked = DUPLEX_NOTHING;
    d->turn = 0;
    d->rest = bytes_of(d->in, 0);
    d->first = false;
    packet_reset(&d->gathered);
}

void duplex_finish(struct duplex *d)
{
    packets_free(&d->queue);
    d->queue_end = &d->queue;
    d->queued = 0;
    d->queued_bytes = 0;
    packets_free(&d->kept);
    packets_free(&d->newer);
    rings_finish(&d->rings);
    d->state = DUPLEX_SOCKET;
    d->in_ring = false;
}

int duplex_make(struct duplex *d, struct frame_fds *ret_fds, struct err *e)
{
    struct duplex_rings r = RINGS_NONE;
    int rc = memfd_create_sealed("gpud-channel", SHARED_BYTES, &r.memory, e);
    if (rc != 0) {
        return rc;
    }
    rc = doorbell_create(&r.bell, e);
    rc = rc == 0 ? doorbell_create(&r.far_bell, e) : rc;
    if (rc != 0) {
        rings_finish(&r);
        return rc;
    }
    rings_init(&r, true);
    d->rings = r;
    *ret_fds = (struct frame_fds){.fd = {r.memory.fd, r.far_bell, r.bell}, .count = DUPLEX_FDS};
    return 0;
}

void duplex_offered(struct duplex *d)
{
    descriptor_close(&d->rings.memory.fd); /* the mapping remains */
    d->state = DUPLEX_OFFERED;
}

void duplex_refused(struct duplex *d)
{
    rings_finish(&d->rings);
    d->state = DUPLEX_SOCKET;
}

int duplex_adopt(struct duplex *d, struct frame_fds *fds, struct err *e)
{
    struct duplex_rings r = RINGS_NONE;
    if (fds->lost) {
        return err_set(e, ERR_LIMIT, "no descriptors are free for rings (limit of open files)");
    }
    if (d->state != DUPLEX_SOCKET || d->rings.memory.data != NULL || fds->count != DUPLEX_FDS) {
        return err_set(e, ERR_PROTOCOL, "rings of %d descriptors are offered%s", fds->count,
                       d->rings.memory.data != NULL ? " again" : "");
    }
    int rc = memfd_adopt(fds->fd[0], SHARED_BYTES, true, &r.memory, e);
    if (rc != 0) {
        return rc;
    }
    r.bell = fds->fd[1];
    r.far_bell = fds->fd[2];
    fds->count = 0;
    descriptor_close(&r.memory.fd);
    rings_init(&r, false);
    d->rings = r;
    return 0;
}

void duplex_join(struct duplex *d)
{
    d->state = DUPLEX_RINGS;
    d->in_ring = true;
    duplex_again(d);
}

/* Drops queued packets that were meant for a ring; older ones remain. */
static void queue_leave(struct duplex *d)
{
    struct duplex_packet *old = d->queue;
    d->queue = NULL;
    d->queue_end = &d->queue;
    d->queued = 0;
    d->queued_bytes = 0;
    while (old != NULL) {
        struct duplex_packet *p = old;
        old = p->next;
        if (!p->plain) {
            packet_free(p);
            continue;
        }
        p->next = NULL;
        *d->queue_end = p;
        d->queue_end = &p->next;
        d->queued++;
        d->queued_bytes += p->size;
    }
}

void duplex_leave(struct duplex *d)
{
    queue_leave(d);
    packets_free(&d->kept);
    rings_finish(&d->rings);
    d->state = DUPLEX_SOCKET;
    d->in_ring = d->failed = false;
    if (d->newer != NULL) {
        memcpy(d->in, d->newer->data, d->newer->size);
        d->rest = bytes_of(d->in, d->newer->size);
        d->first = true;
        packets_free(&d->newer);
    }
}

struct duplex_beat *duplex_beat(const struct duplex *d)
{
    return d->rings.memory.data != NULL ? &shared_of(&d->rings)->beat : NULL;
}

/* ---- out ----------------------------------------------------------------------------------- */

static int failed(struct duplex *d, int rc)
{
    d->failed = d->failed || rc < 0;
    return rc;
}

static int send_socket(struct duplex *d, struct bytes packet, const struct frame_fds *fds,
                       struct err *e)
{
    int rc = seqpacket_send(d->fd, packet.data, packet.size, fds, e);
    d->blocked = rc == SEQPACKET_AGAIN ? DUPLEX_BY_SOCKET : DUPLEX_NOTHING;
    return failed(d, rc);
}

/* Returns as seqpacket_send. A packet is sent before its marker, so it is there when the reader
 * reaches the marker. */
static int send_ring(struct duplex *d, struct bytes packet, const struct frame_fds *fds,
                     struct err *e)
{
    struct ring_producer *out = &d->rings.out;
    bool beside = fds != NULL && fds->count > 0;
    int rc = ring_room(out, beside ? 0 : packet.size, e);
    if (rc == 0) {
        d->blocked = DUPLEX_BY_RING;
        return SEQPACKET_AGAIN;
    }
    if (rc == 1 && beside) {
        rc = send_socket(d, packet, fds, e);
        if (rc != 0) {
            return rc;
        }
        packet.size = 0;
        rc = 1;
    }
    if (rc == 1) {
        rc = ring_put(out, beside ? RECORD_MARKER : RECORD_PACKET, packet, (struct bytes){0}, e);
    }
    d->blocked = DUPLEX_NOTHING;
    return failed(d, rc < 0 ? rc : 0);
}

static int try_send(struct duplex *d, bool plain, struct bytes packet, const struct frame_fds *fds,
                    struct err *e)
{
    if (plain || d->state == DUPLEX_SOCKET) {
        return send_socket(d, packet, fds, e);
    }
    if (d->state == DUPLEX_OFFERED) {
        d->blocked = DUPLEX_BY_ANSWER;
        return SEQPACKET_AGAIN;
    }
    return send_ring(d, packet, fds, e);
}

int duplex_resume(struct duplex *d, struct err *e)
{
    struct ring_producer *out = &d->rings.out;
    if (d->state == DUPLEX_RINGS) {
        ring_full_wake(out);
    }
    while (d->queue != NULL) {
        struct duplex_packet *p = d->queue;
        int rc = try_send(d, p->plain, bytes_of(p->data, p->size), &p->fds, e);
        if (rc == SEQPACKET_AGAIN && d->blocked == DUPLEX_BY_RING &&
            !ring_full_sleep(out, p->fds.count > 0 ? 0 : p->size)) {
            continue; /* the consumer made room meanwhile, or the next try returns the error */
        }
        if (rc != 0) {
            return rc < 0 ? rc : 0;
        }
        d->queue = p->next;
        if (d->queue == NULL) {
            d->queue_end = &d->queue;
        }
        d->queued--;
        d->queued_bytes -= p->size;
        packet_free(p);
    }
    return 0;
}

static int enqueue(struct duplex *d, struct bytes packet, const struct frame_fds *fds,
                   struct err *e)
{
    if (packet.size > d->queue_max - d->queued_bytes) {
        return failed(d, err_set(e, ERR_LIMIT, "over %zu bytes wait for a peer that does not read",
                                 d->queue_max));
    }
    struct duplex_packet *p = packet_new(packet);
    if (p == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a queued frame of %zu bytes", packet.size);
    }
    int rc = duplicate(fds, &p->fds, e);
    if (rc != 0) {
        packet_free(p);
        return rc;
    }
    p->plain = d->state == DUPLEX_SOCKET;
    *d->queue_end = p;
    d->queue_end = &p->next;
    d->queued++;
    d->queued_bytes += p->size;
    /* duplex_resume announces that this end waits for room */
    return d->blocked == DUPLEX_BY_RING && d->queued == 1 ? duplex_resume(d, e) : 0;
}

static int send_or_queue(struct duplex *d, struct bytes packet, const struct frame_fds *fds,
                         struct err *e)
{
    int rc = SEQPACKET_AGAIN;
    if (d->queue == NULL) {
        rc = try_send(d, d->state == DUPLEX_SOCKET, packet, fds, e);
    }
    return rc == SEQPACKET_AGAIN ? enqueue(d, packet, fds, e) : rc;
}

static int send_gathered(struct duplex *d, struct err *e)
{
    if (d->gathered.frames == 0) {
        return 0;
    }
    int rc = send_or_queue(d, packet_view(&d->gathered), NULL, e);
    packet_reset(&d->gathered);
    return failed(d, rc); /* final: duplex_send has already accepted these frames */
}

int duplex_flush(struct duplex *d, struct err *e)
{
    if (d->state == DUPLEX_RINGS && ring_publish(&d->rings.out)) {
        doorbell_ring(d->rings.far_bell);
    }
    return send_gathered(d, e);
}

int duplex_send(struct duplex *d, struct bytes frame, const struct frame_fds *fds, struct err *e)
{
    bool gathers = d->gathers && d->state == DUPLEX_SOCKET && (fds == NULL || fds->count == 0);
    if (gathers && packet_add(&d->gathered, frame)) {
        return 0;
    }
    int rc = send_gathered(d, e); /* frames keep their order */
    if (rc != 0) {
        return rc;
    }
    if (gathers) {
        (void)packet_add(&d->gathered, frame);
        return 0;
    }
    return send_or_queue(d, frame, fds, e);
}

/* ---- in ------------------------------------------------------------------------------------ */

/* Receives a packet from the socket into `in`; false: see *ret_rc, as duplex_next returns. */
static bool receive(struct duplex *d, struct frame_fds *ret_fds, int *ret_rc, struct err *e)
{
    size_t size = 0;
    int rc = (d->lossy ? seqpacket_recv_lossy : seqpacket_recv)(d->fd, d->in, sizeof d->in, &size,
                                                                ret_fds, e);
    *ret_rc = rc == SEQPACKET_AGAIN ? 0 : rc == SEQPACKET_EOF ? DUPLEX_END : failed(d, rc);
    if (rc != 0) {
        return false;
    }
    d->rest = bytes_of(d->in, size);
    d->first = true;
    return true;
}

/* Takes the packet that a marker stands for. Returns as take_record. */
static int take_beside(struct duplex *d, struct frame_fds *ret_fds, struct err *e)
{
    struct duplex_packet *p = d->kept;
    int rc = 0;
    if (p != NULL) {
        d->kept = p->next;
        memcpy(d->in, p->data, p->size);
        d->rest = bytes_of(d->in, p->size);
        d->first = true;
        *ret_fds = p->fds;
        free(p);
    } else if (!receive(d, ret_fds, &rc, e)) {
        return rc < 0 ? rc : failed(d, err_set(e, ERR_PROTOCOL, "a marker without its packet"));
    }
    return ret_fds->count > 0 || ret_fds->lost
               ? 1
               : failed(d, err_set(e, ERR_PROTOCOL, "a marker of a packet without descriptors"));
}

static int take_record(struct duplex *d, struct frame_fds *ret_fds, struct err *e)
{
    uint32_t id = 0;
    uint32_t size = 0;
    int rc = ring_next(&d->rings.in, &id, &size, e);
    if (rc != 1) {
        return failed(d, rc);
    }
    bool packet = id == RECORD_PACKET && size > 0 && size <= sizeof d->in;
    if (!packet && (id != RECORD_MARKER || size != 0)) {
        return failed(d, err_set(e, ERR_PROTOCOL, "a record %u of %u bytes", id, size));
    }
    ring_take(&d->rings.in, size, d->in);
    d->turn++;
    if (!packet) {
        return take_beside(d, ret_fds, e);
    }
    d->rest = bytes_of(d->in, size);
    d->first = true;
    return 1;
}

static bool is_more(const struct duplex *d)
{
    return d->rest.size > 0 || (d->in_ring && d->turn < DUPLEX_BATCH && ring_ready(&d->rings.in));
}

bool duplex_unread(const struct duplex *d)
{
    if (d->rest.size > 0 || d->in_ring) {
        return d->rest.size > 0 || ring_ready(&d->rings.in);
    }
    struct pollfd socket = {.fd = d->fd, .events = POLLIN};
    return poll(&socket, 1, 0) > 0 && (socket.revents & POLLIN) != 0;
}

int duplex_next(struct duplex *d, struct bytes *ret_frame, struct frame_fds *ret_fds, struct err *e)
{
    for (;;) {
        int rc = packet_next(&d->rest, &d->first, ret_frame, e);
        if (rc < 0) {
            d->rest = bytes_of(d->in, 0);
        }
        if (rc != 0) {
            d->more = is_more(d);
            return rc;
        }
        d->more = false;
        if (d->in_ring) {
            rc = take_record(d, ret_fds, e);
        } else {
            rc = receive(d, ret_fds, &rc, e) ? 1 : rc;
        }
        if (rc != 1) {
            return rc;
        }
    }
}

void duplex_turn(struct duplex *d)
{
    d->turn = 0;
    if (d->in_ring) {
        ring_wake(&d->rings.in);
    }
}

void duplex_settle(struct duplex *d)
{
    if (!d->in_ring) {
        return;
    }
    if (ring_release(&d->rings.in)) {
        doorbell_ring(d->rings.far_bell);
    }
    if (!ring_sleep(&d->rings.in) || d->rest.size > 0) {
        duplex_again(d);
    }
}

void duplex_again(struct duplex *d)
{
    if (d->rings.bell >= 0) {
        doorbell_ring(d->rings.bell);
    }
}

void duplex_by_socket(struct duplex *d)
{
    d->in_ring = false;
}

int duplex_read_socket(struct duplex *d, struct err *e)
{
    struct frame_fds fds = {.count = 0};
    int rc = 0;
    if (!receive(d, &fds, &rc, e)) {
        return rc;
    }
    struct duplex_packet *p = packet_new(d->rest);
    d->rest = bytes_of(d->in, 0);
    d->first = false;
    if (p == NULL) {
        frame_fds_close(&fds);
        return failed(d, err_set(e, ERR_NOMEM, "no memory for a packet"));
    }
    p->fds = fds;
    if (fds.count == 0 && !fds.lost) {
        d->newer = p;
        return 1;
    }
    struct duplex_packet **end = &d->kept;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = p;
    return 0;
}
