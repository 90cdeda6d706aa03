/* What is known about the last request that was refused. */
#include "daemon/pool/pool_int.h"

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
