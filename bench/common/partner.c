#include "bench/common/partner.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/common/echo.h"

void partner_start(struct partner *p, partner_fn work, const void *data)
{
    int to[2];
    int from[2];
    if (pipe(to) != 0 || pipe(from) != 0) {
        bench_die("pipes: %s", strerror(errno));
    }
    p->pid = fork();
    if (p->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)close(to[1]);
        (void)close(from[0]);
        work(data, to[0], from[1]);
        _Exit(EXIT_FAILURE);
    }
    if (p->pid < 0) {
        bench_die("fork: %s", strerror(errno));
    }
    (void)close(to[0]);
    (void)close(from[1]);
    p->to = to[1];
    p->from = from[0];
}

void partner_read(const struct partner *p, void *out, size_t size)
{
    if (read(p->from, out, size) != (ssize_t)size) {
        bench_die("another client of this benchmark has ended");
    }
}

void partner_signal(const struct partner *p)
{
    const char byte = 0;
    if (write(p->to, &byte, 1) != 1) {
        bench_die("another client of this benchmark has ended");
    }
}

static int await_end(struct partner *p)
{
    int status = 0;
    (void)close(p->to);
    (void)close(p->from);
    if (waitpid(p->pid, &status, 0) != p->pid) {
        bench_die("waiting for another client: %s", strerror(errno));
    }
    return status;
}

void partner_end(struct partner *p)
{
    int status = await_end(p);
    if (status != 0) {
        bench_die("another client of this benchmark ended with status %#x", (unsigned)status);
    }
}

void partner_kill(struct partner *p)
{
    (void)kill(p->pid, SIGKILL);
    if (!WIFSIGNALED(await_end(p))) {
        bench_die("another client of this benchmark had ended by itself");
    }
}
