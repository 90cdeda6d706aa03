#include "daemon/front/sched/kind.h"

#include <string.h>

#include "common/hash.h"
#include "common/saturate.h"
#include "daemon/front/model/forecast.h"
#include "daemon/front/model/module.h"

/* Four sizes for each power of two. */
static uint64_t size_class(uint64_t n)
{
    unsigned log = n < 8 ? 0 : 63u - (unsigned)__builtin_clzll(n);
    return n < 8 ? n : (uint64_t)log << 2 | (n >> (log - 2) & 3);
}

static uint64_t launch_kind(uint64_t h, const struct work_step *s)
{
    uint64_t module = 0;
    if (s->module != NULL) {
        memcpy(&module, s->module->hash.byte, sizeof module);
    }
    h = forecast_mix(h, module);
    h = forecast_mix(h, hash_short(s->entry, strlen(s->entry)));
    uint64_t items =
        sat_mul(sat_mul(s->global[0] > 0 ? s->global[0] : 1, s->global[1] > 0 ? s->global[1] : 1),
                s->global[2] > 0 ? s->global[2] : 1);
    return forecast_mix(h, size_class(items));
}

uint64_t kind_of(const struct work *w)
{
    uint64_t h = w->step_count;
    for (unsigned i = 0; i < w->step_count; i++) {
        const struct work_step *s = &w->steps[i];
        uint64_t bytes = 0;
        for (unsigned k = 0; k < s->ref_count; k++) {
            bytes = sat_add(bytes, w->refs[s->first_ref + k].size);
        }
        h = forecast_mix(h, (uint64_t)s->op << 32 | size_class(bytes));
        h = s->entry[0] != '\0' ? launch_kind(h, s) : h;
    }
    return w->step_count > 0 && h == 0 ? 1 : h;
}
