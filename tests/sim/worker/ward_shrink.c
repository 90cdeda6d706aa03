#include "tests/sim/worker/ward_shrink.h"

#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORLD_SECONDS 60u /* of processor time */
#define TIMES         3u  /* in which a candidate is played */
#define SHRINK_NS     (90 * NS_PER_S)

pid_t ward_fork(void)
{
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        perror("worker_sim: fork");
        exit(2);
    }
    return pid;
}

void ward_time_limit(void)
{
    /* the parent's end ends the process, too */
    const struct itimerval t = {.it_value = {.tv_sec = WORLD_SECONDS}};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setitimer(ITIMER_PROF, &t, NULL); /* SIGPROF ends the process */
}

void ward_verdict_of(int status, const char *report, struct ward_verdict *ret_verdict)
{
    *ret_verdict = (struct ward_verdict){.broken = status != 0};
    char *text = ret_verdict->text;
    if (status == 0) {
        return;
    }
    if (report[0] != '\0') {
        (void)snprintf(text, WARD_FAIL_BYTES, "%s", report);
    } else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF) {
        (void)snprintf(text, WARD_FAIL_BYTES, "hangs: the world takes %u s", WORLD_SECONDS);
    } else if (WIFSIGNALED(status)) {
        (void)snprintf(text, WARD_FAIL_BYTES, "signal %d: %s", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
    } else {
        (void)snprintf(text, WARD_FAIL_BYTES, "status %d: it ended itself", WEXITSTATUS(status));
    }
}

void ward_try(const struct ward_course *p, FILE *log, struct ward_verdict *ret_verdict)
{
    char *report =
        mmap(NULL, WARD_FAIL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED) {
        abort();
    }
    pid_t pid = ward_fork();
    if (pid == 0) {
        ward_report = report;
        ward_time_limit();
        (void)ward_run(p, log);
        (void)fflush(NULL);
        _exit(0);
    }
    int status = 0;
    if (waitpid(pid, &status, 0) != pid) {
        perror("worker_sim: waitpid");
        exit(2);
    }
    ward_verdict_of(status, report, ret_verdict);
    (void)munmap(report, WARD_FAIL_BYTES);
}

/* The same rule is broken, by whatever job or buffer. */
static bool same(const struct ward_verdict *a, const struct ward_verdict *b)
{
    size_t size = strcspn(a->text, ":");
    return a->broken && b->broken && strncmp(a->text, b->text, size + 1) == 0;
}

struct search {
    struct ward_course *course;
    struct ward_verdict *verdict;
    unsigned left;     /* tries */
    uint64_t until_ns; /* of the real clock */
};

static bool more(const struct search *x)
{
    return x->left > 0 && ward_real_ns() < x->until_ns;
}

/* Takes the candidate over if it breaks the same rule. Without an event the commands of the device
 * take other times, so the candidate is played with several. */
static bool attempt(struct search *x, struct ward_course *candidate)
{
    struct ward_verdict v;
    uint64_t times = candidate->params.times;
    for (uint64_t i = 0; i < TIMES && more(x); i++, x->left--) {
        candidate->params.times = i == 0 ? times : i;
        ward_try(candidate, NULL, &v);
        if (same(x->verdict, &v)) {
            ward_course_finish(x->course);
            *x->course = *candidate;
            *x->verdict = v;
            return true;
        }
    }
    ward_course_finish(candidate);
    return false;
}

/* Without `count` events from `at` on. */
static bool without(struct search *x, unsigned at, unsigned count)
{
    struct ward_course p;
    ward_course_copy(x->course, &p);
    memmove(&p.event[at], &p.event[at + count], (p.count - at - count) * sizeof p.event[0]);
    p.count -= count;
    return attempt(x, &p);
}

static void drop_kind(struct search *x, enum ward_kind kind)
{
    struct ward_course p;
    ward_course_copy(x->course, &p);
    unsigned kept = 0;
    for (unsigned i = 0; i < p.count; i++) {
        if (p.event[i].kind != kind) {
            p.event[kept++] = p.event[i];
        }
    }
    bool any = kept < p.count;
    p.count = kept;
    if (any) {
        (void)attempt(x, &p);
    } else {
        ward_course_finish(&p);
    }
}

/* A rule of a job or a buffer needs few of the many events before it: large pieces first. */
static void drop_events(struct search *x)
{
    for (unsigned size = (x->course->count + 1) / 2; size > 0; size /= 2) {
        for (unsigned at = 0; at < x->course->count && more(x);) {
            unsigned count = x->course->count - at < size ? x->course->count - at : size;
            at += without(x, at, count) ? 0 : count;
        }
    }
}

/* Returns whether the course has the value now. */
static bool ease(struct search *x, size_t param, uint64_t value)
{
    struct ward_course p;
    ward_course_copy(x->course, &p);
    uint64_t *now = (uint64_t *)(void *)((char *)&p.params + param);
    if (*now == value) {
        ward_course_finish(&p);
        return true;
    }
    *now = value;
    return attempt(x, &p);
}

/* What a world can do without. */
static void ease_all(struct search *x)
{
    static const size_t NONE[] = {
        offsetof(struct ward_params, fault),         offsetof(struct ward_params, refuse_memory),
        offsetof(struct ward_params, refuse_unmap),  offsetof(struct ward_params, refuse_host),
        offsetof(struct ward_params, refuse_launch), offsetof(struct ward_params, cancels),
        offsetof(struct ward_params, deadlines),     offsetof(struct ward_params, window_us),
        offsetof(struct ward_params, batches),       offsetof(struct ward_params, quiet),
        offsetof(struct ward_params, imports),       offsetof(struct ward_params, registers),
        offsetof(struct ward_params, later)};
    static const size_t FEW[] = {
        offsetof(struct ward_params, tenants), offsetof(struct ward_params, streams),
        offsetof(struct ward_params, steps_most), offsetof(struct ward_params, jobs_most)};
    for (size_t i = 0; i < sizeof NONE / sizeof NONE[0]; i++) {
        (void)ease(x, NONE[i], 0);
    }
    for (size_t i = 0; i < sizeof FEW / sizeof FEW[0]; i++) {
        for (uint64_t n = 1; n <= 3 && !ease(x, FEW[i], n); n++) {
        }
    }
}

void ward_shrink(struct ward_course *p, struct ward_verdict *v, unsigned tries)
{
    struct search x = {
        .course = p, .verdict = v, .left = tries, .until_ns = ward_real_ns() + SHRINK_NS};
    for (unsigned kind = 0; kind < WARD_KIND_COUNT; kind++) {
        drop_kind(&x, (enum ward_kind)kind);
    }
    drop_events(&x);
    ease_all(&x);
    drop_events(&x);
}
