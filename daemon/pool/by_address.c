/*
 * Finds the block that contains an address. The index has, for each page-sized part of the address
 * space (a slot), a block that begins in it, and the set of slots that have one. It exists only
 * where recall.c needs it.
 */
#include <stdlib.h>

#include "daemon/pool/pool_int.h"

int by_address_init(struct pool *p, struct err *e)
{
    uint64_t slots = to_pages(p, p->space);
    p->begins = calloc(slots, sizeof *p->begins);
    return p->begins != NULL
               ? marks_init(&p->begins_at, slots, e)
               : err_set(e, ERR_NOMEM, "no memory for a table of %llu addresses", LL(slots));
}

void by_address_finish(struct pool *p)
{
    free(p->begins);
    marks_finish(&p->begins_at);
}

static uint64_t slot_of(const struct pool *p, uint32_t i)
{
    return to_pages(p, block_at(&p->blocks, i)->at);
}

void by_address_add(struct pool *p, uint32_t i)
{
    uint64_t slot = p->begins != NULL ? slot_of(p, i) : 0;
    if (p->begins != NULL && p->begins[slot] == 0) {
        p->begins[slot] = i + 1;
        marks_add(&p->begins_at, slot);
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
        marks_remove(&p->begins_at, slot);
    }
}

uint32_t by_address(const struct pool *p, uint64_t at)
{
    uint32_t i = p->begins[marks_last(&p->begins_at, to_pages(p, at))] - 1;
    while (block_at(&p->blocks, i)->at > at) {
        i = block_at(&p->blocks, i)->before;
    }
    while (block_at(&p->blocks, i)->at + block_at(&p->blocks, i)->size <= at) {
        i = block_at(&p->blocks, i)->after;
    }
    return i;
}
