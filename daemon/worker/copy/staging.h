/* Staging memory, two pieces of memory shared with the front: the front writes the inputs of
 * jobs to one, the worker writes their outputs to the other. The front allocates ranges in both. */
#ifndef WORKER_COPY_STAGING_H
#define WORKER_COPY_STAGING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/memfd.h"

struct staging {
    struct memfd input; /* mapped for reading; for writing too if the device needs that */
    struct memfd output;
    /* the input's first mapping after staging_replace, because copies from it may be under way */
    struct memfd before;
    bool input_known; /* it is registered: the device copies from it directly */
    bool output_known;
};

/* Maps both descriptors and owns them. */
int staging_init(struct staging *s, int input_fd, int output_fd, struct err *e);
/* Maps the input a second time, for writing too: some drivers register only writable memory. The
 * mapping shares the descriptor of `s`. Any thread, while no mapping is replaced. */
int staging_writable(const struct staging *s, struct memfd *ret_m, struct err *e);
/* Takes over the mapping `m`. use: it becomes the input, at most once; else it is unmapped. */
void staging_replace(struct staging *s, struct memfd *m, bool use);
void staging_finish(struct staging *s);
/* Is [offset, offset + size) within `m`? `kind` names the memory in the error. */
int staging_check(const struct memfd *m, const char *kind, uint64_t offset, uint64_t size,
                  struct err *e);

#endif
