#include "daemon/front/metrics/histogram.h"

#define US UINT64_C(1000)
#define MS (1000 * US)
#define S  (1000 * MS)

const uint64_t histogram_bounds[HISTOGRAM_BOUNDS] = {
    10 * US,   25 * US, 50 * US, 100 * US, 250 * US, 500 * US, 1 * MS,   2500 * US,
    5 * MS,    10 * MS, 25 * MS, 50 * MS,  100 * MS, 250 * MS, 500 * MS, 1 * S,
    2500 * MS, 5 * S,   10 * S,  30 * S,   60 * S,   300 * S};

void histogram_note(struct histogram *h, uint64_t ns, uint64_t trace, uint64_t wall_ns)
{
    unsigned at = 0;
    while (at < HISTOGRAM_BOUNDS && ns > histogram_bounds[at]) {
        at++;
    }
    h->count[at]++;
    h->sum_ns += ns;
    if (trace != 0) {
        h->last[at] = (struct exemplar){.trace = trace, .ns = ns, .wall_ns = wall_ns};
    }
}
