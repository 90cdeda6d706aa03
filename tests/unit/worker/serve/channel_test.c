/* The worker's channel with rings: fronts that connect, end, do not read, or offer malformed rings.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/worker/fake_front.h"

#define ASKS 12000u /* their answers are more than a ring and a long queue */

static struct fake f;
static struct err e;

static void start_with(const char *const *args)
{
    e = ERR_INIT;
    fake_start(&f, "sim", args);
    ck_assert(!f.absent);
    if (f.rings == NULL) {
        fake_rings(&f);
    }
}

static void start(void)
{
    start_with(NULL);
}

static void stop_worker(void)
{
    int status = 0;
    ck_assert_int_eq(kill(f.pid, SIGSTOP), 0);
    ck_assert_int_eq(waitpid(f.pid, &status, WUNTRACED), f.pid);
    ck_assert(WIFSTOPPED(status));
}

static void ask_inventory(uint64_t nonce)
{
    struct msg_f_inventory ask = {.nonce = nonce};
    struct msg_w_ready ready;
    fake_send(&f, &schema_msg_f_inventory, &ask, -1);
    ck_assert_uint_eq(fake_next(&f), FRAME_KIND_W_READY); /* before all others */
    ck_assert_int_eq(proto_decode(&schema_msg_w_ready, bytes_of(f.frame, f.size), &ready, &e), 0);
}

static void expect_end(uint64_t nonce)
{
    struct msg_w_inventory_end end;
    fake_expect(&f, FRAME_KIND_W_INVENTORY_END, &schema_msg_w_inventory_end, &end);
    ck_assert_uint_eq(end.nonce, nonce);
}

static void send_seal(uint64_t id, uint64_t size)
{
    struct memfd host = MEMFD_NONE;
    const struct msg_f_buffer_seal seal = {.id = id, .size = size};
    ck_assert_int_eq(memfd_create_sealed("host", size, &host, &e), 0);
    fake_send(&f, &schema_msg_f_buffer_seal, &seal, host.fd);
    memfd_finish(&host);
}

START_TEST(frames_and_descriptors_keep_their_order)
{
    struct msg_w_buffer answer;
    start();
    for (uint64_t id = 1; id <= 50; id++) { /* none of these is waited for */
        const struct msg_f_buffer_create create = {.id = id, .size = 4096, .zero = 1};
        fake_send(&f, &schema_msg_f_buffer_create, &create, -1);
        send_seal(id, 4096);
    }
    for (unsigned i = 0; i < 100; i++) {
        fake_expect(&f, FRAME_KIND_W_BUFFER, &schema_msg_w_buffer, &answer);
        ck_assert_int_eq(answer.code, 0);
    }
    fake_stop(&f);
}
END_TEST

/* Frames that a front published are served; frames that it had not taken do not reach the next
 * front. */
START_TEST(a_front_dies_with_frames_on_their_way)
{
    struct job_draft d;
    struct msg_w_inventory_buffer inventory;
    struct msg_w_inventory_job job;
    start();
    ck_assert_int_eq(fake_buffer(&f, 1, 4096, true), 0);
    draft_init(&d, 31, 0);
    draft_move(&d, OP_READ, ref_buffer(1, 0, 4096), 0);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 31, NULL), 0);
    draft_init(&d, 32, 0);
    draft_move(&d, OP_READ, ref_buffer(1, 0, 4096), 0);
    draft_send(&d, &f);
    stop_worker();
    const struct msg_f_buffer_create create = {.id = 2, .size = 4096, .zero = 1};
    const struct msg_f_retire retire = {.job = 31};
    fake_send(&f, &schema_msg_f_buffer_create, &create, -1);
    send_seal(2, 4096);
    fake_send(&f, &schema_msg_f_retire, &retire, -1);
    fake_dies(&f);
    const struct msg_f_inventory ask = {.nonce = 5};
    fake_send(&f, &schema_msg_f_inventory, &ask, -1);
    ck_assert_int_eq(kill(f.pid, SIGCONT), 0);
    ck_assert_uint_eq(fake_next(&f), FRAME_KIND_W_READY);
    fake_expect(&f, FRAME_KIND_W_INVENTORY_BUFFER, &schema_msg_w_inventory_buffer, &inventory);
    ck_assert_uint_eq(inventory.id, 1);
    fake_expect(&f, FRAME_KIND_W_INVENTORY_BUFFER, &schema_msg_w_inventory_buffer, &inventory);
    ck_assert_uint_eq(inventory.id, 2);
    fake_expect(&f, FRAME_KIND_W_INVENTORY_JOB, &schema_msg_w_inventory_job, &job);
    ck_assert_uint_eq(job.job, 32); /* and not the one that was retired */
    unsigned kind;
    do { /* how far the job and the copy have come is their own matter */
        kind = fake_next(&f);
    } while (kind == FRAME_KIND_W_DONE || fake_turns(kind) || kind == FRAME_KIND_W_BUFFER);
    ck_assert_uint_eq(kind, FRAME_KIND_W_INVENTORY_END);
    fake_finish(&f);
}
END_TEST

START_TEST(front_after_front_has_rings_of_its_own)
{
    struct job_draft d;
    start();
    ck_assert_int_eq(fake_buffer(&f, 1, 4096, true), 0);
    for (uint64_t front = 1; front <= 20; front++) {
        fake_dies(&f);
        ask_inventory(front);
        for (unsigned kind = 0; kind != FRAME_KIND_W_INVENTORY_END;) {
            kind = fake_next(&f);
            ck_assert_uint_ne(kind, 0);
        }
        fake_rings(&f);
        draft_init(&d, front, 0);
        draft_move(&d, OP_READ, ref_buffer(1, 0, 4096), 0);
        draft_send(&d, &f);
        ck_assert_int_eq(fake_done(&f, front, NULL), 0);
    }
    fake_stop(&f);
}
END_TEST

/* Sends without taking any frame; frames without room wait in the worker. */
static void ask_much(void)
{
    const struct msg_f_pool ask = {0};
    struct capbuf out;
    capbuf_init(&out, 64);
    ck_assert_int_eq(proto_encode(&schema_msg_f_pool, &ask, &out, &e), 0);
    for (unsigned i = 0; i < ASKS; i++) {
        ck_assert_int_eq(duplex_send(f.rings, capbuf_view(&out), NULL, &e), 0);
    }
    capbuf_finish(&out);
    ck_assert_int_eq(duplex_flush(f.rings, &e), 0);
}

/* The ring to the front is full when nothing moves in it any more. */
static void wait_until_full(void)
{
    const struct ring_consumer *in = &f.rings->rings.in;
    uint32_t space = 0;
    while ((space = atomic_load(&in->shared->head) - in->tail) < DUPLEX_RING_BYTES - 4096) {
        ck_assert_int_eq(usleep(1000), 0);
    }
}

START_TEST(a_front_that_does_not_read_loses_nothing)
{
    struct msg_w_pool pool;
    start();
    ask_much();
    wait_until_full();
    for (unsigned i = 0; i < ASKS; i++) {
        fake_expect(&f, FRAME_KIND_W_POOL, &schema_msg_w_pool, &pool);
    }
    ck_assert_int_eq(fake_buffer(&f, 1, 4096, true), 0);
    fake_stop(&f);
}
END_TEST

START_TEST(a_front_that_did_not_read_dies)
{
    start();
    ask_much();
    wait_until_full();
    fake_dies(&f);
    ask_inventory(3);
    expect_end(3);
    fake_rings(&f);
    ck_assert_int_eq(fake_buffer(&f, 1, 4096, true), 0);
    fake_stop(&f);
}
END_TEST

START_TEST(rings_that_are_none_are_refused)
{
    struct msg_f_rings offer = {.nonce = 5};
    struct msg_w_rings answer;
    int end[2];
    e = ERR_INIT;
    fake_start(&f, "sim", NULL);
    fake_dies(&f); /* where all tests have rings */
    ask_inventory(1);
    expect_end(1);
    ck_assert_int_eq(pipe2(end, O_CLOEXEC), 0);
    fake_send(&f, &schema_msg_f_rings, &offer, end[0]);
    fake_expect(&f, FRAME_KIND_W_RINGS, &schema_msg_w_rings, &answer);
    ck_assert_uint_eq(answer.nonce, 5);
    ck_assert_int_lt(answer.code, 0);
    ck_assert_uint_gt(answer.text.size, 0);
    ck_assert_int_eq(fake_buffer(&f, 1, 4096, true), 0);
    fake_rings(&f);
    ck_assert_int_eq(fake_buffer(&f, 2, 4096, true), 0);
    (void)close(end[0]);
    (void)close(end[1]);
    fake_stop(&f);
}
END_TEST

static int first_free(pid_t pid)
{
    char path[64];
    struct stat st;
    for (int fd = 0; fd < 4096; fd++) {
        (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
        if (lstat(path, &st) != 0) {
            ck_assert_int_eq(errno, ENOENT);
            return fd;
        }
    }
    ck_abort_msg("no end of descriptors");
    return -1;
}

/* The worker gets so many more descriptors; < 0: all that it had. */
static void leave_room(int room)
{
    static struct rlimit whole;
    struct rlimit tight;
    if (whole.rlim_max == 0) {
        ck_assert_int_eq(prlimit(f.pid, RLIMIT_NOFILE, NULL, &whole), 0);
    }
    tight = whole;
    if (room >= 0) {
        tight.rlim_cur = (rlim_t)(first_free(f.pid) + room);
    }
    ck_assert_int_eq(prlimit(f.pid, RLIMIT_NOFILE, &tight, NULL), 0);
}

static void offer_in_vain(void)
{
    struct duplex rings;
    struct frame_fds fds;
    struct capbuf out;
    const struct msg_f_rings offer = {.nonce = 9};
    struct msg_w_rings answer;
    duplex_init(&rings, f.fd, SIZE_MAX, false);
    ck_assert_int_eq(duplex_make(&rings, &fds, &e), 0);
    capbuf_init(&out, FRAME_MAX_BYTES);
    ck_assert_int_eq(proto_encode(&schema_msg_f_rings, &offer, &out, &e), 0);
    fake_send_bytes(&f, capbuf_view(&out), &fds);
    capbuf_finish(&out);
    duplex_finish(&rings);
    fake_expect(&f, FRAME_KIND_W_RINGS, &schema_msg_w_rings, &answer);
    ck_assert_uint_eq(answer.nonce, 9);
    ck_assert_int_eq(answer.code, ERR_LIMIT);
}

static void seal_in_vain(void)
{
    struct msg_w_buffer answer;
    send_seal(1, 4096);
    fake_expect(&f, FRAME_KIND_W_BUFFER, &schema_msg_w_buffer, &answer);
    ck_assert_uint_eq(answer.id, 1);
    ck_assert_int_eq(answer.code, ERR_LIMIT);
}

/* It stays on the socket, and with what it holds; so does one that has rings. */
START_TEST(a_worker_without_descriptors_does_without)
{
    start();
    ck_assert_int_eq(fake_buffer(&f, 1, 4096, true), 0);
    leave_room(0);
    seal_in_vain();
    leave_room(-1);
    fake_dies(&f);
    ask_inventory(1);
    struct msg_w_inventory_buffer inventory;
    fake_expect(&f, FRAME_KIND_W_INVENTORY_BUFFER, &schema_msg_w_inventory_buffer, &inventory);
    expect_end(1);
    for (int room = 0; room < DUPLEX_FDS; room++) {
        leave_room(room);
        offer_in_vain();
        leave_room(-1);
    }
    leave_room(0);
    seal_in_vain();
    leave_room(-1);
    fake_rings(&f);
    ck_assert_int_eq(fake_buffer(&f, 2, 4096, true), 0);
    fake_stop(&f);
}
END_TEST

static void send_arena(void)
{
    struct memfd m = MEMFD_NONE;
    const struct msg_f_arena arena = {.arena = 5, .size = 4096};
    ck_assert_int_eq(memfd_create_sealed("arena", 4096, &m, &e), 0);
    fake_send(&f, &schema_msg_f_arena, &arena, m.fd);
    memfd_finish(&m);
}

static void read_into_arena(uint64_t job)
{
    struct job_draft d;
    const struct proto_ref arena = {.tag = REF_ARENA, .id = 5, .size = 4096};
    draft_init(&d, job, 0);
    draft_move_arena(&d, OP_READ, ref_buffer(1, 0, 4096), arena);
    draft_send(&d, &f);
}

/* A job that names it gets the reason, and the front has to send it again. */
START_TEST(an_arena_without_a_descriptor_comes_again)
{
    const struct msg_f_arena_free gone = {.arena = 5};
    struct msg_w_arena msg;
    unsigned kind;
    start();
    ck_assert_int_eq(fake_buffer(&f, 1, 4096, true), 0);
    leave_room(0);
    send_arena();
    read_into_arena(1);
    fake_expect(&f, FRAME_KIND_W_ARENA, &schema_msg_w_arena, &msg);
    ck_assert_uint_eq(msg.arena, 5);
    ck_assert_uint_eq(msg.align, 0);
    ck_assert_int_eq(fake_done(&f, 1, NULL), ERR_LIMIT);
    leave_room(-1);
    fake_send(&f, &schema_msg_f_arena_free, &gone, -1);
    send_arena();
    read_into_arena(2);
    while ((kind = fake_next(&f)) == FRAME_KIND_W_ARENA || fake_turns(kind)) {
    }
    struct msg_w_done done;
    ck_assert_uint_eq(kind, FRAME_KIND_W_DONE);
    ck_assert_int_eq(proto_decode(&schema_msg_w_done, bytes_of(f.frame, f.size), &done, &e), 0);
    ck_assert_msg(done.code == 0, "%.*s", (int)done.text.size, done.text.data);
    fake_stop(&f);
}
END_TEST

START_TEST(beats_come_in_memory)
{
    start();
    const struct duplex_beat *beat = duplex_beat(f.rings);
    uint64_t first = atomic_load(&beat->at_ns);
    ck_assert_uint_gt(first, 0);
    ck_assert_uint_le(first, clock_now_ns());
    while (atomic_load(&beat->at_ns) == first) {
        ck_assert_int_eq(usleep(10000), 0);
    }
    ck_assert_int_eq(seqpacket_recv(f.fd, f.packet, sizeof f.packet, &f.size, NULL, &e),
                     SEQPACKET_AGAIN);
    unsigned beats = f.beats;
    fake_dies(&f);
    ask_inventory(1); /* and to one who has not made any, in frames again */
    expect_end(1);
    while (f.beats == beats) {
        struct msg_w_pool pool;
        const struct msg_f_pool ask = {0};
        fake_send(&f, &schema_msg_f_pool, &ask, -1);
        fake_expect(&f, FRAME_KIND_W_POOL, &schema_msg_w_pool, &pool);
        ck_assert_int_eq(usleep(10000), 0);
    }
    fake_stop(&f);
}
END_TEST

START_TEST(the_channels_end_is_seen_beside_rings)
{
    start();
    const struct msg_f_buffer_create create = {.id = 1, .size = 4096};
    fake_send(&f, &schema_msg_f_buffer_create, &create, -1);
    fake_dies(&f);
    (void)close(f.fd);
    f.fd = -1;
    int status = fake_reap(&f);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
    fake_finish(&f);
}
END_TEST

/* The next front gets the host copy, as of any sealed buffer. The device's own check is the first
 * write. */
START_TEST(a_front_dies_that_restores_a_buffer)
{
    enum { BYTES = 4096 };
    const char *const args[] = {"--options", "speed=0,script=write:2=hang", NULL};
    const struct msg_f_buffer_restore restore = {.id = 5, .size = BYTES};
    const struct msg_f_inventory ask = {.nonce = 9};
    struct memfd host = MEMFD_NONE;
    struct msg_w_inventory_buffer inventory;
    struct msg_w_inventory_end end;
    struct msg_w_ready ready;
    start_with(args);
    ck_assert_int_eq(memfd_create_sealed("host", BYTES, &host, &e), 0);
    fake_send(&f, &schema_msg_f_buffer_restore, &restore, host.fd);
    fake_dies(&f);
    fake_send(&f, &schema_msg_f_inventory, &ask, -1);
    fake_expect(&f, FRAME_KIND_W_READY, &schema_msg_w_ready, &ready);
    fake_expect(&f, FRAME_KIND_W_INVENTORY_BUFFER, &schema_msg_w_inventory_buffer, &inventory);
    ck_assert_uint_eq(inventory.id, 5);
    ck_assert_uint_eq(inventory.sealed, 1);
    ck_assert_uint_eq(inventory.arriving, 1);
    ck_assert_int_eq(f.fds.count, 1);
    fake_expect(&f, FRAME_KIND_W_INVENTORY_END, &schema_msg_w_inventory_end, &end);
    ck_assert_int_eq(kill(f.pid, SIGKILL), 0);
    fake_finish(&f);
    memfd_finish(&host);
}
END_TEST

SUITE_MAIN("channel", frames_and_descriptors_keep_their_order,
           a_front_dies_with_frames_on_their_way, front_after_front_has_rings_of_its_own,
           a_front_that_does_not_read_loses_nothing, a_front_that_did_not_read_dies,
           rings_that_are_none_are_refused, a_worker_without_descriptors_does_without,
           an_arena_without_a_descriptor_comes_again, beats_come_in_memory,
           the_channels_end_is_seen_beside_rings, a_front_dies_that_restores_a_buffer)
