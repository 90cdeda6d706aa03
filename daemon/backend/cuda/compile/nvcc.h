/* The toolkit's nvcc as a process: where it is, one run of it, and what it read. Blocks. */
#ifndef BACKEND_CUDA_COMPILE_NVCC_H
#define BACKEND_CUDA_COMPILE_NVCC_H

#include <limits.h>
#include <stdbool.h>

#include "common/bytes.h"
#include "common/err.h"

#define NVCC_ARGUMENTS_MAX 96u
#define NVCC_PROGRAM       "gpud-source.cu" /* the source's name in the folder */

/* Where nvcc is: in `path` (the program itself, or a toolkit's folder) and then nowhere else; for
 * "" in $CUDA_PATH, $CUDA_HOME, the toolkit this was built with, /usr/local/cuda and /usr/bin.
 * ret_file is resolved. */
bool nvcc_find(const char *path, char ret_file[PATH_MAX]);

struct nvcc_run {
    const char *program; /* as nvcc_find returned it */
    const char *folder;  /* absolute; it works there and keeps what it makes on the way */
    const char *argument[NVCC_ARGUMENTS_MAX]; /* NULL behind the last */
};

/* Runs it to its end; what it says is appended to `said`. No shell sees an argument of the caller's
 * as long as it holds none of a shell's signs: nvcc itself runs its steps by one. *ret_done: it
 * ended well. ERR_COMPILE_LIMIT: it or one of its steps came to a limit of this process; ERR_IO. */
int nvcc_run(const struct nvcc_run *r, struct capbuf *said, bool *ret_done, struct err *e);

/* Did the preprocessor read files of the toolkit, of /usr and of the folder only? By what the last
 * run kept there; false also where it kept nothing. */
bool nvcc_read_only_headers(const struct nvcc_run *r);

#endif
