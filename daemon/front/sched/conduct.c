#include "daemon/front/sched/conduct.h"

#include <inttypes.h>

#include "common/saturate.h"

uint64_t conduct_paused_ns(const struct conduct *c, uint64_t now_ns)
{
    return sat_sub(c->since_ns, now_ns);
}

unsigned conduct_strikes(const struct conduct *c, uint64_t now_ns)
{
    uint64_t forgiven = sat_sub(now_ns, c->since_ns) / CONDUCT_FORGIVE_NS;
    return c->strikes > forgiven ? c->strikes - (unsigned)forgiven : 0;
}

uint64_t conduct_strike(struct conduct *c, uint64_t now_ns)
{
    c->strikes = conduct_strikes(c, now_ns) + 1;
    unsigned over = c->strikes > CONDUCT_STRIKES ? c->strikes - CONDUCT_STRIKES : 0;
    over = over < CONDUCT_DOUBLINGS ? over : CONDUCT_DOUBLINGS;
    uint64_t pause = c->strikes < CONDUCT_STRIKES ? 0 : CONDUCT_PAUSE_NS << over;
    uint64_t until = ns_add(now_ns, pause);
    c->since_ns = until > c->since_ns ? until : c->since_ns;
    return pause;
}

int conduct_check(const struct tenant *t, uint64_t now_ns, struct err *e)
{
    uint64_t left_ns = conduct_paused_ns(&t->conduct, now_ns);
    if (left_ns == 0) {
        return 0;
    }
    int rc = err_set(e, ERR_QUARANTINED,
                     "tenant %s is paused, for %" PRIu64 " s more: %u times its jobs ended a "
                     "worker that tenants share, or overran their turn; mend them before they run "
                     "again. A restart of gpud by an administrator ends the pause",
                     t->name, (left_ns + NS_PER_S - 1) / NS_PER_S, t->conduct.strikes);
    if (e != NULL) {
        e->retry_after_ns = left_ns;
    }
    return rc;
}
