/* Memory that goes back to the driver when nothing is in flight: what counts until then, and which
 * tenant may have its room. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/seqpacket.h"
#include "daemon/pool/pressure.h"
#include "daemon/worker/spill/waiting.h"
#include "tests/unit/worker/local.h"

#define MIB   (UINT64_C(1) << 20)
#define LIMIT (16 * MIB)

static struct local t;
static struct releases releases;
static uint64_t oldest_ns; /* since when the oldest job is in flight */
static bool idle;
static struct backend backend;
static struct backend_memory_ops ops, own;
static unsigned live; /* blocks that the driver has given */

static bool is_idle(void *data)
{
    (void)data;
    return idle;
}

static uint64_t since(void *data)
{
    (void)data;
    return oldest_ns;
}

static int alloc_counted(struct backend_device *d, uint64_t size, struct backend_block **ret_block,
                         struct err *e)
{
    int rc = own.alloc(d, size, ret_block, e);
    live += rc == 0;
    return rc;
}

static void free_counted(struct backend_device *d, struct backend_block *block)
{
    live--;
    own.free(d, block);
}

/* A driver that has managed memory and waits before it frees. */
static void start(const char *options)
{
    local_start(&t, "sim", options, LIMIT, 0);
    backend = *t.device.b;
    own = ops = *t.device.b->memory;
    ops.alloc = ops.alloc_managed = alloc_counted;
    ops.free = free_counted;
    backend.memory = &ops;
    t.device.memory.b = &backend;
    t.device.memory.managed_limit = 4 * MIB;
    live = 0;
    idle = false;
    oldest_ns = clock_now_ns();
    releases_init(&releases, is_idle, since, NULL);
    t.device.memory.releases = &releases;
}

static void stop(void)
{
    releases_finish(&releases);
    t.device.memory.releases = NULL;
    ck_assert_uint_eq(memory_leaving(&t.device.memory, NULL), 0);
    buffers_finish(&t.buffers);
    ck_assert_uint_eq(t.device.memory.managed, 0);
    ck_assert_uint_eq(t.device.memory.promised, 0);
    ck_assert_uint_eq(t.device.memory.managed_promised, 0);
    local_stop(&t);
}

static void settle(void)
{
    idle = true;
    releases_turn(&releases);
    idle = false;
}

static int create(uint64_t id, uint64_t tenant, uint64_t size, bool managed,
                  struct buffer **ret_buffer)
{
    struct err e = ERR_INIT;
    const struct buffer_ask ask = {.id = id, .size = size, .tenant = tenant, .managed = managed};
    return buffer_create(&t.buffers, &ask, ret_buffer, &e);
}

static uint64_t reserved(uint64_t tenant)
{
    struct pool_account a;
    pool_account(t.device.memory.pool, memory_number(&t.device.memory, tenant), &a);
    return a.reserved;
}

static int bring(struct buffer *b)
{
    struct err e = ERR_INIT;
    buffer_pin(&t.buffers, b);
    int rc = spill_return(&t.spill, b, &e);
    local_quiet(&t);
    buffer_unpin(&t.buffers, b);
    return rc;
}

START_TEST(managed_memory_counts_until_it_is_released)
{
    const uint64_t one = 1;
    struct memory *m = &t.device.memory;
    struct buffer *b = NULL;
    struct buffer *later = NULL;
    start("speed=0,pages=on");
    ck_assert_int_eq(create(1, 1, 3 * MIB, true, &b), 0);
    ck_assert_int_eq(create(2, 2, 2 * MIB, true, &later), ERR_DEVICE_MEMORY);
    buffer_free(&t.buffers, b);
    ck_assert_uint_eq(live, 1);
    ck_assert_uint_eq(m->managed, 3 * MIB);
    ck_assert_uint_eq(reserved(1), 3 * MIB);
    ck_assert_uint_eq(memory_leaving(m, NULL), 3 * MIB);
    ck_assert_uint_eq(memory_leaving(m, &one), 3 * MIB);
    ck_assert_int_eq(create(2, 2, 2 * MIB, true, &later), 0); /* what comes then is this one's, */
    ck_assert(later->managed && buffer_away(later));
    ck_assert_int_eq(create(3, 2, 3 * MIB, true, &b), ERR_DEVICE_MEMORY);
    ck_assert_int_eq(bring(later), ERR_DEVICE_MEMORY);
    settle();
    ck_assert(live == 0 && m->managed == 0 && reserved(1) == 0);
    ck_assert_int_eq(create(3, 2, 3 * MIB, true, &b), ERR_DEVICE_MEMORY); /* also now */
    ck_assert_int_eq(bring(later), 0);
    ck_assert(m->managed == 2 * MIB && m->managed_promised == 0 && m->promised == 0 &&
              reserved(2) == 2 * MIB);
    ck_assert_int_eq(later->piece.kind, MEMORY_MANAGED);
    ck_assert_int_eq(create(3, 2, 2 * MIB, true, &b), 0);
    buffer_free(&t.buffers, later);
    ck_assert_int_eq(create(4, 2, MIB, true, &later), 0);
    buffer_free(&t.buffers, later); /* one that no job used */
    ck_assert_uint_eq(m->promised, 0);
    stop();
}
END_TEST

/* If nothing is in flight no request waits, and memory left over is released on request. */
START_TEST(at_once_where_nothing_runs)
{
    struct memory *m = &t.device.memory;
    struct buffer *b = NULL;
    start("speed=0,pages=on");
    ck_assert_int_eq(create(1, 1, 3 * MIB, true, &b), 0);
    buffer_free(&t.buffers, b);
    idle = true;
    ck_assert_int_eq(create(2, 1, 4 * MIB, true, &b), 0);
    ck_assert(!buffer_away(b) && live == 1 && m->managed == 4 * MIB);
    buffer_free(&t.buffers, b);
    ck_assert(live == 0 && m->managed == 0 && memory_leaving(m, NULL) == 0);
    stop();
}
END_TEST

/* The tenant may have no more: its other buffers stay where they are, and one more waits. */
START_TEST(leaving_memory_is_its_tenants)
{
    struct err e = ERR_INIT;
    struct buffer *b = NULL;
    struct buffer *cold = NULL;
    struct buffer *later = NULL;
    const struct memory_limits limits = {.device = {.hard = 6 * MIB, .soft = UINT64_MAX},
                                         .spilled = UINT64_MAX};
    start("speed=0,pages=on");
    ck_assert_int_eq(memory_quota(&t.device.memory, 1, "one", &limits, &e), 0);
    ck_assert_int_eq(create(1, 1, 2 * MIB, true, &b), 0);
    ck_assert_int_eq(create(2, 1, 4 * MIB, false, &cold), 0);
    ck_assert_int_eq(create(3, 1, 2 * MIB, false, &later), ERR_LIMIT);
    buffer_free(&t.buffers, b);
    ck_assert_int_eq(create(3, 1, 4 * MIB, false, &later), ERR_LIMIT);
    ck_assert_int_eq(create(3, 1, 2 * MIB, false, &later), 0);
    ck_assert_int_eq(bring(later), ERR_LIMIT);
    ck_assert(buffer_away(later) && !buffer_away(cold) && t.spill.outs == 0);
    settle();
    ck_assert_int_eq(bring(later), 0);
    ck_assert(later->piece.kind == MEMORY_POOL && t.spill.outs == 0);
    stop();
}
END_TEST

/* Promised memory counts for its tenant's limit like memory in use: no tenant gets round its limit
 * and takes what others could have. _i 1: managed memory. */
START_TEST(promised_memory_is_its_tenants)
{
    struct err e = ERR_INIT;
    struct memory *m = &t.device.memory;
    struct buffer *b = NULL;
    struct buffer *later = NULL;
    const struct memory_limits limits = {.device = {.hard = 2 * MIB, .soft = UINT64_MAX},
                                         .spilled = UINT64_MAX};
    start("speed=0,pages=on");
    ck_assert_int_eq(memory_quota(m, 1, "one", &limits, &e), 0);
    ck_assert_int_eq(create(1, 1, 2 * MIB, true, &b), 0);
    buffer_free(&t.buffers, b);
    ck_assert_int_eq(create(2, 1, MIB, _i == 1, &later), 0);
    ck_assert(buffer_away(later) && m->promised == MIB);
    ck_assert_int_eq(create(3, 1, MIB, _i == 1, &b), 0);
    ck_assert_int_ne(create(4, 1, MIB, _i == 1, &b), 0);
    buffer_free(&t.buffers, later); /* one that no job used */
    ck_assert_int_eq(create(5, 1, MIB, _i == 1, &later), 0);
    ck_assert_int_ne(create(6, 1, MIB, _i == 1, &b), 0);
    settle();
    ck_assert_int_eq(bring(later), 0);
    ck_assert_uint_eq(m->promised, MIB);
    ck_assert_int_eq(create(7, 2, 2 * MIB, true, &b), 0); /* another's */
    ck_assert(!buffer_away(b));
    stop();
}
END_TEST

/* Memory to be released that is guaranteed to its former tenant comes to no other. */
START_TEST(leaving_memory_stays_guaranteed)
{
    struct err e = ERR_INIT;
    struct memory *m = &t.device.memory;
    struct buffer *b = NULL;
    struct buffer *later = NULL;
    const struct memory_limits limits = {
        .device = {.hard = UINT64_MAX, .soft = UINT64_MAX, .guaranteed = 3 * MIB},
        .spilled = UINT64_MAX};
    start("speed=0,pages=on");
    ck_assert_int_eq(memory_quota(m, 1, "one", &limits, &e), 0);
    ck_assert_int_eq(create(1, 1, 4 * MIB, true, &b), 0);
    ck_assert_int_eq(create(2, 2, LIMIT - 4 * MIB, false, &later), 0);
    buffer_free(&t.buffers, b);
    ck_assert_uint_eq(memory_leaving_for(m, memory_number(m, 1)), 4 * MIB);
    ck_assert_uint_eq(memory_leaving_for(m, memory_number(m, 2)), MIB);
    ck_assert_int_eq(create(3, 2, 2 * MIB, false, &later), ERR_DEVICE_MEMORY);
    ck_assert_int_eq(create(3, 2, MIB, false, &later), 0);
    ck_assert_int_eq(create(4, 1, 3 * MIB, false, &b), 0);
    settle();
    ck_assert_int_eq(bring(later), 0);
    ck_assert_int_eq(bring(b), 0);
    stop();
}
END_TEST

/* The front's own work shares a number with the first tenant, but not its account, whichever comes
 * first. */
START_TEST(the_fronts_memory_is_no_tenants)
{
    const uint64_t one = 1;
    struct memory_use use;
    struct memory *m = &t.device.memory;
    struct buffer *b = NULL;
    struct buffer *other = NULL;
    start("speed=0,pages=on");
    ck_assert_int_eq(create(1, 0, MIB, true, &b), 0);
    ck_assert_int_eq(create(2, 1, MIB, true, &other), 0);
    ck_assert_uint_eq(memory_number(m, 0), memory_number(m, 1));
    memory_use(m, m->tenants, &use);
    ck_assert_uint_eq(use.shared, MIB);
    buffer_free(&t.buffers, b);
    ck_assert(memory_leaving(m, NULL) == MIB && memory_leaving(m, &one) == 0);
    settle();
    memory_use(m, m->tenants, &use);
    ck_assert_uint_eq(use.shared, MIB);
    ck_assert_int_eq(create(3, 0, MIB, true, &b), 0);
    buffer_free(&t.buffers, other);
    ck_assert_uint_eq(memory_leaving(m, &one), MIB);
    settle();
    memory_use(m, m->tenants, &use);
    ck_assert(use.shared == 0 && memory_leaving(m, &one) == 0);
    stop();
}
END_TEST

/* No buffer moves for memory that is free when a short job has ended. Behind a long job buffers
 * move. */
START_TEST(no_request_waits_behind_a_long_job)
{
    struct buffer *b = NULL;
    struct buffer *cold = NULL;
    struct buffer *later = NULL;
    start("speed=0,pages=on");
    spill_set_limit(&t.spill, LIMIT);
    ck_assert_int_eq(create(1, 1, 4 * MIB, true, &b), 0);
    ck_assert_int_eq(create(2, 2, LIMIT - 4 * MIB, false, &cold), 0);
    buffer_free(&t.buffers, b);
    ck_assert_int_eq(create(3, 3, 2 * MIB, false, &later), 0);
    ck_assert_int_eq(bring(later), ERR_DEVICE_MEMORY);
    ck_assert(!buffer_away(cold) && t.spill.outs == 0 && !memory_leaves_late(&t.device.memory));
    oldest_ns -= RELEASES_NS;
    ck_assert(memory_leaves_late(&t.device.memory));
    if (bring(later) != 0) { /* what moves has gone by now */
        ck_assert_int_eq(bring(later), 0);
    }
    ck_assert(buffer_away(cold) && !buffer_away(later));
    settle();
    ck_assert(!memory_leaves_late(&t.device.memory));
    idle = true;
    spill_set_limit(&t.spill, 0);
    stop();
}
END_TEST

/* Memory to be released that is kept for its tenant again helps no other: buffers move for a
 * request, which does not wait for the release. _i 1: for managed memory, promised before that was
 * kept. */
START_TEST(others_move_beside_what_stays_guaranteed)
{
    struct err e = ERR_INIT;
    struct memory *m = &t.device.memory;
    struct buffer *b = NULL;
    struct buffer *cold = NULL;
    struct buffer *later = NULL;
    const struct memory_limits limits = {
        .device = {.hard = UINT64_MAX, .soft = UINT64_MAX, .guaranteed = 3 * MIB},
        .spilled = UINT64_MAX};
    start("speed=0,pages=on");
    spill_set_limit(&t.spill, LIMIT);
    m->managed_limit = 8 * MIB;
    ck_assert_int_eq(create(1, 1, 4 * MIB, true, &b), 0);
    ck_assert_int_eq(create(2, 3, LIMIT - 4 * MIB, false, &cold), 0);
    buffer_free(&t.buffers, b);
    ck_assert_int_eq(create(3, 2, 2 * MIB, _i == 1, &later), 0);
    ck_assert(buffer_away(later) && later->promised && later->managed == (_i == 1));
    ck_assert_int_eq(memory_quota(m, 1, "one", &limits, &e), 0);
    if (bring(later) != 0) { /* what moves has gone by now */
        ck_assert_int_eq(bring(later), 0);
    }
    ck_assert(buffer_away(cold) && !buffer_away(later));
    ck_assert_uint_eq(memory_leaving(m, NULL), 4 * MIB);
    settle();
    idle = true;
    spill_set_limit(&t.spill, 0);
    stop();
}
END_TEST

/* The error of a request behind promises does not say that the memory comes free. */
START_TEST(advice_knows_what_is_promised)
{
    struct err e = ERR_INIT;
    struct buffer *b = NULL;
    struct buffer *later = NULL;
    const struct buffer_ask ask = {.id = 4, .size = 2 * MIB, .tenant = 3};
    start("speed=0,pages=on");
    ck_assert_int_eq(create(1, 1, 4 * MIB, true, &b), 0);
    ck_assert_int_eq(create(2, 1, LIMIT - 4 * MIB, false, &later), 0);
    buffer_free(&t.buffers, b);
    ck_assert_int_eq(create(3, 2, 3 * MIB, false, &later), 0);
    ck_assert(later->promised);
    ck_assert_int_eq(buffer_create(&t.buffers, &ask, &b, &e), ERR_DEVICE_MEMORY);
    ck_assert_msg(strstr(e.text, "4194304 bytes come free when what runs has ended, and "
                                 "3145728 are promised to buffers made before") != NULL,
                  "%s", e.text);
    stop();
}
END_TEST

static unsigned started;

static void on_start(void *data, struct job *j, const struct msg_f_job *msg, struct bytes frame)
{
    (void)data;
    (void)msg;
    (void)frame;
    started++;
    job_unpin(&t.buffers, j);
    memory_free(&t.device.memory, &j->pieces[0]);
}

static void on_fail(void *data, struct job *j, const struct err *why)
{
    (void)data;
    ck_abort_msg("job %d: %s", (int)j->id, why->text);
}

static void on_announce(void *data, const struct job *j, bool waits)
{
    (void)data;
    (void)j;
    (void)waits;
}

static bool never_still(void *data, const uint64_t *tenant)
{
    (void)data;
    (void)tenant;
    return false;
}

/* A job of `id` MiB. */
static void offer(struct waiting *w, struct job *j, struct memory_piece *piece, uint64_t id)
{
    struct err e = ERR_INIT;
    struct capbuf frame;
    const struct msg_f_job msg = {.job = id, .deadline_ns = UINT64_MAX};
    *j = (struct job){.id = id, .tenant = 3, .temp_bytes = id * MIB, .pieces = piece};
    capbuf_init(&frame, FRAME_MAX_BYTES);
    ck_assert_int_eq(proto_encode(&schema_msg_f_job, &msg, &frame, &e), 0);
    ck_assert_int_eq(waiting_offer(w, j, bytes_of(frame.data, frame.size), &msg, &e), 0);
    capbuf_finish(&frame);
}

/* While a long job runs, a job that waits for memory free at its end lets others pass, and no
 * longer; _i 1: a job that waits for more does not. */
START_TEST(others_pass_behind_a_long_job)
{
    const struct ledger ledger = {.by_id = NULL};
    struct waiting w;
    struct job job[3];
    struct memory_piece piece[3] = {{.dirty = false}};
    struct buffer *b = NULL;
    struct buffer *hot = NULL;
    start("speed=0,pages=on");
    started = 0;
    waiting_init(
        &w, &t.spill, &ledger,
        (struct waiting_callbacks){
            .start = on_start, .fail = on_fail, .announce = on_announce, .still = never_still},
        NULL);
    ck_assert_int_eq(create(1, 1, 4 * MIB, true, &b), 0);
    ck_assert_int_eq(create(2, 2, 10 * MIB, false, &hot), 0);
    buffer_pin(&t.buffers, hot);
    buffer_free(&t.buffers, b);
    offer(&w, &job[0], &piece[0], _i == 0 ? 4 : 8);
    offer(&w, &job[1], &piece[1], 2);
    ck_assert(w.count == 2 && started == 0);
    oldest_ns -= RELEASES_NS;
    waiting_poll(&w, clock_now_ns());
    ck_assert(w.count == (_i == 0 ? 1 : 2) && started == (_i == 0 ? 1 : 0));
    oldest_ns = clock_now_ns();
    waiting_poll(&w, clock_now_ns());
    unsigned before = started;
    offer(&w, &job[2], &piece[2], 1);
    ck_assert_uint_eq(started, before);
    while (w.first != NULL) {
        waiting_remove(&w, &job[w.first == job[0].waiting ? 0 : w.first == job[1].waiting ? 1 : 2]);
    }
    buffer_unpin(&t.buffers, hot);
    settle();
    stop();
}
END_TEST

/* A failed try waits for no copies, so it is no change for other jobs that wait. Their end is one.
 */
START_TEST(a_try_waits_for_no_copies)
{
    struct err e = ERR_INIT;
    struct buffer *b = NULL;
    struct buffer *cold = NULL;
    struct buffer *later = NULL;
    const struct memory_limits less = {.device = {.hard = MIB, .soft = UINT64_MAX},
                                       .spilled = UINT64_MAX};
    start("speed=0,pages=on");
    spill_set_limit(&t.spill, LIMIT);
    ck_assert_int_eq(create(1, 1, 4 * MIB, true, &b), 0);
    ck_assert_int_eq(create(2, 2, 4 * MIB, false, &cold), 0);
    cold->content = BUFFER_BYTES;
    memory_cleaned(&cold->piece);
    buffer_free(&t.buffers, b);
    ck_assert_int_eq(create(3, 1, 2 * MIB, true, &later), 0);
    settle();
    t.device.memory.managed_limit = MIB;
    ck_assert_int_eq(memory_quota(&t.device.memory, 2, "two", &less, &e), 0);
    ck_assert_int_eq(spill_shed(&t.spill, 2, &e), 0);
    ck_assert_ptr_nonnull(t.spill.first);
    struct job j = {.id = 1, .tenant = 1, .buffers = &later, .buffer_count = 1};
    uint64_t changes = spill_changes(&t.spill);
    ck_assert_int_eq(spill_acquire(&t.spill, &j, &e), ERR_DEVICE_MEMORY);
    ck_assert_ptr_nonnull(t.spill.first);
    ck_assert_uint_eq(spill_changes(&t.spill), changes);
    local_quiet(&t);
    ck_assert_uint_ne(spill_changes(&t.spill), changes);
    changes = spill_changes(&t.spill);
    ck_assert_int_eq(spill_acquire(&t.spill, &j, &e), ERR_DEVICE_MEMORY);
    ck_assert_uint_eq(spill_changes(&t.spill), changes);
    idle = true;
    buffers_finish(&t.buffers);
    spill_set_limit(&t.spill, 0);
    stop();
}
END_TEST

/* A request for more than the device has is not put off either. */
START_TEST(later_memory_is_bounded)
{
    struct buffer *b = NULL;
    struct buffer *later = NULL;
    start("speed=0,pages=on");
    ck_assert_int_eq(create(1, 1, 4 * MIB, true, &b), 0);
    ck_assert_int_eq(create(2, 2, LIMIT - 4 * MIB, false, &later), 0);
    buffer_free(&t.buffers, b);
    ck_assert_int_eq(create(3, 3, 3 * MIB, false, &later), 0);
    ck_assert_int_eq(create(4, 3, 3 * MIB, false, &later), ERR_DEVICE_MEMORY);
    stop();
}
END_TEST

/* Blocks of a pool that has no pages: until they are gone there is no more than the limit. */
START_TEST(blocks_of_the_pool)
{
    struct memory *m = &t.device.memory;
    struct buffer *b = NULL;
    struct buffer *later = NULL;
    start("speed=0,pages=off");
    uint64_t taken = m->in_use;
    ck_assert_int_eq(create(1, 1, 8 * MIB, false, &b), 0);
    ck_assert_uint_eq(m->in_use, taken + 8 * MIB);
    buffer_free(&t.buffers, b);
    memory_trim(m);
    ck_assert(memory_leaving(m, NULL) >= 8 * MIB && live == 1);
    ck_assert_int_eq(create(2, 1, 4 * MIB, false, &b), 0); /* there is room for both */
    ck_assert(!buffer_away(b) && live == 2);
    ck_assert_int_eq(create(3, 1, 10 * MIB, false, &later), 0);
    ck_assert_int_eq(bring(later), ERR_DEVICE_MEMORY);
    ck_assert(!buffer_away(b) && live == 2);
    settle();
    ck_assert(memory_leaving(m, NULL) == 0 && m->in_use == 4 * MIB);
    ck_assert_int_eq(bring(later), 0);
    ck_assert_uint_le(m->in_use, LIMIT);
    stop();
}
END_TEST

static int known(struct backend_device *d, void *data, size_t size, bool writes, struct err *e)
{
    (void)d;
    (void)data;
    (void)size;
    (void)writes;
    (void)e;
    live++;
    return 0;
}

static void unknown(struct backend_device *d, void *data, size_t size)
{
    (void)d;
    (void)size;
    (void)data;
    live--;
}

/* Host memory that the driver knows, and which is more than there may be from now on. */
START_TEST(chunks_of_the_host)
{
    start("speed=0,pages=on");
    ops.register_host = known;
    ops.unregister_host = unknown;
    t.device.b = &backend;
    spill_set_limit(&t.spill, LIMIT);
    ck_assert_uint_eq(live, 1);
    spill_set_limit(&t.spill, 0);
    ck_assert(live == 1 && t.spill.host.pool.bytes == LIMIT && releases.bytes == LIMIT);
    spill_set_limit(&t.spill, LIMIT);
    settle();
    ck_assert(live == 0 && t.spill.host.pool.bytes == 0 && releases.bytes == 0);
    idle = true;
    spill_set_limit(&t.spill, 0);
    stop();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("worker leaving");
    TCase *tc = tcase_create("leaving");
    tcase_add_test(tc, managed_memory_counts_until_it_is_released);
    tcase_add_test(tc, at_once_where_nothing_runs);
    tcase_add_test(tc, leaving_memory_is_its_tenants);
    tcase_add_loop_test(tc, promised_memory_is_its_tenants, 0, 2);
    tcase_add_test(tc, leaving_memory_stays_guaranteed);
    tcase_add_loop_test(tc, others_move_beside_what_stays_guaranteed, 0, 2);
    tcase_add_test(tc, advice_knows_what_is_promised);
    tcase_add_test(tc, the_fronts_memory_is_no_tenants);
    tcase_add_test(tc, no_request_waits_behind_a_long_job);
    tcase_add_loop_test(tc, others_pass_behind_a_long_job, 0, 2);
    tcase_add_test(tc, a_try_waits_for_no_copies);
    tcase_add_test(tc, later_memory_is_bounded);
    tcase_add_test(tc, blocks_of_the_pool);
    tcase_add_test(tc, chunks_of_the_host);
    suite_add_tcase(suite, tc);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
