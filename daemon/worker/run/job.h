/*
 * A job of the worker: what it uses, where it is in its life (job_state.h), and how it ended. It is
 * checked as a whole before any command is enqueued. Thread: the loop's.
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

#define JOB_MARKERS 64u

/* A mark in the job's stream, behind the commands of one of the user's steps, or of several steps
 * that were enqueued as one. */
struct job_mark {
    struct backend_marker *marker;
    unsigned first, step; /* the user's steps: from, to */
    const char *by;       /* name of what served their operation, "" without a choice; static */
    bool launches;        /* a kernel is among the commands */
    /* The launches that the mark's time is of, neighbours in the job's list; count 0: none. */
    unsigned launch, launch_count;
    bool served; /* a library may have run in place of some of them */
    bool silent; /* it is behind no command of a step, and has no time to report */
};

/* A launch among a job's steps. */
struct job_launch {
    struct module *module;
    struct pace *pace;   /* of the module's kernel */
    struct pace *served; /* of a library that runs in place of the kernel */
    uint64_t items;
};

struct graph;
struct waiting_job;

enum job_size {
    JOB_ORDINARY,
    JOB_BRIEF, /* few steps that are expected to end soon: jobs of this size share a start (batch.h)
                */
    JOB_LARGE, /* some of its steps are large copies: it becomes a graph (graph.h) */
};

/* What wakes the loop when the device passes the job's end. */
enum job_end_call {
    JOB_END_CALLS, /* its mark, where the device calls at all */
    JOB_END_QUIET, /* nothing: a later mark of the stream, or batch_start, is to do so */
    JOB_END_ARMED, /* the device was asked to call, even if it refused */
};

/* What batch.c counts the job for. */
struct job_batch {
    uint64_t serial; /* of the batch that it came in; 0: it came alone */
    enum job_end_call end_call;
    bool slow;         /* it is one of its stream's slow jobs */
    uint64_t ahead_ns; /* its part of what is ahead in its stream */
};

/* What completion.c saw and reported while the job ran. */
struct job_watch {
    uint64_t added_ns;        /* when it was started */
    uint64_t seen_running_ns; /* when the device was first seen to run it; 0: not yet */
    uint64_t turned_ns;       /* since when it is seen other than reported; 0: it is not */
    bool reported_running;    /* the front knows that it started, and not that it paused since */
    bool reported_late;       /* the front knows that it waits in its stream past its deadline */
    bool stuck;               /* within completion_frees: a job that waits is before it */
};

struct job {
    /* ---- what it is: set when it is made, unless said otherwise ---- */
    uint64_t id;
    uint64_t tenant;      /* the front's key */
    uint64_t deadline_ns; /* it begins before, or not at all; NS_NEVER */
    unsigned stream;      /* index; batch_join may choose another one */
    enum job_size size;   /* batch_join finds those that are brief */
    uint64_t *after;      /* jobs that it comes after; ledger_after removes unknown ones */
    unsigned after_count;
    unsigned step_count;  /* 0 also for a job that was refused */
    uint64_t expected_ns; /* of all steps, about; PACE_UNKNOWN: a kernel never ran */
    uint64_t launches_ns; /* of these, the kernels' */
    void *room;           /* owned, until it is released: all arrays lie in it */

    /* ---- where it is ---- */
    enum job_state state;        /* changed by job_set_state alone */
    UT_hash_handle hh;           /* ledger.c: every job */
    struct waiting_job *waiting; /* spill/waiting.c: not owned; NULL unless JOB_WAITING */
    struct job *prev, *next;     /* completion.c: the running jobs, in the order of arrival */
    uint64_t arrival;            /* completion.c: counts the jobs that were started; 0: not yet */
    struct graph *graph; /* owned by completion.c from JOB_GRAPH on; NULL: no step had to wait */

    /* ---- what it uses: job.c, and spill/spill.c for device memory ---- */
    struct buffer **buffers; /* one entry for each mention */
    unsigned buffer_count;
    unsigned buffer_at;    /* index of the buffer that was found last */
    bool pinned;           /* its buffers keep their device memory until its end */
    struct arena **arenas; /* one entry for each mention */
    unsigned arena_count;
    struct job_launch *launches;
    unsigned launch_count;
    /* Temporaries that no step needs at the same time share bytes. A change of the order of steps
     * therefore compares their offsets, not their indices. */
    struct lifetime *temps;
    struct memory_piece *pieces; /* one for all temporaries, or one for each */
    unsigned temp_count;
    unsigned piece_count;          /* pieces that it has got */
    uint64_t temp_bytes;           /* in all pieces */
    bool apart;                    /* each temporary has its own piece */
    struct memory_piece workspace; /* of libraries, one at a time: they share a stream */
    uint64_t workspace_size;       /* bytes; 0: none is needed */

    /* ---- while it is checked: job.c ---- */
    unsigned checked; /* steps so far */
    uint64_t covered; /* steps to come that a library may run in place of */

    /* ---- its commands: steps.c ---- */
    struct job_mark *mark; /* one may be behind zeros, the others have steps; the last is the end */
    unsigned mark_count, mark_room;
    struct timeline_point end; /* of its stream, from JOB_ENQUEUED on */
    bool writes;               /* a command that changes a resident buffer or an arena was given */

    struct job_batch batch;
    struct job_watch watch;

    /* ---- how it ended ---- */
    struct err e;  /* what failed first; code 0: nothing */
    uint8_t *done; /* owned: the encoded W_DONE, once its end is reported */
    size_t done_size;
};

/* What a job may refer to. */
struct job_scope {
    struct device *device;
    struct buffers *buffers;
    struct arenas *arenas;
    struct modules *modules;
    struct staging *staging;
};

/* Checks every reference, range and size of the message, and counts as a user of all that the job
 * names. On failure it uses nothing, and e names step and argument. */
int job_create(const struct job_scope *scope, const struct msg_f_job *msg, struct job **ret_job,
               struct err *e);
/* A job that job_create refused, with its name and its predecessors only: it keeps its place for
 * the jobs that come after it. NULL: no memory. */
struct job *job_refused(const struct msg_f_job *msg);
/* Ends the process where the step is not possible: a job would be reported twice or never. */
void job_set_state(struct job *j, enum job_state state);
/* Has its deadline passed? Then ret_why says that it waited for `what`. */
bool job_expired(const struct job *j, uint64_t now_ns, const char *what, struct err *ret_why);
unsigned job_pieces(const struct job *j); /* number of pieces that its temporaries need */
uint64_t job_piece_bytes(const struct job *j, unsigned i);
/* Its buffers keep their device memory until job_unpin, job_let_go or job_release. */
void job_pin(struct buffers *buffers, struct job *j);
void job_unpin(struct buffers *buffers, struct job *j);
/* Enqueues zeros, before its steps, for temporaries that may hold another tenant's bytes. */
int job_temps_clear(const struct job_scope *scope, struct job *j, struct err *e);
/* Gives its temporaries to the commands that follow on the device, once its end is marked. Small
 * ones stay until the job has ended: their next user may be in another stream and would wait for
 * this job, so jobs would not overlap. */
#define JOB_TEMPS_SHARE 128u /* of the memory: a window of jobs keeps half of it at most */
void job_temps_leave(const struct job_scope *scope, struct job *j);
/* All of its commands completed, the zeros in temporaries among them. */
void job_temps_cleaned(struct job *j);
/* A module whose kernels it launches. The job uses it until its end, even if the module was
 * unloaded. NULL: it launches none of that module. */
const struct module *job_module(const struct job *j, uint64_t id);
/* Gives back temporaries, buffers, modules and marks. Its predecessors stay known, and its graph is
 * the caller's to end. */
void job_let_go(const struct job_scope *scope, struct job *j);
/* As job_let_go, and forgets its predecessors. The ledger still has it. */
void job_release(const struct job_scope *scope, struct job *j);
void job_destroy(struct job *j); /* released; NULL is accepted */

/* Copies of more bytes go through the copy queues. A smaller copy is at most one chunk of a queue,
 * which urgent copies wait for in any case, and it is over before the waits of streams and of the
 * host for each other would have paid. A job that only copies keeps less in its stream, as each
 * copy is a large part of it. Copies of memory that the device does not know always go through the
 * queues: a driver may block the caller until all commands before them in the stream are done
 * (CUDA: "API synchronization behavior" of its driver API). */
#define JOB_LARGE_COPY  COPY_CHUNK
#define JOB_LARGE_PLAIN ((uint64_t)1 << 20)
/* Is the step, which was checked, such a copy? */
bool job_step_large(const struct job_scope *scope, const struct job *j,
                    const struct proto_wstep *s);
/* Number of arguments of all steps together. */
uint64_t job_mentions(const struct msg_f_job *msg);
/* A buffer that the job names. The job uses it until its end, even if the buffer was freed. O(1)
 * for callers that go through the mentions in their order. */
const struct buffer *job_buffer(struct job *j, uint64_t id);
/* The piece of device memory that a REF names; checked before. block NULL: it has no bytes. */
struct backend_ref job_ref(struct job *j, const struct proto_ref *ref);
/* Host memory that a write reads or a read writes: in an arena if the step names one, else in
 * staging memory. */
uint8_t *job_host(const struct job_scope *scope, const struct job *j, const struct proto_wstep *s,
                  const struct proto_ref *arena);
/* Is that memory registered with the device, so that copies need no other memory on their way? */
bool job_host_known(const struct job_scope *scope, const struct job *j, const struct proto_wstep *s,
                    const struct proto_ref *arena);
/* As job_host_known; also true of a back end that registers nothing. */
bool job_host_as_known(const struct job_scope *scope, const struct job *j,
                       const struct proto_wstep *s, const struct proto_ref *arena);
/* The sizes of a launch, 1 for an extent that was left out (0). */
void job_sizes(const struct proto_wstep *s, uint64_t ret_global[3], uint64_t ret_local[3]);

#endif
