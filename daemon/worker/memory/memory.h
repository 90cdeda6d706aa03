/*
 * The worker's device memory: a pool over the back end's pages or blocks, and the accounts of the
 * tenants whose bytes lie in it. Thread: the loop's.
 *
 * Streams have the pool's numbers: the streams of jobs from 0 on, then the stream of copies to the
 * device, then the service stream. Memory is freed at a point of a stream. Later commands of that
 * stream may use it at once. For commands of other streams the device waits for the point; the host
 * does not.
 *
 * No tenant can read what another tenant left, nor what new memory contained. New memory is zeroed
 * on arrival. A piece that may hold others' bytes is `dirty`: its user zeroes all of it before any
 * command of its tenant, and calls memory_cleaned when the zeros have arrived. A piece that is
 * freed dirty is dirty for its next user. Host memory needs no zeroing, because staging memory and
 * host copies are written from end to end before they are read.
 */
#ifndef WORKER_MEMORY_MEMORY_H
#define WORKER_MEMORY_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "common/clock.h"
#include "common/err.h"
#include "daemon/backend/backend.h"
#include "daemon/pool/late.h"
#include "daemon/pool/place.h"
#include "daemon/pool/quota.h"
#include "daemon/worker/memory/mapping.h"
#include "daemon/worker/memory/releases.h"
#include "daemon/worker/memory/timeline.h"
#include "proto/limits.h"

/* What the worker reports to the front about a tenant, in bytes. */
struct memory_use {
    uint64_t asked;
    uint64_t mapped;  /* memory that others cannot use because of this tenant */
    uint64_t peak;    /* high-water mark of its memory in the pool */
    uint64_t shared;  /* of `mapped`, memory outside the pool: exported or managed */
    uint64_t spilled; /* its buffers on the host */
};

/* A tenant: the front's key for it (0: the front's own work), and the pool's number. */
struct memory_tenant {
    uint64_t key;
    unsigned number;
    char name[PROTO_NAME_MAX + 1];
    uint64_t shared;
    uint64_t leaving; /* of `shared`, bytes that are queued for release to the driver */
    uint64_t promised;
    uint64_t assured; /* bytes of buffers without memory that its guarantee covers */
    uint64_t ending; /* bytes of freed buffers that copies still use; they are charged until then */
    uint64_t spilled;
    uint64_t spilled_limit; /* bytes; UINT64_MAX: none */
    /* bytes: normally spilled_limit; more while a lowered limit is still exceeded */
    uint64_t spilled_most;
    struct memory_use reported; /* the values of the last report */
    UT_hash_handle hh;
};

struct memory {
    struct mapping
        mapping;       /* the source of pages; first, so that both have one address as `user` */
    struct pool *pool; /* owned */
    struct pool_pages pages; /* source of the pool if the device has pages, else `blocks` */
    struct pool_blocks blocks;
    const struct backend *b;
    struct backend_device *d;                    /* not owned */
    struct backend_stream *stream[POOL_STREAMS]; /* not owned; as the pool numbers them */
    unsigned streams;
    uint64_t limit;                  /* limit of the pool in bytes */
    uint64_t most;                   /* what the front may raise that to; at least `limit` */
    uint64_t stay;                   /* bytes of buffers that stay, of tenants without guarantees */
    uint64_t managed, managed_limit; /* bytes of managed memory */
    uint64_t exported;               /* bytes of memory that other processes can map */
    /* not owned: the queue of memory to release to the driver; NULL: release at once. Queued
     * memory counts as before, except for the pool. */
    struct releases *releases;
    uint64_t in_use;  /* bytes of the pool's blocks, including those that are queued for release */
    uint64_t leaving; /* bytes queued for release: of in_use, and of memory outside the pool */
    uint64_t managed_leaving; /* of `leaving`, bytes of managed memory */
    uint64_t shared_leaving;  /* the same of memory that other processes can map */
    uint64_t promised; /* of the memory queued for release, bytes that are reserved for buffers */
    uint64_t managed_promised; /* of `promised`, bytes of managed memory */
    bool hung; /* the end of zeros or of a move can never be known: the worker has to end */
    struct pool_piece zeroing; /* free memory that upkeep is zeroing ahead; range NULL: none */
    bool waited;               /* the pool made a stream wait during the present allocation */
    struct timeline timeline;
    unsigned unmarked; /* jobs with a graph; part of their work is not on the timeline */
    struct memory_tenant *tenants; /* owned, uthash */
    unsigned numbers;              /* numbers below this were given out at some time */
    unsigned free_numbers;         /* of these, numbers that may be given out again */
    uint64_t returned_ns;          /* ns: when numbers were last collected from unused tenants */
    struct memory_tenant *numbered[POOL_TENANTS]; /* by number; NULL: no account has the number */
    unsigned softs;                               /* tenants with a soft limit */
    uint64_t stamped_ns;                          /* ns: time of the last stamp in the pool's log */
    /* counts events that may help a refused request: memory was freed, a point was passed, a
     * buffer became evictable, a limit changed */
    uint64_t changes;
};

enum memory_kind {
    MEMORY_POOL = 0,
    MEMORY_SHARED,  /* other processes can map it */
    MEMORY_MANAGED, /* the driver migrates it between host and device */
    MEMORY_FIXED,   /* a variable of a module: never freed on its own */
};

struct pool_move;

struct memory_piece {
    struct backend_ref ref; /* block NULL: no memory */
    struct pool_piece pool;
    bool dirty;                    /* may hold another tenant's bytes */
    enum memory_kind kind;         /* `pool` is a piece of the pool for MEMORY_POOL only */
    struct memory_tenant *account; /* account charged for a SHARED or MANAGED piece; NULL: none */
    /* its stream was made to wait for former users; another stream that uses the piece must
     * wait, too */
    bool waits;
};

struct memory_ask {
    uint64_t size;                  /* bytes, > 0 */
    uint64_t tenant;                /* the front's key */
    unsigned stream;                /* number of the stream that uses it first */
    uint64_t tag;                   /* name for the pool's mover; 0: the piece must not move */
    const struct pool_place *place; /* addresses that it had before; NULL: any */
    uint64_t align;                 /* bytes: as pool_ask.align; 0: the pool's own */
};

/* The limits of a tenant. */
struct memory_limits {
    struct pool_quota device;
    uint64_t spilled; /* bytes on the host; UINT64_MAX: no limit */
};

struct msg_w_pool;

/* The device to work on; memory_init copies this struct. The streams must outlive the memory. */
struct memory_device {
    const struct backend *b;
    struct backend_device *d;
    /* streams of jobs, then the stream of copies to the device, then the service stream */
    struct backend_stream *const *stream;
    unsigned streams;             /* length of `stream`: 3 … POOL_STREAMS */
    struct backend_stream *scrub; /* zeroes new memory only */
    /* Called by the thread that maps memory; NULL: memory is mapped within the calls that need it.
     */
    backend_wake_fn wake;
    void *wake_data;
};

int memory_init(struct memory *m, const struct memory_device *on, uint64_t limit,
                uint64_t max_alloc, struct err *e);
void memory_finish(struct memory *m); /* idle, with all pieces freed; not initialised is allowed */
unsigned memory_service(const struct memory *m); /* number of the service stream */
unsigned memory_copies(const struct memory *m);  /* number of the stream for copies to the device */

/* Sets a tenant's limits, which apply from the next request on. Memory that exceeds them is not
 * reclaimed here. ERR_LIMIT: the guarantees would exceed the device, so the tenant gets none,
 * while its other limits apply; or no number is left for the tenant. */
int memory_quota(struct memory *m, uint64_t key, const char *name,
                 const struct memory_limits *limits, struct err *e);
/* Counts `bytes` of the tenant with this number onto the host (comes) or off it. */
void memory_spilled(struct memory *m, unsigned number, uint64_t bytes, bool comes);
/* Bytes that the tenant with this number may still have on the host; UINT64_MAX: no limit.
 * `back`: bytes of the tenant that return to the device at the same time. */
uint64_t memory_host_room(const struct memory *m, unsigned number, uint64_t back);
/* The pool's number for a tenant. When numbers run out, tenants without a number share the last
 * one. A tenant without memory and limits gives its number back, and the number goes to the next
 * tenant that asks for memory. */
unsigned memory_number(struct memory *m, uint64_t key);
/* The name of a tenant for texts; may lie in `out`. */
const char *memory_tenant_name(const struct memory *m, uint64_t key, char out[32]);
void memory_use(const struct memory *m, const struct memory_tenant *t, struct memory_use *ret_use);
/* the next report covers all tenants: for a front that connects */
void memory_report_anew(struct memory *m);
/* Removes all limits and guarantees, because a front that connects sets its own. */
void memory_unlimit(struct memory *m);

/* Allocates from the pool. ERR_DEVICE_MEMORY; ERR_LIMIT when the tenant's hard limit is
 * exceeded. */
int memory_alloc(struct memory *m, const struct memory_ask *ask, struct memory_piece *ret_piece,
                 struct err *e);
/* What became of the mapping of a piece that was allocated: no command may use the piece before it
 * is POOL_READY. POOL_READY may make the piece dirty. POOL_FAILED: free it, and say
 * memory_refused(). */
enum pool_late memory_late(const struct memory *m, struct memory_piece *piece);
/* Must memory_late() be asked about the piece? */
bool memory_unmapped(const struct memory_piece *piece);
static inline int memory_refused(const struct memory *m, struct err *e) /* ERR_DEVICE_MEMORY */
{
    return mapping_refused(&m->mapping, e);
}
/* Takes over what the thread that maps memory has done. Returns whether it did anything. */
bool memory_poll(struct memory *m);
static inline bool memory_mapping(const struct memory *m) /* is memory being mapped or unmapped? */
{
    return mapping_busy(&m->mapping);
}
static inline bool memory_clears(const struct memory *m) /* is new memory being zeroed? */
{
    return m->mapping.marker != NULL;
}
/* Blocks until all memory is mapped and unmapped, for two seconds at most. */
void memory_settle(struct memory *m);
/* Allocates memory that another process can map, outside the pool, in whole pages; it is dirty.
 * It counts against the pool's limit. If the driver has no memory left, the pool gives its
 * cached memory back first. ERR_UNSUPPORTED, ERR_DEVICE_MEMORY, ERR_LIMIT. */
int memory_alloc_shared(struct memory *m, uint64_t size, uint64_t tenant,
                        struct memory_piece *ret_piece, struct err *e);
/* As memory_alloc_shared, for managed memory up to managed_limit. */
int memory_alloc_managed(struct memory *m, uint64_t size, uint64_t tenant,
                         struct memory_piece *ret_piece, struct err *e);
/* Would `size` more bytes be within managed_limit? */
bool memory_may_manage(const struct memory *m, uint64_t size);
/* Bytes that are queued for release, of one tenant's account; tenant NULL: of all. They become
 * free when nothing is in flight. */
uint64_t memory_leaving(const struct memory *m, const uint64_t *tenant);
/* Of the managed memory that is queued for release, the bytes that the tenant with this number
 * may use afterwards. */
uint64_t memory_leaving_for(const struct memory *m, unsigned number);
/* Are bytes queued for release, behind jobs that have already run for long? No request should
 * wait for them. */
bool memory_leaves_late(const struct memory *m);
/* Would a refused request fit once the queued memory is released? */
bool memory_soon(const struct memory *m, uint64_t tenant, uint64_t size);
/* Would it fit beside all reservations, those of its tenant and those of everybody? */
bool memory_may_promise(const struct memory *m, uint64_t tenant, uint64_t size, bool managed);
/* Reserves bytes of the memory that is queued for release, and charges them to the tenant. Pass
 * the returned account (NULL: none) to memory_unpromise when the memory has come or is no longer
 * wanted. A reservation of managed memory keeps it from others. */
struct memory_tenant *memory_promise(struct memory *m, uint64_t tenant, uint64_t size,
                                     bool managed);
void memory_unpromise(struct memory *m, struct memory_tenant *t, uint64_t size, bool managed);
/* Returns a descriptor of a shared piece, which the caller owns, and the piece's size. ERR_STATE
 * for a piece that is not shared. */
int memory_share(struct memory *m, const struct memory_piece *piece, int *ret_fd,
                 uint64_t *ret_bytes, struct err *e);
/* Enqueues zeros for a dirty piece, from byte `from` to its end. They may begin up to 15 bytes
 * before `from`, at a multiple of 16. */
int memory_clear(struct memory *m, const struct memory_piece *piece, uint64_t from, unsigned stream,
                 struct err *e);
/* the piece holds no other tenant's bytes any more */
void memory_cleaned(struct memory_piece *piece);
/* what should have replaced another tenant's bytes in the piece did not come */
void memory_soiled(struct memory_piece *piece);
/* Frees a piece; all commands that use it must have completed. Managed memory is released when
 * nothing is in flight, so its commands need only end before that. A piece without memory is
 * allowed. */
void memory_free(struct memory *m, struct memory_piece *piece);
/* Frees a piece that is not dirty, and whose last command is before a point on the timeline. */
void memory_free_at(struct memory *m, struct memory_piece *piece,
                    const struct timeline_point *point);
/* Frees a piece whose last command is on the service stream or has completed. If possible its
 * addresses are kept for it (pool's place.h). Managed memory is released instead. */
void memory_vacate(struct memory *m, struct memory_piece *piece, struct pool_place *ret_place);
/* Has the service stream points that were not passed? */
bool memory_service_busy(const struct memory *m);
/* Has the service stream passed the point with this number? */
bool memory_service_passed(const struct memory *m, uint64_t seq);
/* Have all commands that used the piece's memory before been passed, on every stream? For a
 * piece that was allocated for the service stream. */
bool memory_settled(const struct memory *m, const struct memory_piece *piece);

/* Adds `marker`, which is at the end of a stream, to the timeline as `point`. */
void memory_mark(struct memory *m, unsigned stream, struct backend_marker *marker,
                 struct timeline_point *point);
/* The point's marker was passed or failed. */
void memory_passed(struct memory *m, struct timeline_point *point);

/* To be called when the pool's mover has moved the piece. */
void memory_moved(struct memory_piece *piece, struct pool_move *move);

/* Fails with ERR_DEVICE_LOST if zeros or a move failed, or if their end can never be known: the
 * worker has to end. */
int memory_hung(const struct memory *m, struct err *e);

void memory_trim(struct memory *m); /* gives all cached blocks back to the driver */

/* Free memory that was not used for MEMORY_AGE_NS goes back to the driver, except 1/MEMORY_KEEP
 * of the limit. At most MEMORY_RATE bytes go back in a second, which takes some milliseconds. */
#define MEMORY_AGE_NS (60 * NS_PER_S)
#define MEMORY_KEEP   16u /* divisor of the limit */
#define MEMORY_RATE   (UINT64_C(256) << 20)
/* To be called periodically. Returns the bytes that it gave back. */
uint64_t memory_tick(struct memory *m, uint64_t now_ns);
bool memory_has_surplus(struct memory *m); /* does the pool cache memory that will go back? */
/* Finds free memory that may hold a tenant's bytes and that other tenants could get, for the
 * caller to zero on the service stream: at most `most` bytes, or one block of a source. Returns
 * false if there is none.
 *
 * The memory is reserved until memory_ahead_end() reports whether it was zeroed. A request that
 * needs it earlier gets it dirty, behind what the service stream has by then. */
bool memory_ahead(struct memory *m, uint64_t most, struct backend_ref *ret_ref,
                  uint64_t *ret_bytes);
void memory_ahead_end(struct memory *m, bool zeros);
/* Stamps the pool's log with the time, at most once a millisecond. */
void memory_stamp(struct memory *m, uint64_t now_ns);
void memory_stats(const struct memory *m, struct msg_w_pool *ret_stats);

#endif
