/* Rules about single requests and frames: what one costs the others, and to whom frames go. */
#ifndef TEST_SIM_RULES_SIM_FRONTS_H
#define TEST_SIM_RULES_SIM_FRONTS_H

#include "tests/sim/front/sim.h"

void turns_begin(void); /* the front is new */
/* The front is about to get the request, and has it. */
void turns_before(struct sim *s, const struct sim_parcel *p);
void turns_after(struct sim *s, const struct sim_parcel *p);
void turns_answer(struct sim *s, const struct sim_parcel *p, struct bytes message);
/* A job of the client is refused, and may come again after a pause. */
void turns_crowd(struct sim *s, const struct sim_client *c, uint64_t pause_ns);
/* A frame is on its way to the device's worker. */
void frames_sent(struct sim *s, const struct device *d, struct sim_worker *x,
                 const struct schema *schema, const void *msg);
/* The last of the frames that the worker has yet to take. */
void frames_once(struct sim *s, const struct sim_worker *x, const struct sim_inbox *last);

#endif
