/*
 * A sweep over the steps: an item that begins in a step may use the memory of items that ended
 * before it. Free blocks are in lists by size, 8 for each power of two. All blocks are linked by
 * address, so that free neighbours are merged.
 */
#include "common/lifetime.h"

#include <stdbool.h>
#include <stdlib.h>

#define NONE  UINT32_MAX
#define FINE  8u
#define BINS  (64u * FINE)
#define TRIES 16u /* blocks tried in the list of the wanted size */

struct block {
    uint64_t at, size;
    uint32_t before, after; /* by address */
    uint32_t prev, next;    /* in its list while it is free */
    bool free;
};

struct plan {
    struct lifetime *items;
    uint32_t *begins;   /* items by first step */
    uint32_t *ends;     /* items by last step */
    unsigned count;     /* length of both */
    uint32_t *block_of; /* by item */
    struct block *blocks;
    uint32_t made;     /* elements of `blocks` used so far, the unused list included */
    uint32_t top;      /* the last block by address */
    uint32_t freelist; /* unused elements, whose blocks were merged into others; linked by `next` */
    uint64_t total;
    uint32_t bin[BINS];
    uint64_t full[BINS / 64]; /* bit b: bin b is not empty */
};

void lifetime_init(struct lifetime *item, uint64_t size)
{
    *item = (struct lifetime){.size = size, .first = 1};
}

void lifetime_mention(struct lifetime *item, uint32_t step)
{
    bool fresh = item->first > item->last;
    item->first = fresh || step < item->first ? step : item->first;
    item->last = fresh || step > item->last ? step : item->last;
}

static bool counts(const struct lifetime *item)
{
    return item->size > 0 && item->first <= item->last;
}

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + LIFETIME_ALIGN - 1) & ~(uint64_t)(LIFETIME_ALIGN - 1);
}

/* ---- free blocks ----------------------------------------------------------------------------*/

static unsigned bin_of(uint64_t size)
{
    unsigned power = 63u - (unsigned)__builtin_clzll(size);
    return power < 3 ? 0 : power * FINE + (unsigned)(size >> (power - 3) & (FINE - 1));
}

static void enter(struct plan *p, uint32_t i)
{
    struct block *b = &p->blocks[i];
    unsigned bin = bin_of(b->size);
    b->free = true;
    b->prev = NONE;
    b->next = p->bin[bin];
    if (b->next != NONE) {
        p->blocks[b->next].prev = i;
    }
    p->bin[bin] = i;
    p->full[bin / 64] |= UINT64_C(1) << bin % 64;
}

static void leave(struct plan *p, uint32_t i)
{
    struct block *b = &p->blocks[i];
    unsigned bin = bin_of(b->size);
    b->free = false;
    if (b->next != NONE) {
        p->blocks[b->next].prev = b->prev;
    }
    if (b->prev != NONE) {
        p->blocks[b->prev].next = b->next;
    } else {
        p->bin[bin] = b->next;
    }
    if (p->bin[bin] == NONE) {
        p->full[bin / 64] &= ~(UINT64_C(1) << bin % 64);
    }
}

/* A free block of at least `size`: among the first TRIES in the list of that size, otherwise the
 * first of the next non-empty list, whose blocks are all larger. */
static uint32_t find(const struct plan *p, uint64_t size)
{
    unsigned bin = bin_of(size);
    uint32_t i = p->bin[bin];
    for (unsigned tries = 0; i != NONE && tries < TRIES; tries++, i = p->blocks[i].next) {
        if (p->blocks[i].size >= size) {
            return i;
        }
    }
    for (unsigned word = ++bin / 64; word < BINS / 64; word++) {
        uint64_t bits = p->full[word] & (word == bin / 64 ? ~UINT64_C(0) << bin % 64 : UINT64_MAX);
        if (bits != 0) {
            return p->bin[word * 64 + (unsigned)__builtin_ctzll(bits)];
        }
    }
    return NONE;
}

static uint32_t block_new(struct plan *p)
{
    uint32_t i = p->freelist;
    if (i != NONE) {
        p->freelist = p->blocks[i].next;
        return i;
    }
    return p->made++;
}

/* Merges the block after i into i; neither is in a list. */
static void join_next(struct plan *p, uint32_t i)
{
    struct block *b = &p->blocks[i];
    uint32_t joined = b->after;
    b->size += p->blocks[joined].size;
    b->after = p->blocks[joined].after;
    if (b->after != NONE) {
        p->blocks[b->after].before = i;
    } else {
        p->top = i;
    }
    p->blocks[joined].next = p->freelist;
    p->freelist = joined;
}

static void release(struct plan *p, uint32_t i)
{
    uint32_t after = p->blocks[i].after;
    if (after != NONE && p->blocks[after].free) {
        leave(p, after);
        join_next(p, i);
    }
    uint32_t before = p->blocks[i].before;
    if (before != NONE && p->blocks[before].free) {
        leave(p, before);
        join_next(p, before);
        i = before;
    }
    enter(p, i);
}

/* Cuts a block to `size`; the rest becomes a free block. */
static void cut(struct plan *p, uint32_t i, uint64_t size)
{
    struct block *b = &p->blocks[i];
    if (b->size == size) {
        return;
    }
    uint32_t rest = block_new(p);
    p->blocks[rest] =
        (struct block){.at = b->at + size, .size = b->size - size, .before = i, .after = b->after};
    if (b->after != NONE) {
        p->blocks[b->after].before = rest;
    } else {
        p->top = rest;
    }
    b->after = rest;
    b->size = size;
    enter(p, rest);
}

/* Grows the piece at its end. A free block there becomes part of the new block. */
static uint32_t extend(struct plan *p, uint64_t size)
{
    uint32_t i = p->top;
    if (i != NONE && p->blocks[i].free) {
        leave(p, i);
        p->total += size - p->blocks[i].size;
        p->blocks[i].size = size;
        return i;
    }
    i = block_new(p);
    p->blocks[i] = (struct block){.at = p->total, .size = size, .before = p->top, .after = NONE};
    if (p->top != NONE) {
        p->blocks[p->top].after = i;
    }
    p->top = i;
    p->total += size;
    return i;
}

static uint32_t take(struct plan *p, uint64_t size)
{
    uint32_t i = find(p, size);
    if (i == NONE) {
        return extend(p, size);
    }
    leave(p, i);
    cut(p, i, size);
    return i;
}

/* ---- the sweep ------------------------------------------------------------------------------*/

/* By first step; larger items first, so that smaller items fill the gaps. */
static int by_begin(const void *a, const void *b, void *items)
{
    const struct lifetime *item = items;
    const struct lifetime *x = &item[*(const uint32_t *)a];
    const struct lifetime *y = &item[*(const uint32_t *)b];
    if (x->first != y->first) {
        return x->first < y->first ? -1 : 1;
    }
    if (x->size != y->size) {
        return x->size > y->size ? -1 : 1;
    }
    return x < y ? -1 : 1;
}

static int by_end(const void *a, const void *b, void *items)
{
    const struct lifetime *item = items;
    const struct lifetime *x = &item[*(const uint32_t *)a];
    const struct lifetime *y = &item[*(const uint32_t *)b];
    if (x->last != y->last) {
        return x->last < y->last ? -1 : 1;
    }
    return x < y ? -1 : 1;
}

static void sweep(struct plan *p)
{
    unsigned ended = 0;
    for (unsigned k = 0; k < p->count; k++) {
        struct lifetime *item = &p->items[p->begins[k]];
        while (p->items[p->ends[ended]].last < item->first) {
            release(p, p->block_of[p->ends[ended++]]);
        }
        uint32_t i = take(p, rounded(item->size));
        item->offset = p->blocks[i].at;
        p->block_of[p->begins[k]] = i;
    }
}

static int collect(struct plan *p, struct lifetime *items, unsigned count, struct err *e)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < count; i++) {
        items[i].offset = 0;
        if (!counts(&items[i])) {
            continue;
        }
        if (items[i].size > INT64_MAX - LIFETIME_ALIGN ||
            rounded(items[i].size) > (uint64_t)INT64_MAX - sum) {
            return err_set(e, ERR_RANGE, "temporaries of more than 2^63 bytes");
        }
        sum += rounded(items[i].size);
        p->begins[p->count] = i;
        p->ends[p->count++] = i;
    }
    return 0;
}

int lifetime_plan(struct lifetime *items, unsigned count, uint64_t *ret_total, struct err *e)
{
    if (count == 0) {
        *ret_total = 0;
        return 0;
    }
    struct plan *p = calloc(1, sizeof *p);
    uint32_t *indices = calloc(3 * (size_t)count + 1, sizeof *indices);
    struct block *blocks = calloc(2 * (size_t)count + 1, sizeof *blocks);
    int rc = p == NULL || indices == NULL || blocks == NULL
                 ? err_set(e, ERR_NOMEM, "no memory for a plan of %u temporaries", count)
                 : 0;
    if (rc == 0) {
        *p = (struct plan){.items = items,
                           .begins = indices,
                           .ends = indices + count,
                           .block_of = indices + 2 * (size_t)count,
                           .blocks = blocks,
                           .top = NONE,
                           .freelist = NONE};
        for (unsigned i = 0; i < BINS; i++) {
            p->bin[i] = NONE;
        }
        rc = collect(p, items, count, e);
    }
    if (rc == 0) {
        qsort_r(p->begins, p->count, sizeof *p->begins, by_begin, items);
        qsort_r(p->ends, p->count, sizeof *p->ends, by_end, items);
        sweep(p);
        *ret_total = p->total;
    }
    free(blocks);
    free(indices);
    free(p);
    return rc;
}
