/*
 * NVRTC as a table of functions, opened at first use, and only in gpud-compile because it takes 100
 * MiB. It is not linked, and its headers are not needed. Blocks (files).
 */
#ifndef BACKEND_CUDA_COMPILE_NVRTC_H
#define BACKEND_CUDA_COMPILE_NVRTC_H

#include <limits.h>
#include <stddef.h>

#include "common/err.h"

typedef struct nvrtc_program_s *nvrtc_program;

enum nvrtc_result { NVRTC_SUCCESS = 0, NVRTC_NOMEM = 1, NVRTC_BAD_OPTION = 5, NVRTC_FAILED = 6 };

/* X(name, parameters); all except GetErrorString return an nvrtcResult. */
#define NVRTC_ENTRIES(X)                                                                           \
    X(Version, (int *major, int *minor))                                                           \
    X(GetNumSupportedArchs, (int *count))                                                          \
    X(GetSupportedArchs, (int *archs))                                                             \
    X(CreateProgram, (nvrtc_program * program, const char *source, const char *name, int headers,  \
                      const char *const *texts, const char *const *names))                         \
    X(DestroyProgram, (nvrtc_program * program))                                                   \
    X(AddNameExpression, (nvrtc_program program, const char *expression))                          \
    X(CompileProgram, (nvrtc_program program, int count, const char *const *options))              \
    X(GetLoweredName, (nvrtc_program program, const char *expression, const char **lowered))       \
    X(GetProgramLogSize, (nvrtc_program program, size_t * size))                                   \
    X(GetProgramLog, (nvrtc_program program, char *log))                                           \
    X(GetPTXSize, (nvrtc_program program, size_t * size))                                          \
    X(GetPTX, (nvrtc_program program, char *ptx))                                                  \
    X(GetCUBINSize, (nvrtc_program program, size_t * size))                                        \
    X(GetCUBIN, (nvrtc_program program, char *cubin))

struct nvrtc {
#define X(name, parameters) int(*name) parameters;
    NVRTC_ENTRIES(X)
#undef X
    const char *(*GetErrorString)(int result);
    int (*GetPCHCreateStatus)(nvrtc_program program); /* NULL before 12.8 */
    int major, minor;
    char file[512];         /* the library's file; "": its path is too long */
    char include[PATH_MAX]; /* folder of the toolkit's headers; "": not installed */
};

/* Opens libnvrtc.so.13, .12 or the one without a number, like toolkit_open. It remains loaded
 * until the process ends. ERR_UNSUPPORTED: not installed or too old. */
int nvrtc_load(const char *path, struct nvrtc *ret_nvrtc, struct err *e);
/* Sets "nvrtcFoo: text (n)" with the ERR_* for the result, and returns it. */
int nvrtc_error(const struct nvrtc *n, int result, const char *call, struct err *e);

#endif
