#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/doorbell.h"
#include "common/duplex.h"
#include "daemon/front/workers/link.h"
#include "tests/unit/front/scratch.h"

/* One link on a loop and the bare other end of its channel. */
static uv_loop_t loop;
static int far_end;
static struct link *link_here;

static unsigned frames;
static uint64_t numbers[4096];
static struct frame_fds fds_seen;
static bool keep_fds;
static bool destroy_on_frame;
static bool broken;
static struct err broken_error;
static bool got_some;

static void on_frame(void *data, unsigned kind, struct bytes frame, struct frame_fds *fds)
{
    struct msg_ping ping;
    struct err e = ERR_INIT;
    (void)data;
    ck_assert(!broken);
    if (kind == FRAME_KIND_W_RINGS) {
        struct msg_w_rings answer;
        ck_assert_int_eq(proto_decode(&schema_msg_w_rings, frame, &answer, &e), 0);
        link_rings_answered(link_here, answer.nonce, (int)answer.code);
        return;
    }
    ck_assert_uint_eq(kind, MSG_KIND_PING);
    ck_assert_int_eq(proto_decode(&schema_msg_ping, frame, &ping, &e), 0);
    numbers[frames++ % 4096] = ping.value;
    got_some = true;
    fds_seen = *fds;
    if (keep_fds) {
        fds->count = 0;
    }
    if (destroy_on_frame) {
        link_destroy(link_here);
        link_here = NULL;
    }
}

static void on_broken(void *data, const struct err *e)
{
    (void)data;
    ck_assert(!broken);
    broken = true;
    broken_error = *e;
}

static const struct link_callbacks callbacks = {.frame = on_frame, .broken = on_broken};

static void open_link(size_t queue_max)
{
    struct err e = ERR_INIT;
    int fd[2];
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(seqpacket_pair(fd, &e), 0);
    ck_assert_int_eq(link_create(&loop, fd[0], queue_max, &callbacks, NULL, &link_here, &e), 0);
    far_end = fd[1];
}

static void close_link(void)
{
    link_destroy(link_here);
    link_here = NULL;
    if (far_end >= 0) {
        (void)close(far_end);
    }
    loop_finish(&loop);
}

static void far_send(uint64_t value, const struct frame_fds *fds)
{
    struct msg_ping ping = {.value = value};
    struct capbuf out;
    struct err e = ERR_INIT;
    capbuf_init(&out, 256);
    ck_assert_int_eq(proto_encode(&schema_msg_ping, &ping, &out, &e), 0);
    ck_assert_int_eq(seqpacket_send(far_end, out.data, out.size, fds, &e), 0);
    capbuf_finish(&out);
}

/* The value of the next frame at the far end; -1 if there is none. */
static int64_t far_recv(struct frame_fds *fds)
{
    static uint8_t buffer[FRAME_MAX_BYTES];
    size_t size = 0;
    struct err e = ERR_INIT;
    int rc = seqpacket_recv(far_end, buffer, sizeof buffer, &size, fds, &e);
    if (rc != 0) {
        return -1;
    }
    struct msg_ping ping;
    ck_assert_int_eq(proto_decode(&schema_msg_ping, bytes_of(buffer, size), &ping, &e), 0);
    return (int64_t)ping.value;
}

static int send_ping(uint64_t value, const struct frame_fds *fds, struct err *e)
{
    struct msg_ping ping = {.value = value};
    return link_send(link_here, &schema_msg_ping, &ping, fds, e);
}

START_TEST(frames_go_both_ways)
{
    struct err e = ERR_INIT;
    open_link(1024);
    far_send(7, NULL);
    far_send(8, NULL);
    loop_until(&loop, &got_some);
    ck_assert_uint_eq(frames, 2);
    ck_assert_uint_eq(numbers[0], 7);
    ck_assert_uint_eq(numbers[1], 8);
    ck_assert_int_eq(send_ping(9, NULL, &e), 0);
    ck_assert_int_eq(far_recv(NULL), 9);
    close_link();
}
END_TEST

START_TEST(what_does_not_fit_is_queued_in_order)
{
    struct err e = ERR_INIT;
    open_link((size_t)1024 * 1024);
    uint64_t sent = 0;
    for (; sent < 3000; sent++) { /* more than any socket's buffer takes */
        ck_assert_int_eq(send_ping(sent, NULL, &e), 0);
    }
    for (uint64_t next = 0; next < sent;) {
        int64_t value = far_recv(NULL);
        if (value < 0) {
            (void)uv_run(&loop, UV_RUN_ONCE);
        } else {
            ck_assert_int_eq(value, (int64_t)next);
            next++;
        }
    }
    ck_assert(!broken);
    close_link();
}
END_TEST

START_TEST(a_full_queue_breaks_the_link_after_the_last_words)
{
    struct err e = ERR_INIT;
    open_link(64);
    int rc = 0;
    far_send(1, NULL);
    for (unsigned i = 0; i < 100000 && rc == 0; i++) {
        rc = send_ping(i, NULL, &e);
    }
    ck_assert_int_eq(rc, ERR_LIMIT);
    ck_assert(!broken);
    ck_assert_int_eq(send_ping(0, NULL, &e), ERR_CLOSED);
    loop_until(&loop, &broken);
    ck_assert_int_eq(broken_error.code, ERR_LIMIT);
    ck_assert_uint_eq(frames, 1);
    close_link();
}
END_TEST

START_TEST(descriptors_are_the_receivers)
{
    struct err e = ERR_INIT;
    open_link(1024);
    close_link(); /* libuv keeps some descriptors of its own from now on */
    int before = descriptors_open();
    open_link(1024);
    struct frame_fds fds = {.count = 2};
    ck_assert_int_eq(pipe2(fds.fd, O_CLOEXEC), 0);
    keep_fds = true;
    far_send(1, &fds);
    loop_until(&loop, &got_some);
    ck_assert_int_eq(fds_seen.count, 2);
    ck_assert_int_eq(write(fds_seen.fd[1], "x", 1), 1);
    frame_fds_close(&fds_seen);
    keep_fds = false;
    got_some = false;
    far_send(2, &fds);
    loop_until(&loop, &got_some);
    ck_assert_int_eq(fcntl(fds_seen.fd[0], F_GETFD), -1);
    ck_assert_int_eq(send_ping(3, &fds, &e), 0);
    struct frame_fds back;
    ck_assert_int_eq(far_recv(&back), 3);
    ck_assert_int_eq(back.count, 2);
    frame_fds_close(&back);
    frame_fds_close(&fds);
    close_link();
    ck_assert_int_eq(descriptors_open(), before);
}
END_TEST

START_TEST(queued_descriptors_may_be_closed_by_the_sender)
{
    struct err e = ERR_INIT;
    open_link(1024);
    close_link();
    int before = descriptors_open();
    open_link((size_t)1024 * 1024);
    uint64_t sent = 0;
    for (; sent < 2000; sent++) {
        ck_assert_int_eq(send_ping(sent, NULL, &e), 0);
    }
    struct frame_fds fds = {.count = 2};
    ck_assert_int_eq(pipe2(fds.fd, O_CLOEXEC), 0);
    ck_assert_int_eq(send_ping(sent, &fds, &e), 0);
    frame_fds_close(&fds);
    struct frame_fds back = {.count = 0};
    for (uint64_t next = 0; next <= sent;) {
        if (far_recv(&back) < 0) {
            (void)uv_run(&loop, UV_RUN_ONCE);
        } else {
            next++;
        }
    }
    ck_assert_int_eq(back.count, 2);
    ck_assert_int_eq(write(back.fd[1], "x", 1), 1);
    frame_fds_close(&back);
    /* and those of a link that ends with a queue are closed */
    for (sent = 0; sent < 2000; sent++) {
        ck_assert_int_eq(send_ping(sent, NULL, &e), 0);
    }
    ck_assert_int_eq(pipe2(fds.fd, O_CLOEXEC), 0);
    fds.count = 2;
    ck_assert_int_eq(send_ping(sent, &fds, &e), 0);
    frame_fds_close(&fds);
    close_link();
    ck_assert_int_eq(descriptors_open(), before);
}
END_TEST

START_TEST(a_peer_that_goes_is_told_after_its_frames)
{
    open_link(1024);
    far_send(1, NULL);
    far_send(2, NULL);
    (void)close(far_end);
    far_end = -1;
    loop_until(&loop, &broken);
    ck_assert_uint_eq(frames, 2);
    ck_assert_int_eq(broken_error.code, ERR_CLOSED);
    close_link();
}
END_TEST

START_TEST(a_peer_that_dies_unread_is_heard_to_its_last_frame)
{
    struct err e = ERR_INIT;
    open_link(1024);
    ck_assert_int_eq(send_ping(5, NULL, &e), 0); /* it will never read this */
    far_send(1, NULL);
    far_send(2, NULL);
    (void)close(far_end);
    far_end = -1;
    ck_assert_int_eq(send_ping(6, NULL, &e), ERR_CLOSED);
    ck_assert(!broken);
    loop_until(&loop, &broken);
    ck_assert_uint_eq(frames, 2);
    close_link();
}
END_TEST

/* Its end is told by its parent at once: what it said is taken then, not at the next turn. */
START_TEST(last_words_can_be_taken_when_sending_has_failed)
{
    struct err e = ERR_INIT;
    open_link(1024);
    far_send(1, NULL);
    far_send(2, NULL);
    (void)close(far_end);
    far_end = -1;
    ck_assert_int_eq(send_ping(6, NULL, &e), ERR_CLOSED);
    link_drain(link_here);
    ck_assert_uint_eq(frames, 2);
    ck_assert(broken);
    (void)uv_run(&loop, UV_RUN_NOWAIT); /* and it is told once */
    close_link();
}
END_TEST

START_TEST(frames_that_break_the_rules)
{
    static uint8_t frame[FRAME_MAX_BYTES + 1];
    size_t size = _i == 0 ? 10 : sizeof frame;
    open_link(1024);
    memset(frame, 0xc1, sizeof frame); /* no msgpack */
    ck_assert_int_eq(send(far_end, frame, size, 0), (ssize_t)size);
    loop_until(&loop, &broken);
    ck_assert_uint_eq(frames, 0);
    ck_assert_int_eq(broken_error.code, ERR_PROTOCOL);
    close_link();
}
END_TEST

START_TEST(a_message_too_long_for_a_frame)
{
    static uint8_t device[FRAME_DEVICE_MAX];
    static struct proto_list args;
    struct err e = ERR_INIT;
    open_link(1024);
    struct capbuf words;
    capbuf_init(&words, (size_t)1024 * 1024);
    static char text[PROTO_TEXT_MAX];
    memset(text, 'x', sizeof text);
    struct proto_word word = {.text = bytes_of(text, sizeof text)};
    for (unsigned i = 0; i < 64; i++) {
        ck_assert_int_eq(proto_list_add(&schema_word, &word, &words, &e), 0);
    }
    args = proto_list_of(&words, 64);
    struct msg_l_worker msg = {.id = 1, .args = args, .device = bytes_of(device, sizeof device)};
    ck_assert_int_eq(link_send(link_here, &schema_msg_l_worker, &msg, NULL, &e), ERR_LIMIT);
    ck_assert_int_eq(send_ping(1, NULL, &e), 0); /* it is not broken by this */
    ck_assert_int_eq(far_recv(NULL), 1);
    capbuf_finish(&words);
    close_link();
}
END_TEST

START_TEST(a_link_may_be_destroyed_in_its_callback)
{
    open_link(1024);
    destroy_on_frame = true;
    far_send(1, NULL);
    far_send(2, NULL);
    loop_until(&loop, &got_some);
    close_link();
    ck_assert_uint_eq(frames, 1);
    ck_assert(!broken);
}
END_TEST

START_TEST(what_has_arrived_can_be_taken_at_once)
{
    open_link(1024);
    far_send(1, NULL);
    far_send(2, NULL);
    link_drain(link_here);
    ck_assert_uint_eq(frames, 2);
    ck_assert(!broken);
    far_send(3, NULL);
    (void)close(far_end);
    far_end = -1;
    link_drain(link_here);
    ck_assert_uint_eq(frames, 3);
    ck_assert(broken);
    (void)uv_run(&loop, UV_RUN_NOWAIT); /* and it is told once */
    close_link();
}
END_TEST

START_TEST(what_is_not_delivered_is_unread)
{
    open_link(1024);
    ck_assert(!link_unread(NULL));
    ck_assert(!link_unread(link_here));
    far_send(1, NULL);
    ck_assert(link_unread(link_here));
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert_uint_eq(frames, 1);
    ck_assert(!link_unread(link_here));
    close_link();
}
END_TEST

/* ---- rings ----------------------------------------------------------------------------------- */

static struct duplex far; /* the far end with rings */

static bool has_rings(void)
{
    uint64_t at = 0;
    uint64_t patience = 0;
    return link_beat(link_here, &at, &patience);
}

static void turn(void)
{
    for (unsigned i = 0; i < 4; i++) {
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    }
}

static void far_say(const struct schema *schema, const void *msg, const struct frame_fds *fds)
{
    struct capbuf out;
    struct err e = ERR_INIT;
    capbuf_init(&out, FRAME_MAX_BYTES);
    ck_assert_int_eq(proto_encode(schema, msg, &out, &e), 0);
    ck_assert_int_eq(duplex_send(&far, capbuf_view(&out), fds, &e), 0);
    ck_assert_int_eq(duplex_flush(&far, &e), 0);
    capbuf_finish(&out);
}

static void far_ping(uint64_t value, const struct frame_fds *fds)
{
    const struct msg_ping ping = {.value = value};
    far_say(&schema_msg_ping, &ping, fds);
}

/* The next frame's kind, 0: none. */
static unsigned far_hear(const struct schema *schema, void *ret_msg, struct frame_fds *ret_fds)
{
    struct bytes frame;
    struct err e = ERR_INIT;
    ret_fds->count = 0;
    int rc = duplex_next(&far, &frame, ret_fds, &e);
    ck_assert_msg(rc >= 0, "%s", e.text);
    if (rc != 1) {
        return 0;
    }
    ck_assert_int_eq(proto_decode(schema, frame, ret_msg, &e), 0);
    return proto_kind(frame);
}

static int64_t far_pinged(int *ret_fds)
{
    struct msg_ping ping;
    struct frame_fds fds;
    unsigned kind = far_hear(&schema_msg_ping, &ping, &fds);
    *ret_fds = fds.count;
    frame_fds_close(&fds);
    return kind == 0 ? -1 : (int64_t)ping.value;
}

static void open_far(size_t queue_max)
{
    open_link(queue_max);
    link_gather(link_here);
    duplex_init(&far, far_end, SIZE_MAX, false);
}

/* Offers, and the far end takes it; what is sent meanwhile follows. */
static void take_offer(int code)
{
    struct err e = ERR_INIT;
    struct msg_f_rings offer;
    struct frame_fds fds;
    ck_assert_int_eq(link_offer_rings(link_here, &e), 0);
    ck_assert_int_eq(far_hear(&schema_msg_f_rings, &offer, &fds), FRAME_KIND_F_RINGS);
    ck_assert_int_eq(fds.count, DUPLEX_FDS);
    struct msg_w_rings stale = {.nonce = offer.nonce - 1, .text = bytes_str("")};
    struct msg_w_rings answer = {.nonce = offer.nonce, .code = code, .text = bytes_str("")};
    far_say(&schema_msg_w_rings, &stale, NULL); /* somebody else's */
    turn();
    ck_assert(!has_rings());
    if (code == 0) {
        ck_assert_int_eq(duplex_adopt(&far, &fds, &e), 0);
    }
    frame_fds_close(&fds);
    far_say(&schema_msg_w_rings, &answer, NULL);
    if (code == 0) {
        duplex_join(&far);
    }
    turn();
    ck_assert_int_eq(has_rings(), code == 0);
}

static void close_far(void)
{
    duplex_finish(&far);
    close_link();
}

START_TEST(an_offer_is_taken_or_not)
{
    struct err e = ERR_INIT;
    struct frame_fds pipe_fds = {.count = 2};
    int fds = 0;
    open_far(1024);
    ck_assert_int_eq(pipe2(pipe_fds.fd, O_CLOEXEC), 0);
    ck_assert_int_eq(send_ping(1, NULL, &e), 0);
    link_flush(link_here);
    ck_assert_int_eq(far_pinged(&fds), 1);
    take_offer(_i == 0 ? 0 : ERR_NOMEM);
    ck_assert_int_eq(link_offer_rings(link_here, &e), 0); /* once is enough */
    ck_assert_int_eq(send_ping(2, NULL, &e), 0);
    ck_assert_int_eq(send_ping(3, &pipe_fds, &e), 0);
    ck_assert_int_eq(send_ping(4, NULL, &e), 0);
    turn();
    for (int64_t i = 2; i <= 4; i++) {
        ck_assert_int_eq(far_pinged(&fds), i);
        ck_assert_int_eq(fds, i == 3 ? 2 : 0);
    }
    ck_assert_int_eq(far_pinged(&fds), -1);
    far_ping(7, NULL);
    far_ping(8, &pipe_fds);
    far_ping(9, NULL);
    loop_until(&loop, &got_some);
    turn();
    ck_assert_uint_eq(frames, 3);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_uint_eq(numbers[i], 7 + i);
    }
    frame_fds_close(&pipe_fds);
    close_far();
}
END_TEST

START_TEST(a_full_ring_holds_up_and_is_woken)
{
    struct err e = ERR_INIT;
    int fds = 0;
    uint64_t sent = 0;
    open_far((size_t)1024 * 1024);
    take_offer(0);
    for (; sent < 30000; sent++) {
        ck_assert_int_eq(send_ping(sent, NULL, &e), 0);
    }
    for (uint64_t next = 0; next < sent;) {
        turn();
        duplex_turn(&far);
        int64_t value;
        while ((value = far_pinged(&fds)) >= 0) {
            ck_assert_int_eq(value, (int64_t)next);
            next++;
        }
        duplex_settle(&far);
    }
    ck_assert(!broken);
    close_far();
}
END_TEST

START_TEST(who_takes_nothing_breaks_the_link)
{
    struct err e = ERR_INIT;
    int rc = 0;
    open_far(1000);
    take_offer(0);
    far_ping(1, NULL);
    for (unsigned i = 0; i < 100000 && rc == 0; i++) {
        rc = send_ping(i, NULL, &e);
    }
    ck_assert_int_eq(rc, ERR_LIMIT);
    loop_until(&loop, &broken);
    ck_assert_int_eq(broken_error.code, ERR_LIMIT);
    ck_assert_uint_eq(frames, 1); /* its last words */
    close_far();
}
END_TEST

/* More than a batch comes, in turns. */
START_TEST(much_comes_in_order)
{
    open_far(1024);
    take_offer(0);
    for (uint64_t i = 0; i < 1000; i++) {
        far_ping(i, NULL);
    }
    while (frames < 1000) {
        (void)uv_run(&loop, UV_RUN_ONCE);
    }
    for (uint64_t i = 0; i < 1000; i++) {
        ck_assert_uint_eq(numbers[i], i);
    }
    close_far();
}
END_TEST

/* Its words count to the last one, by ring and by socket, whatever reports its end. */
START_TEST(one_that_ends_is_heard)
{
    struct frame_fds fds = {.count = 2};
    open_far(1024);
    take_offer(0);
    turn();
    ck_assert_int_eq(pipe2(fds.fd, O_CLOEXEC), 0);
    far_ping(1, NULL);
    far_ping(2, &fds);
    far_ping(3, NULL);
    frame_fds_close(&fds);
    duplex_finish(&far);
    (void)close(far_end);
    far_end = -1;
    if (_i == 0) {
        loop_until(&loop, &broken);
    } else {
        link_drain(link_here);
    }
    ck_assert_uint_eq(frames, 3);
    ck_assert(broken);
    ck_assert_int_eq(broken_error.code, ERR_CLOSED);
    turn();
    close_link();
}
END_TEST

/* However many they are: as many as a ring holds. */
START_TEST(all_that_a_ring_holds_is_heard)
{
    const unsigned sent = 8000;
    open_far(1024);
    take_offer(0);
    turn();
    for (unsigned i = 0; i < sent; i++) {
        far_ping(i, NULL);
    }
    ck_assert_ptr_null(far.queue);
    duplex_finish(&far);
    (void)close(far_end);
    far_end = -1;
    if (_i == 0) {
        loop_until(&loop, &broken);
    } else {
        link_drain(link_here);
    }
    ck_assert_uint_eq(frames, sent);
    ck_assert(broken);
    ck_assert_int_eq(broken_error.code, ERR_CLOSED);
    turn();
    close_link();
}
END_TEST

/* Sending failed before the rings were answered for: what is in them counts, and then the end. */
START_TEST(rings_may_be_among_the_last_words)
{
    struct err e = ERR_INIT;
    struct msg_f_rings offer;
    struct frame_fds fds;
    open_far(64);
    ck_assert_int_eq(link_offer_rings(link_here, &e), 0);
    ck_assert_int_eq(far_hear(&schema_msg_f_rings, &offer, &fds), FRAME_KIND_F_RINGS);
    ck_assert_int_eq(duplex_adopt(&far, &fds, &e), 0);
    const struct msg_w_rings answer = {.nonce = offer.nonce, .text = bytes_str("")};
    far_say(&schema_msg_w_rings, &answer, NULL);
    duplex_join(&far);
    far_ping(1, NULL);
    far_ping(2, NULL);
    int rc = 0;
    for (unsigned i = 0; i < 100 && rc == 0; i++) { /* they wait for that answer */
        rc = send_ping(i, NULL, &e);
    }
    ck_assert_int_eq(rc, ERR_LIMIT);
    turn();
    ck_assert_uint_eq(frames, 2);
    ck_assert(broken);
    ck_assert_int_eq(broken_error.code, ERR_LIMIT);
    close_far();
}
END_TEST

static void lie_record(void)
{
    struct err e = ERR_INIT;
    ck_assert_int_eq(ring_put(&far.rings.out, 9, bytes_of("?", 1), (struct bytes){0}, &e), 1);
}

static void lie_marker(void)
{
    struct err e = ERR_INIT;
    ck_assert_int_eq(ring_put(&far.rings.out, 1, (struct bytes){0}, (struct bytes){0}, &e), 1);
}

static void lie_no_frame(void)
{
    struct err e = ERR_INIT;
    ck_assert_int_eq(ring_put(&far.rings.out, 0, bytes_of("\x01?", 2), (struct bytes){0}, &e), 1);
}

static void lie_no_packet(void)
{
    struct err e = ERR_INIT;
    ck_assert_int_eq(ring_put(&far.rings.out, 0, bytes_of("\xc1????", 5), (struct bytes){0}, &e),
                     1);
}

static void lie_packet_of_nothing(void)
{
    struct err e = ERR_INIT;
    const struct frame_fds fds = {.fd = {far_end, far_end}, .count = 2};
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(duplex_send(&far, bytes_str("\xc1"), &fds, &e), 0);
    }
}

static void lie_positions(void)
{
    atomic_store(&far.rings.out.shared->head, 3);
}

static void (*const LIES[])(void) = {
    lie_record, lie_marker, lie_no_frame, lie_no_packet, lie_packet_of_nothing, lie_positions};
#define LIE_COUNT ((int)(sizeof LIES / sizeof LIES[0]))

/* FAULT 49: a worker that writes garbage into its rings, or sends descriptors without a marker;
 *   a front that ends with frames in flight
 * required: the worker ends as for any wrong frame and does not keep the front busy; the worker
 *   takes the ended front's published frames, the next front asks anew
 * defence: `common/duplex.c`: take_record, take_beside; `front/workers/link.c`;
 *   `worker/serve/channel.c`: change_front
 * also: `common_duplex_test`; `worker_channel_test`: a_front_dies_with_frames_on_their_way
 * mutants: ring-marker, ring-front */
START_TEST(a_lie_in_the_ring_breaks_the_link)
{
    struct err e = ERR_INIT;
    open_far(1024);
    take_offer(0);
    far_ping(1, NULL);
    turn();
    int before = descriptors_open();
    LIES[_i]();
    (void)duplex_flush(&far, &e);
    doorbell_ring(far.rings.far_bell);
    loop_until(&loop, &broken);
    ck_assert_int_eq(descriptors_open(), before);
    ck_assert_uint_eq(frames, 1);
    ck_assert_int_eq(broken_error.code, ERR_PROTOCOL);
    close_far();
}
END_TEST

/* They lie there until their end, and wake no thread. */
START_TEST(packets_without_markers_are_not_looked_at)
{
    open_far(1024);
    take_offer(0);
    turn();
    far_send(1, NULL);
    far_send(2, NULL);
    turn();
    ck_assert_uint_eq(frames, 0);
    ck_assert(!broken);
    far_ping(3, NULL);
    loop_until(&loop, &got_some);
    ck_assert_uint_eq(numbers[0], 3);
    close_far();
}
END_TEST

START_TEST(a_bell_rung_for_nothing_is_heard_for_a_while)
{
    unsigned rings = 0;
    open_far(1024);
    take_offer(0);
    turn();
    while (!broken && ++rings < 100000) {
        doorbell_ring(far.rings.far_bell);
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    }
    ck_assert(broken);
    ck_assert_int_eq(broken_error.code, ERR_PROTOCOL);
    ck_assert_uint_gt(rings, 1000);
    close_far();
}
END_TEST

START_TEST(a_link_with_rings_may_be_destroyed_in_its_callback)
{
    open_far(1024);
    take_offer(0);
    turn();
    destroy_on_frame = true;
    far_ping(1, NULL);
    far_ping(2, NULL);
    loop_until(&loop, &got_some);
    turn();
    close_far();
    ck_assert_uint_eq(frames, 1);
    ck_assert(!broken);
}
END_TEST

START_TEST(beats_are_read_not_sent)
{
    uint64_t at = 0;
    uint64_t patience = 0;
    open_far(1024);
    ck_assert(!link_beat(link_here, &at, &patience));
    take_offer(0);
    atomic_store(&duplex_beat(&far)->at_ns, 5);
    atomic_store(&duplex_beat(&far)->patience_ns, 6);
    ck_assert(link_beat(link_here, &at, &patience));
    ck_assert_uint_eq(at, 5);
    ck_assert_uint_eq(patience, 6);
    close_far();
}
END_TEST

/* Each descriptor of an offer is lacking once: everything goes over the socket. */
/* The loop takes a batch of the ring in a turn. */
START_TEST(what_a_turn_leaves_in_the_ring_is_unread)
{
    enum { MANY = 1000 };
    open_far(1024);
    take_offer(0);
    ck_assert(!link_unread(link_here));
    for (unsigned i = 0; i < MANY; i++) {
        far_ping(i, NULL);
    }
    while (frames < MANY) {
        ck_assert(link_unread(link_here));
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    }
    ck_assert(!link_unread(link_here));
    close_far();
}
END_TEST

START_TEST(without_descriptors_the_socket_does_it)
{
    struct rlimit limit;
    struct err e = ERR_INIT;
    int fds = 0;
    open_far(1024);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    int next = fcntl(far_end, F_DUPFD_CLOEXEC, 0);
    (void)close(next);
    for (int room = 0; room < 3; room++) {
        const struct rlimit tight = {.rlim_cur = (rlim_t)(next + room), .rlim_max = limit.rlim_max};
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &tight), 0);
        int rc = link_offer_rings(link_here, &e);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
        ck_assert_int_lt(rc, 0);
        ck_assert_int_eq(send_ping(1, NULL, &e), 0);
        turn();
        ck_assert_int_eq(far_pinged(&fds), 1);
    }
    take_offer(0);
    close_far();
}
END_TEST

static TCase *rings_case(void)
{
    TCase *tc = tcase_create("rings");
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, an_offer_is_taken_or_not, 0, 2);
    tcase_add_test(tc, a_full_ring_holds_up_and_is_woken);
    tcase_add_test(tc, who_takes_nothing_breaks_the_link);
    tcase_add_test(tc, much_comes_in_order);
    tcase_add_loop_test(tc, one_that_ends_is_heard, 0, 2);
    tcase_add_loop_test(tc, all_that_a_ring_holds_is_heard, 0, 2);
    tcase_add_test(tc, rings_may_be_among_the_last_words);
    tcase_add_loop_test(tc, a_lie_in_the_ring_breaks_the_link, 0, LIE_COUNT);
    tcase_add_test(tc, packets_without_markers_are_not_looked_at);
    tcase_add_test(tc, a_bell_rung_for_nothing_is_heard_for_a_while);
    tcase_add_test(tc, a_link_with_rings_may_be_destroyed_in_its_callback);
    tcase_add_test(tc, beats_are_read_not_sent);
    tcase_add_test(tc, what_a_turn_leaves_in_the_ring_is_unread);
    tcase_add_test(tc, without_descriptors_the_socket_does_it);
    return tc;
}

int main(void)
{
    Suite *suite = suite_create("link");
    TCase *tc = tcase_create("link");
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, frames_go_both_ways);
    tcase_add_test(tc, what_does_not_fit_is_queued_in_order);
    tcase_add_test(tc, a_full_queue_breaks_the_link_after_the_last_words);
    tcase_add_test(tc, descriptors_are_the_receivers);
    tcase_add_test(tc, queued_descriptors_may_be_closed_by_the_sender);
    tcase_add_test(tc, a_peer_that_goes_is_told_after_its_frames);
    tcase_add_test(tc, a_peer_that_dies_unread_is_heard_to_its_last_frame);
    tcase_add_test(tc, last_words_can_be_taken_when_sending_has_failed);
    tcase_add_loop_test(tc, frames_that_break_the_rules, 0, 2);
    tcase_add_test(tc, a_message_too_long_for_a_frame);
    tcase_add_test(tc, a_link_may_be_destroyed_in_its_callback);
    tcase_add_test(tc, what_has_arrived_can_be_taken_at_once);
    tcase_add_test(tc, what_is_not_delivered_is_unread);
    suite_add_tcase(suite, tc);
    suite_add_tcase(suite, rings_case());
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
