/* The toolkit's nvcc as a process: finds it, runs it, and checks which files it read. Blocks. */
#ifndef BACKEND_CUDA_COMPILE_NVCC_H
#define BACKEND_CUDA_COMPILE_NVCC_H

#include <limits.h>
#include <stdbool.h>

#include "common/bytes.h"
#include "common/err.h"

#define NVCC_ARGUMENTS_MAX 96u
#define NVCC_PROGRAM       "gpud-source.cu" /* the source's name in the folder */

/* Finds nvcc in `path` only, the program itself or a toolkit's folder. If path is "", searches
 * $CUDA_PATH, $CUDA_HOME, the toolkit of this build, /usr/local/cuda and /usr/bin. ret_file gets
 * the resolved path. */
bool nvcc_find(const char *path, char ret_file[PATH_MAX]);

struct nvcc_run {
    const char *program; /* from nvcc_find */
    const char *folder;  /* absolute; its working folder, which also gets intermediate files */
    const char *argument[NVCC_ARGUMENTS_MAX]; /* NULL-terminated */
};

/* Runs nvcc to its end, and appends its output to `said`. nvcc runs its steps by a shell, so
 * arguments must not contain a shell's special characters. *ret_done: it succeeded.
 * ERR_COMPILE_LIMIT: it or one of its steps reached a limit of this process. ERR_IO. */
int nvcc_run(const struct nvcc_run *r, struct capbuf *said, bool *ret_done, struct err *e);

/* Did the preprocessor read only files of the toolkit, of /usr and of the folder? Decided by the
 * intermediate files of the last run; false if there are none. */
bool nvcc_read_only_headers(const struct nvcc_run *r);

#endif
