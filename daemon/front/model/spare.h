/*
 * Memory of one size that was given back, kept for who asks for some next: jobs come and go in
 * bursts, longer than what malloc keeps at hand. Bounded. With AddressSanitizer nothing is kept, so
 * that whoever uses what was given back is found. Thread: one at a time.
 */
#ifndef FRONT_MODEL_SPARE_H
#define FRONT_MODEL_SPARE_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define SPARE_MAX 64u

/* What the sanitizer is to see being freed is freed. clang says by a feature that it is there. */
#if defined(__SANITIZE_ADDRESS__)
#define SPARE_NONE
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SPARE_NONE
#endif
#endif

struct spare {
    void *item[SPARE_MAX]; /* owned; zeros at first: there are none */
    unsigned count;
};

/* Zeroed; NULL: no memory. The same `size` for all of one spare. free() takes it as well. */
static inline void *spare_take(struct spare *s, size_t size)
{
    if (s == NULL || s->count == 0) {
        return calloc(1, size);
    }
    return memset(s->item[--s->count], 0, size);
}

static inline void spare_give(struct spare *s, void *memory)
{
#ifndef SPARE_NONE
    if (s != NULL && memory != NULL && s->count < SPARE_MAX) {
        s->item[s->count++] = memory;
        return;
    }
#endif
    (void)s;
    free(memory);
}

static inline void spare_finish(struct spare *s)
{
    while (s->count > 0) {
        free(s->item[--s->count]);
    }
}

#endif
