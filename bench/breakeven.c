/*
 * bench_breakeven: the array size from which gpud is faster than a loop on this processor:
 * gpud_call with arrays in this process' memory, and a kernel on resident buffers.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/common/bench.h"
#include "bench/common/echo.h"
#include "common/clock.h"

#define SMALLEST 64u

/* A reduction (sum) or a map (y = exp x). */
struct trip {
    const char *name;
    bool map;
    bool resident;
};

static const struct trip trips[] = {{"sum, resident", false, true},
                                    {"map, resident", true, true},
                                    {"sum, host arrays", false, false},
                                    {"map, host arrays", true, false}};

struct data {
    gpud_client *client;
    gpud_kernel kernel;
    gpud_buffer x;
    gpud_buffer y;
    float *from;
    float *to;
};

static void must(int rc, const char *what)
{
    if (rc < 0) {
        bench_die("gpud: %s: %s", what, gpud_last_error()->text);
    }
}

static void loop(const struct trip *t, const struct data *d, uint32_t n)
{
    if (t->map) {
        for (uint32_t i = 0; i < n; i++) {
            d->to[i] = expf(d->from[i]);
        }
        return;
    }
    float s[4] = {0, 0, 0, 0};
    for (uint32_t i = 0; i < n; i++) {
        s[i % 4] += d->from[i];
    }
    d->to[0] = s[0] + s[1] + s[2] + s[3];
}

static void through(const struct trip *t, const struct data *d, uint32_t n)
{
    uint32_t out = t->map ? n : 1;
    gpud_arg host[] = {gpud_host_in(d->from, n, GPUD_F32), gpud_host_out(d->to, out, GPUD_F32)};
    gpud_arg device[] = {gpud_arg_with(gpud_slice(d->x, 0, n), GPUD_IN),
                         gpud_arg_with(gpud_slice(d->y, 0, out), GPUD_OUT)};
    must(gpud_call(d->client, d->kernel, t->resident ? device : host, 2, NULL), t->name);
}

static void verify(const struct trip *t, const struct data *d, uint32_t n)
{
    double sum = 0;
    float got = 0;
    uint32_t last = t->map ? n - 1 : 0;
    through(t, d, n);
    if (t->resident) {
        must(gpud_read(d->client, d->y, GPUD_F32, last, 1, &got, NULL), "reading");
    } else {
        got = d->to[last];
    }
    for (uint32_t i = 0; i < n; i++) {
        sum += (double)d->from[i];
    }
    double right = t->map ? exp((double)d->from[last]) : sum;
    if (!(fabs((double)got - right) <= 1e-3 * fabs(right))) {
        bench_die("%s of %u gave %g instead of %g", t->name, n, (double)got, right);
    }
}

/* Microseconds of one run. */
static double timed(void (*work)(const struct trip *, const struct data *, uint32_t),
                    const struct trip *t, const struct data *d, uint32_t n, unsigned count)
{
    uint64_t begin_ns = clock_now_ns();
    for (unsigned i = 0; i < count; i++) {
        work(t, d, n);
    }
    return (double)(clock_now_ns() - begin_ns) / 1e3 / count;
}

/* The smallest measured size from which on gpud is always faster; 0: none. */
static double cross(const double *gpud, const double *own, unsigned count)
{
    unsigned at = count;
    while (at > 0 && gpud[at - 1] < own[at - 1]) {
        at--;
    }
    if (at == count) {
        return 0;
    }
    return SMALLEST * pow(4, at);
}

static void measure(struct bench *b, const struct trip *t, struct data *d, const char *part,
                    uint32_t largest)
{
    double gpud[16];
    double own[16];
    must(gpud_kernel_find(d->client, t->map ? "exp" : "reduce_sum", &d->kernel), "a kernel");
    for (unsigned k = 0; k < b->repeat; k++) {
        unsigned sizes = 0;
        for (uint32_t n = SMALLEST; n <= largest; n *= 4, sizes++) {
            unsigned count = bench_scale(b, 1 + 20000 / (n / SMALLEST + 100), 2u);
            if (k == 0) {
                verify(t, d, n);
            }
            gpud[sizes] = timed(through, t, d, n, count);
            own[sizes] = timed(loop, t, d, n, count);
        }
        report_add(&b->report, part, t->name, "pays from", "items", cross(gpud, own, sizes));
        report_add(&b->report, part, t->name, "smallest", "us", gpud[0]);
        report_add(&b->report, part, t->name, "largest", "us", gpud[sizes - 1]);
        report_add(&b->report, part, t->name, "loop, largest", "us", own[sizes - 1]);
    }
}

static void data_init(struct data *d, const char *url, uint32_t largest)
{
    gpud_shape shape = gpud_shape_1d(GPUD_F32, largest);
    *d = (struct data){.client = NULL};
    d->from = malloc(largest * sizeof *d->from);
    d->to = malloc(largest * sizeof *d->to);
    if (d->from == NULL || d->to == NULL) {
        bench_die("no memory");
    }
    for (uint32_t i = 0; i < largest; i++) {
        d->from[i] = (float)(i % 1000) / 1000.0f;
        d->to[i] = 0;
    }
    must(gpud_open(url, NULL, &d->client), "opening");
    must(gpud_buffer_create(d->client, shape, 0, NULL, &d->x), "a buffer");
    must(gpud_buffer_create(d->client, shape, 0, NULL, &d->y), "a buffer");
    must(gpud_write(d->client, d->x, GPUD_F32, 0, GPUD_REST, d->from, NULL), "writing");
}

static void data_finish(struct data *d)
{
    gpud_close(d->client);
    free(d->from);
    free(d->to);
}

int main(int argc, char **argv)
{
    struct bench b;
    struct gpud g;
    bench_begin(&b, "breakeven",
                "From which number of elements on a trip through gpud beats a loop here (0: from\n"
                "none that was tried): a sum and a map (exp), resident and with host arrays.",
                5, argc, argv);
    uint32_t largest = SMALLEST << bench_scale(&b, 16, 4);
    bench_gpud(&b, &g, NULL);
    for (const char *const *lane = bench_lanes; *lane != NULL; lane++) {
        struct data d;
        char part[FIGURE_TEXT];
        (void)setenv("GPUD_LANE", *lane, 1);
        data_init(&d, g.url, largest);
        for (unsigned i = 0; i < 2; i++) {
            enum placement place = i == 0 ? PLACE_ONE : PLACE_ANY;
            (void)snprintf(part, sizeof part, "%s, %s lane", placement_name(place), *lane);
            machine_pin_client(place, getpid());
            gpud_place(&g, place);
            for (unsigned k = 0; bench_wants(&b, part) && k < 4; k++) {
                measure(&b, &trips[k], &d, part, largest);
            }
        }
        machine_unpin(getpid());
        data_finish(&d);
    }
    gpud_stop(&g);
    return bench_end(&b);
}
