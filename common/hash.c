#include "common/hash.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

struct hash hash_parts(const struct hash_part *parts, size_t count)
{
    XXH3_state_t state;
    struct hash h;
    (void)XXH3_128bits_reset(&state); /* fails on NULL only */
    for (size_t i = 0; i < count; i++) {
        uint64_t size = parts[i].size;
        (void)XXH3_128bits_update(&state, &size, sizeof size);
        (void)XXH3_128bits_update(&state, parts[i].data, parts[i].size);
    }
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state));
    memcpy(h.byte, canonical.digest, sizeof h.byte);
    return h;
}

struct hash hash_of(const void *data, size_t size)
{
    return hash_parts(&(struct hash_part){.data = data, .size = size}, 1);
}

uint64_t hash_short(const void *data, size_t size)
{
    return XXH3_64bits(data, size);
}

bool hash_file(int fd, struct hash *ret_hash)
{
    struct stat st;
    bool fits = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
    size_t size = fits ? (size_t)st.st_size : 0;
    void *data = fits ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (data == MAP_FAILED) {
        return false;
    }
    *ret_hash = hash_of(data, size);
    (void)munmap(data, size);
    return true;
}

bool hash_equal(struct hash a, struct hash b)
{
    return memcmp(a.byte, b.byte, sizeof a.byte) == 0;
}

const char *hash_text(struct hash h, char out[HASH_TEXT_BYTES])
{
    for (size_t i = 0; i < HASH_BYTES; i++) {
        (void)snprintf(out + 2 * i, 3, "%02x", h.byte[i]);
    }
    return out;
}
