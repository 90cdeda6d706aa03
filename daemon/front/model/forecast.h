/*
 * How long jobs take, learnt from those that have ended: for each kind of job (sched/kind.h), by
 * device. A table belongs to one tenant, so that no tenant learns of, or displaces, what others
 * run. It has a fixed size; the entry of a set that was used longest ago gives way. Pure data.
 * Thread: the loop's.
 */
#ifndef FRONT_MODEL_FORECAST_H
#define FRONT_MODEL_FORECAST_H

#include <stdbool.h>
#include <stdint.h>

#define FORECAST_SETS 128u
#define FORECAST_WAYS 4u
#define FORECAST_SURE 8u /* jobs of a kind, after which its time counts as known */

/* Zeroed: unknown. */
struct forecast_entry {
    uint64_t key;   /* of kind and device */
    float mean_ns;  /* of recent jobs */
    float drift_ns; /* their mean distance from the mean */
    uint32_t count; /* jobs; stops at UINT32_MAX */
    uint32_t used;  /* by the table's clock */
};

/* Zeroed: empty. */
struct forecast {
    struct forecast_entry *entry; /* owned; NULL: nothing was learnt */
    uint32_t clock;
};

struct estimate {
    uint64_t ns;
    bool sure; /* the time is known, and does not vary by more than a half */
};

/* The next hash of a sequence. */
static inline uint64_t forecast_mix(uint64_t h, uint64_t value)
{
    h = (h ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 29;
}

/* A number that names a device across restarts. */
uint64_t forecast_device(const char *backend, unsigned number, const char *name);
/* 0 for kind 0. */
uint64_t forecast_key(uint64_t kind, uint64_t device);
/* What is expected of the next job of that key. ns 0: unknown. O(1). */
struct estimate forecast_find(struct forecast *c, uint64_t key);
/* A job of that key took so long. One that took far longer or less than usual counts as one at a
 * limit, until several did. Without memory nothing is learnt. O(1). */
void forecast_learn(struct forecast *c, uint64_t key, uint64_t ns);
/* Puts an entry that was learnt before; a known one stays. */
void forecast_restore(struct forecast *c, const struct forecast_entry *entry);
void forecast_finish(struct forecast *c);

#endif
