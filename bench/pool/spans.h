/*
 * Records of a policy that is compared with the pool: the spans of its address ranges in lists by
 * address, and trees of free spans by (size, address). Logarithmic time. Spans are named by index;
 * SPAN_NONE is no span, and an empty tree.
 */
#ifndef BENCH_POOL_SPANS_H
#define BENCH_POOL_SPANS_H

#include <stdbool.h>
#include <stdint.h>

#define SPAN_NONE 0u

enum span_state {
    SPAN_LIVE,
    SPAN_FREE,
    SPAN_VOID, /* addresses without memory */
};

struct span {
    uint64_t at, size;      /* bytes */
    uint32_t left, right;   /* in a tree, or in a list of the policy; `right` links unused ones */
    uint32_t before, after; /* the neighbours in its range */
    uint32_t priority;
    uint16_t group; /* the policy's */
    uint8_t state;  /* enum span_state, set by the policy */
};

struct spans {
    struct span *span; /* index 0 is not used */
    uint32_t made;
    uint32_t unused;
    uint32_t random;
};

/* Ends the program if there is no memory. */
void spans_init(struct spans *s);
void spans_finish(struct spans *s);

/* A new span, live, behind `before` in its range; SPAN_NONE: the first of a range. */
uint32_t span_make(struct spans *s, uint64_t at, uint64_t size, uint32_t before);
/* Takes a span out of its range and forgets it. It is in no tree. */
void span_drop(struct spans *s, uint32_t i);
/* Cuts a span after `size` bytes. Returns the rest, of the same group and live. */
uint32_t span_cut(struct spans *s, uint32_t i, uint64_t size);
/* Adds the next span to this one. Both are in no tree. */
void span_join(struct spans *s, uint32_t i);
/* Is there a next (a previous) span in this state? */
bool span_next_is(const struct spans *s, uint32_t i, enum span_state state);
bool span_previous_is(const struct spans *s, uint32_t i, enum span_state state);

void spans_insert(struct spans *s, uint32_t *root, uint32_t i);
void spans_remove(struct spans *s, uint32_t *root, uint32_t i);
/* The first span of a tree from (size, at) on. */
uint32_t spans_find(const struct spans *s, uint32_t root, uint64_t size, uint64_t at);

#endif
