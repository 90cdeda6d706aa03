/* The log, and the last request that was refused. */
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

/* ---- the last refusal -------------------------------------------------------------------------*/

int refuse(struct pool *p, const struct pool_ask *ask, int rc, struct err *e)
{
    struct pool_refusal *r = &p->refusal;
    (void)warm_flush(p);
    if (rc != ERR_DEVICE_MEMORY || !p->moving.more) { /* else the request is not decided */
        p->stats.failures++;
        event_add(p, POOL_EVENT_REFUSE,
                  (struct pool_event){.size = ask->size,
                                      .tenant = (uint16_t)ask->tenant,
                                      .stream = (uint8_t)ask->stream,
                                      .value = (uint32_t)-rc});
    }
    if (rc == ERR_INVALID) {
        return rc;
    }
    *r = (struct pool_refusal){.code = rc,
                               .tenant = (uint16_t)ask->tenant,
                               .wanted = ask->size,
                               .largest_free = stats_largest_free(p),
                               .pending = p->stats.pending,
                               .moves = rc == ERR_DEVICE_MEMORY && p->moving.more,
                               .full = rc == ERR_DEVICE_MEMORY && p->moving.full};
    if (e == NULL || (rc != ERR_DEVICE_MEMORY && rc != ERR_LIMIT)) {
        return rc;
    }
    return err_wrap(e,
                    "%llu bytes wanted by tenant %u (holds %llu); largest free %llu; pool has %llu "
                    "of %llu, %llu wait for streams",
                    LL(ask->size), ask->tenant, LL(pool_tenant_used(p, ask->tenant)),
                    LL(r->largest_free), LL(p->stats.size), LL(p->stats.limit), LL(r->pending));
}

void pool_refusal(const struct pool *p, struct pool_refusal *ret_refusal)
{
    *ret_refusal = p->refusal;
}
