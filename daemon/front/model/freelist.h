/*
 * A bounded free list of memory of one size. Jobs come and go in bursts that are longer than
 * malloc's own lists. With AddressSanitizer the list stays empty, so that the sanitizer finds uses
 * of freed memory. Thread: one at a time.
 */
#ifndef FRONT_MODEL_FREELIST_H
#define FRONT_MODEL_FREELIST_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define FREELIST_MAX 64u

/* clang reports the sanitizer by a feature, gcc by a macro. */
#if defined(__SANITIZE_ADDRESS__)
#define FREELIST_NONE
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FREELIST_NONE
#endif
#endif

struct freelist {
    void *item[FREELIST_MAX]; /* owned; a zeroed struct is an empty list */
    unsigned count;
};

/* Returns zeroed memory; NULL: none. `size` is the same in all calls for one list. The memory may
 * go to free() as well. */
static inline void *freelist_take(struct freelist *s, size_t size)
{
    if (s == NULL || s->count == 0) {
        return calloc(1, size);
    }
    return memset(s->item[--s->count], 0, size);
}

static inline void freelist_give(struct freelist *s, void *memory)
{
#ifndef FREELIST_NONE
    if (s != NULL && memory != NULL && s->count < FREELIST_MAX) {
        s->item[s->count++] = memory;
        return;
    }
#endif
    (void)s;
    free(memory);
}

static inline void freelist_finish(struct freelist *s)
{
    while (s->count > 0) {
        free(s->item[--s->count]);
    }
}

#endif
