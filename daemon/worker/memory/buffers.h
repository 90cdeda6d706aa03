/*
 * The worker's table of resident buffers, by the ids that the front gave them. A buffer that is
 * freed while jobs use it is destroyed when the last of them ends.
 *
 * When the device is full, some buffers have no device memory for a while (spill.h). The list
 * `cold` has the buffers that can be evicted, the least recently used first. Thread: the loop's.
 */
#ifndef WORKER_MEMORY_BUFFERS_H
#define WORKER_MEMORY_BUFFERS_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "common/bytes.h"
#include "common/err.h"
#include "daemon/worker/memory/memory.h"
#include "daemon/worker/memory/module_cache.h"
#include "proto/frames.h"

#define BUFFERS_MAX 262144u

/* What a buffer contains while it has neither device memory nor a host copy. */
enum buffer_content {
    BUFFER_UNDEFINED,
    BUFFER_ZEROS,
    BUFFER_BYTES, /* bytes that were written: in its device memory or in a copy */
};

/* Whether the content is still being brought in. Jobs that use the buffer wait until it has
 * arrived, or until the commands that bring it are in the service stream. */
enum buffer_arrival {
    BUFFER_ARRIVED,
    BUFFER_RESTORED, /* being copied from the front's host copy; the front waits for the end */
    /* being brought back or zeroed by the worker; a front that connects need not wait */
    BUFFER_FETCHED,
};

/* Whether bringing the content in failed. */
enum buffer_loss {
    BUFFER_WHOLE,
    BUFFER_BROKEN, /* it failed, and the content is lost */
    /* it failed, but the host still has the content: the next job brings it in again */
    BUFFER_TORN,
};

struct spill_copy;

/* What making room outside the pool for one request came to. */
enum buffer_room {
    BUFFER_ROOM_NONE,  /* no more room can be made */
    BUFFER_ROOM_MADE,  /* some was made: try again */
    BUFFER_ROOM_COMES, /* some is on its way: try again later */
};

/* Room that is being made outside the pool for one request. */
struct buffer_clearing {
    uint64_t begun; /* point of the service stream behind the moves that were begun; 0: none */
    bool own;       /* the tenant's own hard limit was in the way */
    bool moves;     /* buffers are being moved together, a part in each try: try in the next turn */
};

struct buffer {
    uint64_t id;
    uint64_t size;   /* bytes */
    uint64_t tenant; /* the front's key */
    /* its device memory; no block if size is 0 or while the buffer is evicted */
    struct memory_piece piece;
    struct pool_place place;           /* its former addresses; it returns there if possible */
    bool managed;                      /* the buffer uses managed memory */
    bool stays;                        /* it is never evicted, and counts as the pool's pool_stay */
    unsigned stays_for;                /* number of the tenant that it counts for */
    bool promised;                     /* memory that is about to be released is reserved for it */
    struct memory_tenant *assured_by;  /* account whose guarantee covers it; NULL: none */
    struct memory_tenant *ending_of;   /* account of a freed buffer that is in use; NULL: none */
    struct memory_tenant *promised_to; /* account charged with the reservation; NULL: none */
    /* kept in use: the buffer is a variable of this module; NULL: it has memory of its own */
    struct module *module;
    enum buffer_content content;
    struct spill_copy *spilled; /* owned by spill_copy.c: its bytes on the host; NULL: none */
    int sealed_fd;              /* owned: descriptor of its host copy; -1: none */
    bool lent;                  /* that copy ends when the bytes are on the device: not sealed */
    unsigned lent_for;          /* number of the tenant whose host memory that is */
    unsigned uses;              /* number of jobs and transfers that use it */
    /* of `uses`, those that need its device memory: a pinned buffer is not evicted */
    unsigned pins;
    bool listed;  /* it is in `cold` */
    bool counted; /* scratch flag of a sum over buffers: this buffer was already counted */
    struct buffer *cold_prev, *cold_next;
    bool freed; /* no longer in the table; destroyed at the last unuse */
    enum buffer_arrival arrival;
    enum buffer_loss loss;
    /* not owned: marker behind a transfer into its memory, which its next user waits for; NULL:
     * none */
    struct backend_marker *filling;
    struct buffer_clearing clearing; /* room for its managed memory, which a job waits for */
    uint64_t serial;                 /* position in the order of creation, from 1 */
    UT_hash_handle hh;
};

/* Frees the host copy of a buffer that has no piece. */
typedef void (*buffer_forget_fn)(void *data, struct buffer *b);

/* Begins to make room for `bytes` of memory outside the pool. own: only buffers of the same tenant
 * may be evicted. clearing: what was begun for the same request before. Never blocks. */
typedef enum buffer_room (*buffer_room_fn)(void *data, uint64_t tenant, uint64_t bytes, bool own,
                                           struct buffer_clearing *clearing);

/* Would the last refused request fit after the moves that are under way? */
typedef bool (*buffer_soon_fn)(void *data);

struct buffers {
    struct buffer *by_id;
    struct buffer *walk; /* next buffer of a walk that is made in steps; NULL: no walk */
    uint64_t made;
    /* buffers with device memory that are not pinned, least recently used first */
    struct buffer *cold;
    struct memory *memory;   /* not owned */
    struct modules *modules; /* not owned */
    uint64_t bytes;          /* sum of the sizes of all buffers, variables of modules excepted */
    uint64_t lent;           /* of these, of buffers with a lent copy */
    uint64_t most; /* limit for one buffer in bytes: the largest piece that the device gives */
    /* limit for all buffers in bytes, on the device and the host; 0: every buffer needs device
     * memory */
    uint64_t room;
    buffer_forget_fn forget;
    buffer_soon_fn soon; /* NULL: the answer is always no */
    buffer_room_fn clear_out;
    void *data;
};

void buffers_init(struct buffers *t, struct memory *memory, struct modules *modules);
void buffers_finish(struct buffers *t); /* idle; before modules_finish */
#define BUFFER_LATER 1
struct buffer_ask {
    uint64_t id;
    uint64_t size; /* bytes */
    uint64_t tenant;
    bool exported; /* other processes are going to map it */
    bool managed;
    bool stays; /* it is never evicted */
    bool held;  /* the host has its content: it needs no device memory for now */
    /* state of the room that is made for exported or managed memory; NULL: none is made */
    struct buffer_clearing *clearing;
    /* id; not 0: the buffer is `variable` of this module, and `size` is the size of the variable */
    uint64_t module;
    struct bytes variable; /* at most PROTO_NAME_MAX bytes */
};

/* Creates a buffer. BUFFER_LATER: room for its memory is on its way, and there is no buffer yet;
 * ask again, with the same `clearing`. ERR_LIMIT: no more of the tenant's buffers may stay. Its
 * memory may hold other tenants' bytes; the caller zeroes it with transfer_start. On a full device
 * the buffer gets no memory yet, provided that `room` has space for it, or that moves or releases
 * under way will make room on the device. */
int buffer_create(struct buffers *t, const struct buffer_ask *ask, struct buffer **ret_buffer,
                  struct err *e);
struct buffer *buffer_find(const struct buffers *t, uint64_t id, struct err *e); /* NULL: unknown */
/* Drops the host copy of a sealed buffer, or a lent one. */
void buffer_unseal(struct buffers *t, struct buffer *b);
/* The buffer keeps the descriptor of a copy until its bytes are on the device. Its tenant is
 * charged with host memory. */
void buffer_lend(struct buffers *t, struct buffer *b);
/* Removes the buffer from the table. It is destroyed at its last unuse. */
void buffer_free(struct buffers *t, struct buffer *b);
uint64_t buffer_tag(const struct buffer *b); /* its tag in the pool: its own address */
bool buffer_away(const struct buffer *b);    /* does it have a size but no device memory? */
/* BUFFER_LOST if its content was lost in a failed copy, or its zeros failed. */
int buffer_whole(const struct buffer *b, struct err *e);
/* Allocates managed memory for a buffer without memory. ERR_DEVICE_MEMORY or ERR_LIMIT: not now,
 * perhaps later. */
int buffer_manage(struct buffers *t, struct buffer *b, struct err *e);
/* To be called when the buffer has memory of the pool, for the first time or again: drops its
 * reservation and its former addresses. */
void buffer_came(struct buffers *t, struct buffer *b);
/* Are the moves over that were begun for the request? No room comes before. */
bool buffer_cleared(const struct buffers *t, const struct buffer_clearing *clearing);
/* May a buffer of that size, which exists, be without device memory for a while? */
bool buffers_may_be_away(const struct buffers *t, uint64_t size);
/* can it be evicted without copying its content to the host? */
bool buffer_keeps_itself(const struct buffer *b);
void buffer_pin(struct buffers *t, struct buffer *b);
void buffer_unpin(struct buffers *t, struct buffer *b);
void buffer_use(struct buffer *b);
void buffer_unuse(struct buffers *t, struct buffer *b);

#endif
