/* The ring lane from the daemon's side, with clients that keep the rules and clients that do not:
 * here they are the same process, with the descriptors that a client would get. */
#include "daemon/front/clients/lane.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utlist.h>

#include "common/doorbell.h"
#include "common/memfd.h"
#include "daemon/front/clients/lane_int.h"
#include "daemon/front/clients/listener.h"
#include "daemon/front/model/op.h"
#include "daemon/front/model/request.h"
#include "daemon/front/model/session.h"
#include "daemon/front/model/sessions.h"
#include "daemon/front/model/tenant.h"
#include "proto/codec.h"
#include "proto/lane.h"
#include "tests/unit/common/suite.h"

#define BATCH   8u
#define CLIENTS 2

struct client {
    struct session *session;
    struct memfd memory;
    struct lane_shared *shared;
    int daemon_bell;
    int bell;
    int heard; /* an epoll set: rings of `bell` */
    struct ring_producer out;
    struct ring_consumer in;
    unsigned requests; /* that the daemon took */
    unsigned taken;    /* answers that it knows to be taken */
    unsigned turn;     /* of the loop in which the last request came */
};

static uv_loop_t loop;
static struct lanes *lanes;
static struct client client[CLIENTS];
static bool answer;         /* each request at once, with PONG */
static size_t answer_bytes; /* 0: PONG */
static unsigned turns;
static struct err e;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

static bool no_memory;             /* for the next request */
static void (*while_served)(void); /* in the turn of who asked */

void *__wrap_malloc(size_t size)
{
    bool now = no_memory && size > sizeof(struct request);
    no_memory = no_memory && !now;
    return now ? NULL : __real_malloc(size);
}

static struct client *client_of(const struct session *s)
{
    return s == client[0].session ? &client[0] : &client[1];
}

/* As reply_answer does it. */
static void answer_with(struct op *o, struct bytes reply)
{
    ck_assert(op_answer(o, reply));
    lane_answer(o->session->lane, o, reply);
}

static void on_request(void *data, struct session *s, struct request *r)
{
    static uint8_t zeros[8192];
    (void)data;
    ck_assert_uint_eq(r->kind, MSG_KIND_PING);
    client_of(s)->requests++;
    client_of(s)->turn = turns;
    if (answer) {
        struct op *o = op_create(s, r->msg.ping.value, NULL);
        o->ring_id = r->ring_id;
        answer_with(o, bytes_of(zeros, answer_bytes));
    }
    request_destroy(r);
    if (while_served != NULL) {
        while_served();
    }
}

static void on_taken(void *data, struct op *o)
{
    (void)data;
    client_of(o->session)->taken++;
    op_destroy(o);
}

static void on_closed(void *data, struct lane *lane)
{
    (void)data;
    (void)lane;
}

static struct tenant tenant;

static void client_open(struct client *c, unsigned number)
{
    struct session_key key;
    struct frame_fds fds;
    memset(&key, (int)number, sizeof key);
    *c = (struct client){.session = session_create(&key, &tenant, number)};
    ck_assert_ptr_nonnull(c->session);
    ck_assert_int_eq(lane_open(lanes, c->session, &e), 0);
    lane_fds(c->session->lane, &fds);
    ck_assert_int_eq(fds.count, LANE_FDS);
    ck_assert_int_eq(memfd_adopt(dup(fds.fd[LANE_FD_MEMORY]), LANE_BYTES, true, &c->memory, &e), 0);
    c->daemon_bell = dup(fds.fd[LANE_FD_DAEMON_BELL]);
    c->bell = dup(fds.fd[LANE_FD_CLIENT_BELL]);
    c->heard = doorbell_listen(c->bell);
    ck_assert(doorbell_wait(c->heard, 0)); /* the start counts */
    c->shared = (struct lane_shared *)(void *)c->memory.data;
    uint8_t *data = c->memory.data + LANE_DATA_OFFSET;
    ring_producer_init(&c->out, &c->shared->submit, data, LANE_SUBMIT_BYTES);
    ring_consumer_init(&c->in, &c->shared->complete, data + LANE_SUBMIT_BYTES, LANE_COMPLETE_BYTES);
    ck_assert(ring_sleep(&c->in));
}

static void client_close(struct client *c)
{
    lane_close(c->session->lane);
    session_destroy(c->session);
    memfd_finish(&c->memory);
    (void)close(c->daemon_bell);
    (void)close(c->bell);
    (void)close(c->heard);
}

static void ring_daemon(const struct client *c)
{
    const uint64_t one = 1;
    ck_assert_int_eq(write(c->daemon_bell, &one, sizeof one), sizeof one);
}

/* What arrived until now, and nothing more. */
static void turn(void)
{
    turns++;
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    lanes_turn(lanes);
    lanes_flush(lanes);
}

static void turn_until_quiet(void)
{
    for (int i = 0; i < 64; i++) {
        turn();
    }
}

static bool send_one(struct client *c, uint64_t number)
{
    struct capbuf out;
    struct msg_ping m = {.seq = number, .value = number};
    capbuf_init(&out, 64);
    ck_assert_int_eq(proto_encode(&schema_msg_ping, &m, &out, NULL), 0);
    int rc = ring_put(&c->out, (uint32_t)number, capbuf_view(&out), (struct bytes){0}, &e);
    capbuf_finish(&out);
    ck_assert_int_ge(rc, 0);
    if (rc == 1 && ring_publish(&c->out)) {
        ring_daemon(c);
    }
    return rc == 1;
}

/* Takes the answers that are there; their ids go up by one. */
static unsigned take_all(struct client *c, uint32_t first)
{
    uint8_t bytes[LANE_COMPLETE_BYTES];
    uint32_t id = 0;
    uint32_t size = 0;
    unsigned count = 0;
    while (ring_next(&c->in, &id, &size, &e) == 1) {
        ring_take(&c->in, size, bytes);
        ck_assert_uint_eq(id, first + count);
        count++;
    }
    if (ring_release(&c->in)) {
        ring_daemon(c);
    }
    return count;
}

static void setup(void)
{
    static const struct lanes_callbacks callbacks = {
        .request = on_request, .acked = on_taken, .closed = on_closed};
    const struct lanes_options options = {.batch = BATCH};
    e = ERR_INIT;
    answer = false;
    answer_bytes = 16;
    turns = 0;
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(lanes_create(&loop, &options, &callbacks, NULL, &lanes, &e), 0);
    for (unsigned i = 0; i < CLIENTS; i++) {
        client_open(&client[i], i + 1);
        ring_daemon(&client[i]); /* it has all */
    }
    turn_until_quiet();
}

static void teardown(void)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        client_close(&client[i]);
    }
    lanes_destroy(lanes);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
}

/* The other client is served as if nothing had happened. */
static void other_is_served(void)
{
    unsigned before = client[1].requests;
    ck_assert(send_one(&client[1], 1000));
    turn_until_quiet();
    ck_assert_uint_eq(client[1].requests, before + 1);
    ck_assert_ptr_nonnull(client[1].session->lane);
    ck_assert_uint_eq(atomic_load(&client[1].shared->closed), 0);
}

static void is_closed(int code)
{
    ck_assert_ptr_null(client[0].session->lane);
    ck_assert_int_eq(client[0].session->lane_error, code);
    ck_assert_int_eq((int)atomic_load(&client[0].shared->closed), -code);
    ck_assert(doorbell_wait(client[0].heard, 0)); /* and it was rung */
    other_is_served();
}

START_TEST(requests_and_answers)
{
    setup();
    answer = true;
    for (uint64_t i = 1; i <= 20; i++) {
        ck_assert(send_one(&client[0], i));
    }
    turn_until_quiet();
    ck_assert_uint_eq(client[0].requests, 20);
    ck_assert_uint_eq(client[0].session->ops.count, 20);
    ck_assert_uint_eq(take_all(&client[0], 1), 20);
    ck_assert(send_one(&client[0], 21));
    turn_until_quiet();
    ck_assert_uint_eq(client[0].taken, 20); /* it looks when it comes by */
    ck_assert_uint_eq(client[0].session->ops.count, 1);
    ck_assert_uint_eq(client[0].session->ops.kept_bytes, answer_bytes);
    teardown();
}
END_TEST

static uint64_t refilled;

/* The first client's ring is as full after each request as before, and the second one's lane, which
 * is to have the last turn, goes. */
static void refill_and_close(void)
{
    ck_assert_uint_lt(++refilled, 100 * BATCH);
    lane_close(client[1].session->lane);
    ck_assert(send_one(&client[0], BATCH + 1 + refilled));
}

START_TEST(turns_end_where_one_is_closed_in_anothers)
{
    setup();
    refilled = 0;
    for (uint64_t i = 1; i <= BATCH + 1; i++) {
        ck_assert(send_one(&client[0], i));
    }
    lanes_wake(client[0].session->lane);
    lanes_wake(client[1].session->lane);
    while_served = refill_and_close;
    lanes_turn(lanes);
    while_served = NULL;
    ck_assert_uint_ge(refilled, BATCH);
    ck_assert_ptr_null(client[1].session->lane);
    turn_until_quiet();
    ck_assert_uint_eq(client[0].requests, BATCH + 1 + refilled);
    teardown();
}
END_TEST

/* A busy one does not keep others waiting for longer than a batch. */
START_TEST(each_gets_its_turn)
{
    setup();
    for (uint64_t i = 1; i <= 10 * BATCH; i++) {
        ck_assert(send_one(&client[0], i));
    }
    ck_assert(send_one(&client[1], 1));
    unsigned before = turns;
    turn();
    turn();
    ck_assert_uint_eq(client[1].requests, 1);
    ck_assert_uint_le(client[0].requests, 2 * BATCH);
    ck_assert_uint_le(client[1].turn, before + 2);
    turn_until_quiet();
    ck_assert_uint_eq(client[0].requests, 10 * BATCH);
    teardown();
}
END_TEST

/* A request that there is no memory for: the client hears of it, and sends it another way. */
START_TEST(without_memory_the_lane_ends)
{
    setup();
    no_memory = true;
    ck_assert(send_one(&client[0], 1));
    turn_until_quiet();
    ck_assert(!no_memory);
    ck_assert_uint_eq(client[0].requests, 0);
    ck_assert_ptr_null(client[0].session->lane);
    ck_assert_int_eq(client[0].session->lane_error, 0); /* it may ask for another one */
    ck_assert_int_eq((int)atomic_load(&client[0].shared->closed), -ERR_NOMEM);
    ck_assert(doorbell_wait(client[0].heard, 0));
    other_is_served();
    teardown();
}
END_TEST

/* A client that gives its lane up says so in the shared memory; its connection remains. */
START_TEST(a_lane_that_was_given_up_ends)
{
    setup();
    answer = true;
    ck_assert(send_one(&client[0], 1));
    turn_until_quiet();
    atomic_store(&client[0].shared->left, 1);
    ring_daemon(&client[0]);
    turn_until_quiet();
    ck_assert_ptr_null(client[0].session->lane);
    ck_assert_int_eq(client[0].session->lane_error, 0);
    ck_assert_ptr_nonnull(client[0].session->ops.all->reply); /* it is asked for over the socket */
    other_is_served();
    teardown();
}
END_TEST

START_TEST(one_bell_for_many)
{
    struct lanes_stats stats;
    setup();
    lanes_stats(lanes, &stats);
    uint64_t before = stats.bells;
    for (uint64_t i = 1; i <= BATCH; i++) {
        ck_assert(send_one(&client[0], i));
    }
    turn_until_quiet();
    lanes_stats(lanes, &stats);
    ck_assert_uint_eq(stats.bells, before + 1);
    ck_assert_uint_eq(stats.lanes, CLIENTS);
    teardown();
}
END_TEST

/* ---- clients that break the rules ----------------------------------------------------------- */

START_TEST(a_head_that_jumps)
{
    setup();
    atomic_store(&client[0].shared->submit.head, LANE_SUBMIT_BYTES + 8);
    ring_daemon(&client[0]);
    turn_until_quiet();
    is_closed(ERR_PROTOCOL);
    teardown();
}
END_TEST

START_TEST(a_head_that_runs_backwards)
{
    setup();
    for (uint64_t i = 1; i <= 3; i++) {
        ck_assert(send_one(&client[0], i));
    }
    turn_until_quiet();
    ck_assert_uint_eq(client[0].requests, 3);
    atomic_fetch_sub(&client[0].shared->submit.head, 16);
    ring_daemon(&client[0]);
    turn_until_quiet();
    is_closed(ERR_PROTOCOL);
    teardown();
}
END_TEST

START_TEST(a_length_beyond_the_head)
{
    const uint32_t length = 4000;
    setup();
    ck_assert(send_one(&client[0], 1));
    memcpy(client[0].memory.data + LANE_DATA_OFFSET, &length, sizeof length);
    turn_until_quiet();
    is_closed(ERR_PROTOCOL);
    teardown();
}
END_TEST

START_TEST(a_tail_that_jumps)
{
    setup();
    answer = true;
    ck_assert(send_one(&client[0], 1));
    turn_until_quiet();
    atomic_store(&client[0].shared->complete.tail, 4096);
    ck_assert(send_one(&client[0], 2));
    turn_until_quiet();
    is_closed(ERR_PROTOCOL);
    teardown();
}
END_TEST

START_TEST(an_id_of_zero)
{
    setup();
    ck_assert_int_eq(ring_put(&client[0].out, 0, bytes_str("x"), (struct bytes){0}, &e), 1);
    (void)ring_publish(&client[0].out);
    ring_daemon(&client[0]);
    turn_until_quiet();
    is_closed(ERR_PROTOCOL);
    teardown();
}
END_TEST

/* What cannot be decoded is answered, and the lane goes on. */
START_TEST(nonsense_in_a_record)
{
    uint8_t bytes[LANE_COMPLETE_BYTES];
    uint32_t id = 0;
    uint32_t size = 0;
    setup();
    ck_assert_int_eq(ring_put(&client[0].out, 7, bytes_str("\x93\x03"), (struct bytes){0}, &e), 1);
    ck_assert_int_eq(ring_put(&client[0].out, 8, bytes_str("nonsense"), (struct bytes){0}, &e), 1);
    (void)ring_publish(&client[0].out);
    ring_daemon(&client[0]);
    turn_until_quiet();
    for (uint32_t i = 7; i <= 8; i++) {
        ck_assert_int_eq(ring_next(&client[0].in, &id, &size, &e), 1);
        ck_assert_uint_eq(id, i);
        ring_take(&client[0].in, size, bytes);
        ck_assert_uint_eq(proto_kind(bytes_of(bytes, size)), MSG_KIND_ERROR);
    }
    ck_assert(send_one(&client[0], 1));
    turn_until_quiet();
    ck_assert_uint_eq(client[0].requests, 1);
    teardown();
}
END_TEST

/* Records, lengths and positions change while they are read. */
START_TEST(entries_that_change)
{
    setup();
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        unsigned seed = 1;
        for (;;) {
            unsigned at = (unsigned)rand_r(&seed) % (LANE_SUBMIT_BYTES / 4);
            volatile uint32_t *words =
                (volatile uint32_t *)(void *)(client[0].memory.data + LANE_DATA_OFFSET);
            words[at] = (uint32_t)rand_r(&seed) % 64;
            atomic_fetch_add(&client[0].shared->submit.head, 8u * ((unsigned)rand_r(&seed) % 4));
            (void)!write(client[0].daemon_bell, &(uint64_t){1}, 8);
        }
    }
    for (int i = 0; i < 2000; i++) {
        turn();
        if (client[0].session->lane == NULL) {
            client[0].session->lane_error = 0;
            ck_assert_int_eq(lane_open(lanes, client[0].session, &e), 0);
        }
    }
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    other_is_served();
    teardown();
}
END_TEST

/* FAULT 34: a client that takes no answers, rings without cause, dies with its doorbell, shares
 *   it and changes its flags
 * required: only that client waits; its lane ends; the daemon does not block
 * defence: `front/clients/lane.c`: lane_turn, bells_too_many, given_up; `common/doorbell.h`
 * also: `front_lane_test`
 * mutants: ring-room, ring-flood, lane-left */
/* It fills its own ring; then its requests wait, and nothing of anybody else's. */
START_TEST(one_that_takes_no_answers)
{
    setup();
    answer = true;
    answer_bytes = 1000;
    uint64_t sent = 0;
    for (int i = 0; i < 64; i++) {
        while (send_one(&client[0], sent + 1)) {
            sent++;
        }
        turn();
    }
    ck_assert_uint_lt(client[0].requests, 8 + 2);
    ck_assert_uint_le(client[0].session->ops.kept_bytes, 10u * answer_bytes);
    ck_assert_uint_gt(sent, client[0].requests);
    answer_bytes = 16;
    other_is_served();
    answer_bytes = 1000;
    unsigned taken = 0;
    for (int i = 0; taken < sent; i++) { /* and all of it comes, in order */
        ck_assert_int_lt(i, 10000);
        taken += take_all(&client[0], taken + 1);
        turn();
    }
    ck_assert_uint_eq(client[0].requests, sent);
    teardown();
}
END_TEST

START_TEST(one_that_floods_its_doorbell)
{
    setup();
    for (int i = 0; i < 20000 && client[0].session->lane != NULL; i++) {
        ring_daemon(&client[0]);
        turn();
        if (i == 1000) {
            other_is_served();
        }
    }
    is_closed(ERR_LIMIT);
    teardown();
}
END_TEST

/* A child of it, or anybody that it gave them to, keeps the descriptors. */
START_TEST(one_that_is_gone_and_rings)
{
    setup();
    struct lanes_stats stats;
    lane_close(client[0].session->lane);
    ck_assert_ptr_null(client[0].session->lane);
    lanes_stats(lanes, &stats);
    uint64_t before = stats.bells;
    ring_daemon(&client[0]);
    atomic_store(&client[0].shared->submit.head, 4096);
    turn_until_quiet();
    lanes_stats(lanes, &stats);
    ck_assert_uint_eq(stats.bells, before);
    other_is_served();
    teardown();
}
END_TEST

/* A client fills the bells, takes the flags off that it can reach, and drains its own bell. */
START_TEST(a_bell_that_is_spoiled)
{
    const uint64_t most = UINT64_MAX - 1 - (UINT64_C(1) << 63);
    uint64_t count = 0;
    setup();
    answer = true;
    ck_assert_int_eq(fcntl(client[0].bell, F_SETFL, 0), 0);
    ck_assert_int_eq(fcntl(client[0].daemon_bell, F_SETFL, 0), 0);
    ck_assert_int_eq(write(client[0].bell, &most, sizeof most), sizeof most);
    for (uint64_t number = 1; number < 100; number++) {
        ck_assert(send_one(&client[0], number));
        turn();
        if (take_all(&client[0], (uint32_t)number) == 0) {
            turn();
            (void)take_all(&client[0], (uint32_t)number);
        }
        (void)ring_sleep(&client[0].in);
    }
    ck_assert(doorbell_wait(client[0].heard, 0));
    ck_assert_ptr_nonnull(client[0].session->lane);
    other_is_served();
    ck_assert_int_eq(read(client[0].bell, &count, sizeof count), sizeof count);
    ck_assert_uint_eq(count, 1);
    teardown();
}
END_TEST

static void *read_bell(void *page)
{
    (void)!read(client[0].bell, page, sizeof(uint64_t));
    return NULL;
}

/* A client reads its bell into a page that does not come, and so holds the locks of readers. */
START_TEST(a_bell_whose_reader_is_stuck)
{
    const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    struct uffdio_api api = {.api = UFFD_API};
    pthread_t reader;
    int faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    if (faults < 0) {
        (void)fprintf(stderr, "userfaultfd: %s: not tested\n", strerror(errno));
        return;
    }
    setup();
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(page, MAP_FAILED);
    struct uffdio_register area = {.range = {.start = (uintptr_t)page, .len = bytes},
                                   .mode = UFFDIO_REGISTER_MODE_MISSING};
    ck_assert_int_eq(ioctl(faults, UFFDIO_API, &api), 0);
    ck_assert_int_eq(ioctl(faults, UFFDIO_REGISTER, &area), 0);
    lane_ring(client[0].session->lane);
    ck_assert_int_eq(pthread_create(&reader, NULL, read_bell, page), 0);
    struct pollfd stuck = {.fd = faults, .events = POLLIN};
    ck_assert_int_eq(poll(&stuck, 1, -1), 1);
    ck_assert_int_eq(stuck.revents, POLLIN);
    lane_ring(client[0].session->lane);
    other_is_served();
    ck_assert_int_eq(close(faults), 0); /* the page comes */
    ck_assert_int_eq(pthread_join(reader, NULL), 0);
    ck_assert_int_eq(munmap(page, bytes), 0);
    teardown();
}
END_TEST

START_TEST(an_answer_that_is_too_long)
{
    uint8_t bytes[LANE_COMPLETE_BYTES];
    uint32_t id = 0;
    uint32_t size = 0;
    setup();
    answer = true;
    answer_bytes = 5000;
    ck_assert(send_one(&client[0], 1));
    turn_until_quiet();
    ck_assert_int_eq(ring_next(&client[0].in, &id, &size, &e), 1);
    ck_assert_uint_eq(id, 1);
    ring_take(&client[0].in, size, bytes);
    ck_assert_uint_eq(proto_kind(bytes_of(bytes, size)), MSG_KIND_ELSEWHERE);
    (void)ring_release(&client[0].in);
    ck_assert(send_one(&client[0], 2));
    turn_until_quiet();
    ck_assert_ptr_nonnull(op_find(client[0].session, 1)); /* it is to be asked for */
    ck_assert_uint_eq(client[0].taken, 0);
    teardown();
}
END_TEST

SUITE_MAIN("lane", without_memory_the_lane_ends, a_lane_that_was_given_up_ends,
           requests_and_answers, each_gets_its_turn, turns_end_where_one_is_closed_in_anothers,
           one_bell_for_many, a_head_that_jumps, a_head_that_runs_backwards,
           a_length_beyond_the_head, a_tail_that_jumps, an_id_of_zero, nonsense_in_a_record,
           entries_that_change, one_that_takes_no_answers, one_that_floods_its_doorbell,
           one_that_is_gone_and_rings, a_bell_that_is_spoiled, a_bell_whose_reader_is_stuck,
           an_answer_that_is_too_long)
