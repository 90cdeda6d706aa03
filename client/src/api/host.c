/* User memory that is shared with the daemon: see objects/arena.h. */
#include "client/src/base/enter.h"
#include "client/src/base/error.h"
#include "client/src/objects/arena.h"
#include "client/src/objects/job.h"
#include "client/src/session/arena_make.h"
#include "client/src/session/call.h"
#include "client/src/session/wait.h"
#include "client/src/wire/heap.h"

#define CHUNK_FIRST (1u << 20) /* bytes of the first arena; each next one is twice as large */
#define CHUNK_MAX   (256u << 20)
#define CHUNK_KEPT  (4u << 20) /* the only chunk is kept when empty, up to this size */

/* Bytes of a new chunk: twice the largest that is in use, so that there are few. */
static uint64_t chunk_bytes(const struct gpud_client *c, uint64_t bytes)
{
    uint64_t wanted = CHUNK_FIRST;
    for (unsigned i = 0; i < c->arena_count; i++) {
        const struct arena *a = c->arenas[i];
        if (a->kind == ARENA_USER && !arena_is_closed(a) && a->bytes * 2 > wanted) {
            wanted = a->bytes * 2;
        }
    }
    wanted = wanted < CHUNK_MAX ? wanted : CHUNK_MAX;
    return wanted > bytes ? wanted : bytes;
}

static bool is_plain(const struct arena *a)
{
    return a->fd < 0;
}

static uint64_t user_alloc(struct gpud_client *c, uint64_t bytes, bool plain,
                           struct arena **ret_arena)
{
    for (unsigned i = 0; i < c->arena_count; i++) {
        struct arena *a = c->arenas[i];
        bool fits = a->kind == ARENA_USER && is_plain(a) == plain && !arena_is_closed(a);
        uint64_t offset = fits ? heap_alloc(&a->heap, bytes) : HEAP_NONE;
        if (offset != HEAP_NONE) {
            *ret_arena = a;
            return offset;
        }
    }
    return HEAP_NONE;
}

/* Makes a chunk with room for `bytes`. Blocks. */
static int chunk_make(struct gpud_client *c, uint64_t bytes, bool plain, uint64_t deadline_ns,
                      struct arena **ret_arena, struct err *e)
{
    int rc = arena_make(c, ARENA_USER, chunk_bytes(c, bytes), plain, deadline_ns, ret_arena, e);
    if (rc == ERR_LIMIT) { /* a chunk exceeds a limit; the requested bytes alone may fit */
        rc = arena_make(c, ARENA_USER, bytes, plain, deadline_ns, ret_arena, e);
    }
    return rc;
}

static int host_alloc(struct gpud_client *c, uint64_t bytes, void **ret_memory, struct err *e)
{
    uint64_t deadline_ns = client_deadline(c);
    uint64_t rounded = heap_rounded(bytes);
    bool plain = c->session.shm[0] == '\0';
    struct arena *a = NULL;
    if (rounded == 0) {
        return err_set(e, ERR_NOMEM, "no memory for %llu bytes", (unsigned long long)bytes);
    }
    uint64_t offset = user_alloc(c, rounded, plain, &a);
    int rc = 0;
    if (offset == HEAP_NONE) {
        arena_closed_give_up(c);
        rc = chunk_make(c, rounded, plain, deadline_ns, &a, e);
    }
    if (rc == ERR_UNSUPPORTED) { /* a daemon in another container */
        offset = user_alloc(c, rounded, true, &a);
        rc = offset == HEAP_NONE ? chunk_make(c, rounded, true, deadline_ns, &a, e) : 0;
    }
    if (rc == 0 && offset == HEAP_NONE) {
        offset = heap_alloc(&a->heap, rounded);
    }
    if (rc == 0 && offset == HEAP_NONE) {
        rc = err_set(e, ERR_NOMEM, "no memory for %llu bytes", (unsigned long long)bytes);
    }
    if (rc == 0) {
        *ret_memory = a->base + offset;
    }
    return rc;
}

int gpud_host_alloc(gpud_client *client, size_t bytes, void **ret_memory)
{
    struct err e = ERR_INIT;
    int rc = client_enter(client, &e);
    if (rc == 0) {
        rc = ret_memory != NULL ? host_alloc(client, bytes, ret_memory, &e)
                                : err_set(&e, ERR_INVALID, "no pointer for the memory");
        if (rc != 0) {
            (void)err_wrap(&e, "host memory");
        }
        client_leave(client);
    }
    return error_report(rc, &e);
}

int gpud_host_import(gpud_client *client, int memfd, void **ret_memory, size_t *ret_bytes)
{
    struct err e = ERR_INIT;
    int rc = client_enter(client, &e);
    if (rc == 0) {
        rc = ret_memory != NULL ? arena_import(client, memfd, ret_memory, ret_bytes, &e)
                                : err_set(&e, ERR_INVALID, "no pointer for the memory");
        if (rc != 0) {
            (void)err_wrap(&e, "import of host memory");
        }
        client_leave(client);
    }
    return error_report(rc, &e);
}

struct range_wait {
    const struct gpud_client *client;
    const struct arena *arena;
    uint64_t offset;
    uint64_t bytes;
};

static bool overlaps(const struct range_wait *w, uint64_t offset, uint64_t bytes)
{
    return offset < w->offset + w->bytes && w->offset < offset + bytes;
}

static bool is_used_in_place(const struct range_wait *w, const struct gpud_job *j)
{
    for (unsigned i = 0; j->state != JOB_ENDED && i < j->use_count; i++) {
        const struct host_use *u = &j->uses[i];
        if (u->arena == w->arena && overlaps(w, u->offset, u->bytes)) {
            return true;
        }
    }
    return false;
}

/* Memory that is not shared gets outputs at the job's end, unless the job was released. */
static bool is_copied_to(const struct range_wait *w, const struct gpud_job *j)
{
    uintptr_t base = (uintptr_t)w->arena->base;
    for (size_t i = 0; j->state == JOB_LIVE && i < j->sink_count; i++) {
        uintptr_t data = (uintptr_t)j->sinks[i].data;
        if (data >= base && overlaps(w, data - base, j->sinks[i].bytes)) {
            return true;
        }
    }
    return false;
}

/* Have all jobs that use the memory ended? */
static bool unused(void *arg)
{
    const struct range_wait *w = arg;
    for (const struct gpud_job *j = w->client->jobs; j != NULL; j = j->next) {
        if (is_used_in_place(w, j) || is_copied_to(w, j)) {
            return false;
        }
    }
    return true;
}

/* Gives up an empty chunk, unless it is the only one, small, and not closed. */
static void chunk_settle(struct gpud_client *c, struct arena *a)
{
    unsigned others = 0;
    for (unsigned i = 0; i < c->arena_count; i++) {
        others += c->arenas[i] != a && c->arenas[i]->kind == ARENA_USER;
    }
    if (a->heap.used == 0 && (arena_is_closed(a) || others > 0 || a->bytes > CHUNK_KEPT)) {
        arena_give_up(c, a);
    }
}

static int host_free(struct gpud_client *c, void *memory, struct err *e)
{
    struct arena *a = arena_find(c, memory, 1);
    uint64_t offset = a != NULL ? (uint64_t)((uint8_t *)memory - a->base) : 0;
    uint64_t bytes = 0;
    if (a != NULL && a->kind != ARENA_STAGING) {
        bytes = a->kind == ARENA_USER ? heap_size(&a->heap, offset) : offset == 0 ? a->bytes : 0;
    }
    if (bytes == 0) {
        return err_set(e, ERR_INVALID,
                       "memory at %p was not allocated or imported here, or is freed already",
                       memory);
    }
    struct range_wait w = {.client = c, .arena = a, .offset = offset, .bytes = bytes};
    int rc = client_wait(c, unused, &w, client_deadline(c), e);
    if (rc != 0) {
        return err_wrap(e, "jobs still use the memory");
    }
    if (a->kind == ARENA_IMPORTED) {
        arena_give_up(c, a);
    } else if (heap_free(&a->heap, offset)) {
        chunk_settle(c, a);
    }
    return 0;
}

int gpud_host_free(gpud_client *client, void *memory)
{
    struct err e = ERR_INIT;
    int rc = client_enter(client, &e);
    if (rc == 0) {
        rc = memory != NULL ? host_free(client, memory, &e) : 0;
        if (rc != 0) {
            (void)err_wrap(&e, "free host memory");
        }
        client_leave(client);
    }
    return error_report(rc, &e);
}
