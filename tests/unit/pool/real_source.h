/*
 * A source of pages with real memory, for tests: pages of a memfd, mapped where the pool says. A
 * page keeps its bytes until they are overwritten, as on a device.
 */
#ifndef TESTS_UNIT_POOL_REAL_SOURCE_H
#define TESTS_UNIT_POOL_REAL_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/pool/pool.h"

#define REAL_PAGE  (UINT64_C(64) << 10) /* bytes */
#define REAL_PAGES 1024u                /* at most */

struct real_source {
    struct pool_source source;
    struct pool_pages pages;
    int fd;
    bool live[REAL_PAGES];
    uint64_t taken; /* pages */
};

void real_init(struct real_source *r);
void real_finish(struct real_source *r); /* asserts that all memory was given back */

static inline uint8_t *real_at(const struct pool_piece *piece)
{
    return (uint8_t *)piece->range + piece->offset;
}

#endif
