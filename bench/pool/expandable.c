/* The variant of caching.h in which memory is added to a range of addresses. */
#include "bench/pool/caching.h"

#define MIB          (UINT64_C(1) << 20)
#define SMALL_HANDLE (2 * MIB)
#define LARGE_HANDLE (20 * MIB)
#define RANGE_MOST   (UINT64_C(1) << 56) /* bytes of a range without a limit */

static uint64_t handle_of(unsigned group)
{
    return group % 2 == 1 ? SMALL_HANDLE : LARGE_HANDLE;
}

static void void_insert(struct caching *c, uint32_t i)
{
    c->spans.span[i].state = SPAN_VOID;
    spans_insert(&c->spans, &c->none[c->spans.span[i].group], i);
}

static void void_withdraw(struct caching *c, uint32_t i)
{
    spans_remove(&c->spans, &c->none[c->spans.span[i].group], i);
    c->spans.span[i].state = SPAN_LIVE;
}

/* Creates, maps and makes accessible the memory of the first `size` bytes of addresses, in whole
 * handles. Returns the free block that they are part of; SPAN_NONE: the limit is reached. */
static uint32_t map(struct caching *c, uint32_t i, uint64_t size)
{
    uint64_t handle = handle_of(c->spans.span[i].group);
    uint64_t count = (size + handle - 1) / handle;
    c->calls++;
    if (count * handle > c->limit - c->reserved) {
        return SPAN_NONE;
    }
    void_withdraw(c, i);
    if (c->spans.span[i].size > count * handle) {
        void_insert(c, span_cut(&c->spans, i, count * handle));
    }
    c->calls += 2 * count;
    caching_reserve(c, count * handle);
    return caching_release(c, i);
}

static bool has_memory_or_none(const struct caching *c, uint32_t i)
{
    return i != SPAN_NONE && c->spans.span[i].state != SPAN_LIVE;
}

/* Do free blocks and addresses in a row from here on have `size` bytes? */
static bool room_from(const struct caching *c, uint32_t i, uint64_t size)
{
    uint64_t bytes = 0;
    while (bytes < size && has_memory_or_none(c, i)) {
        bytes += c->spans.span[i].size;
        i = c->spans.span[i].after;
    }
    return bytes >= size;
}

static uint32_t range_make(struct caching *c, unsigned group)
{
    uint64_t bytes = c->limit < RANGE_MOST ? c->limit / 8 * 9 : RANGE_MOST;
    bytes = (bytes + LARGE_HANDLE - 1) / LARGE_HANDLE * LARGE_HANDLE;
    uint32_t i = span_make(&c->spans, c->end, bytes, SPAN_NONE);
    c->end += bytes;
    c->spans.span[i].group = (uint16_t)group;
    void_insert(c, i);
    return i;
}

/* Where to add memory: addresses, or the free block before them. */
static uint32_t find_room(struct caching *c, unsigned group, uint64_t size)
{
    uint32_t i = spans_find(&c->spans, c->none[group], 0, 0);
    while (i != SPAN_NONE) {
        const struct span *n = &c->spans.span[i];
        uint32_t from = span_previous_is(&c->spans, i, SPAN_FREE) ? n->before : i;
        if (room_from(c, from, size)) {
            return from;
        }
        i = spans_find(&c->spans, c->none[group], n->size, n->at + 1);
    }
    return range_make(c, group);
}

uint32_t expandable_grow(struct caching *c, unsigned group, uint64_t size)
{
    uint32_t i = find_room(c, group, size);
    uint64_t bytes = c->spans.span[i].size;
    if (c->spans.span[i].state == SPAN_VOID) {
        i = map(c, i, size < bytes ? size : bytes);
    }
    while (i != SPAN_NONE && c->spans.span[i].size < size) {
        uint32_t next = c->spans.span[i].after;
        uint64_t missing = size - c->spans.span[i].size;
        bytes = c->spans.span[next].size;
        i = map(c, next, missing < bytes ? missing : bytes);
    }
    if (i != SPAN_NONE) {
        caching_withdraw(c, i);
    }
    return i;
}

static uint64_t reach(const struct caching *c, uint32_t i)
{
    const struct span *n = &c->spans.span[i];
    return n->size + (span_next_is(&c->spans, i, SPAN_VOID) ? c->spans.span[n->after].size : 0);
}

uint32_t expandable_choose(const struct caching *c, unsigned group, uint32_t i)
{
    for (uint32_t next = i; next != SPAN_NONE;) {
        const struct span *n = &c->spans.span[i];
        next = spans_find(&c->spans, c->free[group], n->size, n->at + 1);
        if (next == SPAN_NONE || reach(c, next) >= reach(c, i)) {
            break;
        }
        i = next;
    }
    return i;
}

/* Unmaps the whole handles of a free block. */
static void unmap(struct caching *c, uint32_t i)
{
    const struct span n = c->spans.span[i];
    uint64_t handle = handle_of(n.group);
    uint64_t from = (n.at + handle - 1) / handle * handle;
    uint64_t to = (n.at + n.size) / handle * handle;
    if (from >= to) {
        return;
    }
    caching_withdraw(c, i);
    if (to < n.at + n.size) {
        (void)caching_release(c, span_cut(&c->spans, i, to - n.at));
    }
    if (from > n.at) {
        uint32_t rest = span_cut(&c->spans, i, from - n.at);
        (void)caching_release(c, i);
        i = rest;
    }
    c->calls += 2 * ((to - from) / handle);
    c->reserved -= to - from;
    if (span_next_is(&c->spans, i, SPAN_VOID)) {
        void_withdraw(c, c->spans.span[i].after);
        span_join(&c->spans, i);
    }
    if (span_previous_is(&c->spans, i, SPAN_VOID)) {
        i = c->spans.span[i].before;
        void_withdraw(c, i);
        span_join(&c->spans, i);
    }
    void_insert(c, i);
}

void expandable_give_back(struct caching *c)
{
    for (unsigned group = 0; group < POLICY_STREAMS * 2; group++) {
        uint32_t i = spans_find(&c->spans, c->free[group], 0, 0);
        while (i != SPAN_NONE) {
            const struct span n = c->spans.span[i];
            unmap(c, i);
            i = spans_find(&c->spans, c->free[group], n.size, n.at + 1);
        }
    }
}
