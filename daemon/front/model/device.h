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
 *   waiting → waiting     a worker of it from an earlier front has yet to end
 *   starting, ready, waiting, absent → resting
 *                         a domain that nothing wants, or a worker of a device that is drained: it
 *                         ends, if there is one
 *   resting → ready       not all of its buffers could go to the host, or something wants it
 *                         before they have
 *   resting → starting    something wants it again
 *   resting → adopting    as from waiting
 *   resting → waiting     the device is not drained any more
 *   resting → resting     the device that it is on does not serve
 *
 * When its worker ends, a device goes to waiting, unless it is absent or resting. When a killed
 * worker does not end, the device goes to stuck.
 *
 * Whether an operator drains the device is a state beside that one, of the device and not of a
 * worker: while it is drained, its workers may start, end or be taken over (devices/draining.h):
 *
 *   none → holds, finishes
 *                         an operator asks for it, or the next front finds it in the hold file
 *   holds ↔ finishes      an operator asks for the other
 *   holds, finishes → released
 *                         all its workers have ended
 *   any → none            an operator resumes it
 */
#ifndef FRONT_MODEL_DEVICE_H
#define FRONT_MODEL_DEVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "common/memfd.h"
#include "common/range.h"
#include "daemon/front/model/accuracy.h"
#include "daemon/front/model/device_set.h"
#include "daemon/front/model/line.h"
#include "daemon/front/model/turn.h"
#include "daemon/front/model/window.h"
#include "proto/frames.h"

struct beater;
struct front;
struct job;
struct link;
struct record;
struct tenant;

#define STREAMS_MAX   16u
#define STAGING_ALIGN 256u    /* bytes */
#define ARRIVALS_MAX  16u     /* buffers that are on their way to a device at a time */
#define UUID_OPTION   "uuid=" /* begins a pin, or an option, that names devices by UUID */

enum device_state {
    DEVICE_STARTING, /* no worker yet, or its worker opens the context */
    DEVICE_OPENED,   /* its worker has yet to answer for the rings (common/duplex.h) */
    DEVICE_ADOPTING, /* a worker of an earlier front reports what it holds */
    DEVICE_PROBING,
    DEVICE_READY,
    DEVICE_WAITING,  /* its worker ended; the next one starts after a pause */
    DEVICE_REPLACED, /* its worker ends; a worker of another back end follows */
    DEVICE_ABSENT,   /* cannot be used (`reason`); its worker may still run */
    DEVICE_STUCK,    /* its worker cannot be ended: quarantined */
    DEVICE_RESTING, /* without a worker, or its worker ends: nothing wants the domain, or the device
                       is drained */
    DEVICE_STATES,
};

/* Of a device that an operator drains: requests that come now do not get it. */
enum drain_state {
    DRAIN_NONE,
    DRAIN_HOLDS,    /* jobs that are bound to it wait */
    DRAIN_FINISHES, /* they run first */
    DRAIN_RELEASED, /* no process of gpud has it open */
    DRAIN_STATES,
};

/* What a worker has that keeps it: it cannot go to the host. */
enum keeper {
    KEEPER_NONE,
    KEEPER_EXPORT,   /* buffers that other processes may have mapped */
    KEEPER_VARIABLE, /* variables of modules */
    KEEPER_REQUEST,  /* buffers that are being made or sealed */
    KEEPER_HOST,     /* host memory for copies is used up */
    KEEPER_COPIES,   /* the launcher keeps no more copies */
};

/* Why a worker ended that another one replaced. */
enum restart_reason {
    RESTART_JOB,     /* a job was to blame */
    RESTART_ENDED,   /* gpud ended it: it was silent, broke the rules, or had a job to be killed */
    RESTART_KILLED,  /* from outside */
    RESTART_CRASHED, /* by itself */
    RESTART_REASONS,
};

/* How far a worker has come. The pause before the next one depends on it. */
enum worker_progress {
    WORKER_STARTED,
    WORKER_UP,         /* it has opened its context */
    WORKER_PRODUCTIVE, /* and completed a job */
};

/* What a thread waits for that the host is short of. */
enum thread_lack { LACKS_NOTHING, LACKS_PROCESSOR, LACKS_DISK };

/* How far the buffers of a device that rests have gone to the host (workers/evacuate.h). */
enum evacuation {
    EVACUATION_NONE,
    EVACUATION_COPIES, /* its worker copies them */
    EVACUATION_OVER,   /* nothing would be lost with its worker */
    EVACUATION_FAILED, /* something would be */
};

struct device {
    struct front *front;
    unsigned index; /* its place in front->device */
    char backend[16];
    unsigned number;                 /* among the back end's devices */
    enum device_state state;         /* changed by device_set_state alone */
    char reason[ERR_TEXT_MAX];       /* why it is not ready; "": ready */
    bool required;                   /* named by the settings */
    struct drain {                   /* of a device; draining.c's */
        enum drain_state state;      /* changed by device_set_drain alone */
        char by[PROTO_NAME_MAX + 1]; /* the tenant that asked for it */
        uint64_t since_s;            /* when, of the calendar */
        uint64_t look_ns;            /* no other try to move its buffers before that */
        enum keeper keeper;          /* at the last try */
        bool vacated;                /* no process waits to replace its workers */
        uint64_t ask_ns;             /* when the launcher is asked for that again */
    } drain;

    /* domains (domain.h); workers/domains.c's */
    struct device *base;        /* of a domain: the device that it is on; NULL: it is none */
    struct tenant *owner;       /* of a domain; NULL: all tenants share its worker */
    struct device *domains;     /* on this device, the newest first; owned */
    struct device *domain_next; /* in base->domains */
    bool wanted;                /* of a domain: it is to get a worker */
    uint64_t grant;             /* bytes: of a domain, its lease: the limit of its pool */
    uint64_t granted;           /* bytes: of the device's memory, to workers of its domains, or on
                                   the way to a worker */
    struct lease {              /* tenants/leases.c's */
        uint64_t wanted;        /* bytes more, for jobs that wait; 0: none */
        uint64_t since_ns;      /* since when */
        uint64_t denied_ns;     /* it does not grow before that */
        uint64_t most;          /* bytes: what its worker was told that its budget may become */
        uint64_t taken;         /* bytes that its worker is giving back for another; 0: none */
        uint64_t owed;          /* bytes that its worker has beyond its budget; UINT64_MAX: it has
                                   not answered for that; tenants/budget.c's */
    } lease;
    struct growth {            /* of a device: the lease of a worker of it that grows */
        struct device *wanter; /* NULL: none does */
        uint64_t coming;       /* bytes of `granted` on their way to it */
        uint64_t until_ns;     /* when those that give them count as hung */
    } growth;
    struct domain_place {  /* of a domain; places.c's */
        uint64_t since_ns; /* when it got its place, or first served there */
        uint64_t asked_ns; /* when it asked for the place that it waits for */
        uint64_t look_ns;  /* if it yields: no look at its buffers before that */
        bool fresh;        /* its worker has yet to serve there */
        bool yields;       /* it takes no new jobs: its place is to come free */
    } place;
    struct device_places { /* of a device; places.c's */
        uint64_t look_ns;  /* no look for a domain that leaves before that */
        uint64_t judge_ns; /* no look whether one can leave before that */
        unsigned keep;     /* workers that could not at the last look */
        char why[192];     /* what kept these */
    } places;
    uint64_t used_ns;         /* of a domain: when something asked for it last */
    uint64_t spare_ns;        /* of a device: no spare worker of it starts before that */
    struct evacuation_state { /* evacuate.c's */
        enum evacuation state;
        struct buffer *due; /* to be asked for */
        unsigned asked;     /* unanswered */
        uint64_t heard_ns;  /* of the last answer */
        uint64_t bytes;     /* of all its buffers that have such a copy, or are to get one */
    } evacuation;
    bool proven;       /* it has run a kernel and a copy once */
    struct job *probe; /* its first job, until that job ends; NULL: none */

    /* health, as the driver reports it; monitor.c's */
    uint32_t recovery;        /* enum health_recovery; if not NONE it gets no new jobs */
    uint32_t recovery_unsure; /* the `recovery` that was in force when the driver's reports stopped;
                                 NONE: none */
    uint64_t recovery_ns;     /* when the driver last reported about recovery */

    struct {
        uint64_t taken_ns; /* of the last report; 0: none */
        uint64_t mj;       /* the counter then, if it was known */
        bool known;
    } energy; /* energy.c's */

    /* tenants; tenants/ */
    bool overpromised;    /* the guarantees exceed its pool, which keeps none of them */
    uint64_t quota_epoch; /* `epoch` of the worker that has the quotas */
    char refused[240];    /* which quota its worker refused; "": none */

    /* properties that its worker reported; worker_frames.c's */
    char name[129];
    char vendor[129];
    char driver[129];
    char arch[129];
    char pin[65];      /* options that make it device 0 of its back end; "": use `number` */
    char warning[257]; /* reported by its worker, which serves all the same; "": none */
    bool cpu;
    bool simulated;
    bool f64;
    bool chosen; /* the environment limits which devices its worker sees */
    uint64_t memory;
    uint64_t max_alloc;
    uint64_t pool_limit;   /* limit of its pool, bytes; the front may have changed it */
    uint64_t pool_default; /* bytes: the limit that the worker takes by itself; 0: not known */
    uint64_t budget;       /* bytes: the limit sent to the worker, or reported by it */
    uint64_t stay;         /* bytes: the same, for buffers that stay on the device */
    uint64_t spill_limit;  /* limit of host memory for spilled buffers, bytes */
    uint64_t units;
    uint64_t max_group;
    uint64_t local_bytes;
    unsigned streams;
    unsigned urgent;   /* streams for urgent jobs: the last ones */
    unsigned siblings; /* devices of its back end, itself included */

    /* the worker; workers/worker.c's */
    uint64_t worker; /* id at the launcher; 0: none */
    /* of the last one that got `record`, which names that at the launcher; 0: no other gets it */
    uint64_t recorded;
    pid_t pid;
    struct link *link;     /* NULL: the channel broke, or there is no worker */
    struct record *record; /* owned: buffers and jobs of the worker; shared with the launcher */
    bool record_alone;     /* the launcher that had `record` has ended: the next worker shares it */
    uint64_t inventory;    /* nonce of the inventory that was asked for; ends it */
    uint64_t epoch;        /* grows with each worker */
    enum worker_progress progress;
    uint64_t started_ns;
    uint64_t heard_ns;       /* last sign of life */
    uint64_t beat_ns;        /* the same, or when the front had last stood still */
    uint64_t patience_ns;    /* time until the next sign of life is overdue */
    struct beater *beater;   /* owned: the thread that gives them; NULL: not known */
    struct silence {         /* since the last sign of life, if it is overdue; silence.c's */
        uint64_t beat_ns;    /* of that sign */
        uint64_t looked_ns;  /* when the thread was last looked at; 0: never */
        uint64_t ran_ns;     /* processor time of the thread then */
        uint64_t counted_ns; /* of the silence: in which the thread could have given one */
        enum thread_lack lack;
    } silence;

    /* the end of a worker, and the pause before the next; workers/worker.c's */
    uint64_t killed_ns;  /* since when it is being killed; 0: it is not */
    bool hung_up;        /* it was killed because its channel closed while it was exiting */
    char ending[160];    /* why it was killed */
    struct job *culprit; /* job whose time limit or fault ends the worker; NULL: none */
    bool overran;        /* it was killed because its turn overran: `culprit` gets a strike */
    bool lost;           /* it has said that its driver is lost: no job is to blame */
    char unopened[160];  /* why it could not open the device; "": no failure */
    unsigned failures;   /* workers in a row that failed (device_ended) */
    uint64_t restarts;
    uint64_t restart_count[RESTART_REASONS]; /* of a base: those of its domains, too */
    uint64_t restart_ns;                     /* when the next worker starts */
    unsigned absences;                       /* searches in a row that found no device */
    char lacks[240];                         /* why the last search failed */
    char fault[240];                         /* how a worker last failed; "": none failed */
    char fault_doing[384];                   /* the jobs that it had then; for administrators */
    uint64_t fault_ns;                       /* when */

    /* staging memory */
    struct memfd input;
    struct memfd output;
    struct range input_range;
    struct range output_range;

    /* jobs; sched/ */
    struct job *inflight; /* by device_next, in order of dispatch */
    unsigned inflight_count;
    uint64_t starts;      /* begins and resumptions of jobs; numbers clock.place */
    uint64_t ran_ns;      /* when a job last stopped running */
    uint64_t first_ns;    /* when the first of `inflight` became the first */
    struct window window; /* limit of inflight_count, unless the settings have a limit */
    unsigned stream_load[STREAMS_MAX];
    uint64_t stream_ahead_ns[STREAMS_MAX]; /* what its jobs are expected to take */
    uint64_t stream_ns[STREAMS_MAX];       /* when a job last left it */
    struct stream_left {
        uint64_t ns, portion;   /* of the line, then */
    } stream_left[STREAMS_MAX]; /* when its last job ended; sched/shares.c's */
    struct line line;           /* jobs that are ready for it; sched/shares.c's */
    struct turn turn;           /* of its workers; sched/turns.c's, as the next four */
    uint64_t quit_ns;           /* when the last of its jobs ended */
    bool drained;               /* its last turn ended with no job of it ready */
    bool overdue;               /* it was seen to overrun once; turns.c's */
    uint64_t outstayed_ns;      /* others no longer wait for what it got until then */
    bool exclusive;             /* a job runs alone */
    uint64_t forecast_id;       /* names it in forecasts (model/forecast.h) */
    struct accuracy accuracy;   /* of the expected times of its jobs */
    unsigned jobs; /* unfinished jobs of tenants that are bound to it, or that it has */
    bool shut;     /* it takes no job now; dispatch.c's, as the next */
    bool stopped;  /* nor in this pass: its next job waits for what only it can give */
    uint64_t jobs_done;
    uint64_t busy_ns;

    /* memory; memory/ */
    struct arrival {         /* a buffer of another device that its worker was asked to take */
        uint64_t id;         /* of the buffer; 0: none */
        bool unwanted;       /* its worker is to free it */
    } arrival[ARRIVALS_MAX]; /* workers/arrivals.c's */
    struct transit {         /* of a base: how long buffers take that move; sched/transit.c's */
        struct pace {        /* zeroed: none did */
            double fixed_ns; /* of a small one */
            double byte_ns;  /* of a large one, beside that */
            unsigned small, large; /* how many it was learnt from; they stop when it is sure */
        } out, in;                 /* from its memory to the host's, and back */
    } transit;
    unsigned restores;        /* unanswered requests to restore sealed buffers */
    struct buffer *restoring; /* sealed buffers to restore after those; refused ones at the end */
    uint64_t restore_ns;      /* no refused one is asked for before that */
    uint64_t losses;          /* ends of workers; each loses the worker's buffers */
    bool losing;              /* marking of lost buffers is under way; no worker starts */
    uint32_t losing_at;       /* cursor of the marking in front->buffers */
    uint64_t buffer_bytes;    /* of live buffers */
    uint64_t memory_limit;    /* bytes; 0: its own memory */
    struct msg_w_pool pool;   /* last report about its pool */
    bool pool_changed;        /* since the last report was asked for */
    unsigned snapshots_asked; /* snapshots that its worker has yet to send */
};

/* The device that clients name: of a domain its base, else the device itself. */
static inline struct device *device_base(struct device *d)
{
    return d->base != NULL ? d->base : d;
}

/* What clients call it. */
static inline unsigned device_shown(const struct device *d)
{
    return d->base != NULL ? d->base->index : d->index;
}

/* Its worker gets no new jobs and requests: what is under way there ends, then it leaves. */
static inline bool device_yields(const struct device *d)
{
    return d->state == DEVICE_READY && d->place.yields;
}

/* The line that its jobs stand in: domains of a device stand in the line of that device. */
static inline struct line *device_line(struct device *d)
{
    return d->base != NULL ? &d->base->line : &d->line;
}

/* How long the front waits for a heartbeat: as long as the worker asks for, at most 120 s. */
uint64_t device_patience_ns(uint64_t asked_ns);
/* The one way to change the state. A step that the table lacks ends the process. reason NULL: keeps
 * the old reason. */
void device_set_state(struct device *d, enum device_state state, const char *reason);
/* "held": ready, but `recovery` is set. "draining", "drained": see enum drain_state. */
const char *device_state_name(const struct device *d);
/* The one way to change drain.state, of a device that is no domain. As device_set_state. */
void device_set_drain(struct device *d, enum drain_state state);
/* Does an operator drain the device, or that of the domain? */
bool device_drains(const struct device *d);
/* The refusal of a request for a device that is drained: ERR_DRAINING. */
int device_refuse_drained(const struct device *d, struct err *e);
const char *restart_reason_name(enum restart_reason reason); /* "job" */
bool device_serves(const struct device *d);
/* Does it take the next job that is bound to it? It serves, or it is drained and such jobs run
 * first. */
bool device_takes(const struct device *d);
/* True also while it is searched for again. */
bool device_absent(const struct device *d);
/* Whether a setting's list of indices, "0,2", has the device's. */
bool device_listed(const struct device *d, const char *list);
/* The UUID in its pin; NULL: the pin has none. */
const char *device_uuid(const struct device *d);
/* Whether the settings `devices` and `backend_options` name devices, by number or UUID. */
bool device_chosen(const char *devices, const char *options);
/* Streams for jobs that are not urgent: the first ones, one at least. */
unsigned device_usual_streams(const struct device *d);
/* Limit of jobs in flight: the setting; if that is 0, the window. */
uint64_t device_window(const struct device *d, uint64_t setting);
/* Limit of its worker's pool in bytes; an estimate until the worker has reported it. */
uint64_t device_pool_limit(const struct device *d);
/* What that limit may become when other workers give memory. */
uint64_t device_pool_most(const struct device *d);
/* Limit of the pools of all workers of the device together. Shares of tenants are of this. */
uint64_t device_whole(const struct device *d);
/* The same; UINT64_MAX until its first worker has told how much memory there is. */
uint64_t device_extent(const struct device *d);
/* Bytes of a pool with this limit that buffers of tenants without guarantees may keep for good. */
uint64_t device_stay(uint64_t limit, uint64_t percent);
/* Host memory for the spilled buffers of one of `devices` devices, in bytes. set: the limit for all
 * devices together; 0: a quarter of the host's memory. Returns 0 if the part is below 1 MiB. */
uint64_t device_spill_limit(uint64_t set, unsigned devices);
/* Whether it may serve at some time, so that jobs wait for it instead of failing. */
bool device_hopeful(const struct device *d);
/* The same for requests that come now: not while an operator drains it. */
bool device_admits(const struct device *d);
/* Jobs in flight on the device and in its domains. base: no domain. */
unsigned device_flying(const struct device *base);
/* Whether it serves or may serve soon. False after two failed workers in a row, while the driver
 * asks for a recovery, or while it is drained. */
bool device_coming(const struct device *d);
/* Counts the end of a worker in `failures`: a productive worker resets it. So does a blameless end
 * (from outside, or by a job's time limit) of a worker that had opened the device. */
void device_ended(struct device *d, bool blameless);
/* The pause before the next worker: none after at most one failure. Then it doubles from 100 ms, up
 * to 0.5 s if the worker had opened the device, else up to 30 s. */
uint64_t device_pause_ns(const struct device *d);
/* Whether a worker of it may start: always, but for a device that is drained. That gets one for
 * jobs that run first. */
bool device_gets_worker(const struct device *d);
/* Whether the pause is over and all buffers of the ended worker are marked. */
bool device_may_restart(const struct device *d, uint64_t now);
/* Makes the staging memory, of so many bytes for inputs and outputs. A failure makes neither. */
int device_staging_create(struct device *d, uint64_t input, uint64_t output, struct err *e);
void device_staging_finish(struct device *d);

#endif
