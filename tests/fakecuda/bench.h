/*
 * For tests of the double. Every scenario runs in a process of its own, with its own FAKECUDA;
 * what the double reported of it is read back afterwards.
 */
#ifndef FAKECUDA_BENCH_H
#define FAKECUDA_BENCH_H

#include <check.h>
#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct outcome {
    int status; /* exit status, or 128 + the signal */
    char report[16384];
};

/* Runs it in a child with FAKECUDA set to `script` and FAKECUDA_STRICT to `strict`; a failed check
 * in it fails the test. `extra` (may be NULL) is "NAME=VALUE" for the environment. */
struct outcome scenario(void (*work)(void), const char *script, bool strict, const char *extra);
/* The same; it must end well and report no misuse and no leak. */
void scenario_clean(void (*work)(void), const char *script);
/* The same; the report must hold this text. */
void scenario_reports(void (*work)(void), const char *script, const char *text);

/* Within a scenario */

/* cuInit and the primary context of device 0, made current. */
void start(void);
void stop(void);
CUstream stream_new(void);
CUdeviceptr memory_new(size_t size);
/* Pinned. */
int *host_new(size_t size);
CUmodule module_new(const char *ptx);
CUfunction function_of(CUmodule m, const char *name);
CUresult launch(CUfunction f, CUstream s, void **params);
/* PTX of kernels that the double runs: see kernels.c. */
extern const char test_ptx[];

#define ck_cu(call, want)                                                                          \
    do {                                                                                           \
        CUresult ck_got = (call);                                                                  \
        if (ck_got != (want)) {                                                                    \
            scenario_fail(__FILE__, __LINE__, #call, (int)ck_got, (int)(want));                    \
        }                                                                                          \
    } while (0)
#define ok(call) ck_cu(call, CUDA_SUCCESS)
#define must(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            scenario_fail(__FILE__, __LINE__, #condition, 0, 1);                                   \
        }                                                                                          \
    } while (0)

void scenario_fail(const char *file, int line, const char *what, int got, int want)
    __attribute__((noreturn));

/* For main. */
int bench_main(Suite *suite);

#endif
