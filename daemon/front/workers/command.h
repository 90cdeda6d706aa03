/* Commands to a device's worker, as frames. A device without a worker takes none; see front_hooks.
 * Thread: the loop's. */
#ifndef FRONT_WORKERS_COMMAND_H
#define FRONT_WORKERS_COMMAND_H

#include "daemon/front/model/front.h"

void command_buffer_create(struct front *f, struct buffer *b);
void command_buffer_free(struct front *f, struct buffer *b);
/* What a worker has and its record has not. */
void command_forget_buffer(struct device *d, uint64_t id);
void command_forget_job(struct device *d, uint64_t id);
/* It is written down anew for the next front: at once, or by command_metas when there is time. */
void command_buffer_meta(struct front *f, struct buffer *b);
void command_metas(struct front *f);
/* Makes the host copy's memory and asks for the copy; the pending op is answered on failure. */
void command_buffer_seal(struct front *f, struct buffer *b);
void command_buffer_export(struct front *f, struct buffer *b);
void command_buffer_restore(struct front *f, struct buffer *b);
void command_arena_free(struct front *f, struct arena *a); /* to all that were told of it */
void command_arena_drop(const struct device *d, const struct arena *a);
int command_module_load(struct device *d, const struct build *b, struct err *e);
void command_module_unload(struct device *d, uint64_t module);
/* preds: those directly before it; NULL: more than fit. ERR_LIMIT, ERR_NOMEM: nothing was sent, and
 * no worker knows the job. A channel that breaks ends the worker. */
int command_job(struct front *f, struct job *j, const struct hazard_preds *preds, struct err *e);
void command_job_cancel(struct front *f, struct job *j); /* one that its worker has */
void command_retire(struct front *f, struct job *j);
void command_outputs_gone(struct front *f, struct job *j);
void command_pool(struct device *d, bool trim);
void command_coalesce(struct device *d, uint64_t window_ns);
/* Its part of the host memory for buffers, if it has another one. */
void command_spill(struct front *f, struct device *d);
int command_inventory(struct device *d, uint64_t nonce, struct err *e);

#endif
