/* The two pieces of shared memory through which a job's bytes come and go: the front writes the
 * input, the worker the output. Ranges in them are the front's to hand out. */
#ifndef WORKER_COPY_STAGING_H
#define WORKER_COPY_STAGING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/memfd.h"

struct staging {
    struct memfd input; /* mapped for reading, unless the device wants more */
    struct memfd output;
    struct memfd before; /* the input as it was mapped first: copies of it may be under way */
    bool input_known;    /* the device copies from and to it without help */
    bool output_known;
};

/* Maps both descriptors and owns them from then on. */
int staging_init(struct staging *s, int input_fd, int output_fd, struct err *e);
/* Maps the input for writing too, at another address: some drivers register no other memory. The
 * descriptor stays the staging memory's. Any thread, while the input stays what it is. */
int staging_writable(const struct staging *s, struct memfd *ret_m, struct err *e);
/* Takes that mapping over, as the input (once) or to end it. */
void staging_replace(struct staging *s, struct memfd *m, bool use);
void staging_finish(struct staging *s);
/* Does [offset, offset + size) lie inside? Names the kind in the error. */
int staging_check(const struct memfd *m, const char *kind, uint64_t offset, uint64_t size,
                  struct err *e);

#endif
