/*
 * Input: a byte that chooses transport and role, a byte that says in what pieces the rest arrives,
 * then a stream of SP. Whatever the pieces, and whether they are read in place or not, the same
 * messages come out and the same error; none is longer than the limit, and each is only as long as
 * what came.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/sp.h"

#define LIMIT 20000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
    int rc;
    uint64_t messages;
    uint64_t bytes;
    uint64_t sum;
};

static void take(struct outcome *o, struct message *m)
{
    if (m->size > LIMIT || (m->id & SP_ID_BIT) == 0) {
        abort();
    }
    o->messages++;
    o->bytes += m->size;
    o->sum = o->sum * 31 + m->id;
    for (size_t i = 0; i < m->size; i++) {
        o->sum = o->sum * 31 + m->data[i];
    }
    message_unref(m);
}

static struct outcome read_stream(uint8_t how, struct bytes stream, size_t piece, bool in_place)
{
    struct outcome o = {0};
    struct sp_reader r;
    sp_reader_init(&r, how & 1 ? SP_TCP : SP_IPC, how & 2 ? SP_REP : SP_REQ, LIMIT);
    while (stream.size > 0 && o.rc == 0) {
        size_t n = stream.size < piece ? stream.size : piece;
        size_t room = 0;
        struct message *m = NULL;
        uint8_t *at = sp_direct(&r, &room);
        if (in_place && at != NULL) {
            n = n < room ? n : room;
            memcpy(at, stream.data, n);
            o.rc = sp_direct_done(&r, n, &m, NULL);
            if (o.rc == 1) {
                take(&o, m);
                o.rc = 0;
            }
        } else {
            struct bytes in = bytes_of(stream.data, n);
            while ((o.rc = sp_read(&r, &in, &m, NULL)) == 1) {
                take(&o, m);
            }
            if (o.rc == 0 && in.size != 0) {
                abort();
            }
        }
        stream = bytes_of(stream.data + n, stream.size - n);
    }
    sp_reader_finish(&r);
    return o;
}

static void same(struct outcome a, struct outcome b)
{
    if (a.rc != b.rc || a.messages != b.messages || a.bytes != b.bytes || a.sum != b.sum) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    struct bytes stream = bytes_of(data + 2, size - 2);
    struct outcome whole = read_stream(data[0], stream, SIZE_MAX, false);
    if (whole.bytes > stream.size) {
        abort();
    }
    same(whole, read_stream(data[0], stream, data[1] + 1u, false));
    same(whole, read_stream(data[0], stream, data[1] + 1u, true));
    return 0;
}
