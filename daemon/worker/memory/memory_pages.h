/*
 * For memory.c: the pool's source of pages. Its calls go to the log of the device's mappings
 * (mapping.h), so none of them blocks. Thread: the loop's.
 */
#ifndef WORKER_MEMORY_MEMORY_PAGES_H
#define WORKER_MEMORY_MEMORY_PAGES_H

#include "daemon/worker/memory/memory.h"

/* Sets m->pages. page: bytes of the device's smallest handle; 0: it has blocks. */
void memory_pages_init(struct memory *m, uint64_t page);

#endif
