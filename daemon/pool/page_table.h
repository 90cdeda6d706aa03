/*
 * The page table of a source of pages: what memory the pool has, at which address each page is
 * used, and where else it is mapped. Memory is counted in frames, one for each page that the source
 * gave. A run is a row of frames that are used and mapped together, so that costs follow the number
 * of runs and not of bytes. A view is a row of addresses at which a run is mapped. A run is used at
 * one of its views; where the source allows aliases, a run that moves leaves its view behind, and
 * comes back without a call of the driver when its old addresses are wanted again.
 *
 * Runs are cut where only a part is wanted; all of their views are cut with them, and nothing is
 * asked of the driver.
 *
 * Addresses and sizes are bytes from the start of the range, multiples of a page. "Used" says: a
 * page's memory is used at that address. Thread: the pool's owner. Calls of the driver block:
 * page_create, page_put, page_drop, page_move, page_access.
 */
#ifndef POOL_PAGE_TABLE_H
#define POOL_PAGE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "daemon/pool/marks.h"
#include "daemon/pool/records.h"

struct pool;

struct run {
    uint32_t unused; /* records.h's while not in use */
    uint32_t views;  /* slot + 1 of a view: head of a list; 0: it is mapped nowhere */
    uint32_t used;   /* slot + 1 of the view at which it is used; 0: at none */
    uint32_t frame;  /* the first one */
    uint32_t count;  /* frames */
};

/* Of the run that is mapped from a slot (a page-sized part of the address space) on. */
struct view {
    uint32_t run;
    uint32_t next, prev; /* slots + 1: other views of the run */
    bool there;
    bool accessible;
    uint8_t stream; /* it may use the run here up to … */
    uint64_t seq;   /* … this point */
};

struct page_table {
    struct records runs;
    struct view *view;    /* by the slot at which it begins */
    struct marks views;   /* slots at which one begins */
    uint64_t *name;       /* the source's, by frame */
    struct marks vacant;  /* frames below `made` without memory */
    uint32_t made;        /* frames that ever had memory */
    uint32_t max;         /* frames */
    uint16_t *holder;     /* tenancy.c: by frame; 0: no row begins there */
    struct marks holders; /* frames at which one begins */
};

int page_table_init(struct pool *p, uint32_t max, struct err *e);
void page_table_finish(struct pool *p); /* all pages and the range go back */

/* Up to `bytes` of new memory as one run, used nowhere. Returns bytes; 0: the source's error. */
uint64_t page_create(struct pool *p, uint64_t bytes, uint32_t *ret_run, struct err *e);
/* A run that is used nowhere is mapped and used at `at`, where nothing is used. What cannot be
 * mapped goes back to the source. Returns bytes. */
uint64_t page_put(struct pool *p, uint64_t at, uint32_t run, struct err *e);
/* Gives memory that is used at [at, at + bytes) back to the source, from its start on. Returns
 * bytes. */
uint64_t page_drop(struct pool *p, uint64_t at, uint64_t bytes, struct err *e);
/* Memory that is used from `from` on is to be used from `to` on. */
struct page_way {
    uint64_t from, to, bytes;
    bool keep;       /* it stays mapped at `from`, if the source allows aliases */
    unsigned stream; /* it may use the memory at `from` up to … */
    uint64_t seq;    /* … this point, and it stays mapped there as long; 0: none does */
};

/* Returns bytes that moved; *ret_left: bytes that are no longer used at `from` (more than moved
 * where memory was lost on the way). Nothing is used at `to`. */
uint64_t page_move(struct pool *p, const struct page_way *way, uint64_t *ret_left, struct err *e);
/* All of it is mapped. */
int page_access(struct pool *p, uint64_t at, uint64_t bytes, struct err *e);

/* From `at` on, up to `end`: bytes at which memory is used; … none is; … what is mapped is
 * accessible. */
uint64_t page_used(const struct pool *p, uint64_t at, uint64_t end);
uint64_t page_unused(const struct pool *p, uint64_t at, uint64_t end);
uint64_t page_accessible(const struct pool *p, uint64_t at, uint64_t end);
/* May a stream still use what is mapped in [at, end), and used elsewhere? */
bool page_busy(const struct pool *p, uint64_t at, uint64_t end);
/* What is mapped at `at` is used at *ret_from, in a row of so many bytes at both places. 0: nothing
 * is mapped. */
uint64_t page_where(const struct pool *p, uint64_t at, uint64_t *ret_from);
/* The first frame of what is used at `at`, and how many bytes from there on are its run's; 0:
 * nothing is used. */
uint64_t page_frame(const struct pool *p, uint64_t at, uint32_t *ret_frame);
/* Walks it: ERR_INTERNAL says what is wrong. *ret_used: bytes of memory in use somewhere. */
int page_table_check(const struct pool *p, uint64_t *ret_used, struct err *e);

#endif
