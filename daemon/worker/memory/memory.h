/*
 * Device memory of this worker: the pool over the back end's pages or blocks, with the device's
 * streams, and the tenants whose bytes may lie in it. Thread: the loop's.
 *
 * Streams are numbered as in the pool: streams of jobs from 0 on, then the stream of copies to the
 * device, then the service stream. Memory is freed at a point of a stream. Later commands of that
 * stream may use it at once; commands of other streams wait for the point on the device, not here.
 *
 * No tenant reads what another one left, nor what was in new memory, which is zeroed when it comes.
 * A piece that may hold others' bytes comes `dirty`: its user zeroes it as a whole before its
 * tenant's commands, and reports when that is done (memory_cleaned). A piece that was not cleaned
 * is dirty for its next user, too. Host memory needs none of this: staging memory and host copies
 * are written from end to end before they are read.
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

/* What is reported to the front about a tenant, in bytes. */
struct memory_use {
    uint64_t asked;
    uint64_t mapped;  /* memory that it keeps from others */
    uint64_t peak;    /* most memory of the pool that it had */
    uint64_t shared;  /* of `mapped`, memory beside the pool: exported or managed */
    uint64_t spilled; /* buffers on the host */
};

/* A tenant: the front's key for it (0: the front's own work), and the pool's number. */
struct memory_tenant {
    uint64_t key;
    unsigned number;
    char name[PROTO_NAME_MAX + 1];
    uint64_t shared;
    uint64_t leaving; /* of `shared`, bytes that are about to go back to the driver */
    uint64_t promised;
    uint64_t spilled;
    uint64_t spilled_limit; /* bytes; UINT64_MAX: none */
    uint64_t spilled_most;  /* bytes: the limit, or more while more is there since it was lowered */
    struct memory_use reported; /* as reported last */
    UT_hash_handle hh;
};

struct memory {
    struct pool *pool;       /* owned */
    struct pool_pages pages; /* source of the pool: this one, or blocks */
    struct pool_blocks blocks;
    const struct backend *b;
    struct backend_device *d;                    /* not owned */
    struct backend_stream *stream[POOL_STREAMS]; /* not owned; as the pool numbers them */
    unsigned streams;
    struct backend_stream *scrub;    /* not owned */
    uint64_t limit;                  /* bytes that the pool may take */
    uint64_t managed, managed_limit; /* bytes of managed memory */
    uint64_t exported;               /* bytes of memory that other processes can map */
    /* not owned: releases memory to the driver; NULL: at once. Until it is released its bytes count
     * as before, except for the pool. */
    struct releases *releases;
    uint64_t in_use;  /* bytes of blocks that the pool has, or had and that are to be released */
    uint64_t leaving; /* bytes that are to be released: of in_use, and of managed memory */
    uint64_t managed_leaving;  /* of these, bytes of managed memory */
    uint64_t promised;         /* bytes of memory to be released that are reserved for buffers */
    uint64_t managed_promised; /* of these, bytes of managed memory */
    bool hung;                 /* the end of zeros or of a move can never be known */
    struct pool_piece zeroing; /* free memory that is being zeroed ahead; range NULL: none */
    bool waited;               /* the pool made a stream wait */
    struct timeline timeline;
    unsigned unmarked; /* jobs with a graph: the timeline does not have all of their work */
    struct memory_tenant *tenants;                /* owned, uthash */
    unsigned numbers;                             /* numbers that were given so far */
    unsigned free_numbers;                        /* of these, numbers that are free again */
    uint64_t returned_ns;                         /* ns: when free numbers were searched last */
    struct memory_tenant *numbered[POOL_TENANTS]; /* by number; NULL: the number has no account */
    unsigned softs;                               /* tenants with a soft limit */
    uint64_t stamped_ns;                          /* ns: the time that the pool's log has */
    uint64_t changes; /* counts events that may help a request that was refused: memory that came
                         free or whose point was passed, buffers that may move, limits */
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
    enum memory_kind kind;         /* `pool` counts for MEMORY_POOL only */
    struct memory_tenant *account; /* account of SHARED and MANAGED pieces; NULL: none */
    bool waits; /* its stream waits until others are done with it; another stream that uses it must
                   do so, too */
};

struct memory_ask {
    uint64_t size;                  /* bytes, > 0 */
    uint64_t tenant;                /* the front's key */
    unsigned stream;                /* stream that uses it first */
    uint64_t tag;                   /* name for the pool's mover; 0: it does not move */
    const struct pool_place *place; /* its former addresses; NULL: any */
};

/* The limits of a tenant. */
struct memory_limits {
    struct pool_quota device;
    uint64_t spilled; /* bytes on the host; UINT64_MAX: no limit */
};

struct msg_w_pool;

/* The device to work on; copied. The streams must live longer. */
struct memory_device {
    const struct backend *b;
    struct backend_device *d;
    struct backend_stream *const *stream; /* of jobs, then the copies' and the service stream */
    unsigned streams;                     /* number of these streams: 3 … POOL_STREAMS */
    struct backend_stream *scrub;         /* zeroes new memory only */
};

int memory_init(struct memory *m, const struct memory_device *on, uint64_t limit,
                uint64_t max_alloc, struct err *e);
void memory_finish(struct memory *m); /* idle, all pieces are free; not initialised is allowed */
unsigned memory_service(const struct memory *m); /* number of the service stream */
unsigned memory_copies(const struct memory *m);  /* number of the stream for copies to the device */

/* Sets a tenant's limits from the next request on; nothing is taken back. ERR_LIMIT: more would be
 * guaranteed than there is, so nothing is, and the other limits count; or no number is left for the
 * tenant. */
int memory_quota(struct memory *m, uint64_t key, const char *name,
                 const struct memory_limits *limits, struct err *e);
/* Bytes of a tenant, by its number, come to the host or leave it. */
void memory_spilled(struct memory *m, unsigned number, uint64_t bytes, bool comes);
/* Bytes that a tenant, by its number, may have on the host beside what is there; UINT64_MAX: no
 * limit. `back`: bytes that come back at the same time. */
uint64_t memory_host_room(const struct memory *m, unsigned number, uint64_t back);
/* The pool's number for a tenant. When numbers run out, tenants without a number share the last
 * one. A tenant without memory and limits gives its number back, and another tenant gets it when it
 * gets memory. */
unsigned memory_number(struct memory *m, uint64_t key);
/* The tenant's name for people. */
const char *memory_tenant_name(const struct memory *m, uint64_t key, char out[32]);
void memory_use(const struct memory *m, const struct memory_tenant *t, struct memory_use *ret_use);
void memory_report_anew(struct memory *m); /* another front gets all reports anew */
/* Removes all limits and guarantees: another front sets its own. */
void memory_unlimit(struct memory *m);

/* ERR_DEVICE_MEMORY, ERR_LIMIT over the tenant's hard limit. */
int memory_alloc(struct memory *m, const struct memory_ask *ask, struct memory_piece *ret_piece,
                 struct err *e);
/* Memory that another process can map, beside the pool, in whole pages; dirty. The pool gives back
 * what it keeps if there is no other, and has that much less. ERR_UNSUPPORTED, ERR_DEVICE_MEMORY,
 * ERR_LIMIT. */
int memory_alloc_shared(struct memory *m, uint64_t size, uint64_t tenant,
                        struct memory_piece *ret_piece, struct err *e);
/* As memory_alloc_shared, for managed memory up to managed_limit. */
int memory_alloc_managed(struct memory *m, uint64_t size, uint64_t tenant,
                         struct memory_piece *ret_piece, struct err *e);
/* Would `size` more bytes be within managed_limit? */
bool memory_may_manage(const struct memory *m, uint64_t size);
/* Bytes that come free when all that is in flight has ended: of a tenant's account; NULL: of all.
 */
uint64_t memory_leaving(const struct memory *m, const uint64_t *tenant);
/* Of these, bytes of managed memory that a tenant, by its number, may have then. */
uint64_t memory_leaving_for(const struct memory *m, unsigned number);
/* Are there such bytes, behind jobs that run for long already? Then no request waits for them. */
bool memory_leaves_late(const struct memory *m);
/* Would a refused request have room when they are free? */
bool memory_soon(const struct memory *m, uint64_t tenant, uint64_t size);
/* Would it have room beside all that is reserved, for its tenant and in all? */
bool memory_may_promise(const struct memory *m, uint64_t tenant, uint64_t size, bool managed);
/* Reserves bytes that come free, and counts them as the tenant's. The account returned (NULL: none)
 * is to be given to memory_unpromise when the memory came or is not wanted any more. Managed memory
 * is kept from others. */
struct memory_tenant *memory_promise(struct memory *m, uint64_t tenant, uint64_t size,
                                     bool managed);
void memory_unpromise(struct memory *m, struct memory_tenant *t, uint64_t size, bool managed);
/* A descriptor of a shared piece, which is the caller's, and the piece's bytes. ERR_STATE for
 * another piece. */
int memory_share(struct memory *m, const struct memory_piece *piece, int *ret_fd,
                 uint64_t *ret_bytes, struct err *e);
/* Enqueues zeros for a dirty piece: for all of it from byte `from` on, and up to 15 bytes before
 * it. */
int memory_clear(struct memory *m, const struct memory_piece *piece, uint64_t from, unsigned stream,
                 struct err *e);
void memory_cleaned(struct memory_piece *piece); /* no other tenant's bytes are left in it */
/* Frees a piece: all commands on it have completed; for managed memory, they end before nothing is
 * in flight. A piece without memory is allowed. */
void memory_free(struct memory *m, struct memory_piece *piece);
/* Frees a piece whose last command is before a point on the timeline. It must not be dirty. */
void memory_free_at(struct memory *m, struct memory_piece *piece,
                    const struct timeline_point *point);
/* Frees a piece whose last command is on the service stream or past. Its addresses are kept for it
 * if possible (pool's place.h). Managed memory is released. */
void memory_vacate(struct memory *m, struct memory_piece *piece, struct pool_place *ret_place);
/* has the service stream points that were not passed? */
bool memory_service_busy(const struct memory *m);
/* Have all former commands on the memory of a piece for service been passed, of all streams? */
bool memory_settled(const struct memory *m, const struct memory_piece *piece);

/* Adds the end of what was enqueued on a stream to the timeline. */
void memory_mark(struct memory *m, unsigned stream, struct backend_marker *marker,
                 struct timeline_point *point);
/* its marker is passed or failed */
void memory_passed(struct memory *m, struct timeline_point *point);

/* The pool's mover has moved the piece. */
void memory_moved(struct memory_piece *piece, struct pool_move *move);

/* < 0: zeros or a move failed, or their end can never be known: the worker has to end. */
int memory_hung(const struct memory *m, struct err *e);

void memory_trim(struct memory *m); /* gives cached blocks back to the device */

/* Free memory that was not used for MEMORY_AGE_NS goes back to the device, except MEMORY_KEEP of
 * the limit. It takes some milliseconds for MEMORY_RATE bytes, the most in a second. */
#define MEMORY_AGE_NS (60 * NS_PER_S)
#define MEMORY_KEEP   16u /* divisor of the limit */
#define MEMORY_RATE   (UINT64_C(256) << 20)
/* To be called periodically. Returns bytes given back. */
uint64_t memory_tick(struct memory *m, uint64_t now_ns);
bool memory_has_surplus(struct memory *m); /* is there memory that could go back in time? */
/* Finds free memory that may hold a tenant's bytes and that others could get, to be zeroed on the
 * service stream: `most` bytes at most, or one block of a source. False: there is none. It is
 * reserved until memory_ahead_end() says whether it is zeros. A request that comes before gets it
 * as dirty as it was, behind what is on the stream by then. */
bool memory_ahead(struct memory *m, uint64_t most, struct backend_ref *ret_ref,
                  uint64_t *ret_bytes);
void memory_ahead_end(struct memory *m, bool zeros);
/* Gives the pool's log the time, if it is a millisecond later than last. */
void memory_stamp(struct memory *m, uint64_t now_ns);
void memory_stats(const struct memory *m, struct msg_w_pool *ret_stats);

#endif
