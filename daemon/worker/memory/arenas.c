#include "daemon/worker/memory/arenas.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/log.h"

#define QUEUE_USES 1u /* of an arena that is being registered and that no job uses */

void arenas_init(struct arenas *t, struct device *device, struct registrar *registrar,
                 arena_ready_fn ready, void *data)
{
    *t = (struct arenas){.device = device, .registrar = registrar, .ready = ready, .data = data};
}

/* ---- the end ---------------------------------------------------------------------------------*/

static void release(void *item)
{
    struct arena *a = item;
    registrar_remove(a->table->registrar, &a->registration, a->tenant);
}

static void gone(struct arena *a)
{
    a->table->bytes -= a->registration.size;
    free(a);
}

static void on_removed(struct registration *x)
{
    struct arena *a = x->owner;
    if (!registration_left(x)) {
        gone(a);
    } else if (registration_known(x)) { /* what came meanwhile may have to end first */
        release_again(a->table->releases, &a->release, x->size - x->at, release, a);
    } else {
        release(a);
    }
}

static void destroy(struct arenas *t, struct arena *a)
{
    struct registration *x = &a->registration;
    if (a->block != NULL) {
        t->device->b->memory->release_host(t->device->d, a->block);
    }
    x->done = on_removed;
    if (!registration_left(x)) {
        gone(a);
    } else { /* only registered memory has to wait */
        release_put(registration_known(x) ? t->releases : NULL, &a->release, x->size, release, a);
    }
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

static void import(struct arenas *t, struct arena *a, struct err *e)
{
    const struct device *dev = t->device;
    int rc = dev->b->memory->import_host(dev->d, a->map.data, a->map.size, &a->block, &a->align, e);
    if (rc == 0 && !a->freed && t->ready != NULL) {
        t->ready(t->data, a);
    } else if (rc == ERR_UNSUPPORTED) {
        err_init(e);
    }
}

static void warn(const struct arena *a, const struct err *e)
{
    if (e->code != 0 && e->code != ERR_CANCELLED) {
        log_say(LOG_NOT_PINNED, "arena %" PRIu64 " cannot be pinned, so copies are slower: %s",
                a->id, e->text);
    }
}

static void on_registered(struct registration *x)
{
    struct arena *a = x->owner;
    struct arenas *t = a->table;
    a->queued = false;
    if (x->e.code == 0) {
        import(t, a, &x->e);
    }
    warn(a, &x->e);
    arena_unuse(t, a);
}

/* Registering memory may pin it, which takes long. */
static void make_known(struct arenas *t, struct arena *a)
{
    const struct backend_memory_ops *ops = t->device->b->memory;
    struct err e = ERR_INIT;
    if (a->e.code != 0) {
        t->ready(t->data, a); /* the front may add it again when there is room */
        return;
    }
    if (ops->import_host == NULL) {
        return;
    }
    if (ops->register_host == NULL) {
        import(t, a, &e);
        warn(a, &e);
        return;
    }
    a->queued = true;
    arena_use(a);
    registrar_add(t->registrar, &a->registration, a->tenant);
}

int arena_add(struct arenas *t, uint64_t id, uint64_t size, uint64_t tenant, int fd, struct err *e)
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
        HASH_ADD(hh, t->by_id, id, sizeof a->id, a);
        if (!HASH_ENTERED(a->hh)) {
            free(a);
            rc = err_set(e, ERR_NOMEM, "no memory for an arena");
        }
    }
    if (rc == 0) {
        a->size = size;
        a->tenant = tenant;
        a->table = t;
        a->map = MEMFD_NONE;
        a->e = ERR_INIT;
        if (map(a, fd, &a->e) != 0) {
            log_say(LOG_ARENA_FAILED, "arena %" PRIu64 ": %s", id, a->e.text);
        }
        a->registration = (struct registration){
            .data = a->map.data, .size = a->map.size, .done = on_registered, .owner = a};
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
    /* a job of a former front may wait for the registration */
    if (a->queued && a->uses == QUEUE_USES) {
        arena_use(a); /* until here: the registrar's use may end at once */
        registrar_stop(t->registrar, &a->registration);
        a->uses--;
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
