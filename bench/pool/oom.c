/*
 * Is a request refused while there is room? A load allocates while its live bytes and the request,
 * in pages, are at most 97% of the limit, and frees at random otherwise. Live bytes are counted in
 * two ways: as requested, and as charged (rounded up to the pool's sizes). room_for_sure is the
 * least share of the limit, live bytes and the request together, at which a request was refused; 1:
 * none was.
 */
#include <stdlib.h>

#include "bench/pool/load.h"
#include "bench/pool/parts.h"
#include "bench/pool/policy.h"
#include "bench/pool/source.h"
#include "daemon/pool/move.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define GIB (KIB * MIB)

struct oom {
    struct pool *pool;
    struct load load;
    struct pool_piece *piece; /* by tag - 1 */
    uint32_t *tag;            /* of the live pieces, the first `count` */
    uint64_t count;
    uint64_t limit;
    uint64_t requests, refused;
    uint64_t least; /* the least bytes, live and requested, at which a request was refused */
};

static uint64_t alive(const struct oom *o, bool charged)
{
    struct pool_stats s;
    pool_stats(o->pool, &s);
    return charged ? s.used : s.asked;
}

static bool fits(const struct oom *o, uint64_t size, bool charged)
{
    uint64_t pages = (alive(o, charged) + size + BENCH_PAGE - 1) / BENCH_PAGE;
    return pages * BENCH_PAGE <= o->limit / 100 * 97;
}

static void free_one(struct oom *o)
{
    uint64_t k = load_random(&o->load, o->count);
    uint32_t tag = o->tag[k];
    (void)pool_free(o->pool, &o->piece[tag - 1], 0, 0, NULL);
    o->tag[k] = o->tag[--o->count];
    o->tag[o->count] = tag;
}

/* The pieces are not used, so there is nothing to copy. */
static int move(void *user, struct pool_move *move, struct err *e)
{
    struct oom *o = user;
    (void)e;
    pool_piece_moved(&o->piece[move->tag - 1], move);
    return 0;
}

static void take(struct oom *o, uint64_t size, bool charged)
{
    while (o->count > 0 && !fits(o, size, charged)) {
        free_one(o);
    }
    o->requests++;
    const struct pool_ask ask = {.size = size, .tag = o->tag[o->count]};
    if (policy_pool_get(o->pool, &ask, &o->piece[ask.tag - 1])) {
        o->count++;
    } else {
        uint64_t wanted = alive(o, charged) + size;
        o->least = wanted < o->least ? wanted : o->least;
        o->refused++;
        for (unsigned i = 0; i < 4 && o->count > 0; i++) { /* as a user would do */
            free_one(o);
        }
    }
}

struct kind {
    const char *name;
    uint64_t limit;       /* bytes; small, so that the load reaches it */
    uint64_t low, high;   /* bytes of a request */
    uint64_t low2, high2; /* every other phase; 0: there is one phase only */
};

/* Between phases most pieces are freed, so that the next phase finds fragmented memory. */
#define PHASES 10u

static void run(struct report *r, const struct kind *kind, bool charged, bool moves,
                uint64_t requests)
{
    struct pool_options options = {.limit = kind->limit, .streams = 1};
    struct oom o = {.piece = bench_calloc(requests, sizeof *o.piece),
                    .tag = bench_calloc(requests, sizeof *o.tag),
                    .limit = kind->limit,
                    .least = kind->limit};
    const struct pool_mover mover = {.user = &o, .move = move};
    struct pool_stats stats;
    load_seed(&o.load, 7);
    if (pool_create(&bench_source, &options, &o.pool, NULL) != 0) {
        abort();
    }
    pool_set_mover(o.pool, moves ? &mover : NULL);
    for (uint64_t i = 0; i < requests; i++) {
        o.tag[i] = (uint32_t)i + 1;
    }
    for (uint64_t i = 0; i < requests; i++) {
        bool second = kind->high2 != 0 && i * PHASES / requests % 2 == 1;
        if (kind->high2 != 0 && i % (requests / PHASES) == 0) {
            for (uint64_t n = o.count * 9 / 10; n > 0; n--) {
                free_one(&o);
            }
        }
        take(&o,
             second ? load_log_uniform(&o.load, kind->low2, kind->high2)
                    : load_log_uniform(&o.load, kind->low, kind->high),
             charged);
    }
    const char *by = moves ? (charged ? "charged" : "asked") : "nothing moves";
    pool_stats(o.pool, &stats);
    report_add(r, "oom", kind->name, by, "requests", (double)o.requests);
    report_add(r, "oom", kind->name, by, "refused_with_room", (double)o.refused);
    report_add(r, "oom", kind->name, by, "room_for_sure", (double)o.least / (double)kind->limit);
    report_add(r, "oom", kind->name, by, "bytes_moved_for_a_byte",
               (double)stats.moved /
                   (double)(stats.tier[0].total + stats.tier[1].total + stats.tier[2].total));
    pool_destroy(o.pool);
    free(o.piece);
    free(o.tag);
}

void part_oom(const struct settings *s, struct report *r)
{
    static const struct kind kinds[] = {
        {"512 B to 2 GiB", 16 * GIB, 512, 2 * GIB, 0, 0},
        {"512 B to 64 MiB", 16 * GIB, 512, 64 * MIB, 0, 0},
        {"64 KiB to 2 MiB", 4 * GIB, 64 * KIB, 2 * MIB, 0, 0},
        {"1 MiB to 512 MiB", 16 * GIB, MIB, 512 * MIB, 0, 0},
        {"256 B to 1 MiB", 4 * GIB, 256, MIB, 0, 0},
        {"256 B to 64 KiB", 512 * MIB, 256, 64 * KIB, 0, 0},
        {"1 MiB to 8 MiB", 16 * GIB, MIB, 8 * MIB, 0, 0},
        {"small, then large", 16 * GIB, 64 * KIB, 4 * MIB, 64 * MIB, 2 * GIB},
        {"large, then small", 16 * GIB, 64 * MIB, 2 * GIB, 64 * KIB, 4 * MIB},
    };
    uint64_t requests = s->churn / 10 > PHASES ? s->churn / 10 : PHASES;
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        run(r, &kinds[i], true, false, requests);
        run(r, &kinds[i], true, true, requests);
        run(r, &kinds[i], false, true, requests);
    }
}
