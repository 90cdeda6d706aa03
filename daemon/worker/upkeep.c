#include "daemon/worker/upkeep.h"

#include "common/clock.h"
#include "common/log.h"
#include "daemon/pool/clean.h"

/* Memory that is not given back by then stays: it lies in blocks that are in use. */
#define PATIENCE_NS (2 * MEMORY_AGE_NS)

void upkeep_init(struct upkeep *u, uv_loop_t *loop, struct device *device, upkeep_idle_fn idle,
                 void (*kick)(void *), void *data)
{
    *u = (struct upkeep){.device = device, .idle = idle, .kick = kick, .data = data};
    (void)uv_timer_init(loop, &u->timer); /* cannot fail */
    u->timer.data = u;
}

void upkeep_finish(struct upkeep *u)
{
    (void)uv_timer_stop(&u->timer);
    uv_close((uv_handle_t *)&u->timer, NULL);
}

bool upkeep_busy(const struct upkeep *u)
{
    return u->marker != NULL;
}

/* Free memory that may hold a tenant's bytes. The pool takes it as zeros from the end of this on,
 * so one that fails later ends the worker. Returns bytes. */
static uint64_t zero_some(struct upkeep *u)
{
    static const uint8_t ZEROS[16];
    struct device *dev = u->device;
    struct memory *memory = &dev->memory;
    struct pool_piece piece;
    struct err e = ERR_INIT;
    if (u->marker != NULL || !memory_crosses(memory) ||
        !pool_unclean(memory->pool, UPKEEP_ZERO, &piece)) {
        return 0;
    }
    const struct backend_ref at = {.block = piece.range, .offset = piece.offset};
    uint64_t bytes = piece.size;
    int rc = dev->b->stream->fill(dev->service, at, ZEROS, sizeof ZEROS, bytes, &e);
    bool ordered = rc == 0;
    rc = ordered ? device_mark(dev, dev->service, &u->marker, &e) : rc;
    if (rc != 0) {
        memory->hung = memory->hung || ordered;
        pool_cleared(memory->pool, &piece, false, memory_service(memory), 0);
        log_warn("free memory is not zeroed ahead: %s", e.text);
        return 0;
    }
    memory_mark(memory, memory_service(memory), u->marker, &u->point);
    pool_cleared(memory->pool, &piece, true, u->point.stream, u->point.seq);
    u->kick(u->data);
    return bytes;
}

void upkeep_poll(struct upkeep *u)
{
    struct err e = ERR_INIT;
    const struct backend_marker_ops *ops = u->device->b->marker;
    enum backend_state state = u->marker != NULL ? ops->state(u->marker, &e) : BACKEND_PENDING;
    if (state != BACKEND_DONE && state != BACKEND_FAILED) {
        return;
    }
    if (state == BACKEND_FAILED) {
        log_error("zeroing free memory failed: %s", e.text);
        u->device->memory.hung = true;
    }
    memory_passed(&u->device->memory, &u->point);
    ops->release(u->marker);
    u->marker = NULL;
}

enum upkeep_next upkeep_turn(struct upkeep *u, uint64_t now_ns)
{
    bool idle = u->idle(u->data);
    u->since_ns = u->fresh || !idle ? now_ns : u->since_ns;
    u->fresh = false;
    uint64_t done = memory_tick(&u->device->memory, now_ns);
    done += idle ? zero_some(u) : 0;
    if (done > 0 || upkeep_busy(u)) {
        return UPKEEP_SOON;
    }
    bool waits = memory_spare(&u->device->memory) && now_ns - u->since_ns <= PATIENCE_NS;
    return waits || !idle ? UPKEEP_LATER : UPKEEP_STOP;
}

static void on_timer(uv_timer_t *timer)
{
    struct upkeep *u = timer->data;
    enum upkeep_next next = upkeep_turn(u, clock_now_ns());
    if (next != UPKEEP_STOP) {
        (void)uv_timer_start(timer, on_timer, next == UPKEEP_SOON ? UPKEEP_SOON_MS : UPKEEP_MS, 0);
    }
}

void upkeep_begin(struct upkeep *u)
{
    u->fresh = true;
    if (!uv_is_active((uv_handle_t *)&u->timer)) {
        (void)uv_timer_start(&u->timer, on_timer, UPKEEP_MS, 0);
    }
}
