/*
 * A job in the worker: what it uses, its state (job_state.h), and how it ended. It is checked as a
 * whole before any command is enqueued. Thread: the loop's.
 */
#ifndef WORKER_RUN_JOB_H
#define WORKER_RUN_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "common/err.h"
#include "common/lifetime.h"
#include "daemon/worker/copy/copies.h"
#include "daemon/worker/copy/staging.h"
#include "daemon/worker/memory/arenas.h"
#include "daemon/worker/memory/buffers.h"
#include "daemon/worker/memory/device.h"
#include "daemon/worker/memory/module_cache.h"
#include "daemon/worker/run/job_state.h"
#include "proto/codec.h"

#define JOB_MARKERS  64u
#define REPORT_BRIEF 256u /* bytes of the shortest report of an end, with room to spare */

/* A mark in the job's stream, behind the commands of one of the user's steps or of several steps
 * that were enqueued together. */
struct job_mark {
    struct backend_marker *marker;
    unsigned first, step; /* first and last of the user's steps before it */
    /* name of the implementation that ran their operation, "" if there is only one; static */
    const char *by;
    bool launches; /* a kernel is among its commands */
    /* The launches that the mark's time covers, neighbours in the job's list; count 0: none. */
    unsigned launch, launch_count;
    bool served; /* a library may have run in place of some of these launches */
    bool silent; /* it is behind no command of a step, so it reports no time */
};

/* A launch among the job's steps. */
struct job_launch {
    struct module *module;
    struct pace *pace;   /* times of the module's kernel */
    struct pace *served; /* times of a library that runs in place of the kernel */
    uint64_t items;
};

struct graph;
struct waiting_job;

enum job_size {
    JOB_ORDINARY,
    JOB_BRIEF, /* few steps that are expected to end soon: brief jobs start together (batch.h) */
    JOB_LARGE, /* it has large copies, so it becomes a graph (graph.h) */
};

/* How the loop learns that the device has passed the job's end. */
enum job_end_call {
    JOB_END_CALLS, /* the mark causes a call, where the device calls at all */
    /* no call: that of a later mark in the stream, or one that batch_start asks for, has to do */
    JOB_END_QUIET,
    JOB_END_ARMED, /* the device was asked for a call, even if it refused */
};

/* Where batch.c counts the job. */
struct job_batch {
    uint64_t serial; /* number of the batch that it came with; 0: none */
    enum job_end_call end_call;
    bool slow;         /* it is counted as a slow job of its stream */
    uint64_t ahead_ns; /* ns that it adds to the expected time of its stream */
};

/* What completion.c saw and reported while the job ran. */
struct job_watch {
    uint64_t added_ns;        /* when it was started */
    uint64_t seen_running_ns; /* when the device was first seen to run it; 0: never */
    uint64_t turned_ns;    /* since when its state differs from the one reported; 0: it does not */
    bool reported_running; /* the front was informed that it runs, and not that it paused since */
    /* the front was informed that its deadline passed while it waits on the device */
    bool reported_late;
    bool stuck; /* within completion_frees: it comes after a job that waits for memory */
};

/* A mention of an arena. */
struct job_arena {
    struct arena *arena;
    bool works; /* a kernel works on it; otherwise bytes are copied to or from it */
};

struct job {
    /* ---- what it is: set when it is made, unless stated otherwise ---- */
    uint64_t id;
    uint64_t tenant;      /* the front's key */
    uint64_t program;     /* the front's handle of what it is a run of; 0: of no program */
    uint64_t deadline_ns; /* it begins before this or not at all; NS_NEVER: no deadline */
    unsigned stream;      /* index; batch_join may move it to another stream */
    enum job_size size;   /* batch_join makes jobs brief */
    uint64_t *after;      /* ids of the jobs that it comes after; ledger_after drops unknown ones */
    unsigned after_count;
    unsigned step_count;  /* 0 also for a job that was refused */
    uint64_t expected_ns; /* estimate for all steps; PACE_UNKNOWN: a kernel never ran */
    uint64_t launches_ns; /* of `expected_ns`, the time of its kernels */
    void *room;           /* owned until the job is released: the memory of all arrays */

    /* ---- where it is ---- */
    enum job_state state;        /* changed by job_set_state only */
    UT_hash_handle hh;           /* ledger.c: in the table of all jobs */
    struct waiting_job *waiting; /* spill/waiting.c: not owned; NULL unless JOB_WAITING */
    /* completion.c: neighbours among the running jobs, in the order of arrival */
    struct job *prev, *next;
    /* completion.c: position in the order in which jobs were started, from 1; 0: not started */
    uint64_t arrival;
    struct graph *graph; /* owned by completion.c from JOB_GRAPH on; NULL: not a graph */

    /* ---- what it uses: filled by job.c, device memory by spill/spill.c ---- */
    struct buffer **buffers; /* an entry for each mention */
    unsigned buffer_count;
    unsigned buffer_at;       /* index of the entry that the last search found */
    bool pinned;              /* its buffers are pinned to device memory until its end */
    struct job_arena *arenas; /* an entry for each mention */
    unsigned arena_count;
    struct job_launch *launches;
    unsigned launch_count;
    /* Temporaries share bytes if no step needs both. Code that reorders steps must therefore
     * compare the temporaries' offsets, not their indices. */
    struct lifetime *temps;
    struct memory_piece *pieces; /* the memory of temporaries: one piece for all, or one for each */
    unsigned temp_count;
    unsigned piece_count; /* number of pieces allocated so far */
    uint64_t temp_bytes;  /* bytes of all pieces */
    bool apart;           /* each temporary has its own piece */
    bool placed;          /* the piece has a place of its program (places.h) */
    /* scratch memory of libraries, which use it in turn because they share a stream */
    struct memory_piece workspace;
    uint64_t workspace_size; /* bytes; 0: none */

    /* ---- while it is checked: job.c ---- */
    unsigned checked; /* steps checked so far */
    uint64_t covered; /* steps to come that a library may run instead of kernels */

    /* ---- its commands: steps.c ---- */
    struct job_mark *mark; /* in the order of the stream; the last one is the job's end */
    unsigned mark_count, mark_room;
    struct timeline_point end; /* its end on the timeline of its stream, from JOB_ENQUEUED on */
    bool writes; /* a command was enqueued that changes a resident buffer or an arena */

    struct job_batch batch;
    struct job_watch watch;

    /* ---- how it ended ---- */
    struct err e;      /* the first failure; code 0: none */
    bool failed_there; /* `e` is of its commands on the device */
    uint8_t *done;     /* owned, or `brief`: the encoded W_DONE, once its end is reported */
    size_t done_size;
    uint8_t brief[REPORT_BRIEF]; /* without memory for another report */
};

/* The tables in which a job finds what it names. */
struct job_scope {
    struct device *device;
    struct buffers *buffers;
    struct arenas *arenas;
    struct modules *modules;
    struct staging *staging;
};

/* Checks every reference, range and size of the message, and counts the job as a user of all
 * that it names. On failure the job is not made, and e names the step and the argument. */
int job_create(const struct job_scope *scope, const struct msg_f_job *msg, struct job **ret_job,
               struct err *e);
/* Makes a job that job_create refused, with only its id and its predecessors, because jobs may
 * come after it. NULL: no memory. */
struct job *job_refused(const struct msg_f_job *msg);
/* Ends the process if the step is not possible: otherwise a job would be reported twice or
 * never. */
void job_set_state(struct job *j, enum job_state state);
/* Has its deadline passed? Then *ret_why says that it waited for `what`. */
bool job_expired(const struct job *j, uint64_t now_ns, const char *what, struct err *ret_why);
unsigned job_pieces(const struct job *j); /* number of pieces that its temporaries need */
uint64_t job_piece_bytes(const struct job *j, unsigned i);
/* Keeps its buffers in device memory until job_unpin, job_let_go or job_release. */
void job_pin(struct buffers *buffers, struct job *j);
void job_unpin(struct buffers *buffers, struct job *j);
/* Are the arenas registered that kernels of the job work on? POOL_FAILED: one is not and will not
 * be; e: ERR_UNSUPPORTED. */
enum pool_late job_arenas_late(const struct job *j, struct err *e);
/* Enqueues zeros for temporaries that may hold another tenant's bytes, before the job's steps. */
int job_temps_clear(const struct job_scope *scope, struct job *j, struct err *e);
/* Frees its temporaries behind the mark of its end, for commands that follow on the device.
 * Small temporaries are kept until the job has ended: their next user might be in another stream
 * and would wait for this job, so that jobs would not overlap. */
/* Temporaries up to 1/128 of the memory are small: the jobs in flight then keep half of it at
 * most. */
#define JOB_TEMPS_SHARE 128u
void job_temps_leave(const struct job_scope *scope, struct job *j);
/* Frees its temporaries. No command uses them any more. */
void job_temps_free(struct device *device, struct job *j);
/* To be called when all of its commands completed, including the zeros in temporaries. */
void job_temps_cleaned(struct job *j);
/* Finds a module whose kernels the job launches. It is in use until the job's end, even if it
 * was unloaded. NULL: the job launches none of its kernels. */
const struct module *job_module(const struct job *j, uint64_t id);
/* Releases temporaries, buffers, arenas, modules and marks. Its predecessors remain known, and
 * the caller ends its graph. */
void job_let_go(const struct job_scope *scope, struct job *j);
/* As job_let_go, and forgets its predecessors. The job remains in the ledger. */
void job_release(const struct job_scope *scope, struct job *j);
void job_destroy(struct job *j); /* after job_release; NULL is accepted */

/* Larger copies go through the copy queues. A smaller copy is at most one chunk of a queue,
 * which urgent copies wait for in any case. It is over before it would have been worth while to
 * make streams and host wait for each other. The limit is lower for a job that only copies,
 * because each copy is a large part of it. Copies of memory that the device does not know always
 * go through the queues, because a driver may block the caller until all earlier commands of the
 * stream are done (CUDA: "API synchronization behavior" of its driver API). */
#define JOB_LARGE_COPY  COPY_CHUNK
#define JOB_LARGE_PLAIN ((uint64_t)1 << 20)
/* Is the step, which was checked, a large copy? */
bool job_step_large(const struct job_scope *scope, const struct job *j,
                    const struct proto_wstep *s);
/* Number of arguments of all steps. */
uint64_t job_mentions(const struct msg_f_job *msg);
/* Finds a buffer that the job names. It is in use until the job's end, even if it was freed.
 * O(1) for callers that go through the mentions in their order. */
const struct buffer *job_buffer(struct job *j, uint64_t id);
/* The device memory that a REF names, which was checked. block NULL: it has no bytes. */
struct backend_ref job_ref(struct job *j, const struct proto_ref *ref);
/* The host memory of a write or a read: in an arena if the step names one, else in staging
 * memory. */
uint8_t *job_host(const struct job_scope *scope, const struct job *j, const struct proto_wstep *s,
                  const struct proto_ref *arena);
/* Is that memory registered with the device, so that copies can use it directly? */
bool job_host_known(const struct job_scope *scope, const struct job *j, const struct proto_wstep *s,
                    const struct proto_ref *arena);
/* As job_host_known, and true if the back end registers nothing. */
bool job_host_as_known(const struct job_scope *scope, const struct job *j,
                       const struct proto_wstep *s, const struct proto_ref *arena);
/* The sizes of a launch, with 1 for extents that are left out (0). */
void job_sizes(const struct proto_wstep *s, uint64_t ret_global[3], uint64_t ret_local[3]);

#endif
