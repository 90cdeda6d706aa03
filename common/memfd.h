/* Shared memory by descriptor. Nothing here blocks. */
#ifndef COMMON_MEMFD_H
#define COMMON_MEMFD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/* A mapped memfd. Owns both the descriptor and the mapping. */
struct memfd {
    int fd; /* -1: none */
    uint8_t *data;
    size_t size; /* bytes */
};

#define MEMFD_NONE ((struct memfd){.fd = -1})

/* Makes a memfd of `size` bytes, close-on-exec, sealed against growing and shrinking, mapped for
 * reading and writing. Pages are allocated at the first access. ret_m untouched on failure.
 * ERR_LIMIT: no descriptor is left. */
int memfd_create_sealed(const char *name, size_t size, struct memfd *ret_m, struct err *e);
/* The same, but memfd_freeze may follow. */
int memfd_create_freezable(const char *name, size_t size, struct memfd *ret_m, struct err *e);
/* From now on no process can write it, with any descriptor. ERR_BUSY: a process has it mapped for
 * writing. ERR_INVALID: it was made otherwise. */
int memfd_freeze(int fd, struct err *e);
bool memfd_frozen(int fd);
/* Maps another process's memfd. Refuses a memfd that is not sealed against shrinking (its owner
 * could end this process with SIGBUS), has huge pages (its holes could do that, too) or is smaller
 * than min_size. Takes `fd` on success only. */
int memfd_adopt(int fd, size_t min_size, bool writable, struct memfd *ret_m, struct err *e);
void memfd_finish(struct memfd *m); /* unmaps and closes; may be called again */

#endif
