/*
 * Allocations of libgpud, which fail when a course says so, like those of the front (sim_memory.c).
 * The program is linked with --wrap for malloc, calloc and realloc, libgpud for free as well. Those
 * of libgpud are counted, so that what is left is found.
 */
#include <malloc.h>
#include <stdlib.h>

#include "tests/sim/client/libsim.h"

#define ALIGN  64u
#define SHARED __attribute__((visibility("default")))

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *data, size_t size);
SHARED void *__wrap_malloc(size_t size);
SHARED void *__wrap_calloc(size_t count, size_t size);
SHARED void *__wrap_realloc(void *data, size_t size);
SHARED void __wrap_free(void *data);

struct part {
    void *data; /* NULL: none was here */
    const struct user *user;
};

static struct {
    struct user *user; /* whose libgpud runs */
    long user_left[USERS_MAX];
    size_t held[USERS_MAX];
    struct part *part; /* owned; allocations of libgpud, by address */
    size_t room, used;
} memory;

/* ---- what libgpud has ------------------------------------------------------------------------ */

/* The place of the address, or an empty one. */
static struct part *place(const void *data)
{
    size_t i = (size_t)chance_mix((uintptr_t)data) & (memory.room - 1);
    while (memory.part[i].data != NULL && memory.part[i].data != data) {
        i = (i + 1) & (memory.room - 1);
    }
    return &memory.part[i];
}

static void grow(void)
{
    struct part *old = memory.part;
    size_t count = memory.room;
    memory.room = count > 0 ? 2 * count : 4096;
    memory.part = __real_calloc(memory.room, sizeof *memory.part);
    memory.used = 0;
    for (size_t i = 0; i < count; i++) {
        if (old[i].data != NULL && old[i].user != NULL) {
            *place(old[i].data) = old[i];
            memory.used++;
        }
    }
    free(old);
}

static void *add(void *data)
{
    if (data == NULL || memory.user == NULL) {
        return data;
    }
    if (2 * memory.used >= memory.room) {
        grow();
    }
    struct part *p = place(data);
    memory.used += p->data == NULL;
    *p = (struct part){.data = data, .user = memory.user};
    memory.held[memory.user->index]++;
    return data;
}

/* The place stays taken, so that the search for others goes past it. */
static void drop(const void *data)
{
    struct part *p = data != NULL && memory.room > 0 ? place(data) : NULL;
    if (p != NULL && p->user != NULL) {
        memory.held[p->user->index]--;
        p->user = NULL;
    }
}

size_t memory_left(const struct user *u)
{
    return memory.held[u->index];
}

/* ---- allocations ----------------------------------------------------------------------------- */

/* Whose code runs; NULL: nobody's, as in the front's own threads. */
static struct user *user_here(void)
{
    return memory_here() ? memory.user : NULL;
}

static bool fails_user(struct user *u)
{
    long *left = &memory.user_left[u->index];
    if (*left == 0 || --*left > 0) {
        return false;
    }
    u->c->starved = true;
    sim_log(u->s, "user %u: an allocation of its libgpud fails in %s", u->index,
            u->call != NULL ? u->call : "no call");
    return true;
}

static bool fails(size_t size)
{
    struct user *u = user_here();
    return u != NULL ? fails_user(u) : memory_fails(size);
}

/* Memory of libgpud, which copies an output whose address it does not like: all addresses are
 * alike, so that a world does not depend on them. */
static void *aligned(size_t size)
{
    void *data = NULL;
    return posix_memalign(&data, ALIGN, size > 0 ? size : 1) == 0 ? data : NULL;
}

void *__wrap_malloc(size_t size)
{
    if (fails(size)) {
        return NULL;
    }
    return user_here() != NULL ? add(aligned(size)) : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    if (fails(count * size)) {
        return NULL;
    }
    void *data = user_here() != NULL ? add(aligned(count * size)) : __real_calloc(count, size);
    if (user_here() != NULL && data != NULL) {
        memset(data, 0, count * size);
    }
    return data;
}

void *__wrap_realloc(void *data, size_t size)
{
    if (fails(size)) {
        return NULL;
    }
    if (user_here() == NULL) {
        return __real_realloc(data, size);
    }
    void *other = aligned(size);
    size_t before = data != NULL ? malloc_usable_size(data) : 0;
    if (other != NULL && before > 0) {
        memcpy(other, data, before < size ? before : size);
    }
    if (other != NULL) {
        __wrap_free(data);
    }
    return add(other);
}

void __wrap_free(void *data)
{
    drop(data);
    free(data);
}

/* ---- when they fail -------------------------------------------------------------------------- */

void memory_begin(void)
{
    free(memory.part);
    memset(&memory, 0, sizeof memory);
}

void memory_of(struct user *u)
{
    memory.user = u;
}

void memory_fail_user(struct user *u, long left)
{
    memory.user_left[u->index] = left;
}
