/*
 * NVRTC as a table of functions, opened when it is first needed, which is in gpud-compile only: it
 * takes 100 MiB. Nothing of it is linked and none of its headers is needed. Blocks (files).
 */
#ifndef BACKEND_CUDA_COMPILE_NVRTC_H
#define BACKEND_CUDA_COMPILE_NVRTC_H

#include <limits.h>
#include <stddef.h>

#include "common/err.h"

typedef struct nvrtc_program_s *nvrtc_program;

enum nvrtc_result { NVRTC_SUCCESS = 0, NVRTC_NOMEM = 1, NVRTC_BAD_OPTION = 5, NVRTC_FAILED = 6 };

/* X(name, parameters); all return an nvrtcResult but GetErrorString. */
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
    char file[512];         /* the library's own, "" if its path is longer */
    char include[PATH_MAX]; /* the toolkit's headers, "" if they are not installed */
};

/* Looks for libnvrtc.so.13, .12 and without a number: first where `path` (a file or a folder; may
 * be "") says, then where the loader looks, then in $CUDA_PATH, $CUDA_HOME, the toolkit this was
 * built with and /usr/local/cuda. It stays loaded until the process ends.
 * ERR_UNSUPPORTED with what to install. */
int nvrtc_load(const char *path, struct nvrtc *ret_nvrtc, struct err *e);
/* "nvrtcFoo: text (n)"; returns the ERR_* that suits. */
int nvrtc_error(const struct nvrtc *n, int result, const char *call, struct err *e);

#endif
