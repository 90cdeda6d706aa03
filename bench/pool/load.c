#include "bench/pool/load.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/pool/policy.h"

void load_seed(struct load *l, uint64_t seed)
{
    l->state = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15);
}

static uint64_t next(struct load *l)
{
    l->state ^= l->state << 13;
    l->state ^= l->state >> 7;
    l->state ^= l->state << 17;
    return l->state;
}

uint64_t load_random(struct load *l, uint64_t below)
{
    return (next(l) >> 11) % below;
}

uint64_t load_log_uniform(struct load *l, uint64_t low, uint64_t high)
{
    double u = (double)(next(l) >> 11) * 0x1p-53;
    return (uint64_t)((double)low * pow((double)high / (double)low, u));
}

/* ---- traces -----------------------------------------------------------------------------------*/

static int by_time(const void *a, const void *b)
{
    const struct event *x = a;
    const struct event *y = b;
    if (x->time != y->time) {
        return x->time < y->time ? -1 : 1;
    }
    if ((x->size != 0) != (y->size != 0)) {
        return x->size == 0 ? -1 : 1;
    }
    return x->id < y->id ? -1 : x->id > y->id;
}

void trace_add(struct trace *t, uint64_t from, uint64_t to, uint64_t size)
{
    if (t->buffers == TRACE_BUFFERS_MAX) {
        abort();
    }
    uint32_t id = t->buffers++;
    t->event[t->count++] = (struct event){from, size, id};
    t->event[t->count++] = (struct event){to, 0, id};
}

void trace_begin(struct trace *t)
{
    *t = (struct trace){.event = bench_calloc((size_t)2 * TRACE_BUFFERS_MAX, sizeof *t->event)};
}

void trace_end(struct trace *t)
{
    uint64_t *size = bench_calloc(t->buffers + 1u, sizeof *size);
    uint64_t live = 0;
    qsort(t->event, t->count, sizeof *t->event, by_time);
    t->peak = 0;
    for (size_t i = 0; i < t->count; i++) {
        const struct event *v = &t->event[i];
        live = v->size != 0 ? live + v->size : live - size[v->id];
        size[v->id] = v->size;
        t->peak = live > t->peak ? live : t->peak;
    }
    free(size);
}

bool trace_read(struct trace *t, const char *path)
{
    char line[256];
    bool good = true;
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return false;
    }
    trace_begin(t);
    good = fgets(line, sizeof line, f) != NULL; /* the columns' names */
    while (good && fgets(line, sizeof line, f) != NULL) {
        char *end = line;
        uint64_t field[4];
        for (unsigned i = 0; i < 4; i++) {
            field[i] = strtoull(end, &end, 10);
            end += *end == ',';
        }
        good = field[1] < field[2] && field[3] > 0 && t->buffers < TRACE_BUFFERS_MAX;
        if (good) {
            trace_add(t, field[1], field[2], field[3]);
        }
    }
    (void)fclose(f);
    if (!good || t->buffers == 0) {
        trace_finish(t);
        return false;
    }
    trace_end(t);
    return true;
}

void trace_make(struct trace *t, uint64_t seed)
{
    struct load l;
    const uint64_t all = UINT64_C(1) << 20;
    load_seed(&l, seed);
    trace_begin(t);
    for (unsigned i = 0; i < 200; i++) {
        uint64_t size = load_log_uniform(&l, 5, 700) * 1024;
        uint64_t lasts = load_random(&l, 10) == 0 ? all : load_log_uniform(&l, 1024, all);
        uint64_t from = load_random(&l, all - lasts + 1);
        trace_add(t, from, from + lasts, lasts == all ? size / 16 + 256 : size);
    }
    trace_end(t);
}

void trace_scale(struct trace *t, uint64_t peak)
{
    double by = (double)peak / (double)t->peak;
    for (size_t i = 0; i < t->count; i++) {
        if (t->event[i].size != 0) {
            t->event[i].size = (uint64_t)((double)t->event[i].size * by);
        }
    }
    trace_end(t);
}

void trace_finish(struct trace *t)
{
    free(t->event);
    *t = (struct trace){.event = NULL};
}

static int is_csv(const struct dirent *d)
{
    size_t length = strlen(d->d_name);
    return length > 4 && length < 32 && strcmp(d->d_name + length - 4, ".csv") == 0;
}

void trace_folder(const char *folder, void (*use)(void *user, const char *name, struct trace *t),
                  void *user)
{
    struct dirent **file = NULL;
    int count = scandir(folder, &file, is_csv, alphasort);
    if (count <= 0) {
        (void)fprintf(stderr, "bench_pool: no *.csv in %s\n", folder);
        exit(1);
    }
    for (int i = 0; i < count; i++) {
        char path[4096];
        struct trace t;
        (void)snprintf(path, sizeof path, "%s/%s", folder, file[i]->d_name);
        if (!trace_read(&t, path)) {
            (void)fprintf(stderr, "bench_pool: %s is no trace\n", path);
            exit(1);
        }
        use(user, file[i]->d_name, &t);
        free(file[i]);
    }
    free(file);
}
