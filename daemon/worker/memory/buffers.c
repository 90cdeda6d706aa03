#include "daemon/worker/memory/buffers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "common/hash.h"
#include "common/saturate.h"
#include "daemon/worker/memory/shortage.h"

void buffers_init(struct buffers *t, struct memory *memory, struct modules *modules)
{
    *t = (struct buffers){.memory = memory, .modules = modules};
}

void buffer_unseal(struct buffers *t, struct buffer *b)
{
    if (b->sealed_fd >= 0) {
        (void)close(b->sealed_fd);
        b->sealed_fd = -1;
    }
    if (b->lent) {
        b->lent = false;
        t->lent -= b->size;
        memory_spilled(t->memory, b->lent_for, b->size, false);
    }
}

void buffer_lend(struct buffers *t, struct buffer *b)
{
    b->lent = true;
    b->lent_for = memory_number(t->memory, b->tenant);
    t->lent += b->size;
    memory_spilled(t->memory, b->lent_for, b->size, true);
}

int buffer_whole(const struct buffer *b, struct err *e)
{
    return b->loss == BUFFER_WHOLE
               ? 0
               : err_set(e, ERR_BUFFER_LOST,
                         "the content of buffer %" PRIu64 " was lost in a failed copy", b->id);
}

bool buffer_away(const struct buffer *b)
{
    return b->size > 0 && b->piece.ref.block == NULL;
}

bool buffer_keeps_itself(const struct buffer *b)
{
    return b->sealed_fd >= 0 || b->content != BUFFER_BYTES;
}

uint64_t buffer_tag(const struct buffer *b)
{
    return (uint64_t)(uintptr_t)b;
}

static void list(struct buffers *t, struct buffer *b)
{
    bool fits = b->pins == 0 && b->piece.ref.block != NULL && b->piece.kind == MEMORY_POOL;
    if (fits && !b->listed) {
        DL_APPEND2(t->cold, b, cold_prev, cold_next);
    } else if (!fits && b->listed) {
        DL_DELETE2(t->cold, b, cold_prev, cold_next);
    }
    t->memory->changes += b->listed != fits;
    b->listed = fits;
}

void buffer_pin(struct buffers *t, struct buffer *b)
{
    b->pins++;
    list(t, b);
}

void buffer_unpin(struct buffers *t, struct buffer *b)
{
    b->pins--;
    list(t, b);
}

static void promise(struct buffers *t, struct buffer *b, bool promised)
{
    if (promised && !b->promised) {
        b->promised_to = memory_promise(t->memory, b->tenant, b->size, b->managed);
    } else if (!promised && b->promised) {
        memory_unpromise(t->memory, b->promised_to, b->size, b->managed);
    }
    b->promised = promised;
}

/* Is the buffer within its tenant's guarantee? Then its memory comes with a job. It need not be
 * free in one piece now: buffers may have to move first, or streams to advance. */
static bool assure(struct buffers *t, struct buffer *b)
{
    struct pool_account a;
    unsigned number = memory_number(t->memory, b->tenant);
    struct memory_tenant *x = b->tenant != 0 ? t->memory->numbered[number] : NULL;
    pool_account(t->memory->pool, number, &a);
    if (x == NULL || b->size > t->most) {
        return false;
    }
    uint64_t has = sat_sub(a.mapped + a.reserved + x->spilled + x->assured, x->ending);
    if (sat_add(has, b->size) > a.quota.guaranteed) {
        return false;
    }
    x->assured += b->size;
    b->assured_by = x;
    return true;
}

static void unassure(struct buffer *b)
{
    if (b->assured_by != NULL) {
        b->assured_by->assured -= b->size;
        b->assured_by = NULL;
    }
}

/* A freed buffer is charged until copies of it have ended, but its tenant may use its guarantee
 * anew. */
static void end(struct buffers *t, struct buffer *b)
{
    struct memory_tenant *x = t->memory->numbered[memory_number(t->memory, b->tenant)];
    if (x != NULL && b->tenant != 0 && (b->piece.ref.block != NULL || b->spilled != NULL)) {
        x->ending += b->size;
        b->ending_of = x;
    }
}

int buffer_manage(struct buffers *t, struct buffer *b, struct err *e)
{
    bool promised = b->promised;
    promise(t, b, false);
    int rc = memory_alloc_managed(t->memory, b->size, b->tenant, &b->piece, e);
    promise(t, b, rc != 0 && promised);
    return rc;
}

void buffer_came(struct buffers *t, struct buffer *b)
{
    b->place = (struct pool_place){.size = 0};
    unassure(b);
    promise(t, b, false);
}

/* Buffers that stay count from their creation, wherever they are. */
static int stay(struct buffers *t, struct buffer *b, struct err *e)
{
    b->stays_for = memory_number(t->memory, b->tenant);
    int rc = pool_stay(t->memory->pool, b->stays_for, b->size, e);
    b->stays = rc == 0;
    return rc;
}

static void stay_no_more(struct buffers *t, struct buffer *b)
{
    if (b->stays) {
        pool_unstay(t->memory->pool, b->stays_for, b->size);
        b->stays = false;
    }
}

static void destroy(struct buffers *t, struct buffer *b)
{
    unassure(b);
    if (b->ending_of != NULL) {
        b->ending_of->ending -= b->size;
    }
    promise(t, b, false);
    stay_no_more(t, b);
    if (b->spilled != NULL) {
        t->forget(t->data, b);
    }
    memory_free(t->memory, &b->piece);
    pool_place_leave(t->memory->pool, &b->place);
    list(t, b);
    if (b->module != NULL) {
        module_unuse(t->modules, b->module);
    } else {
        t->bytes -= b->size;
    }
    buffer_unseal(t, b);
    free(b);
}

void buffers_finish(struct buffers *t)
{
    struct buffer *b = t->by_id;
    HASH_CLEAR(hh, t->by_id); /* the links between the buffers stay valid */
    while (b != NULL) {
        struct buffer *next = b->hh.next;
        destroy(t, b);
        b = next;
    }
}

/* May a buffer of that size be created without device memory? All buffers leave what is guaranteed
 * to other tenants, on device and host together: otherwise the host could be too full to make room
 * for it. */
static bool fits(const struct buffers *t, uint64_t size, uint64_t tenant)
{
    uint64_t taken =
        sat_add(t->bytes, pool_kept(t->memory->pool, memory_number(t->memory, tenant)));
    return t->room > 0 && size <= t->most && size <= sat_sub(t->room, taken);
}

bool buffers_may_be_away(const struct buffers *t, uint64_t size)
{
    return t->room > 0 && size <= t->most && t->bytes <= t->room;
}

/* Allocates the kind of memory that is asked for. */
static int take_once(struct buffers *t, const struct buffer_ask *ask, struct buffer *b,
                     struct err *e)
{
    if (ask->exported) {
        return memory_alloc_shared(t->memory, ask->size, ask->tenant, &b->piece, e);
    }
    if (ask->managed) {
        return memory_alloc_managed(t->memory, ask->size, ask->tenant, &b->piece, e);
    }
    const struct memory_ask wanted = {.size = ask->size,
                                      .tenant = ask->tenant,
                                      .stream = memory_service(t->memory),
                                      .tag = buffer_tag(b)};
    return memory_alloc(t->memory, &wanted, &b->piece, e);
}

/* Too little memory is free. */
static bool is_short(int rc)
{
    return rc == ERR_DEVICE_MEMORY || rc == ERR_LIMIT;
}

bool buffer_cleared(const struct buffers *t, const struct buffer_clearing *clearing)
{
    return memory_service_passed(t->memory, clearing->begun);
}

/* Evicts buffers for memory outside the pool, as long as that makes room. BUFFER_LATER: room is on
 * its way. */
static int apart_take(struct buffers *t, const struct buffer_ask *ask, struct buffer *b,
                      struct err *e)
{
    if (!buffer_cleared(t, ask->clearing)) {
        return BUFFER_LATER;
    }
    enum buffer_room room;
    int rc;
    do {
        struct err why = ERR_INIT;
        rc = take_once(t, ask, b, &why);
        bool clears = is_short(rc) && !(ask->managed && memory_may_promise(t->memory, ask->tenant,
                                                                           ask->size, true));
        room = clears
                   ? t->clear_out(t->data, ask->tenant, ask->size, rc == ERR_LIMIT, ask->clearing)
                   : BUFFER_ROOM_NONE;
        if (rc != 0) {
            *e = why;
        }
    } while (room == BUFFER_ROOM_MADE);
    return room == BUFFER_ROOM_COMES ? BUFFER_LATER : rc;
}

/* A buffer of the pool's may be without memory, but an exported or managed one is created when its
 * memory is there. */
static int piece_take(struct buffers *t, const struct buffer_ask *ask, struct buffer *b,
                      struct err *e)
{
    bool apart = ask->exported || (ask->managed && memory_may_manage(t->memory, ask->size));
    return apart && ask->clearing != NULL && t->clear_out != NULL ? apart_take(t, ask, b, e)
                                                                  : take_once(t, ask, b, e);
}

/* Its content is on the host, and may remain there for now. */
static int held_take(struct buffers *t, const struct buffer_ask *ask, struct buffer *b,
                     struct err *e)
{
    struct err why = ERR_INIT;
    int rc = ask->size > 0 ? take_once(t, ask, b, &why) : 0;
    b->managed = is_short(rc) && ask->managed;
    if (rc != 0 && !is_short(rc)) {
        *e = why;
        return rc;
    }
    return 0;
}

static int memory_take(struct buffers *t, const struct buffer_ask *ask, struct buffer *b,
                       struct err *e)
{
    int rc = ask->size > 0 ? piece_take(t, ask, b, e) : 0;
    bool room = is_short(rc);
    if (room && !ask->exported &&
        memory_may_promise(t->memory, ask->tenant, ask->size, ask->managed)) {
        b->managed = ask->managed;
        promise(t, b, true);
        return 0;
    }
    bool soon = rc == ERR_DEVICE_MEMORY && t->soon != NULL && t->soon(t->data);
    if (!room || ask->managed) {
        return rc;
    }
    if (!ask->exported && (soon || fits(t, ask->size, ask->tenant) || assure(t, b))) {
        return 0;
    }
    const struct shortage x = {.tenant = ask->tenant,
                               .wanted = ask->size,
                               .own = rc == ERR_LIMIT,
                               .behind = !ask->exported};
    return shortage_say(t->memory, &x, e);
}

static int variable_take(struct buffers *t, const struct buffer_ask *ask, struct buffer *b,
                         struct err *e)
{
    struct module *m = module_find(t->modules, ask->module, e);
    if (m == NULL) {
        return ERR_BAD_HANDLE;
    }
    int rc = module_variable(t->modules, m, ask->variable, ask->size, &b->piece.ref.block, e);
    if (rc == 0) {
        module_use(m);
        b->module = m;
        b->piece.kind = MEMORY_FIXED;
    }
    return rc;
}

int buffer_create(struct buffers *t, const struct buffer_ask *ask, struct buffer **ret_buffer,
                  struct err *e)
{
    struct buffer *b = NULL;
    HASH_FIND(hh, t->by_id, &ask->id, sizeof ask->id, b);
    if (b != NULL) {
        return err_set(e, ERR_EXISTS, "buffer %" PRIu64, ask->id);
    }
    if (HASH_COUNT(t->by_id) >= BUFFERS_MAX) {
        return err_set(e, ERR_LIMIT, "a worker has at most %u buffers", BUFFERS_MAX);
    }
    b = calloc(1, sizeof *b);
    if (b == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for buffer %" PRIu64, ask->id);
    }
    *b = (struct buffer){.id = ask->id, .size = ask->size, .tenant = ask->tenant, .sealed_fd = -1};
    HASH_ADD(hh, t->by_id, id, sizeof b->id, b);
    if (!HASH_ENTERED(b->hh)) {
        free(b);
        return err_set(e, ERR_NOMEM, "no memory for buffer %" PRIu64, ask->id);
    }
    int rc = ask->stays ? stay(t, b, e) : 0;
    if (rc == 0) {
        rc = ask->module != 0 ? variable_take(t, ask, b, e)
             : ask->held      ? held_take(t, ask, b, e)
                              : memory_take(t, ask, b, e);
    }
    if (rc != 0) {
        stay_no_more(t, b);
        HASH_DEL(t->by_id, b);
        free(b);
        return rc == BUFFER_LATER ? rc : err_wrap(e, "buffer of %" PRIu64 " bytes", ask->size);
    }
    b->serial = ++t->made;
    t->bytes += b->module == NULL ? b->size : 0;
    list(t, b);
    *ret_buffer = b;
    return 0;
}

struct buffer *buffer_find(const struct buffers *t, uint64_t id, struct err *e)
{
    struct buffer *b = NULL;
    HASH_FIND(hh, t->by_id, &id, sizeof id, b);
    if (b == NULL) {
        (void)err_set(e, ERR_BAD_HANDLE, "the worker has no buffer %" PRIu64, id);
    }
    return b;
}

void buffer_free(struct buffers *t, struct buffer *b)
{
    if (t->walk == b) {
        t->walk = b->hh.next;
    }
    HASH_DEL(t->by_id, b);
    b->freed = true;
    if (b->uses == 0) {
        destroy(t, b);
    } else {
        end(t, b);
    }
}

void buffer_use(struct buffer *b)
{
    b->uses++;
}

void buffer_unuse(struct buffers *t, struct buffer *b)
{
    b->uses--;
    if (b->uses == 0 && b->freed) {
        destroy(t, b);
    }
}
