/*
 * Allocates ranges of [0, size) bytes; the bookkeeping lies outside of them. First fit over an
 * address-ordered list, for staging memory with at most some hundred live ranges.
 * Thread: one owner. Allocates small nodes; O(live ranges).
 */
#ifndef COMMON_RANGE_H
#define COMMON_RANGE_H

#include <stdbool.h>
#include <stdint.h>

struct range_node {
    struct range_node *next;
    uint64_t offset; /* bytes */
    uint64_t size;   /* bytes, rounded up to the alignment */
};

struct range {
    struct range_node *first; /* live ranges in address order */
    uint64_t size;
    uint64_t align; /* power of two */
    uint64_t used;  /* bytes in live ranges */
};

#define RANGE_NONE UINT64_MAX

void range_init(struct range *r, uint64_t size, uint64_t align);
void range_finish(struct range *r);
uint64_t range_alloc(struct range *r,
                     uint64_t size); /* RANGE_NONE: no room; size 0 takes `align` */
/* Marks a given range as in use (adoption). false: it overlaps another or lies outside. */
bool range_take(struct range *r, uint64_t offset, uint64_t size);
bool range_free(struct range *r, uint64_t offset); /* false: no range starts there */
uint64_t range_largest_free(const struct range *r);

#endif
