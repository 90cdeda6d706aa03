/* The text of metrics, read as strictly as a scraper may read it. */
#ifndef TEST_SIM_RULES_SIM_EXPOSITION_H
#define TEST_SIM_RULES_SIM_EXPOSITION_H

#include "daemon/front/metrics/figures.h"
#include "tests/sim/front/sim.h"

/* Breaks a rule unless the numbers become a text that is valid, has each series once, and says of
 * tenants and devices what the numbers do. */
void exposition_check(struct sim *s, const struct figures *n, bool openmetrics);

#endif
