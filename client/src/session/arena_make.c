#include "client/src/session/arena_make.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/src/objects/arena.h"
#include "client/src/objects/objects.h"
#include "client/src/session/call.h"
#include "client/src/wire/heap.h"
#include "client/src/wire/shm.h"
#include "common/clock.h"

#define STAGING_FIRST (4u << 20)
#define STAGING_MAX   (64u << 20) /* of all staging memory of a client */
#define CLAIM_NS      (10 * NS_PER_S)
#define STAGE_NS      (2 * NS_PER_S) /* for staging memory, which no caller requested */
#define REFUSED_NS    (1 * NS_PER_S) /* pause after staging memory was refused */

/* Allocates all pages now, so that they are charged to this process and a failure shows here. */
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

void arena_closed_give_up(struct gpud_client *c)
{
    if (c->session.state == SESSION_RESTORE) {
        return; /* the daemon that is being restored may take the memory */
    }
    for (unsigned i = c->arena_count; i-- > 0;) {
        struct arena *a = c->arenas[i];
        if (arena_is_closed(a) && a->kind != ARENA_IMPORTED && a->heap.used == 0) {
            arena_give_up(c, a);
        }
    }
}

/* Exchanges the nonce for the memory, or passes the memory; releases the lock meanwhile. */
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

/* Requests the arena; fetches the daemon's memory, or passes it the caller's. Blocks. */
static int ask(struct gpud_client *c, struct arena *a, uint64_t deadline_ns, struct err *e)
{
    struct msg_arena_create msg = {.bytes = a->bytes, .import = a->kind == ARENA_IMPORTED};
    struct msg_arena reply;
    struct message *m = NULL;
    if (c->session.shm[0] == '\0') {
        return err_set(e, ERR_UNSUPPORTED, "the daemon shares no memory over this connection");
    }
    int rc = client_call_until(c, deadline_ns, &schema_msg_arena_create, &msg, CALL_SEQUENCED,
                               &schema_msg_arena, &reply, &m, e);
    if (rc != 0) {
        return rc;
    }
    uint64_t epoch = c->session.epoch;
    rc = claim(c, reply.nonce, a, deadline_ns, e);
    if (rc == 0 && epoch != c->session.epoch) {
        rc = err_set(e, ERR_STATE, "the daemon restarted meanwhile");
    }
    a->object.daemon = reply.arena;
    if (rc != 0 && epoch == c->session.epoch) {
        uint64_t seq = 0;
        arena_post_free(c, reply.arena, &seq);
    }
    message_unref(m);
    return rc;
}

int arena_make(struct gpud_client *c, enum arena_kind kind, uint64_t bytes, bool plain,
               uint64_t deadline_ns, struct arena **ret_arena, struct err *e)
{
    struct arena *a = bytes <= SIZE_MAX / 2 ? arena_new(kind, (size_t)bytes) : NULL;
    if (a == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for %llu bytes", (unsigned long long)bytes);
    }
    int rc = arena_recipe_make(a, e);
    rc = rc != 0 ? rc : plain ? map_plain(a, e) : ask(c, a, deadline_ns, e);
    if (rc == 0 && (!heap_init(&a->heap, bytes) || !arena_table_add(c, a))) {
        rc = err_set(e, ERR_NOMEM, "no memory for a table of arenas");
        uint64_t seq = 0;
        if (a->object.daemon != 0) {
            arena_post_free(c, a->object.daemon, &seq);
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

int arena_import(struct gpud_client *c, int memfd, void **ret_memory, size_t *ret_bytes,
                 struct err *e)
{
    struct stat st;
    struct arena *a = NULL;
    if (fstat(memfd, &st) != 0 || st.st_size <= 0) {
        return err_set(e, ERR_INVALID, "descriptor %d is no memory, or has no size", memfd);
    }
    a = arena_new(ARENA_IMPORTED, (size_t)st.st_size);
    if (a == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for an arena");
    }
    a->fd = fcntl(memfd, F_DUPFD_CLOEXEC, 0);
    int rc = a->fd < 0 ? err_errno(e, ERR_IO, "duplicating a descriptor") : arena_recipe_make(a, e);
    rc = rc == 0 ? ask(c, a, client_deadline(c), e) : rc;
    bool known = rc == 0;
    rc = rc == 0 ? map(a, e) : rc;
    if (rc == 0 && !arena_table_add(c, a)) {
        rc = err_set(e, ERR_NOMEM, "no memory for a table of arenas");
    }
    if (rc != 0) {
        uint64_t seq = 0;
        if (known) {
            arena_post_free(c, a->object.daemon, &seq);
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

/* ---- staging ------------------------------------------------------------------------------- */

/* Bytes of the next arena for `bytes`: as large as all arenas together, so that there are few.
 * 0: the sum would exceed the limit. */
static uint64_t staging_size(const struct gpud_client *c, uint64_t bytes)
{
    uint64_t all = 0;
    uint64_t wanted = STAGING_FIRST;
    for (unsigned i = 0; i < c->arena_count; i++) {
        const struct arena *a = c->arenas[i];
        all += a->kind == ARENA_STAGING && !arena_is_dead(a) ? a->bytes : 0;
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
    uint64_t offset = arena_staging_alloc(c, bytes, &a);
    if (offset != HEAP_NONE) {
        (void)heap_free(&a->heap, offset);
        return;
    }
    arena_closed_give_up(c);
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
