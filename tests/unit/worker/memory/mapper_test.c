/*
 * The thread that maps memory, over a page table that only notes what it is asked for, with a pool
 * above it: each call of a load may fail.
 */
#include <check.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

#include "daemon/pool/pressure.h"
#include "daemon/worker/memory/mapping_pages.h"
#include "tests/unit/common/suite.h"

#define PAGE  (UINT64_C(2) << 20)
#define LIMIT (64 * PAGE)
#define SLOTS 512u

struct backend_block {
    uint64_t size;
};

static struct backend_block range;
static struct backend backend;
static struct mapping mapping;
static struct pool *pool;
static struct err err;
static sem_t woken;

/* What the device has: the thread's while it runs. */
static struct {
    atomic_uint calls; /* that may fail */
    unsigned fail_at;  /* this one does; 0: none */
    uint64_t made, there;
    uint64_t slot[SLOTS]; /* the handle mapped there */
    bool open[SLOTS];
    bool entered;
} device;

static int fails(struct err *e)
{
    return atomic_fetch_add(&device.calls, 1) + 1 == device.fail_at
               ? err_set(e, ERR_DEVICE_MEMORY, "the call is to fail")
               : 0;
}

static uint64_t page_bytes(struct backend_device *d)
{
    (void)d;
    return PAGE;
}

static int reserve(struct backend_device *d, uint64_t bytes, struct backend_block **ret_range,
                   struct err *e)
{
    (void)d;
    (void)e;
    ck_assert_uint_le(bytes / PAGE, SLOTS);
    range.size = bytes;
    *ret_range = &range;
    return 0;
}

static void release(struct backend_device *d, struct backend_block *r)
{
    (void)d;
    r->size = 0;
}

static int create(struct backend_device *d, uint64_t bytes, uint64_t *ret_handle, struct err *e)
{
    (void)d;
    (void)bytes;
    int rc = fails(e);
    if (rc == 0) {
        device.there++;
        *ret_handle = ++device.made;
    }
    return rc;
}

static void destroy(struct backend_device *d, uint64_t handle, uint64_t bytes)
{
    (void)d;
    (void)bytes;
    bool mapped = false;
    for (unsigned s = 0; s < SLOTS; s++) {
        mapped = mapped || device.slot[s] == handle;
    }
    ck_assert(!mapped);
    device.there--;
}

static int map(struct backend_device *d, struct backend_block *r, uint64_t at, uint64_t handle,
               uint64_t bytes, struct err *e)
{
    (void)d;
    (void)r;
    int rc = fails(e);
    for (uint64_t s = at / PAGE; rc == 0 && s < (at + bytes) / PAGE; s++) {
        ck_assert_uint_eq(device.slot[s], 0);
        device.slot[s] = handle;
    }
    return rc;
}

static int unmap(struct backend_device *d, struct backend_block *r, uint64_t at, uint64_t bytes,
                 struct err *e)
{
    (void)d;
    (void)r;
    (void)e;
    for (uint64_t s = at / PAGE; s < (at + bytes) / PAGE; s++) {
        ck_assert_uint_ne(device.slot[s], 0);
        device.slot[s] = 0;
        device.open[s] = false;
    }
    return 0;
}

static int allow(struct backend_device *d, struct backend_block *r, uint64_t at, uint64_t bytes,
                 struct err *e)
{
    (void)d;
    (void)r;
    int rc = fails(e);
    for (uint64_t s = at / PAGE; rc == 0 && s < (at + bytes) / PAGE; s++) {
        ck_assert_uint_ne(device.slot[s], 0);
        device.open[s] = true;
    }
    return rc;
}

static int enter(struct backend_device *d, struct err *e)
{
    (void)d;
    (void)e;
    device.entered = true;
    return 0;
}

static const struct backend_page_ops OPS = {.page_bytes = page_bytes,
                                            .handle_max = page_bytes,
                                            .reserve = reserve,
                                            .release = release,
                                            .create = create,
                                            .destroy = destroy,
                                            .map = map,
                                            .unmap = unmap,
                                            .access = allow,
                                            .enter = enter};

static void wake(void *data)
{
    (void)data;
    (void)sem_post(&woken);
}

static bool busy(void *data)
{
    (void)data;
    return false; /* so nothing is cleared when it is mapped */
}

/* ---- a pool over it ---- */

static uint64_t issued(void *user)
{
    (void)user;
    return mapper_issued(mapping.mapper);
}

static void begin(const struct backend_page_ops *ops, unsigned fail_at)
{
    static struct pool_pages pages;
    const struct pool_source source = {.user = &mapping, .pages = &pages, .issued = issued};
    const struct pool_options options = {
        .limit = LIMIT, .streams = 1, .address_bytes = SLOTS * PAGE};
    memset(&device, 0, sizeof device);
    device.fail_at = fail_at;
    backend.pages = ops;
    mapping = (struct mapping){.b = &backend, .quiet = busy, .why = ERR_INIT};
    pages = mapping_pages(&mapping, PAGE);
    ck_assert_int_eq(sem_init(&woken, 0, 0), 0);
    ck_assert_int_eq(mapping_init(&mapping, wake, NULL, &err), 0);
    ck_assert_msg(pool_create(&source, &options, &pool, &err) == 0, "%s", err.text);
    mapping.pool = pool;
}

static void end(void)
{
    pool_destroy(pool);
    mapping_finish(&mapping);
    ck_assert_uint_eq(device.there, 0);
    ck_assert_uint_eq(range.size, 0);
    ck_assert_int_eq(sem_destroy(&woken), 0);
}

static struct pool_piece taken(uint64_t bytes)
{
    const struct pool_ask ask = {.size = bytes};
    struct pool_piece piece;
    ck_assert_msg(pool_alloc(pool, &ask, &piece, &err) == 0, "%s", err.text);
    return piece;
}

/* Waits for the thread's call; the last one always comes. */
static enum pool_late late_of(struct pool_piece *piece)
{
    enum pool_late late = pool_piece_late(pool, piece);
    while (late == POOL_WAITS) {
        while (sem_wait(&woken) != 0) {
        }
        (void)mapping_poll(&mapping);
        late = pool_piece_late(pool, piece);
    }
    return late;
}

static bool usable(const struct pool_piece *piece)
{
    bool all = true;
    for (uint64_t s = piece->offset / PAGE; s <= (piece->offset + piece->size - 1) / PAGE; s++) {
        all = all && device.slot[s] != 0 && device.open[s];
    }
    return all;
}

static void give(struct pool_piece *piece)
{
    ck_assert_int_eq(pool_free(pool, piece, 0, 0, &err), 0);
    ck_assert_msg(pool_check(pool, &err) == 0, "%s", err.text);
}

/* Any call of the load may fail. What failed is refused, all else is usable, and the next try
 * succeeds. Returns the number of calls. */
static unsigned play(unsigned fail_at)
{
    static const uint64_t sizes[] = {5 * PAGE, 4096, 3 * PAGE + 4096, 9 * PAGE, PAGE / 2};
    struct pool_piece piece[5];
    unsigned failed = 0;
    begin(&OPS, fail_at);
    for (unsigned i = 0; i < 5; i++) {
        piece[i] = taken(sizes[i]);
        mapper_watch(mapping.mapper);
    }
    for (unsigned i = 0; i < 5; i++) {
        enum pool_late late = late_of(&piece[i]);
        ck_assert_int_ne(late, POOL_WAITS);
        ck_assert(late == POOL_FAILED || usable(&piece[i]));
        failed += late == POOL_FAILED;
    }
    ck_assert_uint_le(failed, 3); /* neighbours that share its page fail with it */
    ck_assert(fail_at == 0 ? failed == 0 : failed > 0 || fail_at > atomic_load(&device.calls));
    for (unsigned i = 0; i < 5; i++) {
        give(&piece[i]);
    }
    (void)pool_tick(pool, 1);
    piece[0] = taken(12 * PAGE);
    mapper_watch(mapping.mapper);
    ck_assert_int_eq(late_of(&piece[0]), POOL_READY);
    ck_assert(usable(&piece[0]));
    give(&piece[0]);
    (void)pool_trim(pool, 0);
    mapping_drain(&mapping, UINT64_C(60000000000));
    ck_assert(!mapping_busy(&mapping));
    ck_assert(device.entered);
    ck_assert_uint_eq(device.there, 0);
    unsigned calls = atomic_load(&device.calls);
    end();
    return calls;
}

START_TEST(each_call_may_fail)
{
    unsigned calls = play(0);
    ck_assert_uint_gt(calls, 20);
    for (unsigned n = 1; n <= 30; n++) { /* the calls of the first five pieces */
        (void)play(n);
    }
}
END_TEST

/* A piece is reported while calls behind it still wait. */
static sem_t held;

static int map_held(struct backend_device *d, struct backend_block *r, uint64_t at, uint64_t handle,
                    uint64_t bytes, struct err *e)
{
    if (device.made > 1) {
        while (sem_wait(&held) != 0) {
        }
    }
    return map(d, r, at, handle, bytes, e);
}

START_TEST(a_piece_waits_for_no_later_call)
{
    static struct backend_page_ops ops;
    ck_assert_int_eq(sem_init(&held, 0, 0), 0);
    ops = OPS;
    ops.map = map_held;
    begin(&ops, 0);
    struct pool_piece first = taken(PAGE);
    mapper_watch(mapping.mapper);
    struct pool_piece second = taken(PAGE);
    mapper_watch(mapping.mapper);
    ck_assert_int_eq(late_of(&first), POOL_READY);
    ck_assert_int_eq(pool_piece_late(pool, &second), POOL_WAITS);
    ck_assert_uint_gt(mapper_waiting(mapping.mapper), 0);
    ck_assert_int_eq(sem_post(&held), 0);
    ck_assert_int_eq(late_of(&second), POOL_READY);
    give(&first);
    give(&second);
    end();
}
END_TEST

SUITE_MAIN("mapper", each_call_may_fail, a_piece_waits_for_no_later_call)
