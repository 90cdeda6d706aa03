/* Libraries of NVIDIA's toolkit, found where users have them. Blocks (files). */
#ifndef BACKEND_CUDA_DRIVER_TOOLKIT_H
#define BACKEND_CUDA_DRIVER_TOOLKIT_H

#include <stdbool.h>
#include <stddef.h>

#ifndef GPUD_CUDA_TOOLKIT
#define GPUD_CUDA_TOOLKIT "/usr/local/cuda" /* where configure found none */
#endif

/* Opens the first of these files (the last one NULL): first in `path` (a file or a folder; NULL or
 * "": nowhere) and then nowhere else, else where the loader looks, in $CUDA_PATH, $CUDA_HOME, the
 * toolkit this was built with and /usr/local/cuda. It stays open until the process ends. NULL: none
 * is there. */
void *toolkit_open(const char *const *files, const char *path);

/* One function of a library, as its table names it. */
struct toolkit_entry {
    const char *name;
    size_t at; /* in the table */
};
/* Fills the table; false: this one is missing. */
bool toolkit_resolve(void *library, const struct toolkit_entry *entries, size_t count, void *table,
                     const char **ret_missing);

#endif
