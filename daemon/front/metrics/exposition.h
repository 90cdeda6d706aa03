/*
 * Writes metrics as text: Prometheus' text format 0.0.4, or OpenMetrics 1.0. A failed write (no
 * memory, or longer than EXPOSITION_MAX) is kept until exposition_end. Thread: one at a time.
 *
 *     exposition_family(&x, "gpud_jobs_submitted_total", FAMILY_COUNTER, "Jobs …");
 *     exposition_sample(&x, NULL, 0, 17, UNIT_ONE);
 */
#ifndef FRONT_METRICS_EXPOSITION_H
#define FRONT_METRICS_EXPOSITION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "daemon/front/metrics/histogram.h"

#define EXPOSITION_MAX (64u * 1024u * 1024u) /* bytes */

enum family_type { FAMILY_COUNTER, FAMILY_GAUGE, FAMILY_HISTOGRAM };

/* The part of its base unit that a number counts. It is written in the base unit. */
enum family_unit { UNIT_ONE, UNIT_MILLI, UNIT_MICRO, UNIT_NS };

struct label {
    const char *name;
    const char *value; /* any text */
};

struct exposition {
    struct capbuf text;
    bool openmetrics;
    const char *family; /* of the samples that follow; static */
};

void exposition_init(struct exposition *x, bool openmetrics);
void exposition_finish(struct exposition *x);
/* Begins a family. The name of a counter ends in _total. name, help: static. */
void exposition_family(struct exposition *x, const char *name, enum family_type type,
                       const char *help);
void exposition_sample(struct exposition *x, const struct label *labels, unsigned count,
                       uint64_t value, enum family_unit unit);
/* All samples of a histogram; in OpenMetrics with its exemplars. */
void exposition_histogram(struct exposition *x, const struct label *labels, unsigned count,
                          const struct histogram *h);
/* Writes the end. false: the text is incomplete. */
bool exposition_end(struct exposition *x);

#endif
