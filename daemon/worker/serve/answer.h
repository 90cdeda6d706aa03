/* The frames that tell the front something, from what the worker holds. Thread: the loop's. */
#ifndef WORKER_SERVE_ANSWER_H
#define WORKER_SERVE_ANSWER_H

#include <stdbool.h>

#include "daemon/worker/run/batch.h"
#include "daemon/worker/run/ledger.h"
#include "daemon/worker/serve/channel.h"
#include "daemon/worker/spill/spill.h"

/* What is held is told in parts, as the channel takes descriptors: which buffers are still to be
 * told, by their serials. */
struct inventory {
    bool under_way;
    uint64_t nonce; /* of who asked */
    uint64_t from;
    uint64_t to; /* not this one */
};

int answer_ready(struct channel *c, const struct device *dev, uint64_t spill_limit,
                 const char *build, struct err *e);
/* why->code 0: all is well */
int answer_buffer(struct channel *c, uint64_t id, const struct err *why, struct err *e);
int answer_module(struct channel *c, const struct module *m, struct err *e);
int answer_module_error(struct channel *c, uint64_t id, const struct err *why, struct err *e);
/* For a job that was refused: nothing was done. */
int answer_job_error(struct channel *c, uint64_t id, const struct err *why, struct err *e);
/* Its deadline has passed, and it waits in its stream. */
int answer_late(struct channel *c, const struct job *j, struct err *e);
/* It was seen to run, and takes long. */
int answer_started(struct channel *c, const struct job *j, struct err *e);
/* It was reported to run, and none of it has run for a while. */
int answer_paused(struct channel *c, const struct job *j, struct err *e);
int answer_pool(struct channel *c, struct memory *memory, const struct spill *spill,
                const struct batch *batch, struct err *e);
/* Of what it may have not all is held to, for `why`. */
int answer_tenant_refused(struct channel *c, uint64_t tenant, const struct err *why, struct err *e);
/* Goes on with an inventory that is under way; to be called again when the channel has room. */
int answer_inventory(struct channel *c, const struct buffers *buffers,
                     const struct modules *modules, const struct ledger *ledger,
                     struct inventory *i, struct err *e);
/* The id that a frame begins with, also of one whose rest is malformed. */
bool answer_id_of(struct bytes frame, uint64_t *ret_id);

#endif
