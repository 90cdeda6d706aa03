/*
 * The handlers of requests. A handler has three ways to end. It writes its answer into `out`; it
 * leaves `out` empty and answers `o` later; or it fails with a typed error and has changed nothing.
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

/* The worker's answer to an export. Takes the descriptor. */
void buffer_exported(struct front *f, struct device *d, const struct msg_w_exported *m, int fd);
void program_drop(struct front *f, struct program *p); /* frees its handle */

/* The compiler's answer. The caller counts as one of the module's `users`, so the module stays. */
void module_answered(struct front *f, struct build *b, const struct compile_response *response);
void module_drop(struct front *f, struct module *m);
/* Starts waiting loads, because a device has come or the compiler has room; or refuses them,
 * because no device will come. */
void module_begin_waiting(struct front *f);

#endif
