/* Loads: random numbers that are the same in every run, and traces of buffers' lifetimes. */
#ifndef BENCH_POOL_LOAD_H
#define BENCH_POOL_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct load {
    uint64_t state;
};

void load_seed(struct load *l, uint64_t seed);
uint64_t load_random(struct load *l, uint64_t below);
/* A random number from low to high whose logarithm is uniform. */
uint64_t load_log_uniform(struct load *l, uint64_t low, uint64_t high);

struct event {
    uint64_t time;
    uint64_t size; /* bytes; 0: the buffer is freed */
    uint32_t id;
};

struct trace {
    struct event *event; /* by time; at the same time, frees first */
    size_t count;
    uint32_t buffers;
    uint64_t peak; /* bytes alive at once */
};

#define TRACE_BUFFERS_MAX 100000u

/* Makes a trace: begin, add buffers that live from one time to a later one, end. */
void trace_begin(struct trace *t);
void trace_add(struct trace *t, uint64_t from, uint64_t to, uint64_t size);
void trace_end(struct trace *t); /* sorts the events, finds the peak */

/* Reads a file with lines "id,lower,upper,size": a buffer lives from lower to upper. False: no such
 * file, or its lines have another form. */
bool trace_read(struct trace *t, const char *path);
/* Makes a random trace of similar shape: most buffers live briefly, some all the time; sizes of all
 * magnitudes. */
void trace_make(struct trace *t, uint64_t seed);
void trace_scale(struct trace *t, uint64_t peak); /* scales all sizes to this peak */
void trace_finish(struct trace *t);
/* Calls `use` with the trace of each *.csv of a folder, by name; `use` finishes the trace. Ends the
 * program if there is no such file, or if one is not a trace. */
void trace_folder(const char *folder, void (*use)(void *user, const char *name, struct trace *t),
                  void *user);

#endif
