/* Opens libraries of NVIDIA's toolkit, wherever users have them. Blocks (files). */
#ifndef BACKEND_CUDA_DRIVER_TOOLKIT_H
#define BACKEND_CUDA_DRIVER_TOOLKIT_H

#include <stdbool.h>
#include <stddef.h>

#ifndef GPUD_CUDA_TOOLKIT
#define GPUD_CUDA_TOOLKIT "/usr/local/cuda" /* if configure found none */
#endif

/* Opens the first file that exists; `files` ends with NULL. Searches only in `path`, a file or a
 * folder, unless it is NULL or "". Then it searches the loader's folders, $CUDA_PATH,
 * $CUDA_HOME, the toolkit of this build and /usr/local/cuda. The library remains loaded until
 * the process ends. NULL: no such file. */
void *toolkit_open(const char *const *files, const char *path);

/* A function of a library and its place in a table. */
struct toolkit_entry {
    const char *name;
    size_t at; /* offset in the table */
};
/* Fills the table. Returns false if the library lacks *ret_missing. */
bool toolkit_resolve(void *library, const struct toolkit_entry *entries, size_t count, void *table,
                     const char **ret_missing);

#endif
