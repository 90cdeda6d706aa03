#include "gpuctl/top/spark.h"

#include <string.h>

#define LEVELS 9u

static const char *const blocks[LEVELS] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const letters[LEVELS] = {" ", ".", ":", "-", "=", "+", "*", "#", "@"};

void spark_add(struct spark *s, double value)
{
    s->value[s->next] = value;
    s->next = (s->next + 1) % SPARK_VALUES;
    s->count += s->count < SPARK_VALUES;
}

double spark_most(const struct spark *s)
{
    double most = 0;
    for (unsigned i = 0; i < s->count; i++) {
        most = s->value[i] > most ? s->value[i] : most;
    }
    return most;
}

/* 0 for nothing; anything more has at least the least bar. */
static unsigned level(double value, double full)
{
    if (!(value > 0) || !(full > 0)) {
        return 0;
    }
    double part = value / full;
    return part >= 1 ? LEVELS - 1 : 1 + (unsigned)(part * (LEVELS - 2));
}

const char *spark_text(const struct spark *s, double full, unsigned width, bool utf8, char *out)
{
    size_t used = 0;
    width = width < SPARK_VALUES ? width : SPARK_VALUES;
    for (unsigned i = 0; i < width; i++) {
        unsigned age = width - i; /* 1: the newest */
        unsigned at = (s->next + SPARK_VALUES - age) % SPARK_VALUES;
        unsigned height = age <= s->count ? level(s->value[at], full) : 0;
        const char *bar = utf8 ? blocks[height] : letters[height];
        size_t n = strlen(bar);
        memcpy(out + used, bar, n);
        used += n;
    }
    out[used] = '\0';
    return out;
}
