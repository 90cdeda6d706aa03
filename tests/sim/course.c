#include "tests/sim/course.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/chance.h"

#define EVENTS_MAX 100000u

static const struct {
    const char *name;
    unsigned weight;
    bool device;
} kinds[] = {
#define X(KIND, name, weight, device) [COURSE_##KIND] = {name, weight, device},
    COURSE_EVENTS(X)
#undef X
};

static const struct {
    const char *name;
    size_t at;
    uint64_t least, most;
} params[] = {
#define X(name, least, most) {#name, offsetof(struct course_params, name), least, most},
    COURSE_PARAMS(X)
#undef X
};

#define PARAMS (sizeof params / sizeof params[0])

const char *course_kind_name(enum course_kind kind)
{
    return kinds[kind].name;
}

bool course_of_device(enum course_kind kind)
{
    return kinds[kind].device;
}

static uint64_t *param(struct course_params *p, unsigned index)
{
    return (uint64_t *)(void *)((char *)p + params[index].at);
}

/* ---- from a seed ----------------------------------------------------------------------------- */

/* Few large worlds, many small ones: the small ones are short to read when they fail. */
static void choose_size(struct chance *c, struct course_params *p)
{
    unsigned n = (unsigned)chance_below(c, 100);
    p->devices = n < 60 ? 1 + chance_below(c, 2) : n < 97 ? 1 + chance_below(c, 8) : 64;
    p->clients = n < 60   ? 1 + chance_below(c, 4)
                 : n < 97 ? 1 + chance_below(c, 24)
                          : 24 + chance_below(c, 300);
    if (n == 99) {
        p->clients = 1000;
        p->devices = 1 + chance_below(c, 4);
    }
    p->tenants = chance_percent(c, 50) ? 1 + chance_below(c, p->clients) : p->clients;
}

static void choose_params(struct chance *c, struct course_params *p)
{
    choose_size(c, p);
    p->streams = 1 + chance_below(c, 8);
    p->urgent = p->streams > 1 ? chance_below(c, 2) : 0;
    p->memory_kib = chance_percent(c, 70) ? 1u << 20 : 16 + chance_below(c, 256);
    p->window = chance_percent(c, 50) ? 0 : 1 + chance_below(c, 16);
    p->time_limit_ms = chance_spread(c, 500, 30000);
    p->linger_ms = chance_spread(c, 200, 120000);
    p->queue_max = chance_percent(c, 70) ? 4096 : 4 + chance_below(c, 32);
    p->inflight_max = chance_percent(c, 70) ? 1024 : 2 + chance_below(c, 16);
    p->staging_kib = chance_percent(c, 70) ? 1024 : 4 + chance_below(c, 16);
    p->kept_bytes = chance_percent(c, 80) ? 1u << 26 : 2048 + chance_below(c, 8192);
    p->buffers_max = chance_percent(c, 80) ? 1024 : 2 + chance_below(c, 8);
    p->beat_ms = chance_percent(c, 50) ? 1000 : chance_spread(c, 500, 20000);
    p->run_us = chance_spread(c, 20, 300000);
    p->compile_ms = chance_spread(c, 1, 4000);
    p->wire_us = chance_spread(c, 1, 50000);
    p->faults = chance_percent(c, 40) ? 0 : chance_below(c, 12);
    p->reads = chance_percent(c, 90);
    p->pauses = chance_percent(c, 60) ? 0 : chance_below(c, 60);
    p->message_kib = chance_percent(c, 80) ? 1u << 20 : 32 + 8 * p->clients;
    p->special = WORLD_USUAL;
}

/* Each world has some kinds of events only: one kind of mishap alone is easier to survive, and to
 * understand. */
static void choose_weights(struct chance *c, unsigned weight[COURSE_KINDS])
{
    bool calm = chance_percent(c, 15);
    for (unsigned i = 0; i < COURSE_USUAL; i++) {
        bool usual = i == COURSE_ASK || i == COURSE_INQUIRE;
        bool has = usual || (!calm && chance_percent(c, 45));
        unsigned times = usual || chance_percent(c, 80) ? 1 : 6;
        weight[i] = has ? kinds[i].weight * times : 0;
    }
}

static unsigned sum_of(const unsigned weight[COURSE_KINDS])
{
    unsigned sum = 0;
    for (unsigned i = 0; i < COURSE_KINDS; i++) {
        sum += weight[i];
    }
    return sum;
}

static enum course_kind choose_kind(struct chance *c, const unsigned weight[COURSE_KINDS],
                                    unsigned sum)
{
    uint64_t at = chance_below(c, sum);
    unsigned kind = 0;
    while (at >= weight[kind]) {
        at -= weight[kind++];
    }
    return (enum course_kind)kind;
}

/* Now and then everything comes at once, now and then nothing for long. */
static uint64_t choose_pause_us(struct chance *c, uint64_t usual_us, bool steady)
{
    unsigned n = (unsigned)chance_below(c, steady ? 97 : 100);
    return n < 40 ? 0 : n < 97 ? chance_below(c, 2 * usual_us + 1) : chance_below(c, 20000000);
}

/* With random numbers of their own, so that the rest of a world is as it was without them. */
static void choose_arrays(uint64_t seed, struct course_params *p)
{
    struct chance c = chance_of(seed, 2);
    p->arrays = chance_percent(&c, 50) ? 0 : 10 + chance_below(&c, 60);
    p->rings = chance_percent(&c, 50) ? 0 : 20 + chance_below(&c, 80);
}

/* The same. Beside a hostile client another one waits for nothing but that client. */
static void choose_limits(uint64_t seed, struct course_params *p)
{
    struct chance c = chance_of(seed, 3);
    bool usual = p->special != WORLD_HOSTILE && p->special < WORLD_SHARES;
    p->flight = usual && chance_percent(&c, 25) ? 1 + chance_below(&c, 6) : 0;
    p->rate_kib = usual && chance_percent(&c, 25) ? chance_spread(&c, 32, 1024) : 0;
}

/* The same. A special world has its own tenants. */
static void choose_sockets(uint64_t seed, struct course_params *p)
{
    struct chance c = chance_of(seed, 4);
    bool may = p->special == WORLD_USUAL || p->special == WORLD_DOMAINS;
    p->sockets = may && chance_percent(&c, 25) ? 1 : 0;
}

/* The same. */
static void choose_tokens(uint64_t seed, struct course_params *p, unsigned weight[COURSE_KINDS])
{
    struct chance c = chance_of(seed, 5);
    bool may = p->special == WORLD_USUAL || p->special == WORLD_DOMAINS;
    p->tokens = may && p->sockets == 0 && chance_percent(&c, 30) ? 1 : 0;
    if (p->tokens != 0) {
        weight[COURSE_ROTATE] = 10;
        weight[COURSE_REMOVE] = 8;
        weight[COURSE_TRICK] = 12;
    }
}

/* The same. Jobs then name buffers of several devices. */
static void choose_spread(uint64_t seed, struct course_params *p)
{
    struct chance c = chance_of(seed, 21);
    bool may = p->special == WORLD_USUAL || p->special == WORLD_DOMAINS;
    p->spread = may && p->devices > 1 && chance_percent(&c, 30) ? 20 + chance_below(&c, 70) : 0;
}

/* The same. Of single devices. */
static void choose_drains(uint64_t seed, struct course_params *p, unsigned weight[COURSE_KINDS])
{
    struct chance c = chance_of(seed, 6);
    bool may = p->special == WORLD_USUAL || p->special == WORLD_DOMAINS ||
               p->special == WORLD_HELD || p->special == WORLD_BARE || p->special == WORLD_HOARD;
    if (may && chance_percent(&c, 30)) {
        weight[COURSE_DRAIN] = 14;
        weight[COURSE_RESUME] = 12;
    }
    if (p->special == WORLD_HELD && chance_percent(&c, 50)) {
        p->divided = 1;
        p->devices = p->devices > 1 ? p->devices : 2;
        weight[COURSE_DRAIN] = 40;
        weight[COURSE_RESUME] = 30;
        weight[COURSE_FALL] = 20;
    }
}

/* The same. */
static void choose_backend(uint64_t seed, struct course_params *p)
{
    struct chance c = chance_of(seed, 8);
    p->automatic = p->special == WORLD_USUAL && chance_percent(&c, 8) ? 1 : 0;
}

/* The same. Where tenants have workers of their own. */
static void choose_domains(uint64_t seed, struct course_params *p, unsigned weight[COURSE_KINDS])
{
    struct chance c = chance_of(seed, 7);
    if (p->special != WORLD_DOMAINS) {
        return;
    }
    p->places = chance_percent(&c, 70) ? 1 + chance_below(&c, 4) : 0;
    p->slow = chance_percent(&c, 60) ? 10 + chance_below(&c, 60) : 0;
    p->guaranteed = chance_percent(&c, 50) ? 5 + chance_below(&c, 20) : 0;
    weight[COURSE_SETTINGS] = chance_percent(&c, 50) ? 12 : 0;
    weight[COURSE_REFUSE] = chance_percent(&c, 50) ? 15 : 0;
    weight[COURSE_UNSTARTED] = chance_percent(&c, 30) ? 15 : 0;
    weight[COURSE_BYE] = chance_percent(&c, 50) ? 60 : weight[COURSE_BYE]; /* newcomers */
    c = chance_of(seed, 22);
    weight[COURSE_VISIT] = chance_percent(&c, 40) ? 60 : 0;
}

/* Of special worlds: more than they have otherwise. */
static void choose_extremes(struct chance *c, struct course_params *p,
                            unsigned weight[COURSE_KINDS])
{
    if (p->special == WORLD_UNREAD && chance_percent(c, 50)) { /* as many answers as may be */
        p->message_kib = 1u << 20;
        p->kept_bytes = 1u << 26;
    }
    if (p->special == WORLD_SEALS && chance_percent(c, 50)) { /* the next front looks at them */
        weight[COURSE_FORGE] = 20;
        weight[COURSE_CRASH] = 8;
        weight[COURSE_HANDOVER] = 4;
    }
}

/* The same. */
static void choose_watch(uint64_t seed, struct course_params *p, unsigned weight[COURSE_KINDS])
{
    struct chance c = chance_of(seed, 12);
    bool may = p->special == WORLD_USUAL || p->special == WORLD_DOMAINS ||
               p->special == WORLD_TURNS || p->special == WORLD_LARGE;
    p->roles = may && chance_percent(&c, 35);
    p->watch = p->special != WORLD_SEALS && chance_percent(&c, 35);
    p->watch = p->watch != 0 || p->special == WORLD_TURNS; /* as much ends there */
    p->aim = chance_percent(&c, 50) ? 20 + chance_below(&c, 80) : 0;
    p->aim = p->special == WORLD_OVERRUNS && p->aim == 0 ? 40 + seed / 8 % 8 : p->aim;
    p->scarce = chance_percent(&c, 25) ? 1 + chance_below(&c, 12) : 0;
    choose_extremes(&c, p, weight);
    if (p->watch != 0 && p->special == WORLD_USUAL) {
        weight[COURSE_CONTROL] = 15;
        weight[COURSE_BARE] = 60;
    }
    if (p->roles != 0) {
        weight[COURSE_MEDDLE] = 20 + (unsigned)chance_below(&c, 300);
    }
}

/* The same. Half of these worlds have short limits of time: a standstill must not use them up. */
static void choose_stalls(uint64_t seed, struct course_params *p, unsigned weight[COURSE_KINDS])
{
    struct chance c = chance_of(seed, 13);
    bool may = p->special != WORLD_HOSTILE && p->special != WORLD_LARGE;
    p->stalls = may && chance_percent(&c, 50) ? 30 + chance_below(&c, 70) : 0;
    if (p->stalls != 0 && p->special == WORLD_USUAL && chance_percent(&c, 50)) {
        p->time_limit_ms = chance_spread(&c, 500, 4000);
        weight[COURSE_STALL] = 20;
    }
}

void course_make(uint64_t seed, struct course *ret_plan)
{
    struct chance c = chance_of(seed, 1);
    unsigned weight[COURSE_KINDS] = {0};
    struct course p = {.seed = seed};
    choose_params(&c, &p.params);
    choose_weights(&c, weight);
    unsigned least = p.params.clients > 100 ? 2 * (unsigned)p.params.clients : 20;
    struct course_pace pace = {.events = least + (unsigned)chance_spread(&c, 20, 600)};
    pace.usual_us = chance_spread(&c, 100, 1000000);
    course_special(seed, &p.params, weight, &pace);
    choose_arrays(seed, &p.params);
    choose_limits(seed, &p.params);
    choose_sockets(seed, &p.params);
    choose_tokens(seed, &p.params, weight);
    choose_spread(seed, &p.params);
    choose_drains(seed, &p.params, weight);
    choose_domains(seed, &p.params, weight);
    choose_backend(seed, &p.params);
    choose_watch(seed, &p.params, weight);
    choose_stalls(seed, &p.params, weight);
    unsigned sum = sum_of(weight);
    p.count = pace.events;
    p.event = calloc(p.count, sizeof *p.event);
    if (p.event == NULL) {
        abort();
    }
    uint64_t at_us = 0;
    for (unsigned i = 0; i < p.count; i++) {
        struct course_event *e = &p.event[i];
        at_us += choose_pause_us(&c, pace.usual_us, pace.steady);
        e->at_us = at_us;
        e->kind = choose_kind(&c, weight, sum);
        e->actor =
            (unsigned)chance_below(&c, kinds[e->kind].device ? p.params.devices : p.params.clients);
        e->r = chance_next(&c);
    }
    course_lone(seed, &p);
    *ret_plan = p;
}

void course_finish(struct course *p)
{
    free(p->event);
    p->event = NULL;
    p->count = 0;
}

void course_copy(const struct course *p, struct course *ret_plan)
{
    *ret_plan = *p;
    ret_plan->event = malloc((p->count + 1) * sizeof *p->event);
    if (ret_plan->event == NULL) {
        abort();
    }
    memcpy(ret_plan->event, p->event, p->count * sizeof *p->event);
}

/* ---- as text --------------------------------------------------------------------------------- */

void course_write(const struct course *p, FILE *out)
{
    struct course_params values = p->params;
    (void)fprintf(out, "world %" PRIu64 "\n", p->seed);
    for (unsigned i = 0; i < PARAMS; i++) {
        (void)fprintf(out, "set %s %" PRIu64 "\n", params[i].name, *param(&values, i));
    }
    for (unsigned i = 0; i < p->count; i++) {
        const struct course_event *e = &p->event[i];
        (void)fprintf(out, "%" PRIu64 " %s %u %#" PRIx64 "\n", e->at_us, kinds[e->kind].name,
                      e->actor, e->r);
    }
}

static bool read_param(struct course *p, const char *name, uint64_t value)
{
    for (unsigned i = 0; i < PARAMS; i++) {
        if (strcmp(name, params[i].name) == 0 && value >= params[i].least &&
            value <= params[i].most) {
            *param(&p->params, i) = value;
            return true;
        }
    }
    return false;
}

static bool read_event(struct course *p, const char *line)
{
    char name[32];
    struct course_event e = {.at_us = 0};
    if (sscanf(line, "%" SCNu64 " %31s %u %" SCNx64, &e.at_us, name, &e.actor, &e.r) != 4) {
        return false;
    }
    unsigned kind = 0;
    while (kind < COURSE_KINDS && strcmp(kinds[kind].name, name) != 0) {
        kind++;
    }
    if (kind == COURSE_KINDS || p->count == EVENTS_MAX) {
        return false;
    }
    e.kind = (enum course_kind)kind;
    p->event[p->count++] = e;
    return true;
}

static bool read_line(struct course *p, const char *line)
{
    char name[32];
    uint64_t value = 0;
    if (line[0] == '#' || line[0] == '\n' || line[0] == '\0') {
        return true;
    }
    if (sscanf(line, "world %" SCNu64, &p->seed) == 1) {
        return true;
    }
    if (sscanf(line, "set %31s %" SCNu64, name, &value) == 2) {
        return read_param(p, name, value);
    }
    return read_event(p, line);
}

bool course_read(FILE *in, struct course *ret_plan)
{
    char line[256];
    struct course p = {.seed = 0};
    struct chance c = chance_of(0, 1);
    choose_params(&c, &p.params); /* for parameters that a text of an older tree lacks */
    p.event = calloc(EVENTS_MAX, sizeof *p.event);
    while (p.event != NULL && fgets(line, sizeof line, in) != NULL) {
        if (!read_line(&p, line)) {
            (void)fprintf(stderr, "not a line of a course: %s", line);
            course_finish(&p);
            return false;
        }
    }
    *ret_plan = p;
    return p.event != NULL;
}
