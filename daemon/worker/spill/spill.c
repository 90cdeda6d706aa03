#include "daemon/worker/spill/spill.h"

#include <inttypes.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/saturate.h"
#include "daemon/pool/move.h"
#include "daemon/worker/memory/shortage.h"
#include "daemon/worker/spill/prospect.h"
#include "daemon/worker/spill/spill_copy.h"

/* Tries that only move buffers together before others are evicted: the room that moves make may
 * not be where the next try needs it, for ever. */
#define GATHER_MOST 16u

static bool moving_helps(void *data);
static enum buffer_room clear_out(void *data, uint64_t tenant, uint64_t bytes, bool own,
                                  struct buffer_clearing *clearing);

bool spill_rises(const struct spill *s)
{
    return s->device->memory.most > s->device->memory.limit;
}

/* Limits that follow from those of the device and of the host. */
static void limit_is(struct spill *s, uint64_t limit)
{
    struct pool_stats stats;
    uint64_t piece = s->device->info.max_alloc;
    pool_stats(s->device->memory.pool, &stats);
    uint64_t most = spill_rises(s) ? s->device->memory.most : stats.limit;
    s->buffers->most = piece != 0 && piece < most ? piece : most;
    s->limit = limit;
    s->buffers->room = limit == 0 && !spill_rises(s) ? 0 : sat_add(most, limit);
}

/* Tenants above their hard limit whose buffers had to wait for memory of the host. */
static void shed_again(struct spill *s)
{
    struct memory_tenant *t;
    struct memory_tenant *next;
    s->shed_late = false;
    HASH_ITER(hh, s->device->memory.tenants, t, next)
    {
        struct err e = ERR_INIT;
        if (spill_shed(s, t->key, &e) != 0) {
            s->device->memory.hung = true;
        }
    }
}

void spill_on_growth(struct spill *s, void (*grown)(void *data), void *data)
{
    s->grown = grown;
    s->data = data;
}

static void on_news(void *data)
{
    struct spill *s = data;
    s->device->memory.changes++;
    if (s->shed_late) {
        shed_again(s);
    }
    if (s->grown != NULL) {
        s->grown(s->data);
    }
}

bool spill_grows(const struct spill *s)
{
    return spill_host_grows(&s->host);
}

int spill_init(struct spill *s, struct device *device, struct buffers *buffers,
               struct copies *copies, struct transfers *transfers, struct registrar *registrar,
               uint64_t limit, struct err *e)
{
    *s = (struct spill){
        .device = device, .buffers = buffers, .copies = copies, .transfers = transfers};
    int rc = spill_host_init(&s->host, device, registrar, SPILL_CHUNK, e);
    if (rc != 0) {
        return rc;
    }
    s->host.news = on_news;
    s->host.data = s;
    const struct pool_mover mover = {.user = s, .move = spill_move_within};
    pool_set_mover(device->memory.pool, &mover);
    limit_is(s, limit);
    buffers->forget = spill_forget;
    buffers->soon = moving_helps;
    buffers->clear_out = clear_out;
    buffers->data = s;
    s->host.now = true; /* nothing is served yet */
    rc = limit == 0 ? 0 : spill_arena_init(s, e);
    s->host.now = false;
    return rc;
}

void spill_set_limit(struct spill *s, uint64_t limit)
{
    if (limit == s->limit) {
        return;
    }
    struct err e = ERR_INIT;
    limit_is(s, limit);
    if (s->arena != NULL) {
        pool_set_limit(s->arena, limit);
    } else if (spill_arena_init(s, &e) != 0) {
        log_say(LOG_SPILL_FAILED, "buffers cannot move to the host: %s", e.text);
        limit_is(s, 0);
    }
    s->device->memory.changes++; /* jobs that wait may find room, or fail */
}

void spill_budget(struct spill *s)
{
    limit_is(s, s->limit);
}

void spill_finish(struct spill *s)
{
    pool_destroy(s->arena);
    s->arena = NULL;
    spill_host_finish(&s->host);
}

/* ---- room -----------------------------------------------------------------------------------*/

static struct pool *pool_of(const struct spill *s)
{
    return s->device->memory.pool;
}

/* Is its tenant above its soft limit now? Free objects in slabs do not count, because evictions
 * do not free them. */
static bool over_soft(const struct spill *s, const struct buffer *b)
{
    struct pool_account a;
    pool_account(pool_of(s), b->piece.pool.tenant, &a);
    return a.meter.used > a.quota.soft;
}

/* Can the content be copied, or is there another copy of it? Bytes that are still arriving may
 * fail, and a copy of them would be worthless. */
static bool there(const struct buffer *b)
{
    return b->loss == BUFFER_WHOLE && (b->filling == NULL || buffer_keeps_itself(b));
}

/* Evicts buffers, the least recently used first, until `wanted` bytes are on their way. Returns
 * that number of bytes; less than wanted: no more buffers can go. s->host_late: before memory of
 * the host has come. */
static uint64_t evict_some(struct spill *s, const struct hunger *h, struct err *e)
{
    uint64_t bytes = 0;
    struct buffer *b = s->buffers->cold;
    while (b != NULL && bytes < h->wanted && !s->host_late) {
        struct buffer *next = b->cold_next;
        uint64_t size = b->piece.pool.size;
        struct err why = ERR_INIT;
        bool goes = there(b) && (!h->soft || over_soft(s, b)) &&
                    prospect_may_go(s, b, h->tenant, h->own, 0) && prospect_host_allows(s, b, h, 0);
        int rc = goes ? spill_move_out(s, b, &why) : ERR_STATE;
        if (rc == ERR_DEVICE_LOST) {
            *e = why;
            return 0;
        }
        bytes += rc == 0 ? size : 0;
        s->host_late = rc == ERR_BUSY;
        b = next;
    }
    return bytes;
}

/* Tenants above their soft limit give first. */
static uint64_t evict(struct spill *s, struct hunger h, struct err *e)
{
    h.soft = !h.own && s->device->memory.softs > 0;
    s->host_late = false;
    uint64_t bytes = h.soft ? evict_some(s, &h, e) : 0;
    h.soft = false;
    h.wanted = sat_sub(h.wanted, bytes);
    bool over = h.wanted == 0 || e->code == ERR_DEVICE_LOST || s->host_late;
    return over ? bytes : bytes + evict_some(s, &h, e);
}

uint64_t spill_give(struct spill *s, uint64_t bytes, struct err *e)
{
    return evict(s, (struct hunger){.tenant = POOL_TENANTS, .wanted = bytes}, e);
}

/* Is the pool still moving buffers for the refused request, or will it have room when those that
 * move have arrived? */
static bool moving_helps(void *data)
{
    const struct spill *s = data;
    struct pool_refusal refusal;
    pool_refusal(pool_of(s), &refusal);
    return refusal.moves || (s->within > 0 && refusal.pending > 0 &&
                             refusal.wanted <= prospect_vacant(s, refusal.tenant));
}

/* Will the memory that is queued for release make room? Then no buffer has to be evicted. Memory
 * that is kept for other tenants as soon as it is free does not help. */
static bool leaving_helps(const struct spill *s, const struct memory_ask *ask, bool own)
{
    const struct memory *m = &s->device->memory;
    return !memory_leaves_late(m) && memory_leaving(m, own ? &ask->tenant : NULL) >= ask->size &&
           (own || memory_soon(m, ask->tenant, ask->size));
}

/* Is enough memory on its way without further evictions? */
static bool enough(struct spill *s, const struct memory_ask *ask, uint64_t freeing)
{
    return leaving_helps(s, ask, false) || (s->late && memory_mapping(&s->device->memory)) ||
           (memory_service_busy(&s->device->memory) &&
            (freeing > ask->size + ask->size / 8 ||
             (s->gathered < GATHER_MOST && moving_helps(s))));
}

/* Is the pool still moving buffers for the request that it refused just now? */
static bool moves(struct spill *s, int rc)
{
    struct pool_refusal refusal;
    pool_refusal(pool_of(s), &refusal);
    bool more = rc == ERR_DEVICE_MEMORY && refusal.moves;
    s->more = s->more || more;
    return more;
}

/* Retries and evicts until the memory is there, no more buffers can go, or copies have to end
 * first. No buffer goes before all have moved together. `back`: see struct hunger. */
static int piece_get(struct spill *s, const struct memory_ask *ask, uint64_t back,
                     struct memory_piece *ret_piece, struct err *e)
{
    struct hunger h = {.tenant = memory_number(&s->device->memory, ask->tenant),
                       .wanted = ask->size,
                       .back = back};
    uint64_t freeing = s->leaving;
    s->late = false;
    for (;;) {
        struct err why = ERR_INIT;
        int rc = memory_alloc(&s->device->memory, ask, ret_piece, &why);
        h.own = rc == ERR_LIMIT; /* an eviction lowers the tenant's account at once */
        bool hungry =
            rc == ERR_DEVICE_MEMORY && !moves(s, rc) && !spill_rises(s) && !enough(s, ask, freeing);
        bool helps = h.own ? !leaving_helps(s, ask, true) : hungry;
        uint64_t more = helps ? evict(s, h, &why) : 0;
        freeing += more;
        if (why.code == ERR_DEVICE_LOST) { /* even if some buffers were evicted */
            *e = why;
            return why.code;
        }
        if (more == 0) {
            if (rc != 0) {
                *e = why;
            }
            return rc != 0 ? why.code : 0;
        }
    }
}

/* Could the request succeed? No buffer is evicted for a request that would fail all the same. */
static bool obtainable(struct spill *s, const struct hunger *h)
{
    struct prospect p;
    prospect_find(s, h, &p);
    return h->wanted <= p.obtainable;
}

/* Makes room outside the pool: evicts buffers, or moves buffers together so that whole pages become
 * free. The pool then gives free memory back to the driver. */
static enum buffer_room clear_out(void *data, uint64_t tenant, uint64_t bytes, bool own,
                                  struct buffer_clearing *clearing)
{
    struct spill *s = data;
    const struct hunger h = {
        .tenant = memory_number(&s->device->memory, tenant), .wanted = bytes, .own = own};
    struct err why = ERR_INIT;
    uint64_t moved = 0;
    *clearing = (struct buffer_clearing){.begun = 0};
    if (!obtainable(s, &h)) {
        return BUFFER_ROOM_NONE;
    }
    uint64_t freeing = evict(s, h, &why);
    bool late = s->host_late && spill_grows(s);
    bool together = freeing == 0 && why.code == 0 && !own && !late;
    bool more = together && pool_defragment(pool_of(s), bytes, &moved);
    s->device->memory.hung = s->device->memory.hung || why.code == ERR_DEVICE_LOST;
    /* buffers whose copies end may be evicted next */
    *clearing =
        (struct buffer_clearing){.begun = spill_expect(s), .own = own, .moves = more && moved == 0};
    if (s->first != NULL || late || clearing->moves) {
        return BUFFER_ROOM_COMES;
    }
    return freeing > 0 ? BUFFER_ROOM_MADE : BUFFER_ROOM_NONE;
}

/* Free objects in its slabs do not count, because the pool compacts slabs before the next
 * request. */
int spill_shed(struct spill *s, uint64_t tenant, struct err *e)
{
    struct pool_account a;
    unsigned number = memory_number(&s->device->memory, tenant);
    pool_account(pool_of(s), number, &a);
    const struct hunger h = {.tenant = number,
                             .wanted = sat_sub(sat_add(a.meter.used, a.reserved), a.quota.hard),
                             .own = true};
    struct err why = ERR_INIT;
    if (h.wanted > 0) {
        (void)evict(s, h, &why);
        s->shed_late = s->shed_late || s->host_late;
    }
    if (why.code == ERR_DEVICE_LOST) {
        *e = why;
    }
    return why.code == ERR_DEVICE_LOST ? ERR_DEVICE_LOST : 0;
}

/* Writes the error's text; `code` is the pool's. */
static int say(struct spill *s, uint64_t key, uint64_t wanted, int code, struct err *e)
{
    struct prospect p;
    const struct hunger h = {.tenant = memory_number(&s->device->memory, key)};
    prospect_find(s, &h, &p);
    const struct shortage x = {.tenant = key,
                               .wanted = wanted,
                               .own = code == ERR_LIMIT,
                               .movable = code == ERR_LIMIT ? p.own : p.movable,
                               .obtainable = p.obtainable,
                               .kept = p.kept,
                               .leaving = s->leaving,
                               .host_bytes = s->bytes,
                               .host_limit = s->limit};
    return shortage_say(&s->device->memory, &x, e);
}

bool spill_short(int code)
{
    return code == ERR_DEVICE_MEMORY || code == ERR_LIMIT;
}

/* Managed memory is outside the pool. While room for it is on its way it is as short as before. */
static int managed_get(struct spill *s, struct buffer *b, struct err *e)
{
    if (!buffer_cleared(s->buffers, &b->clearing)) {
        return err_set(e, b->clearing.own ? ERR_LIMIT : ERR_DEVICE_MEMORY,
                       "buffers move to the host to make room");
    }
    enum buffer_room room;
    int rc;
    do {
        struct err why = ERR_INIT;
        rc = buffer_manage(s->buffers, b, &why);
        bool clears = spill_short(rc) && !memory_soon(&s->device->memory, b->tenant, b->size);
        room = clears ? clear_out(s, b->tenant, b->size, rc == ERR_LIMIT, &b->clearing)
                      : BUFFER_ROOM_NONE;
        *e = why;
    } while (room == BUFFER_ROOM_MADE);
    s->more = s->more || (room == BUFFER_ROOM_COMES && b->clearing.moves);
    return rc;
}

int spill_return(struct spill *s, struct buffer *b, struct err *e)
{
    if (!buffer_away(b)) {
        return 0;
    }
    const struct memory_ask ask = {.size = b->size,
                                   .tenant = b->tenant,
                                   .stream = memory_service(&s->device->memory),
                                   .tag = buffer_tag(b),
                                   .place = &b->place};
    int rc = b->managed ? managed_get(s, b, e)
                        : piece_get(s, &ask, b->spilled != NULL ? b->size : 0, &b->piece, e);
    if (rc == 0) {
        buffer_came(s->buffers, b);
    }
    if (rc == 0) {
        rc = memory_unmapped(&b->piece) ? spill_move_back_later(s, b, e) : spill_move_back(s, b, e);
    }
    return rc == 0 ? 0 : err_wrap(e, "bringing back buffer %" PRIu64, b->id);
}

/* Bytes that a job needs but that are not on the device. *ret_back (may be NULL): of these,
 * bytes on the host. */
static uint64_t lacks(const struct job *j, uint64_t *ret_back)
{
    uint64_t bytes = j->temp_bytes;
    uint64_t back = 0;
    for (unsigned i = 0; i < j->buffer_count; i++) {
        struct buffer *b = j->buffers[i];
        if (buffer_away(b) && !b->counted) {
            b->counted = true;
            bytes += b->size;
            back += b->spilled != NULL ? b->size : 0;
        }
    }
    for (unsigned i = 0; i < j->buffer_count; i++) {
        j->buffers[i]->counted = false;
    }
    if (ret_back != NULL) {
        *ret_back = back;
    }
    return bytes;
}

uint64_t spill_lacks(const struct spill *s, const struct job *j)
{
    uint64_t wanted = lacks(j, NULL);
    uint64_t vacant = prospect_vacant(s, memory_number(&s->device->memory, j->tenant));
    return wanted > vacant ? wanted - vacant : wanted / 8 + 1; /* free, and in the wrong places */
}

bool spill_assured(const struct spill *s, const struct job *j)
{
    struct pool_account a;
    unsigned tenant = memory_number(&s->device->memory, j->tenant);
    pool_account(pool_of(s), tenant, &a);
    uint64_t all = sat_add(sat_add(a.mapped, a.reserved), lacks(j, NULL));
    return a.quota.guaranteed > 0 && all <= a.quota.guaranteed;
}

/* Does the job lack more than its tenant's limit, or than that tenant could have on an empty
 * device? */
static int check_most(struct spill *s, const struct job *j, const struct hunger *h, struct err *e)
{
    struct pool_account a;
    struct pool_stats stats;
    pool_account(pool_of(s), h->tenant, &a);
    pool_stats(pool_of(s), &stats);
    bool own = h->wanted > a.quota.hard;
    uint64_t most = spill_rises(s) ? s->device->memory.most : stats.limit;
    uint64_t soon = sat_add(most, memory_leaving_for(&s->device->memory, h->tenant));
    if (!own && h->wanted <= sat_sub(soon, pool_kept(pool_of(s), h->tenant))) {
        return 0;
    }
    (void)say(s, j->tenant, h->wanted, own ? ERR_LIMIT : ERR_DEVICE_MEMORY, e);
    return SPILL_NEVER;
}

/* Could the job get its memory if all buffers that may go were evicted? */
static int check_prospect(struct spill *s, const struct job *j, struct err *e)
{
    struct prospect p;
    struct hunger h = {.tenant = memory_number(&s->device->memory, j->tenant)};
    h.wanted = lacks(j, &h.back);
    if (h.wanted <= prospect_vacant(s, h.tenant)) {
        return 0;
    }
    if (check_most(s, j, &h, e) != 0) {
        return SPILL_NEVER;
    }
    prospect_find(s, &h, &p);
    bool own = h.wanted > sat_add(prospect_allowance(s, h.tenant), p.own);
    return h.wanted <= p.obtainable
               ? 0
               : say(s, j->tenant, h.wanted, own ? ERR_LIMIT : ERR_DEVICE_MEMORY, e);
}

bool spill_late(const struct spill *s, const struct job *j)
{
    const struct memory *m = &s->device->memory;
    return memory_leaves_late(m) && memory_soon(m, j->tenant, lacks(j, NULL));
}

bool spill_moves(const struct spill *s)
{
    return s->more;
}

uint64_t spill_changes(const struct spill *s)
{
    return s->device->memory.changes;
}

uint64_t spill_moved(const struct spill *s)
{
    return s->outs + s->backs;
}

void spill_explain(struct spill *s, const struct job *j, struct err *e)
{
    (void)say(s, j->tenant, lacks(j, NULL), ERR_DEVICE_MEMORY, e);
}

/* The temporaries of a program's run, where an earlier run had them if possible. */
static int placed_get(struct spill *s, struct job *j, struct memory_ask *ask, struct err *e)
{
    struct pool_place place;
    struct places *places = &s->device->places;
    places_take(places, j->program, ask, &place);
    ask->place = &place;
    ask->align = s->device->memory.pages.page_bytes;
    int rc = piece_get(s, ask, 0, &j->pieces[0], e);
    if (rc == 0) {
        places_taken(places, &place, &j->pieces[0]);
    } else {
        places_back(places, j->program, &place);
    }
    return rc;
}

static int temps_get(struct spill *s, struct job *j, struct err *e)
{
    int rc = 0;
    while (rc == 0 && j->piece_count < job_pieces(j)) {
        /* large copies have a stream of their own, where they wait for no kernel */
        struct memory_ask ask = {.size = job_piece_bytes(j, j->piece_count),
                                 .tenant = j->tenant,
                                 .stream = j->size == JOB_LARGE ? memory_copies(&s->device->memory)
                                                                : j->stream};
        rc = ask.size == 0 ? 0
             : j->placed   ? placed_get(s, j, &ask, e)
                           : piece_get(s, &ask, 0, &j->pieces[j->piece_count], e);
        j->piece_count += rc == 0;
    }
    return rc == 0 ? 0 : err_wrap(e, "temporaries of %" PRIu64 " bytes", j->temp_bytes);
}

static int bring(struct spill *s, struct job *j, struct err *e)
{
    int rc = check_prospect(s, j, e);
    if (rc != 0) {
        return rc;
    }
    struct err why = ERR_INIT;
    for (unsigned i = 0; rc == 0 && i < j->buffer_count; i++) {
        rc = spill_return(s, j->buffers[i], &why);
    }
    rc = rc == 0 ? temps_get(s, j, &why) : rc;
    if (spill_short(rc)) {
        return say(s, j->tenant, lacks(j, NULL), rc, e);
    }
    if (rc != 0) {
        *e = why;
    }
    return rc;
}

/* Without a workspace no library serves the job, and it runs its own kernels. */
static void workspace_get(struct spill *s, struct job *j)
{
    const struct memory_ask ask = {
        .size = j->workspace_size, .tenant = j->tenant, .stream = j->stream};
    if (ask.size > 0 && memory_alloc(&s->device->memory, &ask, &j->workspace, NULL) != 0) {
        j->workspace_size = 0;
    }
}

/* Counters that show whether a failed try changed more than its own pieces. */
struct before {
    uint64_t changes, moved, withins, leaving;
};

static struct before before_try(const struct spill *s)
{
    const struct memory *m = &s->device->memory;
    return (struct before){.changes = m->changes,
                           .moved = spill_moved(s),
                           .withins = s->withins,
                           .leaving = m->leaving};
}

/* Takes all memory back from the job. */
static void give_up(struct spill *s, struct job *j)
{
    job_unpin(s->buffers, j);
    job_temps_free(s->device, j);
    memory_free(&s->device->memory, &j->workspace);
}

/* If the try moved and released nothing, other jobs need not retry because of it. */
static void acquire_undo(struct spill *s, struct job *j, const struct before *before)
{
    give_up(s, j);
    const struct before now = before_try(s);
    if (now.moved == before->moved && now.leaving == before->leaving) {
        s->device->memory.changes = before->changes;
    }
}

int spill_acquire(struct spill *s, struct job *j, struct err *e)
{
    const struct before before = before_try(s);
    s->more = false;
    job_pin(s->buffers, j);
    int rc = bring(s, j, e);
    bool moved = spill_moved(s) != before.moved;
    s->gathered = rc == 0 || moved ? 0 : s->gathered + (s->withins != before.withins);
    if (rc != 0) {
        acquire_undo(s, j, &before);
        return rc;
    }
    workspace_get(s, j);
    return 0;
}

/* Is the memory of all its buffers mapped, with their content? Their own moves and transfers ask
 * what became of it. */
static enum pool_late buffers_late(const struct job *j)
{
    bool away = false;
    for (unsigned i = 0; i < j->buffer_count; i++) {
        const struct buffer *b = j->buffers[i];
        if (memory_unmapped(&b->piece) || b->arrival != BUFFER_ARRIVED) {
            return POOL_WAITS;
        }
        away = away || buffer_away(b);
    }
    return away ? POOL_FAILED : POOL_READY;
}

enum pool_late spill_late_memory(struct spill *s, struct job *j)
{
    const struct memory *m = &s->device->memory;
    enum pool_late all = buffers_late(j);
    for (unsigned i = 0; i < j->piece_count && all == POOL_READY; i++) {
        all = memory_late(m, &j->pieces[i]);
    }
    enum pool_late work = memory_late(m, &j->workspace);
    if (work == POOL_FAILED) {
        memory_free(&s->device->memory, &j->workspace);
        j->workspace_size = 0;
    }
    return all == POOL_READY && work == POOL_WAITS ? POOL_WAITS : all;
}

void spill_give_up(struct spill *s, struct job *j, struct err *e)
{
    give_up(s, j);
    (void)memory_refused(&s->device->memory, e);
    s->device->memory.changes++;
}

void spill_begin(struct job *j)
{
    for (unsigned i = 0; i < j->buffer_count; i++) {
        struct buffer *b = j->buffers[i];
        if (b->loss == BUFFER_WHOLE) { /* else the job does not begin (executor_whole) */
            b->content = BUFFER_BYTES; /* the job may write it from now on */
        }
    }
}

void spill_stats(const struct spill *s, struct msg_w_pool *stats)
{
    stats->spilled = s->bytes + s->buffers->lent;
    stats->spill_limit = s->limit;
    stats->spills = s->outs;
    stats->returns = s->backs;
}
