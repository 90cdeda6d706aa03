/* Loads: random numbers that are the same in each run, and traces of buffers' lifetimes. */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct load {
    uint64_t state;
};

void load_seed(struct load *l, uint64_t seed);
uint64_t load_random(struct load *l, uint64_t below);
/* As many of each magnitude from low to high. */
uint64_t load_log_uniform(struct load *l, uint64_t low, uint64_t high);

struct event {
    uint64_t time;
    uint64_t size; /* bytes; 0: the buffer ends */
    uint32_t id;
};

struct trace {
    struct event *event; /* by time; at one time ends come first */
    size_t count;
    uint32_t buffers;
    uint64_t peak; /* bytes alive at once */
};

/* A file of lines "id,lower,upper,size": a buffer lives from lower to upper. False: no such file,
 * or it has other lines. */
bool trace_read(struct trace *t, const char *path);
/* The same shape: most buffers short, some for all the time, sizes of all magnitudes. */
void trace_make(struct trace *t, uint64_t seed);
void trace_scale(struct trace *t, uint64_t peak); /* all sizes, so that `peak` is alive at once */
void trace_finish(struct trace *t);
/* Each *.csv of a folder, by name; `use` finishes it. Ends the program if there is none, or one
 * that is no trace. */
void trace_folder(const char *folder, void (*use)(void *user, const char *name, struct trace *t),
                  void *user);

#endif
