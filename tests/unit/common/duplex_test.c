#include "common/duplex.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/doorbell.h"
#include "tests/unit/common/suite.h"

#define QUEUE_MAX ((size_t)8 << 20)

/* The two ends of a channel, as the front and a worker have them. */
static struct duplex front, worker;
static int front_ear = -1, worker_ear = -1; /* doorbell_listen to their bells */
static int pair[2];
static struct err e;

static void channel_open(size_t queue_max)
{
    e = ERR_INIT;
    ck_assert_int_eq(seqpacket_pair(pair, &e), 0);
    duplex_init(&front, pair[0], queue_max, true);
    duplex_init(&worker, pair[1], QUEUE_MAX, true);
}

static void channel_close(void)
{
    duplex_finish(&front);
    duplex_finish(&worker);
    descriptor_close(&front_ear);
    descriptor_close(&worker_ear);
    (void)close(pair[0]);
    (void)close(pair[1]);
}

static int descriptors_open(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    ck_assert_ptr_nonnull(dir);
    while (readdir(dir) != NULL) {
        count++;
    }
    (void)closedir(dir);
    return count;
}

/* A frame that says its number, of `size` bytes. */
static struct bytes frame_of(uint32_t number, size_t size)
{
    static uint8_t frame[FRAME_MAX_BYTES];
    memset(frame, 0x2a, size);
    memcpy(frame + 1, &number, sizeof number);
    return bytes_of(frame, size);
}

static int send_one(struct duplex *d, uint32_t number, size_t size)
{
    return duplex_send(d, frame_of(number, size), NULL, &e);
}

static void say(struct duplex *d, uint32_t number)
{
    ck_assert_msg(send_one(d, number, 16) == 0, "%s", e.text);
}

static void say_beside(struct duplex *d, uint32_t number)
{
    struct frame_fds fds = {.count = 2};
    ck_assert_int_eq(pipe2(fds.fd, O_CLOEXEC), 0);
    ck_assert_msg(duplex_send(d, frame_of(number, 16), &fds, &e) == 0, "%s", e.text);
    frame_fds_close(&fds);
}

static void flush(struct duplex *d)
{
    ck_assert_msg(duplex_flush(d, &e) == 0, "%s", e.text);
}

/* 0: there is none. Else its number. */
static uint32_t hear(struct duplex *d, int *ret_fds)
{
    struct bytes frame;
    struct frame_fds fds = {.count = 0};
    uint32_t number = 0;
    int rc = duplex_next(d, &frame, &fds, &e);
    ck_assert_msg(rc >= 0, "%s", e.text);
    if (rc != 1) {
        return 0;
    }
    ck_assert_uint_ge(frame.size, 5);
    memcpy(&number, frame.data + 1, sizeof number);
    *ret_fds = fds.count;
    frame_fds_close(&fds);
    return number;
}

static void expect(struct duplex *d, uint32_t number, int fds)
{
    int got = 0;
    ck_assert_uint_eq(hear(d, &got), number);
    ck_assert_int_eq(got, fds);
}

static void expect_none(struct duplex *d)
{
    int fds;
    ck_assert_uint_eq(hear(d, &fds), 0);
}

static int *ear_of(const struct duplex *d)
{
    return d == &front ? &front_ear : &worker_ear;
}

static bool rung(const struct duplex *d)
{
    return doorbell_wait(*ear_of(d), 0);
}

static void listen_to(const struct duplex *d)
{
    int *ear = ear_of(d);
    descriptor_close(ear);
    *ear = doorbell_listen(d->rings.bell);
    ck_assert_int_ge(*ear, 0);
    ck_assert(rung(d) && !rung(d)); /* the start */
}

static void offer(void)
{
    struct frame_fds fds;
    ck_assert_msg(duplex_make(&front, &fds, &e) == 0, "%s", e.text);
    listen_to(&front);
    ck_assert_msg(duplex_send(&front, frame_of(1000, 16), &fds, &e) == 0, "%s", e.text);
    duplex_offered(&front);
}

/* What the worker does with an offer. */
static void adopt(void)
{
    struct bytes frame;
    struct frame_fds fds = {.count = 0};
    ck_assert_int_eq(duplex_next(&worker, &frame, &fds, &e), 1);
    ck_assert_int_eq(fds.count, DUPLEX_FDS);
    ck_assert_msg(duplex_adopt(&worker, &fds, &e) == 0, "%s", e.text);
    ck_assert_int_eq(fds.count, 0);
    listen_to(&worker);
    say(&worker, 2000);
    flush(&worker);
    duplex_join(&worker);
}

static void join(void)
{
    expect(&front, 2000, 0);
    duplex_join(&front);
    ck_assert_int_eq(duplex_resume(&front, &e), 0);
    flush(&front);
}

static void rings_open(size_t queue_max)
{
    channel_open(queue_max);
    offer();
    adopt();
    join();
    ck_assert(rung(&front) && rung(&worker));
    duplex_turn(&front);
    duplex_turn(&worker);
    expect_none(&front);
    expect_none(&worker);
    duplex_settle(&front);
    duplex_settle(&worker);
    ck_assert(!rung(&front) && !rung(&worker));
}

START_TEST(nothing_overtakes_anything)
{
    channel_open(QUEUE_MAX);
    say(&front, 1);
    say(&worker, 1);
    say_beside(&front, 2);
    offer();
    say(&front, 3);
    say_beside(&front, 4);
    flush(&front);
    expect(&worker, 1, 0);
    expect(&worker, 2, 2);
    adopt();
    say(&worker, 3);
    flush(&worker);
    expect_none(&worker); /* it waits for the answer */
    expect(&front, 1, 0);
    join();
    say(&front, 5);
    say_beside(&front, 6);
    say(&front, 7);
    flush(&front);
    expect(&front, 3, 0);
    expect(&worker, 3, 0);
    expect(&worker, 4, 2);
    expect(&worker, 5, 0);
    expect(&worker, 6, 2);
    expect(&worker, 7, 0);
    expect_none(&worker);
    channel_close();
}
END_TEST

START_TEST(a_bell_rings_once_for_a_sleep)
{
    rings_open(QUEUE_MAX);
    say(&front, 1);
    ck_assert(!rung(&worker));
    expect_none(&worker); /* not shown yet */
    flush(&front);
    ck_assert(rung(&worker));
    say(&front, 2);
    flush(&front);
    ck_assert(!rung(&worker));
    duplex_turn(&worker);
    expect(&worker, 1, 0);
    ck_assert(worker.more);
    expect(&worker, 2, 0);
    ck_assert(!worker.more);
    say(&front, 3);
    flush(&front);
    ck_assert(!rung(&worker)); /* it does not sleep */
    duplex_settle(&worker);
    ck_assert(rung(&worker)); /* rung by itself: there is something */
    channel_close();
}
END_TEST

START_TEST(a_batch_and_then_the_others)
{
    unsigned n = 0;
    rings_open(QUEUE_MAX);
    for (uint32_t i = 1; i <= DUPLEX_BATCH + 5; i++) {
        say(&front, i);
    }
    flush(&front);
    ck_assert(rung(&worker));
    duplex_turn(&worker);
    do {
        expect(&worker, ++n, 0);
    } while (worker.more);
    ck_assert_uint_eq(n, DUPLEX_BATCH);
    duplex_settle(&worker);
    ck_assert(rung(&worker));
    duplex_turn(&worker);
    do {
        expect(&worker, ++n, 0);
    } while (worker.more);
    ck_assert_uint_eq(n, DUPLEX_BATCH + 5);
    duplex_settle(&worker);
    ck_assert(!rung(&worker));
    channel_close();
}
END_TEST

START_TEST(a_full_ring_queues_and_is_woken)
{
    uint32_t sent = 0;
    rings_open(QUEUE_MAX);
    while (front.queued < 4) {
        ck_assert_int_eq(send_one(&front, ++sent, 30000), 0);
    }
    say_beside(&front, ++sent);
    say(&front, ++sent);
    ck_assert_int_eq(front.blocked, DUPLEX_BY_RING);
    flush(&front);
    ck_assert(!rung(&front));
    for (uint32_t i = 1; i <= sent; i++) {
        if (i == sent - 5) {
            expect_none(&worker); /* the rest waits */
            duplex_settle(&worker);
            ck_assert(rung(&front));
            ck_assert_int_eq(duplex_resume(&front, &e), 0);
            flush(&front);
            ck_assert_ptr_null(front.queue);
        }
        expect(&worker, i, i == sent - 1 ? 2 : 0);
    }
    channel_close();
}
END_TEST

START_TEST(a_full_socket_holds_up_what_follows)
{
    uint32_t sent = 0;
    rings_open(QUEUE_MAX);
    while (front.queue == NULL) {
        say_beside(&front, ++sent);
    }
    ck_assert_int_eq(front.blocked, DUPLEX_BY_SOCKET);
    say(&front, ++sent);
    flush(&front);
    for (uint32_t i = 1; i <= sent; i++) {
        if (i == 2) {
            ck_assert_int_eq(duplex_resume(&front, &e), 0);
            flush(&front);
        }
        expect(&worker, i, i == sent ? 0 : 2);
    }
    expect_none(&worker);
    channel_close();
}
END_TEST

START_TEST(who_does_not_read_has_a_limit)
{
    int rc = 0;
    rings_open(100000);
    for (unsigned i = 0; i < 100 && rc == 0; i++) {
        rc = send_one(&front, i, 30000);
    }
    ck_assert_int_eq(rc, ERR_LIMIT);
    ck_assert(front.failed);
    ck_assert_uint_le(front.queued_bytes, 100000);
    channel_close();
}
END_TEST

START_TEST(a_refused_offer_is_forgotten)
{
    int before = descriptors_open();
    channel_open(QUEUE_MAX);
    offer();
    say(&front, 1);
    say_beside(&front, 2);
    duplex_refused(&front);
    ck_assert_int_eq(duplex_resume(&front, &e), 0);
    say(&front, 3);
    flush(&front);
    expect(&worker, 1000, DUPLEX_FDS);
    expect(&worker, 1, 0);
    expect(&worker, 2, 2);
    expect(&worker, 3, 0);
    channel_close();
    ck_assert_int_eq(descriptors_open(), before);
}
END_TEST

/* Each descriptor that making takes is lacking once. */
START_TEST(without_descriptors_everything_stays_as_it_was)
{
    struct rlimit limit;
    channel_open(QUEUE_MAX);
    int before = descriptors_open();
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    int last = fcntl(pair[0], F_DUPFD_CLOEXEC, 0);
    (void)close(last);
    for (int room = 0; room < 3; room++) {
        const struct rlimit tight = {.rlim_cur = (rlim_t)(last + room), .rlim_max = limit.rlim_max};
        struct frame_fds fds = {.count = 0};
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &tight), 0);
        int rc = duplex_make(&front, &fds, &e);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
        ck_assert_int_eq(rc, room == 0 ? ERR_LIMIT : ERR_IO); /* memory, then doorbells */
        ck_assert_int_eq(descriptors_open(), before);
        ck_assert_int_eq(front.state, DUPLEX_SOCKET);
    }
    say(&front, 1);
    flush(&front);
    expect(&worker, 1, 0);
    offer();
    adopt();
    join();
    channel_close();
}
END_TEST

START_TEST(only_rings_are_adopted)
{
    struct frame_fds fds = {.count = 3};
    rings_open(QUEUE_MAX);
    ck_assert_int_eq(pipe2(fds.fd, O_CLOEXEC), 0);
    fds.fd[2] = fcntl(fds.fd[0], F_DUPFD_CLOEXEC, 0);
    ck_assert_int_eq(duplex_adopt(&worker, &fds, &e), ERR_PROTOCOL); /* it has some */
    ck_assert_int_eq(fds.count, 3);
    duplex_leave(&worker);
    ck_assert_int_lt(duplex_adopt(&worker, &fds, &e), 0); /* that is no memory */
    ck_assert_int_eq(fds.count, 3);
    ck_assert_ptr_null(duplex_beat(&worker));
    frame_fds_close(&fds);
    channel_close();
}
END_TEST

/* ---- lies ---------------------------------------------------------------------------------- */

static void publish_record(uint32_t id, size_t size)
{
    struct ring_producer *out = &worker.rings.out;
    ck_assert_int_eq(ring_put(out, id, frame_of(1, size), (struct bytes){0}, &e), 1);
    (void)ring_publish(out);
}

static void lie_marker_alone(void)
{
    publish_record(1, 0);
}

static void lie_marker_of_nothing(void)
{
    ck_assert_int_eq(seqpacket_send(pair[1], "hello", 5, NULL, &e), 0);
    publish_record(1, 0);
}

static void lie_marker_with_bytes(void)
{
    publish_record(1, 8);
}

static void lie_unknown_record(void)
{
    publish_record(2, 16);
}

static void lie_empty_packet(void)
{
    publish_record(0, 0);
}

static void lie_long_packet(void)
{
    static uint8_t bytes[FRAME_MAX_BYTES + 1];
    struct ring_producer *out = &worker.rings.out;
    ck_assert_int_eq(ring_put(out, 0, bytes_of(bytes, sizeof bytes), (struct bytes){0}, &e), 1);
    (void)ring_publish(out);
}

static void lie_head(void)
{
    atomic_store(&worker.rings.out.shared->head, DUPLEX_RING_BYTES + 8);
}

static void lie_length(void)
{
    publish_record(0, 16);
    *(uint32_t *)(void *)worker.rings.out.data = DUPLEX_RING_BYTES;
}

static void (*const LIES[])(void) = {lie_marker_alone,
                                     lie_marker_of_nothing,
                                     lie_marker_with_bytes,
                                     lie_unknown_record,
                                     lie_empty_packet,
                                     lie_long_packet,
                                     lie_head,
                                     lie_length};

static void send_beside(struct bytes packet, const struct frame_fds *fds)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int) * FRAME_MAX_FDS)];
    } control;
    size_t length = sizeof(int) * (size_t)fds->count;
    struct iovec iov = {.iov_base = (void *)(uintptr_t)packet.data, .iov_len = packet.size};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.space,
                         .msg_controllen = CMSG_SPACE(length)};
    memset(&control, 0, sizeof control);
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    *c = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(length)};
    memcpy(CMSG_DATA(c), fds->fd, length);
    ck_assert_int_eq(sendmsg(pair[1], &msg, 0), (ssize_t)packet.size);
}

/* Packets without a frame, with descriptors: by marker, over the socket, and of no byte. */
static void send_empties(unsigned how)
{
    struct frame_fds fds = {.fd = {pair[1], pair[1]}, .count = 2};
    for (unsigned i = 0; i < 5; i++) {
        if (how == 0) {
            ck_assert_int_eq(duplex_send(&worker, bytes_str("\xc1"), &fds, &e), 0);
            flush(&worker);
        } else {
            send_beside(bytes_str(how == 1 ? "\xc1" : ""), &fds);
        }
    }
}

/* Each frame is refused by itself: none is lost, and a flood of them holds up nothing. */
START_TEST(packets_without_a_frame_are_not_stepped_over)
{
    struct bytes frame;
    for (unsigned how = 0; how < 3; how++) {
        if (how == 0) {
            rings_open(QUEUE_MAX);
        } else {
            channel_open(QUEUE_MAX);
        }
        int before = descriptors_open();
        send_empties(how);
        for (unsigned i = 0; i < 5; i++) {
            struct frame_fds fds = {.count = 0};
            ck_assert_int_eq(duplex_next(&front, &frame, &fds, &e), ERR_PROTOCOL);
            ck_assert_int_eq(fds.count, 2);
            frame_fds_close(&fds);
        }
        expect_none(&front);
        ck_assert_int_eq(descriptors_open(), before);
        channel_close();
    }
}
END_TEST

START_TEST(a_lie_is_the_end)
{
    struct bytes frame;
    struct frame_fds fds = {.count = 0};
    for (size_t i = 0; i < sizeof LIES / sizeof LIES[0]; i++) {
        rings_open(QUEUE_MAX);
        LIES[i]();
        ck_assert_msg(duplex_next(&front, &frame, &fds, &e) == ERR_PROTOCOL, "lie %zu", i);
        ck_assert(front.failed);
        frame_fds_close(&fds);
        channel_close();
    }
}
END_TEST

START_TEST(a_consumer_that_lies_is_not_believed)
{
    rings_open(QUEUE_MAX);
    say(&front, 1);
    flush(&front);
    atomic_store(&front.rings.out.shared->tail, 4096);
    int rc = 0;
    for (unsigned i = 0; i < 20 && rc == 0; i++) {
        rc = send_one(&front, i, 30000);
    }
    ck_assert_int_eq(rc, ERR_PROTOCOL);
    ck_assert(front.failed);
    channel_close();
}
END_TEST

START_TEST(packets_without_markers_are_nobodys_business)
{
    struct frame_fds fds = {.count = 1};
    rings_open(QUEUE_MAX);
    fds.fd[0] = pair[0];
    ck_assert_int_eq(seqpacket_send(pair[1], "hello", 5, &fds, &e), 0);
    say(&worker, 1);
    flush(&worker);
    expect(&front, 1, 0);
    expect_none(&front);
    channel_close();
}
END_TEST

/* ---- ends ---------------------------------------------------------------------------------- */

START_TEST(what_was_said_before_the_end_counts)
{
    struct bytes frame;
    struct frame_fds fds = {.count = 0};
    rings_open(QUEUE_MAX);
    say(&worker, 1);
    say_beside(&worker, 2);
    say(&worker, 3);
    flush(&worker);
    say(&worker, 4); /* never shown */
    duplex_finish(&worker);
    (void)close(pair[1]);
    expect(&front, 1, 0);
    expect(&front, 2, 2);
    expect(&front, 3, 0);
    expect_none(&front);
    duplex_by_socket(&front);
    ck_assert_int_eq(duplex_next(&front, &frame, &fds, &e), DUPLEX_END);
    duplex_finish(&front);
    (void)close(pair[0]);
}
END_TEST

/* The front dies; another has the same socket and knows of nothing. */
START_TEST(another_front_takes_over)
{
    int before = descriptors_open();
    rings_open(QUEUE_MAX);
    say(&worker, 1); /* it will not be read */
    flush(&worker);
    say(&front, 1);
    say_beside(&front, 2);
    say(&front, 3);
    flush(&front);
    say_beside(&front, 4); /* its packet is out, its marker was not shown */
    duplex_finish(&front);
    duplex_init(&front, pair[0], QUEUE_MAX, true);
    say(&front, 5);
    flush(&front);
    ck_assert_int_eq(duplex_read_socket(&worker, &e), 0);
    ck_assert_int_eq(duplex_read_socket(&worker, &e), 0);
    expect(&worker, 1, 0);
    ck_assert_int_eq(duplex_read_socket(&worker, &e), 1);
    expect(&worker, 2, 2);
    expect(&worker, 3, 0);
    expect_none(&worker);
    duplex_leave(&worker);
    expect(&worker, 5, 0);
    say(&worker, 6);
    flush(&worker);
    expect(&front, 6, 0);
    expect_none(&front);
    offer();
    adopt();
    join();
    say_beside(&worker, 7);
    flush(&worker);
    expect(&front, 7, 2);
    channel_close();
    ck_assert_int_eq(descriptors_open(), before);
}
END_TEST

START_TEST(what_waits_for_rings_goes_with_them)
{
    uint32_t sent = 0;
    rings_open(QUEUE_MAX);
    while (worker.queued < 3) {
        ck_assert_int_eq(send_one(&worker, ++sent, 30000), 0);
    }
    duplex_leave(&worker);
    ck_assert_uint_eq(worker.queued, 0);
    ck_assert_uint_eq(worker.queued_bytes, 0);
    ck_assert_ptr_null(worker.queue);
    channel_close();
}
END_TEST

/* Frames older than the rings wait for the socket, and outlive the rings. */
START_TEST(what_waits_for_the_socket_stays)
{
    uint32_t plain = 0;
    channel_open(QUEUE_MAX);
    offer();
    while (worker.queued < 3) {
        ck_assert_int_eq(send_one(&worker, ++plain, 30000), 0);
        flush(&worker);
    }
    adopt(); /* the answer waits as well */
    for (uint32_t i = 1; i <= 3; i++) {
        say(&worker, 3000 + i);
        say_beside(&worker, 4000 + i);
    }
    ck_assert_uint_eq(worker.queued, 4 + 6);
    duplex_leave(&worker);
    ck_assert_uint_eq(worker.queued, 4);
    ck_assert_uint_eq(worker.queued_bytes, 3 * 30000 + 16);
    duplex_finish(&front);
    duplex_init(&front, pair[0], QUEUE_MAX, true);
    say(&worker, 5000);
    flush(&worker);
    for (uint32_t i = 1; i <= plain + 2; i++) {
        expect(&front, i <= plain ? i : i == plain + 1 ? 2000 : 5000, 0);
        ck_assert_int_eq(duplex_resume(&worker, &e), 0);
    }
    expect_none(&front);
    channel_close();
}
END_TEST

START_TEST(a_beat_is_seen_without_a_frame)
{
    rings_open(QUEUE_MAX);
    atomic_store(&duplex_beat(&worker)->at_ns, 77);
    ck_assert_uint_eq(atomic_load(&duplex_beat(&front)->at_ns), 77);
    channel_close();
}
END_TEST

/* Native code in a worker can do this to what the two share. */
static void spoil(int bell)
{
    for (uint64_t add = UINT64_C(1) << 63; add > 0; add >>= 1) {
        (void)!write(bell, &add, sizeof add); /* EAGAIN: so much is not left */
    }
    ck_assert_int_eq(fcntl(bell, F_SETFL, O_RDWR), 0);
}

/* FAULT 49: native code in a worker fills the bells that the worker shares with the front, or
 *   changes their flags
 * required: the daemon does not block; rings still arrive, or only this worker misses its own
 * defence: `common/doorbell.c`: take_one
 * also: `common_doorbell_test`: no_count_makes_a_ring_block
 * mutants: bell-wait, bell-empty */
/* Where a ring blocks, the alarm ends the test. */
START_TEST(a_worker_that_spoils_the_bells_blocks_nobody)
{
    rings_open(QUEUE_MAX);
    (void)alarm(30);
    spoil(worker.rings.bell);
    spoil(worker.rings.far_bell);
    (void)rung(&front);
    (void)rung(&worker);
    say(&front, 1);
    flush(&front);
    ck_assert(rung(&worker));
    duplex_again(&front);
    ck_assert(rung(&front));
    (void)alarm(0);
    channel_close();
}
END_TEST

/* ---- both at once -------------------------------------------------------------------------- */

#define MANY 20000u

static bool has_descriptors(uint32_t number)
{
    return number % 61 == 0;
}

/* Sleeps until the bell is rung or, where it waits for that, the socket is writable. */
static void wait_for_bell(struct duplex *d)
{
    struct pollfd fds[2] = {{.fd = *ear_of(d), .events = POLLIN}, {.fd = d->fd}};
    bool writable = d->queue != NULL && d->blocked == DUPLEX_BY_SOCKET;
    fds[1].events = writable ? POLLOUT : 0;
    ck_assert_int_gt(poll(fds, writable ? 2 : 1, 60000), 0);
    (void)rung(d);
}

/* Says MANY and hears MANY. */
static void *talk(void *data)
{
    struct duplex *d = data;
    uint8_t frame[700];
    struct err why = ERR_INIT;
    uint32_t said = 0;
    uint32_t heard = 0;
    memset(frame, 0x2a, sizeof frame);
    while (said < MANY || heard < MANY || d->queue != NULL) {
        ck_assert_int_eq(duplex_resume(d, &why), 0);
        for (unsigned i = 0; i < 97 && said < MANY && d->queued < 50; i++) {
            struct frame_fds fds = {.fd = {d->fd}, .count = has_descriptors(++said)};
            memcpy(frame + 1, &said, sizeof said);
            size_t size = 5 + said % (sizeof frame - 5);
            ck_assert_int_eq(duplex_send(d, bytes_of(frame, size), &fds, &why), 0);
        }
        ck_assert_int_eq(duplex_flush(d, &why), 0);
        duplex_turn(d);
        int rc;
        do {
            struct bytes got;
            struct frame_fds fds = {.count = 0};
            uint32_t number = 0;
            rc = duplex_next(d, &got, &fds, &why);
            ck_assert_msg(rc >= 0, "%s", why.text);
            if (rc == 1) {
                memcpy(&number, got.data + 1, sizeof number);
                ck_assert_uint_eq(number, ++heard);
                ck_assert_int_eq(fds.count, has_descriptors(number));
                frame_fds_close(&fds);
            }
        } while (rc == 1 && d->more);
        duplex_settle(d);
        if ((said == MANY || d->queued >= 50) && (heard < MANY || d->queue != NULL)) {
            wait_for_bell(d);
        }
    }
    ck_assert_int_eq(duplex_flush(d, &why), 0);
    return NULL;
}

START_TEST(two_threads_lose_nothing)
{
    pthread_t thread;
    rings_open(QUEUE_MAX);
    ck_assert_int_eq(pthread_create(&thread, NULL, talk, &worker), 0);
    (void)talk(&front);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    channel_close();
}
END_TEST

SUITE_MAIN("duplex", nothing_overtakes_anything, a_bell_rings_once_for_a_sleep,
           a_batch_and_then_the_others, a_full_ring_queues_and_is_woken,
           a_full_socket_holds_up_what_follows, who_does_not_read_has_a_limit,
           a_refused_offer_is_forgotten, without_descriptors_everything_stays_as_it_was,
           only_rings_are_adopted, a_lie_is_the_end, packets_without_a_frame_are_not_stepped_over,
           a_consumer_that_lies_is_not_believed, packets_without_markers_are_nobodys_business,
           what_was_said_before_the_end_counts, another_front_takes_over,
           what_waits_for_rings_goes_with_them, what_waits_for_the_socket_stays,
           a_beat_is_seen_without_a_frame, a_worker_that_spoils_the_bells_blocks_nobody,
           two_threads_lose_nothing)
