/* bench_trips URL COUNT [OUTSTANDING]: COUNT null jobs to a running gpud, for tools that count
 * their cost (scripts/count-switches, perf, strace). Prints the median and the rate. */
#include <stdio.h>
#include <stdlib.h>

#include "bench/common/echo.h"
#include "bench/common/samples.h"
#include "common/clock.h"

static unsigned number(const char *text, unsigned max)
{
    char *end = NULL;
    unsigned long value = strtoul(text, &end, 10);
    if (end == text || *end != '\0' || value == 0 || value > max) {
        bench_die("'%s' is no number from 1 to %u", text, max);
    }
    return (unsigned)value;
}

int main(int argc, char **argv)
{
    uint64_t begun[ECHO_SLOTS];
    struct samples samples;
    if (argc < 3 || argc > 4) {
        bench_die("usage: bench_trips URL COUNT [OUTSTANDING]");
    }
    unsigned count = number(argv[2], 100000000);
    unsigned outstanding = argc > 3 ? number(argv[3], ECHO_SLOTS) : 1;
    samples_init(&samples);
    struct echo *c = echo_gpud.open(argv[1], outstanding);
    uint64_t begin_ns = clock_now_ns();
    for (unsigned i = 0; i < count + outstanding; i++) {
        unsigned slot = i % outstanding;
        if (i >= outstanding) {
            echo_gpud.take(c, slot);
            samples_add(&samples, (double)(clock_now_ns() - begun[slot]) / 1e3);
        }
        if (i < count) {
            begun[slot] = clock_now_ns();
            echo_gpud.send(c, slot);
        }
    }
    double seconds = (double)(clock_now_ns() - begin_ns) / 1e9;
    (void)printf("%u null jobs: p50 %.1f us, p99 %.1f us, %.0f/s\n", count,
                 samples_median(&samples), samples_at(&samples, 0.99), count / seconds);
    echo_gpud.close(c);
    samples_finish(&samples);
    return EXIT_SUCCESS;
}
