#include "daemon/backend/cuda/driver/clock.h"

#include "common/clock.h"
#include "daemon/backend/cuda/driver/error.h"

#define ANCHOR_AGE_NS NS_PER_S
#define FIRST_ROUNDS  5

/* ns from one event to another, negative if `to` came first; 0 if the driver does not know. */
static int64_t distance(const struct cuda_clock *c, CUevent from, CUevent to)
{
    float ms = 0;
    return c->cu->EventElapsedTime(&ms, from, to) == CUDA_SUCCESS ? (int64_t)((double)ms * 1e6) : 0;
}

static void swap(struct cuda_clock *c)
{
    CUevent old = c->anchor;
    c->anchor = c->next;
    c->next = old;
}

/* Sets the anchor: of several events, the one that passed within the shortest time as seen by
 * the host. */
static int first_anchor(struct cuda_clock *c, struct err *e)
{
    uint64_t shortest = UINT64_MAX;
    for (int round = 0; round < FIRST_ROUNDS; round++) {
        uint64_t before = clock_now_ns();
        int rc = CUDA_CALL(c->cu, e, EventRecord, c->next, c->stream);
        rc = rc == 0 ? CUDA_CALL(c->cu, e, EventSynchronize, c->next) : rc;
        if (rc != 0) {
            return rc;
        }
        uint64_t took = clock_now_ns() - before;
        if (took < shortest) {
            shortest = took;
            c->anchor_ns = before + took / 2;
            swap(c);
        }
    }
    return 0;
}

int cuda_clock_init(struct cuda_clock *c, const struct cuda_driver *cu, struct err *e)
{
    *c = (struct cuda_clock){.cu = cu};
    int rc = CUDA_CALL(cu, e, StreamCreateWithPriority, &c->stream, CU_STREAM_NON_BLOCKING, 0);
    rc = rc == 0 ? CUDA_CALL(cu, e, EventCreate, &c->anchor, CU_EVENT_DEFAULT) : rc;
    rc = rc == 0 ? CUDA_CALL(cu, e, EventCreate, &c->next, CU_EVENT_DEFAULT) : rc;
    return rc == 0 ? first_anchor(c, e) : rc;
}

void cuda_clock_finish(struct cuda_clock *c)
{
    if (c->next) {
        c->cu->EventDestroy(c->next);
    }
    if (c->anchor) {
        c->cu->EventDestroy(c->anchor);
    }
    if (c->stream) {
        c->cu->StreamDestroy(c->stream);
    }
    *c = (struct cuda_clock){0};
}

static void settle(struct cuda_clock *c, uint64_t now)
{
    uint64_t ns = c->anchor_ns + (uint64_t)distance(c, c->anchor, c->next);
    ns = ns < c->next_ns ? c->next_ns : ns;
    ns = ns > now ? now : ns;
    swap(c);
    c->anchor_ns = ns;
    c->pending = false;
}

void cuda_clock_tick(struct cuda_clock *c)
{
    uint64_t now = clock_now_ns();
    if (c->pending && c->cu->EventQuery(c->next) == CUDA_SUCCESS) {
        settle(c, now);
    }
    if (!c->pending && now - c->anchor_ns > ANCHOR_AGE_NS) {
        c->next_ns = now;
        c->pending = c->cu->EventRecord(c->next, c->stream) == CUDA_SUCCESS;
    }
}

uint64_t cuda_clock_of(struct cuda_clock *c, CUevent event)
{
    uint64_t now = clock_now_ns();
    uint64_t ns = c->anchor_ns + (uint64_t)distance(c, c->anchor, event);
    if (ns > now) { /* the event has passed, so the anchor was set too late */
        c->anchor_ns -= ns - now;
        ns = now;
    }
    return ns;
}
