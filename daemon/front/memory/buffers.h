/*
 * The life of buffers: workers are asked for them, they are sealed, restored or lost, and their
 * memory goes when nothing names them. What clients ask of them is in requests_buffer.c. Thread:
 * the loop's; nothing blocks.
 */
#ifndef FRONT_MEMORY_BUFFERS_H
#define FRONT_MEMORY_BUFFERS_H

#include "daemon/front/model/front.h"

/* Asks the worker for it, at first and when another worker has come. It may be gone afterwards:
 * what fails at once ends it. */
void buffer_ask(struct front *f, struct buffer *b);
/* Answers what waited for a buffer: its creation, its sealing. */
void buffer_answered(struct front *f, struct device *d, const struct msg_w_buffer *m);
void buffer_create_failed(struct front *f, struct buffer *b, const struct err *e);
/* The module was loaded somewhere, or was not: variables that wait for it go on. */
void buffer_module_settled(struct front *f, struct module *m);
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
void buffer_drop(struct front *f, struct buffer *b);
/* A buffer without an owner and openers lives by its name for a while. */
void buffer_let_linger(struct front *f, struct buffer *b);
/* A job that named it has ended. */
void buffer_settle(struct front *f, struct buffer *b);

#endif
