/*
 * The page table of a source of pages records which memory the pool has, at which address each page
 * is used, and where else it is mapped.
 *
 * - Frame: one page of a handle that the source gave (frames.h).
 * - Slot: a page-sized part of the address space.
 * - Run: neighbouring frames, whole handles, that are used and mapped together, so that costs
 * follow the number of runs and not of bytes.
 * - View: neighbouring slots at which a run is mapped. A run is used at one of its views at most.
 *
 * A run that moves keeps its old view, and comes back to it without a call of the driver. Runs are
 * cut, between handles, where only a part is wanted; all views are cut with them, without a call of
 * the driver. A handle is cut by page_break only.
 *
 * Addresses and sizes are bytes from the start of the range, multiples of a page. "Used at an
 * address" means that the pool uses the page's memory through that address. Thread: the pool's
 * owner. Calls of the driver block: page_create, page_put, page_drop, page_move, page_break,
 * page_access.
 */
#ifndef POOL_PAGE_TABLE_H
#define POOL_PAGE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "daemon/pool/frames.h"
#include "daemon/pool/marks.h"
#include "daemon/pool/records.h"

struct pool;

struct run {
    uint32_t unused; /* of records.h while the record is free */
    uint32_t views;  /* slot + 1 of the first view in the list; 0: mapped nowhere */
    uint32_t used;   /* slot + 1 of the view at which it is used; 0: not used */
    uint32_t frame;  /* the first frame */
    uint32_t count;  /* frames */
};

/* What the source reported of calls that it made late. */
enum view_late {
    VIEW_SOUND = 0,
    VIEW_DIRTY,  /* it was not cleared */
    VIEW_FAILED, /* it is not mapped, or not accessible */
    VIEW_LOST,   /* the same, and nothing can be mapped at its addresses any more */
};

/* A view, by the slot at which it begins. A view sleeps when its handles were broken: its addresses
 * are known, and mapped again when the run is used there. */
struct view {
    uint32_t run;
    uint32_t next, prev; /* slots + 1: other views of the run */
    bool there;
    bool mapped; /* else it sleeps */
    bool accessible;
    uint8_t stream;  /* may use the run here up to … */
    uint8_t late;    /* what became of late calls: enum view_late */
    uint64_t seq;    /* … this point */
    uint64_t ticket; /* number of the last call that concerns the memory here: source.h, issued */
};

struct page_table {
    struct records runs;
    struct view *view;  /* by the slot at which it begins */
    struct marks views; /* slots at which a view begins */
    struct frames frames;
    uint16_t *holder;     /* by frame: the row that begins here, see tenancy.c; 0: none */
    struct marks holders; /* frames at which a row begins */
};

int page_table_init(struct pool *p, uint32_t max, struct err *e);
void page_table_finish(struct pool *p); /* gives all pages and the range back */

/* Creates up to `bytes` of new memory as one run that is not used. Returns bytes; 0: the source's
 * error. */
uint64_t page_create(struct pool *p, uint64_t bytes, uint32_t *ret_run, struct err *e);
/* Maps a run that is not used at `at`, where nothing is used, and uses it there. Pages that cannot
 * be mapped go back to the source. Returns bytes. */
uint64_t page_put(struct pool *p, uint64_t at, uint32_t run, struct err *e);
/* Gives whole handles used at [at, at + bytes) back to the source, from the start on. Returns
 * bytes.
 */
uint64_t page_drop(struct pool *p, uint64_t at, uint64_t bytes, struct err *e);
/* Breaks the handle used at `at`, which no stream uses, so that a smaller one begins there, with
 * `alone` one of a single page. Its bytes are lost; its other views sleep. On failure the handle is
 * as it was, or some of its pages are gone, or no longer accessible. */
int page_break(struct pool *p, uint64_t at, bool alone, struct err *e);
/* A move of memory, whole handles, used at `from` to `to`. */
struct page_way {
    uint64_t from, to, bytes;
    bool keep;       /* stays mapped at `from` */
    unsigned stream; /* may use the memory at `from` up to … */
    uint64_t seq;    /* … this point, and it stays mapped there until then; 0: no stream */
};

/* Nothing may be used at `to`. Returns the bytes moved. */
uint64_t page_move(struct pool *p, const struct page_way *way, struct err *e);
/* Maps a row that page_where found where it sleeps, and makes it accessible. False: it is not. */
bool page_wake(struct pool *p, uint64_t at, uint64_t bytes);
/* Makes [at, at + bytes), which is all mapped, accessible. */
int page_access(struct pool *p, uint64_t at, uint64_t bytes, struct err *e);

/* Of the handle mapped at `at`: bytes before `at`, and from there on. */
uint64_t page_inside(const struct pool *p, uint64_t at);
uint64_t page_rest(const struct pool *p, uint64_t at);
bool page_mapped(const struct pool *p, uint64_t at);
/* A row of whole handles. */
struct handles {
    uint64_t at, bytes;   /* bytes 0: there are none */
    uint64_t front, back; /* bytes of the first and of the last */
};

/* The whole handles in [at, end), where all pages are used. */
struct handles page_handles(const struct pool *p, uint64_t at, uint64_t end);
/* The same: from *ret_at on. Returns bytes. */
uint64_t page_whole(const struct pool *p, uint64_t at, uint64_t end, uint64_t *ret_at);
/* Bytes from `at` on, up to `end`, that are used; that are not used; that are mapped and
 * accessible. */
uint64_t page_used(const struct pool *p, uint64_t at, uint64_t end);
uint64_t page_unused(const struct pool *p, uint64_t at, uint64_t end);
uint64_t page_accessible(const struct pool *p, uint64_t at, uint64_t end);
/* Bytes from `at` on, up to `end`, whose views a stream may still use; that no stream uses. */
uint64_t page_busy(const struct pool *p, uint64_t at, uint64_t end);
uint64_t page_idle(const struct pool *p, uint64_t at, uint64_t end);
/* Can the handle used at `at` be broken? No stream may use a view of it. */
bool page_breakable(const struct pool *p, uint64_t at);
/* Where the page mapped at `at` is used: from *ret_from on. Returns the length in bytes of the row,
 * which is the same at both places. 0: nothing is mapped at `at`. */
uint64_t page_where(const struct pool *p, uint64_t at, uint64_t *ret_from);
/* *ret_frame: the frame used at `at`. Returns the bytes of its run from there on; 0: nothing is
 * used. */
uint64_t page_frame(const struct pool *p, uint64_t at, uint32_t *ret_frame);
/* The slot at which the view over a slot begins; MARKS_NONE: nothing is mapped there. */
uint64_t page_view(const struct pool *p, uint64_t slot);
/* Cuts the view over slot s to begin there and to end at slot `end` or before. */
void page_view_cut(struct pool *p, uint64_t s, uint64_t end);
/* Unmaps a view at which its run is not used, unless a stream may use it there. */
void page_view_clear(struct pool *p, uint64_t view);
/* Walks the table; ERR_INTERNAL names the contradiction. *ret_used: bytes of memory that are used.
 */
int page_table_check(const struct pool *p, uint64_t *ret_used, struct err *e);

#endif
