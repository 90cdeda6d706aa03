#include "tests/sim/verdict.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

pid_t world_fork(void)
{
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        perror("sim: fork");
        exit(2);
    }
    return pid;
}

void world_limit(void)
{
    /* the parent's end ends the process, too */
    const struct itimerval t = {.it_value = {.tv_sec = WORLD_SECONDS}};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setitimer(ITIMER_PROF, &t, NULL); /* SIGPROF ends the process */
}

void verdict_of(int status, const char *report, struct verdict *ret_verdict)
{
    *ret_verdict = (struct verdict){.broken = status != 0};
    if (status == 0) {
        return;
    }
    if (report[0] != '\0') {
        (void)snprintf(ret_verdict->text, sizeof ret_verdict->text, "%s", report);
    } else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF) {
        (void)snprintf(ret_verdict->text, sizeof ret_verdict->text, "hangs: the world takes %u s",
                       WORLD_SECONDS);
    } else if (WIFSIGNALED(status)) {
        (void)snprintf(ret_verdict->text, sizeof ret_verdict->text, "signal %d: %s",
                       WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else {
        (void)snprintf(ret_verdict->text, sizeof ret_verdict->text, "status %d: it ended itself",
                       WEXITSTATUS(status));
    }
}

bool verdict_same(const struct verdict *a, const struct verdict *b)
{
    size_t size = strcspn(a->text, ":");
    return a->broken && b->broken && strncmp(a->text, b->text, size + 1) == 0;
}

pid_t verdict_play(void (*play)(void *data, char *report), void *data, struct verdict *ret_verdict)
{
    char *report =
        mmap(NULL, VERDICT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED) {
        abort();
    }
    pid_t pid = world_fork();
    if (pid == 0) {
        world_limit();
        play(data, report);
        (void)fflush(NULL);
        _exit(0);
    }
    int status = 0;
    if (waitpid(pid, &status, 0) != pid) {
        perror("sim: waitpid");
        exit(2);
    }
    verdict_of(status, report, ret_verdict);
    (void)munmap(report, VERDICT_BYTES);
    return pid;
}

void shrink_events(const struct shrinking *x)
{
    for (unsigned size = (x->count(x->data) + 1) / 2; size > 0; size /= 2) {
        for (unsigned at = 0; at < x->count(x->data) && x->more(x->data);) {
            unsigned rest = x->count(x->data) - at;
            unsigned count = rest < size ? rest : size;
            at += x->without(x->data, at, count) ? 0 : count;
        }
    }
}
