#include "daemon/front/model/accuracy.h"

#define RECENT    4096u /* predictions, after which older ones count for half */
#define UNIT_PPM  1000u
#define FIRST_LOG 2u /* errors below 1 << FIRST_LOG units have a class each */

static unsigned class_of(uint64_t units)
{
    unsigned log = units < (1u << FIRST_LOG) ? 0 : 63u - (unsigned)__builtin_clzll(units);
    uint64_t class = log == 0 ? units : (uint64_t)(log - 1) << 2 | (units >> (log - 2) & 3);
    return class < ACCURACY_CLASSES ? (unsigned)class : ACCURACY_CLASSES - 1;
}

/* The least error of a class, in units. */
static uint64_t least_of(unsigned class)
{
    return class < (1u << FIRST_LOG)
               ? class
               : (uint64_t)(4 | (class & 3)) << ((class >> 2) + 1 - FIRST_LOG);
}

void accuracy_note(struct accuracy *a, uint64_t predicted_ns, uint64_t actual_ns)
{
    if (actual_ns == 0) {
        return;
    }
    double off = (double)predicted_ns - (double)actual_ns;
    double units = (off < 0 ? -off : off) / (double)actual_ns * (1e6 / UNIT_PPM);
    a->count[class_of(units < 1e9 ? (uint64_t)units : 1000000000u)]++;
    if (++a->total > RECENT) {
        a->total = 0;
        for (unsigned i = 0; i < ACCURACY_CLASSES; i++) {
            a->count[i] /= 2;
            a->total += a->count[i];
        }
    }
}

uint64_t accuracy_ppm(const struct accuracy *a, unsigned percent)
{
    uint64_t wanted = ((uint64_t)a->total * percent + 99) / 100;
    uint64_t seen = 0;
    unsigned class = 0;
    for (; class + 1 < ACCURACY_CLASSES; class ++) {
        seen += a->count[class];
        if (seen >= wanted) {
            break;
        }
    }
    return a->total == 0 ? 0 : (least_of(class) + least_of(class + 1)) * UNIT_PPM / 2;
}
