#include "daemon/worker/memory/places.h"
#include "common/hash.h"

#include <stdlib.h>
#include <utlist.h>

#define WASTE_SHARE 8u /* of the temporaries: what rounding up to whole pages may cost */

/* A place, and the point from which on every stream may use it. */
struct kept_place {
    struct pool_place place;
    unsigned stream;
    uint64_t seq; /* 0: every stream may */
};

struct program_places {
    uint64_t program; /* the front's handle */
    struct kept_place kept[PLACES_EACH];
    unsigned count;
    struct program_places *prev, *next;
    UT_hash_handle hh;
};

void places_init(struct places *t, struct memory *memory)
{
    *t = (struct places){.memory = memory};
}

static void destroy(struct places *t, struct program_places *p)
{
    while (p->count > 0) {
        pool_place_leave(t->memory->pool, &p->kept[--p->count].place);
    }
    HASH_DEL(t->by_id, p);
    DL_DELETE(t->oldest, p);
    t->programs--;
    free(p);
}

void places_end_all(struct places *t)
{
    while (t->oldest != NULL) {
        destroy(t, t->oldest);
    }
}

void places_finish(struct places *t)
{
    places_end_all(t);
}

uint64_t places_bytes(const struct places *t, uint64_t bytes)
{
    uint64_t page = t->memory->pages.page_bytes;
    if (page == 0 || bytes == 0 || bytes > UINT64_MAX / 2) {
        return 0;
    }
    uint64_t whole = (bytes + page - 1) / page * page;
    return whole - bytes <= bytes / WASTE_SHARE ? whole : 0;
}

static struct program_places *find(const struct places *t, uint64_t program)
{
    struct program_places *p = NULL;
    HASH_FIND(hh, t->by_id, &program, sizeof program, p);
    return p;
}

/* The program's entry, as the newest one. NULL: no memory. */
static struct program_places *obtain(struct places *t, uint64_t program)
{
    struct program_places *p = find(t, program);
    if (p != NULL) {
        DL_DELETE(t->oldest, p);
        DL_APPEND(t->oldest, p);
        return p;
    }
    p = calloc(1, sizeof *p);
    if (p != NULL) {
        p->program = program;
        HASH_ADD(hh, t->by_id, program, sizeof p->program, p);
        if (!HASH_ENTERED(p->hh)) {
            free(p);
            return NULL;
        }
        DL_APPEND(t->oldest, p);
        t->programs++;
    }
    if (t->programs > PLACES_PROGRAMS) {
        destroy(t, t->oldest);
    }
    return p;
}

/* May the stream use the place without a wait for another stream? */
static bool suits(const struct places *t, const struct kept_place *k, const struct memory_ask *ask)
{
    bool past = k->seq <= t->memory->timeline.stream[k->stream].done;
    return k->place.size == ask->size && (past || k->stream == ask->stream);
}

/* Places that the pool has given up are forgotten. */
static void tidy(struct places *t, struct program_places *p)
{
    for (unsigned i = p->count; i-- > 0;) {
        if (!pool_place_kept(t->memory->pool, &p->kept[i].place)) {
            p->kept[i] = p->kept[--p->count];
        }
    }
}

void places_take(struct places *t, uint64_t program, const struct memory_ask *ask,
                 struct pool_place *ret_place)
{
    struct program_places *p = find(t, program);
    *ret_place = (struct pool_place){.size = 0};
    if (p == NULL) {
        return;
    }
    tidy(t, p);
    unsigned i = 0;
    while (i < p->count && !suits(t, &p->kept[i], ask)) {
        i++;
    }
    if (i < p->count) { /* the order of the others remains: runs in turn take them in turn */
        *ret_place = p->kept[i].place;
        p->count--;
        for (; i < p->count; i++) {
            p->kept[i] = p->kept[i + 1];
        }
    }
}

void places_taken(struct places *t, const struct pool_place *place,
                  const struct memory_piece *piece)
{
    bool same = place->size != 0 && piece->pool.offset == place->offset;
    t->returns += same;
    t->others += !same;
}

static void keep(struct places *t, uint64_t program, const struct kept_place *k)
{
    struct program_places *p = obtain(t, program);
    struct pool_place place = k->place;
    if (p == NULL || p->count == PLACES_EACH) {
        pool_place_leave(t->memory->pool, &place);
    } else {
        p->kept[p->count++] = *k;
    }
}

void places_back(struct places *t, uint64_t program, const struct pool_place *place)
{
    if (place->size != 0 && pool_place_kept(t->memory->pool, place)) {
        keep(t, program, &(struct kept_place){.place = *place});
    }
}

void places_leave(struct places *t, uint64_t program, struct memory_piece *piece, unsigned stream,
                  uint64_t seq)
{
    struct kept_place k = {.stream = stream, .seq = seq};
    if (piece->ref.block == NULL) {
        return;
    }
    /* it fails only for a piece that is not live */
    (void)pool_vacate(t->memory->pool, &piece->pool, stream, seq, &k.place, NULL);
    piece->ref.block = NULL;
    t->memory->changes++;
    if (k.place.size != 0) {
        keep(t, program, &k);
    }
}

void places_end(struct places *t, uint64_t program)
{
    struct program_places *p = find(t, program);
    if (p != NULL) {
        destroy(t, p);
    }
}

void places_use(const struct places *t, struct places_use *ret_use)
{
    struct places_use use = {0};
    for (const struct program_places *p = t->oldest; p != NULL; p = p->next) {
        for (unsigned i = 0; i < p->count; i++) {
            bool kept = pool_place_kept(t->memory->pool, &p->kept[i].place);
            use.count += kept;
            use.bytes += kept ? p->kept[i].place.size : 0;
        }
    }
    *ret_use = use;
}
