/*
 * The pool's source of pages: its calls go to the log of the device's mappings (mapping.h), so none
 * of them blocks. Thread: the loop's.
 */
#ifndef WORKER_MEMORY_MAPPING_PAGES_H
#define WORKER_MEMORY_MAPPING_PAGES_H

#include "daemon/worker/memory/mapping.h"

/* `user` of its functions is the mapping. page: bytes of the device's smallest handle; 0: the
 * device has none, and the functions are not called. */
struct pool_pages mapping_pages(const struct mapping *m, uint64_t page);

#endif
