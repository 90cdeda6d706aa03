/*
 * The resident buffers by the front's ids. A buffer that is freed while jobs use it is destroyed at
 * the end of the last one. On a device without room for all buffers, some have no device memory for
 * a while (spill.h). The buffers that could lose theirs are listed, the one not used for longest
 * first. Thread: the loop's.
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

/* The content of a buffer that has neither device memory nor a host copy. */
enum buffer_content {
    BUFFER_UNDEFINED,
    BUFFER_ZEROS,
    BUFFER_BYTES, /* bytes, in its device memory or in a copy */
};

/* Is its content on its way? Jobs wait until it has arrived, or is in the service stream. */
enum buffer_arrival {
    BUFFER_ARRIVED,
    BUFFER_RESTORED, /* being copied from the front's host copy: the front waits, too */
    BUFFER_FETCHED,  /* being brought back or zeroed: a front that connects need not wait */
};

/* Did its content arrive? */
enum buffer_loss {
    BUFFER_WHOLE,
    BUFFER_BROKEN, /* no: it is lost */
    BUFFER_TORN,   /* no, and it is on the host still: the next job brings it again */
};

struct spill_copy;

struct buffer {
    uint64_t id;
    uint64_t size;             /* bytes */
    uint64_t tenant;           /* the front's key */
    struct memory_piece piece; /* its device memory; none if size is 0, or while it is elsewhere */
    struct pool_place place; /* its former addresses, to which it comes back if that is possible */
    bool managed;            /* its memory is to be managed memory */
    bool promised;           /* memory that is about to come free is reserved for it */
    struct memory_tenant *promised_to; /* account that the reservation is counted for; NULL: none */
    struct module *module; /* kept in use: the buffer is its variable; NULL: it has own memory */
    enum buffer_content content;
    struct spill_copy *spilled; /* owned by spill_copy.c: its bytes on the host; NULL: none */
    int sealed_fd;              /* owned: descriptor of its host copy; -1: it is not sealed */
    unsigned uses;              /* number of jobs and transfers that refer to it */
    unsigned pins; /* of these, the ones that need its device memory: it keeps its place */
    bool listed;   /* it is in `cold` */
    bool counted;  /* within a sum over buffers: it is counted */
    struct buffer *cold_prev, *cold_next;
    bool freed; /* it is no longer in the table, and destroyed at the last unuse */
    enum buffer_arrival arrival;
    enum buffer_loss loss;
    struct backend_marker *filling; /* not owned: end of a transfer into its memory, which its next
                                       user has to wait for; NULL: none */
    uint64_t serial;                /* number of the buffers made up to this one */
    UT_hash_handle hh;
};

/* Frees the bytes of a buffer that has no piece. */
typedef void (*buffer_forget_fn)(void *data, struct buffer *b);

/* Makes room for bytes beside the pool, and waits for it. own: only the tenant's own buffers can
 * help. False: no more room can be made. */
typedef bool (*buffer_room_fn)(void *data, uint64_t tenant, uint64_t bytes, bool own);

/* Will the last request that was refused have room when the buffers that move have arrived? */
typedef bool (*buffer_soon_fn)(void *data);

struct buffers {
    struct buffer *by_id;
    struct buffer *walk; /* the next buffer of a walk in steps; NULL: there is no walk */
    uint64_t made;
    struct buffer *cold;     /* buffers with device memory that are not pinned */
    struct memory *memory;   /* not owned */
    struct modules *modules; /* not owned */
    uint64_t bytes;          /* bytes of all buffers */
    uint64_t most;           /* most bytes of one buffer: what the device gives in one piece */
    uint64_t room;           /* most bytes of all, with the host; 0: each has device memory */
    buffer_forget_fn forget;
    buffer_soon_fn soon; /* NULL: never */
    buffer_room_fn clear_out;
    void *data;
};

void buffers_init(struct buffers *t, struct memory *memory, struct modules *modules);
void buffers_finish(struct buffers *t); /* idle; before modules_finish */
struct buffer_ask {
    uint64_t id;
    uint64_t size; /* bytes */
    uint64_t tenant;
    bool exported; /* other processes are going to map it */
    bool managed;
    uint64_t module;       /* id; not 0: the buffer is `variable` of this module, of `size` bytes */
    struct bytes variable; /* at most PROTO_NAME_MAX bytes */
};

/* Its memory may be dirty: transfer_start clears it. On a full device it gets no memory yet, if
 * there is `room` beside the device, or there will be room when other buffers have moved or free
 * memory has gone back to the driver. */
int buffer_create(struct buffers *t, const struct buffer_ask *ask, struct buffer **ret_buffer,
                  struct err *e);
struct buffer *buffer_find(const struct buffers *t, uint64_t id, struct err *e); /* NULL: unknown */
void buffer_unseal(struct buffer *b); /* drops the host copy, if it has one */
/* Takes it out of the table; it is destroyed at its last unuse. */
void buffer_free(struct buffers *t, struct buffer *b);
uint64_t buffer_tag(const struct buffer *b); /* the pool's tag of its memory: its own address */
bool buffer_away(const struct buffer *b);    /* does it have bytes, but no device memory? */
/* Gets managed memory for a buffer without memory. ERR_DEVICE_MEMORY, ERR_LIMIT: not yet, or never.
 */
int buffer_manage(struct buffers *t, struct buffer *b, struct err *e);
/* It has memory of the pool again, or for the first time. */
void buffer_came(struct buffers *t, struct buffer *b);
bool buffer_keeps_itself(const struct buffer *b); /* does its content need no copy on the host? */
void buffer_pin(struct buffers *t, struct buffer *b);
void buffer_unpin(struct buffers *t, struct buffer *b);
void buffer_use(struct buffer *b);
void buffer_unuse(struct buffers *t, struct buffer *b);

#endif
