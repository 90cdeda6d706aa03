/*
 * Which block holds an address. For each page-sized part of the address space (a slot) a block that
 * begins in it, and bitmaps over bitmaps of the slots that have one, so that the last before an
 * address is found in a few steps. Only where addresses are asked for: see recall.c.
 */
#include <stdlib.h>

#include "daemon/pool/pool_int.h"

#define BITS 64u

static uint64_t words(uint64_t bits)
{
    return (bits + BITS - 1) / BITS;
}

int by_address_init(struct pool *p, struct err *e)
{
    uint64_t slots = p->space / p->page;
    p->begins = calloc(slots, sizeof *p->begins);
    bool good = p->begins != NULL;
    for (unsigned level = 0; level < BEGINS_LEVELS; level++) {
        slots = words(slots);
        p->begins_map[level] = calloc(slots, sizeof(uint64_t));
        good = good && p->begins_map[level] != NULL;
    }
    return good ? 0
                : err_set(e, ERR_NOMEM, "no memory for a table of %llu addresses",
                          LL(p->space / p->page));
}

void by_address_finish(struct pool *p)
{
    free(p->begins);
    for (unsigned level = 0; level < BEGINS_LEVELS; level++) {
        free(p->begins_map[level]);
    }
}

static uint64_t slot_of(const struct pool *p, uint32_t i)
{
    return block_at(&p->blocks, i)->at / p->page;
}

static void mark(struct pool *p, uint64_t slot)
{
    for (unsigned level = 0; level < BEGINS_LEVELS; level++, slot /= BITS) {
        uint64_t *word = &p->begins_map[level][slot / BITS];
        bool any = *word != 0;
        *word |= UINT64_C(1) << slot % BITS;
        if (any) {
            return;
        }
    }
}

static void unmark(struct pool *p, uint64_t slot)
{
    for (unsigned level = 0; level < BEGINS_LEVELS; level++, slot /= BITS) {
        uint64_t *word = &p->begins_map[level][slot / BITS];
        *word &= ~(UINT64_C(1) << slot % BITS);
        if (*word != 0) {
            return;
        }
    }
}

void by_address_add(struct pool *p, uint32_t i)
{
    uint64_t slot = p->begins != NULL ? slot_of(p, i) : 0;
    if (p->begins != NULL && p->begins[slot] == 0) {
        p->begins[slot] = i + 1;
        mark(p, slot);
    }
}

void by_address_remove(struct pool *p, uint32_t i)
{
    uint64_t slot = p->begins != NULL ? slot_of(p, i) : 0;
    if (p->begins == NULL || p->begins[slot] != i + 1) {
        return;
    }
    const struct block *b = block_at(&p->blocks, i);
    if (b->before != BLOCK_NONE && slot_of(p, b->before) == slot) {
        p->begins[slot] = b->before + 1;
    } else if (b->after != BLOCK_NONE && slot_of(p, b->after) == slot) {
        p->begins[slot] = b->after + 1;
    } else {
        p->begins[slot] = 0;
        unmark(p, slot);
    }
}

/* The last bit of a level that is set, up to this one. There is one: a block begins at 0. */
static uint64_t last_up_to(const struct pool *p, unsigned level, uint64_t bit)
{
    const uint64_t *map = p->begins_map[level];
    uint64_t n = bit / BITS;
    uint64_t word = map[n] & (~UINT64_C(0) >> (BITS - 1 - bit % BITS));
    if (word == 0 && level + 1 < BEGINS_LEVELS) {
        n = last_up_to(p, level + 1, n - 1);
        word = map[n];
    }
    while (word == 0) { /* the last level is short */
        word = map[--n];
    }
    return n * BITS + (BITS - 1 - (unsigned)__builtin_clzll(word));
}

uint32_t by_address(const struct pool *p, uint64_t at)
{
    uint32_t i = p->begins[last_up_to(p, 0, at / p->page)] - 1;
    while (block_at(&p->blocks, i)->at > at) {
        i = block_at(&p->blocks, i)->before;
    }
    while (block_at(&p->blocks, i)->at + block_at(&p->blocks, i)->size <= at) {
        i = block_at(&p->blocks, i)->after;
    }
    return i;
}
