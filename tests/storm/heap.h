/*
 * How much memory the front has allocated, from outside: heap.c is loaded into the daemon by
 * LD_PRELOAD and answers through shared memory. malloc walks all free pieces for that, which takes
 * milliseconds in a large heap, so the daemon itself does not tell it.
 */
#ifndef STORM_HEAP_H
#define STORM_HEAP_H

#include <stdatomic.h>
#include <stdint.h>

#define HEAP_PAGE "GPUD_STORM_HEAP" /* environment: path of a file with a struct heap_page */

struct heap_page {
    atomic_uint asked, answered; /* different: a question is open */
    uint64_t bytes;              /* that are allocated, without the pages that malloc keeps */
};

#endif
