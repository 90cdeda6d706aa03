/* The tenant that memory is counted for: tenants and their numbers, buffers on the host, free
 * objects in slabs. A worker's memory in this process, on a simulated device. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/seqpacket.h"
#include "daemon/worker/run/job.h"
#include "tests/unit/worker/local.h"

#define MIB   ((uint64_t)1 << 20)
#define LIMIT (16 * MIB)
#define KEYS  1023u /* as many as there are numbers */

static const char *const SOURCES[] = {"speed=0,pages=off", "speed=0,pages=on"};

static struct local t;

static void start(int which)
{
    local_start(&t, "sim", SOURCES[which], LIMIT, LIMIT);
}

static struct buffer *make(uint64_t id, uint64_t bytes, uint64_t tenant)
{
    struct err e = ERR_INIT;
    struct buffer *b = NULL;
    const struct buffer_ask ask = {.id = id, .size = bytes, .tenant = tenant};
    ck_assert_msg(buffer_create(&t.buffers, &ask, &b, &e) == 0, "%s", e.text);
    memory_cleaned(&b->piece);
    b->content = BUFFER_BYTES;
    return b;
}

static int limit(uint64_t key, uint64_t hard, struct err *e)
{
    const struct memory_limits limits = {.device = {.hard = hard, .soft = UINT64_MAX},
                                         .spilled = UINT64_MAX};
    return memory_quota(&t.device.memory, key, "somebody", &limits, e);
}

static int take(uint64_t key, uint64_t bytes, struct memory_piece *ret_piece, struct err *e)
{
    const struct memory_ask ask = {.size = bytes, .tenant = key};
    return memory_alloc(&t.device.memory, &ask, ret_piece, e);
}

static struct memory_use use_of(uint64_t key)
{
    struct memory_use u = {.asked = 0};
    const struct memory_tenant *found = NULL;
    HASH_FIND(hh, t.device.memory.tenants, &key, sizeof key, found);
    if (found != NULL) {
        memory_use(&t.device.memory, found, &u);
    }
    return u;
}

/* Many tenants without limits, one after the other, with small pieces and large ones: a tenant that
 * comes when all numbers are given gets one of its own all the same, and is reported. */
START_TEST(numbers_of_tenants_without_limits_come_back)
{
    struct memory_piece piece[8];
    struct err e = ERR_INIT;
    start(_i);
    for (uint64_t key = 1; key <= KEYS; key++) {
        ck_assert_msg(take(key, key % 2 == 0 ? 256 : 2 * MIB, &piece[0], &e) == 0, "%s", e.text);
        memory_free(&t.device.memory, &piece[0]);
    }
    for (uint64_t i = 0; i < 8; i++) {
        ck_assert_msg(take(KEYS + 1 + i, MIB, &piece[i], &e) == 0, "%s", e.text);
        ck_assert_uint_eq(use_of(KEYS + 1 + i).asked, MIB);
    }
    for (uint64_t i = 0; i < 8; i++) {
        memory_free(&t.device.memory, &piece[i]);
        ck_assert_uint_eq(use_of(KEYS + 1 + i).asked, 0);
    }
    local_stop(&t);
}
END_TEST

/* A job that fills temporaries of `size` bytes. */
static int job_of(uint64_t size, struct job **ret_job, struct err *e)
{
    const struct job_scope scope = {.device = &t.device, .buffers = &t.buffers};
    const struct proto_wtemp temp = {.size = size};
    const struct proto_ref ref = {.tag = REF_TEMP, .size = size};
    struct proto_wstep step = {.op = OP_FILL, .pattern = bytes_of("x", 1)};
    struct msg_f_job msg = {.job = 1, .tenant = 1};
    struct capbuf temps;
    struct capbuf steps;
    struct capbuf args;
    capbuf_init(&temps, FRAME_MAX_BYTES);
    capbuf_init(&steps, FRAME_MAX_BYTES);
    capbuf_init(&args, FRAME_MAX_BYTES);
    ck_assert_int_eq(proto_list_add(&schema_wtemp, &temp, &temps, NULL), 0);
    ck_assert_int_eq(proto_list_add(&schema_ref, &ref, &args, NULL), 0);
    step.args = proto_list_of(&args, 1);
    ck_assert_int_eq(proto_list_add(&schema_wstep, &step, &steps, NULL), 0);
    msg.temps = proto_list_of(&temps, 1);
    msg.steps = proto_list_of(&steps, 1);
    int rc = job_create(&scope, &msg, ret_job, e);
    rc = rc == 0 ? spill_acquire(&t.spill, *ret_job, e) : rc;
    capbuf_finish(&temps);
    capbuf_finish(&steps);
    capbuf_finish(&args);
    return rc;
}

static void job_end(struct job *j)
{
    const struct job_scope scope = {.device = &t.device, .buffers = &t.buffers};
    job_release(&scope, j);
    job_destroy(j);
}

/* ---- what lies on the host ------------------------------------------------------------------- */

/* Gets temporaries of `bytes`; buffers move to the host for them. */
static void crowd(uint64_t bytes)
{
    struct job *j = NULL;
    struct err e = ERR_INIT;
    int rc = ERR_DEVICE_MEMORY;
    while (rc == ERR_DEVICE_MEMORY && (j == NULL || spill_busy(&t.spill))) {
        if (j != NULL) {
            job_end(j);
        }
        spill_poll(&t.spill);
        e = (struct err)ERR_INIT;
        rc = job_of(bytes, &j, &e);
    }
    ck_assert_msg(rc == 0, "%s", e.text);
    job_end(j);
    while (spill_busy(&t.spill)) {
        spill_poll(&t.spill);
    }
}

/* A tenant gets its number while it has a buffer on the host, and another buffer goes there: each
 * is taken off the account that it was counted for. */
START_TEST(a_buffer_on_the_host_is_counted_once)
{
    struct err e = ERR_INIT;
    start(_i);
    for (uint64_t key = 1; key <= KEYS; key++) {
        ck_assert_msg(limit(key, LIMIT, &e) == 0, "%s", e.text);
    }
    struct buffer *first = make(1, 2 * MIB, KEYS + 1);
    crowd(15 * MIB);
    ck_assert(buffer_away(first));
    ck_assert_uint_eq(t.spill.bytes, 2 * MIB);
    ck_assert_int_eq(limit(2, UINT64_MAX, &e), 0);
    ck_assert_msg(limit(KEYS + 1, LIMIT, &e) == 0, "%s", e.text);
    struct buffer *second = make(2, 3 * MIB, KEYS + 1);
    crowd(14 * MIB);
    ck_assert(buffer_away(second));
    ck_assert_uint_eq(use_of(KEYS + 1).spilled, 3 * MIB);
    buffer_free(&t.buffers, first);
    ck_assert_uint_eq(use_of(KEYS + 1).spilled, 3 * MIB);
    buffer_free(&t.buffers, second);
    ck_assert_uint_eq(use_of(KEYS + 1).spilled, 0);
    ck_assert_uint_eq(t.spill.bytes, 0);
    local_stop(&t);
}
END_TEST

/* Free objects of slabs are charged, but no buffer moves for them when the limit becomes lower: the
 * pool compacts them for the next request. */
START_TEST(a_lower_limit_moves_no_buffer_for_free_objects)
{
    struct memory_piece piece;
    struct err e = ERR_INIT;
    start(_i);
    ck_assert_msg(limit(1, LIMIT, &e) == 0, "%s", e.text);
    struct buffer *b = make(1, 4 * MIB, 1);
    uint64_t step = 256;
    for (uint64_t size = step; size <= 65536; size += step) { /* of each class of objects one */
        ck_assert_msg(take(1, size, &piece, &e) == 0, "%s", e.text);
        memory_free(&t.device.memory, &piece);
        step *= size == 16 * step ? 2 : 1;
    }
    ck_assert_uint_gt(use_of(1).mapped, 6 * MIB);
    ck_assert_msg(limit(1, 6 * MIB, &e) == 0, "%s", e.text);
    ck_assert_int_eq(spill_shed(&t.spill, 1, &e), 0);
    ck_assert_uint_eq(t.spill.outs, 0);
    ck_assert(!buffer_away(b));
    ck_assert_msg(take(1, 2 * MIB, &piece, &e) == 0, "%s", e.text);
    memory_free(&t.device.memory, &piece);
    ck_assert_msg(limit(1, 3 * MIB, &e) == 0, "%s", e.text);
    ck_assert_int_eq(spill_shed(&t.spill, 1, &e), 0);
    ck_assert(buffer_away(b));
    local_stop(&t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("counted");
    TCase *tc = tcase_create("counted");
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, numbers_of_tenants_without_limits_come_back, 0, 2);
    tcase_add_loop_test(tc, a_buffer_on_the_host_is_counted_once, 0, 2);
    tcase_add_loop_test(tc, a_lower_limit_moves_no_buffer_for_free_objects, 0, 2);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
