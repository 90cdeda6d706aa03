#include "daemon/pool/pool_int.h"

void pool_stamp(struct pool *p, uint64_t ns)
{
    uint64_t n = p->event_count;
    if (n > 0 && p->event[(n - 1) & p->event_mask].kind != POOL_EVENT_STAMP) {
        event_add(p, POOL_EVENT_STAMP, (struct pool_event){.at = ns});
    }
}

void event_moved(struct pool *p, const struct pool_move *move, uint64_t from, uint64_t to,
                 uint64_t calls)
{
    struct pool_event event = {.at = from,
                               .size = move->to->size,
                               .tenant = move->tenant,
                               .stream = move->stream < p->streams ? (uint8_t)move->stream : 0,
                               .value = (uint32_t)move->seq};
    event_add(p, POOL_EVENT_MOVE, event);
    event.at = to;
    event.value = 0;
    event_add(p, calls == p->stats.driver_calls ? POOL_EVENT_HIT : POOL_EVENT_ALLOC, event);
}

uint32_t pool_events(const struct pool *p, uint64_t from, struct pool_event *ret_events,
                     uint32_t max, uint64_t *ret_first)
{
    uint64_t kept = (uint64_t)p->event_mask + 1;
    uint64_t oldest = p->event_count > kept ? p->event_count - kept : 0;
    uint64_t first = from < oldest ? oldest : from;
    uint32_t n = 0;
    *ret_first = first;
    for (; n < max && first + n < p->event_count; n++) {
        ret_events[n] = p->event[(first + n) & p->event_mask];
    }
    return n;
}
