/*
 * Linked into a gpud-worker that lies once: with the end of the next job, or with the next buffer
 * that it tells a new front of. CUDA_LIE, which the launcher hands on, names a file that says how;
 * the worker that takes the file away lies.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/duplex.h"
#include "proto/codec.h"

int __real_duplex_send(struct duplex *d, struct bytes frame, const struct frame_fds *fds,
                       struct err *e);
int __wrap_duplex_send(struct duplex *d, struct bytes frame, const struct frame_fds *fds,
                       struct err *e);

/* The frame that a lie takes the place of. */
static unsigned kind_of(int lie)
{
    return lie == 'b' || lie == 's' || lie == 'u' ? FRAME_KIND_W_INVENTORY_BUFFER
                                                  : FRAME_KIND_W_DONE;
}

/* The lie to send next; '\0': none. */
static char lie_take(unsigned kind)
{
    const char *path = getenv("CUDA_LIE");
    bool asked = kind == FRAME_KIND_W_DONE || kind == FRAME_KIND_W_INVENTORY_BUFFER;
    int what = '\0';
    FILE *f = asked && path != NULL ? fopen(path, "re") : NULL;
    if (f != NULL) {
        what = fgetc(f);
        (void)fclose(f);
        what = kind_of(what) == kind && unlink(path) == 0 ? what : '\0';
    }
    return (char)what;
}

static int say(struct duplex *d, const struct schema *schema, const void *msg, struct err *e)
{
    struct capbuf out;
    capbuf_init(&out, FRAME_MAX_BYTES);
    int rc = proto_encode(schema, msg, &out, e);
    rc = rc == 0 ? __real_duplex_send(d, capbuf_view(&out), NULL, e) : rc;
    capbuf_finish(&out);
    return rc;
}

static int say_result(struct duplex *d, struct bytes frame, int64_t code, struct err *e)
{
    struct msg_w_done m;
    int rc = proto_decode(&schema_msg_w_done, frame, &m, e);
    m.code = code;
    return rc == 0 ? say(d, &schema_msg_w_done, &m, e) : rc;
}

static int say_buffer(struct duplex *d, struct bytes frame, char lie, struct err *e)
{
    struct msg_w_inventory_buffer m;
    int rc = proto_decode(&schema_msg_w_inventory_buffer, frame, &m, e);
    m.size += lie == 'b';
    m.sealed = lie == 's' ? 1 : m.sealed;
    m.id += lie == 'u' ? 4096 : 0;
    return rc == 0 ? say(d, &schema_msg_w_inventory_buffer, &m, e) : rc;
}

int __wrap_duplex_send(struct duplex *d, struct bytes frame, const struct frame_fds *fds,
                       struct err *e)
{
    const struct msg_w_ready ready = {.name = bytes_str("another one")};
    const struct msg_f_quit quit = {.unused = 0};
    const char lie = lie_take(proto_kind(frame));
    switch (lie) {
    case 'h': /* half a frame */
        return __real_duplex_send(d, bytes_of(frame.data, frame.size / 2), fds, e);
    case 'c': /* a result that the protocol does not have */
        return say_result(d, frame, -99999, e);
    case 'r': /* that it has opened its device, which it said before */
        return say(d, &schema_msg_w_ready, &ready, e);
    case 'f': /* a frame that only a front sends */
        return say(d, &schema_msg_f_quit, &quit, e);
    case 'b': /* a buffer of another size */
    case 's': /* a sealed copy that does not come */
    case 'u': /* a buffer that it was not given */
        return say_buffer(d, frame, lie, e);
    default:
        return __real_duplex_send(d, frame, fds, e);
    }
}
