/* How most courses end: a client has something to ask, something goes wrong meanwhile, and nothing
 * else happens. What such a request waits for has to come by itself: no other request, and no job
 * of others, wakes what was forgotten. */
#include <stdlib.h>

#include "tests/sim/chance.h"
#include "tests/sim/course.h"

#define SALT         23u
#define ROUNDS       8u
#define REQUESTS     4u  /* of a round, at most */
#define LINE         12u /* jobs of a line */
#define LINE_PERCENT 30u
#define MISHAPS      3u
#define CLOSED       2u /* mishaps while a device is drained, at most */
#define ROUND_EVENTS (REQUESTS + LINE + (2 + CLOSED) * (1 + MISHAPS)) /* it is resumed, too */
#define SECOND_US    UINT64_C(1000000)

struct lone {
    struct chance r;
    struct course *course;
    uint64_t at_us;
    unsigned client;
    bool drains; /* devices may be drained in such a world */
};

static void add(struct lone *l, uint64_t in_us, enum course_kind kind, unsigned actor)
{
    struct course *p = l->course;
    p->event[p->count++] = (struct course_event){
        .at_us = l->at_us + in_us, .kind = kind, .actor = actor, .r = chance_next(&l->r)};
}

static void add_request(struct lone *l, uint64_t in_us)
{
    uint64_t n = chance_below(&l->r, 100);
    add(l, in_us, n < 45 ? COURSE_ASK : n < 75 ? COURSE_SEAL : COURSE_BARE, l->client);
}

/* A device is drained, and something goes wrong before it is resumed. */
static void add_drain(struct lone *l, uint64_t in_us, unsigned device)
{
    static const enum course_kind wrong[] = {COURSE_DIE,      COURSE_CRASH, COURSE_FALL,
                                             COURSE_HANDOVER, COURSE_DIE,   COURSE_LAUNCHER};
    uint64_t for_us = chance_spread(&l->r, 1000, 10 * SECOND_US);
    add(l, in_us, COURSE_DRAIN, device);
    for (uint64_t i = chance_below(&l->r, CLOSED + 1); i > 0; i--) {
        enum course_kind kind = wrong[chance_below(&l->r, sizeof wrong / sizeof wrong[0])];
        add(l, in_us + chance_below(&l->r, for_us), kind,
            course_of_device(kind) ? device : l->client);
    }
    add(l, in_us + for_us, COURSE_RESUME, device);
}

/* More jobs without buffers than run at once: any device may run those that wait, unless all are
 * drained. */
static void add_line(struct lone *l, uint64_t in_us)
{
    const struct course_params *p = &l->course->params;
    for (unsigned i = 0; i < LINE; i++) {
        add(l, in_us, COURSE_BARE, l->client);
    }
    if (l->drains && chance_percent(&l->r, 50)) {
        uint64_t at_us = in_us + p->wire_us + chance_below(&l->r, 4 * p->run_us);
        add_drain(l, at_us, (unsigned)chance_below(&l->r, p->devices));
    }
}

static void add_mishap(struct lone *l, uint64_t in_us)
{
    static const enum course_kind often[] = {COURSE_INQUIRE, COURSE_DIE, COURSE_DRAIN};
    static const enum course_kind seldom[] = {COURSE_CUT,      COURSE_CRASH,  COURSE_HANDOVER,
                                              COURSE_FALL,     COURSE_STALL,  COURSE_BREAK,
                                              COURSE_LAUNCHER, COURSE_COMPILE};
    bool usual = chance_percent(&l->r, 70);
    enum course_kind kind = usual ? often[chance_below(&l->r, sizeof often / sizeof often[0])]
                                  : seldom[chance_below(&l->r, sizeof seldom / sizeof seldom[0])];
    unsigned device = (unsigned)chance_below(&l->r, l->course->params.devices);
    kind = kind == COURSE_DRAIN && !l->drains ? COURSE_DIE : kind;
    if (kind == COURSE_DRAIN) {
        add_drain(l, in_us, device);
    } else {
        add(l, in_us, kind, course_of_device(kind) ? device : l->client);
    }
}

static void add_round(struct lone *l)
{
    const struct course_params *p = &l->course->params;
    uint64_t most_us = 2 * (p->run_us + p->wire_us);
    l->client = (unsigned)chance_below(&l->r, p->clients);
    l->at_us += chance_spread(&l->r, SECOND_US, 60 * SECOND_US);
    for (uint64_t i = 1 + chance_below(&l->r, REQUESTS); i > 0; i--) {
        add_request(l, chance_below(&l->r, most_us + 1));
    }
    if (chance_percent(&l->r, LINE_PERCENT)) {
        add_line(l, chance_below(&l->r, most_us + 1));
    }
    for (uint64_t i = 1 + chance_below(&l->r, MISHAPS); i > 0; i--) {
        add_mishap(l, chance_below(&l->r, 2 * most_us + 1));
    }
}

static int by_time(const void *left, const void *right)
{
    const struct course_event *a = left;
    const struct course_event *b = right;
    return a->at_us < b->at_us ? -1 : a->at_us > b->at_us ? 1 : a->r < b->r ? -1 : 1;
}

void course_lone(uint64_t seed, struct course *p)
{
    static const bool suits[COURSE_WORLDS] = {
        [WORLD_USUAL] = true, [WORLD_DOMAINS] = true, [WORLD_BARE] = true,
        [WORLD_SEALS] = true, [WORLD_HELD] = true,    [WORLD_HOARD] = true};
    struct lone l = {.r = chance_of(seed, SALT), .course = p};
    unsigned before = p->count;
    if (p->params.clients > 100 || !suits[p->params.special]) {
        return;
    }
    void *grown = realloc(p->event, (p->count + ROUNDS * ROUND_EVENTS) * sizeof *p->event);
    if (grown == NULL) {
        abort();
    }
    p->event = grown;
    l.drains = p->params.special != WORLD_SEALS;
    l.at_us = before > 0 ? p->event[before - 1].at_us : 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        add_round(&l);
    }
    qsort(p->event + before, p->count - before, sizeof *p->event, by_time);
}
