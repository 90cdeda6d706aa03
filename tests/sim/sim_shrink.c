#include "tests/sim/sim_shrink.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/sim.h"

pid_t world_fork(void)
{
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        perror("front_sim: fork");
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

void course_try(const struct course *p, FILE *log, struct verdict *ret_verdict)
{
    char *report =
        mmap(NULL, SIM_FAIL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED) {
        abort();
    }
    pid_t pid = world_fork();
    if (pid == 0) {
        sim_report = report;
        world_limit();
        (void)sim_run(p, log);
        _exit(0);
    }
    int status = 0;
    if (waitpid(pid, &status, 0) != pid) {
        perror("front_sim: waitpid");
        exit(2);
    }
    sim_clear(pid);
    verdict_of(status, report, ret_verdict);
    (void)munmap(report, SIM_FAIL_BYTES);
}

/* The same rule is broken, by whatever job or buffer. */
static bool same(const struct verdict *a, const struct verdict *b)
{
    size_t size = strcspn(a->text, ":");
    return a->broken && b->broken && strncmp(a->text, b->text, size + 1) == 0;
}

struct search {
    struct course *course;
    struct verdict *verdict;
    unsigned left; /* tries */
};

/* Takes the candidate over if it breaks the same rule. */
static bool attempt(struct search *x, struct course *candidate)
{
    struct verdict v;
    if (x->left == 0) {
        course_finish(candidate);
        return false;
    }
    x->left--;
    course_try(candidate, NULL, &v);
    if (!same(x->verdict, &v)) {
        course_finish(candidate);
        return false;
    }
    course_finish(x->course);
    *x->course = *candidate;
    *x->verdict = v;
    return true;
}

/* Without `count` events from `at` on. */
static bool without(struct search *x, unsigned at, unsigned count)
{
    struct course p;
    course_copy(x->course, &p);
    memmove(&p.event[at], &p.event[at + count], (p.count - at - count) * sizeof p.event[0]);
    p.count -= count;
    return attempt(x, &p);
}

static void drop_events(struct search *x)
{
    for (unsigned size = (x->course->count + 1) / 2; size > 0; size /= 2) {
        for (unsigned at = 0; at < x->course->count && x->left > 0;) {
            unsigned count = x->course->count - at < size ? x->course->count - at : size;
            at += without(x, at, count) ? 0 : count;
        }
    }
}

/* Smaller numbers first. Those of clients and devices end events of the others. */
static void ease(struct search *x, uint64_t *(*param)(struct course_params *), uint64_t value)
{
    struct course p;
    course_copy(x->course, &p);
    if (*param(&p.params) == value) {
        course_finish(&p);
        return;
    }
    *param(&p.params) = value;
    (void)attempt(x, &p);
}

static uint64_t *clients(struct course_params *p)
{
    return &p->clients;
}

static uint64_t *devices(struct course_params *p)
{
    return &p->devices;
}

static uint64_t *streams(struct course_params *p)
{
    return &p->streams;
}

static uint64_t *faults(struct course_params *p)
{
    return &p->faults;
}

void course_shrink(struct course *p, struct verdict *v, unsigned tries)
{
    struct search x = {.course = p, .verdict = v, .left = tries};
    drop_events(&x);
    ease(&x, faults, 0);
    ease(&x, streams, 1);
    for (uint64_t n = 1; n <= 3; n++) {
        ease(&x, devices, n < p->params.devices ? n : p->params.devices);
        ease(&x, clients, n < p->params.clients ? n : p->params.clients);
    }
    drop_events(&x);
}
