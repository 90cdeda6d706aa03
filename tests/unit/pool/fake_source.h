/*
 * A source of pages and a source of blocks without memory, for tests. They check their use (a page
 * is not mapped twice, unmapped while not mapped, or used without access), count calls, and fail
 * the calls that a test chooses.
 */
#ifndef TESTS_UNIT_POOL_FAKE_SOURCE_H
#define TESTS_UNIT_POOL_FAKE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/pool/pool.h"

#define FAKE_PAGE    (UINT64_C(2) << 20) /* bytes, unless pages.page_bytes is changed */
#define FAKE_PAGES   65536u              /* of memory, at most */
#define FAKE_SLOTS   (32u * FAKE_PAGES)
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
    uint64_t fail_at;    /* this call fails, counted from 1; 0: no call */
    uint64_t fail_again; /* a second call that fails */
    int fail_code;
    bool reserved;
    uint64_t space;
    uint32_t pages_most;      /* pages are 1 … this; 0: FAKE_PAGES */
    uint64_t space_most;      /* bytes of addresses available; 0: no limit */
    bool *page_live;          /* by page - 1: part of a handle */
    uint64_t *handle_bytes;   /* by handle - 1, its first page; 0: there is no such handle */
    uint32_t handles;         /* that there are */
    uint32_t *mapped;         /* places at which it is mapped, by handle - 1 */
    uint32_t *slot;           /* page mapped there, 0: none */
    bool *begins;             /* a mapping begins there, by slot */
    bool *accessible;         /* by slot */
    struct fake_block *block; /* by number */
    uint32_t blocks_made;
    uint32_t next_page;
    uint64_t waited[FAKE_STREAMS][FAKE_STREAMS]; /* [stream][on]: the latest point waited for */
};

void fake_pages_init(struct fake_source *f, uint64_t capacity);
void fake_blocks_init(struct fake_source *f, uint64_t capacity);
void fake_finish(struct fake_source *f); /* asserts that all memory was given back */
/* Is every byte of a piece mapped and accessible, or in a live block? */
bool fake_usable(const struct fake_source *f, const struct pool_piece *piece);

#endif
