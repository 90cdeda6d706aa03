#include "common/packet.h"

#include <endian.h>
#include <string.h>

void packet_reset(struct packet *p)
{
    p->frames = 0;
    p->size = 0;
}

bool packet_add(struct packet *p, struct bytes frame)
{
    uint32_t length = htole32((uint32_t)frame.size);
    if (p->frames == 0) {
        p->data[0] = PACKET_SEVERAL;
        p->size = 1;
    } else if (p->size + PACKET_FRAME_HEAD + frame.size > FRAME_MAX_BYTES) {
        return false;
    }
    memcpy(p->data + p->size, &length, sizeof length);
    memcpy(p->data + p->size + sizeof length, frame.data, frame.size);
    p->size += sizeof length + frame.size;
    p->frames++;
    return true;
}

struct bytes packet_view(const struct packet *p)
{
    if (p->frames == 0) {
        return bytes_of(p->data, 0);
    }
    return p->frames == 1 ? bytes_of(p->data + PACKET_HEAD, p->size - PACKET_HEAD)
                          : bytes_of(p->data, p->size);
}

int packet_next(struct bytes *io_rest, bool *io_first, struct bytes *ret_frame, struct err *e)
{
    struct bytes rest = *io_rest;
    bool first = *io_first;
    *io_first = false;
    if (first && rest.size > 0 && rest.data[0] != PACKET_SEVERAL) {
        *ret_frame = rest;
        *io_rest = bytes_of(rest.data + rest.size, 0);
        return 1;
    }
    if (first && rest.size <= 1) { /* otherwise one call could skip any number of empty packets */
        return err_set(e, ERR_PROTOCOL, "a packet without a frame");
    }
    if (first) {
        rest = bytes_of(rest.data + 1, rest.size - 1);
    }
    if (rest.size == 0) {
        return 0;
    }
    uint32_t length = 0;
    if (rest.size >= sizeof length) {
        memcpy(&length, rest.data, sizeof length);
        length = le32toh(length);
    }
    if (length == 0 || length > rest.size - sizeof length) {
        return err_set(e, ERR_PROTOCOL, "a packet's frame of %u bytes, %zu are left", length,
                       rest.size);
    }
    *ret_frame = bytes_of(rest.data + sizeof length, length);
    *io_rest = bytes_of(rest.data + sizeof length + length, rest.size - sizeof length - length);
    return 1;
}
