/*
 * The state of the front: one struct, made in main.c and passed to every room. A room calls the
 * rooms below it directly (docs/architecture.md, Rooms). It calls rooms above it through `hooks`,
 * which pipeline.c fills in. A comment such as "queue.c's" names the file that manages a member.
 * Thread: the loop's.
 */
#ifndef FRONT_MODEL_FRONT_H
#define FRONT_MODEL_FRONT_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "common/clock.h"
#include "common/idmap.h"
#include "daemon/front/model/agenda.h"
#include "daemon/front/model/arena.h"
#include "daemon/front/model/buffer.h"
#include "daemon/front/model/device.h"
#include "daemon/front/model/freelist.h"
#include "daemon/front/model/io.h"
#include "daemon/front/model/job.h"
#include "daemon/front/model/life.h"
#include "daemon/front/model/module.h"
#include "daemon/front/model/parking.h"
#include "daemon/front/model/program.h"
#include "daemon/front/model/rights.h"
#include "daemon/front/model/session.h"
#include "daemon/front/model/spans.h"
#include "daemon/front/model/tenant.h"
#include "daemon/front/settings/config.h"
#include "daemon/front/settings/tenant_rules.h"
#include "daemon/front/settings/tls_files.h"
#include "proto/frames.h"

#define BUILTIN_MODULES_MAX 64u
#define HISTORY_MAX         1024u /* ended jobs that clients can ask about */
#define KEPT_MAX            4096u /* jobs beyond those, with unacknowledged answers; all tenants */

struct access_log;
struct accounts;
struct compile_response;
struct compiler;
struct forecast_file;
struct front;
struct hold_file;
struct lanes;
struct launcher_link;
struct listener;
struct table_query;
struct trace;
struct metrics;
struct monitor;
struct snapshot_set;
struct processes;
struct recorder;
struct reload;
struct shm;
struct sockets;

/*
 * Calls from a room to a room above it; calls to a room below are plain function calls. A function
 * behind a hook is called through the hook only. set_hooks in pipeline.c lists all of them.
 */
struct front_hooks {
    /* ---- jobs ---- */

    /* Called while there are `watchers`: the job is admitted, and its predecessors are known. */
    void (*job_admitted)(struct front *f, struct job *j);
    /* The job has ended: its state, error and outputs are set. Once for each job. */
    void (*job_ended)(struct front *f, struct job *j);
    /* Sends j->error to the client; the job ends later. At most once for each job. */
    void (*job_answered)(struct front *f, struct job *j);
    /* The job no longer blocks other jobs. Seals of its buffers may start, and buffers, arenas and
     * modules that were freed meanwhile are destroyed. */
    void (*job_left)(struct front *f, struct job *j);
    /* Sends this error to the client before the device is done with the job. */
    void (*job_answer_early)(struct front *f, struct job *j, const struct err *error);
    /* Answers DEADLINE if the deadline has passed and the client has no answer. */
    void (*job_late)(struct front *f, struct job *j, uint64_t now_ns);
    /* Postponed work can go on, or jobs can run. Coalesced: one pass over both runs at the end of
     * this turn of the loop, or of the next if the pass of this turn has begun. */
    void (*kick)(struct front *f);

    /* ---- modules ---- */

    /* A device needs the module: builds it, loads it, then offers waiting jobs again. */
    void (*module_need)(struct front *f, struct module *m, struct device *d);

    /* ---- buffers ---- */

    /* A job that runs on `to` needs the buffer, which is on another device: moves it, then offers
     * waiting jobs again. An error: it cannot move. */
    int (*buffer_need)(struct front *f, struct buffer *b, struct device *to, struct err *e);
    /* A build has succeeded or failed. `r`: the compiler's response; NULL: no response. */
    void (*module_build_done)(struct front *f, struct build *b, const struct compile_response *r);
    /* A build or a load of the module has succeeded or failed. */
    void (*module_settled)(struct front *f, struct module *m);

    /* ---- devices and settings ---- */

    /* The settings were read again. */
    void (*settings_changed)(struct front *f);
    /* The device is new: the host memory that devices share for spilling is divided again. */
    void (*device_added)(struct front *f);
    /* The state of the device changed: it may have begun or stopped serving. */
    void (*device_changed)(struct front *f, struct device *d);
    /* The worker takes requests about buffers: it has opened the device, or was to end and stays.
     */
    void (*worker_takes)(struct front *f, struct device *d);
    /* The device is absent or stuck: jobs and buffers that wait for it fail. */
    void (*device_given_up)(struct front *f, struct device *d);
    /* Devices that could not keep the guarantees of tenants may serve now: the settings changed, or
     * the worker of such a device has ended. */
    void (*guarantees_retry)(struct front *f);
    /* What the device gives to workers of its domains changed: the limit of its own pool follows.
     */
    void (*budget_changed)(struct front *f, struct device *base);
    /* The domain is about to be freed. */
    void (*device_removed)(struct front *f, struct device *d);

    /* ---- frames of a worker, checked by workers/frame_check.h ---- */

    /* The worker has ended, or cannot be ended. external: a signal from outside ended it, and no
     * job is to blame. */
    void (*worker_lost)(struct front *f, struct device *d, bool external, const char *why);
    void (*worker_done)(struct front *f, struct device *d, const struct msg_w_done *m);
    void (*worker_buffer)(struct front *f, struct device *d, const struct msg_w_buffer *m);
    /* fd: the exported memory; -1: none. The receiver owns it. */
    void (*worker_exported)(struct front *f, struct device *d, const struct msg_w_exported *m,
                            int fd);
    void (*worker_arena)(struct front *f, const struct device *d, const struct msg_w_arena *m);
    void (*worker_module)(struct front *f, struct device *d, const struct msg_w_module *m);
    void (*worker_tenant)(struct front *f, struct device *d, const struct msg_w_tenant *m);
    void (*worker_tenant_refused)(struct front *f, struct device *d,
                                  const struct msg_w_tenant_refused *m);
    void (*worker_budget)(struct front *f, struct device *d, const struct msg_w_budget *m);
    /* The device is open. It restores sealed buffers, runs its first job, then serves; called again
     * after each of these steps. */
    void (*worker_ready)(struct front *f, struct device *d);
    /* The worker has its memory pool and gets the limits of tenants. false: the device cannot serve
     * with them. */
    bool (*worker_opened)(struct front *f, struct device *d);
    /* d->siblings is known: opens the other devices of the back end. */
    void (*worker_siblings)(struct front *f, struct device *d);
    /* The worker found no device. */
    void (*worker_absent)(struct front *f, struct device *d, const struct err *e);
    /* fd: a snapshot of the worker's memory pool; -1: none. The receiver owns it. */
    void (*snapshot)(struct front *f, struct device *d, const struct msg_w_snapshot *m, int fd);

    /* ---- inventory of an adopted worker ---- */

    /* fd: the host copy of a sealed buffer; -1: none. The receiver owns it. */
    int (*inventory_buffer)(struct front *f, struct device *d,
                            const struct msg_w_inventory_buffer *m, int fd, struct err *e);
    void (*inventory_module)(struct front *f, struct device *d,
                             const struct msg_w_inventory_module *m);
    int (*inventory_job)(struct front *f, struct device *d, const struct msg_w_inventory_job *m,
                         struct err *e);
    void (*inventory_end)(struct front *f, struct device *d);

    /* ---- clients and operators ---- */

    /* Called while there are `watchers`: the buffer's handle is freed. */
    void (*buffer_freed)(struct front *f, const struct buffer *b);

    /* Sessions have new notices: pending WAIT requests are answered. */
    void (*sessions_notify)(struct front *f);
    /* A job, session or tenant leaves its table. `next`: the entry that an operator's table query
     * visits after it; NULL: none. */
    void (*entry_removed)(struct front *f, const void *entry, const void *next);
};

#define FRONT_ERRORS 64u /* errors by their codes, without the sign */

struct front_counters {
    uint64_t submitted, done, failed, cancelled, lost, refused, deduplicated, replayed;
    uint64_t moved, moved_bytes;     /* buffers from device to device */
    uint64_t rejected[FRONT_ERRORS]; /* submissions that were answered with the error */
};

/* The time of a turn of the loop. One reading of the clock serves several uses, so that requests
 * that come together have the same time stamp. */
struct turn_clock {
    unsigned uses;   /* left until the clock is read again */
    bool runs;       /* a turn is under way; outside of one each use reads the clock */
    uint64_t now_ns; /* of the last reading */
};

#define TURN_UNITS 4096u              /* at most 1 ms */
#define TURN_SHARE (TURN_UNITS / 16u) /* for each source of work (turn_allow) */
#define TURN_USES  32u                /* of one clock reading, so that time passes in a long turn */

/* The position of the walk over the jobs behind a job that did not run; conclude.c's. */
struct leaving_walk {
    bool begun;
    unsigned use;     /* index in work.uses of the job that did not run */
    struct spans bad; /* bytes that the job should have written, and that no job behind it has
                         written so far */
};

/*
 * Long work is counted in units: a step of a walk, the release of a buffer, an element that a
 * request visits. Work beyond the units of a turn continues in the next turn, after requests of
 * others. The handler of a request runs to its end: limits on the request bound its units, and the
 * last request of a turn may exceed the units of the turn.
 */
struct turn_work {
    uint64_t budget; /* limit of `done` now; 0: none */
    uint64_t done;   /* units in this turn */
    uint64_t most;   /* most units in a turn; `longest_turn` of gpuctl status */
};

struct front {
    uv_loop_t *loop;
    struct config config;
    char settings_bad[ERR_TEXT_MAX]; /* error in the settings files, which leaves older settings in
                                        use; "": none */
    char files_bad[ERR_TEXT_MAX];    /* error in a file of tokens or for TLS; "": none */
    char sockets_bad[ERR_TEXT_MAX];  /* why a tenant's own socket is not open; "": all are */
    char metrics_bad[ERR_TEXT_MAX];  /* why metrics are not served as the settings say; "": they
                                        are */
    struct tls_files tls;            /* read, and not given to the listener so far */
    bool tls_ready;                  /* the listener has a certificate */
    struct tls_end tls_end;          /* of the files that the listener has */
    uint64_t tls_look_ns;            /* when to look at it again; views/certificate.c's */
    uint64_t tokens_refused;         /* HELLOs without the token that they needed */
    uint64_t token_logged_ns;        /* when the log last had such a refusal; 0: never */
    struct rights rights;
    struct tenant_rules rules; /* of the settings, for tenants */
    /* Reads all settings anew: files, then the command line. */
    int (*read_settings)(void *data, struct config *ret_config, struct err *e);
    void *settings_data;
    struct reload *reload; /* owned; reload.c's; NULL: no reload yet */
    const char *build;
    uint8_t daemon_id[PROTO_CLIENT_ID_BYTES];
    uint64_t lineage; /* the launcher's number; 0: it has none */
    uint64_t started_ns;
    struct front_hooks hooks;
    struct front_io io; /* filled before any other call */

    struct listener *listener;
    struct shm *shm;         /* NULL: not listening */
    struct sockets *sockets; /* owned: those of tenants; clients/sockets.h */
    struct lanes *lanes;
    struct processes *processes; /* watches the processes of clients; NULL: ends are not watched */
    struct launcher_link *launcher;
    uint32_t worker_uid; /* kernels run as this user, which gets no session; 0: none */
    uint32_t worker_gid; /* or as users of this group, which get none either */
    struct compiler *compiler;
    struct monitor *monitor; /* owned; NULL before the start, as the next */
    struct hold_file *holds; /* owned; devices/hold_file.h: of former fronts, too */

    struct tenant *tenants;            /* uthash by key */
    struct tenant *spare;              /* owned; has the spare workers (workers/domains.h), and is
                                          in no table; NULL: there was none */
    struct accounts *accounts;         /* owned; NULL: tenants count in memory of their own */
    struct forecast_file *forecasts;   /* owned; tenants/forecast_file.h; NULL: none was read */
    struct session *sessions;          /* uthash by key */
    struct session *by_pipe;           /* connected sessions; uthash by pipe */
    struct session *ending;            /* sessions whose end has begun, oldest first */
    uint64_t table_round;              /* of the table that is being made */
    struct table_query *table_queries; /* tables that take several turns, oldest first */
    struct session *sweeping;          /* sessions with a walk over their ops (sweep.c) */
    struct access_log *access;         /* owned; NULL: none */
    struct metrics *metrics;           /* owned; metrics/; NULL: none */
    unsigned watchers;                 /* traces, and 1 while a recording runs */
    uint32_t recording;                /* number of the recording that runs; 0: none does */
    uint32_t recordings;               /* so far */
    bool record_data;                  /* the recording has contents */
    struct recorder *recorder;         /* owned; record/: the last recording; NULL: none */
    const char *record_file;           /* --record; NULL: not given */
    bool record_file_data;             /* --record-data */
    struct trace *traces;              /* recordings of jobs; NULL: none */
    struct parking parked;
    struct session *early_due; /* sessions whose early requests have their turn; early.h */
    unsigned session_count;
    struct freelist job_freelist; /* of struct job */
    struct freelist op_freelist;  /* of struct op */
    uint64_t next_session;
    unsigned losing; /* devices whose lost buffers are being marked (memory/buffers.c) */
    struct buffer *records_pending; /* with adoption records out of date; command.c's */
    struct agenda lingering;        /* lingering buffers, by linger_until_ns */
    struct agenda gates;            /* tenants with held jobs, by when to look again; gate.c's */
    struct agenda deadlines;        /* queued jobs, by their deadlines */
    struct agenda session_timers;   /* sessions, by the earlier of linger time and end of WAIT */
    struct idmap buffers;
    struct idmap arenas;
    struct idmap programs;
    struct idmap modules;
    struct idmap kernels;
    struct kernel *builtin_kernels; /* kernels of built-in modules; uthash by name */
    struct module *builtin[BUILTIN_MODULES_MAX];
    unsigned builtin_count;

    /* Owned. The first DEVICES_MAX places are for devices that clients can name, whose workers are
     * shared; the others are for domains, with gaps (domain.h). */
    struct device *device[PLACES_MAX];
    unsigned device_count; /* of the first kind */
    unsigned domain_count;
    unsigned domain_end;      /* the place behind the last domain; 0: there was none */
    uint64_t evacuated_bytes; /* of buffers whose domains rest: workers/evacuate.h */
    unsigned moving;          /* buffers that are on their way to another device */
    uint64_t copies_kept;     /* by the launcher for the next front: workers/keep.h */
    uint64_t copies_coming;   /* that it is to keep, too */
    uint64_t copies_max;
    struct kept *kept; /* from a former front, and yet without a buffer; keep.c's */
    uint64_t look_ns;  /* when idle domains may be looked for again; domains.c's */
    uint64_t next_worker;
    struct departing { /* a worker of a former front that is being ended: departing.h */
        uint64_t worker;
        char backend[sizeof((struct device *)0)->backend];
        unsigned number; /* of its device, by that back end */
        uint64_t owner;  /* key of the tenant whose domain it was; 0: it was shared */
    } departing[PLACES_MAX];
    unsigned departing_count;

    struct snapshot_set *snapshots; /* newest first */
    unsigned snapshot_count;
    uint64_t next_snapshot;

    struct job *jobs; /* uthash by id: unfinished, and the history */
    uint64_t next_job;
    uint64_t input_bytes;    /* of unfinished jobs */
    unsigned job_count;      /* unfinished */
    unsigned adopted_arenas; /* unfinished jobs of ORIGIN_ADOPTED_ARENAS */
    bool unadopted; /* a job of the former front found no memory: this front is about to end */
    unsigned queued_count;             /* unfinished jobs that no worker has */
    unsigned any_ready;                /* ready jobs that are not bound to a device */
    struct ready_sum any[CLASS_COUNT]; /* of those, by the time of the mean device */
    struct job *awaiting;     /* jobs that wait for a module or a buffer's content; queue.c's */
    unsigned awaiting_count;  /* length of awaiting */
    unsigned awaiting_offers; /* how many of them are still to be tried again, first ones first */
    struct hazards hazards;
    struct job *leaving; /* ended jobs that still block others, oldest first */
    struct job *leaving_tail;
    struct leaving_walk leaving_walk; /* for the first job in `leaving` */
    struct job *history;              /* oldest first */
    struct job *history_tail;
    unsigned history_count;
    unsigned kept_count; /* ended jobs beyond the history whose answers are unacknowledged */

    uv_check_t kick_check; /* runs postponed work, once a turn */
    uv_idle_t kick_idle;   /* keeps the loop from sleeping until then */
    bool kicked;
    uv_timer_t timer; /* the only timer of the front (wake.h) */
    uv_prepare_t arm; /* sets `timer` before the loop sleeps */
    uv_signal_t sigterm, sigint, sighup, sigusr1;

    bool listed; /* the launcher has listed the running workers */
    bool ready_reported;
    enum front_life life; /* changed by front_life_step alone */
    bool launcher_lost;   /* the launcher ended and is not replaced yet */
    bool supervised;      /* the launcher is a service of its own (--supervised) */
    int exit_code;
    struct turn_clock clock;
    struct turn_work work;
    uint64_t wake_ns;   /* when the timer has to fire; NS_NEVER: not at all */
    uint64_t armed_ns;  /* what the timer is set to */
    uint64_t awake_ns;  /* when the loop should look at the clock again at the latest */
    uint64_t alive_ns;  /* when the loop ran last, as far as its looks at the clock show */
    uint64_t away_ns;   /* how long the process stood still since the timer's work was done */
    uint64_t stood_ns;  /* and since the process began */
    bool pressed;       /* work waits for a channel that is full, or for memory: the timer kicks */
    uint64_t house_ns;  /* when housekeeping may run again */
    uint64_t forget_ns; /* when unused tenants are removed; 0: there is nothing to remove */
    uint64_t room_ns;   /* when they may be removed again to make room for a new tenant */
    bool crowded;       /* room for tenants is short: jobs of absent tenants are forgotten */
    uint64_t watchdog_ns; /* when the service manager gets the next heartbeat; NS_NEVER: never */
    uint64_t starting_ns; /* when it gets the next notice that the start continues */
    uint64_t drain_until_ns;
    uint64_t drained_ns; /* draining: since when no job is unfinished; 0: some are */
    struct front_counters count;
    const struct device *fault_device; /* device of the last fault; NULL: see fault_text */
    char fault_text[ERR_TEXT_MAX];     /* the last fault, if it was not a worker's; "": no fault */
};

/* Walks over all devices: first the shared ones, then the domains. *at is 0 at first. NULL: there
 * are no more. */
static inline struct device *front_next_device(const struct front *f, unsigned *at)
{
    if (*at == f->device_count && *at < DEVICES_MAX) {
        *at = DEVICES_MAX;
    }
    while (*at >= DEVICES_MAX && *at < f->domain_end && f->device[*at] == NULL) {
        ++*at;
    }
    bool any = *at < f->device_count || (*at >= DEVICES_MAX && *at < f->domain_end);
    return any ? f->device[(*at)++] : NULL;
}

/* Reads the clock, for code that cannot use the time of the turn (turn_now). */
static inline uint64_t front_now(const struct front *f)
{
    return f->io.now_ns();
}

static inline void turn_begin(struct front *f)
{
    f->clock = (struct turn_clock){.runs = true};
}

/* Counts units of work that are done now, beyond the budget if need be. */
static inline void turn_count(struct front *f, uint64_t units)
{
    f->work.done += units;
}

/* Gives the next source of work so many units in this turn, whatever earlier sources used. So
 * sockets, rings, workers, the clock and postponed work do not starve each other. */
static inline void turn_allow(struct front *f, uint64_t units)
{
    f->work.budget = f->work.done + units;
}

/* Whether this turn has room for another piece of work, whatever its length. */
static inline bool turn_has_room(const struct front *f)
{
    return f->work.budget == 0 || f->work.done < f->work.budget;
}

/* Takes units of this turn. false: they exceed the budget; another turn is asked for. */
static inline bool turn_take(struct front *f, uint64_t units)
{
    if (f->work.budget > 0 && f->work.done + units > f->work.budget) {
        f->hooks.kick(f);
        return false;
    }
    f->work.done += units;
    return true;
}

/* The time of this turn, as of the last reading of the clock. */
static inline uint64_t turn_now(struct front *f)
{
    struct turn_clock *c = &f->clock;
    if (!c->runs || c->uses == 0) {
        c->now_ns = front_now(f);
        c->uses = TURN_USES;
    }
    c->uses--;
    return c->now_ns;
}

#define PRESSED_NS (5 * NS_PER_MS) /* until what was full is checked again */

/* Postponed work and jobs get another pass after PRESSED_NS. */
static inline void front_try_again(struct front *f)
{
    uint64_t at_ns = ns_add(turn_now(f), PRESSED_NS);
    f->pressed = true;
    f->wake_ns = at_ns < f->wake_ns ? at_ns : f->wake_ns;
}

/* Whether the channel to the device's worker is full. This is no fault: the caller postpones its
 * work, and the timer asks for another pass over postponed work and jobs after PRESSED_NS. */
static inline bool front_pressed(struct front *f, unsigned device)
{
    if (!f->io.pressed(f->device[device]->link)) {
        return false;
    }
    front_try_again(f);
    return true;
}

#endif
