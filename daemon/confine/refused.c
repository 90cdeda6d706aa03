#include "daemon/confine/refused.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#include "common/log.h"
#include "daemon/confine/calls.h"

#define CALLS_MAX 1024
#ifndef SYS_SECCOMP /* si_code; not in the C library's headers */
#define SYS_SECCOMP 1
#endif

/* What the handler needs, because it gets no argument: the calls that were named already. */
static _Atomic uint64_t said[CALLS_MAX / 64];

static bool first_time(int number)
{
    if (number < 0 || number >= CALLS_MAX) {
        return false;
    }
    uint64_t bit = UINT64_C(1) << number % 64;
    return (atomic_fetch_or(&said[number / 64], bit) & bit) == 0;
}

static void result_set(ucontext_t *u, long value)
{
#if defined(__x86_64__)
    u->uc_mcontext.gregs[REG_RAX] = value;
#elif defined(__aarch64__)
    u->uc_mcontext.regs[0] = (unsigned long long)value;
#else
    (void)u;
    (void)value;
#endif
}

/* The signal comes at the call itself, in the thread that made it. log_say takes no lock. */
static void on_refused(int signal, siginfo_t *info, void *context)
{
    int kept = errno;
    int number = info->si_syscall;
    if (signal != SIGSYS || info->si_code != SYS_SECCOMP) {
        return; /* sent by a process, not by the filter */
    }
    if (first_time(number)) {
        const char *name = call_name(number);
        log_say(LOG_CALL_REFUSED,
                "system call %d (%s) was refused: this process is confined (gpud-launcher(8))",
                number, name != NULL ? name : "see syscalls(2)");
    }
    result_set(context, -EPERM);
    errno = kept;
}

int refused_watch(struct err *e)
{
    struct sigaction action = {.sa_sigaction = on_refused, .sa_flags = SA_SIGINFO | SA_NODEFER};
    (void)sigemptyset(&action.sa_mask);
    return sigaction(SIGSYS, &action, NULL) == 0
               ? 0
               : err_errno(e, ERR_INTERNAL, "watching for refused system calls");
}
