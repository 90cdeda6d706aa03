/*
 * Several frames in one packet of a SOCK_SEQPACKET channel: one system call and one wake-up for all
 * that a turn of a loop has to say. A packet with one frame is that frame; one with several begins
 * with a byte that begins no frame, then each has its length (32 bits, little endian) in front.
 *
 * Thread: one owner. Nothing blocks or allocates.
 */
#ifndef COMMON_PACKET_H
#define COMMON_PACKET_H

#include "common/bytes.h"
#include "common/seqpacket.h"

#define PACKET_SEVERAL    0xc1u /* msgpack never uses it */
#define PACKET_FRAME_HEAD 4u
#define PACKET_HEAD       (1u + PACKET_FRAME_HEAD) /* what stands before the first frame */

struct packet {
    unsigned frames;
    size_t size; /* bytes, with what stands in front */
    uint8_t data[PACKET_HEAD + FRAME_MAX_BYTES];
};

void packet_reset(struct packet *p);
/* Copies the frame (1 to FRAME_MAX_BYTES bytes) behind the others; false: send those first. */
bool packet_add(struct packet *p, struct bytes frame);
struct bytes packet_view(const struct packet *p); /* what is to be sent; empty without frames */

/* Takes the next frame from what is left of a packet that came in. 1: there was one; 0: that was
 * all; ERR_PROTOCOL: it is none, or one without a frame. *io_first: true before the first call. */
int packet_next(struct bytes *io_rest, bool *io_first, struct bytes *ret_frame, struct err *e);

#endif
