/* RING_OPEN: opens a ring lane for the session, and offers its descriptors by a ticket. */
#include "daemon/front/clients/lane.h"
#include "common/memfd.h"
#include "daemon/front/clients/shm.h"
#include "daemon/front/requests/requests.h"
#include "proto/lane.h"

/* The client has shown the ticket of its lane, and gets the lane's descriptors. */
static int on_claim(void *data, struct frame_fds *given, struct frame_fds *ret_fds, struct err *e)
{
    (void)given;
    (void)e;
    lane_fds(data, ret_fds);
    return 0;
}

static void on_expired(void *data)
{
    lane_close(data);
}

static int allowed(const struct front *f, const struct session *s, uint64_t version, struct err *e)
{
    if (!s->client.local || f->shm == NULL) {
        return err_set(e, ERR_UNSUPPORTED, "rings are for clients on this host");
    }
    if (version != LANE_VERSION) {
        return err_set(e, ERR_VERSION,
                       "the client requested rings of version %llu, this daemon has version %u",
                       (unsigned long long)version, LANE_VERSION);
    }
    if (s->lane_error != 0) {
        return err_set(e, s->lane_error,
                       "this session's ring was closed after a violation of its rules");
    }
    return 0;
}

int request_ring_open(struct request_context *c, struct err *e)
{
    struct session *s = c->s;
    int rc = allowed(c->f, s, c->r->msg.ring_open.version, e);
    rc = rc == 0 ? lane_open(c->f->lanes, s, e) : rc;
    if (rc != 0) {
        return rc;
    }
    uint8_t nonce[PROTO_NONCE_BYTES];
    struct ticket ticket = {.uid = s->key.uid,
                            .listener = s->key.listener,
                            .claim = on_claim,
                            .expired = on_expired,
                            .data = s->lane};
    rc = shm_offer(c->f->shm, &ticket, nonce, e);
    if (rc == 0) {
        struct msg_ring m = {.nonce = bytes_of(nonce, sizeof nonce),
                             .memory = LANE_BYTES,
                             .submit = LANE_SUBMIT_BYTES,
                             .complete = LANE_COMPLETE_BYTES};
        rc = proto_encode(&schema_msg_ring, &m, c->out, e);
    }
    if (rc != 0) {
        lane_close(s->lane);
    }
    return rc;
}
