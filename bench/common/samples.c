#include "bench/common/samples.h"

#include <stdlib.h>

#include "bench/common/echo.h"

void samples_init(struct samples *s)
{
    *s = (struct samples){.sorted = true};
}

void samples_finish(struct samples *s)
{
    free(s->value);
    samples_init(s);
}

void samples_add(struct samples *s, double value)
{
    if (s->count == s->room) {
        unsigned room = s->room == 0 ? 64 : 2 * s->room;
        double *grown = realloc(s->value, room * sizeof *grown);
        if (grown == NULL) {
            bench_die("no memory for %u samples", room);
        }
        s->value = grown;
        s->room = room;
    }
    s->value[s->count++] = value;
    s->sorted = false;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

double samples_at(struct samples *s, double share)
{
    if (s->count == 0) {
        return 0;
    }
    if (!s->sorted) {
        qsort(s->value, s->count, sizeof *s->value, by_value);
        s->sorted = true;
    }
    unsigned at = (unsigned)(share * (double)(s->count - 1) + 0.5);
    return s->value[at < s->count ? at : s->count - 1];
}

double samples_median(struct samples *s)
{
    return samples_at(s, 0.5);
}
