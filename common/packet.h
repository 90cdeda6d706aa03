/*
 * Several frames in one packet of a SOCK_SEQPACKET channel: one system call and one wake-up for all
 * frames of a turn of a loop. A packet with one frame is that frame. A packet with several begins
 * with a byte that begins no frame; then each frame follows its length (32 bits, little endian).
 *
 * Thread: one owner. Nothing blocks or allocates.
 */
#ifndef COMMON_PACKET_H
#define COMMON_PACKET_H

#include "common/bytes.h"
#include "common/seqpacket.h"

#define PACKET_SEVERAL    0xc1u /* msgpack never uses it */
#define PACKET_FRAME_HEAD 4u
#define PACKET_HEAD       (1u + PACKET_FRAME_HEAD) /* bytes before the first of several frames */

struct packet {
    unsigned frames;
    size_t size; /* bytes, with PACKET_HEAD */
    uint8_t data[PACKET_HEAD + FRAME_MAX_BYTES];
};

void packet_reset(struct packet *p);
/* Appends a copy of the frame (1 to FRAME_MAX_BYTES bytes). false: no room until the packet is sent
 * and reset. */
bool packet_add(struct packet *p, struct bytes frame);
struct bytes packet_view(const struct packet *p); /* the packet to send; empty without frames */

/* Takes the next frame from the rest of a received packet. 1: there was one; 0: no more;
 * ERR_PROTOCOL: the packet is malformed or has no frame. *io_first: true before the first call. */
int packet_next(struct bytes *io_rest, bool *io_first, struct bytes *ret_frame, struct err *e);

#endif
