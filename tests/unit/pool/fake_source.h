/*
 * A source of pages and one of blocks without memory. It checks how it is used (nothing is mapped
 * twice, unmapped while not mapped, touched without access), counts, and fails the call it is told
 * to fail.
 */
#ifndef TESTS_UNIT_POOL_FAKE_SOURCE_H
#define TESTS_UNIT_POOL_FAKE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/pool/pool.h"

#define FAKE_PAGE    (UINT64_C(2) << 20) /* bytes, unless pages.page_bytes is changed */
#define FAKE_PAGES   65536u              /* of memory, at most */
#define FAKE_SLOTS   (8u * FAKE_PAGES)
#define FAKE_STREAMS POOL_STREAMS

struct fake_block {
    uint64_t bytes;
    bool live;
};

struct fake_source {
    struct pool_source source;
    struct pool_pages pages;
    struct pool_blocks blocks;
    uint64_t capacity; /* bytes of memory */
    uint64_t taken;    /* bytes */
    uint64_t cleared;  /* bytes */
    uint64_t calls;
    uint64_t fail_at;    /* this call fails, counted from 1; 0: none */
    uint64_t fail_again; /* and this one */
    int fail_code;
    bool reserved;
    uint64_t space;
    uint32_t pages_most;      /* pages are numbered from 1 to this; 0: FAKE_PAGES */
    uint64_t space_most;      /* bytes of addresses that it gives; 0: as many as it can */
    bool *page_live;          /* by page - 1 */
    uint32_t *mapped;         /* at so many places, by page - 1 */
    uint32_t *slot;           /* page mapped there, 0: none */
    bool *accessible;         /* by slot */
    struct fake_block *block; /* by number */
    uint32_t blocks_made;
    uint32_t next_page;
    uint64_t waited[FAKE_STREAMS][FAKE_STREAMS]; /* [stream][on]: the latest point waited for */
};

void fake_pages_init(struct fake_source *f, uint64_t capacity);
void fake_blocks_init(struct fake_source *f, uint64_t capacity);
void fake_finish(struct fake_source *f); /* asserts that everything was given back */
/* Is every byte of a piece mapped and accessible, or in a live block? */
bool fake_usable(const struct fake_source *f, const struct pool_piece *piece);

#endif
