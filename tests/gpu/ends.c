/* Ways to learn on the host that a kernel has ended: what each costs, from the launch on, and what
 * the calls cost of which gpud's way is made. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "common/clock.h"
#include "tests/gpu/direct.h"
#include "tests/gpu/items.h"
#include "tests/gpu/measure.h"
#include "tests/gpu/record.h"

#define WARM 50u

struct ends {
    struct direct d;
    CUfunction nothing;
    CUevent begin, end, plain; /* the last without a time */
    atomic_uint *word;         /* registered host memory, which the device writes */
    unsigned number;
    CUresult (*write_value)(CUstream, CUdeviceptr, cuuint32_t, unsigned); /* NULL: there is none */
};

static void wait_event(struct ends *x, CUevent event)
{
    while (x->d.cu.EventQuery(event) != CUDA_SUCCESS) {
    }
}

static void synchronized(struct ends *x)
{
    direct_launch(&x->d, x->nothing, 0, 0);
    direct_wait(&x->d);
}

static void by_event(struct ends *x)
{
    direct_launch(&x->d, x->nothing, 0, 0);
    must(x->d.cu.EventRecord(x->plain, x->d.stream));
    wait_event(x, x->plain);
}

static void by_timed_event(struct ends *x)
{
    direct_launch(&x->d, x->nothing, 0, 0);
    must(x->d.cu.EventRecord(x->end, x->d.stream));
    wait_event(x, x->end);
}

static void between_events(struct ends *x)
{
    must(x->d.cu.EventRecord(x->begin, x->d.stream));
    by_timed_event(x);
}

static void with_times(struct ends *x)
{
    float ms = 0;
    between_events(x);
    must(x->d.cu.EventElapsedTime(&ms, x->begin, x->end));
}

/* The driver writes the word in the stream's order. */
static void by_word(struct ends *x)
{
    unsigned want = ++x->number;
    direct_launch(&x->d, x->nothing, 0, 0);
    must(x->write_value(x->d.stream, (CUdeviceptr)(uintptr_t)x->word, want, 0));
    while (atomic_load(x->word) != want) {
    }
}

static void elapsed(struct ends *x)
{
    float ms = 0;
    must(x->d.cu.EventElapsedTime(&ms, x->begin, x->end));
}

static void query_ended(struct ends *x)
{
    must(x->d.cu.EventQuery(x->end));
}

static void synchronize_idle(struct ends *x)
{
    direct_wait(&x->d);
}

static void figure(struct record *r, const char *name, struct ends *x, void (*way)(struct ends *))
{
    struct samples s;
    samples_init(&s, record_effort(300, 3000));
    for (unsigned i = 0; i < s.room + WARM; i++) {
        uint64_t begin_ns = clock_now_ns();
        way(x);
        if (i >= WARM) {
            samples_add(&s, clock_now_ns() - begin_ns);
        }
    }
    record_figure(r, name, samples_us(&s, 0.5), "us");
    samples_finish(&s);
}

static void ways(struct ends *x, struct record *r)
{
    figure(r, "launch, synchronize", x, synchronized);
    figure(r, "launch, event, query", x, by_event);
    figure(r, "launch, timed event, query", x, by_timed_event);
    figure(r, "event, launch, event, query", x, between_events);
    figure(r, "the same and its time", x, with_times);
    if (x->write_value != NULL && !record_is_double()) {
        figure(r, "launch, a word written", x, by_word);
    }
    figure(r, "cuEventElapsedTime", x, elapsed);
    figure(r, "cuEventQuery", x, query_ended);
    figure(r, "cuStreamSynchronize, idle", x, synchronize_idle);
}

static void straight(struct record *r)
{
    struct ends x = {.number = 0};
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library != NULL) {
        *(void **)&x.write_value = dlsym(library, "cuStreamWriteValue32_v2");
    }
    direct_open(&x.d);
    x.nothing = direct_kernel(&x.d, "nothing");
    must(x.d.cu.EventCreate(&x.begin, CU_EVENT_DEFAULT));
    must(x.d.cu.EventCreate(&x.end, CU_EVENT_DEFAULT));
    must(x.d.cu.EventCreate(&x.plain, CU_EVENT_DISABLE_TIMING));
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        perror("a page");
        exit(EXIT_FAILURE);
    }
    x.word = page;
    must(x.d.cu.MemHostRegister(page, 4096, 0));
    ways(&x, r);
    must(x.d.cu.MemHostUnregister(page));
    (void)munmap(page, 4096);
    must(x.d.cu.EventDestroy(x.begin));
    must(x.d.cu.EventDestroy(x.end));
    must(x.d.cu.EventDestroy(x.plain));
    direct_close(&x.d);
}

/* As the worker does it, without the daemon. */
static void back_end(struct record *r)
{
    struct bench b;
    struct samples s;
    bench_open(&b, "");
    struct backend_module *m = bench_module(&b);
    struct backend_stream *stream = bench_stream(&b);
    samples_init(&s, record_effort(300, 3000));
    for (unsigned i = 0; i < s.room + WARM; i++) {
        uint64_t begin_ns = 0;
        uint64_t end_ns = 0;
        uint64_t from_ns = clock_now_ns();
        bench_spin(&b, stream, m, 0);
        bench_settle(&b, bench_mark(&b, stream), &begin_ns, &end_ns);
        if (i >= WARM) {
            samples_add(&s, clock_now_ns() - from_ns);
        }
    }
    record_figure(r, "the back end's way", samples_us(&s, 0.5), "us");
    samples_finish(&s);
    b.b->module->unload(m);
    b.b->stream->destroy(stream);
    bench_close(&b);
}

void item_ends(void)
{
    struct record r;
    record_begin(&r, "end of a kernel");
    record_note(&r, "from the launch of an empty kernel until the host knows its end; medians");
    straight(&r);
    back_end(&r);
    (void)record_end(&r);
}
