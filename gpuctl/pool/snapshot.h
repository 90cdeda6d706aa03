/*
 * A snapshot of the daemon's memory pools: gpuctl reads it in parts, then writes it as JSON, as a
 * page, or in the formats of other tools. Sizes are bytes; places are bytes from the start of a
 * pool's addresses. Thread: one.
 */
#ifndef GPUCTL_POOL_SNAPSHOT_H
#define GPUCTL_POOL_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <gpud/gpud.h>

#include "gpuctl/base/ctl_err.h"

#define SNAPSHOT_VERSION 1u

enum snapshot_state {
    SNAPSHOT_VOID,
    SNAPSHOT_FREE,
    SNAPSHOT_PENDING,
    SNAPSHOT_LIVE,
    SNAPSHOT_LOST,
    SNAPSHOT_STATES
};

/* Events that the formats know. All others are SNAPSHOT_OTHER and have a name only. */
enum snapshot_event_kind {
    SNAPSHOT_ALLOC,
    SNAPSHOT_HIT, /* an allocation without a call to the device */
    SNAPSHOT_RELEASE,
    SNAPSHOT_REFUSE,
    SNAPSHOT_MAP,   /* memory of the device is mapped at addresses */
    SNAPSHOT_REMAP, /* memory is moved from other addresses */
    SNAPSHOT_UNMAP, /* memory returns to the device */
    SNAPSHOT_STAMP,
    SNAPSHOT_OTHER,
};

struct snapshot_piece {
    uint64_t at, size;
    uint64_t until;               /* PENDING: the point of its stream at which it is free */
    uint64_t id;                  /* of its buffer or job, if kind is not empty */
    uint32_t tenant, label, kind; /* texts; see snapshot_text */
    uint8_t state;                /* enum snapshot_state */
    uint8_t stream;
    bool object; /* part of a slab */
};

struct snapshot_event {
    uint64_t number; /* since the pool was made */
    uint64_t at, size, value;
    uint64_t before_ns;    /* the event happened before this time of the daemon's clock */
    uint32_t tenant, name; /* texts */
    uint8_t kind;          /* enum snapshot_event_kind */
    uint8_t stream;
};

struct snapshot_device {
    uint64_t id;
    uint32_t row;       /* in struct snapshot's table */
    bool answered;      /* false: the note has the reason */
    uint64_t taken_ns;  /* the daemon's monotonic clock */
    uint64_t wall_ns;   /* the same since 1970 */
    gpud_table *meters; /* owned */
    struct snapshot_piece *pieces;
    struct snapshot_event *events;
    uint32_t piece_count, event_count;
};

struct snapshot {
    gpud_table *pool; /* owned: the daemon's table, a row for each device */
    struct snapshot_device *devices;
    uint32_t device_count;
    char **texts; /* owned, without duplicates; the first is "" */
    uint32_t text_count, text_room;
    uint32_t *slots; /* hash of texts: index + 1 */
    uint32_t slot_count;
};

struct snapshot_request {
    uint64_t device; /* GPUD_ON(id); 0: all */
    bool detail;     /* pieces and events in addition to the numbers */
    uint64_t timeout_ns;
};

/* Takes a snapshot and reads all of it. Blocks. */
int snapshot_take(gpud_client *client, const struct snapshot_request *request,
                  struct snapshot *ret_snapshot, struct ctl_err *e);
void snapshot_finish(struct snapshot *snapshot); /* a zeroed snapshot is allowed */
const char *snapshot_text(const struct snapshot *snapshot, uint32_t text);
const char *snapshot_state_name(unsigned state);
/* Why the device is not in the snapshot; "": it is. */
const char *snapshot_note(const struct snapshot *snapshot, const struct snapshot_device *d);

#define SNAPSHOT_NO_PIECE UINT32_MAX

/* Plays the log backwards: turns the live pieces into the pieces that lived when the log began.
 * pieces: the `count` live pieces, with room for event_count more. ret_piece (may be NULL) has an
 * entry for each event: the index in the given array of the piece that an allocation made,
 * SNAPSHOT_NO_PIECE for other events. Returns the number of pieces at the log's beginning;
 * UINT32_MAX: out of memory. */
uint32_t snapshot_rewind(const struct snapshot_device *d, struct snapshot_piece *pieces,
                         uint32_t count, uint32_t *ret_piece);
/* The live pieces, in an array with room for one more per event; freed by the caller. NULL: out of
 * memory. */
struct snapshot_piece *snapshot_live(const struct snapshot_device *d, uint32_t *ret_count);

/* The writers: JSON, one HTML file, RMM's log, a pickle for PyTorch's viewer. false: memory is out,
 * and the output is not complete. Failures of the stream show in ferror(out). */
bool snapshot_write_json(const struct snapshot *snapshot, FILE *out);
bool snapshot_write_page(const struct snapshot *snapshot, FILE *out);
bool snapshot_write_rmm(const struct snapshot *snapshot, FILE *out);
bool snapshot_write_pytorch(const struct snapshot *snapshot, FILE *out);

#endif
