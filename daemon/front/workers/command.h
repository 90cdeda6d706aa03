/* Sends commands to a device's worker, as frames. Most do nothing while the device has no worker;
 * command_module_load, command_job and command_inventory need one. Thread: the loop's. */
#ifndef FRONT_WORKERS_COMMAND_H
#define FRONT_WORKERS_COMMAND_H

#include "daemon/front/model/front.h"

void command_buffer_create(struct front *f, struct buffer *b);
void command_buffer_free(struct front *f, struct buffer *b);
/* Frees a buffer in the worker, or an ended job, that the adoption record does not list. */
void command_forget_buffer(struct device *d, uint64_t id);
void command_forget_job(struct device *d, uint64_t id);
/* Updates the buffer's adoption record: at once, or by command_records when a turn has room. */
void command_buffer_record(struct front *f, struct buffer *b);
/* The same, at once. */
void command_buffer_note(struct front *f, struct buffer *b);
void command_records(struct front *f);
/* Allocates the host copy and asks for it; a failure answers the pending request. */
void command_buffer_seal(struct front *f, struct buffer *b);
/* The same for a copy that seals nothing (evacuate.h). Fails if there is no memory for it. */
int command_buffer_lend(struct front *f, struct buffer *b, struct err *e);
void command_buffer_export(struct front *f, struct buffer *b);
void command_buffer_restore(struct front *f, struct buffer *b);
/* The same for a buffer of another device, which may move to `to`. */
void command_buffer_carry(struct front *f, struct device *to, const struct buffer *b);
/* The buffer was on `from`: the record of its device has it now. */
void command_buffer_moved(struct front *f, struct buffer *b, struct device *from);
void command_arena_free(struct front *f, struct arena *a); /* in all workers that got it */
void command_arena_drop(const struct device *d, const struct arena *a);
int command_module_load(struct device *d, const struct build *b, struct err *e);
void command_module_unload(struct device *d, uint64_t module);
/* preds: its direct predecessors; NULL: more than fit. ERR_LIMIT, ERR_NOMEM: nothing was sent, and
 * the worker does not know the job. A channel that fails ends the worker. */
int command_job(struct front *f, struct job *j, const struct hazard_preds *preds, struct err *e);
/* The id of the next job. It is used up: the next front gives it to no other job, even if no worker
 * ever gets this one. */
uint64_t command_job_id(struct front *f);
/* As program_unref; workers that ran the program learn of its end. */
void command_program_unref(struct front *f, struct program *p);
void command_job_cancel(struct front *f, struct job *j); /* for a job that its worker has */
/* Drops the job's adoption record: no worker has the job, and it may run. */
void command_job_unrecord(struct job *j);
/* Forgets an ended job: its adoption record and the worker's part of it. */
void command_retire(struct front *f, struct job *j);
/* Notes in the adoption record that the job has ended and was counted, and, if that is so, that the
 * entries of its buffers have what it wrote. */
void command_job_ended(struct front *f, struct job *j);
/* Notes there that the job has read what a failed job should have written. The worker does not know
 * that, and reports the job as done to the next front, too. */
void command_job_tainted(struct job *j);
/* Notes in the adoption record that other jobs may use the job's staging memory. */
void command_outputs_released(struct front *f, struct job *j);
void command_pool(struct device *d, bool trim);
void command_coalesce(struct device *d, uint64_t window_ns);
/* Sends the device's share of the host memory for buffers, if it has changed. */
void command_spill(struct front *f, struct device *d);
int command_inventory(struct device *d, uint64_t nonce, struct err *e);

#endif
