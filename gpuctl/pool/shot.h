/*
 * A picture of the daemon's memory pools as gpuctl holds it: read in parts over the connection,
 * then written as JSON, as a page, or in the formats of other tools. Sizes are bytes, places bytes
 * from the start of a pool's addresses. Thread: one.
 */
#ifndef GPUCTL_POOL_SHOT_H
#define GPUCTL_POOL_SHOT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <gpud/gpud.h>

#include "gpuctl/base/ctl_err.h"

#define SHOT_VERSION 1u

enum shot_state { SHOT_VOID, SHOT_FREE, SHOT_PENDING, SHOT_LIVE, SHOT_LOST, SHOT_STATES };

/* Those that matter here; SHOT_OTHER are told by their names only. */
enum shot_event_kind {
    SHOT_ALLOC,
    SHOT_HIT, /* an allocation that needed nothing of the device */
    SHOT_RELEASE,
    SHOT_REFUSE,
    SHOT_MAP,   /* addresses get memory of the device, … */
    SHOT_REMAP, /* … memory that was used elsewhere, … */
    SHOT_UNMAP, /* … or theirs goes back to the device */
    SHOT_STAMP,
    SHOT_OTHER,
};

struct shot_piece {
    uint64_t at, size;
    uint64_t until;               /* PENDING: the point of its stream */
    uint64_t id;                  /* of its buffer or job, if kind is not empty */
    uint32_t tenant, label, kind; /* texts; see shot_text */
    uint8_t state;                /* enum shot_state */
    uint8_t stream;
    bool object; /* of a slab */
};

struct shot_event {
    uint64_t number; /* since the pool was made */
    uint64_t at, size, value;
    uint64_t before_ns;    /* it happened before this time of the daemon's clock */
    uint32_t tenant, name; /* texts */
    uint8_t kind;          /* enum shot_event_kind */
    uint8_t stream;
};

struct shot_device {
    uint64_t id;
    uint32_t row;       /* in struct shot's table */
    bool told;          /* else its note says why not */
    uint64_t taken_ns;  /* the daemon's monotonic clock */
    uint64_t wall_ns;   /* the same since 1970 */
    gpud_table *meters; /* owned */
    struct shot_piece *pieces;
    struct shot_event *events;
    uint32_t piece_count, event_count;
};

struct shot {
    gpud_table *pool; /* owned: the daemon's table, a row for each device */
    struct shot_device *devices;
    uint32_t device_count;
    char **texts; /* owned, each once; the first is "" */
    uint32_t text_count, text_room;
    uint32_t *slots; /* hash of texts: index + 1 */
    uint32_t slot_count;
};

struct shot_ask {
    uint64_t device; /* GPUD_ON(id); 0: all */
    bool detail;     /* pieces and events, too */
    uint64_t timeout_ns;
};

/* Takes a picture and reads all of it. Blocks. */
int shot_take(gpud_client *client, const struct shot_ask *ask, struct shot *ret_shot,
              struct ctl_err *e);
void shot_finish(struct shot *shot); /* a zeroed one is allowed */
const char *shot_text(const struct shot *shot, uint32_t text);
const char *shot_state_name(unsigned state);
const char *shot_note(const struct shot *shot, const struct shot_device *d); /* "": it told */

#define SHOT_NO_PIECE UINT32_MAX

/* Plays the log backwards. pieces: the `count` pieces that live now, with room for event_count
 * more; then those that lived when the log began. ret_piece (may be NULL), for each event: the
 * index into the pieces as they were given that an allocation made, SHOT_NO_PIECE for others.
 * Returns how many lived then; UINT32_MAX without memory. */
uint32_t shot_rewind(const struct shot_device *d, struct shot_piece *pieces, uint32_t count,
                     uint32_t *ret_piece);
/* The pieces that live now, in the room of those and all events. NULL without memory. */
struct shot_piece *shot_live(const struct shot_device *d, uint32_t *ret_count);

/* The writers; the stream tells of failures. */
void shot_write_json(const struct shot *shot, FILE *out);
void shot_write_page(const struct shot *shot, FILE *out);    /* one HTML file */
void shot_write_rmm(const struct shot *shot, FILE *out);     /* RMM's log */
void shot_write_pytorch(const struct shot *shot, FILE *out); /* a pickle for PyTorch's viewer */

#endif
