#include "daemon/pool/pool_int.h"

int backing_grow(struct pool *p, uint64_t size, uint32_t *ret_block, struct err *e)
{
    return p->source.pages != NULL ? backing_pages_grow(p, size, ret_block, e)
                                   : backing_blocks_grow(p, size, ret_block, e);
}

/* Smallest blocks first, so that long rows remain whole. */
uint64_t backing_trim(struct pool *p, uint64_t keep)
{
    uint64_t given = 0;
    for (unsigned list = 0; list < WHOLE_LISTS && p->whole_bytes > keep;) {
        uint32_t i = p->whole[list];
        if (i == BLOCK_NONE) {
            list++;
            continue;
        }
        uint64_t got = p->source.pages != NULL ? backing_pages_drop(p, i, p->whole_bytes - keep)
                                               : backing_blocks_drop(p, i);
        if (got == 0) {
            break;
        }
        given += got;
    }
    if (p->whole_bytes > keep && p->idle.oldest != BLOCK_NONE) {
        given += vacant_drop(p, p->whole_bytes - keep);
    }
    return given;
}

void backing_finish(struct pool *p)
{
    if (p->source.pages != NULL) {
        page_table_finish(p);
    } else {
        backing_blocks_finish(p);
    }
}
