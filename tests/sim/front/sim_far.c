/* Clients of other hosts, whose tokens name their tenants: their HELLOs, also such as are refused.
 */
#include <inttypes.h>
#include <string.h>

#include "daemon/front/requests/reload.h"
#include "tests/sim/front/sim.h"

#define AGAIN_NS NS_PER_MS
#define AWAY_NS  (5 * NS_PER_S) /* without a section */

static unsigned tenant_of(const struct sim_client *c)
{
    return c->tenant - SIM_FARS;
}

/* One of the other tenant, which has a session now. */
static const struct sim_client *victim_of(const struct sim *s, const struct sim_client *c)
{
    for (unsigned i = 0; i < s->clients; i++) {
        const struct sim_client *x = &s->client[i];
        if (client_far(x) && x->tenant != c->tenant && x->state == CLIENT_ON && !x->leaving &&
            !x->said_bye) {
            return x;
        }
    }
    return NULL;
}

void far_hello(struct sim *s, struct sim_client *c, struct msg_hello *m, char token[SIM_TOKEN])
{
    const struct sim_client *victim = c->trick == TRICK_THEFT ? victim_of(s, c) : NULL;
    c->victim = victim;
    tokens_text(s, tenant_of(c), c->token, token);
    if (c->trick == TRICK_WRONG) {
        (void)snprintf(token, SIM_TOKEN, "wrong");
    }
    m->token = bytes_str(c->trick == TRICK_NO_TOKEN ? "" : token);
    if (victim != NULL) {
        m->client_id = bytes_of(victim->id, sizeof victim->id);
    }
    c->trick = c->trick == TRICK_THEFT && victim == NULL ? TRICK_NONE : c->trick;
}

void far_early(struct sim *s, struct sim_client *c)
{
    static const char *const what[] = {"config", "devices", "kernels", "pool", "jobs"};
    uint64_t r = chance_mix(s->course->seed ^ c->pipe);
    if (s->p.roles == 0 || r % 4 != 0) {
        return;
    }
    struct msg_query m = {.what = bytes_str(what[r / 4 % 5])};
    c->state = CLIENT_ON; /* for its own idea of it */
    c->hasty = true;
    (void)client_send(s, c, &schema_msg_query, &m);
    c->hasty = false;
    c->state = CLIENT_GREETS;
}

void far_sent(struct sim_client *c, struct sim_request *q)
{
    if (!client_far(c)) {
        return;
    }
    q->token = c->trick == TRICK_NO_TOKEN || c->trick == TRICK_WRONG ? 0 : c->token;
    q->trick = c->trick;
    q->victim = c->victim;
    q->victim_lives = c->victim != NULL ? c->victim->lives : 0;
    c->victim = NULL;
    c->trick = TRICK_NONE;
    c->shown = 0;
}

/* Their session may have ended before the HELLO with their id came: then it was free. */
static bool id_is_free(const struct sim *s, const struct sim_request *q)
{
    const struct sim_client *x = q->victim;
    return s->killed_session || x->lives != q->victim_lives || x->said_bye;
}

bool far_welcome(struct sim *s, struct sim_request *q)
{
    struct sim_client *c = q->client;
    if (!client_far(c)) {
        return false;
    }
    c->shown = q->token;
    if (!tokens_may(s, tenant_of(c), q->token, q->asked_ns) && !memory_failed()) {
        sim_fail(s, "token: client %u is admitted with token %u of tenant %s, which is not valid",
                 c->index, q->token, tokens_tenant(tenant_of(c)));
    }
    if (q->trick != TRICK_THEFT) {
        return false;
    }
    if (!id_is_free(s, q) && !memory_failed()) {
        sim_fail(s, "token: client %u of tenant %s gets the session of client %u of another one",
                 c->index, tokens_tenant(tenant_of(c)), q->victim->index);
    }
    client_break(s, c, true);
    return true;
}

bool far_refused(struct sim *s, const struct sim_request *q, const struct msg_error *m)
{
    struct sim_client *c = q->client;
    if (!client_far(c) || m->code != ERR_PERMISSION) {
        return false;
    }
    bool excuse = q->trick != TRICK_NONE || s->killed_session || memory_failed();
    if (!excuse && tokens_must(s, tenant_of(c), q->token, q->asked_ns)) {
        sim_fail(s, "token: client %u is refused with token %u of tenant %s, which is valid: %.*s",
                 c->index, q->token, tokens_tenant(tenant_of(c)), (int)m->text.size,
                 (const char *)m->text.data);
    }
    c->token = s->far[tenant_of(c)].newest; /* its operator learns of the new one */
    if (q->trick != TRICK_NONE || tokens_there(s, tenant_of(c))) {
        return false;
    }
    client_come_back(s, c, AWAY_NS + chance_mix(s->pipes + c->index) % AWAY_NS);
    return true;
}

/* ---- what a course does ---------------------------------------------------------------------- */

static void trick(struct sim *s, struct sim_client *c, struct chance *r)
{
    enum sim_trick kind = TRICK_NO_TOKEN + (unsigned)chance_below(r, TRICKS - TRICK_NO_TOKEN);
    if (!client_far(c) || c->pipe == 0 || !s->accepts) {
        return;
    }
    client_break(s, c, false);
    c->trick = kind;
    client_connect(s, c);
}

static void on_change(struct sim *s, const struct hap *h)
{
    struct chance r = chance_of(h->a, 1);
    unsigned tenant = (unsigned)chance_below(&r, SIM_FAR_TENANTS);
    bool keeps = chance_percent(&r, 50);
    if (s->settling) {
        return;
    }
    if (s->f != NULL && reload_under_way(s->f)) { /* it reads, or has read, the files */
        sim_at(s, s->now_ns + AGAIN_NS, on_change, NULL, h->a, h->b);
        return;
    }
    if (h->b == COURSE_REMOVE) {
        tokens_remove(s, tenant);
        return;
    }
    tokens_rotate(s, tenant, keeps);
    for (unsigned i = 0; i < s->clients; i++) {
        struct sim_client *c = &s->client[i];
        if (client_far(c) && tenant_of(c) == tenant && chance_percent(&r, 50)) {
            c->token = s->far[tenant].newest; /* the others keep the old one */
        }
    }
}

void far_event(struct sim *s, struct sim_client *c, enum course_kind kind, struct chance *r)
{
    if (s->p.tokens == 0) {
        return;
    }
    if (kind == COURSE_TRICK) {
        trick(s, c, r);
    } else {
        sim_at(s, s->now_ns, on_change, NULL, chance_next(r), kind);
    }
}
