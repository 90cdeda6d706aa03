/*
 * Doubles of the few functions of cuBLAS, cuFFT, cuRAND and of gpud's CUB that the CUDA back end
 * uses, on top of the driver's double: work is done in the order of its stream, on the host, and in
 * another order of operations than the portable kernels.
 *
 * CUDA_FAKE_LIBS = NAME=CODE[;…]: each call of a library ("cublas") that would enqueue work, or
 * make a handle or plan, gives the code instead. NAME=/PATH: it does not go on before there is a
 * file of that name. NAME=CODE/PATH: the code, until there is.
 */
#ifndef FAKELIBS_H
#define FAKELIBS_H

#include <cuda.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static inline bool file_there(const char *at)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%.*s", (int)strcspn(at, ";"), at);
    return access(path, F_OK) == 0;
}

static inline void wait_for_file(const char *at)
{
    const struct timespec pause = {0, 1000000};
    while (!file_there(at)) {
        (void)nanosleep(&pause, NULL);
    }
}

static inline int scripted(const char *name)
{
    const char *at = getenv("CUDA_FAKE_LIBS");
    size_t length = strlen(name);
    while (at && *at) {
        if (strncmp(at, name, length) == 0 && at[length] == '=') {
            if (at[length + 1] == '/') {
                wait_for_file(at + length + 1);
                return 0;
            }
            const char *value = at + length + 1;
            const char *path = value + strspn(value, "0123456789");
            return *path == '/' && file_there(path) ? 0 : atoi(value);
        }
        at += strcspn(at, ";");
        at += *at == ';';
    }
    return 0;
}

/* Runs fn(work) on the stream; `work` is copied and freed. 0, or 13 ("execution failed"). */
struct fakelibs_work {
    void (*fn)(const void *work);
    char data[];
};

static void CUDA_CB fakelibs_run(void *data)
{
    struct fakelibs_work *w = data;
    w->fn(w->data);
    free(w);
}

static inline int on_stream(CUstream stream, void (*fn)(const void *work), const void *work,
                            size_t size)
{
    struct fakelibs_work *w = malloc(sizeof *w + size);
    if (!w) {
        return 13;
    }
    w->fn = fn;
    memcpy(w->data, work, size);
    return cuLaunchHostFunc(stream, fakelibs_run, w) == CUDA_SUCCESS ? 0 : 13;
}

#endif
