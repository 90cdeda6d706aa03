/*
 * What each request does. A handler either writes its answer into `out`, or leaves `out` empty and
 * sees to it that `o` is answered later, or fails with a typed error and has changed nothing.
 * Thread: the loop's; nothing blocks.
 */
#ifndef FRONT_REQUESTS_REQUESTS_H
#define FRONT_REQUESTS_REQUESTS_H

#include "daemon/front/model/front.h"
#include "daemon/front/model/request.h"

typedef int (*request_fn)(struct request_context *c, struct err *e);

int request_ping(struct request_context *c, struct err *e);
int request_buffer_create(struct request_context *c, struct err *e);
int request_buffer_free(struct request_context *c, struct err *e);
int request_buffer_info(struct request_context *c, struct err *e);
int request_buffer_seal(struct request_context *c, struct err *e);
int request_buffer_publish(struct request_context *c, struct err *e);
int request_buffer_open(struct request_context *c, struct err *e);
int request_buffer_export(struct request_context *c, struct err *e);
int request_arena_create(struct request_context *c, struct err *e);
int request_arena_free(struct request_context *c, struct err *e);
int request_module_load(struct request_context *c, struct err *e);
int request_module_unload(struct request_context *c, struct err *e);
int request_kernel_find(struct request_context *c, struct err *e);
int request_program_create(struct request_context *c, struct err *e);
int request_program_free(struct request_context *c, struct err *e);
int request_job_find(struct request_context *c, struct err *e);
int request_ring_open(struct request_context *c, struct err *e);
int request_cancel(struct request_context *c, struct err *e);
int request_job_info(struct request_context *c, struct err *e);
int request_explain(struct request_context *c, struct err *e);
int request_control(struct request_context *c, struct err *e);

/* Answers what waited for a buffer: its creation, its sealing. */
void buffer_answered(struct front *f, struct device *d, const struct msg_w_buffer *m);
void buffer_create_failed(struct front *f, struct buffer *b, const struct err *e);
/* The module was loaded somewhere, or was not: variables that wait for it go on. */
void buffer_module_settled(struct front *f, struct module *m);
/* The worker's answer to an export; takes the descriptor. */
void buffer_exported(struct front *f, struct device *d, const struct msg_w_exported *m, int fd);
/* Its memory is not this one any more, or it is gone: what was not fetched is not to be had. */
void buffer_unexport(struct front *f, struct buffer *b);
/* A job left a buffer that is to be sealed: once no writer is left the copy starts. */
void buffer_seal_next(struct front *f, struct buffer *b);
/* Nobody will open the device: what waits for it ends. */
void buffer_device_given_up(struct front *f, struct device *d);
/* Its worker ended. Requests see that at once; the buffers are marked, and sessions told, in
 * slices, and no other worker of the device starts before that is done. */
void buffer_device_lost(struct front *f, struct device *d);
void buffer_lose_some(struct front *f); /* goes on, as far as this turn has units for */
void buffer_device_ready(struct front *f, struct device *d);
bool buffer_restoring(const struct device *d);
/* Takes the handle away; memory goes when no job names it. Until then it is restored, or lost with
 * its worker, as others are. */
void program_drop(struct front *f, struct program *p); /* its handle goes */
void buffer_drop(struct front *f, struct buffer *b);
/* A buffer without an owner and openers lives by its name for a while. */
void buffer_let_linger(struct front *f, struct buffer *b);
/* A job that named it has ended. */
void buffer_settle(struct front *f, struct buffer *b);

/* Takes the handle away; memory goes when no job names it. */
void arena_drop(struct front *f, struct arena *a);
/* A job that named it has ended. */
void arena_settle(struct front *f, struct arena *a);
/* The device's kernels can work on it as it is, or its worker could not take it. */
void arena_mapped(struct front *f, const struct device *d, const struct msg_w_arena *m);
/* The next worker of the device knows no arenas. */
void arena_device_lost(struct front *f, const struct device *d);

/* The caller holds the module with `users`. */
void module_answered(struct front *f, struct build *b, const struct compile_response *response);
void module_drop(struct front *f, struct module *m);
/* A device has come, or will not, or the compiler has room: loads that wait are compiled as far as
 * it takes them, or refused. */
void module_begin_waiting(struct front *f);

#endif
