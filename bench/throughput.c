/*
 * bench_throughput: null jobs a second with many in flight, and the CPU time of a job in its client
 * and in gpud, compared with NNG's echo and an empty gRPC call.
 */
#include <stdio.h>
#include <string.h>

#include "bench/common/bench.h"
#include "bench/common/trial.h"

static uint64_t server_cpu(const void *server)
{
    return process_cpu_ns(((const struct server *)server)->pid);
}

static uint64_t daemon_cpu(const void *server)
{
    return gpud_cpu_ns(server);
}

static void measure(struct bench *b, const struct trial *t, const char *what)
{
    struct trial_result r;
    char part[FIGURE_TEXT];
    trial_run(t, &r);
    (void)snprintf(part, sizeof part, "%s, %u x %u", placement_name(t->place), t->sessions,
                   t->outstanding);
    report_add(&b->report, part, what, "rate", "/s", r.rate);
    report_add(&b->report, part, what, "cpu", "us", r.client_us + r.served_us);
    report_add(&b->report, part, what, "client cpu", "us", r.client_us);
    report_add(&b->report, part, what, "p99", "us", r.p99_us);
}

static void repetition(struct bench *b, const struct server *nng, const struct server *grpc,
                       const struct gpud *g, struct trial t)
{
    const struct server *const floors[] = {nng, grpc};
    unsigned all = bench_scale(b, 8000, 64);
    t.count = all / t.sessions / (t.outstanding == 1 ? 4 : 1);
    t.warm = bench_scale(b, 200, 4) / t.sessions + t.outstanding;
    t.served_cpu_ns = server_cpu;
    for (unsigned i = 0; i < 2; i++) {
        if (floors[i]->pid > 0) {
            t.kind = floors[i]->kind;
            t.address = floors[i]->address;
            t.server = floors[i];
            machine_pin_server(t.place, floors[i]->pid);
            measure(b, &t, t.kind->name);
        }
    }
    t.kind = &echo_gpud;
    t.address = g->url;
    t.served_cpu_ns = daemon_cpu;
    t.server = g;
    gpud_place(g, t.place);
    for (const char *const *lane = bench_lanes; *lane != NULL; lane++) {
        char what[FIGURE_TEXT];
        (void)snprintf(what, sizeof what, "null job, %s lane", *lane);
        t.lane = *lane;
        measure(b, &t, what);
    }
}

static void compare(struct bench *b, const char *part, bool grpc)
{
    static const char *const figures[] = {"rate", "cpu", "client cpu", "p99"};
    for (const char *const *lane = bench_lanes; *lane != NULL; lane++) {
        char what[FIGURE_TEXT];
        (void)snprintf(what, sizeof what, "null job, %s lane", *lane);
        for (unsigned i = 0; i < 4; i++) {
            report_against(&b->report, part, what, figures[i], grpc ? "grpc" : "nng");
        }
    }
}

int main(int argc, char **argv)
{
    static const unsigned sessions[] = {1, 4, 16};
    static const unsigned outstanding[] = {1, 8, 64};
    struct bench b;
    struct gpud g;
    struct server nng;
    struct server grpc = {.pid = 0};
    bench_begin(&b, "throughput",
                "Null jobs a second and their CPU time, with 1, 8 and 64 outstanding in 1, 4 and\n"
                "16 sessions, against NNG's echo and an empty gRPC call.",
                5, argc, argv);
    bench_gpud(&b, &g, NULL);
    server_start(&nng, &echo_nng, g.dir);
    const struct echo_kind *kind = echo_find("grpc");
    if (kind != NULL) {
        server_start(&grpc, kind, g.dir);
    } else {
        report_left_out(&b.report, "grpc", "its headers were not there when this was built");
    }
    for (unsigned i = 0; i < 18; i++) {
        struct trial t = {.place = i < 9 ? PLACE_ONE : PLACE_APART,
                          .sessions = sessions[i / 3 % 3],
                          .outstanding = outstanding[i % 3]};
        char part[FIGURE_TEXT];
        (void)snprintf(part, sizeof part, "%s, %u x %u", placement_name(t.place), t.sessions,
                       t.outstanding);
        for (unsigned k = 0; bench_wants(&b, part) && k < b.repeat; k++) {
            repetition(&b, &nng, &grpc, &g, t);
        }
        compare(&b, part, kind != NULL);
    }
    server_stop(&nng);
    server_stop(&grpc);
    gpud_stop(&g);
    return bench_end(&b);
}
