/*
 * A picture of a device's memory pool as its worker hands it to the front: one piece of shared
 * memory with a head, then meters, events and pieces. Both ends are of one build, and the front
 * does not trust a worker: everything is checked here before it is believed, and copied before it
 * is looked at, since the worker could still write there.
 *
 * All sizes are bytes, places (`at`) bytes from the start of the pool's addresses. Thread: any.
 */
#ifndef PROTO_PICTURE_H
#define PROTO_PICTURE_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define PICTURE_VERSION    1u
#define PICTURE_METERS_MAX 2048u
#define PICTURE_EVENTS_MAX (1u << 18)
#define PICTURE_PIECES_MAX (1u << 20)

/* NUMBER(name): of the pool as a whole, as struct pool_stats has them; `vacant`: addresses kept for
 * buffers that are on the host, came_back: times that a buffer returned to its addresses */
#define PICTURE_NUMBERS(NUMBER)                                                                    \
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
    NUMBER(came_back)
/* BESIDE(name): bytes beside the pool: exported and managed device memory, clients' arenas on the
 * host */
#define PICTURE_BESIDE(BESIDE)                                                                     \
    BESIDE(exported)                                                                               \
    BESIDE(managed)                                                                                \
    BESIDE(arenas)

#define X(name) uint64_t name;
struct picture_numbers {
    PICTURE_NUMBERS(X)
    PICTURE_BESIDE(X)
};
#undef X

struct picture_head {
    uint32_t version;
    uint32_t meters, events, pieces; /* how many follow */
    uint64_t pieces_all;             /* how many there are: more than `pieces` if it is cut */
    uint64_t first_event;            /* number of the first one since the pool was made */
    uint64_t taken_ns; /* the monotonic clock, as that of the stamps among the events */
    uint64_t wall_ns;  /* the same moment since 1970 */
    struct picture_numbers numbers;
};

/* What some pieces come to. */
enum picture_scope { PICTURE_TIER = 1, PICTURE_CLASS = 2, PICTURE_TENANT = 3 };

struct picture_meter {
    uint32_t scope; /* enum picture_scope */
    uint32_t index; /* which tier, class or tenant */
    uint64_t what;  /* CLASS: bytes of an object; TENANT: the front's name for it */
    uint64_t live;  /* pieces */
    uint64_t used, asked, peak;
    uint64_t allocations; /* since the pool was made */
    uint64_t total;       /* bytes of these */
};

/* states and kinds have the numbers of enum pool_extent_state and enum pool_event_kind */
#define PICTURE_STATES      5u
#define PICTURE_EVENT_KINDS 16u

#define PICTURE_TENANT_UNKNOWN UINT64_MAX

enum picture_owner { PICTURE_NOBODY = 0, PICTURE_BUFFER = 1, PICTURE_TEMPORARY = 2 };

struct picture_piece {
    uint64_t at, size;
    uint64_t seq;    /* free for its stream only: until this point */
    uint64_t owner;  /* BUFFER: the front's handle; TEMPORARY: the job */
    uint16_t tenant; /* number; UINT16_MAX: several, or not known */
    uint8_t state;
    uint8_t stream;
    uint8_t object; /* of a slab */
    uint8_t kind;   /* enum picture_owner */
    uint16_t unused;
};

struct picture_event {
    uint64_t at, size;
    uint32_t value;
    uint16_t tenant;
    uint8_t kind;
    uint8_t stream;
};

/* How many bytes a picture of so many takes. */
uint64_t picture_bytes(uint32_t meters, uint32_t events, uint32_t pieces);

/* Where its parts lie, for the writer. */
struct picture_room {
    struct picture_head *head;
    struct picture_meter *meters;
    struct picture_event *events;
    struct picture_piece *pieces;
};
struct picture_room picture_room(void *data, uint32_t meters, uint32_t events);

/* A picture for the reader. */
struct picture_view {
    const uint8_t *data; /* not owned */
    struct picture_head head;
};

/* ERR_PROTOCOL if the head promises what `size` bytes cannot hold, or more than the limits. On
 * failure *ret_view is untouched. */
int picture_open(const void *data, size_t size, struct picture_view *ret_view, struct err *e);
/* The i-th, i less than head.meters and so on; unknown states and kinds come as the last one that
 * is known, and no range ends behind 2^64. */
struct picture_meter picture_meter(const struct picture_view *v, uint32_t i);
struct picture_event picture_event(const struct picture_view *v, uint32_t i);
struct picture_piece picture_piece(const struct picture_view *v, uint32_t i);

#endif
