#include "proto/picture.h"

#include <string.h>

_Static_assert(sizeof(struct picture_meter) == 64 && sizeof(struct picture_event) == 24 &&
                   sizeof(struct picture_piece) == 40 && sizeof(struct picture_head) % 8 == 0,
               "records of a picture lie without gaps");

static uint64_t events_at(uint32_t meters)
{
    return sizeof(struct picture_head) + (uint64_t)meters * sizeof(struct picture_meter);
}

static uint64_t pieces_at(uint32_t meters, uint32_t events)
{
    return events_at(meters) + (uint64_t)events * sizeof(struct picture_event);
}

uint64_t picture_bytes(uint32_t meters, uint32_t events, uint32_t pieces)
{
    return pieces_at(meters, events) + (uint64_t)pieces * sizeof(struct picture_piece);
}

struct picture_room picture_room(void *data, uint32_t meters, uint32_t events)
{
    uint8_t *at = data;
    return (struct picture_room){.head = data,
                                 .meters = (void *)(at + sizeof(struct picture_head)),
                                 .events = (void *)(at + events_at(meters)),
                                 .pieces = (void *)(at + pieces_at(meters, events))};
}

int picture_open(const void *data, size_t size, struct picture_view *ret_view, struct err *e)
{
    struct picture_view v = {.data = data};
    if (size < sizeof v.head) {
        return err_set(e, ERR_PROTOCOL, "a picture of %zu bytes", size);
    }
    memcpy(&v.head, data, sizeof v.head);
    const struct picture_head *h = &v.head;
    if (h->version != PICTURE_VERSION) {
        return err_set(e, ERR_PROTOCOL, "a picture of version %u, this is %u", h->version,
                       PICTURE_VERSION);
    }
    if (h->meters > PICTURE_METERS_MAX || h->events > PICTURE_EVENTS_MAX ||
        h->pieces > PICTURE_PIECES_MAX) {
        return err_set(e, ERR_PROTOCOL, "a picture of %u meters, %u events and %u pieces",
                       h->meters, h->events, h->pieces);
    }
    if (picture_bytes(h->meters, h->events, h->pieces) > size) {
        return err_set(e, ERR_PROTOCOL,
                       "a picture of %zu bytes cannot hold %u meters, %u events and %u pieces",
                       size, h->meters, h->events, h->pieces);
    }
    *ret_view = v;
    return 0;
}

static uint64_t end_within(uint64_t at, uint64_t size)
{
    return size <= UINT64_MAX - at ? size : UINT64_MAX - at;
}

struct picture_meter picture_meter(const struct picture_view *v, uint32_t i)
{
    struct picture_meter m;
    memcpy(&m, v->data + sizeof v->head + (uint64_t)i * sizeof m, sizeof m);
    return m;
}

struct picture_event picture_event(const struct picture_view *v, uint32_t i)
{
    struct picture_event event;
    memcpy(&event, v->data + events_at(v->head.meters) + (uint64_t)i * sizeof event, sizeof event);
    event.kind = event.kind < PICTURE_EVENT_KINDS ? event.kind : PICTURE_EVENT_KINDS - 1;
    event.size = end_within(event.at, event.size);
    return event;
}

struct picture_piece picture_piece(const struct picture_view *v, uint32_t i)
{
    struct picture_piece p;
    uint64_t at = pieces_at(v->head.meters, v->head.events) + (uint64_t)i * sizeof p;
    memcpy(&p, v->data + at, sizeof p);
    p.state = p.state < PICTURE_STATES ? p.state : PICTURE_STATES - 1;
    p.kind = p.kind <= PICTURE_TEMPORARY ? p.kind : PICTURE_NOBODY;
    p.size = end_within(p.at, p.size);
    return p;
}
