/* Buffers that go to the host and come back, some to the addresses that they had: on a simulated
 * device and on the CUDA driver's double, in this process. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/memfd.h"
#include "daemon/pool/place.h"
#include "daemon/worker/copy/transfer.h"
#include "daemon/worker/spill/spill_copy.h"
#include "tests/unit/worker/local.h"

#define LIMIT   ((uint64_t)16 << 20)
#define PAGE    ((uint64_t)2 << 20)
#define BUFFERS 6u
#define ROUNDS  4u

static const struct {
    const char *backend, *options;
    bool places;
} ON[] = {
    {"sim", "speed=0,pages=on", true}, {"sim", "speed=0,pages=off", false}, {"cuda", "", true}};

#define KINDS ((int)(sizeof ON / sizeof ON[0]))

static struct local t;
static uint64_t size; /* of each buffer */

static bool start_with(int which, const char *options, uint64_t bytes)
{
    if (backend_find(ON[which].backend) == NULL) { /* is not built */
        return false;
    }
    size = bytes;
    local_start(&t, ON[which].backend, options, LIMIT, LIMIT * 4);
    return true;
}

static bool start(int which, uint64_t bytes)
{
    return start_with(which, ON[which].options, bytes);
}

static uint8_t *pattern(uint64_t id, unsigned round)
{
    static uint8_t bytes[4 * PAGE];
    for (uint64_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)(id * 31 + round * 17 + i * 7 + (i >> 9));
    }
    return bytes;
}

/* Brings a buffer as a job does. With `wait` nothing is under way afterwards. */
static struct buffer *bring(uint64_t id, bool wait)
{
    struct err e = ERR_INIT;
    struct buffer *b = buffer_find(&t.buffers, id, &e);
    ck_assert_ptr_nonnull(b);
    buffer_pin(&t.buffers, b);
    int rc = spill_return(&t.spill, b, &e);
    if (spill_short(rc)) { /* buffers that go have to arrive first */
        local_quiet(&t);
        e = (struct err)ERR_INIT;
        rc = spill_return(&t.spill, b, &e);
    }
    ck_assert_msg(rc == 0, "%s", e.text);
    if (wait) {
        local_quiet(&t);
    }
    b->content = BUFFER_BYTES;
    return b;
}

static void put(struct buffer *b, unsigned round)
{
    struct err e = ERR_INIT;
    ck_assert_int_eq(
        t.device.b->stream->write(t.device.service, b->piece.ref, pattern(b->id, round), size, &e),
        0);
    local_wait(&t, t.device.service);
    memory_cleaned(&b->piece);
}

static void look(const struct buffer *b, unsigned round)
{
    static uint8_t back[4 * PAGE];
    struct err e = ERR_INIT;
    ck_assert_int_eq(t.device.b->stream->read(t.device.service, back, b->piece.ref, size, &e), 0);
    local_wait(&t, t.device.service);
    ck_assert_msg(memcmp(back, pattern(b->id, round), size) == 0, "buffer %u, round %u",
                  (unsigned)b->id, round);
}

static void make(uint64_t id)
{
    struct buffer *b = NULL;
    struct err e = ERR_INIT;
    const struct buffer_ask ask = {.id = id, .size = size, .tenant = 1 + id % 2};
    ck_assert_msg(buffer_create(&t.buffers, &ask, &b, &e) == 0, "%s", e.text);
    b = bring(id, true);
    put(b, 0);
    buffer_unpin(&t.buffers, b);
}

static struct pool_stats stats(void)
{
    struct pool_stats s;
    pool_stats(t.device.memory.pool, &s);
    return s;
}

/* More buffers of whole pages than the device holds: each of them is at its first addresses in each
 * round, with the bytes written last. */
START_TEST(buffers_come_back_to_their_addresses)
{
    uint64_t at[BUFFERS + 1];
    if (!start(_i, 2 * PAGE)) {
        return;
    }
    for (uint64_t id = 1; id <= BUFFERS; id++) {
        make(id);
        at[id] = buffer_find(&t.buffers, id, NULL)->piece.ref.offset;
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (uint64_t n = 0; n < BUFFERS; n++) {
            uint64_t id = 1 + (n * 5 + round) % BUFFERS;
            struct buffer *b = bring(id, true);
            ck_assert(!ON[_i].places || b->piece.ref.offset == at[id]);
            look(b, round);
            put(b, round + 1);
            buffer_unpin(&t.buffers, b);
        }
    }
    ck_assert_uint_gt(t.spill.outs, BUFFERS);
    ck_assert(ON[_i].places ? stats().came_back >= ROUNDS : stats().came_back == 0);
    ck_assert_uint_eq(stats().given_up, 0);
    local_stop(&t);
}
END_TEST

/* All at once, without waiting: they come back to any address, and have their bytes. */
START_TEST(buffers_come_back_while_others_go)
{
    if (!start(_i, 2 * PAGE)) {
        return;
    }
    for (uint64_t id = 1; id <= BUFFERS; id++) {
        make(id);
    }
    for (unsigned n = 0; n < 5 * BUFFERS; n++) {
        struct buffer *b = bring(1 + n * (n % 7 + 1) % BUFFERS, false);
        look(b, 0);
        buffer_unpin(&t.buffers, b);
    }
    ck_assert(!ON[_i].places || stats().came_back > 0);
    local_stop(&t);
}
END_TEST

/* Smaller than a page, and not of whole pages. */
START_TEST(others_come_back_anywhere)
{
    static const uint64_t SIZES[] = {PAGE / 2, PAGE + PAGE / 2, 3 * PAGE - 1000};
    for (unsigned k = 0; k < 3; k++) {
        if (!start(_i, SIZES[k])) {
            return;
        }
        uint64_t count = LIMIT / SIZES[k] + 3;
        for (uint64_t id = 1; id <= count; id++) {
            make(id);
        }
        for (uint64_t n = 0; n < 2 * count; n++) {
            struct buffer *b = bring(1 + n % count, true);
            look(b, 0);
            buffer_unpin(&t.buffers, b);
        }
        ck_assert_uint_gt(t.spill.backs, 0);
        ck_assert(SIZES[k] > PAGE || stats().came_back == 0);
        local_stop(&t);
    }
}
END_TEST

/* The double's notes go here. */
static char notes[] = "/tmp/place_test.XXXXXX";

static void notes_begin(void)
{
    int fd = mkstemp(notes);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    ck_assert_int_eq(setenv("FAKECUDA_REPORT", notes, 1), 0);
}

static bool notes_say(const char *text)
{
    char line[1024];
    bool found = false;
    FILE *f = fopen(notes, "r");
    ck_assert_ptr_nonnull(f);
    while (!found && fgets(line, sizeof line, f) != NULL) {
        found = strstr(line, text) != NULL;
    }
    (void)fclose(f);
    (void)unlink(notes);
    return found;
}

/* As the end of a transfer does. */
static void seal(uint64_t id)
{
    struct memfd host = MEMFD_NONE;
    struct err e = ERR_INIT;
    ck_assert_int_eq(memfd_create_sealed("host", (size_t)size, &host, &e), 0);
    memcpy(host.data, pattern(id, 0), (size_t)size);
    buffer_find(&t.buffers, id, &e)->sealed_fd = host.fd;
    host.fd = -1;
    memfd_finish(&host);
}

/* The bytes of a sealed buffer come while no caller waits for them. Until they are there the buffer
 * is neither used nor moved. */
START_TEST(sealed_ones_come_back_by_the_way)
{
    if (!start(_i, 2 * PAGE + 1000)) {
        return;
    }
    for (uint64_t id = 1; id <= BUFFERS; id++) {
        make(id);
        seal(id);
    }
    notes_begin(); /* what the test itself wrote was not pinned */
    for (unsigned n = 0; n < 3 * BUFFERS; n++) {
        uint64_t id = 1 + n % BUFFERS;
        bool away = buffer_away(buffer_find(&t.buffers, id, NULL));
        struct buffer *b = bring(id, false);
        ck_assert((b->arrival == BUFFER_FETCHED) == away);
        buffer_unpin(&t.buffers, b);
        ck_assert(b->listed != away);
        local_quiet(&t);
        ck_assert(b->listed && b->arrival == BUFFER_ARRIVED && !b->piece.dirty);
        look(b, 0);
    }
    ck_assert_uint_gt(t.spill.backs, BUFFERS);
    ck_assert_uint_eq(t.spill.bytes, 0);
    local_stop(&t);
    ck_assert(!notes_say("the source is not pinned"));
}
END_TEST

/* A buffer that came with a copy of the front's needs no memory until a job does. The copy ends
 * when the bytes are on the device: what is written then goes to the host anew. */
START_TEST(a_lent_copy_serves_once)
{
    struct err e = ERR_INIT;
    if (!start(_i, 2 * PAGE)) {
        return;
    }
    for (uint64_t id = 1; id <= BUFFERS; id++) {
        make(id);
    }
    const uint64_t id = BUFFERS + 1;
    const struct buffer_ask ask = {.id = id, .size = size, .tenant = 1, .held = true};
    struct buffer *b = NULL;
    t.buffers.room = size; /* a new buffer would be refused */
    ck_assert_msg(buffer_create(&t.buffers, &ask, &b, &e) == 0, "%s", e.text);
    ck_assert(buffer_away(b));
    b->content = BUFFER_BYTES;
    seal(id);
    buffer_lend(&t.buffers, b);
    ck_assert_uint_eq(t.buffers.lent, size);
    look(bring(id, true), 0);
    ck_assert(!b->lent && b->sealed_fd < 0);
    ck_assert_uint_eq(t.buffers.lent, 0);
    put(b, 1);
    buffer_unpin(&t.buffers, b);
    ck_assert_int_eq(spill_move_out(&t.spill, b, &e), 0);
    local_quiet(&t);
    ck_assert_ptr_nonnull(b->spilled);
    look(bring(id, true), 1);
    buffer_unpin(&t.buffers, b);
    local_stop(&t);
}
END_TEST

/* A buffer that is freed meanwhile is destroyed when its bytes have come. */
START_TEST(a_sealed_one_is_freed_on_its_way)
{
    if (!start(_i, 4 * PAGE)) {
        return;
    }
    for (uint64_t id = 1; id <= BUFFERS; id++) {
        make(id);
        seal(id);
    }
    struct buffer *b = bring(1, false);
    ck_assert_int_eq(b->arrival, BUFFER_FETCHED);
    buffer_unpin(&t.buffers, b);
    buffer_free(&t.buffers, b);
    for (uint64_t id = 2; id <= BUFFERS; id++) {
        look(bring(id, true), 0);
        buffer_unpin(&t.buffers, buffer_find(&t.buffers, id, NULL));
    }
    local_stop(&t);
}
END_TEST

/* A buffer whose way to the device fails is on the host, once, even if room for another was wanted
 * meanwhile. */
START_TEST(a_buffer_that_fails_is_on_the_host_once)
{
    static const char *const options[] = {"speed=0,pages=on,script=write:8=fail",
                                          "speed=0,pages=off,script=write:8=fail"};
    ck_assert(start_with(_i, options[_i], 2 * PAGE)); /* which writes once */
    for (uint64_t id = 1; id <= BUFFERS; id++) {
        make(id);
    }
    for (uint64_t id = 4; id <= BUFFERS; id++) {
        (void)bring(id, true);
    }
    struct buffer *b = bring(1, false);
    ck_assert_ptr_nonnull(b->filling);
    buffer_unpin(&t.buffers, b);
    look(bring(2, true), 0);
    ck_assert(buffer_away(b));
    ck_assert_uint_eq(t.spill.bytes, 2 * size); /* 1 and 3 */
    for (uint64_t id = 2; id <= BUFFERS; id++) {
        if (id != 3) {
            buffer_unpin(&t.buffers, buffer_find(&t.buffers, id, NULL));
        }
    }
    look(bring(1, true), 0);
    buffer_unpin(&t.buffers, b);
    local_stop(&t);
    ck_assert_uint_eq(t.spill.bytes, 0);
}
END_TEST

/* ---- memory of another tenant ---------------------------------------------------------------- */

#define OWN   2u /* the tenant of buffers with odd numbers */
#define OTHER 2u /* a buffer of the other tenant */

/* Buffers 1 to 4 fill the device. One of each tenant's is gone. */
static void start_shared(const char *options)
{
    ck_assert(start_with(0, options, 2 * PAGE));
    for (uint64_t id = 1; id <= 4; id++) {
        make(id);
    }
    buffer_free(&t.buffers, buffer_find(&t.buffers, 1, NULL));
}

/* Takes memory of a buffer's size, and tells whether it has to be zeroed. */
static bool take_dirty(struct memory_piece *ret_piece)
{
    struct err e = ERR_INIT;
    const struct memory_ask ask = {.size = size, .tenant = OWN};
    ck_assert_msg(memory_alloc(&t.device.memory, &ask, ret_piece, &e) == 0, "%s", e.text);
    return ret_piece->dirty;
}

static struct backend_marker *former; /* behind the move that leave_on_its_way leaves alone */

/* A buffer that was never written leaves while it is on its way to memory of its own tenant. */
static struct buffer *leave_on_its_way(void)
{
    struct buffer *b = NULL;
    struct err e = ERR_INIT;
    const struct buffer_ask ask = {.id = 5, .size = size, .tenant = OWN};
    ck_assert_int_eq(buffer_create(&t.buffers, &ask, &b, &e), 0);
    ck_assert(!b->piece.dirty && b->content == BUFFER_UNDEFINED);
    ck_assert_int_eq(spill_move_out(&t.spill, b, &e), 0);
    struct buffer *busy = buffer_find(&t.buffers, 3, &e); /* its copy makes the stream busy */
    ck_assert_int_eq(spill_move_out(&t.spill, busy, &e), 0);
    ck_assert_int_eq(spill_return(&t.spill, b, &e), 0);
    ck_assert_ptr_nonnull(b->filling);
    former = b->filling;
    ck_assert_int_eq(spill_move_out(&t.spill, b, &e), 0);
    return b;
}

/* The buffer comes to memory of another tenant before the worker hears of the former move's end.
 * It is freed before that memory was zeroed: the next of its tenant's has it zeroed. */
START_TEST(a_former_move_cleans_no_other_memory)
{
    static const char *const options[] = {"speed=0,pages=on", "speed=0,pages=off"};
    struct memory_piece own[2];
    struct memory_piece piece;
    struct err e = ERR_INIT;
    start_shared(options[_i]);
    struct buffer *b = leave_on_its_way();
    ck_assert(!take_dirty(&own[0]) && !take_dirty(&own[1]));
    buffer_free(&t.buffers, buffer_find(&t.buffers, OTHER, NULL));
    t.transfers.zeroing += 2 * TRANSFER_PIECE; /* other zeros come first */
    ck_assert_msg(spill_return(&t.spill, b, &e) == 0, "%s", e.text);
    while (spill_busy(&t.spill)) {
        spill_poll(&t.spill);
    }
    ck_assert(b->piece.dirty);
    buffer_free(&t.buffers, b);
    transfers_poll(&t.transfers);
    t.transfers.zeroing -= 2 * TRANSFER_PIECE;
    ck_assert(take_dirty(&piece));
    memory_free(&t.device.memory, &piece);
    memory_free(&t.device.memory, &own[0]);
    memory_free(&t.device.memory, &own[1]);
    local_stop(&t);
}
END_TEST

static const struct backend_marker_ops *markers; /* the device's */

static enum backend_state former_failed(struct backend_marker *marker, struct err *e)
{
    enum backend_state state = markers->state(marker, e);
    if (marker != former || state != BACKEND_DONE) {
        return state;
    }
    (void)err_set(e, ERR_IO, "no bytes today");
    return BACKEND_FAILED;
}

/* The buffer is in use at its next place when the former move fails: it keeps what is there. */
START_TEST(a_former_move_that_fails_takes_nothing)
{
    static const char *const options[] = {"speed=0,pages=on", "speed=0,pages=off"};
    start_shared(options[_i]);
    struct buffer *b = leave_on_its_way();
    const struct backend *real = t.device.b;
    struct backend_marker_ops ops = *real->marker;
    struct backend failing = *real;
    markers = real->marker;
    ops.state = former_failed;
    failing.marker = &ops;
    t.device.b = &failing;
    ck_assert_ptr_eq(bring(b->id, false), b);
    put(b, 1);
    while (t.spill.first != NULL || t.spill.unmapped != NULL) {
        spill_poll(&t.spill);
    }
    t.device.b = real;
    ck_assert(b->loss == BUFFER_WHOLE && b->content == BUFFER_BYTES && !buffer_away(b));
    buffer_unpin(&t.buffers, b);
    local_quiet(&t);
    look(b, 1);
    local_stop(&t);
}
END_TEST

/* The bytes of a sealed buffer do not come: its memory still has those of another tenant. */
START_TEST(a_seal_that_fails_cleans_nothing)
{
    static const char *const options[] = {"speed=0,pages=on,script=write:6=fail",
                                          "speed=0,pages=off,script=write:6=fail"};
    struct memory_piece own[2];
    struct memory_piece piece;
    struct err e = ERR_INIT;
    start_shared(options[_i]); /* which writes five times, once to check the device */
    struct buffer *b = buffer_find(&t.buffers, 3, &e);
    seal(b->id);
    ck_assert(!take_dirty(&own[0]));
    ck_assert_int_eq(spill_move_out(&t.spill, b, &e), 0);
    ck_assert(!take_dirty(&own[1]));
    buffer_free(&t.buffers, buffer_find(&t.buffers, OTHER, NULL));
    ck_assert_msg(spill_return(&t.spill, b, &e) == 0, "%s", e.text);
    local_quiet(&t);
    ck_assert(buffer_away(b));
    ck_assert(take_dirty(&piece));
    memory_free(&t.device.memory, &piece);
    memory_free(&t.device.memory, &own[1]);
    memory_free(&t.device.memory, &own[0]);
    look(bring(3, true), 0);
    buffer_unpin(&t.buffers, b);
    local_stop(&t);
}
END_TEST

/* ---- seals ----------------------------------------------------------------------------------- */

static unsigned sealed;

static void on_sealed(void *data, struct buffer *b, const struct err *e)
{
    (void)data;
    ck_assert(e->code == 0 && b->sealed_fd >= 0);
    sealed++;
}

static bool used(void *data, const struct buffer *b, uint64_t behind)
{
    (void)data;
    (void)b;
    (void)behind;
    return false;
}

static int away(void *data, const struct buffer *b, uint64_t at, void *to, uint64_t bytes,
                struct err *e)
{
    (void)data;
    return spill_read(&t.spill, b, at, to, bytes, e);
}

/* A buffer on the host is sealed in steps. No event of the device ends a step: each one but the
 * last asks for the next. */
START_TEST(each_step_asks_for_the_next)
{
    struct transfers transfers;
    struct memfd host = MEMFD_NONE;
    struct err e = ERR_INIT;
    if (!start(_i, 4 * PAGE)) {
        return;
    }
    sealed = 0;
    for (uint64_t id = 1; id <= BUFFERS; id++) {
        make(id);
    }
    local_quiet(&t);
    struct buffer *b = buffer_find(&t.buffers, 1, &e);
    ck_assert_ptr_nonnull(b->spilled);
    ck_assert_int_eq(memfd_create_sealed("host", (size_t)size, &host, &e), 0);
    transfers_init(&transfers, &t.device, &t.copies, &t.buffers, on_sealed, used, NULL);
    transfers.away = away;
    ck_assert_int_eq(transfer_start(&transfers, TRANSFER_SEAL, b, &host, 0, &e), 0);
    for (unsigned n = 0; sealed == 0; n++) {
        ck_assert_uint_eq(t.wakes, n);
        transfers_poll(&transfers);
    }
    ck_assert_uint_ge(t.wakes, 1);
    ck_assert_ptr_null(b->spilled);
    look(bring(1, true), 0);
    buffer_unpin(&t.buffers, b);
    local_stop(&t);
}
END_TEST

/* Another front takes over while a new buffer is zeroed, and has it sealed: the only end that it
 * hears of is that of its seal. */
START_TEST(the_end_of_former_zeros_is_no_seals)
{
    struct transfers transfers;
    struct memfd host = MEMFD_NONE;
    struct buffer *b = NULL;
    struct err e = ERR_INIT;
    if (!start(_i, 2 * PAGE)) {
        return;
    }
    sealed = 0;
    const struct buffer_ask ask = {.id = 1, .size = size, .tenant = 1};
    ck_assert_int_eq(buffer_create(&t.buffers, &ask, &b, &e), 0);
    ck_assert_int_eq(memfd_create_sealed("host", (size_t)size, &host, &e), 0);
    transfers_init(&transfers, &t.device, &t.copies, &t.buffers, on_sealed, used, NULL);
    ck_assert_int_eq(transfer_start(&transfers, TRANSFER_ZERO, b, NULL, 0, &e), 0);
    transfers_disown(&transfers);
    ck_assert_int_eq(transfer_start(&transfers, TRANSFER_SEAL, b, &host, 0, &e), 0);
    while (sealed == 0) {
        (void)uv_run(&t.loop, UV_RUN_NOWAIT);
        transfers_poll(&transfers);
        copies_poll(&t.copies);
    }
    ck_assert_ptr_null(transfers.first);
    ck_assert(!b->piece.dirty);
    local_stop(&t);
}
END_TEST

/* A buffer that is freed on the host gives up its addresses. */
START_TEST(a_place_ends_with_its_buffer)
{
    if (!start(_i, 4 * PAGE)) {
        return;
    }
    for (uint64_t id = 1; id <= BUFFERS; id++) {
        make(id);
    }
    local_quiet(&t);
    ck_assert(!ON[_i].places || stats().vacant == (BUFFERS - 2) * 4 * PAGE);
    for (uint64_t id = 1; id <= BUFFERS; id++) {
        buffer_free(&t.buffers, buffer_find(&t.buffers, id, NULL));
    }
    ck_assert_uint_eq(stats().vacant, 0);
    ck_assert_uint_eq(stats().used, 0);
    local_stop(&t);
}
END_TEST

/* A slow device gets smaller ones, down to a limit, and whole ones again once it is quick. */
START_TEST(pieces_of_zeros_follow_what_they_take)
{
    static struct device device;
    struct transfers z = {.device = &device};
    const uint64_t whole = transfers_piece(&z);
    ck_assert_uint_eq(whole, TRANSFER_PIECE);
    transfers_paced(&z, whole, TRANSFER_LONG_NS);
    ck_assert_uint_eq(transfers_piece(&z), whole);
    for (unsigned i = 0; i < 100; i++) {
        transfers_paced(&z, transfers_piece(&z), TRANSFER_LONG_NS + 1);
    }
    ck_assert_uint_eq(transfers_piece(&z), TRANSFER_PIECE_MIN);
    transfers_paced(&z, 4096, 0); /* the rest of a buffer */
    ck_assert_uint_eq(transfers_piece(&z), TRANSFER_PIECE_MIN);
    for (unsigned i = 0; i < 100; i++) {
        transfers_paced(&z, transfers_piece(&z), TRANSFER_SHORT_NS - 1);
    }
    ck_assert_uint_eq(transfers_piece(&z), whole);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("places of buffers");
    TCase *tc = tcase_create("places");
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, buffers_come_back_to_their_addresses, 0, KINDS);
    tcase_add_loop_test(tc, buffers_come_back_while_others_go, 0, KINDS);
    tcase_add_loop_test(tc, others_come_back_anywhere, 0, KINDS);
    tcase_add_loop_test(tc, sealed_ones_come_back_by_the_way, 0, KINDS);
    tcase_add_loop_test(tc, a_lent_copy_serves_once, 0, KINDS);
    tcase_add_loop_test(tc, a_sealed_one_is_freed_on_its_way, 0, KINDS);
    tcase_add_loop_test(tc, a_buffer_that_fails_is_on_the_host_once, 0, 2);
    tcase_add_loop_test(tc, a_former_move_cleans_no_other_memory, 0, 2);
    tcase_add_loop_test(tc, a_former_move_that_fails_takes_nothing, 0, 2);
    tcase_add_loop_test(tc, a_seal_that_fails_cleans_nothing, 0, 2);
    tcase_add_loop_test(tc, each_step_asks_for_the_next, 0, KINDS);
    tcase_add_loop_test(tc, the_end_of_former_zeros_is_no_seals, 0, KINDS);
    tcase_add_loop_test(tc, a_place_ends_with_its_buffer, 0, KINDS);
    tcase_add_test(tc, pieces_of_zeros_follow_what_they_take);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
