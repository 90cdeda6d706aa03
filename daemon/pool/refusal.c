/* Says why a request was refused, and the one useful remedy. */
#include <stdio.h>

#include "daemon/pool/pool_int.h"

const char *pool_advice_text(enum pool_advice advice)
{
    switch (advice) {
    case POOL_ADVICE_SMALLER:
        return "ask for less or raise the pool's limit";
    case POOL_ADVICE_OWN:
        return "free something of this tenant's or raise its hard limit";
    case POOL_ADVICE_WAIT:
        return "try again when the streams have advanced";
    case POOL_ADVICE_SPILL:
        return "move cold pieces to the host";
    case POOL_ADVICE_QUEUE:
        return "wait until something is freed";
    case POOL_ADVICE_MOVE:
        return "try again: pieces are being moved together";
    case POOL_ADVICE_NONE:
        break;
    }
    return "nothing helps";
}

static enum pool_advice advise(const struct pool *p, const struct pool_ask *ask, int rc,
                               uint16_t *ret_victim)
{
    unsigned victim = ask->tenant;
    uint64_t over = 0;
    if (rc == ERR_LIMIT) {
        return POOL_ADVICE_OWN;
    }
    if (rc != ERR_DEVICE_MEMORY) {
        return POOL_ADVICE_NONE;
    }
    uint64_t kept = quota_kept(p, ask);
    if (sat_add(ask->size, kept) > p->stats.limit) {
        return POOL_ADVICE_SMALLER;
    }
    uint64_t soon =
        sat_add(p->whole_bytes + p->stats.pending, sat_sub(p->stats.limit, p->stats.size));
    if (p->moving.more) {
        return POOL_ADVICE_MOVE;
    }
    if (p->moving.full || (p->stats.pending > 0 && soon >= sat_add(ask->size, kept))) {
        return POOL_ADVICE_WAIT;
    }
    if (!pool_victim(p, &victim, &over)) {
        return POOL_ADVICE_QUEUE;
    }
    *ret_victim = (uint16_t)victim;
    return POOL_ADVICE_SPILL;
}

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
                               .pending = p->stats.pending};
    r->advice = advise(p, ask, rc, &r->victim);
    if (e == NULL || (rc != ERR_DEVICE_MEMORY && rc != ERR_LIMIT)) {
        return rc;
    }
    char of[32] = "";
    if (r->advice == POOL_ADVICE_SPILL) {
        (void)snprintf(of, sizeof of, ", first of tenant %u", r->victim);
    }
    return err_wrap(e,
                    "%llu bytes wanted by tenant %u (holds %llu); largest free %llu; pool has %llu "
                    "of %llu, %llu wait for streams; %s%s",
                    LL(ask->size), ask->tenant, LL(pool_tenant_used(p, ask->tenant)),
                    LL(r->largest_free), LL(p->stats.size), LL(p->stats.limit), LL(r->pending),
                    pool_advice_text(r->advice), of);
}

void pool_refusal(const struct pool *p, struct pool_refusal *ret_refusal)
{
    *ret_refusal = p->refusal;
}
