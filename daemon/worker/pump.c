#include "daemon/worker/pump.h"

#include "common/clock.h"

#define BACKSTOP_MS 10u
#define POLL_MS     1u

static void stop(struct pump *p)
{
    (void)uv_timer_stop(&p->timer);
    (void)uv_idle_stop(&p->spin);
}

static void ask(struct pump *p)
{
    if (p->ask != NULL && !p->ask(p->data)) {
        stop(p);
    }
}

static void on_wake(uv_async_t *async)
{
    ask(async->data);
}

static void on_timer(uv_timer_t *timer)
{
    ask(timer->data);
}

static void on_spin(uv_idle_t *idle)
{
    struct pump *p = idle->data;
    if (clock_now_ns() > p->spin_until) {
        (void)uv_idle_stop(idle);
    }
    ask(p);
}

int pump_init(struct pump *p, uv_loop_t *loop, struct err *e)
{
    *p = (struct pump){.ask = NULL};
    int rc = uv_async_init(loop, &p->wake, on_wake);
    if (rc != 0) {
        return err_set(e, ERR_IO, "wake-up of the loop: %s", uv_strerror(rc));
    }
    (void)uv_timer_init(loop, &p->timer); /* these two cannot fail */
    (void)uv_idle_init(loop, &p->spin);
    p->wake.data = p->timer.data = p->spin.data = p;
    return 0;
}

void pump_start(struct pump *p, bool wakes, pump_fn ask_fn, void *data)
{
    p->wakes = wakes;
    p->ask = ask_fn;
    p->data = data;
}

void pump_kick(struct pump *p)
{
    unsigned ms = p->wakes ? BACKSTOP_MS : POLL_MS;
    if (!uv_is_active((uv_handle_t *)&p->timer)) {
        (void)uv_timer_start(&p->timer, on_timer, ms, ms);
    }
    if (!p->wakes) {
        p->spin_until = clock_now_ns() + PUMP_SPIN_NS;
        (void)uv_idle_start(&p->spin, on_spin);
    }
}

void pump_wake(void *pump)
{
    struct pump *p = pump;
    (void)uv_async_send(&p->wake); /* fails only on a handle that is no async */
}

void pump_finish(struct pump *p)
{
    stop(p);
    uv_close((uv_handle_t *)&p->wake, NULL);
    uv_close((uv_handle_t *)&p->timer, NULL);
    uv_close((uv_handle_t *)&p->spin, NULL);
}
