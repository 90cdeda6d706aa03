/* In a third of the worlds whose jobs fail, drivers are lost while jobs run: mostly while one runs
 * alone, as its device was already in trouble when a worker ended before. No job is to blame. */
#include "tests/sim/front/sim_lost.h"

#include "tests/sim/front/sim.h"

#define WORLD_SALT 30u
#define JOB_SALT   300u /* and its attempt */
#define ALONE_PART 30u  /* percent of jobs that run alone */
#define USUAL_PART 1u   /* and of the others */

static bool may_lose(const struct sim *s)
{
    struct chance c = chance_of(s->course->seed, WORLD_SALT);
    bool kind = s->p.special == WORLD_USUAL || s->p.special == WORLD_PAUSED ||
                s->p.special == WORLD_DOMAINS;
    return kind && s->p.faults > 0 && !s->settling && chance_percent(&c, 33);
}

bool lost_with(const struct sim *s, const struct sim_worker_job *j)
{
    if (!may_lose(s) || j->job == NULL || j->job->safe) {
        return false;
    }
    struct chance c = chance_of(j->job->r, JOB_SALT + j->attempt);
    return chance_percent(&c, j->alone ? ALONE_PART : USUAL_PART);
}
