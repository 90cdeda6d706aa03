/*
 * Describes what keeps the daemon from its full service. Thread: the loop's.
 */
#ifndef FRONT_VIEWS_DIAGNOSIS_H
#define FRONT_VIEWS_DIAGNOSIS_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/front/model/front.h"

/* Whether enough devices serve: min_devices without those that are drained, but one at least. */
bool diagnosis_serves(const struct front *f);
/* Whether the daemon takes jobs, and enough devices serve. */
bool diagnosis_ready(const struct front *f);
/* The worst problem in one sentence; "": none. */
void diagnosis_text(const struct front *f, char *out, size_t size);
/* What will become a problem, or is not what the settings mean, in one sentence; "": nothing is
 * known. */
void diagnosis_warning(const struct front *f, char *out, size_t size);
/* A short note on one device for a table: why its worker is silent or does not serve, or when it
 * ended last; "": none of these. */
void diagnosis_note(const struct device *d, uint64_t now_ns, char *out, size_t size);
/* How the device's worker ended last; "" if none did. all: also what the worker was doing, which
 * may name jobs of other tenants. */
void diagnosis_fault(const struct device *d, bool all, char *out, size_t size);

#endif
