/*
 * A snapshot is a copy of the tables of blocks and slabs; the reader walks it by address.
 */
#include <string.h>

#include "daemon/pool/pool_int.h"

struct snapshot {
    uint32_t blocks, slabs; /* records */
    uint64_t page;          /* bytes */
    /* struct block[blocks], struct slab[slabs] */
};

static const struct block *blocks_of(const struct snapshot *s)
{
    return (const struct block *)(s + 1);
}

static const struct slab *slabs_of(const struct snapshot *s)
{
    return (const struct slab *)(blocks_of(s) + s->blocks);
}

uint64_t pool_snapshot_bytes(const struct pool *p)
{
    return sizeof(struct snapshot) + (uint64_t)p->blocks.made * sizeof(struct block) +
           (uint64_t)p->slabs.made * sizeof(struct slab);
}

int pool_snapshot(const struct pool *p, void *buffer, uint64_t bytes, struct err *e)
{
    struct snapshot *s = buffer;
    if (bytes < pool_snapshot_bytes(p)) {
        return err_set(e, ERR_LIMIT, "a snapshot of %llu bytes does not fit into %llu",
                       LL(pool_snapshot_bytes(p)), LL(bytes));
    }
    *s = (struct snapshot){p->blocks.made, p->slabs.made, p->page};
    uint8_t *to = (uint8_t *)(s + 1);
    size_t size = (size_t)s->blocks * sizeof(struct block);
    memcpy(to, p->blocks.base, size);
    memcpy(to + size, p->slabs.base, (size_t)s->slabs * sizeof(struct slab));
    return 0;
}

static enum pool_extent_state state_of(const struct block *b)
{
    switch ((enum block_state)b->state) {
    case BLOCK_VOID:
    case BLOCK_VACANT: /* except some pages: see vacant_extent */
        return POOL_EXTENT_VOID;
    case BLOCK_READY:
        return POOL_EXTENT_FREE;
    case BLOCK_PENDING:
    case BLOCK_AWAY:
    case BLOCK_WARM:
        return POOL_EXTENT_PENDING;
    case BLOCK_LIVE:
    case BLOCK_SLAB:
    case BLOCK_HELD:
        return POOL_EXTENT_LIVE;
    case BLOCK_FAILED:
    case BLOCK_LOST:
        break;
    }
    return POOL_EXTENT_LOST;
}

static enum pool_extent_state object_state(const struct slab *s, unsigned object)
{
    return (s->live >> object & 1) != 0   ? POOL_EXTENT_LIVE
           : (s->free >> object & 1) != 0 ? POOL_EXTENT_FREE
                                          : POOL_EXTENT_PENDING;
}

static void object_extent(const struct block *b, const struct slab *s, struct pool_cursor *cursor,
                          struct pool_extent *ret_extent)
{
    unsigned first = cursor->object;
    unsigned end = first + 1;
    enum pool_extent_state state = object_state(s, first);
    while (state == POOL_EXTENT_FREE && end < s->capacity && object_state(s, end) == state) {
        end++;
    }
    bool own = (s->own >> first & 1) != 0;
    *ret_extent = (struct pool_extent){.at = b->at + first * class_bytes(s->class),
                                       .size = (end - first) * class_bytes(s->class),
                                       .tenant = own ? s->tenant : POOL_TENANT_UNKNOWN,
                                       .state = (uint8_t)state,
                                       .stream = s->stream,
                                       .object = true,
                                       .number = (uint8_t)first,
                                       .turn = s->turn[first],
                                       .block = cursor->block,
                                       .generation = b->generation};
    cursor->object = end;
    if (end == s->capacity) {
        *cursor = (struct pool_cursor){.block = b->after};
    }
}

/* A kept place: its pages come first, wherever they lie in it (`object` 0 of the cursor), then its
 * addresses without memory (1). */
static void vacant_extent(const struct snapshot *s, const struct block *b,
                          struct pool_cursor *cursor, struct pool_extent *ret_extent)
{
    uint64_t there = b->owner * s->page;
    bool rest = cursor->object != 0 || there == 0;
    unsigned state = b->seq != 0 ? POOL_EXTENT_PENDING : POOL_EXTENT_FREE;
    *ret_extent =
        (struct pool_extent){.at = rest ? b->at + there : b->at,
                             .size = rest ? b->size - there : there,
                             .seq = rest ? 0 : b->seq,
                             .state = (uint8_t)(rest ? (unsigned)POOL_EXTENT_VOID : state),
                             .stream = b->stream,
                             .block = cursor->block};
    if (rest || there == b->size) {
        *cursor = (struct pool_cursor){.block = b->after};
    } else {
        cursor->object = 1;
    }
}

bool pool_snapshot_next(const void *snapshot, struct pool_cursor *cursor,
                        struct pool_extent *ret_extent)
{
    const struct snapshot *s = snapshot;
    if (cursor->block >= s->blocks) {
        return false;
    }
    const struct block *b = &blocks_of(s)[cursor->block];
    if (b->state == BLOCK_SLAB) {
        object_extent(b, &slabs_of(s)[b->owner], cursor, ret_extent);
        return true;
    }
    if (b->state == BLOCK_VACANT) {
        vacant_extent(s, b, cursor, ret_extent);
        return true;
    }
    *ret_extent = (struct pool_extent){.at = b->at,
                                       .size = b->size,
                                       .seq = b->state == BLOCK_PENDING ? b->seq : 0,
                                       .tenant = b->tenant,
                                       .state = (uint8_t)state_of(b),
                                       .stream = b->stream,
                                       .block = cursor->block,
                                       .generation = b->generation};
    *cursor = (struct pool_cursor){.block = b->after};
    return true;
}
