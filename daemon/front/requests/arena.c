/* Requests for arenas, and the tickets of their descriptors. */
#include <utlist.h>

#include "common/log.h"
#include "daemon/front/clients/shm.h"
#include "daemon/front/memory/arenas.h"
#include "daemon/front/requests/requests.h"
#include "proto/codec.h"

/* ---- limits -------------------------------------------------------------------------------- */

static void charge(struct arena *a, struct session *s)
{
    a->owner = s;
    a->tenant = s->tenant;
    DL_APPEND2(s->own_arenas, a, owned_prev, owned_next);
    s->arenas++;
    s->tenant->held[TENANT_ARENAS]++;
    s->arena_bytes += a->bytes;
    s->tenant->arena_bytes += a->bytes;
}

static int check_room(const struct front *f, const struct session *s, uint64_t bytes, struct err *e)
{
    const struct config *c = &f->config;
    if (bytes == 0 || bytes > INT64_MAX) {
        return err_set(e, ERR_INVALID, "an arena cannot have %llu bytes",
                       (unsigned long long)bytes);
    }
    if (s->arenas >= c->arenas_max) {
        return err_set(e, ERR_LIMIT,
                       "this session has %u arenas, at most %llu ([jobs] arenas_max): free some",
                       s->arenas, (unsigned long long)c->arenas_max);
    }
    int rc = tenant_check(s->tenant, TENANT_ARENAS, c->tenant_arenas_max, e);
    if (rc != 0) {
        return rc;
    }
    if (s->arena_bytes > c->session_arena_bytes ||
        bytes > c->session_arena_bytes - s->arena_bytes) {
        return err_set(e, ERR_LIMIT,
                       "%llu more bytes, arenas of this session have %llu of %llu ([jobs] "
                       "arena_bytes_max): free some",
                       (unsigned long long)bytes, (unsigned long long)s->arena_bytes,
                       (unsigned long long)c->session_arena_bytes);
    }
    uint64_t all = s->tenant->arena_bytes;
    uint64_t most = s->tenant->limits.arena_bytes;
    most = most == UINT64_MAX ? c->tenant_arena_bytes : most;
    if (all > most || bytes > most - all) {
        return err_set(
            e, ERR_LIMIT,
            "%llu more bytes, arenas of tenant %s have %llu of %llu (arena_bytes_max): free some",
            (unsigned long long)bytes, s->tenant->name, (unsigned long long)all,
            (unsigned long long)most);
    }
    return 0;
}

/* ---- tickets ------------------------------------------------------------------------------- */

static int give_memory(void *data, struct frame_fds *given, struct frame_fds *ret_fds,
                       struct err *e)
{
    struct arena *a = data;
    (void)given;
    (void)e;
    ret_fds->fd[0] = a->fd;
    ret_fds->count = 1;
    return 0;
}

static int take_memory(void *data, struct frame_fds *given, struct frame_fds *ret_fds,
                       struct err *e)
{
    struct arena *a = data;
    (void)ret_fds;
    int rc = arena_check_memory(a, given->fd[0], e);
    if (rc != 0) {
        arena_drop(a->front, a);
        return err_wrap(e, "arena");
    }
    a->fd = given->fd[0];
    given->fd[0] = -1;
    return 0;
}

/* Drops the arena: a client that did not show its ticket has no memory to use, or never got the
 * handle. */
static void on_expired(void *data)
{
    struct arena *a = data;
    log_debug("arena %#llx: its client did not fetch its memory", (unsigned long long)a->handle);
    arena_drop(a->front, a);
}

static int offer(struct front *f, struct arena *a, bool import, uint8_t *ret_nonce, struct err *e)
{
    struct ticket t = {.uid = a->owner->key.uid,
                       .listener = a->owner->key.listener,
                       .give = import ? 1 : 0,
                       .claim = import ? take_memory : give_memory,
                       .expired = on_expired,
                       .data = a};
    return shm_offer(f->shm, &t, ret_nonce, e);
}

/* ---- requests ------------------------------------------------------------------------------ */

static int make(struct request_context *c, const struct msg_arena_create *m,
                struct arena **ret_arena, struct err *e)
{
    struct front *f = c->f;
    struct arena *a = arena_create(m->bytes);
    if (a == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for an arena");
    }
    int rc = m->import != 0 ? 0 : arena_make_memory(a, e);
    rc = rc == 0 ? idmap_enter(&f->arenas, a, "arenas", "free some", &a->handle, e) : rc;
    if (rc != 0) {
        arena_destroy(a);
        return rc;
    }
    a->front = f;
    charge(a, c->s);
    *ret_arena = a;
    return 0;
}

int request_arena_create(struct request_context *c, struct err *e)
{
    struct front *f = c->f;
    const struct msg_arena_create *m = &c->r->msg.arena_create;
    struct arena *a = NULL;
    uint8_t nonce[PROTO_NONCE_BYTES];
    if (!c->s->client.local || f->shm == NULL) {
        return err_set(e, ERR_UNSUPPORTED, "memory is shared over a local connection only");
    }
    int rc = check_room(f, c->s, m->bytes, e);
    if (rc == 0) {
        rc = make(c, m, &a, e);
    }
    if (rc == 0) {
        rc = offer(f, a, m->import != 0, nonce, e);
    }
    if (rc == 0) {
        struct msg_arena reply = {
            .arena = a->handle, .bytes = a->bytes, .nonce = bytes_of(nonce, sizeof nonce)};
        rc = proto_encode(&schema_msg_arena, &reply, c->out, e);
    }
    if (rc != 0 && a != NULL) {
        arena_drop(f, a);
    }
    return rc;
}

int request_arena_free(struct request_context *c, struct err *e)
{
    uint64_t handle = c->r->msg.arena_free.arena;
    struct arena *a = idmap_get(&c->f->arenas, handle);
    struct msg_done done = {0};
    bool freed = a == NULL && idmap_freed_of(&c->f->arenas, handle, c->s->id);
    if (!freed && (a == NULL || a->owner != c->s)) {
        return session_lacks(c->s, &c->f->arenas, handle, "arena", e);
    }
    if (a != NULL) { /* else it was freed before, or ended with an earlier daemon */
        arena_drop(c->f, a);
    }
    return proto_encode(&schema_msg_done, &done, c->out, e);
}
