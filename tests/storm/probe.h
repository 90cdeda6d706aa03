/*
 * Probes: processes that ask the daemon one small thing again and again, each time by a new
 * connection. A part of the daemon has recovered from a mishap when a question that was asked after
 * the mishap has its answer. Thread: one.
 */
#ifndef STORM_PROBE_H
#define STORM_PROBE_H

#include "tests/storm/ledger.h"

struct probe {
    struct ledger *l;
    const char *url;
    unsigned kind; /* enum probe_kind, PROBE_DEVICE + number */
};

/* Runs until the ledger says stop; for process_start. */
int probe_work(void *data);
/* Whether a question that was asked after `since` has its answer, and when that came. */
bool probe_answered(const struct ledger *l, unsigned kind, uint64_t since, uint64_t *ret_ns);

#endif
