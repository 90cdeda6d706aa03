#include "common/ring.h"

#include <string.h>

/* No wake-up is lost: each side writes its own word, then reads the other side's, and these four
 * accesses are sequentially consistent. So at least one side sees the other's write. */

static uint32_t rounded(uint32_t n)
{
    return (n + RING_ALIGN - 1) & ~(RING_ALIGN - 1);
}

uint32_t ring_space(size_t size)
{
    return RING_RECORD_HEAD + rounded((uint32_t)size);
}

uint32_t ring_record_max(uint32_t ring_size)
{
    return ring_size / 2 - RING_RECORD_HEAD;
}

bool ring_size_valid(size_t ring_size)
{
    return ring_size >= RING_MIN && ring_size <= RING_MAX && (ring_size & (ring_size - 1)) == 0;
}

/* ---- producer ------------------------------------------------------------------------------ */

void ring_producer_init(struct ring_producer *p, struct ring_control *control, void *data,
                        uint32_t size)
{
    *p = (struct ring_producer){.shared = control, .data = data, .size = size};
}

static int read_tail(struct ring_producer *p, struct err *e)
{
    uint32_t tail = atomic_load(&p->shared->tail);
    if (p->broken || tail - p->tail > p->published - p->tail || tail % RING_ALIGN != 0) {
        p->broken = true;
        return err_set(e, ERR_PROTOCOL, "ring: taken up to %u of %u to %u", tail, p->tail,
                       p->published);
    }
    p->tail = tail;
    return 0;
}

int ring_consumed(struct ring_producer *p, uint32_t *ret_tail, struct err *e)
{
    int rc = read_tail(p, e);
    if (rc == 0) {
        *ret_tail = p->tail;
    }
    return rc;
}

static bool has_room(const struct ring_producer *p, uint32_t space)
{
    return p->size - (p->head - p->tail) >= space;
}

static uint32_t copy_in(const struct ring_producer *p, uint32_t at, struct bytes from)
{
    uint32_t offset = at & (p->size - 1);
    size_t before_end = p->size - offset;
    size_t first = from.size < before_end ? from.size : before_end;
    if (first > 0) {
        memcpy(p->data + offset, from.data, first);
    }
    if (from.size > first) {
        memcpy(p->data, from.data + first, from.size - first);
    }
    return at + (uint32_t)from.size;
}

int ring_room(struct ring_producer *p, size_t size, struct err *e)
{
    if (size > ring_record_max(p->size)) {
        return err_set(e, ERR_LIMIT, "a record of %zu bytes, a ring of %u takes at most %u", size,
                       p->size, ring_record_max(p->size));
    }
    uint32_t space = ring_space(size);
    if (p->broken || !has_room(p, space)) {
        int rc = read_tail(p, e);
        if (rc != 0 || !has_room(p, space)) {
            return rc;
        }
    }
    return 1;
}

int ring_put(struct ring_producer *p, uint32_t id, struct bytes first, struct bytes second,
             struct err *e)
{
    size_t size = first.size + second.size;
    int rc = ring_room(p, size, e);
    if (rc != 1) {
        return rc;
    }
    uint32_t head[2] = {(uint32_t)size, id};
    uint32_t at = copy_in(p, p->head, bytes_of(head, sizeof head));
    at = copy_in(p, at, first);
    (void)copy_in(p, at, second);
    p->head += ring_space(size);
    return 1;
}

bool ring_publish(struct ring_producer *p)
{
    if (p->head == p->published) {
        return false;
    }
    p->published = p->head;
    atomic_store(&p->shared->head, p->head);
    uint32_t sleep = atomic_load(&p->shared->sleep);
    if (sleep % 2 == 0 || sleep == p->rung) {
        return false;
    }
    p->rung = sleep;
    return true;
}

bool ring_full_sleep(struct ring_producer *p, size_t size)
{
    p->full = (p->full + 1) | 1;
    atomic_store(&p->shared->full, p->full);
    if (read_tail(p, NULL) == 0 && !has_room(p, ring_space(size))) {
        return true;
    }
    ring_full_wake(p);
    return false;
}

void ring_full_wake(struct ring_producer *p)
{
    if (p->full % 2 != 0) {
        p->full++;
        atomic_store(&p->shared->full, p->full);
    }
}

/* ---- consumer ------------------------------------------------------------------------------ */

void ring_consumer_init(struct ring_consumer *c, struct ring_control *control, const void *data,
                        uint32_t size)
{
    *c = (struct ring_consumer){.shared = control, .data = data, .size = size};
}

static int nonsense(struct ring_consumer *c, struct err *e, const char *what, uint32_t value)
{
    c->broken = true;
    return err_set(e, ERR_PROTOCOL, "ring: %s %u; %u to %u of %u bytes hold records", what, value,
                   c->tail, c->head, c->size);
}

/* Reads the producer's position: it may only move forward, by multiples of RING_ALIGN, and at most
 * by the ring's length. */
static int read_head(struct ring_consumer *c, struct err *e)
{
    uint32_t head = atomic_load_explicit(&c->shared->head, memory_order_acquire);
    if (c->broken || head - c->released > c->size || head - c->tail < c->head - c->tail ||
        head - c->tail > c->size || head % RING_ALIGN != 0) {
        return nonsense(c, e, "records up to", head);
    }
    c->head = head;
    return 0;
}

static void copy_out(const struct ring_consumer *c, uint32_t at, uint32_t size, void *out)
{
    uint32_t offset = at & (c->size - 1);
    uint32_t before_end = c->size - offset;
    uint32_t first = size < before_end ? size : before_end;
    if (first > 0) {
        memcpy(out, c->data + offset, first);
    }
    if (size > first) {
        memcpy((uint8_t *)out + first, c->data, size - first);
    }
}

int ring_next(struct ring_consumer *c, uint32_t *ret_id, uint32_t *ret_size, struct err *e)
{
    if (c->tail == c->head || c->broken) {
        int rc = read_head(c, e);
        if (rc != 0 || c->tail == c->head) {
            return rc;
        }
    }
    /* read once: the producer can change it at any time */
    uint32_t head[2];
    uint32_t offset = c->tail & (c->size - 1);
    const volatile uint32_t *at = (const volatile uint32_t *)(const void *)(c->data + offset);
    head[0] = at[0];
    head[1] = at[1];
    if (head[0] > ring_record_max(c->size) || ring_space(head[0]) > c->head - c->tail) {
        return nonsense(c, e, "a record's length is", head[0]);
    }
    *ret_size = head[0];
    *ret_id = head[1];
    return 1;
}

void ring_take(struct ring_consumer *c, uint32_t size, void *out)
{
    copy_out(c, c->tail + RING_RECORD_HEAD, size, out);
    c->tail += ring_space(size);
}

bool ring_release(struct ring_consumer *c)
{
    if (c->tail == c->released) {
        return false;
    }
    c->released = c->tail;
    atomic_store(&c->shared->tail, c->tail);
    uint32_t full = atomic_load(&c->shared->full);
    if (full % 2 == 0 || full == c->rung) {
        return false;
    }
    c->rung = full;
    return true;
}

bool ring_ready(const struct ring_consumer *c)
{
    return c->broken || atomic_load(&c->shared->head) != c->tail;
}

bool ring_sleep(struct ring_consumer *c)
{
    c->sleep = (c->sleep + 1) | 1;
    atomic_store(&c->shared->sleep, c->sleep);
    if (!ring_ready(c)) {
        return true;
    }
    ring_wake(c);
    return false;
}

void ring_wake(struct ring_consumer *c)
{
    if (c->sleep % 2 != 0) {
        c->sleep++;
        atomic_store(&c->shared->sleep, c->sleep);
    }
}
