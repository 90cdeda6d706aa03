/* The two pieces of shared memory for the bytes of jobs: the front writes the input, the worker the
 * output. The front allocates ranges in both. */
#ifndef WORKER_COPY_STAGING_H
#define WORKER_COPY_STAGING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/memfd.h"

struct staging {
    struct memfd input; /* mapped for reading; for writing too if the device needs that */
    struct memfd output;
    struct memfd before; /* the input's first mapping, after staging_replace: copies from it may be
                            under way */
    bool input_known;    /* the device copies from it directly */
    bool output_known;
};

/* Maps both descriptors and owns them. */
int staging_init(struct staging *s, int input_fd, int output_fd, struct err *e);
/* Maps the input for writing too, at another address: some drivers register no other memory. The
 * descriptor stays the staging memory's. Any thread, while no mapping is replaced. */
int staging_writable(const struct staging *s, struct memfd *ret_m, struct err *e);
/* Takes over that mapping. use: as the input, once; else it is unmapped. */
void staging_replace(struct staging *s, struct memfd *m, bool use);
void staging_finish(struct staging *s);
/* Is [offset, offset + size) inside? `kind` names the memory in the error. */
int staging_check(const struct memfd *m, const char *kind, uint64_t offset, uint64_t size,
                  struct err *e);

#endif
