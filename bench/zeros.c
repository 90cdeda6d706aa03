/*
 * bench_zeros: one tenant's job on 16 bytes, and its new buffer of 16 bytes, while another tenant
 * creates buffers of 512 MiB of zeros without a pause; against the same on an idle gpud. Also the
 * time of the host's memset for such a buffer and for one piece of it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/common/bench.h"
#include "bench/common/partner.h"
#include "bench/common/scratch.h"
#include "bench/common/trial.h"
#include "common/clock.h"

#define LARGE   ((size_t)512 << 20)
#define PIECE   ((size_t)4 << 20) /* a piece of zeros, on a device that is a processor */
#define BUFFERS 4u
#define SMALL   16u

static gpud_client *client_of(const char *url)
{
    gpud_client *c = NULL;
    if (gpud_open(url, NULL, &c) != 0) {
        bench_die("%s: %s", url, gpud_last_error()->text);
    }
    return c;
}

static void create(gpud_client *c, size_t bytes, gpud_buffer *ret_buffer)
{
    if (gpud_buffer_create(c, gpud_shape_1d(GPUD_U8, bytes), GPUD_BUFFER_ZERO, NULL, ret_buffer) !=
        0) {
        bench_die("a buffer of %zu bytes: %s", bytes, gpud_last_error()->text);
    }
}

static void drop(gpud_client *c, gpud_buffer b)
{
    if (gpud_buffer_free(c, b) != 0) {
        bench_die("freeing a buffer: %s", gpud_last_error()->text);
    }
}

/* ---- the tenant that creates --------------------------------------------------------------- */

struct creator {
    const char *url;
    size_t bytes;
};

/* Creates and frees buffers until it is killed. Sends a byte when it begins. */
static void create_on(const void *creator, int in, int out)
{
    const struct creator *k = creator;
    gpud_buffer b[BUFFERS];
    gpud_client *c = client_of(k->url);
    (void)in;
    if (write(out, "", 1) != 1) {
        _Exit(EXIT_FAILURE);
    }
    for (;;) {
        for (unsigned i = 0; i < BUFFERS; i++) {
            create(c, k->bytes, &b[i]);
        }
        for (unsigned i = 0; i < BUFFERS; i++) {
            drop(c, b[i]);
        }
    }
}

/* ---- the other tenant ----------------------------------------------------------------------- */

static void one_job(gpud_client *c, gpud_buffer b)
{
    if (gpud_fill(c, gpud_out(b), gpud_u8(7)) != 0) {
        bench_die("a job of %u bytes: %s", SMALL, gpud_last_error()->text);
    }
}

static void one_buffer(gpud_client *c, gpud_buffer b)
{
    gpud_buffer made;
    (void)b;
    create(c, SMALL, &made);
    drop(c, made);
}

static const struct {
    const char *name;
    void (*run)(gpud_client *c, gpud_buffer b);
} WORK[] = {{"16-byte job", one_job}, {"16-byte buffer", one_buffer}};

#define WORKS (sizeof WORK / sizeof WORK[0])

struct loop {
    struct bench *b;
    const char *part;
    gpud_client *c;
    gpud_buffer buffer;
    unsigned count;
};

/* Runs both kinds of work alternately, so that both meet the same load. */
static void run_loops(struct loop *l, const char *beside)
{
    struct samples times[WORKS];
    for (size_t w = 0; w < WORKS; w++) {
        samples_init(&times[w]);
    }
    for (size_t i = 0; i < WORKS * l->count; i++) {
        uint64_t begin_ns = clock_now_ns();
        WORK[i % WORKS].run(l->c, l->buffer);
        samples_add(&times[i % WORKS], (double)(clock_now_ns() - begin_ns) / 1e3);
    }
    for (size_t w = 0; w < WORKS; w++) {
        char what[FIGURE_TEXT];
        (void)snprintf(what, sizeof what, "%s%s", WORK[w].name, beside);
        report_add(&l->b->report, l->part, what, "p50", "us", samples_median(&times[w]));
        report_add(&l->b->report, l->part, what, "p99", "us", samples_at(&times[w], 0.99));
        report_add(&l->b->report, l->part, what, "max", "us", samples_at(&times[w], 1));
        samples_finish(&times[w]);
    }
}

/* ---- the floor ------------------------------------------------------------------------------ */

static double memset_us(uint8_t *at, size_t bytes)
{
    uint64_t begin_ns = clock_now_ns();
    memset(at, 0, bytes);
    __asm__ volatile("" : : "r"(at) : "memory"); /* the compiler must keep the memset */
    return (double)(clock_now_ns() - begin_ns) / 1e3;
}

static void add_floor(struct bench *b, const char *part, size_t bytes)
{
    struct samples piece;
    uint8_t *memory = malloc(bytes);
    if (memory == NULL) {
        bench_die("no memory");
    }
    samples_init(&piece);
    (void)memset_us(memory, bytes); /* allocates the pages */
    report_add(&b->report, part, "memset", "a buffer", "us", memset_us(memory, bytes));
    for (size_t at = 0; at + PIECE <= bytes; at += PIECE) {
        samples_add(&piece, memset_us(memory + at, PIECE));
    }
    report_add(&b->report, part, "memset", "a piece", "us", samples_median(&piece));
    samples_finish(&piece);
    free(memory);
}

static void measure(struct bench *b, const struct gpud *g, const char *far)
{
    const char *part = placement_name(PLACE_ANY);
    size_t bytes = bench_scale(b, LARGE, PIECE);
    struct loop l = {.b = b, .part = part, .count = bench_scale(b, 1000u, 20u)};
    l.c = client_of(g->url);
    create(l.c, SMALL, &l.buffer);
    for (unsigned i = 0; i < b->repeat; i++) {
        run_loops(&l, ", idle");
        struct partner creator;
        char byte;
        partner_start(&creator, create_on, &(struct creator){far, bytes});
        partner_read(&creator, &byte, 1); /* it has begun to create buffers */
        run_loops(&l, " beside zeros");
        partner_kill(&creator);
        add_floor(b, part, bytes);
    }
    for (size_t w = 0; w < WORKS; w++) {
        char what[FIGURE_TEXT];
        char idle[FIGURE_TEXT];
        (void)snprintf(what, sizeof what, "%s beside zeros", WORK[w].name);
        (void)snprintf(idle, sizeof idle, "%s, idle", WORK[w].name);
        report_against(&b->report, part, what, "p50", idle);
        report_against(&b->report, part, what, "p99", idle);
        report_against(&b->report, part, what, "max", idle);
    }
    gpud_close(l.c);
}

int main(int argc, char **argv)
{
    struct bench b;
    struct gpud g;
    char far[64];
    const char *const args[] = {"--listen", far, NULL};
    bench_begin(&b, "zeros",
                "Jobs and buffers of 16 bytes of one tenant while another one creates buffers of\n"
                "512 MiB of zeros without a pause, against the same on an idle gpud.",
                5, argc, argv);
    scratch_url(far, sizeof far, "tcp");
    bench_gpud(&b, &g, args);
    measure(&b, &g, far);
    gpud_stop(&g);
    return bench_end(&b);
}
