/*
 * Blocks freed lately, neither merged nor indexed: the next request of the same size and stream
 * gets one without a search, a cut or a merge. There are few. They are released (merged, indexed)
 * before the pool asks its source, moves pieces or counts.
 */
#include "daemon/pool/pool_int.h"

static uint32_t *place_of(struct pool *p, uint64_t size, unsigned stream)
{
    uint64_t units = size / POOL_ALIGN;
    return &p->warm[(units ^ units >> 8 ^ stream * 5) % WARM_BLOCKS];
}

static void release(struct pool *p, uint32_t *place)
{
    const struct block *b = block_at(&p->blocks, *place);
    p->warm_bytes -= b->size;
    (void)space_release(p, *place, b->stream, b->seq);
    *place = BLOCK_NONE;
}

void warm_keep(struct pool *p, uint32_t i, unsigned stream, uint64_t seq)
{
    struct block *b = block_at(&p->blocks, i);
    space_point(p, b, &stream, &seq);
    uint32_t *place = place_of(p, b->size, stream);
    if (*place != BLOCK_NONE) {
        release(p, place);
    }
    b->state = BLOCK_WARM;
    b->stream = (uint8_t)stream;
    b->seq = seq;
    b->generation++;
    p->warm_bytes += b->size;
    *place = i;
}

uint32_t warm_take(struct pool *p, uint64_t size, unsigned stream, uint64_t align)
{
    uint32_t *place = place_of(p, size, stream);
    uint32_t i = *place;
    if (i == BLOCK_NONE || block_at(&p->blocks, i)->size != size ||
        block_at(&p->blocks, i)->stream != stream ||
        (block_at(&p->blocks, i)->at & (align - 1)) != 0) {
        return BLOCK_NONE;
    }
    p->warm_bytes -= size;
    *place = BLOCK_NONE;
    return i;
}

bool warm_flush(struct pool *p)
{
    if (p->warm_bytes == 0) {
        return false;
    }
    for (unsigned n = 0; n < WARM_BLOCKS; n++) {
        if (p->warm[n] != BLOCK_NONE) {
            release(p, &p->warm[n]);
        }
    }
    return true;
}
