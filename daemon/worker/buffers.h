/*
 * The resident buffers by the front's ids. A buffer that is freed while jobs use it goes when the
 * last of them ends. Thread: the loop's.
 */
#ifndef WORKER_BUFFERS_H
#define WORKER_BUFFERS_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "common/bytes.h"
#include "common/err.h"
#include "daemon/worker/memory.h"
#include "proto/frames.h"

#define BUFFERS_MAX 65536u

struct buffer {
    uint64_t id;
    uint64_t size;                  /* bytes */
    uint64_t tenant;                /* as the front names it */
    struct memory_piece piece;      /* none when size is 0 */
    int sealed_fd;                  /* owned: its host copy, -1 if it is not sealed */
    unsigned uses;                  /* jobs and transfers that refer to it */
    bool freed;                     /* no longer in the table */
    bool arriving;                  /* its content is being copied: jobs wait */
    bool broken;                    /* its content did not arrive */
    struct backend_marker *filling; /* not owned: a transfer into it, NULL when that is done */
    uint16_t meta_size;
    uint8_t meta[FRAME_META_MAX];
    uint64_t serial; /* counts buffers as they are made */
    UT_hash_handle hh;
};

struct buffers {
    struct buffer *by_id;
    struct buffer
        *walk; /* of who goes through them in steps: the next one; freed, the one behind */
    uint64_t made;
    struct memory *memory; /* not owned */
};

void buffers_init(struct buffers *t, struct memory *memory);
void buffers_finish(struct buffers *t); /* idle */
struct buffer_ask {
    uint64_t id;
    uint64_t size; /* bytes */
    uint64_t tenant;
    struct bytes meta;
    bool exported; /* other processes are to map it */
};

/* Its memory may be dirty: transfer_start clears it. */
int buffer_create(struct buffers *t, const struct buffer_ask *ask, struct buffer **ret_buffer,
                  struct err *e);
struct buffer *buffer_find(const struct buffers *t, uint64_t id, struct err *e); /* NULL: unknown */
void buffer_unseal(struct buffer *b); /* lets go of the host copy, if there is one */
void buffer_set_meta(struct buffer *b, struct bytes meta); /* at most FRAME_META_MAX */
/* Takes it out of the table; memory goes with the last use. */
void buffer_free(struct buffers *t, struct buffer *b);
void buffer_use(struct buffer *b);
void buffer_unuse(struct buffers *t, struct buffer *b);

#endif
