#include "daemon/worker/arenas.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/log.h"

void arenas_init(struct arenas *t)
{
    *t = (struct arenas){.by_id = NULL};
}

static void destroy(struct arenas *t, struct arena *a)
{
    (void)t;
    memfd_finish(&a->map);
    free(a);
}

void arenas_finish(struct arenas *t)
{
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

/* A mapping is enough: descriptors are few. What the file has beyond the arena is not kept. */
static int map(struct arena *a, int fd, struct err *e)
{
    int rc = a->size == 0 || a->size > INT64_MAX
                 ? err_set(e, ERR_PROTOCOL, "%" PRIu64 " bytes", a->size)
                 : memfd_adopt(fd, (size_t)a->size, true, &a->map, e);
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

int arena_add(struct arenas *t, uint64_t id, uint64_t size, int fd, struct err *e)
{
    struct arena *a = NULL;
    HASH_FIND(hh, t->by_id, &id, sizeof id, a);
    int rc = a != NULL ? err_set(e, ERR_EXISTS, "arena %" PRIu64, id)
             : HASH_COUNT(t->by_id) >= ARENAS_MAX
                 ? err_set(e, ERR_LIMIT, "a worker holds at most %u arenas", ARENAS_MAX)
                 : 0;
    a = rc == 0 ? calloc(1, sizeof *a) : NULL;
    if (rc == 0 && a == NULL) {
        rc = err_set(e, ERR_NOMEM, "arena");
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
    }
    (void)close(fd);
    return rc;
}

struct arena *arena_find(const struct arenas *t, uint64_t id, struct err *e)
{
    struct arena *a = NULL;
    HASH_FIND(hh, t->by_id, &id, sizeof id, a);
    if (a == NULL) {
        (void)err_set(e, ERR_BAD_HANDLE, "worker holds no arena %" PRIu64, id);
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
