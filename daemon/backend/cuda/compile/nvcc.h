/* The toolkit's nvcc as a process: finding it, running it, and the files that it read. Blocks. */
#ifndef BACKEND_CUDA_COMPILE_NVCC_H
#define BACKEND_CUDA_COMPILE_NVCC_H

#include <limits.h>
#include <stdbool.h>

#include "common/bytes.h"
#include "common/err.h"

#define NVCC_ARGUMENTS_MAX 96u
#define NVCC_PROGRAM       "gpud-source.cu" /* the source's name in the folder */

/* Finds nvcc: only in `path` (the program itself, or a toolkit's folder); for "" in $CUDA_PATH,
 * $CUDA_HOME, the toolkit this was built with, /usr/local/cuda and /usr/bin. ret_file is resolved.
 */
bool nvcc_find(const char *path, char ret_file[PATH_MAX]);

struct nvcc_run {
    const char *program; /* as nvcc_find returned it */
    const char *folder;  /* absolute; its working folder, also for intermediate files */
    const char *argument[NVCC_ARGUMENTS_MAX]; /* NULL-terminated */
};

/* Runs it to its end and appends its output to `said`. nvcc runs its steps by a shell, so arguments
 * must have no special characters of a shell. *ret_done: it succeeded. ERR_COMPILE_LIMIT: it or one
 * of its steps reached a limit of this process; ERR_IO. */
int nvcc_run(const struct nvcc_run *r, struct capbuf *said, bool *ret_done, struct err *e);

/* Whether the preprocessor read only files of the toolkit, of /usr and of the folder, by the
 * intermediate files of the last run; false if there are none. */
bool nvcc_read_only_headers(const struct nvcc_run *r);

#endif
