/*
 * The resident buffers by the front's ids. A buffer that is freed while jobs use it goes when the
 * last of them ends. Where the device has no room for all of them, some have no device memory for
 * a while (spill.h); those that could lose theirs are listed, the one not used for longest first.
 * Thread: the loop's.
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

/* What a buffer holds, where it has neither device memory nor a host copy. */
enum buffer_content {
    BUFFER_UNDEFINED,
    BUFFER_ZEROS,
    BUFFER_BYTES, /* they are in its memory, or in a copy */
};

struct spill_copy;

struct buffer {
    uint64_t id;
    uint64_t size;             /* bytes */
    uint64_t tenant;           /* as the front names it */
    struct memory_piece piece; /* none when size is 0, or while it is elsewhere */
    struct pool_place place;   /* meanwhile: the addresses that it comes back to, if it may */
    bool managed;              /* it comes back as managed memory, */
    bool promised;             /* memory that others are giving back is to be its own, */
    struct memory_tenant *promised_to; /* and its tenant's account tells so; NULL: none does */
    struct module *module; /* whose variable it is, used by it; NULL: of memory of its own */
    enum buffer_content content;
    struct spill_copy *spilled; /* owned by spill_copy.c: its bytes, while it has no piece */
    int sealed_fd;              /* owned: its host copy, -1 if it is not sealed */
    unsigned uses;              /* jobs and transfers that refer to it */
    unsigned pins;              /* of these, those on the device: it stays where it is */
    bool listed;                /* in `cold` */
    bool counted;               /* while something is added up */
    struct buffer *cold_prev, *cold_next;
    bool freed;                     /* no longer in the table */
    bool arriving;                  /* its content is being copied: jobs wait */
    bool fetched;                   /* and only they: the front did not ask for it */
    bool broken;                    /* its content did not arrive */
    bool torn;                      /* and lies on the host still: it is brought again */
    struct backend_marker *filling; /* not owned: a transfer into it, NULL when that is done;
                                       whoever uses its memory comes after it */
    uint64_t serial;                /* counts buffers as they are made */
    UT_hash_handle hh;
};

/* Frees the bytes of a buffer that has no piece. */
typedef void (*buffer_forget_fn)(void *data, struct buffer *b);

/* Makes room for bytes beside the pool, and waits for it. own: only the tenant's own can help.
 * False: there is no more to be made. */
typedef bool (*buffer_room_fn)(void *data, uint64_t tenant, uint64_t bytes, bool own);

/* Will what was refused last have room when what moves on the device has arrived? */
typedef bool (*buffer_soon_fn)(void *data);

struct buffers {
    struct buffer *by_id;
    struct buffer
        *walk; /* of who goes through them in steps: the next one; freed, the one behind */
    uint64_t made;
    struct buffer *cold;     /* with a piece, and not pinned */
    struct memory *memory;   /* not owned */
    struct modules *modules; /* not owned */
    uint64_t bytes;          /* of all */
    uint64_t most;           /* of one: what the device gives at once */
    uint64_t room;           /* of all, on the device and off it; 0: each has device memory */
    buffer_forget_fn forget;
    buffer_soon_fn soon; /* NULL: never */
    buffer_room_fn clear_out;
    void *data;
};

void buffers_init(struct buffers *t, struct memory *memory, struct modules *modules);
void buffers_finish(struct buffers *t); /* idle, the modules are still there */
struct buffer_ask {
    uint64_t id;
    uint64_t size; /* bytes */
    uint64_t tenant;
    bool exported; /* other processes are to map it */
    bool managed;
    uint64_t module;       /* not 0: it is `variable` of this module, of `size` bytes */
    struct bytes variable; /* at most PROTO_NAME_MAX bytes */
};

/* Its memory may be dirty: transfer_start clears it. Where there is `room` beside a device that is
 * full, or there will be some when others have moved or what is free has gone back to the driver,
 * it gets none yet. */
int buffer_create(struct buffers *t, const struct buffer_ask *ask, struct buffer **ret_buffer,
                  struct err *e);
struct buffer *buffer_find(const struct buffers *t, uint64_t id, struct err *e); /* NULL: unknown */
void buffer_unseal(struct buffer *b); /* lets go of the host copy, if there is one */
/* Takes it out of the table; memory goes with the last use. */
void buffer_free(struct buffers *t, struct buffer *b);
uint64_t buffer_tag(const struct buffer *b); /* its memory's name for the pool: its own address */
bool buffer_away(const struct buffer *b);    /* it has bytes and no device memory */
/* Managed memory for one that has none. ERR_DEVICE_MEMORY, ERR_LIMIT: not yet, or no more. */
int buffer_manage(struct buffers *t, struct buffer *b, struct err *e);
/* It has ordinary memory again, or for the first time. */
void buffer_came(struct buffers *t, struct buffer *b);
bool buffer_keeps_itself(const struct buffer *b); /* its bytes need no copy on the host */
void buffer_pin(struct buffers *t, struct buffer *b);
void buffer_unpin(struct buffers *t, struct buffer *b);
void buffer_use(struct buffer *b);
void buffer_unuse(struct buffers *t, struct buffer *b);

#endif
