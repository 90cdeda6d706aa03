/* The program is linked with --wrap for malloc, calloc and realloc, which are libc's. */
#include <stdlib.h>

#include "tests/sim/front/sim.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *data, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *data, size_t size);

void *__wrap_malloc(size_t size)
{
    return memory_fails(size) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return memory_fails(count * size) ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *data, size_t size)
{
    return memory_fails(size) ? NULL : __real_realloc(data, size);
}
