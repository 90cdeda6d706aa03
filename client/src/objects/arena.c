#include "client/src/objects/arena.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/src/objects/objects.h"
#include "client/src/objects/post.h"
#include "client/src/wire/heap.h"
#include "client/src/wire/shm.h"
#include "common/clock.h"

#define RESTORE_NS (250 * NS_PER_MS)
#define AGAIN_NS   (100 * NS_PER_MS) /* the first pause; each next one is longer (link/send.h) */

/* ---- the table, by address ----------------------------------------------------------------- */

/* Index of the first arena after `data`. */
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

struct arena *arena_find(const struct gpud_client *c, const void *data, uint64_t bytes)
{
    unsigned i = place_of(c, data);
    struct arena *a = i > 0 ? c->arenas[i - 1] : NULL;
    uint64_t offset = a != NULL ? (uint64_t)((uintptr_t)data - (uintptr_t)a->base) : 0;
    return a != NULL && offset <= a->bytes && bytes <= a->bytes - offset ? a : NULL;
}

bool arena_table_add(struct gpud_client *c, struct arena *a)
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

void arena_destroy(struct object *o)
{
    struct arena *a = (struct arena *)o;
    memory_release(a);
    object_finish(o);
    free(a);
}

struct arena *arena_new(enum arena_kind kind, size_t bytes)
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

bool arena_is_dead(const struct arena *a)
{
    return a->fd >= 0 && a->object.daemon == 0;
}

bool arena_is_closed(const struct arena *a)
{
    return a->doomed || arena_is_dead(a);
}

void arena_post_free(struct gpud_client *c, uint64_t daemon, uint64_t *ret_seq)
{
    struct msg_arena_free msg = {.arena = daemon};
    (void)client_post(c, &schema_msg_arena_free, &msg, ret_seq, NULL);
}

void arena_give_up(struct gpud_client *c, struct arena *a)
{
    table_remove(c, a);
    memory_release(a);
    uint64_t seq = 0;
    if (a->object.daemon != 0 && !c->closing) {
        arena_post_free(c, a->object.daemon, &seq);
    }
    if (seq == 0 && c->session.state == SESSION_RESTORE) {
        seq = 1; /* a request of restoring may point to it: reaped after restoring */
    }
    if (seq != 0) {
        object_give_up(c, &a->object, seq);
    } else {
        object_unlink(c, &a->object);
        arena_destroy(&a->object);
    }
}

int arena_recipe_make(struct arena *a, struct err *e)
{
    struct msg_arena_create msg = {.seq = 1, .ack = 1, .bytes = a->bytes, .import = 1};
    return proto_encode(&schema_msg_arena_create, &msg, &a->object.recipe, e);
}

bool arena_restorable(const struct object *o)
{
    return ((const struct arena *)o)->fd >= 0;
}

uint64_t arena_restored(struct gpud_client *c, struct object *o, const struct msg_arena *reply,
                        struct err *e)
{
    struct arena *a = (struct arena *)o;
    struct frame_fds given = {.fd = {a->fd}, .count = 1};
    struct frame_fds taken = {.count = 0};
    if (a->fd < 0) {
        (void)err_set(e, ERR_STATE, "the arena was released");
        return 0;
    }
    int rc = shm_claim(c->session.shm, reply->nonce, &given, 0, ns_add(clock_now_ns(), RESTORE_NS),
                       &taken, e);
    if (rc == 0) {
        return reply->arena;
    }
    e->retry_after_ns = AGAIN_NS;
    if (a->vain_count < ARENA_TRIES) {
        a->vain[a->vain_count++] = reply->arena;
    }
    return 0;
}

bool arena_comes_again(const struct object *o, const struct err *failed)
{
    const struct arena *a = (const struct arena *)o;
    bool later = failed->code == ERR_TIMEOUT || failed->code == ERR_BUSY;
    return later && a->fd >= 0 && a->vain_count < ARENA_TRIES;
}

void arena_forget_vain(struct object *o)
{
    ((struct arena *)o)->vain_count = 0;
}

void arenas_free_vain(struct gpud_client *c)
{
    for (struct object *o = c->objects; o != NULL; o = o->next) {
        struct arena *a = o->kind == OBJECT_ARENA ? (struct arena *)o : NULL;
        while (a != NULL && a->vain_count > 0) {
            uint64_t seq = 0;
            arena_post_free(c, a->vain[--a->vain_count], &seq);
        }
    }
}

void arenas_finish(struct gpud_client *c)
{
    free(c->arenas); /* the arenas themselves are freed with the other objects */
    c->arenas = NULL;
    c->arena_count = c->arena_room = 0;
}

/* ---- uses of jobs -------------------------------------------------------------------------- */

struct arena *arena_at(const struct gpud_client *c, const void *data, uint64_t bytes)
{
    struct arena *a = bytes > 0 ? arena_find(c, data, bytes) : NULL;
    return a != NULL && a->object.daemon != 0 ? a : NULL;
}

static struct host_use *use_add(struct host_uses *uses, struct arena *a, uint64_t offset,
                                uint64_t bytes, int access, uint32_t arg)
{
    if (uses->count == sizeof uses->use / sizeof uses->use[0]) {
        return NULL;
    }
    struct host_use *u = &uses->use[uses->count++];
    *u = (struct host_use){
        .arena = a, .offset = offset, .bytes = bytes, .access = access, .arg = arg};
    return u;
}

bool arena_use_add(struct host_uses *uses, struct arena *a, const void *data, uint64_t bytes,
                   int access, uint32_t arg)
{
    uint64_t offset = (uint64_t)((uintptr_t)data - (uintptr_t)a->base);
    return use_add(uses, a, offset, bytes, access, arg) != NULL;
}

static bool overlap(const struct host_use *a, const struct host_use *b)
{
    return a->arena == b->arena && a->offset < b->offset + b->bytes &&
           b->offset < a->offset + a->bytes;
}

bool arena_uses_change(const struct host_use *uses, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        for (unsigned k = 0; k < count; k++) {
            if ((uses[i].access & GPUD_IN) != 0 && (uses[k].access & GPUD_OUT) != 0 &&
                overlap(&uses[i], &uses[k])) {
                return true;
            }
        }
    }
    return false;
}

static bool is_staging(const struct arena *a)
{
    return a->kind == ARENA_STAGING && a->object.daemon != 0 && !arena_is_closed(a);
}

uint64_t arena_staging_alloc(struct gpud_client *c, uint64_t bytes, struct arena **ret_arena)
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
    uint64_t offset = bytes >= STAGE_MIN ? arena_staging_alloc(c, bytes, &a) : HEAP_NONE;
    if (offset == HEAP_NONE) {
        bool wished = bytes >= STAGE_MIN && bytes <= PROTO_INLINE_MAX && bytes > c->stage_wish;
        c->stage_wish = wished ? bytes : c->stage_wish;
        return false;
    }
    struct host_use *u = use_add(uses, a, offset, bytes, (int)access, arg);
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
        u->arena->doomed = u->arena->doomed || unsure;
        if (!u->staged) {
            continue;
        }
        if (ok && u->copy_to != NULL) {
            memcpy(u->copy_to, u->arena->base + u->offset, (size_t)u->bytes);
        }
        (void)heap_free(&u->arena->heap, u->offset);
        if (arena_is_closed(u->arena) && u->arena->heap.used == 0) {
            arena_give_up(c, u->arena);
        }
    }
}
