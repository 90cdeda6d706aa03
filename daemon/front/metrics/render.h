/* The numbers of a scrape as text: all families, their names and their help. Pure. */
#ifndef FRONT_METRICS_RENDER_H
#define FRONT_METRICS_RENDER_H

#include "daemon/front/metrics/exposition.h"
#include "daemon/front/metrics/figures.h"

/* Writes all families, without the end. */
void render(struct exposition *x, const struct figures *n);

#endif
