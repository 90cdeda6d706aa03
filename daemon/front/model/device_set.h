/*
 * A set of devices, by their places in front->device. Thread: any; all is pure.
 */
#ifndef FRONT_MODEL_DEVICE_SET_H
#define FRONT_MODEL_DEVICE_SET_H

#include <stdbool.h>
#include <stdint.h>

#define DEVICES_MAX 64u /* that clients can name; their places are the first ones */
#define DOMAINS_MAX 64u /* workers of single tenants, on all devices together (domain.h) */
#define PLACES_MAX  (DEVICES_MAX + DOMAINS_MAX)

#define DEVICE_SET_WORDS (PLACES_MAX / 64u)

struct device_set {
    uint64_t word[DEVICE_SET_WORDS];
};

static inline bool device_set_has(const struct device_set *s, unsigned place)
{
    return (s->word[place / 64] >> place % 64 & 1) != 0;
}

static inline void device_set_put(struct device_set *s, unsigned place)
{
    s->word[place / 64] |= UINT64_C(1) << place % 64;
}

static inline void device_set_drop(struct device_set *s, unsigned place)
{
    s->word[place / 64] &= ~(UINT64_C(1) << place % 64);
}

static inline bool device_set_any(const struct device_set *s)
{
    uint64_t any = 0;
    for (unsigned i = 0; i < DEVICE_SET_WORDS; i++) {
        any |= s->word[i];
    }
    return any != 0;
}

/* Whether `s` has every device of `others`. */
static inline bool device_set_covers(const struct device_set *s, const struct device_set *others)
{
    uint64_t missing = 0;
    for (unsigned i = 0; i < DEVICE_SET_WORDS; i++) {
        missing |= others->word[i] & ~s->word[i];
    }
    return missing == 0;
}

#endif
