/* Content hashes (XXH3, 128 bit): cache keys and checksums of data that gpud itself wrote. An
 * attacker can construct collisions, so nothing that tenants share is found by its hash alone. */
#ifndef COMMON_HASH_H
#define COMMON_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HASH_BYTES      16
#define HASH_TEXT_BYTES 33 /* hexadecimal with the NUL */

struct hash {
    uint8_t byte[HASH_BYTES];
};

struct hash_part {
    const void *data;
    size_t size;
};

/* Hashes the parts' lengths, too, so ("ab","c") and ("a","bc") differ. */
struct hash hash_parts(const struct hash_part *parts, size_t count);
struct hash hash_of(const void *data, size_t size);
/* 64 bits, for short data that is hashed often. The same on every host. */
uint64_t hash_short(const void *data, size_t size);
bool hash_equal(struct hash a, struct hash b);
/* Hashes a whole file that is open for reading. false: it cannot be read, or is empty. */
bool hash_file(int fd, struct hash *ret_hash);
const char *hash_text(struct hash h, char out[HASH_TEXT_BYTES]);

/* Whether HASH_ADD has entered the element by this handle: without memory for the table it leaves
 * the element out (HASH_NONFATAL_OOM, in cmake/gpud.cmake), where uthash alone would end the
 * process. */
#define HASH_ENTERED(handle) ((handle).tbl != NULL)

/* For tables whose keys are consecutive numbers (uthash's _BYHASHVALUE): all bits of the number
 * reach the lower bits of the result (Knuth's multiplicative hashing). */
static inline unsigned hash_number(uint64_t number)
{
    return (unsigned)((number * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

#endif
