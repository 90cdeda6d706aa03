#include "tests/sim/worker/ward_course.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"

#define EVENTS_MAX 2000u

static const char *const kinds[] = {
#define X(name, text) text,
    WARD_KINDS(X)
#undef X
};

static const struct {
    const char *name;
    size_t at;
    uint64_t most;
} params[] = {
#define X(name, most) {#name, offsetof(struct ward_params, name), most},
    WARD_PARAMS(X)
#undef X
};

#define PARAMS (sizeof params / sizeof params[0])

/* ---- by chance ------------------------------------------------------------------------------- */

static void choose_memory(struct chance *c, struct ward_params *p)
{
    static const uint64_t PAGES[] = {64, 256, 2048};
    p->page_kib = chance_percent(c, 25) ? 0 : PAGES[chance_below(c, 3)];
    p->limit_kib = (p->page_kib == 2048 ? 16u : 4u) * 1024 * (1 + chance_below(c, 2));
    p->memory_kib = p->limit_kib + (chance_percent(c, 50) ? 0 : 4096);
    p->spill_kib = chance_percent(c, 10) ? 0 : chance_spread(c, 1024, 4 * p->limit_kib);
    p->buffer_kib =
        chance_percent(c, 40) ? chance_spread(c, 4, 256) : chance_spread(c, 256, p->limit_kib / 3);
    p->wanted_kib = p->limit_kib / 4 * (1 + chance_below(c, 12));
    p->limits = chance_percent(c, 50);
    p->foreign = chance_percent(c, 75) ? 0 : 1 + chance_below(c, 30);
}

static void choose_refusals(struct chance *c, struct ward_params *p)
{
    if (chance_percent(c, 40)) {
        p->refuse_memory = chance_percent(c, 50) ? 1 + chance_below(c, 100) : 0;
        p->refuse_host = chance_percent(c, 50) ? 1 + chance_below(c, 400) : 0;
        p->refuse_launch = chance_percent(c, 50) ? 1 + chance_below(c, 60) : 0;
        p->refuse_unmap = chance_percent(c, 15) ? 1 + chance_below(c, 30) : 0;
    }
    p->fault = chance_percent(c, 90) ? 0 : 1 + chance_below(c, 60);
}

/* What a course has beside its parameters. */
struct pace {
    unsigned events;
    uint64_t pause_us; /* usual time between two events */
};

static struct pace choose(struct chance *c, struct ward_params *p)
{
    struct pace pace = {.events = (unsigned)chance_spread(c, 20, 400)};
    p->tenants = 1 + chance_below(c, 5);
    p->streams = 1 + chance_below(c, 4);
    choose_memory(c, p);
    p->later = chance_percent(c, 80);
    p->wakes = chance_percent(c, 70);
    p->quiet = p->wakes && chance_percent(c, 50);
    p->batches = chance_percent(c, 50);
    p->registers = chance_percent(c, 60);
    p->slices = chance_percent(c, 50);
    p->imports = chance_percent(c, 60);
    p->release_waits = chance_percent(c, 50);
    p->run_ns = chance_spread(c, 200, 3000000);
    p->call_ns = chance_spread(c, 200, 1000000);
    choose_refusals(c, p);
    p->deadlines = chance_percent(c, 50) ? 30 : chance_below(c, 101);
    p->cancels = chance_percent(c, 60) ? 0 : chance_below(c, 30);
    p->fronts = chance_percent(c, 70) ? 0 : 1 + chance_below(c, 20);
    pace.pause_us = chance_spread(c, 5, 20000);
    p->window_us = chance_percent(c, 70) ? 0 : chance_spread(c, 10, 5000);
    return pace;
}

/* Parameters that came later have a chance of their own, so that older ones keep their values. */
static void choose_more(struct chance *c, struct ward_params *p)
{
    p->cpu = chance_percent(c, 50);
    p->early = chance_percent(c, 50) ? 0 : chance_below(c, 101);
    p->defined = 1; /* courses that are older than the parameter have 0 */
    p->load_faults = p->fault > 0 && chance_percent(c, 50);
    p->arena_kib = chance_spread(c, 8, 1024);
    p->rings = chance_percent(c, 50);
    p->exports = chance_percent(c, 70) ? 0 : 1 + chance_below(c, 30);
    p->manages = chance_percent(c, 70) ? 0 : 1 + chance_below(c, 30);
    p->managed_kib = chance_spread(c, p->limit_kib / 16, 2 * p->limit_kib);
    p->variables = chance_percent(c, 40);
    p->shows = chance_percent(c, 60);
    p->libraries = chance_percent(c, 40);
    p->prompt = 1; /* as libuv does; courses that are older than the parameter have 0 */
}

static enum ward_kind usual_kind(uint64_t n)
{
    return n < 200   ? WARD_BUFFER
           : n < 270 ? WARD_FREE
           : n < 300 ? WARD_SEAL
           : n < 330 ? WARD_MODULE
           : n < 370 ? WARD_ARENA
           : n < 390 ? WARD_CONTROL
           : n < 420 ? WARD_LIMITS
           : n < 480 ? WARD_PACKET
                     : WARD_JOB;
}

static enum ward_kind choose_kind(const struct ward_params *p, struct chance *c)
{
    enum ward_kind kind = usual_kind(chance_below(c, 1000));
    if (chance_below(c, 1000) < p->fronts) {
        return WARD_FRONT;
    }
    if (chance_below(c, 1000) < p->foreign) {
        return WARD_FOREIGN;
    }
    return kind == WARD_LIMITS && !p->limits ? WARD_PACKET : kind;
}

struct chance ward_event_chance(const struct ward_event *e)
{
    struct chance c = chance_of(e->r, 2);
    for (unsigned i = e->kind == WARD_FRONT ? 2 : 3; i > 0; i--) { /* those of its kind */
        (void)chance_next(&c);
    }
    return c;
}

void ward_course_make(uint64_t seed, struct ward_course *ret_course)
{
    struct chance c = chance_of(seed, 1);
    struct ward_course p = {.seed = seed};
    struct chance more = chance_of(seed, 4);
    struct pace pace = choose(&c, &p.params);
    choose_more(&more, &p.params);
    p.count = pace.events;
    p.event = calloc(p.count, sizeof *p.event);
    uint64_t at_ns = 0;
    for (unsigned i = 0; p.event != NULL && i < p.count; i++) {
        struct ward_event *e = &p.event[i];
        uint64_t n = chance_below(&c, 100);
        uint64_t usual_ns = pace.pause_us * 1000;
        at_ns += n < 40   ? 0
                 : n < 98 ? chance_below(&c, 2 * usual_ns + 1)
                          : chance_below(&c, 5 * NS_PER_S);
        *e = (struct ward_event){.at_ns = at_ns, .r = chance_next(&c)};
        struct chance own = chance_of(e->r, 2);
        e->kind = choose_kind(&p.params, &own);
    }
    *ret_course = p;
}

void ward_course_finish(struct ward_course *p)
{
    free(p->event);
    p->event = NULL;
    p->count = 0;
}

void ward_course_copy(const struct ward_course *p, struct ward_course *ret_course)
{
    *ret_course = *p;
    ret_course->event = malloc((p->count + 1) * sizeof *p->event);
    if (ret_course->event == NULL) {
        abort();
    }
    memcpy(ret_course->event, p->event, p->count * sizeof *p->event);
}

/* ---- as text --------------------------------------------------------------------------------- */

static uint64_t *param(struct ward_params *p, size_t i)
{
    return (uint64_t *)(void *)((char *)p + params[i].at);
}

void ward_course_write(const struct ward_course *p, FILE *out)
{
    struct ward_params values = p->params;
    (void)fprintf(out, "world %" PRIu64 "\n", p->seed);
    for (size_t i = 0; i < PARAMS; i++) {
        (void)fprintf(out, "set %s %" PRIu64 "\n", params[i].name, *param(&values, i));
    }
    for (unsigned i = 0; i < p->count; i++) {
        const struct ward_event *e = &p->event[i];
        (void)fprintf(out, "%" PRIu64 " %s %#" PRIx64 "\n", e->at_ns, kinds[e->kind], e->r);
    }
}

static bool read_param(struct ward_course *p, const char *name, uint64_t value)
{
    for (size_t i = 0; i < PARAMS; i++) {
        if (strcmp(name, params[i].name) == 0 && value <= params[i].most) {
            *param(&p->params, i) = value;
            return true;
        }
    }
    return false;
}

static bool read_event(struct ward_course *p, const char *line)
{
    char name[32];
    struct ward_event e = {.at_ns = 0};
    if (p->count == EVENTS_MAX ||
        sscanf(line, "%" SCNu64 " %31s %" SCNx64, &e.at_ns, name, &e.r) != 3) {
        return false;
    }
    for (unsigned kind = 0; kind < WARD_KIND_COUNT; kind++) {
        if (strcmp(kinds[kind], name) == 0) {
            e.kind = (enum ward_kind)kind;
            p->event[p->count++] = e;
            return true;
        }
    }
    return false;
}

static bool read_line(struct ward_course *p, const char *line)
{
    char name[32];
    uint64_t value = 0;
    if (line[0] == '#' || line[0] == '\n' || line[0] == '\0' ||
        sscanf(line, "world %" SCNu64, &p->seed) == 1) {
        return true;
    }
    if (sscanf(line, "set %31s %" SCNu64, name, &value) == 2) {
        return read_param(p, name, value);
    }
    return read_event(p, line);
}

bool ward_course_read(FILE *in, struct ward_course *ret_course)
{
    char line[256];
    struct ward_course p = {.seed = 0};
    p.event = calloc(EVENTS_MAX, sizeof *p.event);
    while (p.event != NULL && fgets(line, sizeof line, in) != NULL) {
        if (!read_line(&p, line)) {
            (void)fprintf(stderr, "not a line of a course: %s", line);
            ward_course_finish(&p);
            return false;
        }
    }
    bool whole = p.params.tenants > 0 && p.params.streams > 0 && p.params.limit_kib > 0;
    if (!whole) {
        (void)fprintf(stderr, "a course has tenants, streams and a limit\n");
        ward_course_finish(&p);
    }
    *ret_course = p;
    return whole;
}
