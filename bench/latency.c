/*
 * bench_latency: one round trip at a time: gpud's null job, compared with the simpler round trips
 * of a socket, NNG and gRPC in the same repetitions, on one CPU and on separate ones.
 */
#include <stdio.h>
#include <string.h>

#include "bench/common/bench.h"
#include "bench/common/trial.h"

struct floors {
    struct server server[4];
    unsigned count;
};

static const char *const floor_names[] = {"unix", "relay", "nng", "grpc"};

static void floors_start(struct floors *f, struct bench *b, const char *dir)
{
    f->count = 0;
    for (unsigned i = 0; i < sizeof floor_names / sizeof floor_names[0]; i++) {
        const struct echo_kind *kind = echo_find(floor_names[i]);
        if (kind == NULL) {
            report_left_out(&b->report, floor_names[i],
                            "its headers were not there when this was built");
        } else {
            server_start(&f->server[f->count++], kind, dir);
        }
    }
}

static void add(struct bench *b, enum placement p, const char *what, const struct trial_result *r)
{
    const char *part = placement_name(p);
    report_add(&b->report, part, what, "p50", "us", r->p50_us);
    report_add(&b->report, part, what, "p99", "us", r->p99_us);
}

static void repetition(struct bench *b, const struct floors *f, const struct gpud *g,
                       enum placement p)
{
    struct trial_result r;
    double relay_us = 0;
    struct trial t = {.place = p,
                      .sessions = 1,
                      .outstanding = 1,
                      .warm = bench_scale(b, 200, 10),
                      .count = bench_scale(b, 2000, 20)};
    for (unsigned i = 0; i < f->count; i++) {
        t.kind = f->server[i].kind;
        t.address = f->server[i].address;
        machine_pin_server(p, f->server[i].pid);
        trial_run(&t, &r);
        add(b, p, t.kind->name, &r);
        relay_us = t.kind == &echo_relay ? r.p50_us : relay_us;
    }
    t.kind = &echo_gpud;
    t.address = g->url;
    gpud_place(g, p);
    for (const char *const *lane = bench_lanes; *lane != NULL; lane++) {
        char what[FIGURE_TEXT];
        (void)snprintf(what, sizeof what, "null job, %s lane", *lane);
        t.lane = *lane;
        trial_run(&t, &r);
        add(b, p, what, &r);
        report_add(&b->report, placement_name(p), what, "p50 over relay", "x", r.p50_us / relay_us);
    }
}

static void compare(struct bench *b, enum placement p)
{
    static const char *const figures[] = {"p50", "p99"};
    for (const char *const *lane = bench_lanes; *lane != NULL; lane++) {
        char what[FIGURE_TEXT];
        (void)snprintf(what, sizeof what, "null job, %s lane", *lane);
        for (unsigned i = 0; i < 2; i++) {
            report_against(&b->report, placement_name(p), what, figures[i],
                           strcmp(*lane, "nng") == 0 ? "nng" : "grpc");
        }
    }
    for (unsigned i = 0; i < 2; i++) {
        report_against(&b->report, placement_name(p), "relay", figures[i], "unix");
        report_against(&b->report, placement_name(p), "nng", figures[i], "unix");
        report_against(&b->report, placement_name(p), "grpc", figures[i], "unix");
    }
}

int main(int argc, char **argv)
{
    struct bench b;
    struct gpud g;
    struct floors f;
    bench_begin(&b, "latency",
                "Round trips one at a time: gpud's null job (a program without steps) against a\n"
                "unix socket, the same through a process in between, NNG's echo and an empty\n"
                "gRPC call.",
                15, argc, argv);
    bench_gpud(&b, &g, NULL);
    floors_start(&f, &b, g.dir);
    for (enum placement p = PLACE_ONE; p <= PLACE_APART; p++) {
        for (unsigned i = 0; bench_wants(&b, placement_name(p)) && i < b.repeat; i++) {
            repetition(&b, &f, &g, p);
        }
        compare(&b, p);
    }
    for (unsigned i = 0; i < f.count; i++) {
        server_stop(&f.server[i]);
    }
    gpud_stop(&g);
    return bench_end(&b);
}
