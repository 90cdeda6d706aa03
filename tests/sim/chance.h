/*
 * Random numbers that follow from one seed. Each event of a course has numbers of its own, so that
 * an event does the same whether or not others are left out. Pure. Thread: any.
 */
#ifndef TEST_SIM_CHANCE_H
#define TEST_SIM_CHANCE_H

#include <stdbool.h>
#include <stdint.h>

struct chance {
    uint64_t state;
};

/* splitmix64 */
static inline uint64_t chance_mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static inline struct chance chance_of(uint64_t seed, uint64_t salt)
{
    return (struct chance){.state = chance_mix(seed ^ chance_mix(salt))};
}

static inline uint64_t chance_next(struct chance *c)
{
    c->state += UINT64_C(0x9e3779b97f4a7c15);
    return chance_mix(c->state);
}

/* 0 … below - 1; below > 0. */
static inline uint64_t chance_below(struct chance *c, uint64_t below)
{
    return chance_next(c) % below;
}

static inline bool chance_one_in(struct chance *c, uint64_t n)
{
    return chance_below(c, n) == 0;
}

static inline bool chance_percent(struct chance *c, unsigned percent)
{
    return chance_below(c, 100) < percent;
}

/* From `least` to `most`; each order of magnitude is as likely as any other. */
static inline uint64_t chance_spread(struct chance *c, uint64_t least, uint64_t most)
{
    uint64_t top = least > 0 ? least : 1;
    unsigned doublings = 0;
    while (top < most && doublings < 63) {
        top *= 2;
        doublings++;
    }
    uint64_t base = (least > 0 ? least : 1) << chance_below(c, doublings + 1);
    uint64_t value = base + chance_below(c, base);
    return value > most ? most : value;
}

#endif
