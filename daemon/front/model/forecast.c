#include "daemon/front/model/forecast.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

#define RECENT      8.0f        /* a job counts for the part 1 / RECENT of the mean */
#define FAR         4.0f        /* times the drift: what is farther from the mean is cut there */
#define FAR_AT_ALL  (1.0f / 16) /* of the mean: nearer is never cut */
#define SURE_WITHIN 0.5f        /* of the mean */

uint64_t forecast_device(const char *backend, unsigned number, const char *name)
{
    uint64_t h = hash_short(backend, strlen(backend));
    return forecast_mix(forecast_mix(h, hash_short(name, strlen(name))), number + 1);
}

uint64_t forecast_key(uint64_t kind, uint64_t device)
{
    uint64_t key = forecast_mix(kind, device);
    return kind == 0 ? 0 : key == 0 ? 1 : key;
}

static struct forecast_entry *set_of(const struct forecast *c, uint64_t key)
{
    return &c->entry[(key >> 32) % FORECAST_SETS * FORECAST_WAYS];
}

static struct forecast_entry *find(const struct forecast *c, uint64_t key)
{
    struct forecast_entry *set = c->entry != NULL && key != 0 ? set_of(c, key) : NULL;
    for (unsigned i = 0; set != NULL && i < FORECAST_WAYS; i++) {
        if (set[i].key == key) {
            return &set[i];
        }
    }
    return NULL;
}

/* The entry of the key, made if need be; NULL: no memory. */
static struct forecast_entry *obtain(struct forecast *c, uint64_t key)
{
    if (c->entry == NULL) {
        c->entry = calloc((size_t)FORECAST_SETS * FORECAST_WAYS, sizeof *c->entry);
    }
    struct forecast_entry *x = find(c, key);
    if (x != NULL || c->entry == NULL) {
        return x;
    }
    struct forecast_entry *set = set_of(c, key);
    x = &set[0];
    for (unsigned i = 1; i < FORECAST_WAYS; i++) {
        bool older = c->clock - set[i].used > c->clock - x->used;
        x = x->key != 0 && (set[i].key == 0 || older) ? &set[i] : x;
    }
    *x = (struct forecast_entry){.key = key, .used = c->clock};
    return x;
}

struct estimate forecast_find(struct forecast *c, uint64_t key)
{
    struct forecast_entry *x = find(c, key);
    if (x == NULL) {
        return (struct estimate){0};
    }
    x->used = ++c->clock;
    return (struct estimate){.ns = x->mean_ns >= 1 ? (uint64_t)x->mean_ns : 1,
                             .sure = x->count >= FORECAST_SURE &&
                                     x->drift_ns <= SURE_WITHIN * x->mean_ns};
}

void forecast_learn(struct forecast *c, uint64_t key, uint64_t ns)
{
    struct forecast_entry *x = key != 0 ? obtain(c, key) : NULL;
    if (x == NULL) {
        return;
    }
    float off = (float)ns - x->mean_ns;
    float most = FAR * x->drift_ns + FAR_AT_ALL * x->mean_ns;
    if (x->count >= FORECAST_SURE && fabsf(off) > most) {
        off = off > 0 ? most : -most;
    }
    float part = x->count < (uint32_t)RECENT ? 1.0f / (float)(x->count + 1) : 1.0f / RECENT;
    x->drift_ns += x->count > 0 ? part * (fabsf(off) - x->drift_ns) : 0;
    x->mean_ns += part * off;
    x->count += x->count < UINT32_MAX;
    x->used = ++c->clock;
}

void forecast_restore(struct forecast *c, const struct forecast_entry *entry)
{
    bool sound = entry->key != 0 && entry->count > 0 && isfinite(entry->mean_ns) &&
                 isfinite(entry->drift_ns) && entry->mean_ns > 0 && entry->drift_ns >= 0;
    struct forecast_entry *x = sound && find(c, entry->key) == NULL ? obtain(c, entry->key) : NULL;
    if (x != NULL) {
        *x = *entry;
        x->used = ++c->clock;
    }
}

void forecast_finish(struct forecast *c)
{
    free(c->entry);
    *c = (struct forecast){0};
}
