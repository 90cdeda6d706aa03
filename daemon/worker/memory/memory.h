/*
 * Device memory of this worker: the pool over the back end's pages or blocks, with the device's
 * streams and the tenants whose bytes may lie in it. Thread: the loop's.
 *
 * Streams are numbered as the pool knows them: those for jobs from 0 on, then that of copies to the
 * device, then the service stream.
 * Memory is freed at a point of a stream and used by later commands of it at once; those of others
 * wait for that point on the device, not here.
 *
 * No tenant reads what another left, nor what was in memory that is new: that is zeroed when it
 * comes. A piece that may hold others' bytes comes `dirty`: who takes it has it zeroed, as a whole,
 * before its tenant's commands, and says so when that is done (memory_cleaned). What was not
 * cleaned is dirty for the next one, too. Host memory needs none of this: staging and host copies
 * are written from end to end before anybody reads them.
 */
#ifndef WORKER_MEMORY_MEMORY_H
#define WORKER_MEMORY_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "common/clock.h"
#include "common/err.h"
#include "daemon/backend/backend.h"
#include "daemon/pool/place.h"
#include "daemon/pool/quota.h"
#include "daemon/worker/memory/releases.h"
#include "daemon/worker/memory/timeline.h"
#include "proto/limits.h"

/* What the front hears of a tenant, in bytes. */
struct memory_use {
    uint64_t asked;
    uint64_t mapped;  /* it keeps from others */
    uint64_t peak;    /* most of what it had of the pool */
    uint64_t shared;  /* of what it keeps, beside the pool: exported or managed */
    uint64_t spilled; /* on the host */
};

/* The front's name for a tenant (0: its own work) and the pool's number for it. */
struct memory_tenant {
    uint64_t key;
    unsigned number;
    char name[PROTO_NAME_MAX + 1];
    uint64_t shared;
    uint64_t leaving; /* of these, see below */
    uint64_t promised;
    uint64_t spilled;
    uint64_t spilled_limit; /* UINT64_MAX: none */
    uint64_t spilled_most;  /* the limit, or what lay there when it was lowered and does still */
    struct memory_use told;
    UT_hash_handle hh;
};

struct memory {
    struct pool *pool;       /* owned */
    struct pool_pages pages; /* what the pool draws on: one of the two */
    struct pool_blocks blocks;
    const struct backend *b;
    struct backend_device *d;                    /* not owned */
    struct backend_stream *stream[POOL_STREAMS]; /* not owned; the last one is for service */
    unsigned streams;
    struct backend_stream *scrub;    /* not owned */
    uint64_t limit;                  /* bytes that the pool may take */
    uint64_t managed, managed_limit; /* bytes of managed memory */
    uint64_t exported;               /* bytes of memory that other processes can map */
    /* Memory that goes back to the driver does so by these, not owned; NULL: at once. Until it has
     * gone its bytes count as before, but for the pool. */
    struct releases *releases;
    uint64_t taken;            /* bytes of blocks that the pool has, or had and are to go */
    uint64_t leaving;          /* bytes that are to go: of these, and of managed memory, which is */
    uint64_t managed_leaving;  /* so much */
    uint64_t promised;         /* bytes that buffers are to get of all that; of these, */
    uint64_t managed_promised; /* of managed memory: nobody else may have them */
    bool hung;                 /* zeroing or moving has no end that can be waited for */
    struct pool_piece zeroing; /* free, and being zeroed ahead; range NULL: none */
    bool waited;               /* the pool has let a stream wait */
    struct timeline timeline;
    unsigned unmarked; /* jobs that begin bit by bit: their work is not all on the timeline */
    struct memory_tenant *tenants;                /* owned, uthash */
    unsigned numbers;                             /* given so far; then those that came back, */
    unsigned spare;                               /* so many now */
    uint64_t returned_ns;                         /* when those were looked for last */
    struct memory_tenant *numbered[POOL_TENANTS]; /* the same, where there is one */
    unsigned softs;                               /* how many have a soft limit */
    uint64_t stamped_ns;                          /* when the pool's log was told the time last */
    uint64_t changes; /* counts what may let a request succeed that was refused: memory that came
                         free or came past, buffers that may move, limits */
};

enum memory_kind {
    MEMORY_POOL = 0,
    MEMORY_SHARED,  /* other processes can map it */
    MEMORY_MANAGED, /* the driver moves it between host and device */
    MEMORY_FIXED,   /* a module's variable: not to be freed */
};

struct pool_move;

struct memory_piece {
    struct backend_ref ref; /* block NULL: none */
    struct pool_piece pool;
    bool dirty;                    /* may hold another tenant's bytes */
    enum memory_kind kind;         /* only POOL's are the pool's */
    struct memory_tenant *account; /* that counts SHARED and MANAGED ones; NULL: none does */
    bool waits; /* its stream waits until others are done with it: other streams must, too */
};

struct memory_ask {
    uint64_t size;                  /* bytes, > 0 */
    uint64_t tenant;                /* as the front names it */
    unsigned stream;                /* that uses it first */
    uint64_t tag;                   /* the pool's mover's name for it; 0: it stays where it is */
    const struct pool_place *place; /* where it was; NULL: anywhere */
};

/* What a tenant may have. */
struct memory_limits {
    struct pool_quota device;
    uint64_t spilled; /* bytes on the host; UINT64_MAX: no limit */
};

struct msg_w_pool;

/* What it works on; copied, the streams must live longer. */
struct memory_device {
    const struct backend *b;
    struct backend_device *d;
    struct backend_stream *const *stream; /* of jobs, then those for copies and for service */
    unsigned streams;                     /* 3 … POOL_STREAMS */
    struct backend_stream *scrub;         /* for new memory alone */
};

int memory_init(struct memory *m, const struct memory_device *on, uint64_t limit,
                uint64_t max_alloc, struct err *e);
void memory_finish(struct memory *m); /* idle, all pieces are free; may be called before init */
unsigned memory_service(const struct memory *m); /* the number of the service stream */
unsigned memory_copies(const struct memory *m);  /* and of that for copies to the device */

/* What a tenant may have from the next request on; nothing is taken back. ERR_LIMIT where more
 * would be guaranteed than there is: then nothing is kept for it, and the other limits count; or
 * where no number is left to tell it from others by. */
int memory_quota(struct memory *m, uint64_t key, const char *name,
                 const struct memory_limits *limits, struct err *e);
/* Bytes of it come to the host, or leave it: of its number. */
void memory_spilled(struct memory *m, unsigned number, uint64_t bytes, bool comes);
/* How many bytes more it may have on the host: of its number; UINT64_MAX: no limit. `back`: bytes
 * that come back from there at the same time. */
uint64_t memory_host_room(const struct memory *m, unsigned number, uint64_t back);
/* The pool's number for a tenant. Where all are given it is that of all who have none: who has
 * nothing, and no limits, leaves its own to others, who get it when they get memory. */
unsigned memory_number(struct memory *m, uint64_t key);
/* What people know it by. */
const char *memory_tenant_name(const struct memory *m, uint64_t key, char out[32]);
void memory_use(const struct memory *m, const struct memory_tenant *t, struct memory_use *ret_use);
void memory_untold(struct memory *m); /* another front has heard of nothing */
/* Nobody has a limit or a guarantee: another front tells its own. */
void memory_unlimit(struct memory *m);

/* ERR_DEVICE_MEMORY, ERR_LIMIT over the tenant's hard limit. */
int memory_alloc(struct memory *m, const struct memory_ask *ask, struct memory_piece *ret_piece,
                 struct err *e);
/* Memory that another process can map, beside the pool, in whole pages; dirty. The pool gives back
 * what it keeps where there is no other, and has so much less for others. ERR_UNSUPPORTED,
 * ERR_DEVICE_MEMORY, ERR_LIMIT. */
int memory_alloc_shared(struct memory *m, uint64_t size, uint64_t tenant,
                        struct memory_piece *ret_piece, struct err *e);
/* The same of managed memory, up to managed_limit. */
int memory_alloc_managed(struct memory *m, uint64_t size, uint64_t tenant,
                         struct memory_piece *ret_piece, struct err *e);
/* Is so much within managed_limit? */
bool memory_may_manage(const struct memory *m, uint64_t size);
/* Bytes that are free, and had when what is in flight has ended: of a tenant's account; NULL: of
 * all. */
uint64_t memory_leaving(const struct memory *m, const uint64_t *tenant);
/* Of these, bytes of managed memory that the pool's number of a tenant may have then. */
uint64_t memory_leaving_for(const struct memory *m, unsigned number);
/* Are there some, and does what they wait for run for long already? Nobody waits for them then. */
bool memory_leaves_late(const struct memory *m);
/* Would a request that was refused have room then? */
bool memory_soon(const struct memory *m, uint64_t tenant, uint64_t size);
/* Would it beside all that was promised, to its tenant and in all? */
bool memory_may_promise(const struct memory *m, uint64_t tenant, uint64_t size, bool managed);
/* So much is to be had then, and counts as its tenant's: who has to be told the same when it came,
 * or is not wanted any more (NULL: nobody). Managed memory is kept from others. */
struct memory_tenant *memory_promise(struct memory *m, uint64_t tenant, uint64_t size,
                                     bool managed);
void memory_unpromise(struct memory *m, struct memory_tenant *t, uint64_t size, bool managed);
/* A descriptor of a shared piece, the caller's, and its bytes. ERR_STATE for another piece. */
int memory_share(struct memory *m, const struct memory_piece *piece, int *ret_fd,
                 uint64_t *ret_bytes, struct err *e);
/* Puts zeros into a dirty piece, in the order of a stream: all of it from this byte on, and up to
 * 15 bytes before it. */
int memory_clear(struct memory *m, const struct memory_piece *piece, uint64_t from, unsigned stream,
                 struct err *e);
void memory_cleaned(struct memory_piece *piece); /* nothing of others is left in it */
/* All commands on it have completed, or those of managed memory come to an end before nothing is in
 * flight. A piece that is none is allowed. */
void memory_free(struct memory *m, struct memory_piece *piece);
/* Its last command is before a point that is on the timeline. A dirty piece cannot go so. */
void memory_free_at(struct memory *m, struct memory_piece *piece,
                    const struct timeline_point *point);
/* Its last command is on the service stream already, or past. Its addresses are kept for it where
 * that may be (pool's place.h); managed memory is freed. */
void memory_vacate(struct memory *m, struct memory_piece *piece, struct pool_place *ret_place);
bool memory_service_busy(const struct memory *m); /* has the service stream points to come to? */
/* Has what used the memory of a piece for service before done so, for all streams? */
bool memory_settled(const struct memory *m, const struct memory_piece *piece);

/* The end of what was enqueued on a stream. */
void memory_mark(struct memory *m, unsigned stream, struct backend_marker *marker,
                 struct timeline_point *point);
void memory_passed(struct memory *m, struct timeline_point *point); /* its marker is settled */

/* The pool's mover has moved it. */
void memory_moved(struct memory_piece *piece, struct pool_move *move);

/* < 0: what was to zero or move memory hangs or failed: the worker is to end. */
int memory_hung(const struct memory *m, struct err *e);

void memory_trim(struct memory *m); /* gives cached blocks back to the device */

/* Free memory that nobody needed for MEMORY_AGE_NS goes back to the device, but for MEMORY_KEEP of
 * the limit: some milliseconds for MEMORY_RATE bytes, which are the most in a second. */
#define MEMORY_AGE_NS (60 * NS_PER_S)
#define MEMORY_KEEP   16u /* a part of the limit */
#define MEMORY_RATE   (UINT64_C(256) << 20)
/* Call it now and then. Returns bytes given back. */
uint64_t memory_tick(struct memory *m, uint64_t now_ns);
bool memory_spare(struct memory *m); /* is there anything that could go back some day? */
/* Free memory that may hold a tenant's bytes and that others could get, to be zeroed on the service
 * stream: at most `most` bytes, or one block of a source. False: there is none. It is nobody's
 * until memory_ahead_end() tells whether it is zeros; whoever asks for memory before gets it as it
 * was, behind what is on the stream by then. */
bool memory_ahead(struct memory *m, uint64_t most, struct backend_ref *ret_ref,
                  uint64_t *ret_bytes);
void memory_ahead_end(struct memory *m, bool zeros);
/* Tells the pool's log the time, if it is a millisecond later than last. */
void memory_stamp(struct memory *m, uint64_t now_ns);
void memory_stats(const struct memory *m, struct msg_w_pool *ret_stats);

#endif
