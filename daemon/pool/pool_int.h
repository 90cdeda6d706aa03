/* The pool's structures, for pool.c and check.c. */
#ifndef POOL_POOL_INT_H
#define POOL_POOL_INT_H

#include "daemon/pool/class.h"
#include "daemon/pool/pool.h"

#define CHUNK_PIECES_MAX (POOL_CHUNK_BYTES / POOL_ALIGN)
#define WORD_BITS        64u

/* The pieces of a chunk. Those from `fresh` on were never handed out since the chunk got its class;
 * those before it are live or on the stack. */
struct pieces {
    uint32_t count;
    uint32_t fresh;
    uint32_t live;
    uint32_t stack_used;
    uint16_t stack[CHUNK_PIECES_MAX];
    uint64_t is_live[CHUNK_PIECES_MAX / WORD_BITS]; /* a bit for each */
};

enum run_state {
    RUN_LIVE,    /* own block: handed out */
    RUN_PARTIAL, /* chunk with live and free pieces: in partial[class] */
    RUN_FULL,    /* chunk without a free piece */
    RUN_CACHED   /* nothing live: in cached[class] or empty, and in by_age */
};

/* A block of the source. */
struct run {
    struct run *prev, *next;         /* in the list its state names */
    struct run *age_prev, *age_next; /* by_age */
    struct run *all_prev, *all_next; /* all */
    void *block;
    uint64_t size; /* bytes of the block */
    unsigned class;
    enum run_state state;
    bool odd;              /* smaller than its class: not kept when freed */
    struct pieces *pieces; /* chunks; NULL: an own block */
};

/* Lists are utlist's: head->prev is the tail. */
struct pool {
    struct pool_source source;
    struct run *all;
    struct run *by_age;                     /* cached, oldest first */
    struct run *empty;                      /* cached chunks: fit for any small class */
    struct run *partial[CLASS_SMALL_COUNT]; /* chunks */
    struct run *cached[CLASS_COUNT];        /* own blocks */
    struct pool_stats stats;                /* largest_free is computed when asked for */
};

#endif
