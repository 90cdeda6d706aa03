/*
 * A device as the front knows it: the worker that owns its context, the staging memory that front
 * and worker share, and the jobs that the worker has. Thread: the loop's.
 *
 * Where a device is:
 *
 *   starting → starting   a new device gets its first worker
 *   starting, waiting, absent → adopting
 *                         the launcher has a worker of it from an earlier front
 *   starting → opened     its worker has opened the context
 *   starting → absent     its worker finds no such device
 *   starting → replaced   the same, and a device of the next back end takes its place
 *   adopting → opened     its worker has reported what it holds
 *   opened → probing      its worker has answered for the rings: sealed buffers are restored
 *   probing → probing     a new device runs its first kernel and copy
 *   opened → absent       its memory is less than what tenants are guaranteed
 *   probing → ready       it serves
 *   probing → absent, replaced
 *                         its first kernel cannot be resolved
 *   absent → starting     it is searched for again
 *   absent → waiting      other settings let it keep the guarantees
 *   absent → absent       the reason is another one
 *   replaced → waiting    its worker has ended
 *   waiting → starting    the pause is over
 *
 * A worker that ends takes its device to waiting, but for an absent one. A worker that is killed
 * and does not end takes it to stuck.
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
    DEVICE_STARTING, /* no worker yet, or its worker opens the context */
    DEVICE_OPENED,   /* its worker has not answered for the rings */
    DEVICE_ADOPTING, /* a worker of an earlier front reports what it holds */
    DEVICE_PROBING,
    DEVICE_READY,
    DEVICE_WAITING,  /* its worker ended; the next one starts after a pause */
    DEVICE_REPLACED, /* its worker ends, and one of another back end follows */
    DEVICE_ABSENT,   /* cannot be used: `reason`; its worker may not have ended yet */
    DEVICE_STUCK,    /* its worker cannot be ended: quarantined */
    DEVICE_STATES,
};

/* How far a worker has come. The pause before the next one depends on it. */
enum worker_progress {
    WORKER_STARTED,
    WORKER_UP,         /* it has opened its context */
    WORKER_PRODUCTIVE, /* and completed a job */
};

struct device {
    struct front *front;
    unsigned index; /* among the daemon's devices */
    char backend[16];
    unsigned number;           /* among the back end's devices */
    enum device_state state;   /* changed by device_set_state alone */
    char reason[ERR_TEXT_MAX]; /* why it is not ready; "": it is */
    bool required;             /* named by the settings */
    bool proven;               /* it has run a kernel and a copy once */
    struct job *probe;         /* its first job, until that has ended; NULL: none */

    /* health, as the driver reports it; monitor.c's */
    uint32_t recovery;        /* enum health_recovery; if not NONE it gets no new jobs */
    uint32_t recovery_unsure; /* recovery that it was held for until reports of the driver stopped;
                                    NONE: none */
    uint64_t recovery_ns;     /* when the driver last reported one */

    /* tenants; tenants/ */
    bool overpromised;    /* its pool is smaller than the guarantees, and keeps none of them */
    uint64_t quota_epoch; /* epoch of the worker that has the quotas */
    char refused[240];    /* which quota its worker refused; "": none */

    /* properties that its worker reported; worker_frames.c's */
    char name[129];
    char vendor[129];
    char driver[129];
    char arch[129];
    char pin[65];      /* options that find it as device 0 of the back end; "": its number does */
    char warning[257]; /* of its worker, though it serves; "": none */
    bool cpu;
    bool simulated;
    bool f64;
    bool chosen; /* its worker's environment names the devices that may be seen */
    uint64_t memory;
    uint64_t max_alloc;
    uint64_t pool_limit;  /* bytes that its pool may take */
    uint64_t spill_limit; /* bytes of host memory for buffers that find no room there */
    uint64_t units;
    uint64_t max_group;
    uint64_t local_bytes;
    unsigned streams;
    unsigned urgent;   /* the last so many streams are for urgent jobs */
    unsigned siblings; /* devices of its back end, itself included */

    /* the worker; workers/worker.c's */
    uint64_t worker; /* id at the launcher; 0: none */
    pid_t pid;
    struct link *link;     /* NULL: the channel broke, or there is no worker */
    struct record *record; /* owned: buffers and jobs of the worker; shared with the launcher */
    uint64_t inventory;    /* mark at the end of the inventory that was asked for */
    uint64_t epoch;        /* grows with each worker */
    enum worker_progress progress;
    uint64_t started_ns;
    uint64_t beat_ns;     /* last sign of life */
    uint64_t patience_ns; /* time that the next one may take */

    /* the end of a worker, and the pause before the next; workers/worker.c's */
    uint64_t killed_ns;  /* when it was killed; 0: not */
    bool hung_up;        /* it was killed because its channel closed while it was exiting */
    char ending[160];    /* why it was killed */
    struct job *culprit; /* job whose time limit or fault ends the worker; NULL: none */
    char unopened[160];  /* why it could not open the device; "": it could, or did not try */
    unsigned failures;   /* workers in a row that were not productive */
    uint64_t restarts;
    uint64_t restart_ns;   /* when the next worker starts */
    unsigned absences;     /* searches in a row that did not find the device */
    char lacks[240];       /* why the last one did not */
    char fault[240];       /* how a worker ended last; "": none did */
    char fault_doing[384]; /* what it was doing; for administrators */
    uint64_t fault_ns;     /* when */

    /* staging memory */
    struct memfd input;
    struct memfd output;
    struct range input_range;
    struct range output_range;

    /* jobs; sched/ */
    struct job *inflight; /* by device_next, in order of dispatch */
    unsigned inflight_count;
    uint64_t starts;      /* jobs that were seen to run */
    uint64_t ran_ns;      /* when a running job last ended */
    uint64_t first_ns;    /* when the first of `inflight` became the first */
    struct window window; /* limit of inflight_count, unless the settings have one */
    unsigned stream_load[STREAMS_MAX];
    struct heap ready; /* queued jobs that are bound to it; queue.c's */
    bool exclusive;    /* a job runs alone */
    uint64_t jobs_done;
    uint64_t busy_ns;

    /* memory; memory/ */
    unsigned restores;        /* sealed buffers that its worker copies in now */
    struct buffer *restoring; /* sealed buffers that follow */
    uint64_t losses;          /* ends of workers, each with their buffers */
    bool losing;              /* these buffers are being marked, and no worker starts meanwhile */
    uint32_t losing_at;       /* how far, in front->buffers */
    uint64_t buffer_bytes;    /* of live buffers */
    uint64_t memory_limit;    /* bytes; 0: its own memory */
    struct msg_w_pool pool;   /* last report about its pool */
    bool pool_changed;        /* since that report was asked for */
    unsigned snapshots_asked; /* snapshots that its worker has yet to send */
};

/* The time until the next beat that a worker asks for, limited to that of a cold start. */
uint64_t device_patience_ns(uint64_t asked_ns);
/* The one way to change the state. A step that the table lacks ends the process. reason NULL:
 * the old one remains. */
void device_set_state(struct device *d, enum device_state state, const char *reason);
const char *device_state_name(const struct device *d); /* "held" while `recovery` is set */
bool device_serves(const struct device *d);
/* True also while it is searched for again. */
bool device_absent(const struct device *d);
/* The UUID in its pin; NULL: none. */
const char *device_uuid(const struct device *d);
/* Limit of jobs in flight: the setting, or (0) the window. */
uint64_t device_window(const struct device *d, uint64_t setting);
/* Limit of its worker's pool in bytes; before the worker reported, an estimate. */
uint64_t device_pool_limit(const struct device *d);
/* Bytes of host memory for one of `devices`. set: for all of them; 0: a quarter of the host's
 * memory. Returns 0 for none. */
uint64_t device_spill_limit(uint64_t set, unsigned devices);
/* May it serve at some time, so that jobs wait instead of failing? */
bool device_hopeful(const struct device *d);
/* Does it serve, or may its worker soon? Not if workers fail to open it again and again, or if its
 * driver asks for a recovery. */
bool device_coming(const struct device *d);
/* Counts the end of a worker. A blameless end (from outside, or by a job's time limit) does not
 * count against a device that came up. */
void device_ended(struct device *d, bool blameless);
/* The pause before the next worker: none after a productive one or the first that was not; up to
 * 0.5 s while workers come up, up to 30 s while they do not. */
uint64_t device_pause_ns(const struct device *d);
/* Is the pause over, and are the buffers of the worker before marked? */
bool device_may_restart(const struct device *d, uint64_t now);
int device_staging_create(struct device *d, uint64_t input, uint64_t output, struct err *e);
/* A bit for each device that may serve; cpu: only those that compute on the host's processor. */
uint64_t device_bits(struct device *const *devices, unsigned count, bool cpu);
void device_staging_finish(struct device *d);

#endif
