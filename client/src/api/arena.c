#include "client/src/api/arena.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/src/api/job.h"
#include "client/src/session/call.h"
#include "client/src/session/enter.h"
#include "client/src/session/error.h"
#include "client/src/session/objects.h"
#include "client/src/session/post.h"
#include "client/src/session/wait.h"
#include "client/src/wire/heap.h"
#include "client/src/wire/shm.h"
#include "common/clock.h"

#define CHUNK_FIRST   (1u << 20) /* bytes of the first arena; the next ones are twice as large */
#define CHUNK_MAX     (256u << 20)
#define CHUNK_KEPT    (4u << 20) /* an empty one up to here is kept for the next request */
#define STAGING_FIRST (4u << 20)
#define STAGING_MAX   (64u << 20) /* of all staging memory of a client */
#define CLAIM_NS      (10 * NS_PER_S)
#define STAGE_NS      (2 * NS_PER_S) /* nobody asked for it */
#define RESTORE_NS    (250 * NS_PER_MS)
#define REFUSED_NS    (1 * NS_PER_S) /* before staging memory is asked for again */

/* ---- the table, by address ----------------------------------------------------------------- */

/* Index of the first arena behind `data`. */
static unsigned place_of(const struct gpud_client *c, const uint8_t *data)
{
    unsigned low = 0;
    unsigned high = c->arena_count;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if ((uintptr_t)c->arenas[middle]->base <= (uintptr_t)data) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct arena *find(const struct gpud_client *c, const void *data, uint64_t bytes)
{
    unsigned i = place_of(c, data);
    struct arena *a = i > 0 ? c->arenas[i - 1] : NULL;
    uint64_t offset = a != NULL ? (uint64_t)((uintptr_t)data - (uintptr_t)a->base) : 0;
    return a != NULL && offset <= a->bytes && bytes <= a->bytes - offset ? a : NULL;
}

static bool table_add(struct gpud_client *c, struct arena *a)
{
    if (c->arena_count == c->arena_room) {
        unsigned room = c->arena_room > 0 ? c->arena_room * 2 : 8;
        struct arena **grown = realloc(c->arenas, room * sizeof(struct arena *));
        if (grown == NULL) {
            return false;
        }
        c->arenas = grown;
        c->arena_room = room;
    }
    unsigned i = place_of(c, a->base);
    memmove(&c->arenas[i + 1], &c->arenas[i], (c->arena_count - i) * sizeof(struct arena *));
    c->arenas[i] = a;
    c->arena_count++;
    return true;
}

static void table_remove(struct gpud_client *c, const struct arena *a)
{
    for (unsigned i = 0; i < c->arena_count; i++) {
        if (c->arenas[i] == a) {
            c->arena_count--;
            memmove(&c->arenas[i], &c->arenas[i + 1],
                    (c->arena_count - i) * sizeof(struct arena *));
            return;
        }
    }
}

/* ---- one arena ----------------------------------------------------------------------------- */

static void memory_release(struct arena *a)
{
    if (a->base != NULL) {
        (void)munmap(a->base, a->bytes);
        a->base = NULL;
    }
    if (a->fd >= 0) {
        (void)close(a->fd);
        a->fd = -1;
    }
    heap_finish(&a->heap);
}

static void arena_destroy(struct object *o)
{
    struct arena *a = (struct arena *)o;
    memory_release(a);
    capbuf_finish(&a->object.recipe);
    free(a);
}

static struct arena *arena_new(enum arena_kind kind, size_t bytes)
{
    struct arena *a = calloc(1, sizeof *a);
    if (a != NULL) {
        a->object.kind = OBJECT_ARENA;
        a->object.destroy = arena_destroy;
        a->object.recipe_kind = MSG_KIND_ARENA_CREATE;
        capbuf_init(&a->object.recipe, 64);
        a->kind = kind;
        a->bytes = bytes;
        a->fd = -1;
    }
    return a;
}

/* Its pages are taken here and now: they are the client's to pay for, and what fails fails here. */
static int map(struct arena *a, struct err *e)
{
    if (a->kind != ARENA_IMPORTED && fallocate(a->fd, 0, 0, (off_t)a->bytes) != 0) {
        return err_errno(e, ERR_NOMEM, "%zu bytes of shared memory", a->bytes);
    }
    void *base = mmap(NULL, a->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, a->fd, 0);
    if (base == MAP_FAILED) {
        return err_errno(e, ERR_NOMEM, "mapping %zu bytes", a->bytes);
    }
    a->base = base;
    return 0;
}

static int map_plain(struct arena *a, struct err *e)
{
    void *base = mmap(NULL, a->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
        return err_errno(e, ERR_NOMEM, "%zu bytes", a->bytes);
    }
    a->base = base;
    return 0;
}

/* Its memory is there, and the daemon has nothing of it: it did not take it after a restart. */
static bool is_dead(const struct arena *a)
{
    return a->fd >= 0 && a->object.daemon == 0;
}

static void tell_free(struct gpud_client *c, uint64_t daemon, uint64_t *ret_seq)
{
    struct msg_arena_free msg = {.arena = daemon};
    (void)client_post(c, &schema_msg_arena_free, &msg, ret_seq, NULL);
}

/* The memory is gone at once; the daemon's name for it stays until requests that have it ended. */
static void arena_give_up(struct gpud_client *c, struct arena *a)
{
    table_remove(c, a);
    memory_release(a);
    uint64_t seq = 0;
    if (a->object.daemon != 0 && !c->closing) {
        tell_free(c, a->object.daemon, &seq);
    }
    if (seq == 0 && c->session.state == SESSION_RESTORE) {
        seq = 1; /* one that is under way points to it: it goes when they may go */
    }
    if (seq != 0) {
        object_give_up(c, &a->object, seq);
    } else {
        object_unlink(c, &a->object);
        arena_destroy(&a->object);
    }
}

/* What another daemon did not take and nobody uses any more. */
static void dead_give_up(struct gpud_client *c)
{
    if (c->session.state == SESSION_RESTORE) {
        return; /* yet another may take it */
    }
    for (unsigned i = c->arena_count; i-- > 0;) {
        struct arena *a = c->arenas[i];
        if (is_dead(a) && a->kind != ARENA_IMPORTED && a->heap.used == 0) {
            arena_give_up(c, a);
        }
    }
}

static int recipe_make(struct arena *a, struct err *e)
{
    struct msg_arena_create msg = {.seq = 1, .ack = 1, .bytes = a->bytes, .import = 1};
    return proto_encode(&schema_msg_arena_create, &msg, &a->object.recipe, e);
}

/* Shows the nonce, without the lock. */
static int claim(struct gpud_client *c, struct bytes nonce, struct arena *a, uint64_t deadline_ns,
                 struct err *e)
{
    char path[sizeof c->session.shm];
    uint8_t own[PROTO_NONCE_BYTES] = {0};
    bool import = a->kind == ARENA_IMPORTED;
    uint64_t patience = a->kind == ARENA_STAGING ? STAGE_NS : CLAIM_NS;
    struct frame_fds given = {.fd = {a->fd}, .count = 1};
    struct frame_fds taken = {.count = 0};
    memcpy(path, c->session.shm, sizeof path);
    memcpy(own, nonce.data, nonce.size < sizeof own ? nonce.size : sizeof own);
    (void)pthread_mutex_unlock(&c->lock);
    int rc = shm_claim(path, bytes_of(own, sizeof own), import ? &given : NULL, import ? 0 : 1,
                       client_sooner(deadline_ns, patience), &taken, e);
    if (rc == 0 && !import) {
        a->fd = taken.fd[0];
        rc = map(a, e);
    }
    (void)pthread_mutex_lock(&c->lock);
    return rc;
}

/* Asks the daemon, and brings the memory here or there. Blocks. */
static int ask(struct gpud_client *c, struct arena *a, uint64_t deadline_ns, struct err *e)
{
    struct msg_arena_create msg = {.bytes = a->bytes, .import = a->kind == ARENA_IMPORTED};
    struct msg_arena told;
    struct message *m = NULL;
    if (c->session.shm[0] == '\0') {
        return err_set(e, ERR_UNSUPPORTED, "the daemon shares no memory over this connection");
    }
    int rc = client_call_until(c, deadline_ns, &schema_msg_arena_create, &msg, CALL_SEQUENCED,
                               &schema_msg_arena, &told, &m, e);
    if (rc != 0) {
        return rc;
    }
    uint64_t epoch = c->session.epoch;
    rc = claim(c, told.nonce, a, deadline_ns, e);
    if (rc == 0 && epoch != c->session.epoch) {
        rc = err_set(e, ERR_STATE, "the daemon restarted meanwhile");
    }
    a->object.daemon = told.arena;
    if (rc != 0 && epoch == c->session.epoch) {
        uint64_t seq = 0;
        tell_free(c, told.arena, &seq);
    }
    message_unref(m);
    return rc;
}

/* Memory with all that belongs to it, in the table. Blocks. */
static int arena_make(struct gpud_client *c, enum arena_kind kind, uint64_t bytes, bool plain,
                      uint64_t deadline_ns, struct arena **ret_arena, struct err *e)
{
    struct arena *a = bytes <= SIZE_MAX / 2 ? arena_new(kind, (size_t)bytes) : NULL;
    if (a == NULL) {
        return err_set(e, ERR_NOMEM, "%llu bytes", (unsigned long long)bytes);
    }
    int rc = recipe_make(a, e);
    rc = rc != 0 ? rc : plain ? map_plain(a, e) : ask(c, a, deadline_ns, e);
    if (rc == 0 && (!heap_init(&a->heap, bytes) || !table_add(c, a))) {
        rc = err_set(e, ERR_NOMEM, "table of arenas");
        uint64_t seq = 0;
        if (a->object.daemon != 0) {
            tell_free(c, a->object.daemon, &seq);
        }
    }
    if (rc != 0) {
        arena_destroy(&a->object);
        return rc;
    }
    object_link(c, &a->object);
    *ret_arena = a;
    return 0;
}

bool arena_restorable(const struct object *o)
{
    return ((const struct arena *)o)->fd >= 0;
}

uint64_t arena_restored(struct gpud_client *c, struct object *o, const struct msg_arena *told,
                        struct err *e)
{
    struct arena *a = (struct arena *)o;
    struct frame_fds given = {.fd = {a->fd}, .count = 1};
    struct frame_fds taken = {.count = 0};
    if (a->fd < 0) {
        (void)err_set(e, ERR_STATE, "it was given up");
        return 0;
    }
    int rc = shm_claim(c->session.shm, told->nonce, &given, 0, ns_add(clock_now_ns(), RESTORE_NS),
                       &taken, e);
    return rc == 0 ? told->arena : 0;
}

void arenas_finish(struct gpud_client *c)
{
    free(c->arenas); /* they are objects: freed with the others */
    c->arenas = NULL;
    c->arena_count = c->arena_room = 0;
}

/* ---- uses of jobs -------------------------------------------------------------------------- */

struct arena *arena_at(const struct gpud_client *c, const void *data, uint64_t bytes)
{
    struct arena *a = bytes > 0 ? find(c, data, bytes) : NULL;
    return a != NULL && a->object.daemon != 0 ? a : NULL;
}

static struct host_use *use_add(struct host_uses *uses, struct arena *a, uint64_t offset,
                                uint64_t bytes, uint32_t arg)
{
    if (uses->count == sizeof uses->use / sizeof uses->use[0]) {
        return NULL;
    }
    struct host_use *u = &uses->use[uses->count++];
    *u = (struct host_use){.arena = a, .offset = offset, .bytes = bytes, .arg = arg};
    return u;
}

bool arena_use_add(struct host_uses *uses, struct arena *a, const void *data, uint64_t bytes,
                   uint32_t arg)
{
    uint64_t offset = (uint64_t)((uintptr_t)data - (uintptr_t)a->base);
    return use_add(uses, a, offset, bytes, arg) != NULL;
}

static bool is_staging(const struct arena *a)
{
    return a->kind == ARENA_STAGING && a->object.daemon != 0 && !a->doomed;
}

static uint64_t staging_alloc(struct gpud_client *c, uint64_t bytes, struct arena **ret_arena)
{
    for (unsigned i = 0; i < c->arena_count; i++) {
        struct arena *a = c->arenas[i];
        uint64_t offset = is_staging(a) ? heap_alloc(&a->heap, bytes) : HEAP_NONE;
        if (offset != HEAP_NONE) {
            *ret_arena = a;
            return offset;
        }
    }
    return HEAP_NONE;
}

bool arena_stage(struct gpud_client *c, struct host_uses *uses, void *data, uint64_t bytes,
                 uint32_t access, uint32_t arg)
{
    struct arena *a = NULL;
    uint64_t offset = bytes >= STAGE_MIN ? staging_alloc(c, bytes, &a) : HEAP_NONE;
    if (offset == HEAP_NONE) {
        bool wished = bytes >= STAGE_MIN && bytes <= PROTO_INLINE_MAX && bytes > c->stage_wish;
        c->stage_wish = wished ? bytes : c->stage_wish;
        return false;
    }
    struct host_use *u = use_add(uses, a, offset, bytes, arg);
    if (u == NULL) {
        (void)heap_free(&a->heap, offset);
        return false;
    }
    u->staged = true;
    u->copy_to = (access & GPUD_OUT) != 0 ? data : NULL;
    if ((access & GPUD_IN) != 0) {
        memcpy(a->base + offset, data, (size_t)bytes);
    }
    return true;
}

/* How large the next arena for so many bytes is: as large as all together, so that there are few.
 * 0: there would be too much. */
static uint64_t staging_size(const struct gpud_client *c, uint64_t bytes)
{
    uint64_t all = 0;
    uint64_t wanted = STAGING_FIRST;
    for (unsigned i = 0; i < c->arena_count; i++) {
        const struct arena *a = c->arenas[i];
        all += a->kind == ARENA_STAGING && !is_dead(a) ? a->bytes : 0;
    }
    uint64_t taken = all + c->stage_making;
    uint64_t left = taken < STAGING_MAX ? STAGING_MAX - taken : 0;
    while (bytes <= left && wanted <= left && (wanted < bytes || wanted < all)) {
        wanted *= 2;
    }
    return bytes <= left && wanted <= left ? wanted : 0;
}

void arena_stage_prepare(struct gpud_client *c, uint64_t bytes, uint64_t deadline_ns)
{
    struct arena *a = NULL;
    struct err e = ERR_INIT;
    uint64_t offset = staging_alloc(c, bytes, &a);
    if (offset != HEAP_NONE) {
        (void)heap_free(&a->heap, offset);
        return;
    }
    dead_give_up(c);
    uint64_t wanted = staging_size(c, bytes);
    bool refused = c->stage_after_ns != 0 && clock_now_ns() < c->stage_after_ns;
    if (c->closing || c->session.shm[0] == '\0' || refused || wanted == 0) {
        return;
    }
    c->stage_making += wanted;
    if (arena_make(c, ARENA_STAGING, wanted, false, deadline_ns, &a, &e) != 0) {
        c->stage_after_ns = clock_now_ns() + REFUSED_NS;
    }
    c->stage_making -= wanted;
}

void arena_stage_wished(struct gpud_client *c)
{
    uint64_t bytes = c->stage_wish;
    c->stage_wish = 0;
    if (bytes > 0) {
        arena_stage_prepare(c, bytes, client_sooner(client_deadline(c), STAGE_NS));
    }
}

bool arena_has_staging(const struct gpud_client *c)
{
    for (unsigned i = 0; i < c->arena_count; i++) {
        if (is_staging(c->arenas[i])) {
            return true;
        }
    }
    return false;
}

void arena_uses_end(struct gpud_client *c, const struct host_use *uses, unsigned count, bool ok,
                    bool unsure)
{
    for (unsigned i = 0; i < count; i++) {
        const struct host_use *u = &uses[i];
        if (!u->staged) {
            continue;
        }
        if (ok && u->copy_to != NULL) {
            memcpy(u->copy_to, u->arena->base + u->offset, (size_t)u->bytes);
        }
        u->arena->doomed = u->arena->doomed || unsure;
        (void)heap_free(&u->arena->heap, u->offset);
        if ((u->arena->doomed || is_dead(u->arena)) && u->arena->heap.used == 0) {
            arena_give_up(c, u->arena);
        }
    }
}

/* ---- the user's memory --------------------------------------------------------------------- */

/* The chunk that a request of this size starts: twice the largest so far, so that there are few. */
static uint64_t chunk_bytes(const struct gpud_client *c, uint64_t bytes)
{
    uint64_t wanted = CHUNK_FIRST;
    for (unsigned i = 0; i < c->arena_count; i++) {
        const struct arena *a = c->arenas[i];
        if (a->kind == ARENA_USER && a->bytes * 2 > wanted) {
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
        bool fits = a->kind == ARENA_USER && is_plain(a) == plain && !is_dead(a);
        uint64_t offset = fits ? heap_alloc(&a->heap, bytes) : HEAP_NONE;
        if (offset != HEAP_NONE) {
            *ret_arena = a;
            return offset;
        }
    }
    return HEAP_NONE;
}

/* A chunk with room for so many bytes. Blocks. */
static int chunk_make(struct gpud_client *c, uint64_t bytes, bool plain, uint64_t deadline_ns,
                      struct arena **ret_arena, struct err *e)
{
    int rc = arena_make(c, ARENA_USER, chunk_bytes(c, bytes), plain, deadline_ns, ret_arena, e);
    if (rc == ERR_LIMIT) { /* perhaps there is room for what was asked for */
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
        return err_set(e, ERR_NOMEM, "%llu bytes", (unsigned long long)bytes);
    }
    uint64_t offset = user_alloc(c, rounded, plain, &a);
    int rc = 0;
    if (offset == HEAP_NONE) {
        dead_give_up(c);
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
        rc = err_set(e, ERR_NOMEM, "%llu bytes", (unsigned long long)bytes);
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
                                : err_set(&e, ERR_INVALID, "no place for the memory");
        if (rc != 0) {
            (void)err_wrap(&e, "host memory");
        }
        client_leave(client);
    }
    return error_report(rc, &e);
}

/* One that does not fit is refused by the daemon; here only what cannot be mapped. */
static int import(struct gpud_client *c, int memfd, void **ret_memory, size_t *ret_bytes,
                  struct err *e)
{
    struct stat st;
    struct arena *a = NULL;
    if (fstat(memfd, &st) != 0 || st.st_size <= 0) {
        return err_set(e, ERR_INVALID, "descriptor %d is no memory with a size", memfd);
    }
    a = arena_new(ARENA_IMPORTED, (size_t)st.st_size);
    if (a == NULL) {
        return err_set(e, ERR_NOMEM, "arena");
    }
    a->fd = fcntl(memfd, F_DUPFD_CLOEXEC, 0);
    int rc = a->fd < 0 ? err_errno(e, ERR_IO, "duplicating a descriptor") : recipe_make(a, e);
    rc = rc == 0 ? ask(c, a, client_deadline(c), e) : rc;
    bool told = rc == 0;
    rc = rc == 0 ? map(a, e) : rc;
    if (rc == 0 && !table_add(c, a)) {
        rc = err_set(e, ERR_NOMEM, "table of arenas");
    }
    if (rc != 0) {
        uint64_t seq = 0;
        if (told) {
            tell_free(c, a->object.daemon, &seq);
        }
        arena_destroy(&a->object);
        return rc;
    }
    object_link(c, &a->object);
    *ret_memory = a->base;
    if (ret_bytes != NULL) {
        *ret_bytes = a->bytes;
    }
    return 0;
}

int gpud_host_import(gpud_client *client, int memfd, void **ret_memory, size_t *ret_bytes)
{
    struct err e = ERR_INIT;
    int rc = client_enter(client, &e);
    if (rc == 0) {
        rc = ret_memory != NULL ? import(client, memfd, ret_memory, ret_bytes, &e)
                                : err_set(&e, ERR_INVALID, "no place for the memory");
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

/* Does no job that has not ended use it? */
static bool unused(void *arg)
{
    const struct range_wait *w = arg;
    for (const struct gpud_job *j = w->client->jobs; j != NULL; j = j->next) {
        for (unsigned i = 0; !j->ended && i < j->use_count; i++) {
            const struct host_use *u = &j->uses[i];
            if (u->arena == w->arena && u->offset < w->offset + w->bytes &&
                w->offset < u->offset + u->bytes) {
                return false;
            }
        }
    }
    return true;
}

/* An empty chunk goes back, unless it is a small one and the only one, and good for more. */
static void chunk_settle(struct gpud_client *c, struct arena *a)
{
    unsigned others = 0;
    for (unsigned i = 0; i < c->arena_count; i++) {
        others += c->arenas[i] != a && c->arenas[i]->kind == ARENA_USER;
    }
    if (a->heap.used == 0 && (is_dead(a) || others > 0 || a->bytes > CHUNK_KEPT)) {
        arena_give_up(c, a);
    }
}

static int host_free(struct gpud_client *c, void *memory, struct err *e)
{
    struct arena *a = find(c, memory, 1);
    uint64_t offset = a != NULL ? (uint64_t)((uint8_t *)memory - a->base) : 0;
    uint64_t bytes = 0;
    if (a != NULL && a->kind != ARENA_STAGING) {
        bytes = a->kind == ARENA_USER ? heap_size(&a->heap, offset) : offset == 0 ? a->bytes : 0;
    }
    if (bytes == 0) {
        return err_set(e, ERR_INVALID, "memory at %p was not handed out, or is free already",
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
