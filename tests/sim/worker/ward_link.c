/* The simulated front's end of the channel to the worker: its socket, or rings. */
#include <unistd.h>

#include "common/descriptors.h"
#include "tests/sim/worker/ward_front.h"

#define FRAME_ROOM 65536u
#define LAST_JOBS  2u

static void must(struct ward *w, int rc, const struct err *e)
{
    if (rc < 0) {
        ward_broken(w, "channel", "%s", e->text);
    }
}

void ward_front_send(struct ward *w)
{
    struct duplex *d = &w->front->duplex;
    struct err e = ERR_INIT;
    must(w, d->queue != NULL ? duplex_resume(d, &e) : 0, &e);
    must(w, duplex_flush(d, &e), &e);
}

void front_packet_begin(struct ward *w)
{
    w->front->duplex.gathers = true;
}

void front_packet_end(struct ward *w)
{
    struct err e = ERR_INIT;
    must(w, duplex_flush(&w->front->duplex, &e), &e);
    w->front->duplex.gathers = false;
}

void front_send(struct ward *w, const struct schema *schema, const void *msg, int fd)
{
    const struct frame_fds fds = {.fd = {fd}, .count = fd >= 0};
    front_send_all(w, schema, msg, &fds);
}

void front_send_all(struct ward *w, const struct schema *schema, const void *msg,
                    const struct frame_fds *fds)
{
    struct capbuf out;
    struct err e = ERR_INIT;
    capbuf_init(&out, FRAME_ROOM);
    must(w, proto_encode(schema, msg, &out, &e), &e);
    must(w, duplex_send(&w->front->duplex, capbuf_view(&out), fds, &e), &e);
    capbuf_finish(&out);
}

bool front_next(struct ward *w, struct bytes *ret_frame, struct frame_fds *ret_fds)
{
    struct err e = ERR_INIT;
    *ret_fds = (struct frame_fds){.count = 0};
    int rc = duplex_next(&w->front->duplex, ret_frame, ret_fds, &e);
    must(w, rc, &e);
    return rc == 1;
}

void front_turn(struct ward *w, bool ends)
{
    struct duplex *d = &w->front->duplex;
    if (d->state == DUPLEX_RINGS && ends) {
        duplex_settle(d);
    } else if (d->state == DUPLEX_RINGS) {
        duplex_turn(d);
    }
}

/* ---- rings ----------------------------------------------------------------------------------- */

void front_rings_offer(struct ward *w)
{
    struct ward_front *f = w->front;
    struct frame_fds fds;
    struct err e = ERR_INIT;
    if (w->params.rings != 0 && f->duplex.state == DUPLEX_SOCKET) {
        const struct msg_f_rings m = {.nonce = f->rings = ++f->ids};
        must(w, duplex_make(&f->duplex, &fds, &e), &e);
        front_send_all(w, &schema_msg_f_rings, &m, &fds);
        duplex_offered(&f->duplex);
    }
}

void front_rings_answered(struct ward *w, const struct msg_w_rings *m)
{
    struct duplex *d = &w->front->duplex;
    struct err e = ERR_INIT;
    if (d->state == DUPLEX_OFFERED && m->nonce == w->front->rings) {
        if (m->code != 0) {
            ward_broken(w, "channel", "the worker refuses rings: %.*s", (int)m->text.size,
                        m->text.data);
        }
        duplex_join(d);
        must(w, duplex_resume(d, &e), &e);
        ward_log(w, "front and worker have rings");
    }
}

/* A front may end between the two steps of sending: then no bell tells the worker. */
static void last_words(struct ward *w, struct chance *c)
{
    for (unsigned i = 0; i < LAST_JOBS; i++) {
        front_new_job(w, c);
    }
    if (w->front->duplex.queue == NULL && chance_percent(c, 50)) {
        (void)ring_publish(&w->front->duplex.rings.out);
    }
}

bool front_link_inherit(struct ward *w, struct chance *c)
{
    struct ward_front *f = w->front;
    bool forgets = chance_percent(c, 70);
    bool rings = f->duplex.state != DUPLEX_SOCKET;
    if (f->duplex.state == DUPLEX_RINGS) {
        last_words(w, c);
    }
    if (rings && f->duplex.queue != NULL) {
        return false;
    }
    ward_front_send(w);
    if (rings) {
        duplex_finish(&f->duplex);
        duplex_init(&f->duplex, f->fd, SIZE_MAX, false);
    }
    while (rings || forgets) {
        struct bytes frame;
        struct frame_fds fds;
        if (!front_next(w, &frame, &fds)) {
            break;
        }
        frame_fds_close(&fds);
    }
    return true;
}
