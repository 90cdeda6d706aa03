/* The special worlds: each comes to one kind of limit. */
#include <string.h>

#include "tests/sim/chance.h"
#include "tests/sim/course.h"

#define ONE_IN      8u  /* a world in so many is special */
#define OWN_PERCENT 12u /* of the others: they are of the kind WORLD_DOMAINS */

struct weights {
    enum course_kind kind;
    unsigned weight;
};

#define WEIGHTS(...) weigh(weight, (const struct weights[]){__VA_ARGS__, {COURSE_KINDS, 0}})

static void weigh(unsigned weight[COURSE_KINDS], const struct weights *w)
{
    for (; w->kind != COURSE_KINDS; w++) {
        weight[w->kind] = w->weight;
    }
}

static unsigned below(struct chance *c, unsigned most)
{
    return (unsigned)chance_below(c, most);
}

static struct course_pace pace_of(uint64_t usual_us, unsigned events)
{
    return (struct course_pace){.usual_us = usual_us, .events = events};
}

/* Nothing is scarce, and nothing is slow. */
static void be_plain(struct course_params *p, uint64_t devices, uint64_t clients)
{
    p->devices = devices;
    p->clients = p->tenants = clients;
    p->memory_kib = 1u << 20;
    p->queue_max = 4096;
    p->inflight_max = 1024;
    p->staging_kib = 1024;
    p->kept_bytes = 1u << 26;
    p->buffers_max = 1024;
    p->message_kib = 1u << 20;
    p->beat_ms = 1000;
    p->faults = p->pauses = 0;
    p->reads = 1;
}

static struct course_pace held(struct chance *c, struct course_params *p, unsigned *weight)
{
    be_plain(p, 1 + chance_below(c, 4), 1 + chance_below(c, 4));
    WEIGHTS({COURSE_ASK, 700}, {COURSE_RECOVER, 60}, {COURSE_BLIND, 40}, {COURSE_DIE, 10},
            {COURSE_HANDOVER, 20}, {COURSE_CRASH, 20}, {COURSE_STALL, 10}, {COURSE_LAUNCHER, 5},
            {COURSE_HANG, 5}, {COURSE_FLOOD, 80});
    p->run_us = chance_spread(c, 1000, 200000);
    return pace_of(chance_spread(c, 100000, 4000000), 100 + below(c, 400));
}

static struct course_pace turns(struct chance *c, struct course_params *p, unsigned *weight)
{
    be_plain(p, 1 + chance_below(c, 4), 20 + chance_below(c, 30));
    WEIGHTS({COURSE_ASK, 700}, {COURSE_CROWD, 20}, {COURSE_RUSH, 10}, {COURSE_STALL, 20},
            {COURSE_LOOK, 50}, {COURSE_BREAK, 10});
    p->wire_us = chance_spread(c, 1000, 50000);
    p->run_us = chance_spread(c, 20, 2000);
    return pace_of(2000, 150 + below(c, 100));
}

static struct course_pace unread(struct chance *c, struct course_params *p, unsigned *weight)
{
    be_plain(p, 1, 1 + chance_below(c, 3));
    p->tenants = 1;
    p->reads = 0;
    WEIGHTS({COURSE_CHATTER, 100}, {COURSE_ASK, 300}, {COURSE_BREAK, 20});
    if (chance_percent(c, 40)) {
        p->message_kib = 32;
        p->inflight_max = 2;
        p->queue_max = 16;
    } else if (chance_percent(c, 40)) {
        p->kept_bytes = chance_spread(c, 2048, 65536);
    }
    return pace_of(chance_spread(c, 10000, 1000000), 20 + below(c, 40));
}

static struct course_pace hoard(struct chance *c, struct course_params *p, unsigned *weight)
{
    be_plain(p, 1 + chance_below(c, 2), 2 + chance_below(c, 3));
    p->buffers_max = 65536;
    p->wire_us = chance_spread(c, 10, 500);
    WEIGHTS({COURSE_HEAP, 60}, {COURSE_LOOK, 500}, {COURSE_ASK, 200}, {COURSE_DIE, 60});
    return pace_of(chance_spread(c, 100, 1000), 60 + below(c, 200));
}

static struct course_pace paused(struct chance *c, struct course_params *p, unsigned *weight)
{
    be_plain(p, 1, 2 + chance_below(c, 3));
    p->faults = 1;
    p->pauses = 60 + chance_below(c, 40);
    p->streams = 3 + chance_below(c, 6);
    p->urgent = 0;
    p->window = chance_percent(c, 50) ? 0 : 4 + chance_below(c, 8);
    p->run_us = chance_spread(c, 20000, 200000);
    p->time_limit_ms = chance_spread(c, 1000, 4000);
    p->compile_ms = 1 + chance_below(c, 50);
    WEIGHTS({COURSE_ASK, 700}, {COURSE_GUILT, 60}, {COURSE_INQUIRE, 30});
    return pace_of(chance_spread(c, 1000, 100000), 200 + below(c, 500));
}

static struct course_pace bare(struct chance *c, struct course_params *p, unsigned *weight)
{
    be_plain(p, 1 + chance_below(c, 3), 1 + chance_below(c, 3));
    p->window = 1 + chance_below(c, 3);
    p->run_us = chance_spread(c, 1000, 300000);
    p->compile_ms = 1 + chance_below(c, 50);
    WEIGHTS({COURSE_ASK, 60}, {COURSE_BARE, 600}, {COURSE_INQUIRE, 60});
    if (chance_percent(c, 60)) {
        WEIGHTS({COURSE_NOMEM, 150});
    } else {
        WEIGHTS({COURSE_DARK, 20}, {COURSE_DIE, 30}, {COURSE_ABSENT, 10}, {COURSE_DEAF, 10});
    }
    uint64_t usual_us = chance_spread(c, 1000, 100000);
    struct course_pace pace = pace_of(usual_us, 200 + below(c, 500));
    p->staging_kib = chance_percent(c, 50) ? 8192 : p->staging_kib; /* for vast arrays, too */
    return pace;
}

static struct course_pace holiday(struct chance *c, struct course_params *p, unsigned *weight)
{
    be_plain(p, 1, 3 + chance_below(c, 6));
    WEIGHTS({COURSE_ASK, 700}, {COURSE_HOLIDAY, 40}, {COURSE_DIE, 80}, {COURSE_HANDOVER, 5},
            {COURSE_CONTROL, 5}, {COURSE_FLOOD, 100});
    return pace_of(chance_spread(c, 4000000, 20000000), 100 + below(c, 300));
}

static struct course_pace seals(struct chance *c, struct course_params *p, unsigned *weight)
{
    be_plain(p, 1, 2 + chance_below(c, 3));
    WEIGHTS({COURSE_SEAL, 700}, {COURSE_ASK, 200}, {COURSE_DIE, 3}, {COURSE_BYE, 5});
    return pace_of(chance_spread(c, 1000, 100000), 200 + below(c, 400));
}

static struct course_pace hostile(struct chance *c, struct course_params *p, unsigned *weight)
{
    be_plain(p, 1 + chance_below(c, 2), 3);
    p->tenants = 3;
    p->queue_max = chance_percent(c, 50) ? 4096 : 32 + chance_below(c, 200);
    p->staging_kib = chance_percent(c, 50) ? 1024 : 64 + chance_below(c, 64);
    p->run_us = chance_spread(c, 1000, 10000);
    p->time_limit_ms = chance_spread(c, 500, 4000);
    p->compile_ms = 1 + chance_below(c, 200);
    p->wire_us = chance_spread(c, 10, 5000);
    p->window = chance_percent(c, 30) ? 0 : 1 + chance_below(c, 4);
    WEIGHTS({COURSE_ASK, 300}, {COURSE_HONEST, 300}, {COURSE_CROWD, 10}, {COURSE_FLOOD, 100},
            {COURSE_INQUIRE, 80}, {COURSE_AGAIN, 30}, {COURSE_BREAK, 20}, {COURSE_MOVE, 10},
            {COURSE_BYE, 5}, {COURSE_MUTE, 3});
    if (chance_percent(c, 50)) { /* else it has patience only */
        p->faults = 1 + chance_below(c, 10);
        p->pauses = chance_percent(c, 50) ? 0 : chance_below(c, 60);
        WEIGHTS({COURSE_GUILT, 60});
    }
    return (struct course_pace){
        .usual_us = chance_spread(c, 5000, 20000), .events = 400 + below(c, 500), .steady = true};
}

static struct course_pace large(struct chance *c, struct course_params *p, unsigned *weight)
{
    uint64_t window = p->window;
    be_plain(p, 64, 1000);
    p->window = window;
    p->run_us = chance_spread(c, 100, 100000);
    WEIGHTS({COURSE_ASK, 900}, {COURSE_DIE, 10}, {COURSE_BREAK, 20}, {COURSE_BARE, 50});
    return pace_of(chance_spread(c, 100, 10000), 1500 + below(c, 1000));
}

static struct course_pace domains(struct chance *c, struct course_params *p, unsigned *weight)
{
    be_plain(p, 1 + chance_below(c, 3), 2 + chance_below(c, 5));
    p->faults = chance_percent(c, 50) ? 0 : 1 + chance_below(c, 5);
    p->run_us = chance_spread(c, 100, 20000);
    p->compile_ms = 1 + chance_below(c, 50);
    WEIGHTS({COURSE_ASK, 700}, {COURSE_DIE, 20}, {COURSE_HANG, 4}, {COURSE_CUT, 4},
            {COURSE_BARE, 40}, {COURSE_SEAL, 60}, {COURSE_GUILT, 40}, {COURSE_HANDOVER, 8},
            {COURSE_FLOOD, 8}, {COURSE_CRASH, 8}, {COURSE_FALL, 3}, {COURSE_STALL, 6},
            {COURSE_LAUNCHER, 3}, {COURSE_BREAK, 10}, {COURSE_BYE, 10}, {COURSE_HOLIDAY, 6},
            {COURSE_INQUIRE, 120});
    return pace_of(chance_spread(c, 1000, 1000000), 200 + below(c, 600));
}

static struct course_pace due(struct chance *c, struct course_params *p, unsigned *weight)
{
    be_plain(p, 1 + chance_below(c, 3), 2 + chance_below(c, 4));
    p->run_us = chance_spread(c, 500, 50000);
    p->wire_us = chance_spread(c, 10, 2000);
    p->compile_ms = 1 + chance_below(c, 50);
    p->window = chance_percent(c, 50) ? 0 : 1 + chance_below(c, 8);
    WEIGHTS({COURSE_DUE, 600}, {COURSE_BARE, 40}, {COURSE_ASK, 40}, {COURSE_FLOOD, 4},
            {COURSE_INQUIRE, 30});
    if (chance_percent(c, 50)) {
        WEIGHTS({COURSE_DIE, 5}, {COURSE_HANDOVER, 3}, {COURSE_CRASH, 3}, {COURSE_BREAK, 5},
                {COURSE_STALL, 3});
    }
    return pace_of(chance_spread(c, p->run_us / 2, 8 * p->run_us), 200 + below(c, 400));
}

/* Jobs of known times, from tenants that share one or two devices. */
static void be_loaded(struct chance *c, struct course_params *p)
{
    be_plain(p, chance_percent(c, 45) ? 1 : 2, 3 + chance_below(c, 3));
    p->streams = 1 + chance_below(c, 4);
    p->urgent = p->streams > 1 ? chance_below(c, 2) : 0;
    p->run_us = chance_spread(c, 500, 4000);
    p->wire_us = chance_spread(c, 10, 200);
    p->compile_ms = 1 + chance_below(c, 50);
    p->time_limit_ms = 30000;
    p->window = chance_percent(c, 30) ? 0 : p->streams + chance_below(c, 8);
}

/* In half of them few jobs are in flight, and four tenants go on for long: what one waits for is
 * known well, and small errors add up. */
static struct course_pace loaded_pace(struct chance *c, struct course_params *p,
                                      unsigned weight[COURSE_KINDS], struct course_pace usual)
{
    if (!chance_percent(c, 50)) {
        return usual;
    }
    p->devices = 1;
    p->clients = p->tenants = 4;
    p->streams = 1 + chance_below(c, 2);
    p->window = p->streams;
    p->urgent = 0;
    p->staging_kib = 1024;
    WEIGHTS({COURSE_REWEIGH, 0}, {COURSE_DIE, 0}, {COURSE_BYE, 0}, {COURSE_BREAK, 0},
            {COURSE_HEAP, 0});
    weight[COURSE_ASK] *= 4; /* of any class: one may wait for another */
    return (struct course_pace){.usual_us = 30000, .events = 150 + below(c, 50), .steady = true};
}

static struct course_pace shares(struct chance *c, struct course_params *p, unsigned *weight)
{
    unsigned reweighs = chance_percent(c, 40) ? 80 : 0;
    be_loaded(c, p);
    WEIGHTS({COURSE_LOAD, 900}, {COURSE_REWEIGH, reweighs}, {COURSE_ASK, 60}, {COURSE_INQUIRE, 20},
            {COURSE_HEAP, 15});
    p->staging_kib = chance_percent(c, 75) ? 1024 : 8 + chance_below(c, 24);
    if (chance_percent(c, 30)) {
        WEIGHTS({COURSE_DIE, 10}, {COURSE_BYE, 10}, {COURSE_BREAK, 10});
    }
    struct course_pace usual = pace_of(8 * p->run_us + 10000, 40 + below(c, 60));
    return loaded_pace(c, p, weight, usual);
}

static struct course_pace rivals(struct chance *c, struct course_params *p, unsigned *weight)
{
    unsigned reweighs = chance_percent(c, 40) ? 80 : 0;
    be_loaded(c, p);
    WEIGHTS({COURSE_LOAD, 900}, {COURSE_REWEIGH, reweighs}, {COURSE_INQUIRE, 20});
    struct course_pace usual = pace_of(8 * p->run_us + 20000, 40 + below(c, 60));
    return loaded_pace(c, p, weight, usual);
}

/* Jobs come one by one, and some do not stay. */
static struct course_pace visits(struct chance *c, unsigned *weight)
{
    WEIGHTS({COURSE_VISIT, 600}, {COURSE_GUILT, 60}, {COURSE_ASK, 30}, {COURSE_HANG, 15},
            {COURSE_INQUIRE, 30});
    return pace_of(chance_spread(c, 300000, 2000000), 150 + below(c, 150));
}

static struct course_pace overruns(struct chance *c, struct course_params *p, unsigned *weight)
{
    be_loaded(c, p);
    p->run_us = chance_spread(c, 4000, 10000);
    p->pauses = 50;
    if (chance_percent(c, 25)) {
        p->pauses = 0; /* these would overrun, too */
        return visits(c, weight);
    }
    WEIGHTS({COURSE_LOAD, 300}, {COURSE_GUILT, 300}, {COURSE_ASK, 200}, {COURSE_STALL, 10},
            {COURSE_HANG, 60}, {COURSE_DIE, 15}, {COURSE_INQUIRE, 120});
    if (chance_percent(c, 40)) { /* the next front finds several workers with jobs */
        WEIGHTS({COURSE_CRASH, 15}, {COURSE_HANDOVER, 10}, {COURSE_SLOW, 20});
    }
    return pace_of(8 * p->run_us + 20000, 150 + below(c, 250));
}

void course_special(uint64_t seed, struct course_params *p, unsigned weight[COURSE_KINDS],
                    struct course_pace *pace)
{
    static struct course_pace (*const make[COURSE_WORLDS])(struct chance *, struct course_params *,
                                                           unsigned *) = {
        [WORLD_HELD] = held,       [WORLD_TURNS] = turns,     [WORLD_UNREAD] = unread,
        [WORLD_HOARD] = hoard,     [WORLD_PAUSED] = paused,   [WORLD_BARE] = bare,
        [WORLD_HOLIDAY] = holiday, [WORLD_SEALS] = seals,     [WORLD_HOSTILE] = hostile,
        [WORLD_LARGE] = large,     [WORLD_DOMAINS] = domains, [WORLD_DUE] = due,
        [WORLD_SHARES] = shares,   [WORLD_RIVALS] = rivals,   [WORLD_OVERRUNS] = overruns,
    };
    struct chance c = chance_of(seed, 9);
    struct chance other = chance_of(seed, 10);
    bool own = chance_percent(&other, OWN_PERCENT);
    if (seed % ONE_IN == 0 || own) {
        p->special = seed % ONE_IN == 0 ? WORLD_USUAL + 1 + seed / ONE_IN % (COURSE_WORLDS - 1)
                                        : WORLD_DOMAINS;
        memset(weight, 0, COURSE_KINDS * sizeof *weight);
        *pace = make[p->special](&c, p, weight);
    }
}
