/* A worker's books of its memory, checked in this process on a simulated device: jobs that no
 * device could serve, the numbers of tenants, and snapshots that are made while buffers change. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <uv.h>

#include "common/seqpacket.h"
#include "daemon/worker/run/job.h"
#include "daemon/worker/serve/snapshot.h"
#include "tests/unit/worker/local.h"

#define MIB   ((uint64_t)1 << 20)
#define LIMIT (16 * MIB)
#define MOST  (4 * MIB) /* of one block, as some devices say */
#define KEYS  1023u     /* as many as there are numbers */

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

/* ---- temporaries ----------------------------------------------------------------------------- */

/* A job that fills each temporary but those of `silent`. */
static int job_of(const uint64_t *sizes, unsigned count, unsigned silent, struct job **ret_job,
                  struct err *e)
{
    const struct job_scope scope = {.device = &t.device, .buffers = &t.buffers};
    struct msg_f_job msg = {.job = 1, .tenant = 1};
    struct capbuf temps;
    struct capbuf steps;
    capbuf_init(&temps, FRAME_MAX_BYTES);
    capbuf_init(&steps, FRAME_MAX_BYTES);
    for (unsigned i = 0; i < count; i++) {
        const struct proto_wtemp temp = {.size = sizes[i]};
        ck_assert_int_eq(proto_list_add(&schema_wtemp, &temp, &temps, NULL), 0);
    }
    for (unsigned round = 0; round < 2; round++) { /* all are needed at once */
        for (unsigned i = 0; i < count - silent; i++) {
            const struct proto_ref ref = {.tag = REF_TEMP, .id = i, .size = sizes[i]};
            struct proto_wstep step = {.op = OP_FILL, .pattern = bytes_of("x", 1)};
            struct capbuf args;
            capbuf_init(&args, FRAME_MAX_BYTES);
            ck_assert_int_eq(proto_list_add(&schema_ref, &ref, &args, NULL), 0);
            step.args = proto_list_of(&args, 1);
            ck_assert_int_eq(proto_list_add(&schema_wstep, &step, &steps, NULL), 0);
            capbuf_finish(&args);
        }
    }
    msg.temps = proto_list_of(&temps, count);
    msg.steps = proto_list_of(&steps, 2 * (uint64_t)(count - silent));
    int rc = job_create(&scope, &msg, ret_job, e);
    rc = rc == 0 ? spill_acquire(&t.spill, *ret_job, e) : rc;
    capbuf_finish(&temps);
    capbuf_finish(&steps);
    return rc;
}

static void job_end(struct job *j)
{
    const struct job_scope scope = {.device = &t.device, .buffers = &t.buffers};
    job_release(&scope, j);
    job_destroy(j);
}

/* No buffer moves for a temporary that the device cannot give. */
START_TEST(more_than_one_block_moves_no_buffer)
{
    const uint64_t sizes[] = {MOST + 4096};
    struct job *j = NULL;
    struct err e = ERR_INIT;
    start(_i);
    t.device.info.max_alloc = MOST;
    for (uint64_t id = 1; id <= 2; id++) {
        struct buffer *b = make(id, 7 * MIB, 2);
        b->sealed_fd = memfd_create("host copy", 0);
        ck_assert_int_ge(b->sealed_fd, 0);
    }
    ck_assert_int_eq(job_of(sizes, 1, 0, &j, &e), ERR_DEVICE_MEMORY);
    ck_assert_ptr_nonnull(strstr(e.text, "the device gives at most 4194304 in one piece"));
    ck_assert_uint_eq(t.spill.outs, 0);
    local_stop(&t);
}
END_TEST

/* The host's limit may be set below its use: buffers stay, and no more have room. */
START_TEST(a_limit_below_what_the_host_has)
{
    const uint64_t some[] = {4 * MIB};
    const uint64_t all[] = {LIMIT};
    struct job *j = NULL;
    struct err e = ERR_INIT;
    start(_i);
    for (uint64_t id = 1; id <= LIMIT / MIB; id++) {
        (void)make(id, MIB, 2);
    }
    while (job_of(some, 1, 0, &j, &e) != 0) { /* until they have moved */
        spill_poll(&t.spill);
        job_end(j);
    }
    job_end(j);
    while (spill_busy(&t.spill)) {
        spill_poll(&t.spill);
    }
    ck_assert_uint_ge(t.spill.bytes, 4 * MIB);
    ck_assert_uint_lt(t.spill.bytes, LIMIT);
    spill_set_limit(&t.spill, MIB);
    ck_assert_int_eq(job_of(all, 1, 0, &j, &e), ERR_DEVICE_MEMORY);
    ck_assert_msg(strstr(e.text, "the host has room for 0 of its 1048576 bytes") != NULL, "%s",
                  e.text);
    job_end(j);
    local_stop(&t);
}
END_TEST

/* Each temporary has its own piece. Temporaries that no step needs have none, whatever their size.
 */
START_TEST(unmentioned_temporaries_take_no_memory)
{
    const uint64_t sizes[] = {3 * MIB, 3 * MIB, INT64_MAX, INT64_MAX, INT64_MAX};
    struct job *j = NULL;
    struct err e = ERR_INIT;
    start(_i);
    t.device.info.max_alloc = MOST;
    ck_assert_msg(job_of(sizes, 5, 3, &j, &e) == 0, "%s", e.text);
    ck_assert(j->apart);
    ck_assert_uint_eq(j->temp_bytes, 6 * MIB);
    ck_assert_ptr_null(j->pieces[2].ref.block);
    job_end(j);
    local_stop(&t);
}
END_TEST

/* ---- the numbers of tenants ------------------------------------------------------------------ */

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

/* A tenant without limits and memory keeps no number from others. The next owner of the number
 * reads no bytes of the former one. */
START_TEST(numbers_of_tenants_come_back)
{
    struct memory_piece piece;
    struct err e = ERR_INIT;
    start(_i);
    for (uint64_t key = 1; key <= KEYS; key++) {
        ck_assert_msg(limit(key, LIMIT, &e) == 0, "%s", e.text);
    }
    ck_assert_int_eq(limit(KEYS + 1, LIMIT, &e), ERR_LIMIT);
    for (uint64_t key = KEYS + 1; key <= KEYS + 3; key++) { /* says nothing, and needs none */
        ck_assert_int_eq(limit(key, UINT64_MAX, &e), 0);
    }
    ck_assert_msg(take(1, LIMIT, &piece, &e) == 0, "%s", e.text);
    memory_cleaned(&piece); /* what is in it is of the first one's from now on */
    ck_assert_int_eq(limit(1, UINT64_MAX, &e), 0);
    ck_assert_int_eq(limit(KEYS + 1, LIMIT, &e), ERR_LIMIT); /* the first one has something */
    memory_free(&t.device.memory, &piece);
    e = (struct err)ERR_INIT;
    ck_assert_msg(limit(KEYS + 1, 4 * MIB, &e) == 0, "%s", e.text);
    ck_assert_int_eq(take(KEYS + 1, 6 * MIB, &piece, &e), ERR_LIMIT);
    e = (struct err)ERR_INIT;
    ck_assert_int_eq(limit(KEYS + 1, LIMIT, &e), 0);
    ck_assert_msg(take(KEYS + 1, LIMIT, &piece, &e) == 0, "%s", e.text);
    ck_assert(piece.dirty);
    memory_free(&t.device.memory, &piece);
    for (uint64_t key = 2; key <= KEYS; key++) {
        ck_assert_int_eq(limit(key, UINT64_MAX, &e), 0);
    }
    for (uint64_t key = 5000; key < 5000 + KEYS - 1; key++) {
        ck_assert_msg(limit(key, MIB, &e) == 0, "%s", e.text);
    }
    ck_assert_int_eq(take(5000, 2 * MIB, &piece, &e), ERR_LIMIT);
    local_stop(&t);
}
END_TEST

/* ---- names in a snapshot --------------------------------------------------------------------- */

enum { NAMED = 600 };

static void on_frame(void *data, struct bytes frame, struct frame_fds *fds)
{
    (void)data;
    (void)frame;
    (void)fds;
}

static void on_closed(void *data, const struct err *e)
{
    (void)data;
    (void)e;
}

/* As if it had been to the host and back: it is where the last one was that went. */
static void come_back(struct buffer *b)
{
    struct err e = ERR_INIT;
    uint64_t bytes = b->size;
    memory_free(&t.device.memory, &b->piece);
    ck_assert_msg(take(b->tenant, bytes, &b->piece, &e) == 0, "%s", e.text);
}

static void snapshot_read(int fd, struct memfd *ret_memory, struct snapshot_view *ret_view)
{
    static uint8_t packet[FRAME_MAX_BYTES];
    struct frame_fds fds = {.count = 0};
    struct err e = ERR_INIT;
    size_t size = 0;
    ck_assert_int_eq(seqpacket_recv(fd, packet, sizeof packet, &size, &fds, &e), 0);
    ck_assert_int_eq(fds.count, 1);
    ck_assert_int_eq(memfd_adopt(fds.fd[0], sizeof(struct snapshot_head), false, ret_memory, &e),
                     0);
    ck_assert_int_eq(snapshot_open(ret_memory->data, ret_memory->size, ret_view, &e), 0);
}

static void loop_until(struct snapshot_maker *m, uv_loop_t *loop, enum snapshot_step step)
{
    while (m->step != step) {
        (void)uv_run(loop, UV_RUN_NOWAIT);
    }
    channel_flush(m->channel);
}

static void snapshot_make(struct snapshot_maker *m, uv_loop_t *loop, enum snapshot_step step)
{
    struct err e = ERR_INIT;
    ck_assert_int_eq(snapshot_ask(m, 1, true, &e), 0);
    loop_until(m, loop, step);
}

/* How many are named. same: they are where `at` says, else it is noted there. */
static unsigned where(const struct snapshot_view *view, uint64_t *at, bool same)
{
    unsigned named = 0;
    for (uint32_t i = 0; i < view->head.pieces; i++) {
        struct snapshot_piece p = snapshot_piece(view, i);
        if (p.kind == SNAPSHOT_BUFFER) {
            ck_assert(p.owner >= 1 && p.owner <= NAMED);
            ck_assert_msg(!same || p.at == at[p.owner], "buffer %u is not at %#llx",
                          (unsigned)p.owner, (unsigned long long)p.at);
            at[p.owner] = p.at;
            named++;
        }
    }
    return named;
}

/* While buffers are named some go, and others come to their places: these have no name there. */
START_TEST(a_reused_place_has_no_name)
{
    struct completion completion = {.first = NULL};
    struct arenas arenas = {.bytes = 0};
    struct snapshot_maker maker;
    struct snapshot_view view;
    struct memfd memory = MEMFD_NONE;
    struct channel channel;
    struct err e = ERR_INIT;
    uv_loop_t loop;
    int pair[2];
    uint64_t at[NAMED + 1];
    start(_i);
    for (uint64_t id = 1; id <= NAMED; id++) {
        (void)make(id, id % 2 == 0 ? 300 : 8192, 1);
    }
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(seqpacket_pair(pair, &e), 0);
    const struct channel_callbacks callbacks = {.frame = on_frame, .closed = on_closed};
    ck_assert_int_eq(channel_init(&channel, &loop, pair[1], callbacks, NULL, &e), 0);
    snapshot_init(&maker, &loop, &channel, &t.device.memory, &t.buffers, &completion, &arenas);
    snapshot_make(&maker, &loop, SNAPSHOT_IDLE);
    snapshot_read(pair[0], &memory, &view);
    ck_assert_uint_eq(where(&view, at, false), NAMED);
    memfd_finish(&memory);
    snapshot_make(&maker, &loop, SNAPSHOT_NAMES);
    for (uint64_t id = 300; id <= 400; id++) {
        buffer_free(&t.buffers, buffer_find(&t.buffers, id, NULL));
        come_back(buffer_find(&t.buffers, id + 200, NULL));
    }
    loop_until(&maker, &loop, SNAPSHOT_IDLE);
    snapshot_read(pair[0], &memory, &view);
    ck_assert_uint_ge(where(&view, at, true), NAMED - 202);
    memfd_finish(&memory);
    snapshot_finish(&maker);
    channel_finish(&channel);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    (void)close(pair[0]);
    (void)close(pair[1]);
    local_stop(&t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("room");
    TCase *tc = tcase_create("room");
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, more_than_one_block_moves_no_buffer, 0, 2);
    tcase_add_loop_test(tc, a_limit_below_what_the_host_has, 0, 2);
    tcase_add_loop_test(tc, unmentioned_temporaries_take_no_memory, 0, 2);
    tcase_add_loop_test(tc, numbers_of_tenants_come_back, 0, 2);
    tcase_add_loop_test(tc, a_reused_place_has_no_name, 0, 2);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
