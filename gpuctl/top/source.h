/* What `gpuctl top` knows of the daemon, and its recent past. Thread: one. */
#ifndef GPUCTL_TOP_SOURCE_H
#define GPUCTL_TOP_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuctl/ctl/ctl.h"
#include "gpuctl/top/spark.h"

#define SOURCE_DEVICES 16u

struct source_device {
    uint64_t id;
    char name[GPUD_NAME];
    char state[24];
    uint64_t busy_ns; /* of ended jobs */
    double part;      /* of the time since the last question in which it was busy */
    uint64_t used, memory;
    struct spark busy; /* parts of 1 */
    struct spark full; /* parts of the memory */
};

struct source {
    uint64_t asked_ns; /* when the values were asked for; 0: not yet */
    char trouble[200]; /* why there is no answer; "": there is one */
    char state[32], problem[200];
    uint64_t sessions, queued, in_flight, done;
    double rate; /* jobs that ended, per second */
    struct spark rates, queue;
    struct source_device device[SOURCE_DEVICES]; /* the first ones */
    uint32_t device_count;                       /* of all */
    gpud_table *table;                           /* owned: the shown one; NULL: none yet */
    struct sheet sheet;                          /* of it, owned */
};

/* Asks for the state of the daemon and for a table. A failure is in `trouble`, and the former
 * values remain. Blocks up to the time limit of ctl's connection, which is made if needed. */
void source_ask(struct source *s, struct ctl *ctl, const char *table);
void source_finish(struct source *s);

#endif
