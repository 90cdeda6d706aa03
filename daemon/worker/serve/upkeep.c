#include "daemon/worker/serve/upkeep.h"

#include "common/clock.h"
#include "common/log.h"

/* Memory that was not given back after this time lies in blocks that are in use. */
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

/* The next user of the memory zeroes it. After repeated failures nothing is zeroed ahead any
 * more. */
static void failed(struct upkeep *u, const struct err *why)
{
    u->failures++;
    log_say(LOG_ZEROING_FAILED, "free memory was not zeroed ahead: %s; %s", why->text,
            u->failures < UPKEEP_FAILURES ? "its next user zeroes it"
                                          : "from now on the next users zero it");
}

/* Zeroes free memory that may hold a tenant's bytes. Returns the number of bytes. */
static uint64_t zero_some(struct upkeep *u)
{
    static const uint8_t ZEROS[16];
    struct device *dev = u->device;
    struct memory *memory = &dev->memory;
    struct backend_ref at;
    uint64_t bytes = 0;
    struct err e = ERR_INIT;
    if (u->marker != NULL || u->failures >= UPKEEP_FAILURES || memory->hung ||
        !memory_ahead(memory, UPKEEP_ZERO, &at, &bytes)) {
        return 0;
    }
    int rc = dev->b->stream->fill(dev->service, at, ZEROS, sizeof ZEROS, bytes, &e);
    bool ordered = rc == 0;
    rc = ordered ? device_mark_service(dev, &u->marker, &u->point, &e) : rc;
    if (rc != 0) { /* without a mark the end of the zeros can never be known */
        memory->hung = memory->hung || ordered || device_is_lost(rc);
        memory_ahead_end(memory, false);
        failed(u, &e);
        return 0;
    }
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
    memory_passed(&u->device->memory, &u->point);
    memory_ahead_end(&u->device->memory, state == BACKEND_DONE);
    ops->release(u->marker);
    u->marker = NULL;
    if (state == BACKEND_DONE) {
        u->failures = 0;
    } else if (device_is_lost(e.code)) {
        log_say(LOG_WORKER_GIVES_UP, "zeroing free memory failed: %s", e.text);
        u->device->memory.hung = true;
    } else {
        failed(u, &e);
    }
}

enum upkeep_next upkeep_turn(struct upkeep *u, uint64_t now_ns)
{
    const struct backend_device_ops *ops = u->device->b->device;
    bool idle = u->idle(u->data);
    if (idle && ops->idle != NULL) {
        ops->idle(u->device->d);
    }
    u->since_ns = u->fresh || !idle ? now_ns : u->since_ns;
    u->fresh = false;
    uint64_t done = memory_tick(&u->device->memory, now_ns);
    done += idle ? zero_some(u) : 0;
    if (done > 0 || upkeep_busy(u)) {
        return UPKEEP_SOON;
    }
    bool waits = memory_has_surplus(&u->device->memory) && now_ns - u->since_ns <= PATIENCE_NS;
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
