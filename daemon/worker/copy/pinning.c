#include "daemon/worker/copy/pinning.h"

#include <time.h>

#include "common/clock.h"
#include "common/log.h"

#define PINNING_CHECK_NS (200 * NS_PER_US)

static const char *const names[PINNING_SIDES] = {"input", "output"};

static const struct backend_memory_ops *ops_of(const struct pinning *p)
{
    return p->device->b->memory;
}

static const struct memfd *side_of(const struct pinning *p, unsigned side)
{
    return side == 0 ? &p->staging->input : &p->staging->output;
}

static int pin(struct pinning *p, unsigned side, void *data, size_t size, struct err *e)
{
    int rc = ops_of(p)->register_host(p->device->d, data, size, side != 0, e);
    p->found[side] = rc == 0 ? data : NULL;
    return rc;
}

/* Some drivers register only writable memory: the input is then mapped again. */
static void pin_side(struct pinning *p, unsigned side)
{
    const struct memfd *memory = side_of(p, side);
    struct err e = ERR_INIT;
    int rc = pin(p, side, memory->data, memory->size, &e);
    if (rc != 0 && side == 0 && !device_is_lost(rc)) {
        rc = staging_writable(p->staging, &p->writable, &e);
        rc = rc == 0 ? pin(p, side, p->writable.data, p->writable.size, &e) : rc;
    }
    if (rc != 0) {
        log_say(LOG_NOT_PINNED, "%s staging memory cannot be pinned, so copies are slower: %s",
                names[side], e.text);
    }
}

static void on_work(uv_work_t *work)
{
    struct pinning *p = work->data;
    for (unsigned side = 0; side < PINNING_SIDES; side++) {
        pin_side(p, side);
    }
    p->took_ns = clock_now_ns() - p->begin_ns;
    atomic_store_explicit(&p->ended, true, memory_order_release);
}

/* Applies the thread's result, once. */
static void use(struct pinning *p)
{
    if (!p->busy) {
        return;
    }
    p->busy = false;
    if (p->writable.data != NULL) {
        staging_replace(p->staging, &p->writable, p->found[0] != NULL);
    }
    p->staging->input_known = p->found[0] != NULL;
    p->staging->output_known = p->found[1] != NULL;
    if (p->found[0] != NULL && p->found[1] != NULL) {
        log_say(LOG_DEVICE_OPENED, "staging memory was pinned in %.0f ms",
                (double)p->took_ns / 1e6);
    }
}

static void on_work_done(uv_work_t *work, int status)
{
    (void)status;
    use(work->data);
}

void pinning_start(struct pinning *p, struct device *device, struct staging *staging,
                   uv_loop_t *loop)
{
    *p = (struct pinning){.work.data = p,
                          .device = device,
                          .staging = staging,
                          .begin_ns = clock_now_ns(),
                          .writable = MEMFD_NONE};
    if (ops_of(p)->register_host == NULL) {
        staging->input_known = staging->output_known = true;
        return;
    }
    if (uv_queue_work(loop, &p->work, on_work, on_work_done) != 0) {
        log_say(LOG_NOT_PINNED, "staging memory cannot be pinned, so copies are slower: no thread");
        return;
    }
    p->busy = true;
    const struct timespec pause = {.tv_nsec = (long)(PINNING_CHECK_NS)};
    bool ended = false;
    while (!ended && clock_now_ns() - p->begin_ns < PINNING_BRIEF_NS) {
        (void)nanosleep(&pause, NULL);
        ended = atomic_load_explicit(&p->ended, memory_order_acquire);
    }
    if (ended) {
        use(p);
    }
}

bool pinning_busy(const struct pinning *p)
{
    return p->busy;
}

void pinning_finish(struct pinning *p)
{
    for (unsigned i = 0; i < PINNING_SIDES; i++) {
        if (p->found[i] != NULL) {
            ops_of(p)->unregister_host(p->device->d, p->found[i], side_of(p, i)->size);
            p->found[i] = NULL;
        }
    }
}
