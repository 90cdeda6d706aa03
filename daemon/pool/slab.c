#include "daemon/pool/pool_int.h"

#define SLAB_BYTES    (256u * 1024u) /* bytes of a slab at most */
#define OTHERS_LOOKED 16u            /* slabs examined for an object that moves */

static struct slab *slab_at(const struct pool *p, uint32_t i)
{
    return records_at(&p->slabs, i);
}

static uint64_t *tag_of(const struct pool *p, uint32_t slab, unsigned object)
{
    return (uint64_t *)records_at(&p->tags, slab) + object;
}

static uint64_t all_free(const struct slab *s)
{
    return s->capacity == 64 ? UINT64_MAX : (UINT64_C(1) << s->capacity) - 1;
}

static bool is_empty(const struct slab *s)
{
    return s->free == all_free(s);
}

/* As many objects as fit into SLAB_BYTES, at most one for each bit of a word. */
static unsigned capacity_of(uint64_t object)
{
    uint64_t n = SLAB_BYTES / object;
    return n < SLAB_OBJECTS ? (unsigned)n : SLAB_OBJECTS;
}

/* ---- lists of slabs with a free object --------------------------------------------------------*/

static void list_enter(struct pool *p, uint32_t i)
{
    struct slab *s = slab_at(p, i);
    uint32_t *head = &p->partial[s->stream][s->class];
    if (s->failed) {
        return;
    }
    s->prev = RECORD_NONE;
    s->next = *head;
    if (*head != RECORD_NONE) {
        slab_at(p, *head)->prev = i;
    }
    *head = i;
}

static void list_leave(struct pool *p, uint32_t i)
{
    struct slab *s = slab_at(p, i);
    if (s->failed) {
        return;
    }
    if (s->next != RECORD_NONE) {
        slab_at(p, s->next)->prev = s->prev;
    }
    if (s->prev != RECORD_NONE) {
        slab_at(p, s->prev)->next = s->next;
    } else {
        p->partial[s->stream][s->class] = s->next;
    }
}

/* Its stream got it from another stream whose use is not past. */
static bool bound(const struct pool *p, const struct slab *s)
{
    return s->after_seq > p->done[s->after];
}

/* ---- slabs ------------------------------------------------------------------------------------*/

static int slab_create(struct pool *p, unsigned class, const struct pool_ask *ask, unsigned flags,
                       uint32_t *ret_slab, struct err *e)
{
    uint64_t object = class_bytes(class);
    unsigned capacity = capacity_of(object);
    uint32_t block;
    uint32_t i = records_take(&p->slabs);
    if (i == RECORD_NONE) {
        return err_set(e, ERR_NOMEM, "the pool's records are used up");
    }
    int rc = quota_admit(p, ask, object * capacity, e);
    rc = rc != 0 ? rc : pool_take(p, object * capacity, ask, flags, &block, e);
    if (rc != 0) {
        records_give(&p->slabs, i);
        return rc;
    }
    struct block *b = block_at(&p->blocks, block);
    struct slab *s = slab_at(p, i);
    *s = (struct slab){.block = block,
                       .tenant = (uint16_t)ask->tenant,
                       .class = (uint8_t) class,
                       .stream = (uint8_t)ask->stream,
                       .capacity = (uint8_t)capacity,
                       .align = (uint8_t)pool_log(pool_align(ask))};
    s->free = all_free(s);
    s->own = tenancy_claim(p, b, ask->tenant, false) ? 0 : s->free;
    if (b->state == BLOCK_PENDING && b->stream == ask->stream) {
        s->seq = b->seq;
    } else if (b->state == BLOCK_PENDING) {
        s->after = b->stream;
        s->after_seq = b->seq;
    }
    quota_charge(p, ask, b->size);
    b->state = BLOCK_SLAB;
    b->owner = i;
    p->slabs_empty++;
    list_enter(p, i);
    event_add(p, POOL_EVENT_SLAB,
              (struct pool_event){
                  .at = b->at, .size = b->size, .tenant = s->tenant, .stream = s->stream});
    *ret_slab = i;
    return 0;
}

/* An empty slab, listed or failed. */
static void slab_destroy(struct pool *p, uint32_t i)
{
    struct slab *s = slab_at(p, i);
    const struct block *b = block_at(&p->blocks, s->block);
    p->slabs_empty--;
    list_leave(p, i);
    event_add(p, POOL_EVENT_UNSLAB, (struct pool_event){.at = b->at, .size = b->size});
    quota_discharge(p, s->tenant, b->size);
    s->failed = false;
    (void)space_release(p, s->block, s->stream, s->seq);
    records_give(&p->slabs, i);
}

void slab_fail(struct pool *p, uint32_t i)
{
    struct slab *s = slab_at(p, i);
    if (s->free != 0) {
        list_leave(p, i);
    }
    s->failed = true;
    if (is_empty(s) && !bound(p, s)) {
        slab_destroy(p, i);
    }
}

void slab_fail_sweep(struct pool *p)
{
    for (uint32_t i = 0; i < p->slabs.made; i++) {
        const struct slab *s = slab_at(p, i);
        if (s->failed && is_empty(s) && !bound(p, s)) {
            slab_destroy(p, i);
        }
    }
}

uint64_t slab_reclaim(struct pool *p)
{
    uint64_t bytes = 0;
    for (unsigned stream = 0; stream < p->streams && p->slabs_empty > 0; stream++) {
        for (unsigned class = 0; class < SLAB_CLASSES && p->slabs_empty > 0; class ++) {
            uint32_t i = p->partial[stream][class];
            while (i != RECORD_NONE && p->slabs_empty > 0) {
                const struct slab *s = slab_at(p, i);
                uint32_t next = s->next;
                if (s->free == all_free(s) && !bound(p, s)) {
                    bytes += class_bytes(class) * s->capacity;
                    slab_destroy(p, i);
                }
                i = next;
            }
        }
    }
    return bytes;
}

static void change_stream(struct pool *p, uint32_t i, unsigned stream)
{
    struct slab *s = slab_at(p, i);
    list_leave(p, i);
    s->after = s->stream;
    s->after_seq = s->seq;
    s->stream = (uint8_t)stream;
    s->seq = 0;
    list_enter(p, i);
}

/* A slab of the list with so high an alignment, among the first few; RECORD_NONE: none. */
static uint32_t listed(const struct pool *p, unsigned stream, unsigned class, unsigned align)
{
    uint32_t i = p->partial[stream][class];
    for (unsigned n = 0; i != RECORD_NONE && slab_at(p, i)->align < align; n++) {
        i = n < OTHERS_LOOKED ? slab_at(p, i)->next : RECORD_NONE;
    }
    return i;
}

/* A slab of another stream: one whose use is past or, with `wait`, any. */
static uint32_t take_over(struct pool *p, unsigned class, const struct pool_ask *ask, bool wait)
{
    for (unsigned other = 0; other < p->streams; other++) {
        uint32_t i = listed(p, other, class, pool_log(pool_align(ask)));
        if (other == ask->stream || i == RECORD_NONE || bound(p, slab_at(p, i))) {
            continue;
        }
        uint64_t seq = slab_at(p, i)->seq;
        if (seq <= p->done[other] || (wait && pool_wait(p, ask->stream, other, seq, NULL) == 0)) {
            change_stream(p, i, ask->stream);
            return i;
        }
    }
    return RECORD_NONE;
}

static int find_slab(struct pool *p, unsigned class, const struct pool_ask *ask, uint32_t *ret_slab,
                     struct err *e)
{
    uint32_t i = listed(p, ask->stream, class, pool_log(pool_align(ask)));
    if (i == RECORD_NONE) {
        i = take_over(p, class, ask, false);
    }
    if (i == RECORD_NONE &&
        slab_create(p, class, ask, ask->prompt ? TAKE_GROW : TAKE_NOW, &i, NULL) != 0) {
        i = take_over(p, class, ask, true);
    }
    if (i == RECORD_NONE) {
        return slab_create(p, class, ask, TAKE_WAIT | TAKE_GROW, ret_slab, e);
    }
    *ret_slab = i;
    return 0;
}

/* The holder of an object is known only while one tenant uses the slab. */
static bool claim(struct pool *p, struct slab *s, unsigned object, unsigned tenant)
{
    uint64_t bit = UINT64_C(1) << object;
    if (s->tenant != tenant) {
        (void)tenancy_claim(p, block_at(&p->blocks, s->block), tenant, false);
        s->tenant = (uint16_t)tenant;
        s->own = 0;
    }
    bool foreign = (s->own & bit) == 0;
    s->own |= bit;
    return foreign;
}

/* The tenant that allocates from a slab last is charged for its free objects. */
static int charge_slack(struct pool *p, const struct slab *s, const struct pool_ask *ask,
                        struct err *e)
{
    uint64_t objects = s->capacity - (unsigned)__builtin_popcountll(s->live);
    uint64_t slack = objects * class_bytes(s->class);
    int rc = quota_within(p, ask, slack, e);
    if (rc == 0) {
        quota_transfer(p, s->tenant, ask->tenant, slack);
    }
    return rc;
}

int slab_alloc(struct pool *p, const struct pool_ask *ask, struct pool_piece *ret_piece,
               struct err *e)
{
    uint32_t i;
    /* a class for multiples of the alignment has objects of such a multiple */
    unsigned class = class_of((ask->size + pool_align(ask) - 1) & ~(pool_align(ask) - 1));
    int rc = find_slab(p, class, ask, &i, e);
    if (rc == 0 && slab_at(p, i)->tenant != ask->tenant) {
        rc = charge_slack(p, slab_at(p, i), ask, e);
    }
    if (rc != 0) {
        return rc;
    }
    struct slab *s = slab_at(p, i);
    unsigned object = (unsigned)__builtin_ctzll(s->free);
    p->slabs_empty -= is_empty(s);
    s->free &= s->free - 1;
    s->live |= UINT64_C(1) << object;
    s->turn[object]++;
    if (s->free == 0) {
        list_leave(p, i);
    }
    p->tagged = p->tagged || ask->tag != 0;
    if (p->tagged) {
        *tag_of(p, i, object) = ask->tag;
    }
    const struct block *b = block_at(&p->blocks, s->block);
    *ret_piece = (struct pool_piece){.offset = b->at + object * class_bytes(class),
                                     .size = class_bytes(class),
                                     .block = s->block,
                                     .generation = b->generation,
                                     .object = (uint8_t)object,
                                     .turn = s->turn[object],
                                     .foreign = claim(p, s, object, ask->tenant)};
    return 0;
}

#define STAY_SHARE 128u /* share of the limit: empty slabs kept beside one for each class */

/* In a load that repeats itself an empty slab is kept: a new one would lie where a piece was. */
static bool stays(const struct pool *p)
{
    uint64_t most = p->stats.limit / STAY_SHARE / SLAB_BYTES + SLAB_CLASSES;
    return recall_repeats(p) && p->slabs_empty <= most;
}

/* The last slab of its list is kept, or a single object allocated and freed would cut a slab each
 * time. */
static bool goes(const struct pool *p, const struct slab *s)
{
    bool last = s->prev == RECORD_NONE && s->next == RECORD_NONE;
    return is_empty(s) && !bound(p, s) && (s->failed || (!stays(p) && !last));
}

static void put(struct pool *p, uint32_t i, unsigned object, uint64_t seq)
{
    struct slab *s = slab_at(p, i);
    bool was_full = s->free == 0;
    s->free |= UINT64_C(1) << object;
    p->slabs_empty += is_empty(s);
    s->seq = s->seq > seq ? s->seq : seq;
    if (was_full) {
        list_enter(p, i);
    }
    if (goes(p, s)) {
        slab_destroy(p, i);
    }
}

/* Another stream than the slab's may still use the object: it becomes free when that is past. */
static int defer(struct pool *p, uint32_t slab, unsigned object, unsigned stream, uint64_t seq,
                 struct err *e)
{
    uint32_t i = records_take(&p->deferred);
    if (i == RECORD_NONE) { /* without a record, a wait between the streams does as well */
        struct slab *s = slab_at(p, slab);
        if (bound(p, s) && s->after != stream) {
            return err_set(e, ERR_NOMEM, "the pool's records are used up");
        }
        int rc = pool_wait(p, s->stream, stream, seq, e);
        if (rc == 0) {
            s->after = (uint8_t)stream;
            s->after_seq = s->after_seq > seq && bound(p, s) ? s->after_seq : seq;
            put(p, slab, object, 0);
        }
        return rc;
    }
    struct line *l = &p->line[stream];
    struct deferred *d = records_at(&p->deferred, i);
    *d =
        (struct deferred){.next = RECORD_NONE, .slab = slab, .seq = seq, .object = (uint8_t)object};
    if (l->newest_deferred == RECORD_NONE) {
        l->oldest_deferred = i;
    } else {
        struct deferred *last = records_at(&p->deferred, l->newest_deferred);
        last->next = i;
        d->seq = d->seq > last->seq ? d->seq : last->seq;
    }
    l->newest_deferred = i;
    return 0;
}

void slab_advance(struct pool *p, unsigned stream)
{
    struct line *l = &p->line[stream];
    while (l->oldest_deferred != RECORD_NONE) {
        uint32_t i = l->oldest_deferred;
        const struct deferred *d = records_at(&p->deferred, i);
        if (d->seq > p->done[stream]) {
            return;
        }
        uint32_t slab = d->slab;
        unsigned object = d->object;
        l->oldest_deferred = d->next;
        records_give(&p->deferred, i);
        put(p, slab, object, 0);
    }
    l->newest_deferred = RECORD_NONE;
}

int slab_free(struct pool *p, const struct pool_piece *piece, unsigned stream, uint64_t seq,
              struct err *e)
{
    uint32_t i = block_at(&p->blocks, piece->block)->owner;
    struct slab *s = slab_at(p, i);
    uint64_t bit = UINT64_C(1) << (piece->object % SLAB_OBJECTS);
    if ((s->live & bit) == 0 || s->turn[piece->object % SLAB_OBJECTS] != piece->turn) {
        return err_set(e, ERR_BAD_HANDLE, "a piece of %llu bytes at %#llx was freed before",
                       LL(piece->size), LL(piece->offset));
    }
    bool later = stream != s->stream && seq > p->done[stream];
    int rc = later ? defer(p, i, piece->object, stream, seq, e) : 0;
    if (rc != 0) {
        return rc;
    }
    s->live &= ~bit;
    s->own &= piece->foreign || piece->ticket != 0 ? ~bit : UINT64_MAX;
    stats_given(p, piece);
    if (piece->tenant != s->tenant) { /* a free object is slack */
        quota_transfer(p, piece->tenant, s->tenant, class_bytes(s->class));
    }
    event_add(p, POOL_EVENT_FREE,
              (struct pool_event){.at = block_at(&p->blocks, piece->block)->at +
                                        piece->object * class_bytes(s->class),
                                  .size = piece->size,
                                  .tenant = piece->tenant,
                                  .stream = (uint8_t)stream,
                                  .value = (uint32_t)seq});
    if (!later) {
        put(p, i, piece->object, stream == s->stream ? seq : 0);
    }
    guard_check(p, BLOCK_NONE);
    return 0;
}

/* ---- moving -----------------------------------------------------------------------------------*/

bool slab_busy(const struct pool *p, uint32_t i)
{
    const struct slab *s = slab_at(p, i);
    return bound(p, s) || s->seq > p->done[s->stream] || (s->free | s->live) != all_free(s);
}

bool slab_movable(const struct pool *p, uint32_t i)
{
    const struct slab *s = slab_at(p, i);
    bool movable = !slab_busy(p, i) && !s->failed;
    for (uint64_t live = s->live; live != 0 && movable; live &= live - 1) {
        movable = *tag_of(p, i, (unsigned)__builtin_ctzll(live)) != 0;
    }
    return movable;
}

uint64_t slab_live_bytes(const struct pool *p, uint32_t i)
{
    const struct slab *s = slab_at(p, i);
    return (unsigned)__builtin_popcountll(s->live) * class_bytes(s->class);
}

static uint64_t object_at(const struct pool *p, uint32_t i, unsigned object)
{
    const struct slab *s = slab_at(p, i);
    return block_at(&p->blocks, s->block)->at + object * class_bytes(s->class);
}

static struct pool_piece object_piece(const struct pool *p, uint32_t i, unsigned object)
{
    const struct slab *s = slab_at(p, i);
    const struct block *b = block_at(&p->blocks, s->block);
    struct pool_piece piece = {.offset = object_at(p, i, object),
                               .size = class_bytes(s->class),
                               .block = s->block,
                               .generation = b->generation,
                               .object = (uint8_t)object,
                               .turn = s->turn[object]};
    pool_locate(p, &piece);
    return piece;
}

/* A slab of the same class, stream and tenant with a free object that no stream uses; or a new
 * slab. */
static uint32_t find_other(struct pool *p, const struct slab *s)
{
    const struct pool_ask ask = {
        .stream = s->stream, .tenant = s->tenant, .align = UINT64_C(1) << s->align};
    uint32_t to = p->partial[s->stream][s->class];
    for (unsigned n = 0; to != RECORD_NONE && n < OTHERS_LOOKED; n++) {
        const struct slab *t = slab_at(p, to);
        if (t->tenant == s->tenant && t->align >= s->align && t->seq <= p->done[t->stream] &&
            !bound(p, t) && compact_gains(p, t->block)) {
            return to;
        }
        to = t->next;
    }
    to = RECORD_NONE;
    (void)slab_create(p, s->class, &ask, TAKE_PAST, &to, NULL);
    return to;
}

static bool can_move(const struct pool *p)
{
    return p->deferred.live < p->deferred.max && space_has_records(p, 8);
}

/* The object's slab must be in no list. `calls`: driver_calls before a destination was found. */
static int move_object(struct pool *p, uint32_t i, uint32_t to, unsigned object, uint64_t calls)
{
    struct slab *s = slab_at(p, i);
    struct slab *t = slab_at(p, to);
    unsigned other = (unsigned)__builtin_ctzll(t->free);
    uint64_t from_bit = UINT64_C(1) << object;
    uint64_t to_bit = UINT64_C(1) << other;
    t->turn[other]++;
    struct pool_piece from_piece = object_piece(p, i, object);
    struct pool_piece to_piece = object_piece(p, to, other);
    struct pool_move move = {.tag = *tag_of(p, i, object), .from = &from_piece, .to = &to_piece};
    int rc = p->mover.move(p->mover.user, &move, NULL);
    if (rc != 0) {
        moving_refused(p, rc);
        return rc;
    }
    event_moved(p, &move, object_at(p, i, object), object_at(p, to, other), calls);
    p->slabs_empty -= is_empty(t);
    t->free &= ~to_bit;
    t->live |= to_bit;
    *tag_of(p, to, other) = move.tag;
    if (move.foreign) {
        s->own &= ~from_bit;
    }
    if ((s->own & from_bit) != 0) {
        t->own |= to_bit;
    } else { /* whose bytes it has is not known here */
        t->own &= ~to_bit;
        tenancy_spoil(p, block_at(&p->blocks, t->block));
    }
    if (t->free == 0) {
        list_leave(p, to);
    }
    s->live &= ~from_bit;
    p->stats.moves++;
    p->stats.moved += from_piece.size;
    bool past = move.stream >= p->streams || move.seq <= p->done[move.stream];
    p->moving.stream = past ? p->moving.stream : move.stream;
    if (!past && move.stream != s->stream) {
        return defer(p, i, object, move.stream, move.seq, NULL);
    }
    s->free |= from_bit;
    p->slabs_empty += is_empty(s);
    s->seq = past || s->seq > move.seq ? s->seq : move.seq;
    return 0;
}

/* Lists a slab that is in no list, and destroys it if it is empty. */
static void settle(struct pool *p, uint32_t i)
{
    const struct slab *s = slab_at(p, i);
    if (s->free != 0) {
        list_enter(p, i);
    }
    if (s->free == all_free(s) && !bound(p, s)) {
        slab_destroy(p, i);
    }
}

int slab_move(struct pool *p, uint32_t i)
{
    const struct slab *s = slab_at(p, i);
    int rc = 0;
    if (s->free != 0) { /* otherwise its objects would move within it */
        list_leave(p, i);
    }
    for (uint64_t live = s->live; live != 0 && rc == 0; live &= live - 1) {
        uint64_t calls = p->stats.driver_calls;
        moving_spend(p, MOVE_UNITS);
        uint32_t to = can_move(p) ? find_other(p, s) : RECORD_NONE;
        rc = to != RECORD_NONE ? move_object(p, i, to, (unsigned)__builtin_ctzll(live), calls)
                               : ERR_DEVICE_MEMORY;
    }
    settle(p, i);
    return rc;
}

/* ---- the objects of a tenant close together ---------------------------------------------------*/

/* May the tenant's objects move into it now? The tenant must be charged for it already. */
static bool takes(const struct pool *p, const struct slab *s, unsigned tenant)
{
    return s->tenant == tenant && s->seq <= p->done[s->stream] && !bound(p, s);
}

/* Removes slabs with the fewest live objects from a list: as many as the free objects of all its
 * slabs make up. Returns the first; `next` links the others. */
static uint32_t take_emptiest(struct pool *p, unsigned stream, unsigned class, unsigned tenant)
{
    uint32_t count[SLAB_OBJECTS + 1] = {0};
    uint64_t room = 0;
    for (uint32_t i = p->partial[stream][class]; i != RECORD_NONE; i = slab_at(p, i)->next) {
        const struct slab *s = slab_at(p, i);
        if (takes(p, s, tenant)) {
            room += (unsigned)__builtin_popcountll(s->free);
            count[__builtin_popcountll(s->live)] += slab_movable(p, i);
        }
    }
    room /= capacity_of(class_bytes(class));
    unsigned most = 0; /* live objects; of slabs with so many only `room` leave */
    while (most < SLAB_OBJECTS && count[most] <= room) {
        room -= count[most++];
    }
    uint32_t first = RECORD_NONE;
    for (uint32_t i = p->partial[stream][class]; i != RECORD_NONE;) {
        struct slab *s = slab_at(p, i);
        uint32_t next = s->next;
        unsigned live = (unsigned)__builtin_popcountll(s->live);
        if ((live < most || (live == most && room > 0)) && takes(p, s, tenant) &&
            slab_movable(p, i)) {
            room -= live == most;
            list_leave(p, i);
            s->next = first;
            first = i;
        }
        i = next;
    }
    return first;
}

/* Moves its objects to slabs of the list from *to on. */
static void move_along(struct pool *p, uint32_t i, uint32_t *to)
{
    const struct slab *s = slab_at(p, i);
    int rc = 0;
    for (uint64_t live = s->live; live != 0 && rc == 0; live &= live - 1) {
        while (*to != RECORD_NONE &&
               (!takes(p, slab_at(p, *to), s->tenant) || slab_at(p, *to)->align < s->align)) {
            *to = slab_at(p, *to)->next;
        }
        if (*to == RECORD_NONE || !can_move(p)) {
            return;
        }
        uint32_t next = slab_at(p, *to)->next;
        rc = move_object(p, i, *to, (unsigned)__builtin_ctzll(live), p->stats.driver_calls);
        *to = slab_at(p, *to)->free == 0 ? next : *to;
    }
}

/* Does the request still exceed its limit, within the budget of bytes to move? */
static bool over(const struct pool *p, const struct pool_ask *ask, uint64_t before)
{
    return p->stats.moved - before < p->moving.most && quota_within(p, ask, ask->size, NULL) != 0;
}

static void pack_list(struct pool *p, unsigned stream, unsigned class, const struct pool_ask *ask,
                      uint64_t before)
{
    uint32_t i = take_emptiest(p, stream, class, ask->tenant);
    uint32_t to = p->partial[stream][class];
    while (i != RECORD_NONE) {
        uint32_t next = slab_at(p, i)->next;
        if (over(p, ask, before)) {
            move_along(p, i, &to);
        }
        settle(p, i);
        i = next;
    }
}

bool slab_pack(struct pool *p, const struct pool_ask *ask)
{
    const struct pool_account *a = &p->account[ask->tenant];
    struct pool_ask whole = *ask;
    whole.size = sat_add(ask->size, POOL_ALIGN - 1) & ~(uint64_t)(POOL_ALIGN - 1);
    uint64_t before = p->stats.moved;
    uint64_t slack = sat_sub(a->mapped, a->meter.used);
    if (p->mover.move == NULL || quota_within(p, ask, sat_sub(whole.size, slack), NULL) != 0) {
        return false;
    }
    for (unsigned stream = 0; stream < p->streams; stream++) {
        for (unsigned class = 0; class < SLAB_CLASSES; class ++) {
            if (p->partial[stream][class] != RECORD_NONE && over(p, &whole, before)) {
                pack_list(p, stream, class, &whole, before);
            }
        }
    }
    return p->stats.moved > before;
}
