/*
 * A job as the worker knows it: what it uses, where it is in its stream, and how it ended. It is
 * checked whole before anything is enqueued. Thread: the loop's.
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
#include "proto/codec.h"

#define JOB_MARKERS 64u

/* A point in the stream behind the commands of one of the user's steps, or of several that were
 * enqueued as one. */
struct job_mark {
    struct backend_marker *marker;
    unsigned first, step; /* the user's: from, to */
    const char *by;       /* what served its operation, "" where there was no choice; static */
    bool launches;        /* a kernel is among the commands */
    /* The launches whose time it is, of which a library may have served some; neighbours in the
     * job's list. 0: nobody's. */
    unsigned launch, launch_count;
    bool served;
    bool silent; /* no commands: it orders only */
};

/* A launch among a job's steps. */
struct job_launch {
    struct module *module;
    struct pace *pace;   /* the module's, of its kernel */
    struct pace *served; /* likewise, where a library ran in its place */
    uint64_t items;
};

struct graph;
struct waiting_job;

struct job {
    uint64_t id;
    uint64_t tenant;  /* as the front names it */
    uint64_t arrival; /* counts the jobs of this worker */
    unsigned stream;
    bool large;          /* some of its copies are: see graph.h */
    bool bulk;           /* one step */
    bool brief;          /* see batch.h */
    bool slow;           /* likewise */
    uint64_t batch;      /* those with the same number were started together; 0: alone */
    bool enqueued;       /* all commands are, and the end is marked: others may wait for it */
    struct graph *graph; /* steps that are not, completion ends it; NULL: none had to wait */
    bool finished;
    struct job *prev, *next; /* running ones, in the order of arrival */
    UT_hash_handle hh;       /* the ledger's */

    void *room;      /* owned, until it is released: the arrays below lie in it */
    uint64_t *after; /* jobs */
    unsigned after_count;
    struct buffer **buffers; /* one entry for each mention */
    unsigned buffer_count;
    unsigned buffer_at;    /* where the last one was found */
    struct arena **arenas; /* likewise */
    unsigned arena_count;
    struct job_launch *launches;
    unsigned launch_count;
    uint64_t expected_ns; /* of all steps, about; PACE_UNKNOWN: a kernel never ran */
    uint64_t launches_ns; /* of the kernels among them */
    uint64_t ahead_ns;    /* what its stream counts it for, while it is in it */
    uint64_t covered;     /* steps to be checked that a library may run in place of */
    /* Temporaries that no step needs at once share bytes: what lets steps run in another order
     * compares their offsets, not their indices. */
    struct lifetime *temps;
    struct memory_piece *pieces; /* one that serves all of them, or one for each */
    unsigned temp_count;
    unsigned piece_count;          /* got */
    uint64_t temp_bytes;           /* in all pieces */
    bool apart;                    /* each temporary has its own piece */
    bool pinned;                   /* its buffers have device memory until its end */
    uint32_t checked;              /* steps */
    struct memory_piece workspace; /* of libraries; of one at a time: they share a stream */
    uint64_t workspace_size;       /* 0: none is needed */
    struct waiting_job *waiting; /* not owned: it is not enqueued for want of memory; NULL: it is */

    /* The last one is the end, once enqueued; one may be behind what is zeroed, the others have
     * steps. */
    struct job_mark *mark;
    unsigned mark_count, mark_room;
    struct timeline_point end;
    bool given_up;     /* it failed before it was enqueued, and waits for those before it */
    bool stuck;        /* while it is seen who runs: one that waits for memory is before it */
    bool told;         /* so, and its end was reported: `done` is there */
    bool retired;      /* so, and the front took it */
    bool writes;       /* something that changes a resident buffer was enqueued */
    uint64_t added_ns; /* when completion began to ask for it */
    bool quiet;        /* the device does not call at its end by itself */
    bool armed;        /* it was told to */
    uint64_t seen_running_ns; /* when it was first seen to run, 0 = not yet */
    uint64_t turned_ns;   /* since when it is seen otherwise than `told_runs` says, 0: it is not */
    bool told_runs;       /* the front heard that it started, and not that it paused since */
    uint64_t deadline_ns; /* it begins before, or not at all; NS_NEVER */
    bool told_late;       /* it has not, and its stream has it */
    struct err e;         /* code 0 while all is well */

    uint8_t *done; /* owned: the encoded W_DONE, once finished */
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

/* Checks every reference, range and size of the message and takes hold of what it uses. On failure
 * nothing is held and e names step and argument. */
int job_create(const struct job_scope *scope, const struct msg_f_job *msg, struct job **ret_job,
               struct err *e);
/* One that job_create refused, with nothing but its name and what it comes after, so that it can
 * keep its place. NULL: no memory. */
struct job *job_refused(const struct msg_f_job *msg);
/* Sets why: its deadline passed while it waited for `what`. */
bool job_expired(const struct job *j, uint64_t now_ns, const char *what, struct err *ret_why);
unsigned job_pieces(const struct job *j); /* that its temporaries need */
uint64_t job_piece_bytes(const struct job *j, unsigned i);
void job_pin(struct buffers *buffers, struct job *j); /* until job_unpin or job_release */
void job_unpin(struct buffers *buffers, struct job *j);
/* Zeros on their way into temporaries that may hold another tenant's bytes, before its steps. */
int job_temps_clear(const struct job_scope *scope, struct job *j, struct err *e);
/* It is enqueued, its end marked: what follows on the device may have its temporaries, if they are
 * much of the device's memory. Else they stay until it is over: whoever had them on another stream
 * would wait for it, and jobs would not overlap. */
#define JOB_TEMPS_SHARE 128u /* of the memory: a window of jobs keeps half of it at most */
void job_temps_leave(const struct job_scope *scope, struct job *j);
/* All of it was done. */
void job_temps_cleaned(struct job *j);
/* A module that it launches kernels of: it is the job's until then, also when it was unloaded.
 * NULL: it launches none of it. */
const struct module *job_module(const struct job *j, uint64_t id);
/* Gives back temporaries, buffers, modules and markers; what it comes after stays known, and its
 * graph is the caller's to end. */
void job_let_go(const struct job_scope *scope, struct job *j);
/* That as well; what the ledger keeps stays. */
void job_release(const struct job_scope *scope, struct job *j);
void job_destroy(struct job *j); /* released; NULL is accepted */

/* Copies of more bytes go through the queues of copies. What is smaller is no more than a chunk
 * there, which who is urgent waits for in any case, and is over before waits of streams and of the
 * host for each other would have paid. Less stays in the stream of a job that only copies, as it is
 * a part of much. Copies of memory that the device does not know never stay: a driver may let the
 * caller wait for all before them in the stream (CUDA: "API synchronization behavior" of its driver
 * API). */
#define JOB_LARGE_COPY  COPY_CHUNK
#define JOB_LARGE_PLAIN ((uint64_t)1 << 20)
/* The step was checked. */
bool job_step_large(const struct job_scope *scope, const struct job *j,
                    const struct proto_wstep *s);
/* How often the steps mention something. */
uint64_t job_mentions(const struct msg_f_job *msg);
/* A buffer that the job's check has found: it is the job's until its end, also when it was freed.
 * Quick for who goes through the mentions in their order. */
const struct buffer *job_buffer(struct job *j, uint64_t id);
/* The piece of device memory that a REF names; checked before. block NULL where there is none. */
struct backend_ref job_ref(struct job *j, const struct proto_ref *ref);
/* Where the bytes of a write come from, or those of a read go: an arena, if the step names one,
 * else staging memory. */
uint8_t *job_host(const struct job_scope *scope, const struct job *j, const struct proto_wstep *s,
                  const struct proto_ref *arena);
/* Does the device know that memory, so that copies need no other on their way? */
bool job_host_known(const struct job_scope *scope, const struct job *j, const struct proto_wstep *s,
                    const struct proto_ref *arena);
/* The same, or it is nothing to this back end. */
bool job_host_as_known(const struct job_scope *scope, const struct job *j,
                       const struct proto_wstep *s, const struct proto_ref *arena);
/* Sizes with what was left out (0) put in: 1 for an extent. */
void job_sizes(const struct proto_wstep *s, uint64_t ret_global[3], uint64_t ret_local[3]);

#endif
