/* The frames that report the worker's state to the front. Thread: the loop's. */
#ifndef WORKER_SERVE_ANSWER_H
#define WORKER_SERVE_ANSWER_H

#include <stdbool.h>

#include "daemon/worker/run/batch.h"
#include "daemon/worker/run/ledger.h"
#include "daemon/worker/serve/budget.h"
#include "daemon/worker/serve/channel.h"
#include "daemon/worker/serve/creations.h"
#include "daemon/worker/spill/spill.h"

/* The state of an inventory: what the worker has, reported to a front that connects. It is sent
 * in parts, as the channel has room for descriptors. from, to: serials of the buffers that are
 * still to be reported. */
struct inventory {
    bool under_way;
    uint64_t nonce; /* from the front's F_INVENTORY */
    uint64_t from;
    uint64_t to; /* exclusive */
};

int answer_ready(struct channel *c, const struct device *dev, uint64_t spill_limit,
                 const char *build, struct err *e);
/* why->code 0: the buffer was made, or its transfer succeeded. */
/* gone: there is no buffer of this id, or it is freed after this answer. */
int answer_buffer(struct channel *c, uint64_t id, bool gone, const struct err *why, struct err *e);
int answer_module(struct channel *c, const struct module *m, struct err *e);
int answer_module_error(struct channel *c, uint64_t id, const struct err *why, struct err *e);
/* The job was refused: no command of it was enqueued. */
int answer_job_error(struct channel *c, uint64_t id, const struct err *why, struct err *e);
/* The job's deadline passed while it waits on the device. */
int answer_late(struct channel *c, const struct job *j, struct err *e);
/* The job has run for a while. */
int answer_started(struct channel *c, const struct job *j, struct err *e);
/* The job was reported to run, and has paused for a while. */
int answer_paused(struct channel *c, const struct job *j, struct err *e);
int answer_pool(struct channel *c, struct memory *memory, const struct spill *spill,
                const struct budget *budget, const struct batch *batch, struct err *e);
/* why->code not 0: the budget was refused. */
int answer_budget(struct channel *c, const struct budget_report *report, const struct err *why,
                  struct err *e);
/* A limit or guarantee of the tenant could not be set, because of `why`. */
int answer_tenant_refused(struct channel *c, uint64_t tenant, const struct err *why, struct err *e);
/* Sends the next part of an inventory; to be called again when the channel has room. */
int answer_inventory(struct channel *c, const struct buffers *buffers,
                     const struct creations *creations, const struct modules *modules,
                     const struct ledger *ledger, struct inventory *i, struct err *e);
/* Reads the id at the beginning of a frame, even if the rest of the frame is malformed. */
bool answer_id_of(struct bytes frame, uint64_t *ret_id);

#endif
