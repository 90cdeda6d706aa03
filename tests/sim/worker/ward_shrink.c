#include "tests/sim/worker/ward_shrink.h"

#include <stddef.h>
#include <string.h>

#define TIMES     3u /* in which a candidate is played */
#define SHRINK_NS (90 * NS_PER_S)

struct trial {
    const struct ward_course *course;
    FILE *log;
};

static void play(void *data, char *report)
{
    const struct trial *t = data;
    ward_report = report;
    (void)ward_run(t->course, t->log);
}

void ward_try(const struct ward_course *p, FILE *log, struct verdict *ret_verdict)
{
    struct trial t = {.course = p, .log = log};
    (void)verdict_play(play, &t, ret_verdict);
}

struct search {
    struct ward_course *course;
    struct verdict *verdict;
    unsigned left;     /* tries */
    uint64_t until_ns; /* of the real clock */
};

static bool more(const void *data)
{
    const struct search *x = data;
    return x->left > 0 && clock_now_ns() < x->until_ns;
}

static unsigned events(const void *data)
{
    const struct search *x = data;
    return x->course->count;
}

/* Takes the candidate over if it breaks the same rule. Without an event the commands of the device
 * take other times, so the candidate is played with several. */
static bool attempt(struct search *x, struct ward_course *candidate)
{
    struct verdict v;
    uint64_t times = candidate->params.times;
    for (uint64_t i = 0; i < TIMES && more(x); i++, x->left--) {
        candidate->params.times = i == 0 ? times : i;
        ward_try(candidate, NULL, &v);
        if (verdict_same(x->verdict, &v)) {
            ward_course_finish(x->course);
            *x->course = *candidate;
            *x->verdict = v;
            return true;
        }
    }
    ward_course_finish(candidate);
    return false;
}

static bool without(void *data, unsigned at, unsigned count)
{
    struct search *x = data;
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

void ward_shrink(struct ward_course *p, struct verdict *v, unsigned tries)
{
    struct search x = {
        .course = p, .verdict = v, .left = tries, .until_ns = clock_now_ns() + SHRINK_NS};
    const struct shrinking all = {.data = &x, .count = events, .more = more, .without = without};
    for (unsigned kind = 0; kind < WARD_KIND_COUNT; kind++) {
        drop_kind(&x, (enum ward_kind)kind);
    }
    shrink_events(&all);
    ease_all(&x);
    shrink_events(&all);
}
