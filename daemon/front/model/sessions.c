#include "daemon/front/model/sessions.h"

#include "common/clock.h"
#include "daemon/front/model/due.h"

struct session *sessions_find(struct front *f, uint32_t pipe)
{
    struct session *s = NULL;
    HASH_FIND(hh_pipe, f->by_pipe, &pipe, sizeof pipe, s);
    return s;
}

void sessions_set_pipe(struct front *f, struct session *s, uint32_t pipe)
{
    if (s->pipe != 0) {
        HASH_DELETE(hh_pipe, f->by_pipe, s);
    }
    s->pipe = pipe;
    if (pipe != 0) {
        HASH_ADD(hh_pipe, f->by_pipe, pipe, sizeof s->pipe, s);
    }
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
    s->spare_ops = &f->spare_ops;
    f->next_session++;
    f->session_count++;
    t->sessions++;
    HASH_ADD(hh, f->sessions, key, sizeof s->key, s);
    s->lingers_until_ns = ns_add(clock_now_ns(), f->config.session_linger_ms * NS_PER_MS);
    sessions_due(f, s);
    return s;
}

void sessions_due(struct front *f, struct session *s)
{
    uint64_t at_ns = s->pipe == 0 ? s->lingers_until_ns : NS_NEVER;
    at_ns = s->wait != NULL && s->wait_until_ns < at_ns ? s->wait_until_ns : at_ns;
    agenda_set(&f->standings, &s->due, at_ns, s);
    due_at(f, at_ns);
}
