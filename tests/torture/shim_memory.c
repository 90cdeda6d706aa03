#include <malloc.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/torture/shim.h"

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *data, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *data);

#define CALLER __builtin_return_address(0)

static void *counted(void *block, const void *caller)
{
    shim_heap_take(block, caller);
    return block;
}

static void *resized(void *data, size_t size, const void *caller)
{
    shim_heap_give(data);
    void *block = __libc_realloc(data, size);
    shim_heap_take(block == NULL && size > 0 ? data : block, caller);
    return block;
}

SHIM void *malloc(size_t size)
{
    return FAILS(KIND_MALLOC, "malloc") ? NULL : counted(__libc_malloc(size), CALLER);
}

SHIM void *calloc(size_t count, size_t size)
{
    return FAILS(KIND_CALLOC, "calloc") ? NULL : counted(__libc_calloc(count, size), CALLER);
}

SHIM void *realloc(void *data, size_t size)
{
    return FAILS(KIND_REALLOC, "realloc") ? NULL : resized(data, size, CALLER);
}

SHIM void *reallocarray(void *data, size_t count, size_t size)
{
    size_t bytes = 0;
    if (FAILS(KIND_REALLOC, "reallocarray")) {
        return NULL;
    }
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return resized(data, bytes, CALLER);
}

SHIM void free(void *data)
{
    shim_heap_give(data);
    __libc_free(data);
}

SHIM int posix_memalign(void **ret_block, size_t alignment, size_t size)
{
    int kept = errno;
    void *block = FAILS(KIND_ALIGNED, "posix_memalign")
                      ? NULL
                      : counted(__libc_memalign(alignment, size), CALLER);
    errno = kept;
    if (block == NULL) {
        return ENOMEM;
    }
    *ret_block = block;
    return 0;
}

SHIM void *aligned_alloc(size_t alignment, size_t size)
{
    return FAILS(KIND_ALIGNED, "aligned_alloc") ? NULL
                                                : counted(__libc_memalign(alignment, size), CALLER);
}

SHIM void *memalign(size_t alignment, size_t size)
{
    return counted(__libc_memalign(alignment, size), CALLER);
}

/* Copies, whose blocks come from the C library. */
STAND_IN(char *, strdup, KIND_STREAM, NULL, (const char *text), (text))
STAND_IN(char *, strndup, KIND_STREAM, NULL, (const char *text, size_t size), (text, size))

SHIM int asprintf(char **ret_text, const char *format, ...)
{
    va_list list;
    if (FAILS(KIND_STREAM, "asprintf")) {
        return -1;
    }
    va_start(list, format);
    int n = vasprintf(ret_text, format, list);
    va_end(list);
    return n;
}

STAND_IN(void *, mmap, KIND_MAP, MAP_FAILED,
         (void *at, size_t size, int access, int flags, int fd, off_t offset),
         (at, size, access, flags, fd, offset))

SHIM void *mremap(void *at, size_t size, size_t new_size, int flags, ...)
{
    static void *(*next)(void *, size_t, size_t, int, void *);
    va_list list;
    va_start(list, flags);
    void *to = va_arg(list, void *); /* without meaning where flags do not name it */
    va_end(list);
    if (FAILS(KIND_MAP, "mremap")) {
        return MAP_FAILED;
    }
    if (next == NULL) {
        *(void **)&next = shim_next("mremap");
    }
    return next(at, size, new_size, flags, to);
}
