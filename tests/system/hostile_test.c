/* A client that keeps to the form of messages and to nothing else: parts that no arena has, memory
 * that it could take back, descriptors by the hundred, rings whose positions lie, more than a
 * worker takes. Each time another client is served as before, and the daemon has no more open than
 * before. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/src/wire/shm.h"
#include "common/memfd.h"
#include "common/seqpacket.h"
#include "common/shape.h"
#include "proto/codec.h"
#include "proto/lane.h"
#include "tests/system/harness/harness.h"
#include "tests/unit/common/lasting.h"

#define SP_HEAD     13u /* of a frame on ipc: a type, a length, a request id */
#define ARENA_BYTES 65536u
#define FLOOD       253 /* the most descriptors that the kernel passes in one message */
#define N           1000u
#define CHANGES     60u /* rings that change */

static struct daemon d;
static gpud_client *victim; /* the other client */

/* ---- the one that is served as before ------------------------------------------------------- */

static void begin(void)
{
    victim = daemon_begin(&d, "--backend", "sim", "--set", "jobs.session_linger_ms=100", NULL);
}

static void victim_is_served(void)
{
    void *memory = NULL;
    ck_gpud_ok(gpud_host_alloc(victim, N * sizeof(float), &memory));
    float *y = memory;
    gpud_arg args[] = {gpud_f32(7), gpud_host_out(y, N, GPUD_F32)};
    memset(y, 0, N * sizeof *y);
    ck_gpud_ok(gpud_call(victim, kernel_find(victim, "fill"), args, 2, NULL));
    for (unsigned i = 0; i < N; i++) {
        ck_assert(y[i] == 7);
    }
    ck_gpud_ok(gpud_host_free(victim, memory));
}

static void end(void)
{
    victim_is_served();
    ck_assert_uint_eq(query_value(victim, "status", NULL, "restarts"), 0);
    daemon_end(&d, victim);
}

static unsigned descriptors(void)
{
    char path[64];
    unsigned count = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)d.pid);
    DIR *dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    while (readdir(dir) != NULL) {
        count++;
    }
    (void)closedir(dir);
    return count;
}

/* ---- the hostile one ------------------------------------------------------------------------ */

struct hostile {
    int fd;
    uint64_t seq;
    char shm[PROTO_SOCKET_MAX + 1];
    uint8_t answer[65536];
    size_t size;
};

static void read_all(int fd, void *data, size_t size)
{
    ck_assert_int_eq(recv(fd, data, size, MSG_WAITALL), (ssize_t)size);
}

/* Asks and takes the answer; its kind. */
static unsigned ask(struct hostile *h, const struct schema *schema, const void *msg)
{
    struct capbuf out;
    uint8_t head[SP_HEAD] = {1};
    uint64_t size = 0;
    capbuf_init(&out, PROTO_MESSAGE_MAX);
    ck_assert_int_eq(proto_encode(schema, msg, &out, NULL), 0);
    for (unsigned i = 0; i < 8; i++) {
        head[1 + i] = (uint8_t)((out.size + 4) >> (56 - 8 * i));
    }
    head[9] = 0x80;
    ck_assert_int_eq(send(h->fd, head, sizeof head, MSG_NOSIGNAL), sizeof head);
    ck_assert_int_eq(send(h->fd, out.data, out.size, MSG_NOSIGNAL), (ssize_t)out.size);
    capbuf_finish(&out);
    read_all(h->fd, head, sizeof head);
    for (unsigned i = 0; i < 8; i++) {
        size = size << 8 | head[1 + i];
    }
    h->size = size - 4;
    ck_assert_uint_le(h->size, sizeof h->answer);
    read_all(h->fd, h->answer, h->size);
    return proto_kind(bytes_of(h->answer, h->size));
}

static void decode(const struct hostile *h, const struct schema *schema, void *ret_msg)
{
    struct err e = ERR_INIT;
    int rc = proto_decode(schema, bytes_of(h->answer, h->size), ret_msg, &e);
    ck_assert_msg(rc == 0, "%s", e.text);
}

static void hostile_open(struct hostile *h)
{
    static const uint8_t greeting[8] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};
    uint8_t theirs[8];
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    static uint8_t serial;
    uint8_t id[PROTO_CLIENT_ID_BYTES] = {'h', ++serial};
    struct msg_hello hello = {
        .major = PROTO_MAJOR, .client_id = bytes_of(id, sizeof id), .resume = 1};
    struct msg_welcome welcome;
    *h = (struct hostile){.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), .seq = 1};
    (void)snprintf(un.sun_path, sizeof un.sun_path, "%s", d.url + strlen("ipc://"));
    ck_assert_int_eq(connect(h->fd, (struct sockaddr *)&un, sizeof un), 0);
    ck_assert_int_eq(send(h->fd, greeting, sizeof greeting, MSG_NOSIGNAL), sizeof greeting);
    read_all(h->fd, theirs, sizeof theirs);
    ck_assert_uint_eq(ask(h, &schema_msg_hello, &hello), MSG_KIND_WELCOME);
    decode(h, &schema_msg_welcome, &welcome);
    ck_assert(bytes_to_str(welcome.shm, h->shm, sizeof h->shm));
}

static void hostile_close(struct hostile *h)
{
    (void)close(h->fd);
    ck_until(query_value(victim, "status", NULL, "sessions") == 1);
}

static void arena_ask(struct hostile *h, bool import, struct msg_arena *ret_arena)
{
    struct msg_arena_create m = {.seq = h->seq++, .bytes = ARENA_BYTES, .import = import};
    ck_assert_uint_eq(ask(h, &schema_msg_arena_create, &m), MSG_KIND_ARENA);
    decode(h, &schema_msg_arena, ret_arena);
}

/* ---- parts that are none -------------------------------------------------------------------- */

static uint64_t buffer_make(struct hostile *h, uint64_t count)
{
    struct msg_buffer_create m = {.seq = h->seq++, .dtype = DTYPE_F32, .ndim = 1, .d0 = count};
    struct msg_buffer b;
    ck_assert_uint_eq(ask(h, &schema_msg_buffer_create, &m), MSG_KIND_BUFFER);
    decode(h, &schema_msg_buffer, &b);
    return b.handle;
}

/* Writes the part into the buffer. Returns the error code of the answer. */
static int write_part(struct hostile *h, uint64_t buffer, const struct proto_arg *part)
{
    struct capbuf args;
    struct capbuf steps;
    struct proto_arg to = {.tag = ARG_BUFFER, .handle = buffer};
    struct msg_error refused;
    struct msg_results results;
    struct proto_result result;
    capbuf_init(&args, 4096);
    capbuf_init(&steps, 4096);
    ck_assert_int_eq(proto_list_add(&schema_arg, &to, &args, NULL), 0);
    ck_assert_int_eq(proto_list_add(&schema_arg, part, &args, NULL), 0);
    struct proto_step step = {.op = OP_WRITE, .args = proto_list_of(&args, 2)};
    ck_assert_int_eq(proto_list_add(&schema_step, &step, &steps, NULL), 0);
    struct msg_submit m = {.seq = h->seq++, .steps = proto_list_of(&steps, 1)};
    unsigned kind = ask(h, &schema_msg_submit, &m);
    capbuf_finish(&args);
    capbuf_finish(&steps);
    if (kind == MSG_KIND_ERROR) {
        decode(h, &schema_msg_error, &refused);
        return (int)refused.code;
    }
    ck_assert_uint_eq(kind, MSG_KIND_RESULTS);
    decode(h, &schema_msg_results, &results);
    struct proto_iter it = proto_iter_of(results.results);
    ck_assert(proto_list_next(&it, &schema_result, &result));
    return (int)result.code;
}

static const struct {
    uint64_t first, d0, d1, ndim;
    bool good;
} PARTS[] = {
    {0, 64, 0, 1, true},
    {ARENA_BYTES - 256, 64, 0, 1, true},
    {ARENA_BYTES - 252, 64, 0, 1, false},
    {ARENA_BYTES, 64, 0, 1, false},
    {UINT64_MAX - 3, 64, 0, 1, false},
    {UINT64_MAX - 255, 64, 0, 1, false}, /* ends where it begins, were the sum cut off */
    {1, 64, 0, 1, false},                /* between two elements */
    {0, UINT64_C(1) << 62, 0, 1, false}, /* its bytes are 0, were the product cut off */
    {0, UINT64_C(1) << 63, 0, 1, false},
    {0, UINT64_C(1) << 32, UINT64_C(1) << 32, 2, false},
    {256, UINT64_MAX / 4, 0, 1, false},
    {0, ARENA_BYTES / 4 + 1, 0, 1, false},
};

/* FAULT 30: parts of arenas with false offsets, lengths or sums; arenas beyond a limit
 * required: refused, without effect on other clients
 * defence: `front/resolve/resolve_operand.c`; `front/requests/arena.c`: check_room
 * also: `front_arena_test`: offsets_and_lengths_are_checked; `test_system_arenas`:
 *   there_is_so_much_for_a_session, tenants_have_a_limit_of_their_own */
START_TEST(parts_that_no_arena_has)
{
    struct hostile h;
    struct msg_arena arena;
    struct msg_arena missing;
    begin();
    hostile_open(&h);
    uint64_t buffer = buffer_make(&h, 64);
    arena_ask(&h, false, &arena);
    arena_ask(&h, true, &missing); /* its memory is never brought */
    for (unsigned i = 0; i < sizeof PARTS / sizeof PARTS[0]; i++) {
        struct proto_arg part = {.tag = ARG_ARENA,
                                 .access = ACCESS_IN,
                                 .handle = arena.arena,
                                 .first = PARTS[i].first,
                                 .dtype = DTYPE_F32,
                                 .ndim = PARTS[i].ndim,
                                 .d0 = PARTS[i].d0,
                                 .d1 = PARTS[i].d1};
        int code = write_part(&h, buffer, &part);
        ck_assert_msg((code == 0) == PARTS[i].good, "part %u: %s", i, gpud_err_name(code));
        part.handle = missing.arena;
        ck_assert_int_ne(write_part(&h, buffer, &part), 0);
        part.handle = arena.arena + 1;
        ck_assert_int_ne(write_part(&h, buffer, &part), 0);
        victim_is_served();
    }
    hostile_close(&h);
    end();
}
END_TEST

/* ---- memory that could be taken back, and too many descriptors ------------------------------ */

static int memfd_of(uint64_t bytes, int seals)
{
    int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, (off_t)bytes), 0);
    ck_assert(seals == 0 || fcntl(fd, F_ADD_SEALS, seals) == 0);
    return fd;
}

static int import(struct hostile *h, int fd)
{
    struct msg_arena arena;
    struct frame_fds given = {.fd = {fd}, .count = 1};
    struct frame_fds got = {.count = 0};
    struct err e = ERR_INIT;
    arena_ask(h, true, &arena);
    int rc = shm_claim(h->shm, arena.nonce, &given, 0, now_ns() + patience_ns(), &got, &e);
    (void)close(fd);
    return rc;
}

/* FAULT 33, 35: shared memory that shrinks; surplus descriptors
 * required: refused; closed
 * defence: `common/memfd.c`: memfd_adopt; `common/seqpacket.c`
 * also: `common_memfd_test`; `common_seqpacket_test`; `test_system_hostile`:
 *   descriptors_by_the_hundred; `fuzz_claim`
 * mutants: seals, descriptor-flood */
START_TEST(memory_that_could_be_taken_back)
{
    struct hostile h;
    begin();
    hostile_open(&h);
    ck_assert_int_eq(import(&h, memfd_of(ARENA_BYTES, 0)), ERR_INVALID);
    ck_assert_int_eq(import(&h, memfd_of(ARENA_BYTES, F_SEAL_GROW)), ERR_INVALID);
    ck_assert_int_eq(import(&h, memfd_of(ARENA_BYTES / 2, F_SEAL_SHRINK)), ERR_INVALID);
    ck_assert_int_eq(import(&h, memfd_of(ARENA_BYTES, F_SEAL_SHRINK | F_SEAL_WRITE)), ERR_INVALID);
    ck_assert_int_eq(import(&h, open("/dev/zero", O_RDWR | O_CLOEXEC)), ERR_INVALID);
    ck_assert_int_eq(import(&h, memfd_of(ARENA_BYTES, F_SEAL_SHRINK)), 0);
    victim_is_served();
    hostile_close(&h);
    end();
}
END_TEST

/* CLAIM with as many descriptors as the kernel passes. */
static void claim_flooded(const struct hostile *h, struct bytes nonce)
{
    struct err e = ERR_INIT;
    struct capbuf out;
    struct msg_claim claim = {.nonce = nonce};
    union {
        char room[CMSG_SPACE(FLOOD * sizeof(int))];
        struct cmsghdr align;
    } control;
    int fds[FLOOD];
    int fd = -1;
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    capbuf_init(&out, 256);
    ck_assert_int_eq(proto_encode(&schema_msg_claim, &claim, &out, NULL), 0);
    for (unsigned i = 0; i < FLOOD; i++) {
        fds[i] = null;
    }
    struct iovec iov = {.iov_base = out.data, .iov_len = out.size};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fds);
    memcpy(CMSG_DATA(head), fds, sizeof fds);
    ck_assert_int_eq(seqpacket_connect(h->shm, &fd, &e), 0);
    ck_assert_int_gt(sendmsg(fd, &message, MSG_NOSIGNAL), 0);
    uint8_t answer[4096];
    size_t size = 0;
    struct frame_fds got = {.count = 0};
    int rc;
    do { /* an error or the end, and nothing is given */
        rc = seqpacket_recv(fd, answer, sizeof answer, &size, &got, &e);
        pause_ms(1);
    } while (rc == SEQPACKET_AGAIN);
    ck_assert(rc != 0 || proto_kind(bytes_of(answer, size)) == MSG_KIND_ERROR);
    ck_assert_int_eq(got.count, 0);
    capbuf_finish(&out);
    (void)close(null);
    (void)close(fd);
}

START_TEST(descriptors_by_the_hundred)
{
    struct hostile h;
    struct msg_arena arena;
    begin();
    victim_is_served();
    unsigned before = descriptors();
    hostile_open(&h);
    for (unsigned i = 0; i < 20; i++) {
        arena_ask(&h, i % 2 == 0, &arena);
        claim_flooded(&h, arena.nonce);
    }
    victim_is_served();
    hostile_close(&h);
    ck_until(descriptors() <= before);
    end();
}
END_TEST

/* ---- descriptors whose last close takes an hour ---------------------------------------------- */

/* It lasts where the daemon was quicker. */
static void *close_ours(void *given)
{
    frame_fds_close(given);
    return NULL;
}

/* Refused, or not even read: the daemon has the last of it, and is not kept by it. */
START_TEST(descriptors_that_last)
{
    struct hostile h;
    struct msg_arena arena;
    struct err e = ERR_INIT;
    struct frame_fds given[4];
    pthread_t closer[4];
    int reader[4];
    int from[4];
    begin();
    hostile_open(&h);
    for (unsigned i = 0; i < 4; i++) {
        given[i] = (struct frame_fds){.fd = {lasting(&reader[i])}, .count = 1};
        arena_ask(&h, i % 2 == 0, &arena);
        ck_assert_int_eq(seqpacket_connect(h.shm, &from[i], &e), 0);
        ck_assert_int_eq(shm_show(from[i], arena.nonce, i < 2 ? &given[i] : NULL, &e), 0);
        if (i >= 2) {
            ck_assert_int_eq(shm_show(from[i], arena.nonce, &given[i], &e), 0);
        }
        ck_assert_int_eq(pthread_create(&closer[i], NULL, close_ours, &given[i]), 0);
        (void)close(from[i]);
        victim_is_served();
    }
    victim_is_served();
    for (unsigned i = 0; i < 4; i++) {
        (void)close(reader[i]); /* unread data is pending: the close is a reset */
        ck_assert_int_eq(pthread_join(closer[i], NULL), 0);
    }
    hostile_close(&h);
    end();
}
END_TEST

/* ---- rings that lie ------------------------------------------------------------------------- */

struct ring {
    struct memfd memory;
    struct lane_shared *shared;
    int daemon_bell;
    int bell;
};

static void ring_open(struct hostile *h, struct ring *r)
{
    struct msg_ring_open m = {.version = LANE_VERSION};
    struct msg_ring told;
    struct frame_fds none = {.count = 0};
    struct frame_fds got = {.count = 0};
    struct err e = ERR_INIT;
    ck_assert_uint_eq(ask(h, &schema_msg_ring_open, &m), MSG_KIND_RING);
    decode(h, &schema_msg_ring, &told);
    int rc = shm_claim(h->shm, told.nonce, &none, LANE_FDS, now_ns() + patience_ns(), &got, &e);
    ck_assert_msg(rc == 0, "%s", e.text);
    rc = memfd_adopt(got.fd[LANE_FD_MEMORY], LANE_BYTES, true, &r->memory, &e);
    ck_assert_msg(rc == 0, "%s", e.text);
    r->shared = (struct lane_shared *)(void *)r->memory.data;
    r->daemon_bell = got.fd[LANE_FD_DAEMON_BELL];
    r->bell = got.fd[LANE_FD_CLIENT_BELL];
}

static void ring_daemon(const struct ring *r)
{
    const uint64_t one = 1;
    ck_assert_int_eq(write(r->daemon_bell, &one, sizeof one), sizeof one);
}

static void ring_finish(struct ring *r)
{
    memfd_finish(&r->memory);
    (void)close(r->daemon_bell);
    (void)close(r->bell);
}

/* Changes the words of the ring, once the daemon watches the ring. */
static void lie_head_jumps(struct ring *r)
{
    atomic_store(&r->shared->submit.head, UINT32_C(1) << 31);
}

static void lie_head_wraps(struct ring *r)
{
    atomic_store(&r->shared->submit.head, UINT32_MAX - 7);
}

static void lie_head_is_odd(struct ring *r)
{
    atomic_store(&r->shared->submit.head, 3);
}

static void lie_length(struct ring *r)
{
    const uint32_t record[2] = {UINT32_MAX, 1};
    memcpy(r->memory.data + LANE_DATA_OFFSET, record, sizeof record);
    atomic_store(&r->shared->submit.head, 16);
}

static void lie_id(struct ring *r)
{
    atomic_store(&r->shared->submit.head, 16); /* zeros: no length, no id */
}

static void (*const LIES[])(struct ring *r) = {lie_head_jumps, lie_head_wraps, lie_head_is_odd,
                                               lie_length, lie_id};

/* FAULT 34: a ring whose positions jump or run backwards, with false lengths, or with entries
 *   that change while they are read
 * required: that lane is closed with a typed error; its jobs are sent again by the socket; no
 *   effect on other clients
 * defence: `common/ring.c`: every record copied, then checked; `front/clients/lane.c`: broken
 * also: `common_ring_test`; `front_lane_test`; `fuzz_ring`
 * mutants: ring-length */
START_TEST(rings_that_lie)
{
    struct hostile h;
    struct ring r;
    begin();
    victim_is_served();
    unsigned before = descriptors();
    hostile_open(&h);
    ring_open(&h, &r);
    ring_daemon(&r);
    LIES[_i](&r);
    ring_daemon(&r);
    ck_until(atomic_load(&r.shared->closed) != 0);
    victim_is_served();
    (void)buffer_make(&h, 64); /* the socket serves the one that lied, too */
    ring_finish(&r);
    hostile_close(&h);
    ck_until(descriptors() <= before);
    end();
}
END_TEST

/* A record of the ring: a length, an id, and a whole PING. */
#define RECORD 16u

struct flipping {
    uint8_t *records;
    _Atomic uint32_t next; /* where the daemon reads next; UINT32_MAX: it is over */
};

/* The length of the next record changes between a right one and one beyond the ring. */
static void *flip(void *given)
{
    struct flipping *f = given;
    uint32_t at;
    while ((at = atomic_load(&f->next)) != UINT32_MAX) {
        volatile uint32_t *length = (volatile uint32_t *)(void *)(f->records + at);
        const uint32_t right = *length;
        for (unsigned i = 0; i < 100; i++) {
            *length = UINT32_C(1) << 28;
            *length = right;
        }
    }
    return NULL;
}

static void ring_fill(const struct ring *r)
{
    struct capbuf ping;
    const struct msg_ping m = {.value = 7};
    capbuf_init(&ping, RECORD);
    ck_assert_int_eq(proto_encode(&schema_msg_ping, &m, &ping, NULL), 0);
    ck_assert_uint_le(ping.size, RECORD - 8);
    for (unsigned at = 0; at < LANE_SUBMIT_BYTES; at += RECORD) {
        const uint32_t head[2] = {(uint32_t)ping.size, 1};
        memcpy(r->memory.data + LANE_DATA_OFFSET + at, head, sizeof head);
        memcpy(r->memory.data + LANE_DATA_OFFSET + at + sizeof head, ping.data, ping.size);
    }
    capbuf_finish(&ping);
}

/* Publishes record by record, and takes the answers, until the daemon has read a wrong length, or
 * does not keep up. */
static void publish_until_closed(struct ring *r, struct flipping *f)
{
    const uint64_t end_ns = now_ns() + PATIENCE;
    for (uint32_t head = RECORD; atomic_load(&r->shared->closed) == 0; head += RECORD) {
        ck_assert_msg(now_ns() < end_ns, "the daemon does not close the lane");
        atomic_store(&f->next, (head - RECORD) % LANE_SUBMIT_BYTES);
        atomic_store(&r->shared->complete.tail, atomic_load(&r->shared->complete.head));
        atomic_store(&r->shared->submit.head, head);
        ring_daemon(r);
        for (unsigned i = 0; i < 8 && atomic_load(&r->shared->closed) == 0; i++) {
            (void)sched_yield(); /* it reads */
        }
    }
    atomic_store(&f->next, UINT32_MAX);
}

/* FAULT 34: shared memory changes while the daemon reads it
 * required: what the daemon checks is a copy: a wrong length closes the lane with a typed error,
 *   and none is ever used; other clients are served
 * defence: `common/ring.c`: ring_next; `front/clients/lane.c`: receive
 * also: `front_lane_test`: entries_that_change
 * mutants: ring-twice */
START_TEST(rings_that_change_meanwhile)
{
    begin();
    victim_is_served();
    unsigned before = descriptors();
    for (unsigned round = 0; round < CHANGES; round++) {
        struct hostile h;
        struct ring r;
        pthread_t thread;
        hostile_open(&h);
        ring_open(&h, &r);
        ring_fill(&r);
        struct flipping f = {.records = r.memory.data + LANE_DATA_OFFSET};
        ck_assert_int_eq(pthread_create(&thread, NULL, flip, &f), 0);
        publish_until_closed(&r, &f);
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
        ring_finish(&r);
        (void)close(h.fd);
    }
    ck_until(query_value(victim, "status", NULL, "sessions") == 1);
    ck_until(descriptors() <= before);
    end();
}
END_TEST

/* ---- a worker that does not keep up ---------------------------------------------------------- */

#define OPENINGS 4000u
#define PROGRAMS 250u  /* jobs, each of so many steps: frames of tens of KiB */
#define BREAK_MS 1500u /* below the silence that ends a worker */
#define STILL_MS 300u  /* a client that gets no answers for so long waits for the worker */

/* Shared with the process that wakes the worker. */
struct stop {
    pid_t worker;
    _Atomic unsigned answers;
};

/* Once the client gets nothing more, or all that it asks for. */
static int go_on(void *data)
{
    struct stop *s = data;
    unsigned before = 0;
    unsigned still = 0;
    for (unsigned ms = 0; ms < BREAK_MS && still < STILL_MS; ms += 10) {
        pause_ms(10);
        unsigned now = atomic_load(&s->answers);
        still = now == before ? still + 10 : 0;
        before = now;
    }
    return kill(s->worker, SIGCONT);
}

static gpud_program *long_program(gpud_client *c, gpud_buffer b)
{
    gpud_program *p = NULL;
    ck_gpud_ok(gpud_program_create(c, "long", &p));
    const gpud_arg scale[] = {gpud_f32(1), gpud_in(b), gpud_out(b)};
    for (unsigned i = 0; i < PROGRAMS; i++) {
        ck_assert_int_eq(gpud_program_launch(p, kernel_find(c, "scale"), scale, 3, NULL), (int)i);
    }
    ck_gpud_ok(gpud_program_seal(p));
    return p;
}

static gpud_buffer filled(gpud_client *c)
{
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 64), 0, NULL, &b));
    ck_gpud_ok(gpud_fill(c, gpud_out(b), gpud_f32(3)));
    return b;
}

static void still_filled(gpud_client *c, gpud_buffer b)
{
    float v[64] = {0};
    ck_gpud_ok(gpud_read(c, b, GPUD_F32, 0, GPUD_REST, v, NULL));
    ck_assert(v[0] == 3 && v[63] == 3);
}

/* FAULT 45: a client fills the channel to a worker: it opens its published buffer thousands of
 *   times, or sends more jobs than the worker takes
 * required: the front waits for the worker: jobs wait in the queue, other requests get `BUSY`,
 *   and metadata of buffers takes no room in the channel
 * defence: `front/workers/link.c`: link_pressed; `front/sched/dispatch.c`: serve;
 *   `front/requests/intake.c`: check_pressed; `front/workers/command.c`: command_buffer_record
 * also: `front_admitted_test`: a_full_channel_is_waited_for
 * mutants: channel-full */
/* A client opens its own published buffer again and again, and sends more jobs than the channel to
 * the worker holds, while the worker takes nothing. */
START_TEST(a_worker_that_is_behind_is_waited_for)
{
    gpud_job *job[PROGRAMS];
    victim = daemon_begin(&d, "--backend", "sim", "--backend-options", "speed=0", "--set",
                          "jobs.window=256", "--set", "jobs.session_inflight_max=256", NULL);
    gpud_client *hostile = client_open(d.url);
    gpud_buffer kept = filled(victim);
    gpud_buffer own = filled(hostile);
    gpud_buffer again = {0};
    gpud_program *p = long_program(hostile, own);
    ck_gpud_ok(gpud_buffer_publish(hostile, own, "own", GPUD_IN, 0));
    struct stop *s =
        mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(s, MAP_FAILED);
    s->worker = daemon_worker(&d, 0);
    ck_assert_int_eq(kill(s->worker, SIGSTOP), 0);
    pid_t waker = process_start(go_on, s);
    for (unsigned i = 0; i < PROGRAMS; i++) {
        ck_gpud_ok(gpud_submit(hostile, p, NULL, 0, NULL, &job[i]));
        (void)atomic_fetch_add(&s->answers, 1);
    }
    for (unsigned i = 0; i < OPENINGS; i++) {
        ck_gpud_ok(gpud_buffer_open(hostile, "own", &again));
        (void)atomic_fetch_add(&s->answers, 1);
    }
    ck_assert_int_eq(process_wait(waker), 0);
    for (unsigned i = 0; i < PROGRAMS; i++) {
        ck_gpud_ok(gpud_wait(job[i], PATIENCE));
        gpud_job_free(job[i]);
    }
    ck_assert_int_eq(daemon_worker(&d, 0), s->worker);
    still_filled(victim, kept);
    still_filled(hostile, own);
    (void)munmap(s, sizeof *s);
    gpud_program_free(p);
    gpud_close(hostile);
    end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hostile");
    suite_add(suite, parts_that_no_arena_has);
    suite_add(suite, memory_that_could_be_taken_back);
    suite_add(suite, descriptors_by_the_hundred);
    suite_add(suite, descriptors_that_last);
    suite_add_loop(suite, rings_that_lie, 5);
    suite_add(suite, rings_that_change_meanwhile);
    suite_add(suite, a_worker_that_is_behind_is_waited_for);
    return system_main(suite);
}
