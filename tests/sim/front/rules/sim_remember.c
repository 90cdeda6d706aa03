/* What a front knows of what its predecessors ran. */
#include <inttypes.h>

#include "daemon/front/model/op.h"
#include "daemon/front/model/sessions.h"
#include "tests/sim/front/sim.h"

/* Could no former front end the session? A launcher's end takes the records with it. */
static bool is_owed(const struct sim *s, const struct sim_client *c)
{
    bool in_time = s->now_ns - c->left_ns < s->p.linger_ms * NS_PER_MS;
    return in_time && !c->said_bye && !s->killed_session && !s->gave_up && s->launchers == 0;
}

static bool is_known(struct session *x, const struct sim_request *q)
{
    return x != NULL && op_find(x, q->seq) != NULL;
}

void rules_remembered(struct sim *s, const struct sim_client *c)
{
    struct session *x = sessions_find(s->f, c->pipe);
    for (unsigned i = 0; i < c->open_count && is_owed(s, c); i++) {
        const struct sim_request *q = c->open[i];
        const struct sim_job *j = q->job;
        bool ran = j != NULL && j->begun > 0 && j->writes && !j->async && !j->lied && !j->forgotten;
        if (ran && !is_known(x, q)) {
            sim_fail(s,
                     "remembered: request %" PRIu64
                     " of client %u ran outside itself, and would run again",
                     q->seq, c->index);
        }
    }
}
