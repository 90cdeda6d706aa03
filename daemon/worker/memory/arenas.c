#include "daemon/worker/memory/arenas.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utlist.h>

#include "common/log.h"

void arenas_init(struct arenas *t, struct device *device, uv_loop_t *loop, arena_ready_fn ready,
                 void *data)
{
    *t = (struct arenas){.device = device, .loop = loop, .ready = ready, .data = data};
}

static void release(void *item)
{
    struct arena *a = item;
    struct arenas *t = a->table;
    if (a->block != NULL) {
        t->device->b->memory->release_host(t->device->d, a->block);
    }
    t->bytes -= a->map.size;
    memfd_finish(&a->map);
    free(a);
}

static void destroy(struct arenas *t, struct arena *a)
{
    /* only registered memory has to wait */
    struct releases *later = a->block != NULL ? t->releases : NULL;
    a->table = t;
    release_put(later, &a->release, a->map.size, release, a);
}

void arenas_finish(struct arenas *t)
{
    t->ready = NULL;
    arenas_forget(t);
}

void arenas_forget(struct arenas *t)
{
    struct arena *a;
    struct arena *next;
    HASH_ITER(hh, t->by_id, a, next)
    {
        arena_free(t, a);
    }
}

/* Maps the arena and closes the descriptor, because descriptors are few. Bytes of the file
 * beyond the arena are not mapped. */
static int map(struct arena *a, int fd, struct err *e)
{
    int rc = 0;
    if (a->size == 0 || a->size > INT64_MAX) {
        rc = err_set(e, ERR_PROTOCOL, "%" PRIu64 " bytes", a->size);
    } else if (fd < 0) {
        rc =
            err_set(e, ERR_LIMIT, "the worker had no descriptor left for it (limit of open files)");
    } else {
        rc = memfd_adopt(fd, (size_t)a->size, true, &a->map, e);
    }
    if (rc != 0) {
        return rc;
    }
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t kept = ((size_t)a->size + page - 1) / page * page;
    if (a->map.size > kept) {
        (void)munmap(a->map.data + kept, a->map.size - kept);
        a->map.size = kept;
    }
    a->map.fd = -1;
    return 0;
}

/* ---- the device's view ---------------------------------------------------------------------- */

/* Runs in the loop's thread or in a thread of libuv's; uses only what the other thread leaves
 * alone. */
static void import(struct arenas *t, struct arena *a)
{
    const struct device *dev = t->device;
    struct err e = ERR_INIT;
    int rc =
        dev->b->memory->import_host(dev->d, a->map.data, a->map.size, &a->found, &a->align, &e);
    if (rc != 0 && rc != ERR_UNSUPPORTED) {
        log_warn("arena %" PRIu64 " cannot be pinned, so copies are slower: %s", a->id, e.text);
    }
}

static void report(const struct arenas *t, struct arena *a)
{
    a->block = a->found;
    if (a->block != NULL && !a->freed && t->ready != NULL) {
        t->ready(t->data, a);
    }
}

static void on_work(uv_work_t *work)
{
    struct arena *a = work->data;
    import(a->table, a);
}

static void next_known(struct arenas *t);

static void leave(struct arenas *t, struct arena *a)
{
    DL_DELETE(t->unknown, a);
    a->table = NULL;
    arena_unuse(t, a);
}

static void on_work_done(uv_work_t *work, int status)
{
    struct arena *a = work->data;
    struct arenas *t = a->table;
    (void)status;
    report(t, a);
    leave(t, a);
    next_known(t);
}

/* If libuv starts no thread, the arena stays unregistered, and copies are slower. */
static void next_known(struct arenas *t)
{
    while (t->unknown != NULL &&
           uv_queue_work(t->loop, &t->unknown->work, on_work, on_work_done) != 0) {
        leave(t, t->unknown);
    }
}

/* Registering memory may pin it, which takes long. */
static void make_known(struct arenas *t, struct arena *a)
{
    const struct backend_memory_ops *ops = t->device->b->memory;
    if (a->e.code != 0) {
        t->ready(t->data, a); /* the front may add it again when there is room */
        return;
    }
    if (ops->import_host == NULL) {
        return;
    }
    if (ops->register_host == NULL) {
        import(t, a);
        report(t, a);
        return;
    }
    a->work.data = a;
    a->table = t;
    arena_use(a);
    DL_APPEND(t->unknown, a);
    if (t->unknown == a) {
        next_known(t);
    }
}

int arena_add(struct arenas *t, uint64_t id, uint64_t size, int fd, struct err *e)
{
    struct arena *a = NULL;
    HASH_FIND(hh, t->by_id, &id, sizeof id, a);
    int rc = a != NULL ? err_set(e, ERR_EXISTS, "arena %" PRIu64, id)
             : HASH_COUNT(t->by_id) >= ARENAS_MAX
                 ? err_set(e, ERR_LIMIT, "a worker has at most %u arenas", ARENAS_MAX)
                 : 0;
    a = rc == 0 ? calloc(1, sizeof *a) : NULL;
    if (rc == 0 && a == NULL) {
        rc = err_set(e, ERR_NOMEM, "no memory for an arena");
    }
    if (rc == 0) {
        a->id = id;
        a->size = size;
        a->map = MEMFD_NONE;
        a->e = ERR_INIT;
        if (map(a, fd, &a->e) != 0) {
            log_warn("arena %" PRIu64 ": %s", id, a->e.text);
        }
        HASH_ADD(hh, t->by_id, id, sizeof a->id, a);
        t->bytes += a->map.size;
        make_known(t, a);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return rc;
}

struct arena *arena_find(const struct arenas *t, uint64_t id, struct err *e)
{
    struct arena *a = NULL;
    HASH_FIND(hh, t->by_id, &id, sizeof id, a);
    if (a == NULL) {
        (void)err_set(e, ERR_BAD_HANDLE, "the worker has no arena %" PRIu64, id);
        return NULL;
    }
    if (a->e.code != 0) {
        (void)err_set(e, a->e.code, "arena %" PRIu64 ": %s", id, a->e.text);
        return NULL;
    }
    return a;
}

int arena_range_use(const struct arenas *t, uint64_t id, uint64_t offset, uint64_t size,
                    struct arena **ret_arena, struct err *e)
{
    struct err why = ERR_INIT;
    struct arena *a = arena_find(t, id, &why);
    if (a == NULL) {
        return err_set(e, why.code, "%s", why.text);
    }
    if (offset > a->size || size > a->size - offset) {
        return err_set(e, ERR_RANGE,
                       "%" PRIu64 " bytes at %" PRIu64 " of arena %" PRIu64 " of %" PRIu64 " bytes",
                       size, offset, id, a->size);
    }
    arena_use(a);
    *ret_arena = a;
    return 0;
}

void arena_free(struct arenas *t, struct arena *a)
{
    HASH_DEL(t->by_id, a);
    a->freed = true;
    if (a->table != NULL && a != t->unknown) { /* The thread has not begun with it. */
        a->uses--;
        DL_DELETE(t->unknown, a);
        a->table = NULL;
    }
    if (a->uses == 0) {
        destroy(t, a);
    }
}

void arena_use(struct arena *a)
{
    a->uses++;
}

void arena_unuse(struct arenas *t, struct arena *a)
{
    a->uses--;
    if (a->uses == 0 && a->freed) {
        destroy(t, a);
    }
}
