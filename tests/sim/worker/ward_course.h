/*
 * The course of a world around the worker (ward.h): its parameters, and what happens in it from
 * outside. Each event has a random number of its own, so events can be left out and the others
 * remain what they are. Thread: any.
 */
#ifndef TEST_SIM_WARD_COURSE_H
#define TEST_SIM_WARD_COURSE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/sim/chance.h"

/* name, the most. Percent and permille are chances. A text that lacks a parameter has 0. */
#define WARD_PARAMS(X)                                                                             \
    X(times, UINT64_MAX) /* seed of times and refusals; 0: the course's */                         \
    X(jobs_most, 8)      /* of a packet; 0: any */                                                 \
    X(steps_most, 8)     /* of a job; 0: any */                                                    \
    X(tenants, 5)                                                                                  \
    X(streams, 4)            /* of jobs */                                                         \
    X(page_kib, 2048)        /* 0: the device has blocks only */                                   \
    X(memory_kib, 1 << 20)   /* of the device */                                                   \
    X(limit_kib, 1 << 20)    /* of the pool */                                                     \
    X(spill_kib, 1 << 20)    /* of host memory */                                                  \
    X(buffer_kib, 1 << 20)   /* the largest buffer */                                              \
    X(wanted_kib, 1 << 20)   /* of all buffers together */                                         \
    X(later, 1)              /* 1: memory is mapped by a thread */                                 \
    X(wakes, 1)              /* 1: the device calls when a marker is passed */                     \
    X(quiet, 1)              /* 1: it has quiet markers */                                         \
    X(batches, 1)            /* 1: it takes several writes at once */                              \
    X(registers, 1)          /* 1: host memory is registered */                                    \
    X(slices, 1)             /* 1: in slices */                                                    \
    X(imports, 1)            /* 1: kernels reach host memory */                                    \
    X(release_waits, 1)      /* 1: as backend.h says */                                            \
    X(run_ns, UINT64_MAX)    /* usual time of a command */                                         \
    X(call_ns, UINT64_MAX)   /* usual time of a call that maps */                                  \
    X(refuse_memory, 1000)   /* permille of handles, mappings and blocks */                        \
    X(refuse_unmap, 1000)    /* permille */                                                        \
    X(refuse_host, 1000)     /* permille of registrations */                                       \
    X(refuse_launch, 1000)   /* permille */                                                        \
    X(foreign, 1000)         /* permille of events: another process takes memory, or gives */      \
    X(fault, UINT64_MAX)     /* number of the launch that faults; 0: none */                       \
    X(deadlines, 100)        /* percent of jobs */                                                 \
    X(cancels, 100)          /* percent of jobs */                                                 \
    X(limits, 1)             /* 1: tenants have limits */                                          \
    X(fronts, 1000)          /* permille of events: another front adopts the worker */             \
    X(window_us, UINT64_MAX) /* for which brief jobs wait for others */                            \
    X(cpu, 1)                /* 1: the device is a processor */                                    \
    X(early, 100)            /* percent of uses of an arena that is still being registered */      \
    X(load_faults, 1)        /* 1: the fault comes while a module is loaded */                     \
    X(defined, 1)           /* 1: no temporary is copied to the host that the job did not write */ \
    X(arena_kib, 1024)      /* the largest arena; 0: 1024 */                                       \
    X(rings, 1)             /* 1: front and worker have rings */                                   \
    X(exports, 100)         /* percent of buffers */                                               \
    X(manages, 100)         /* percent of buffers: the driver moves them */                        \
    X(managed_kib, 1 << 20) /* limit of their bytes */                                             \
    X(variables, 1)         /* 1: modules have variables, which become buffers */                  \
    X(shows, 1)             /* 1: the device shows which commands run */                           \
    X(libraries, 1)         /* 1: a vendor's library may run in place of kernels */                \
    X(prompt, 1)            /* 1: answers are sent before the loop sleeps; 0: at its next event */

struct ward_params {
#define X(name, most) uint64_t name;
    WARD_PARAMS(X)
#undef X
};

#define WARD_KINDS(X)                                                                              \
    X(FRONT, "front")     /* another front adopts the worker */                                    \
    X(FOREIGN, "foreign") /* another process takes memory of the device, or gives it back */       \
    X(BUFFER, "buffer")   /* a buffer is created or restored */                                    \
    X(FREE, "free")       /* a buffer is freed */                                                  \
    X(SEAL, "seal")       /* a buffer is sealed */                                                 \
    X(MODULE, "module")   /* a module is loaded or unloaded */                                     \
    X(ARENA, "arena")     /* an arena comes or goes */                                             \
    X(CONTROL, "control") /* a trim, snapshot, spill limit, budget or window */                    \
    X(LIMITS, "limits")   /* a tenant's limits change */                                           \
    X(PACKET, "packet")   /* several jobs in one packet */                                         \
    X(JOB, "job")

enum ward_kind {
#define X(name, text) WARD_##name,
    WARD_KINDS(X)
#undef X
        WARD_KIND_COUNT
};

/* An event from outside; its random numbers follow from `r`. */
struct ward_event {
    uint64_t at_ns; /* since the first moment */
    enum ward_kind kind;
    uint64_t r;
};

struct ward_course {
    uint64_t seed;
    struct ward_params params;
    struct ward_event *event; /* owned */
    unsigned count;
};

void ward_course_make(uint64_t seed, struct ward_course *ret_course);
void ward_course_finish(struct ward_course *p);
void ward_course_copy(const struct ward_course *p, struct ward_course *ret_course);
void ward_course_write(const struct ward_course *p, FILE *out);
/* Says on stderr what is no line of a course. */
bool ward_course_read(FILE *in, struct ward_course *ret_course);
/* The numbers of an event, for what it does. */
struct chance ward_event_chance(const struct ward_event *e);

#endif
