#include "daemon/worker/run/pump.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/descriptors.h"

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

/* The flag is cleared before the device is asked: a signal that comes meanwhile makes the loop
 * ask again. */
static void on_wake(void *data)
{
    struct pump *p = data;
    (void)atomic_exchange(&p->signalled, false); /* acquires what the signalling threads wrote */
    ask(p);
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

/* An eventfd instead of uv_async_t, because libuv spins while another thread is inside
 * uv_async_send. A thread that is woken on the waker's processor preempts it just there. The
 * spin is a thousand pauses of the processor and a yield at each wake-up, some 20 us. */
int pump_init(struct pump *p, uv_loop_t *loop, struct err *e)
{
    *p = (struct pump){.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    atomic_init(&p->signalled, false);
    if (p->fd < 0) {
        return err_errno(e, ERR_IO, "wake-up of the loop");
    }
    if (bell_create(loop, p->fd, UV_READABLE, on_wake, p, &p->wake, e) != 0) {
        descriptor_close(&p->fd);
        return err_wrap(e, "wake-up of the loop");
    }
    (void)uv_timer_init(loop, &p->timer); /* cannot fail, like the next call */
    (void)uv_idle_init(loop, &p->spin);
    p->timer.data = p->spin.data = p;
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

void pump_again(struct pump *p)
{
    (void)uv_idle_start(&p->spin, on_spin);
}

void pump_wake(void *pump)
{
    struct pump *p = pump;
    const uint64_t one = 1;
    if (!atomic_exchange(&p->signalled, true)) {
        /* it fails only if the count is full, and then the loop wakes as well */
        (void)!write(p->fd, &one, sizeof one);
    }
}

void pump_stop(struct pump *p)
{
    stop(p);
    atomic_store(&p->signalled, true);
    bell_destroy(p->wake);
    uv_close((uv_handle_t *)&p->timer, NULL);
    uv_close((uv_handle_t *)&p->spin, NULL);
}

void pump_finish(struct pump *p)
{
    descriptor_close(&p->fd);
}
