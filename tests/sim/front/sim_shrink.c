#include "tests/sim/front/sim_shrink.h"

#include <string.h>

#include "tests/sim/front/sim.h"

struct trial {
    const struct course *course;
    FILE *log;
};

static void play(void *data, char *report)
{
    const struct trial *t = data;
    sim_report = report;
    (void)sim_run(t->course, t->log);
}

void course_try(const struct course *p, FILE *log, struct verdict *ret_verdict)
{
    struct trial t = {.course = p, .log = log};
    sim_clear(verdict_play(play, &t, ret_verdict));
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
    if (!verdict_same(x->verdict, &v)) {
        course_finish(candidate);
        return false;
    }
    course_finish(x->course);
    *x->course = *candidate;
    *x->verdict = v;
    return true;
}

static bool without(void *data, unsigned at, unsigned count)
{
    struct search *x = data;
    struct course p;
    course_copy(x->course, &p);
    memmove(&p.event[at], &p.event[at + count], (p.count - at - count) * sizeof p.event[0]);
    p.count -= count;
    return attempt(x, &p);
}

static unsigned events(const void *data)
{
    const struct search *x = data;
    return x->course->count;
}

static bool more(const void *data)
{
    const struct search *x = data;
    return x->left > 0;
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
    const struct shrinking all = {.data = &x, .count = events, .more = more, .without = without};
    shrink_events(&all);
    ease(&x, faults, 0);
    ease(&x, streams, 1);
    for (uint64_t n = 1; n <= 3; n++) {
        ease(&x, devices, n < p->params.devices ? n : p->params.devices);
        ease(&x, clients, n < p->params.clients ? n : p->params.clients);
    }
    shrink_events(&all);
}
