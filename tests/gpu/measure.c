#include "tests/gpu/measure.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/gpu/direct.h"

_Noreturn void measure_die(const char *call, const struct err *e)
{
    (void)fprintf(stderr, "%s: %s\n", call, e->text);
    exit(EXIT_FAILURE);
}

void samples_init(struct samples *s, unsigned room)
{
    *s = (struct samples){.ns = calloc(room, sizeof *s->ns), .room = room};
    if (s->ns == NULL) {
        perror("samples");
        exit(EXIT_FAILURE);
    }
}

void samples_finish(struct samples *s)
{
    free(s->ns);
    s->ns = NULL;
}

void samples_add(struct samples *s, uint64_t ns)
{
    if (s->count < s->room) {
        s->ns[s->count++] = ns;
    }
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

double samples_us(struct samples *s, double part)
{
    if (s->count == 0) {
        (void)fputs("no samples\n", stderr);
        exit(EXIT_FAILURE);
    }
    qsort(s->ns, s->count, sizeof *s->ns, compare);
    return (double)s->ns[(unsigned)(part * (s->count - 1))] / 1e3;
}

void bench_open(struct bench *b, const char *options)
{
    b->b = backend_find("cuda");
    if (b->b == NULL) {
        (void)fputs("built without CUDA\n", stderr);
        exit(EXIT_FAILURE);
    }
    must_ok(b->b->device->open(0, options, NULL, NULL, &b->device, e));
    b->b->device->info(b->device, &b->info);
}

void bench_close(struct bench *b)
{
    b->b->device->close(b->device);
}

struct backend_module *bench_module(struct bench *b)
{
    size_t size = 0;
    void *fatbin = direct_fatbin(&size);
    const struct backend_source source = {.lang = BACKEND_LANG_CUBIN,
                                          .text = bytes_of(fatbin, size),
                                          .file = "kernels.fatbin",
                                          .options = "",
                                          .arch = b->info.arch};
    struct backend_compiled compiled = {0};
    struct backend_module *module = NULL;
    must_ok(b->b->compile(0, &source, &compiled, e));
    must_ok(
        b->b->module->load(b->device, bytes_of(compiled.binary, compiled.binary_size), &module, e));
    backend_compiled_finish(&compiled);
    free(fatbin);
    return module;
}

struct backend_stream *bench_stream(struct bench *b)
{
    struct backend_stream *s = NULL;
    must_ok(b->b->stream->create(b->device, 0, &s, e));
    return s;
}

struct backend_marker *bench_mark(struct bench *b, struct backend_stream *s)
{
    struct backend_marker *m = NULL;
    must_ok(b->b->stream->mark(s, &m, e));
    must_ok(b->b->stream->flush(s, e));
    return m;
}

void bench_settle(struct bench *b, struct backend_marker *m, uint64_t *ret_begin_ns,
                  uint64_t *ret_end_ns)
{
    struct err e = ERR_INIT;
    enum backend_state state;
    while ((state = b->b->marker->state(m, &e)) != BACKEND_DONE) {
        if (state == BACKEND_FAILED) {
            measure_die("a stream", &e);
        }
        (void)sched_yield(); /* sleeping would be measured, too */
    }
    b->b->marker->times(m, ret_begin_ns, ret_end_ns);
    b->b->marker->release(m);
}

void bench_drain(struct bench *b, struct backend_stream *s)
{
    uint64_t begin_ns = 0;
    uint64_t end_ns = 0;
    bench_settle(b, bench_mark(b, s), &begin_ns, &end_ns);
}

void bench_spin(struct bench *b, struct backend_stream *s, struct backend_module *m, uint64_t ns)
{
    const struct backend_arg arg = {.kind = BACKEND_ARG_VALUE, .value = &ns, .size = sizeof ns};
    const struct backend_launch launch = {
        .global = {1, 1, 1}, .local = {1, 1, 1}, .args = &arg, .arg_count = 1};
    must_ok(b->b->stream->launch(s, m, "spin", &launch, e));
}
