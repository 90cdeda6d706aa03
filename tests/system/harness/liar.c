/*
 * Linked into a gpud-worker that lies once, with the end of the next job. CUDA_LIE, which the
 * launcher hands on, names a file that says how; the worker that takes the file away lies.
 */
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

/* The lie to send next; '\0': none. */
static char lie_take(unsigned kind)
{
    const char *path = getenv("CUDA_LIE");
    int what = '\0';
    FILE *f = kind == FRAME_KIND_W_DONE && path != NULL ? fopen(path, "re") : NULL;
    if (f != NULL) {
        what = fgetc(f);
        (void)fclose(f);
        what = unlink(path) == 0 ? what : '\0';
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

int __wrap_duplex_send(struct duplex *d, struct bytes frame, const struct frame_fds *fds,
                       struct err *e)
{
    const struct msg_w_ready ready = {.name = bytes_str("another one")};
    const struct msg_f_quit quit = {.unused = 0};
    switch (lie_take(proto_kind(frame))) {
    case 'h': /* half a frame */
        return __real_duplex_send(d, bytes_of(frame.data, frame.size / 2), fds, e);
    case 'c': /* a result that the protocol does not have */
        return say_result(d, frame, -99999, e);
    case 'r': /* that it has opened its device, which it said before */
        return say(d, &schema_msg_w_ready, &ready, e);
    case 'f': /* a frame that only a front sends */
        return say(d, &schema_msg_f_quit, &quit, e);
    default:
        return __real_duplex_send(d, frame, fds, e);
    }
}
