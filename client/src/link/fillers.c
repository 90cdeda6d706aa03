#include "client/src/link/fillers.h"

#include <stdlib.h>

#include "client/src/link/send.h"

static void filler_answered(struct gpud_client *c, struct request *r, struct message *m,
                            const struct err *e)
{
    (void)m;
    (void)e;
    requests_retire(&c->requests, r);
    free(r);
}

bool filler_is(const struct request *r)
{
    return r->answered == filler_answered;
}

int filler_make(struct gpud_client *c, uint64_t seq, struct request *old,
                struct request **ret_filler, struct err *e)
{
    struct request *r = calloc(1, sizeof *r);
    struct msg_buffer_info msg = {.handle = 0};
    if (r == NULL) {
        return err_set(e, ERR_NOMEM, "no memory to send requests again");
    }
    int rc = request_encode(r, &schema_msg_buffer_info, &msg, e);
    if (rc == 0) {
        r->answered = filler_answered;
        r->own = old == NULL;
        rc = old != NULL ? requests_replace(&c->requests, old, r, e)
                         : requests_add_filler(&c->requests, r, seq, e);
    }
    if (rc != 0) {
        request_finish(r);
        free(r);
        return rc;
    }
    *ret_filler = r;
    return 0;
}

int filler_send(struct gpud_client *c, uint64_t seq, struct err *e)
{
    struct request *r = NULL;
    int rc = filler_make(c, seq, NULL, &r, e);
    if (rc == 0) {
        session_send_now(c, r);
    }
    return rc;
}

bool session_withdraw(struct gpud_client *c, struct request *r)
{
    const struct request *unsent = c->requests.unsent;
    struct request *filler = NULL;
    bool refused = r->again_ns != 0;
    bool sent = unsent == NULL || r->seq < unsent->seq;
    return (refused || !sent) && filler_make(c, r->seq, r, &filler, NULL) == 0;
}
