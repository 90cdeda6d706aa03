/*
 * A snapshot of a device's memory pool, which a worker passes to the front in shared memory: a
 * head, then meters, events and pieces. Both are of one build. The front does not trust a worker:
 * readers copy each record before they check it, because the worker can still change it.
 *
 * All sizes are in bytes; places (`at`) are bytes from the start of the pool's addresses.
 * Thread: any.
 */
#ifndef PROTO_SNAPSHOT_H
#define PROTO_SNAPSHOT_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define SNAPSHOT_VERSION    1u
#define SNAPSHOT_METERS_MAX 2048u
#define SNAPSHOT_EVENTS_MAX (1u << 18)
#define SNAPSHOT_PIECES_MAX (1u << 20)

/* NUMBER(name): a figure of the whole pool, as in struct pool_stats. vacant: addresses reserved for
 * buffers that are on the host; came_back: returns of buffers to their addresses; handles: pieces
 * of memory that the driver gave; breaks: of these, given back for smaller ones since the start. */
#define SNAPSHOT_NUMBERS(NUMBER)                                                                   \
    NUMBER(limit)                                                                                  \
    NUMBER(size)                                                                                   \
    NUMBER(used)                                                                                   \
    NUMBER(asked)                                                                                  \
    NUMBER(peak)                                                                                   \
    NUMBER(size_peak)                                                                              \
    NUMBER(cached)                                                                                 \
    NUMBER(pending)                                                                                \
    NUMBER(largest_free)                                                                           \
    NUMBER(live)                                                                                   \
    NUMBER(allocations)                                                                            \
    NUMBER(frees)                                                                                  \
    NUMBER(hits)                                                                                   \
    NUMBER(waits)                                                                                  \
    NUMBER(remaps)                                                                                 \
    NUMBER(failures)                                                                               \
    NUMBER(refused_frees)                                                                          \
    NUMBER(driver_calls)                                                                           \
    NUMBER(internal)                                                                               \
    NUMBER(external)                                                                               \
    NUMBER(vacant)                                                                                 \
    NUMBER(came_back)                                                                              \
    NUMBER(handles)                                                                                \
    NUMBER(breaks)
/* BESIDE(name): bytes outside of the pool: exported and managed device memory, clients' arenas on
 * the host. */
#define SNAPSHOT_BESIDE(BESIDE)                                                                    \
    BESIDE(exported)                                                                               \
    BESIDE(managed)                                                                                \
    BESIDE(arenas)

#define X(name) uint64_t name;
struct snapshot_numbers {
    SNAPSHOT_NUMBERS(X)
    SNAPSHOT_BESIDE(X)
};
#undef X

struct snapshot_head {
    uint32_t version;
    uint32_t meters, events, pieces; /* how many records follow */
    uint64_t pieces_all;             /* of the pool; more than `pieces` if the snapshot is cut */
    uint64_t first_event;            /* number of the first event, since the pool was created */
    uint64_t taken_ns;               /* monotonic clock, like the stamps among the events */
    uint64_t wall_ns;                /* the same time, since 1970 */
    struct snapshot_numbers numbers;
};

/* A meter sums the pieces of a tier, of a size class or of a tenant. */
enum snapshot_scope { SNAPSHOT_TIER = 1, SNAPSHOT_CLASS = 2, SNAPSHOT_TENANT = 3 };

struct snapshot_meter {
    uint32_t scope; /* enum snapshot_scope */
    uint32_t index; /* which tier, class or tenant */
    uint64_t what;  /* CLASS: bytes of an object; TENANT: the front's key */
    uint64_t live;  /* pieces */
    uint64_t used, asked, peak;
    uint64_t allocations; /* since the pool was created */
    uint64_t total;       /* bytes of these allocations */
};

/* The values of states and kinds are those of enum pool_extent_state and enum pool_event_kind. */
#define SNAPSHOT_STATES      5u
#define SNAPSHOT_EVENT_KINDS 16u

#define SNAPSHOT_TENANT_UNKNOWN UINT64_MAX

enum snapshot_owner { SNAPSHOT_NOBODY = 0, SNAPSHOT_BUFFER = 1, SNAPSHOT_TEMPORARY = 2 };

struct snapshot_piece {
    uint64_t at, size;
    uint64_t seq;    /* of a free piece: before this point only its stream may use it */
    uint64_t owner;  /* BUFFER: the front's handle; TEMPORARY: the job */
    uint16_t tenant; /* the tenant's number; UINT16_MAX: several, or not known */
    uint8_t state;
    uint8_t stream;
    uint8_t object; /* 1: part of a slab */
    uint8_t kind;   /* enum snapshot_owner */
    uint16_t unused;
};

struct snapshot_event {
    uint64_t at, size;
    uint32_t value;
    uint16_t tenant;
    uint8_t kind;
    uint8_t stream;
};

/* The bytes of a snapshot with so many records. */
uint64_t snapshot_bytes(uint32_t meters, uint32_t events, uint32_t pieces);

/* The parts of a snapshot, for the writer. */
struct snapshot_room {
    struct snapshot_head *head;
    struct snapshot_meter *meters;
    struct snapshot_event *events;
    struct snapshot_piece *pieces;
};
struct snapshot_room snapshot_room(void *data, uint32_t meters, uint32_t events);

/* A snapshot for the reader. */
struct snapshot_view {
    const uint8_t *data; /* not owned */
    struct snapshot_head head;
};

/* ERR_PROTOCOL: the head names more records than fit into `size` bytes, or than the limits allow.
 * On failure *ret_view is untouched. */
int snapshot_open(const void *data, size_t size, struct snapshot_view *ret_view, struct err *e);
/* Record i, which is less than head.meters, head.events or head.pieces. An unknown state or kind
 * becomes the last known one; ranges are cut at 2^64. */
struct snapshot_meter snapshot_meter(const struct snapshot_view *v, uint32_t i);
struct snapshot_event snapshot_event(const struct snapshot_view *v, uint32_t i);
struct snapshot_piece snapshot_piece(const struct snapshot_view *v, uint32_t i);

#endif
