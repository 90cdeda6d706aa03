/*
 * bench_interactive: round trips of one client while another client copies 1 GiB, against round
 * trips of an idle gpud.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/common/bench.h"
#include "bench/common/partner.h"
#include "bench/common/trial.h"

#define PART ((size_t)256 << 20)

/* Copies in and out until it is killed; reports the first copy. */
struct copier {
    const char *url;
    size_t bytes;
    enum placement place;
};

static void copy_on(const void *copier, int in, int out)
{
    const struct copier *k = copier;
    gpud_client *c = NULL;
    gpud_buffer b = {0};
    uint8_t *data = malloc(k->bytes);
    (void)in;
    machine_pin_client(k->place, getpid());
    if (data == NULL) {
        bench_die("no memory");
    }
    memset(data, 7, k->bytes);
    if (gpud_open(k->url, NULL, &c) != 0 ||
        gpud_buffer_create(c, gpud_shape_1d(GPUD_U8, k->bytes), 0, NULL, &b) != 0) {
        bench_die("gpud: the copying client: %s", gpud_last_error()->text);
    }
    for (bool reported = false;; reported = true) {
        if (gpud_write(c, b, GPUD_U8, 0, GPUD_REST, data, NULL) != 0 ||
            gpud_read(c, b, GPUD_U8, 0, GPUD_REST, data, NULL) != 0) {
            bench_die("gpud: copying: %s", gpud_last_error()->text);
        }
        if (!reported && write(out, data, 1) != 1) {
            _Exit(EXIT_FAILURE);
        }
    }
}

static void add(struct bench *b, const char *part, const char *what, const struct trial *t)
{
    struct trial_result r;
    trial_run(t, &r);
    report_add(&b->report, part, what, "p50", "us", r.p50_us);
    report_add(&b->report, part, what, "p99", "us", r.p99_us);
}

static void measure(struct bench *b, const struct gpud *g, const char *lane, enum placement place)
{
    char part[FIGURE_TEXT];
    struct trial t = {.kind = &echo_gpud,
                      .address = g->url,
                      .lane = lane,
                      .place = place,
                      .sessions = 1,
                      .outstanding = 1,
                      .warm = bench_scale(b, 100, 2),
                      .count = bench_scale(b, 2000, 20)};
    (void)snprintf(part, sizeof part, "%s, %s lane", placement_name(place), lane);
    if (!bench_wants(b, part)) {
        return;
    }
    gpud_place(g, place);
    for (unsigned i = 0; i < b->repeat; i++) {
        add(b, part, "null job, idle", &t);
        const struct copier k = {g->url, bench_scale(b, PART, (size_t)1 << 20), place};
        struct partner copier;
        char byte;
        partner_start(&copier, copy_on, &k);
        partner_read(&copier, &byte, 1); /* it has begun to copy */
        add(b, part, "null job beside copies", &t);
        partner_kill(&copier);
    }
    report_against(&b->report, part, "null job beside copies", "p50", "null job, idle");
    report_against(&b->report, part, "null job beside copies", "p99", "null job, idle");
}

int main(int argc, char **argv)
{
    struct bench b;
    struct gpud g;
    bench_begin(&b, "interactive",
                "Null jobs of one client while another one copies without a pause, against null\n"
                "jobs of an idle gpud.",
                5, argc, argv);
    bench_gpud(&b, &g, NULL);
    for (const char *const *lane = bench_lanes; *lane != NULL; lane++) {
        measure(&b, &g, *lane, PLACE_ANY);
    }
    gpud_stop(&g);
    return bench_end(&b);
}
