/* Rules about what the front writes of jobs into files: the access log, and recordings. */
#ifndef TEST_SIM_RULES_SIM_ACCESS_H
#define TEST_SIM_RULES_SIM_ACCESS_H

#include "tests/sim/front/sim.h"

/* sim_access.c */
void access_follow(struct sim *s); /* the front is new */
/* Where the settings want the log now; "off": nowhere. */
void access_path(const struct sim *s, char *out, size_t size);
void access_job_ended(struct sim *s, const struct job *j);
void access_front_ended(struct sim *s); /* its log is written */

/* sim_record.c */
/* A request about recordings, of an administrator. */
void record_ask(struct sim *s, struct sim_client *c, struct chance *r);
void record_before(struct sim *s, const struct sim_request *q);
void record_answered(struct sim *s, const struct sim_request *q, int code);
void record_check(struct sim *s);
void record_front_ended(struct sim *s);
void record_clear(const char *dir); /* removes its files */

#endif
