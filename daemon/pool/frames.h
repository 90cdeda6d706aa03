/*
 * The memory that a source of pages has given, in handles (source.h). A frame is a page of a
 * handle. The frames of a handle are neighbours, and handles created together are neighbours, too.
 *
 * A handle is mapped as a whole, so memory moves by handles. Large requests get large handles,
 * which cost few calls of the driver. Where only a part of a free handle is wanted, it is broken:
 * given back and created anew as smaller handles (page_table.h).
 *
 * Thread: the pool's owner. frames_create and frames_destroy call the source and block.
 */
#ifndef POOL_FRAMES_H
#define POOL_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "daemon/pool/marks.h"

struct pool;

struct frames {
    uint64_t *name;      /* of a handle, by its first frame */
    uint8_t *order;      /* of a handle, by its first frame: log2 of its frames */
    uint16_t *behind;    /* by frame: frames of its handle before it */
    struct marks vacant; /* frames below `made` without memory */
    uint32_t made;       /* frames that ever had memory */
    uint32_t max;
    uint32_t handles; /* that there are */
};

int frames_init(struct frames *f, uint32_t max, struct err *e);
void frames_finish(struct frames *f); /* zeros are allowed */

/* The first frame of the handle that has this frame. */
static inline uint64_t handle_first(const struct frames *f, uint64_t frame)
{
    return frame - f->behind[frame];
}

/* The first frame behind that handle. */
static inline uint64_t handle_end(const struct frames *f, uint64_t frame)
{
    uint64_t first = handle_first(f, frame);
    return first + (UINT64_C(1) << f->order[first]);
}

/* Neighbouring frames without memory, up to `most`, for frames_create. Returns how many; 0: all
 * have memory. */
uint64_t frames_take(struct frames *f, uint64_t most, uint32_t *ret_first);
void frames_give(struct frames *f, uint64_t first, uint64_t count); /* they have no memory */

/* Bytes of the largest handle of memory for a request of `bytes`, at least a page. */
uint64_t frames_largest(const struct pool *p, uint64_t bytes);
/* Creates handles for `count` frames that were taken: large ones first, or with `rising` small ones
 * first. Where the device is short of memory, it tries smaller handles. Returns the number of
 * frames that have memory now, from the first on; the others remain taken. */
uint64_t frames_create(struct pool *p, uint64_t first, uint64_t count, bool rising, struct err *e);
/* Gives the handles of these frames back; they are mapped nowhere. The frames remain taken. */
void frames_destroy(struct pool *p, uint64_t first, uint64_t count);

#endif
