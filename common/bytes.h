/* A view of borrowed bytes, and a buffer that grows up to a limit. */
#ifndef COMMON_BYTES_H
#define COMMON_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
    const uint8_t *data; /* not owned; not terminated */
    size_t size;         /* bytes */
};

static inline struct bytes bytes_of(const void *data, size_t size)
{
    return (struct bytes){.data = data, .size = size};
}

struct bytes bytes_str(const char *text); /* without the NUL; NULL gives an empty view */
/* The text without a leading byte order mark (UTF-8). */
struct bytes bytes_without_bom(struct bytes text);
bool bytes_equal(struct bytes a, struct bytes b);
bool bytes_equal_str(struct bytes a, const char *text);
/* Copies into out[size] and terminates; false (out = "") if it does not fit or contains a NUL. */
bool bytes_to_str(struct bytes b, char *out, size_t size);

/* Grows by doubling, never beyond `limit`. After a failed append `failed` is set until
 * capbuf_reset; the data is kept. */
struct capbuf {
    uint8_t *data;   /* owned, unless lent */
    size_t size;     /* bytes in use */
    size_t capacity; /* bytes allocated */
    size_t limit;    /* bytes, never exceeded */
    bool failed;     /* an append did not fit or memory was out */
    bool lent;       /* `data` is the caller's room; growing replaces it by owned memory */
};

void capbuf_init(struct capbuf *b, size_t limit);
/* Starts in the caller's `room`, which outlives the buffer, so short content needs no allocation.
 */
void capbuf_init_in(struct capbuf *b, size_t limit, void *room, size_t size);
void capbuf_finish(struct capbuf *b);
void capbuf_reset(struct capbuf *b); /* size 0, failed false; memory kept */
bool capbuf_append(struct capbuf *b, const void *data, size_t size);
uint8_t *capbuf_grow(struct capbuf *b, size_t size); /* the slow path of capbuf_extend */
/* Appends without the NUL, but the limit must have room for it. */
bool capbuf_printf(struct capbuf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static inline struct bytes capbuf_view(const struct capbuf *b)
{
    return bytes_of(b->data, b->size);
}

/* Appends `size` undefined bytes and returns them, for the caller to fill; NULL: no memory, or
 * beyond the limit. */
static inline uint8_t *capbuf_extend(struct capbuf *b, size_t size)
{
    if (b->failed || b->data == NULL || size > b->capacity - b->size) {
        return capbuf_grow(b, size);
    }
    uint8_t *at = b->data + b->size;
    b->size += size;
    return at;
}

#endif
