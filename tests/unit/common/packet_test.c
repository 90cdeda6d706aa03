#include "common/packet.h"

#include <string.h>

#include "tests/unit/common/suite.h"

static struct packet p;
static struct err e;

static unsigned frames_of(struct bytes packet, struct bytes *ret_frames, unsigned max)
{
    bool first = true;
    unsigned count = 0;
    int rc;
    while (count < max && (rc = packet_next(&packet, &first, &ret_frames[count], &e)) == 1) {
        count++;
    }
    ck_assert_int_eq(rc, 0);
    return count;
}

START_TEST(one_frame_is_itself)
{
    struct bytes out[4];
    packet_reset(&p);
    ck_assert_uint_eq(packet_view(&p).size, 0);
    ck_assert(packet_add(&p, bytes_str("\x91 one")));
    ck_assert(bytes_equal_str(packet_view(&p), "\x91 one"));
    ck_assert_uint_eq(frames_of(packet_view(&p), out, 4), 1);
    ck_assert(bytes_equal_str(out[0], "\x91 one"));
}
END_TEST

START_TEST(several_come_out_in_order)
{
    struct bytes out[4];
    packet_reset(&p);
    ck_assert(packet_add(&p, bytes_str("\x91")));
    ck_assert(packet_add(&p, bytes_str("\x92 second")));
    ck_assert(packet_add(&p, bytes_str("\x93 third")));
    ck_assert_uint_eq(frames_of(packet_view(&p), out, 4), 3);
    ck_assert(bytes_equal_str(out[0], "\x91"));
    ck_assert(bytes_equal_str(out[1], "\x92 second"));
    ck_assert(bytes_equal_str(out[2], "\x93 third"));
}
END_TEST

START_TEST(it_is_never_longer_than_a_frame)
{
    static uint8_t large[FRAME_MAX_BYTES];
    large[0] = 0x91;
    packet_reset(&p);
    ck_assert(packet_add(&p, bytes_of(large, sizeof large))); /* the longest frame goes alone */
    ck_assert_uint_eq(packet_view(&p).size, FRAME_MAX_BYTES);
    ck_assert(!packet_add(&p, bytes_str("\x91")));
    packet_reset(&p);
    unsigned count = 0;
    while (packet_add(&p, bytes_of(large, 1000))) {
        count++;
    }
    ck_assert_uint_eq(count, (FRAME_MAX_BYTES - 1) / 1004);
    ck_assert_uint_le(packet_view(&p).size, FRAME_MAX_BYTES);
}
END_TEST

START_TEST(lengths_that_lie_are_refused)
{
    static const uint8_t bad[][6] = {
        {0xc1, 2, 0, 0, 0, 0x91}, {0xc1, 0, 0, 0, 0, 0x91}, {0xc1, 0xff, 0xff, 0xff, 0xff, 0x91}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        for (size_t size = 1; size <= sizeof bad[i]; size++) {
            struct bytes rest = bytes_of(bad[i], size);
            struct bytes frame;
            bool first = true;
            ck_assert_int_eq(packet_next(&rest, &first, &frame, &e), ERR_PROTOCOL);
        }
    }
}
END_TEST

/* Nor may it be stepped over: what came beside it would be, too. */
START_TEST(a_packet_of_nothing_is_refused)
{
    struct bytes rest = bytes_of(p.data, 0);
    struct bytes frame;
    bool first = true;
    ck_assert_int_eq(packet_next(&rest, &first, &frame, &e), ERR_PROTOCOL);
}
END_TEST

SUITE_MAIN("packet", one_frame_is_itself, several_come_out_in_order,
           it_is_never_longer_than_a_frame, lengths_that_lie_are_refused,
           a_packet_of_nothing_is_refused)
