#include "daemon/front/model/sessions.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/hash.h"
#include "daemon/front/model/early.h"
#include "daemon/front/model/op.h"
#include "daemon/front/model/request.h"
#include "daemon/front/model/session_events.h"
#include "daemon/front/model/wake.h"

struct session *session_create(const struct session_key *key, struct tenant *tenant, uint64_t id)
{
    struct session *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return NULL;
    }
    s->key = *key;
    s->tenant = tenant;
    s->id = id;
    s->client.pidfd = -1;
    s->order.expect = 1;
    s->order.fresh = true;
    s->lingers_until_ns = NS_NEVER;
    return s;
}

void session_destroy(struct session *s)
{
    if (s == NULL) {
        return;
    }
    struct op *o;
    struct op *next;
    HASH_ITER(hh, s->ops.all, o, next)
    {
        op_destroy(o);
    }
    for (struct request *r; (r = early_drop(s)) != NULL;) {
        request_destroy(r);
    }
    session_events_destroy(s);
    s->tenant->message_bytes -=
        s->ops.kept_bytes + s->early.bytes + s->events.result_bytes + s->program_bytes;
    if (s->client.pidfd >= 0) {
        (void)close(s->client.pidfd);
    }
    ack_set_finish(&s->order.before);
    ack_set_finish(&s->order.known);
    ack_set_finish(&s->sweep.acked);
    request_destroy(s->sweep.request);
    free(s);
}

struct session *sessions_find(struct front *f, uint32_t pipe)
{
    struct session *s = NULL;
    HASH_FIND(hh_pipe, f->by_pipe, &pipe, sizeof pipe, s);
    return s;
}

bool session_connect(struct front *f, struct session *s, uint32_t pipe)
{
    if (s->state != SESSION_CONNECTED) {
        s->pipe = pipe;
        HASH_ADD(hh_pipe, f->by_pipe, pipe, sizeof s->pipe, s);
        if (!HASH_ENTERED(s->hh_pipe)) {
            s->pipe = 0;
            return false;
        }
        session_step(s, SESSION_CONNECTED);
    }
    session_set_timer(f, s);
    return true;
}

void session_disconnect(struct front *f, struct session *s, uint64_t until_ns)
{
    session_step(s, SESSION_LINGERING);
    HASH_DELETE(hh_pipe, f->by_pipe, s);
    s->pipe = 0;
    s->lingers_until_ns = until_ns;
    session_set_timer(f, s);
}

void session_linger(struct front *f, struct session *s)
{
    s->lingers_until_ns = ns_add(front_now(f), f->config.session_linger_ms * NS_PER_MS);
    session_set_timer(f, s);
}

struct session *sessions_obtain(struct front *f, const struct session_key *key, struct tenant *t)
{
    struct session *s = session_find(f->sessions, key);
    if (s != NULL) {
        return s;
    }
    s = t != NULL ? session_create(key, t, f->next_session) : NULL;
    if (s == NULL) {
        return NULL;
    }
    s->ops.freelist = &f->op_freelist;
    HASH_ADD(hh, f->sessions, key, sizeof s->key, s);
    if (!HASH_ENTERED(s->hh)) {
        session_destroy(s);
        return NULL;
    }
    f->next_session++;
    f->session_count++;
    t->sessions++;
    session_linger(f, s);
    return s;
}

void session_set_timer(struct front *f, struct session *s)
{
    uint64_t at_ns = s->state == SESSION_LINGERING ? s->lingers_until_ns : NS_NEVER;
    at_ns =
        s->events.wait != NULL && s->events.wait_until_ns < at_ns ? s->events.wait_until_ns : at_ns;
    agenda_set(&f->session_timers, &s->timer, at_ns, s);
    wake_at(f, at_ns);
}
