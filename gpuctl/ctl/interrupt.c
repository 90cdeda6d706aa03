#include "gpuctl/ctl/interrupt.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "common/clock.h"

#define SLICE_MS 200u /* a signal may come just before the sleep begins */

static volatile sig_atomic_t seen;

static void on_interrupt(int number)
{
    (void)number;
    seen = 1;
}

void interrupt_catch(void)
{
    const struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    seen = 0;
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

void interrupt_release(void)
{
    (void)signal(SIGINT, SIG_DFL);
    (void)signal(SIGTERM, SIG_DFL);
}

bool interrupt_seen(void)
{
    return seen != 0;
}

bool interrupt_output_gone(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO};
    return poll(&out, 1, 0) > 0 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

bool interrupt_sleep_until(uint64_t ns, bool output)
{
    uint64_t now;
    while (seen == 0 && (now = clock_now_ns()) < ns) {
        struct pollfd out = {.fd = output ? STDOUT_FILENO : -1};
        uint64_t left = (ns - now) / NS_PER_MS + 1;
        if (poll(&out, 1, (int)(left < SLICE_MS ? left : SLICE_MS)) > 0 &&
            (out.revents & (POLLERR | POLLHUP)) != 0) {
            return false;
        }
    }
    return seen == 0;
}
