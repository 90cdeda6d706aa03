/*
 * A cache of binaries on disk: <dir>/<xx>/<key>.bin. Each file has a checksum and the whole
 * identity of its sources, because a key alone could match another tenant's source. A file is
 * written under another name and renamed, mode 0600. Beyond the limit, the least recently used
 * files are removed. Thread: one owner. Blocks on files.
 */
#ifndef FRONT_MODULES_CACHE_H
#define FRONT_MODULES_CACHE_H

#include "common/bytes.h"
#include "common/err.h"
#include "common/hash.h"

struct cache;

/* Creates `dir` if it is absent; its parent must exist. Refuses a directory that others may write
 * to. bytes_max: of all files together. */
int cache_create(const char *dir, uint64_t bytes_max, struct cache **ret_cache, struct err *e);
void cache_destroy(struct cache *c); /* keeps the files; NULL is accepted */

enum { CACHE_HIT = 0, CACHE_MISS = 1, CACHE_DAMAGED = 2 };

/* CACHE_HIT: *ret_data is a copy, which the caller frees. CACHE_DAMAGED: the file was deleted. A
 * file that cannot be read is a miss. */
int cache_load(struct cache *c, struct hash key, struct bytes identity, uint8_t **ret_data,
               size_t *ret_size);
int cache_store(struct cache *c, struct hash key, struct bytes identity, struct bytes data,
                struct err *e);
/* Whether a file of so many bytes, all told, can be written now: its room is taken, and given back.
 */
int cache_try(struct cache *c, uint64_t size, struct err *e);
uint64_t cache_bytes(const struct cache *c);

#endif
