/*
 * A device as the front sees it: the worker that owns its context, the staging memory they share,
 * and the window of jobs the worker has. State changes in device_set_state only. Thread: the
 * loop's.
 */
#ifndef FRONT_MODEL_DEVICE_H
#define FRONT_MODEL_DEVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "common/memfd.h"
#include "common/range.h"
#include "daemon/front/model/heap.h"
#include "daemon/front/model/window.h"
#include "proto/frames.h"

struct front;
struct job;
struct link;
struct record;

#define DEVICES_MAX   64u
#define STREAMS_MAX   16u
#define STAGING_ALIGN 256u    /* bytes */
#define UUID_OPTION   "uuid=" /* of a pin, or of the settings: which devices, by their UUIDs */

enum device_state {
    DEVICE_STARTING, /* its worker opens the context */
    DEVICE_ADOPTING, /* a worker from before tells what it holds */
    DEVICE_PROBING,  /* runs its first kernel and copy */
    DEVICE_READY,
    DEVICE_WAITING, /* its worker ended; the next one starts after a pause */
    DEVICE_ABSENT,  /* cannot be used: `reason` */
    DEVICE_STUCK,   /* its worker cannot be ended: quarantined */
};

struct device {
    struct front *front;
    unsigned index; /* among the daemon's devices */
    char backend[16];
    unsigned number; /* among the back end's devices */
    enum device_state state;
    char reason[ERR_TEXT_MAX]; /* why it is not ready, "" if it is */
    bool required;             /* named by the configuration */
    bool proven;               /* has run a kernel and a copy once */
    bool adopted;              /* its worker is from before this front */
    bool overpromised; /* its pool cannot keep what is guaranteed to tenants: it keeps nothing */
    uint64_t told;     /* the epoch of the worker that was told what tenants may have */
    char warning[257]; /* what its worker says is wrong with it though it serves, "": nothing */
    char refused[240]; /* what it could not keep to of that, "": nothing */
    bool replaced;     /* its worker ends because another back end takes its place */
    uint32_t recovery; /* enum health_recovery: not NONE, then it gets no new jobs */
    uint32_t recovery_unsure; /* what it was held for, and nobody knows whether it still should */
    uint64_t recovery_ns;     /* when the driver was heard last about that */
    struct job *probe;        /* the first job, until it has ended */

    /* what the worker said of it */
    char name[129];
    char vendor[129];
    char driver[129];
    char arch[129];
    char pin[65]; /* options that find it again, as the back end's device 0; "": its number does */
    bool cpu;
    bool simulated;
    bool f64;
    bool chosen; /* its worker's environment names the devices that may be seen */
    uint64_t memory;
    uint64_t max_alloc;
    uint64_t pool_limit;  /* bytes its pool may take */
    uint64_t spill_limit; /* bytes of host memory for buffers that find no room there */
    uint64_t units;
    uint64_t max_group;
    uint64_t local_bytes;
    unsigned streams;
    unsigned urgent;   /* the last so many of them are for urgent jobs */
    unsigned siblings; /* devices of its back end, itself among them */

    /* the worker */
    uint64_t worker; /* id at the launcher, 0: none */
    pid_t pid;
    struct link *link;
    uint64_t inventory; /* what its worker says at the end of what it holds */
    uint64_t epoch;     /* grows with each worker */
    uint64_t started_ns;
    uint64_t beat_ns;     /* of the last sign of life */
    uint64_t ran_ns;      /* when a job that ran ended last */
    uint64_t first_ns;    /* when the first of `inflight` became that */
    uint64_t patience_ns; /* how long the next one may take */
    uint64_t killed_ns;   /* when it was told to end, 0: not */
    bool hung_up;         /* its channel closed as it was ending by itself */
    uint64_t restart_ns;  /* when the next one starts */
    unsigned absences;    /* so often in a row it was looked for in vain */
    char lacks[240];      /* why, the last time */
    bool up;              /* this worker has opened its context */
    bool opened_later;    /* up, and begins when its worker has answered for the rings */
    bool productive;      /* and has completed something */
    unsigned failures;    /* workers in a row that were not, for the pause */
    uint64_t restarts;
    struct job *culprit;   /* whose time limit or fault ends the worker */
    char ending[160];      /* why we end it */
    char unopened[160];    /* why its worker could not open it, "": it could, or has not tried */
    char fault[240];       /* how a worker of this device ended last, "": none did */
    char fault_doing[384]; /* and what it was doing; for administrators */
    uint64_t fault_ns;     /* when */

    struct record *record; /* owned: what this worker was given; the launcher keeps it, too */

    /* staging memory */
    struct memfd input;
    struct memfd output;
    struct range input_range;
    struct range output_range;

    /* jobs */
    struct job *inflight; /* list by device_next, in order of dispatch */
    unsigned inflight_count;
    uint64_t starts;      /* jobs that were seen to run */
    struct window window; /* how many that may be, unless the settings say */
    unsigned stream_load[STREAMS_MAX];
    struct heap ready; /* jobs that are bound here, waiting to be dispatched; queue.c's */
    bool exclusive;    /* a job runs alone */

    unsigned restores;        /* asked of its worker, and not answered */
    struct buffer *restoring; /* sealed buffers that its worker is to be asked for */
    uint64_t losses;          /* of workers, and of the buffers that they had */
    bool losing;              /* not all of these buffers are marked: no other worker starts */
    uint32_t losing_at;       /* so far they are, in front->buffers */
    uint64_t buffer_bytes;    /* of live buffers */
    uint64_t memory_limit;    /* bytes, 0: its own memory */
    struct msg_w_pool pool;   /* as its worker told last */
    bool pool_changed;        /* since it was asked for */
    unsigned pictures_asked;  /* and not answered */
    uint64_t jobs_done;
    uint64_t busy_ns;
};

/* How long a worker's next beat may take, as it says; not longer than a cold start's. */
uint64_t device_patience_ns(uint64_t asked_ns);
void device_set_state(struct device *d, enum device_state state, const char *reason);
const char *device_state_name(const struct device *d); /* "held" while `recovery` says so */
bool device_serves(const struct device *d);
/* Also while it is looked for again: it was not there the last time. */
bool device_absent(const struct device *d);
/* Its vendor's name of it, as its pin has it; NULL: it has none. */
const char *device_uuid(const struct device *d);
/* Jobs that it may have in flight: as set, or (0) as found. */
uint64_t device_window(const struct device *d, uint64_t setting);
/* Bytes that its worker's pool takes at most; a guess before that has told. */
uint64_t device_pool_limit(const struct device *d);
/* Bytes of host memory for one of `devices`, of what is set for all; 0 set: a quarter of the
 * host's. 0: none. */
uint64_t device_spill_limit(uint64_t set, unsigned devices);
/* Could it serve soon (so that jobs wait instead of failing)? */
bool device_hopeful(const struct device *d);
/* It serves, or its worker starts and none before it was of no use: not one that fails to open
 * again and again, or that its driver wants left alone. */
bool device_coming(const struct device *d);
/* A worker has ended. Some ends (blameless: from outside, a job's time limit) say nothing against a
 * device that came up. */
void device_ended(struct device *d, bool blameless);
/* How long the next worker is waited with: not at all after one that did something or was the first
 * to do nothing; up to 0.5 s while workers come up, up to 30 s while they do not. */
uint64_t device_pause_ns(const struct device *d);
/* Its pause is over, and what the worker before had is given up. */
bool device_may_restart(const struct device *d, uint64_t now);
int device_staging_create(struct device *d, uint64_t input, uint64_t output, struct err *e);
/* A bit for each that may serve; of those that compute on the host's processor only, if asked. */
uint64_t device_bits(struct device *const *devices, unsigned count, bool cpu);
void device_staging_finish(struct device *d);

#endif
