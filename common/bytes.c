#include "common/bytes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY_FIRST 256u /* most messages and frames are shorter */

struct bytes bytes_str(const char *text)
{
    return text == NULL ? (struct bytes){0} : bytes_of(text, strlen(text));
}

struct bytes bytes_without_bom(struct bytes text)
{
    static const char bom[] = "\xEF\xBB\xBF";
    size_t size = sizeof bom - 1;
    return text.size >= size && memcmp(text.data, bom, size) == 0
               ? bytes_of(text.data + size, text.size - size)
               : text;
}

bool bytes_equal(struct bytes a, struct bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

bool bytes_equal_str(struct bytes a, const char *text)
{
    return bytes_equal(a, bytes_str(text));
}

bool bytes_to_str(struct bytes b, char *out, size_t size)
{
    out[0] = '\0';
    if (b.size >= size || (b.size > 0 && memchr(b.data, 0, b.size) != NULL)) {
        return false;
    }
    if (b.size > 0) {
        memcpy(out, b.data, b.size);
    }
    out[b.size] = '\0';
    return true;
}

void capbuf_init(struct capbuf *b, size_t limit)
{
    *b = (struct capbuf){.limit = limit};
}

void capbuf_init_in(struct capbuf *b, size_t limit, void *room, size_t size)
{
    *b = (struct capbuf){
        .data = room, .capacity = size < limit ? size : limit, .limit = limit, .lent = true};
}

void capbuf_finish(struct capbuf *b)
{
    if (b->data != NULL && !b->lent) {
        free(b->data);
    }
    *b = (struct capbuf){0};
}

void capbuf_reset(struct capbuf *b)
{
    b->size = 0;
    b->failed = false;
}

static bool grow(struct capbuf *b, size_t need)
{
    size_t capacity = b->capacity > 0 ? b->capacity : CAPACITY_FIRST;
    while (capacity < need) {
        capacity = capacity > b->limit / 2 ? b->limit : capacity * 2;
    }
    if (capacity > b->limit) {
        capacity = b->limit;
    }
    if (capacity == 0) {
        return false;
    }
    uint8_t *data = b->lent ? malloc(capacity) : realloc(b->data, capacity);
    if (data == NULL) {
        return false;
    }
    if (b->lent) {
        memcpy(data, b->data, b->size);
        b->lent = false;
    }
    b->data = data;
    b->capacity = capacity;
    return true;
}

uint8_t *capbuf_grow(struct capbuf *b, size_t size)
{
    if (b->failed || size > b->limit - b->size || !grow(b, b->size + size)) {
        b->failed = true;
        return NULL;
    }
    uint8_t *at = b->data + b->size;
    b->size += size;
    return at;
}

bool capbuf_append(struct capbuf *b, const void *data, size_t size)
{
    if (size == 0) {
        return !b->failed;
    }
    uint8_t *at = capbuf_extend(b, size);
    if (at == NULL) {
        return false;
    }
    memcpy(at, data, size);
    return true;
}

bool capbuf_printf(struct capbuf *b, const char *fmt, ...)
{
    va_list ap;
    va_list again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    bool ok = false;
    if (n >= 0) {
        /* one more byte for vsnprintf's NUL; it is removed afterwards */
        uint8_t *at = capbuf_extend(b, (size_t)n + 1);
        if (at != NULL) {
            (void)vsnprintf((char *)at, (size_t)n + 1, fmt, again);
            b->size -= 1;
            ok = true;
        }
    } else {
        b->failed = true;
    }
    va_end(again);
    return ok;
}
