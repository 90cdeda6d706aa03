/* Rules about what the front shows: tables, and whether it is ready. */
#ifndef TEST_SIM_RULES_SIM_VIEWS_H
#define TEST_SIM_RULES_SIM_VIEWS_H

#include "tests/sim/front/sim_roles.h"

/* A table that a client asked for has rows that it may see. */
void views_answer(struct sim *s, const struct viewer *v, struct bytes message);
/* A session asks for a table: each row is true and for it, and none is missing. */
void views_check(struct sim *s);
/* A job of a tenant ends, or the front does. */
void views_job_ended(struct sim *s, const struct job *j);
void views_front_ends(void);

#endif
