#include "proto/snapshot.h"

#include <string.h>

_Static_assert(sizeof(struct snapshot_meter) == 64 && sizeof(struct snapshot_event) == 24 &&
                   sizeof(struct snapshot_piece) == 40 && sizeof(struct snapshot_head) % 8 == 0,
               "records of a snapshot lie without gaps");

static uint64_t events_at(uint32_t meters)
{
    return sizeof(struct snapshot_head) + (uint64_t)meters * sizeof(struct snapshot_meter);
}

static uint64_t pieces_at(uint32_t meters, uint32_t events)
{
    return events_at(meters) + (uint64_t)events * sizeof(struct snapshot_event);
}

uint64_t snapshot_bytes(uint32_t meters, uint32_t events, uint32_t pieces)
{
    return pieces_at(meters, events) + (uint64_t)pieces * sizeof(struct snapshot_piece);
}

struct snapshot_room snapshot_room(void *data, uint32_t meters, uint32_t events)
{
    uint8_t *at = data;
    return (struct snapshot_room){.head = data,
                                  .meters = (void *)(at + sizeof(struct snapshot_head)),
                                  .events = (void *)(at + events_at(meters)),
                                  .pieces = (void *)(at + pieces_at(meters, events))};
}

int snapshot_open(const void *data, size_t size, struct snapshot_view *ret_view, struct err *e)
{
    struct snapshot_view v = {.data = data};
    if (size < sizeof v.head) {
        return err_set(e, ERR_PROTOCOL, "a snapshot of %zu bytes", size);
    }
    memcpy(&v.head, data, sizeof v.head);
    const struct snapshot_head *h = &v.head;
    if (h->version != SNAPSHOT_VERSION) {
        return err_set(e, ERR_PROTOCOL, "a snapshot of version %u, this is %u", h->version,
                       SNAPSHOT_VERSION);
    }
    if (h->meters > SNAPSHOT_METERS_MAX || h->events > SNAPSHOT_EVENTS_MAX ||
        h->pieces > SNAPSHOT_PIECES_MAX) {
        return err_set(e, ERR_PROTOCOL, "a snapshot of %u meters, %u events and %u pieces",
                       h->meters, h->events, h->pieces);
    }
    if (snapshot_bytes(h->meters, h->events, h->pieces) > size) {
        return err_set(e, ERR_PROTOCOL,
                       "a snapshot of %zu bytes cannot hold %u meters, %u events and %u pieces",
                       size, h->meters, h->events, h->pieces);
    }
    *ret_view = v;
    return 0;
}

static uint64_t end_within(uint64_t at, uint64_t size)
{
    return size <= UINT64_MAX - at ? size : UINT64_MAX - at;
}

struct snapshot_meter snapshot_meter(const struct snapshot_view *v, uint32_t i)
{
    struct snapshot_meter m;
    memcpy(&m, v->data + sizeof v->head + (uint64_t)i * sizeof m, sizeof m);
    return m;
}

struct snapshot_event snapshot_event(const struct snapshot_view *v, uint32_t i)
{
    struct snapshot_event event;
    memcpy(&event, v->data + events_at(v->head.meters) + (uint64_t)i * sizeof event, sizeof event);
    event.kind = event.kind < SNAPSHOT_EVENT_KINDS ? event.kind : SNAPSHOT_EVENT_KINDS - 1;
    event.size = end_within(event.at, event.size);
    return event;
}

struct snapshot_piece snapshot_piece(const struct snapshot_view *v, uint32_t i)
{
    struct snapshot_piece p;
    uint64_t at = pieces_at(v->head.meters, v->head.events) + (uint64_t)i * sizeof p;
    memcpy(&p, v->data + at, sizeof p);
    p.state = p.state < SNAPSHOT_STATES ? p.state : SNAPSHOT_STATES - 1;
    p.kind = p.kind <= SNAPSHOT_TEMPORARY ? p.kind : SNAPSHOT_NOBODY;
    p.size = end_within(p.at, p.size);
    return p;
}
