/*
 * A recording of jobs, as the daemon's table `trace` gives it part by part, and the file that is
 * made of it. Thread: one.
 */
#ifndef GPUCTL_TRACE_TRACE_H
#define GPUCTL_TRACE_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <gpud/gpud.h>

#include "gpuctl/base/ctl_err.h"

enum trace_event_kind { TRACE_JOB, TRACE_STEP, TRACE_AFTER };

/* Times are the daemon's monotonic clock, ns; 0: it did not come to that. */
struct trace_event {
    enum trace_event_kind kind;
    uint64_t job;
    uint64_t other; /* STEP: its number; AFTER: the job before it */
    uint64_t session, device, stream;
    bool placed; /* it had a device */
    uint64_t submitted_ns, begin_ns, end_ns;
    uint64_t to_device, from_device;
    char *name;  /* owned. JOB: its label; STEP: what it does */
    char *by;    /* owned. JOB: its tenant; STEP: the implementation */
    char *state; /* owned */
    char *class; /* owned */
};

struct trace {
    struct trace_event *event; /* owned */
    uint32_t count, room;
    uint32_t jobs;
    uint64_t lost;                  /* records that the daemon had no room for */
    uint64_t monotonic_ns, wall_ns; /* the daemon's clocks at the same time */
};

/* Adds the rows of a table `trace`. PROTOCOL: it has not the columns that it should have. NOMEM. */
int trace_add(struct trace *t, const gpud_table *table, struct ctl_err *e);
void trace_finish(struct trace *t);

/* Writes Chrome's JSON format, which Perfetto opens (https://ui.perfetto.dev): a process for each
 * device with a track for each stream, and one for each tenant; a slice for each job and step;
 * arrows from jobs to those that waited for them. false: out of memory, or the stream fails. */
bool trace_write(const struct trace *t, FILE *out);

#endif
