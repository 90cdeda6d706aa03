/*
 * Binaries on disk: <dir>/<xx>/<key>.bin, each with the whole identity of what it was made from (a
 * key alone would let one tenant's source stand for another's) and a checksum. Written beside and
 * renamed, mode 0600. The least recently used go first when the bound is passed.
 * Thread: one owner. Blocks on files.
 */
#ifndef FRONT_MODULES_CACHE_H
#define FRONT_MODULES_CACHE_H

#include "common/bytes.h"
#include "common/err.h"
#include "common/hash.h"

struct cache;

/* Makes `dir` if it is absent (its parent must be there). Refuses one that others may write to.
 * bytes_max: of all files together. */
int cache_create(const char *dir, uint64_t bytes_max, struct cache **ret_cache, struct err *e);
void cache_destroy(struct cache *c); /* files stay; NULL is accepted */

enum { CACHE_HIT = 0, CACHE_MISS = 1, CACHE_DAMAGED = 2 };

/* CACHE_HIT: *ret_data is a copy, to be freed by the caller. CACHE_DAMAGED: the file was deleted.
 * What cannot be read is a miss. */
int cache_load(struct cache *c, struct hash key, struct bytes identity, uint8_t **ret_data,
               size_t *ret_size);
int cache_store(struct cache *c, struct hash key, struct bytes identity, struct bytes data,
                struct err *e);
uint64_t cache_bytes(const struct cache *c);

#endif
