/*
 * Pieces that cannot lie close together do not move in circles, in pools of random pieces. A job
 * that waits takes some memory in each try, is refused the rest, and gives back what it took. Its
 * copies end before the next try. GPUD_POOL_SEED begins elsewhere.
 */
#include <check.h>
#include <stdlib.h>

#include "daemon/pool/move.h"
#include "tests/unit/pool/fake_source.h"
#include "tests/unit/pool/quick.h"

#define KIB    UINT64_C(1024)
#define MIB    (KIB * KIB)
#define LIMIT  (16 * MIB)
#define PIECES 64u
#define TRIES  400u
#define POOLS  200u  /* of each kind */
#define FIRST  2500u /* seed: pieces of pool 25 of blocks would move for ever */

static struct fake_source source;
static struct pool *pool;
static struct pool_piece piece[PIECES]; /* by tag - 1 */
static uint64_t state;
static uint64_t now;

static uint64_t rnd(uint64_t below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % below;
}

static int move(void *user, struct pool_move *m, struct err *e)
{
    (void)user;
    (void)e;
    m->seq = ++now;
    pool_piece_moved(&piece[m->tag - 1], m);
    return 0;
}

static uint64_t some_size(void)
{
    return rnd(3) == 0 ? MIB + rnd(3 * MIB) : 1 + rnd(512 * KIB);
}

/* Fills the pool, and frees some pieces. */
static void start(bool pages)
{
    const struct pool_options o = {.limit = LIMIT, .streams = 2};
    const struct pool_mover mover = {.move = move};
    unsigned count = 0;
    int rc = 0;
    now = 0;
    if (pages) {
        fake_pages_init(&source, UINT64_C(1) << 36);
    } else {
        fake_blocks_init(&source, UINT64_C(1) << 36);
    }
    ck_assert_int_eq(pool_create(&source.source, &o, &pool, NULL), 0);
    while (count < PIECES && rc == 0) {
        const struct pool_ask ask = {.size = some_size(), .tag = rnd(8) != 0 ? count + 1 : 0};
        rc = pool_alloc(pool, &ask, &piece[count], NULL);
        count += rc == 0;
    }
    for (unsigned i = 0; i < count; i++) {
        if (rnd(3) == 0) {
            ck_assert_int_eq(pool_free(pool, &piece[i], 0, 0, NULL), 0);
        }
    }
    pool_set_mover(pool, &mover);
}

static void stop(void)
{
    pool_advance(pool, 0, now);
    pool_destroy(pool);
    fake_finish(&source);
}

static uint64_t moves(void)
{
    struct pool_stats s;
    pool_stats(pool, &s);
    return s.moves;
}

/* Returns whether all was there. */
static bool try(const struct pool_ask *ask, unsigned asks)
{
    struct pool_piece got[4];
    unsigned count = 0;
    while (count < asks && pool_alloc(pool, &ask[count], &got[count], NULL) == 0) {
        count++;
    }
    for (unsigned i = 0; i < count; i++) {
        ck_assert_int_eq(pool_free(pool, &got[i], 0, 0, NULL), 0);
    }
    pool_advance(pool, 0, now);
    return count == asks;
}

/* Returns the last try in which a piece moved. */
static unsigned last_move(bool pages)
{
    struct pool_ask ask[4];
    unsigned last = 0;
    bool all = false;
    start(pages);
    unsigned asks = 1 + (unsigned)rnd(4);
    for (unsigned i = 0; i < asks; i++) {
        ask[i] = (struct pool_ask){.size = some_size(), .tenant = 1};
    }
    for (unsigned n = 1; n <= TRIES && !all; n++) {
        uint64_t before = moves();
        all = try(ask, asks);
        last = moves() > before ? n : last;
    }
    stop();
    return all ? 0 : last;
}

/* Pages (_i 0) and blocks. */
START_TEST(no_piece_moves_for_ever)
{
    uint64_t seed = quick_setting("GPUD_POOL_SEED", FIRST);
    for (unsigned n = 0; n < POOLS; n++) {
        state = seed + 2 * n + (unsigned)_i;
        unsigned last = last_move(_i == 0);
        ck_assert_msg(last < TRIES / 2, "pool %u: a piece moves in try %u", n, last);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("circles");
    TCase *t = tcase_create("moving");
    tcase_add_loop_test(t, no_piece_moves_for_ever, 0, 2);
    tcase_set_timeout(t, 120);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
