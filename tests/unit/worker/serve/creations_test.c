/* Exported and managed buffers that wait for room on a full device: a worker's server in this
 * process, on a simulated device whose ends of commands the test holds back. */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/seqpacket.h"
#include "daemon/worker/serve/serve.h"
#include "tests/unit/common/suite.h"

#define MIB    ((uint64_t)1 << 20)
#define LIMIT  (16 * MIB)
#define COLD   16u /* buffers of one MiB each, which fill the device */
#define WANTED (8 * MIB)
#define NEW    100u /* id */
#define IDS    512u

static struct {
    struct backend backend;
    struct backend_memory_ops memory;
    struct backend_marker_ops marker;
    const struct backend *sim;
    bool hold; /* no marker is passed */
    struct server server;
    uv_loop_t loop;
    struct duplex front;
    int fd;
    bool answered[IDS]; /* the buffer with this id */
    int64_t code[IDS];
    char text[ERR_TEXT_MAX]; /* of the last answer */
    unsigned pools;          /* W_POOLs */
    unsigned listed;         /* buffers in the inventory */
    uint64_t arriving;       /* id of the last one there that is sealed and arriving; 0: none */
    bool inventory;          /* it has ended */
} t;

static int alloc_apart(struct backend_device *d, uint64_t size, struct backend_block **ret_block,
                       struct err *e)
{
    return t.sim->memory->alloc(d, size, ret_block, e);
}

static void free_apart(struct backend_device *d, struct backend_block *block)
{
    t.sim->memory->free(d, block);
}

static enum backend_state state_held(struct backend_marker *m, struct err *e)
{
    return t.hold ? BACKEND_PENDING : t.sim->marker->state(m, e);
}

static void hear_buffer(struct bytes frame)
{
    struct msg_w_buffer m;
    ck_assert_int_eq(proto_decode(&schema_msg_w_buffer, frame, &m, NULL), 0);
    ck_assert(m.id < IDS && !t.answered[m.id]);
    t.answered[m.id] = true;
    t.code[m.id] = m.code;
    ck_assert(bytes_to_str(m.text, t.text, sizeof t.text));
}

static void hear_inventory_buffer(struct bytes frame, int fds)
{
    struct msg_w_inventory_buffer m;
    ck_assert_int_eq(proto_decode(&schema_msg_w_inventory_buffer, frame, &m, NULL), 0);
    ck_assert_uint_ne(m.id, NEW);
    t.listed++;
    if (m.sealed && m.arriving) {
        ck_assert_int_eq(fds, 1);
        t.arriving = m.id;
    }
}

static void hear(struct bytes frame, int fds)
{
    unsigned kind = proto_kind(frame);
    if (kind == FRAME_KIND_W_BUFFER) {
        hear_buffer(frame);
    } else if (kind == FRAME_KIND_W_INVENTORY_BUFFER) {
        hear_inventory_buffer(frame, fds);
    }
    t.pools += kind == FRAME_KIND_W_POOL;
    t.inventory = t.inventory || kind == FRAME_KIND_W_INVENTORY_END;
}

/* A turn of the loop. Then the front takes what was sent. */
static void turn(void)
{
    const struct timespec pause = {.tv_nsec = 100000};
    struct bytes frame;
    struct frame_fds fds = {.count = 0};
    struct err e = ERR_INIT;
    (void)uv_run(&t.loop, UV_RUN_NOWAIT);
    while (duplex_next(&t.front, &frame, &fds, &e) == 1) {
        hear(frame, fds.count);
        frame_fds_close(&fds);
    }
    (void)nanosleep(&pause, NULL);
}

static void turns(unsigned count)
{
    while (count-- > 0) {
        turn();
    }
}

static void ask(const struct schema *schema, const void *msg, int fd)
{
    struct err e = ERR_INIT;
    struct capbuf out;
    const struct frame_fds fds = {.fd = {fd}, .count = fd >= 0};
    capbuf_init(&out, FRAME_MAX_BYTES);
    ck_assert_int_eq(proto_encode(schema, msg, &out, &e), 0);
    ck_assert_msg(duplex_send(&t.front, capbuf_view(&out), &fds, &e) == 0, "%s", e.text);
    capbuf_finish(&out);
}

/* Waits for the answer about a buffer; its code. */
static int64_t answer(uint64_t id)
{
    while (!t.answered[id]) {
        turn();
    }
    t.answered[id] = false;
    return t.code[id];
}

static void create(uint64_t id, uint64_t bytes, uint64_t tenant, bool exported, bool managed)
{
    const struct msg_f_buffer_create m = {
        .id = id, .size = bytes, .tenant = tenant, .exported = exported, .managed = managed};
    ask(&schema_msg_f_buffer_create, &m, -1);
}

static void restore(uint64_t id, uint64_t bytes)
{
    struct memfd host = MEMFD_NONE;
    struct err e = ERR_INIT;
    const struct msg_f_buffer_restore m = {.id = id, .size = bytes, .tenant = 2, .exported = 1};
    ck_assert_int_eq(memfd_create_sealed("restored", bytes, &host, &e), 0);
    ask(&schema_msg_f_buffer_restore, &m, host.fd);
    memfd_finish(&host);
}

static int memory_of(uint64_t bytes)
{
    struct memfd m = MEMFD_NONE;
    struct err e = ERR_INIT;
    ck_assert_int_eq(memfd_create_sealed("staging", bytes, &m, &e), 0);
    int fd = m.fd;
    m.fd = -1;
    memfd_finish(&m);
    return fd;
}

/* Buffers with bytes that only the device has. */
static void fill(void)
{
    for (uint64_t id = 1; id <= COLD; id++) {
        create(id, MIB, 1, false, false);
        ck_assert_int_eq(answer(id), 0);
        buffer_find(&t.server.buffers, id, NULL)->content = BUFFER_BYTES;
    }
}

static void start(int which)
{
    struct err e = ERR_INIT;
    int pair[2];
    memset(&t, 0, sizeof t);
    t.sim = backend_find("sim");
    t.backend = *t.sim;
    t.memory = *t.sim->memory;
    t.marker = *t.sim->marker;
    t.memory.alloc_shared = t.memory.alloc_managed = alloc_apart;
    t.memory.free_shared = free_apart;
    t.marker.state = state_held;
    t.backend.memory = &t.memory;
    t.backend.marker = &t.marker;
    const struct device_options o = {.backend = "sim",
                                     .through = &t.backend,
                                     .options = which % 2 == 0 ? "speed=0,pages=on,memory=16M"
                                                               : "speed=0,pages=off,memory=16M",
                                     .memory_limit = LIMIT,
                                     .spill_limit = 2 * LIMIT,
                                     .managed_limit = LIMIT,
                                     .streams = 2,
                                     .wake = pump_wake,
                                     .wake_data = &t.server.pump};
    ck_assert_int_eq(seqpacket_pair(pair, &e), 0);
    t.fd = pair[0];
    duplex_init(&t.front, t.fd, SIZE_MAX, false);
    ck_assert_int_eq(uv_loop_init(&t.loop), 0);
    ck_assert_int_eq(pump_init(&t.server.pump, &t.loop, &e), 0);
    ck_assert_int_eq(staging_init(&t.server.staging, memory_of(MIB), memory_of(MIB), &e), 0);
    ck_assert_msg(device_open(&t.server.device, &o, &e) == 0, "%s", e.text);
    ck_assert_int_eq(server_start(&t.server, &t.loop, pair[1], "test", 2 * LIMIT, &e), 0);
    fill();
}

static void stop(void)
{
    t.hold = false;
    while (!server_idle(&t.server)) {
        turn();
    }
    server_finish(&t.server);
    pump_stop(&t.server.pump);
    while (uv_loop_alive(&t.loop)) {
        (void)uv_run(&t.loop, UV_RUN_NOWAIT);
    }
    copies_finish(&t.server.copies);
    spill_finish(&t.server.spill);
    pinning_finish(&t.server.pinning);
    device_close(&t.server.device);
    pump_finish(&t.server.pump);
    staging_finish(&t.server.staging);
    ck_assert_int_eq(uv_loop_close(&t.loop), 0);
    duplex_finish(&t.front);
    (void)close(t.fd);
}

static uint64_t reserved(uint64_t tenant)
{
    struct pool_account a;
    pool_account(t.server.device.memory.pool, memory_number(&t.server.device.memory, tenant), &a);
    return a.reserved;
}

static unsigned waiting(void)
{
    unsigned count = 0;
    for (const struct creation *x = t.server.creations.first; x != NULL; x = x->next) {
        count++;
    }
    return count;
}

/* Asks for a buffer for which others have to go, whose copies do not end. */
static void ask_for_new(int which)
{
    t.hold = true;
    create(NEW, WANTED, 2, which < 2, which >= 2);
    turns(5);
    ck_assert_uint_eq(waiting(), 1);
    ck_assert(spill_busy(&t.server.spill) && !server_idle(&t.server));
}

/* Meanwhile the loop serves other frames, and no more buffers go. */
START_TEST(room_comes_later)
{
    const struct msg_f_pool pool = {.trim = 0};
    start(_i);
    ask_for_new(_i);
    uint64_t outs = t.server.spill.outs;
    ck_assert_uint_ge(outs, WANTED / MIB);
    ask(&schema_msg_f_pool, &pool, -1);
    turns(5);
    ck_assert_uint_eq(t.pools, 1);
    ck_assert(!t.answered[NEW] && t.server.spill.outs == outs);
    t.hold = false;
    ck_assert_msg(answer(NEW) == 0, "%s", t.text);
    ck_assert_uint_eq(reserved(2), WANTED);
    ck_assert_uint_eq(waiting(), 0);
    ck_assert_uint_lt(t.server.spill.outs, COLD);
    stop();
}
END_TEST

/* The answer says what was wanted, and what there is. A later room is of no use to it. */
START_TEST(room_does_not_come)
{
    start(_i);
    ask_for_new(_i);
    t.server.creations.first->until_ns = clock_now_ns();
    ck_assert_int_eq(answer(NEW), ERR_DEVICE_MEMORY);
    ck_assert_msg(
        strstr(t.text, "tenant uid:1 wants 8388608 bytes more of the device; largest free") !=
                NULL ||
            _i >= 2,
        "%s", t.text);
    ck_assert_ptr_nonnull(strstr(t.text, "buffer of 8388608 bytes"));
    t.hold = false;
    while (spill_busy(&t.server.spill)) {
        turn();
    }
    turns(5);
    ck_assert(!t.answered[NEW] && reserved(2) == 0);
    ck_assert_ptr_null(buffer_find(&t.server.buffers, NEW, NULL));
    stop();
}
END_TEST

/* A request that nothing can help is refused at once. */
START_TEST(what_is_impossible_does_not_wait)
{
    start(_i);
    t.hold = true;
    create(NEW, 2 * LIMIT, 2, true, false);
    ck_assert_int_eq(answer(NEW), ERR_DEVICE_MEMORY);
    ck_assert_uint_eq(t.server.spill.outs, 0);
    stop();
}
END_TEST

START_TEST(freed_meanwhile)
{
    const struct msg_f_buffer_free m = {.id = NEW};
    start(_i);
    ask_for_new(_i);
    ask(&schema_msg_f_buffer_free, &m, -1);
    turns(5);
    ck_assert_uint_eq(waiting(), 0);
    t.hold = false;
    while (!server_idle(&t.server)) {
        turn();
    }
    turns(5);
    ck_assert(!t.answered[NEW] && reserved(2) == 0);
    ck_assert_ptr_null(buffer_find(&t.server.buffers, NEW, NULL));
    stop();
}
END_TEST

/* The next front has the content of a buffer that is being restored. It does not hear of a new
 * buffer: the client asks again. */
START_TEST(another_front_meanwhile)
{
    const struct msg_f_inventory m = {.nonce = 7};
    start(_i);
    ask_for_new(_i);
    restore(NEW + 1, MIB);
    turns(5);
    ck_assert_uint_eq(waiting(), 2);
    ask(&schema_msg_f_inventory, &m, -1);
    while (!t.inventory) {
        turn();
    }
    ck_assert_uint_eq(t.listed, COLD + 1);
    ck_assert_uint_eq(t.arriving, NEW + 1);
    ck_assert_uint_eq(waiting(), 1);
    t.hold = false;
    ck_assert_msg(answer(NEW + 1) == 0, "%s", t.text);
    ck_assert_ptr_null(buffer_find(&t.server.buffers, NEW, NULL));
    ck_assert_ptr_nonnull(buffer_find(&t.server.buffers, NEW + 1, NULL));
    stop();
}
END_TEST

/* The room for two comes one after the other, and nothing more goes than both need. */
START_TEST(two_wait)
{
    start(_i);
    ask_for_new(_i);
    create(NEW + 1, 4 * MIB, 3, true, false);
    turns(5);
    ck_assert_uint_eq(waiting(), 2);
    t.hold = false;
    ck_assert_msg(answer(NEW) == 0, "%s", t.text);
    ck_assert_msg(answer(NEW + 1) == 0, "%s", t.text);
    ck_assert(reserved(2) == WANTED && reserved(3) == 4 * MIB);
    ck_assert_uint_lt(t.server.spill.outs, COLD);
    stop();
}
END_TEST

/* Each tenant has a limit of its own, so none keeps the others from waiting. */
START_TEST(not_too_many_wait)
{
    const uint64_t last = NEW + CREATIONS_MAX;
    start(_i);
    ask_for_new(_i);
    for (uint64_t id = NEW + 1; id <= last; id++) {
        create(id, 4 * MIB, 3, true, false);
        turn();
    }
    turns(5);
    ck_assert_uint_eq(waiting(), 1 + CREATIONS_MAX);
    create(last + 1, 4 * MIB, 3, true, false);
    ck_assert_int_eq(answer(last + 1), ERR_LIMIT);
    ck_assert_ptr_nonnull(
        strstr(t.text, "256 buffers of the tenant wait for device memory already"));
    restore(last + 2, MIB); /* of another tenant */
    turns(5);
    ck_assert(!t.answered[last + 2]);
    ck_assert_uint_eq(waiting(), 2 + CREATIONS_MAX);
    create(NEW, MIB, 3, true, false); /* its id is taken */
    ck_assert_int_eq(answer(NEW), ERR_EXISTS);
    while (t.server.creations.first != NULL) {
        creations_end(&t.server.creations, t.server.creations.first);
    }
    stop();
}
END_TEST

/* A job tries again to bring a managed buffer back, when the copies have ended. */
START_TEST(managed_memory_comes_back_later)
{
    struct err e = ERR_INIT;
    start(_i);
    ask_for_new(2 + _i % 2);
    t.hold = false;
    ck_assert_int_eq(answer(NEW), 0);
    struct buffer *b = buffer_find(&t.server.buffers, NEW, NULL);
    memory_free(&t.server.device.memory, &b->piece);
    b->managed = true;
    b->content = BUFFER_UNDEFINED;
    for (uint64_t id = NEW + 1; id <= NEW + COLD; id++) { /* others take its room */
        create(id, MIB, 1, false, false);
        if (answer(id) == 0) {
            buffer_find(&t.server.buffers, id, NULL)->content = BUFFER_BYTES;
        }
    }
    buffer_pin(&t.server.buffers, b);
    t.hold = true;
    ck_assert_int_eq(spill_return(&t.server.spill, b, &e), ERR_DEVICE_MEMORY);
    ck_assert(spill_busy(&t.server.spill) && buffer_away(b));
    uint64_t outs = t.server.spill.outs;
    turns(3);
    ck_assert_int_eq(spill_return(&t.server.spill, b, &e), ERR_DEVICE_MEMORY);
    ck_assert_uint_eq(t.server.spill.outs, outs);
    t.hold = false;
    int rc = ERR_DEVICE_MEMORY;
    while (rc == ERR_DEVICE_MEMORY) {
        pump_kick(&t.server.pump);
        turn();
        e = (struct err)ERR_INIT;
        rc = spill_return(&t.server.spill, b, &e);
    }
    ck_assert_msg(rc == 0, "%s", e.text);
    buffer_unpin(&t.server.buffers, b);
    stop();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("creations");
    TCase *tc = tcase_create("creations");
    tcase_set_timeout(tc, 20);
    tcase_add_loop_test(tc, room_comes_later, 0, 4); /* exported, managed; with pages and without */
    tcase_add_loop_test(tc, room_does_not_come, 0, 4);
    tcase_add_loop_test(tc, what_is_impossible_does_not_wait, 0, 2);
    tcase_add_loop_test(tc, freed_meanwhile, 0, 4);
    tcase_add_loop_test(tc, another_front_meanwhile, 0, 4);
    tcase_add_loop_test(tc, two_wait, 0, 4);
    tcase_add_loop_test(tc, not_too_many_wait, 0, 2);
    tcase_add_loop_test(tc, managed_memory_comes_back_later, 0, 2);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
