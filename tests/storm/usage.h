/*
 * What a process of the daemon has: descriptors, pages, and for the front the bytes that malloc has
 * given out. Functions fail the running Check test where the system refuses. Thread: one.
 */
#ifndef STORM_USAGE_H
#define STORM_USAGE_H

#include <stdint.h>
#include <sys/types.h>

#include "tests/storm/heap.h"

struct usage {
    unsigned descriptors;
    uint64_t pages; /* bytes of private memory that is not of a file */
    uint64_t heap;  /* bytes that are allocated (heap.h); 0: not asked */
};

/* Before the daemon begins: its front will answer. The page is in the folder and mapped for good.
 * NULL: the library that answers is not built, as sanitizers have another malloc. */
struct heap_page *heap_begin(const char *folder);
/* Gives free pages back to the kernel, and tells what is allocated. 0: page is NULL. Blocks. */
uint64_t heap_of_front(struct heap_page *page);
struct usage usage_of(pid_t pid); /* it has ended, or is another user's: no descriptors */

#endif
