/* The program is linked with --wrap for malloc, calloc and realloc, which are libc's, and for
 * thread_start: what the front's threads allocate at any time counts as nobody's. */
#include <stdlib.h>

#include "common/thread.h"
#include "tests/sim/front/sim.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *data, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *data, size_t size);

bool __real_thread_start(size_t stack, void *(*run)(void *data), void *data, pthread_t *ret_thread);
bool __wrap_thread_start(size_t stack, void *(*run)(void *data), void *data, pthread_t *ret_thread);

static _Thread_local bool beside; /* another thread than the world's */

struct start {
    void *(*run)(void *data);
    void *data;
};

static void *on_start(void *data)
{
    const struct start start = *(const struct start *)data;
    beside = true;
    free(data);
    return start.run(start.data);
}

bool __wrap_thread_start(size_t stack, void *(*run)(void *data), void *data, pthread_t *ret_thread)
{
    struct start *start = __real_malloc(sizeof *start);
    if (start == NULL) {
        return false;
    }
    *start = (struct start){.run = run, .data = data};
    bool started = __real_thread_start(stack, on_start, start, ret_thread);
    if (!started) {
        free(start);
    }
    return started;
}

void *__wrap_malloc(size_t size)
{
    return !beside && memory_fails(size) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return !beside && memory_fails(count * size) ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *data, size_t size)
{
    return !beside && memory_fails(size) ? NULL : __real_realloc(data, size);
}
