/*
 * The front's state: one struct, made in main.c and passed to every room. A room uses those below
 * it (docs/architecture.md, Rooms), and calls those above it through `hooks`, which pipeline.c
 * fills in. Thread: the loop's.
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
#include "proto/frames.h"

#define BUILTIN_MODULES_MAX 64u
#define HISTORY_MAX         1024u /* ended jobs that clients can ask about */
#define KEPT_MAX            4096u /* older ended jobs without an acknowledgement, of all tenants */

struct compile_response;
struct compiler;
struct front;
struct lanes;
struct launcher_link;
struct listener;
struct table_query;
struct monitor;
struct snapshot_set;
struct processes;
struct reload;
struct shm;

/*
 * Calls from a room to one above it. A call that runs down is a plain include. What a hook calls is
 * not called directly as well: each call has one road. The table in pipeline.c shows all of them.
 */
struct front_hooks {
    /* ---- jobs ---- */

    /* The job has ended: its state, error and outputs are set. Once for each job. */
    void (*job_ended)(struct front *f, struct job *j);
    /* Sends j->error to the client; the job ends later. At most once for each job. */
    void (*job_answered)(struct front *f, struct job *j);
    /* The job blocks no other job any longer. Its buffers may be sealed, and freed ones go. */
    void (*job_left)(struct front *f, struct job *j);
    /* Sends this error to the client before the device is done with the job. */
    void (*job_answer_early)(struct front *f, struct job *j, const struct err *error);
    /* Answers DEADLINE if the deadline has passed and the client has no answer. */
    void (*job_late)(struct front *f, struct job *j, uint64_t now_ns);
    /* Jobs may be able to run now. Coalesced: dispatch runs at the end of this turn of the loop. */
    void (*kick)(struct front *f);

    /* ---- modules ---- */

    /* A device needs the module: it is built, then loaded, then waiting jobs are offered again. */
    void (*module_need)(struct front *f, struct module *m, struct device *d);
    /* A build has succeeded or failed. `r`: the compiler's response, NULL: there is none. */
    void (*module_build_done)(struct front *f, struct build *b, const struct compile_response *r);
    /* A build or a load of the module has succeeded or failed. */
    void (*module_settled)(struct front *f, struct module *m);

    /* ---- devices and settings ---- */

    /* The settings were read again. */
    void (*settings_changed)(struct front *f);
    /* The device is new. What all devices share is divided again. */
    void (*device_added)(struct front *f);
    /* The device begins or stops to serve. */
    void (*device_changed)(struct front *f, struct device *d);
    /* The device is absent or stuck: jobs and buffers that wait for it fail. */
    void (*device_given_up)(struct front *f, struct device *d);
    /* A worker has ended that could not keep the guarantees of tenants: its device may serve with
     * other settings. */
    void (*guarantees_retry)(struct front *f);

    /* ---- frames of a worker, checked by words.h ---- */

    /* The worker has ended, or cannot be ended. external: a signal from outside; no job is to
     * blame. */
    void (*worker_lost)(struct front *f, struct device *d, bool external, const char *why);
    void (*worker_done)(struct front *f, struct device *d, const struct msg_w_done *m);
    void (*worker_buffer)(struct front *f, struct device *d, const struct msg_w_buffer *m);
    /* fd: the exported memory, -1: none. The receiver's. */
    void (*worker_exported)(struct front *f, struct device *d, const struct msg_w_exported *m,
                            int fd);
    void (*worker_arena)(struct front *f, const struct device *d, const struct msg_w_arena *m);
    void (*worker_module)(struct front *f, struct device *d, const struct msg_w_module *m);
    void (*worker_tenant)(struct front *f, struct device *d, const struct msg_w_tenant *m);
    void (*worker_tenant_refused)(struct front *f, struct device *d,
                                  const struct msg_w_tenant_refused *m);
    /* The device is open. It restores sealed buffers, runs its first job, then serves; called again
     * after each of these steps. */
    void (*worker_ready)(struct front *f, struct device *d);
    /* The worker has its memory pool and gets the limits of tenants. false: the device cannot serve
     * with them. */
    bool (*worker_opened)(struct front *f, struct device *d);
    /* d->siblings is known: the other devices of the back end are opened. */
    void (*worker_siblings)(struct front *f, struct device *d);
    /* The worker found no device. */
    void (*worker_absent)(struct front *f, struct device *d, const struct err *e);
    /* fd: a snapshot of the worker's memory pool, -1: none. The receiver's. */
    void (*snapshot)(struct front *f, struct device *d, const struct msg_w_snapshot *m, int fd);

    /* ---- inventory of an adopted worker ---- */

    /* fd: the host copy of a sealed buffer, -1: none. The receiver's. */
    int (*inventory_buffer)(struct front *f, struct device *d,
                            const struct msg_w_inventory_buffer *m, int fd, struct err *e);
    void (*inventory_module)(struct front *f, struct device *d,
                             const struct msg_w_inventory_module *m);
    void (*inventory_job)(struct front *f, struct device *d, const struct msg_w_inventory_job *m);
    void (*inventory_end)(struct front *f, struct device *d);

    /* ---- clients and operators ---- */

    /* Sessions have new notices: pending WAIT requests are answered. */
    void (*sessions_notify)(struct front *f);
    /* A job, session or tenant leaves its table. `next`: the entry behind it, in the order in which
     * queries of operators walk the table; NULL: none. */
    void (*entry_removed)(struct front *f, const void *entry, const void *next);
};

struct front_counters {
    uint64_t submitted, done, failed, cancelled, lost, refused, deduplicated, replayed;
};

/* The time of a turn. The clock is read once for several uses, so that what comes together has the
 * same time stamp. */
struct turn_clock {
    unsigned uses;   /* left until the clock is read again */
    bool runs;       /* a turn is under way; outside of one each use reads the clock */
    uint64_t now_ns; /* of the last reading */
};

#define TURN_UNITS 4096u              /* at most 1 ms */
#define TURN_SHARE (TURN_UNITS / 16u) /* of each source of work, see turn_allow */
#define TURN_USES  32u                /* of one reading, so that time passes in a long turn */

/* The walk over the jobs behind one that did not run; conclude.c's. */
struct leaving_walk {
    bool begun;
    unsigned use;     /* index among the uses of the job */
    struct spans bad; /* bytes that the job should have written, and that no job behind it has
                         written so far */
};

/*
 * Long work is counted in units: a step of a walk, the release of a buffer. Work beyond the units
 * of a turn continues in the next one, after requests of others. A request counts for each element
 * that it visits. The limits of a request bound its own units; the units of a turn bound those of
 * all its requests but the last.
 */
struct turn_work {
    uint64_t budget; /* limit of `done` now; 0: none */
    uint64_t done;   /* units in this turn */
    uint64_t most;   /* units in any turn; `longest_turn` of gpuctl status */
};

struct front {
    uv_loop_t *loop;
    struct config config;
    char settings_bad[ERR_TEXT_MAX]; /* what is wrong with the files of settings, so that the older
                                        settings are in use; "": nothing */
    struct rights rights;
    struct tenant_rules rules; /* of tenants, from the settings */
    /* Reads all settings anew: files, then the command line. */
    int (*read_settings)(void *data, struct config *ret_config, struct err *e);
    void *settings_data;
    struct reload *reload; /* owned; reload.c's; NULL: no reading yet */
    const char *build;
    uint8_t daemon_id[PROTO_CLIENT_ID_BYTES];
    uint64_t started_ns;
    struct front_hooks hooks;
    struct front_io io; /* filled before anything else is called */

    struct listener *listener;
    struct shm *shm; /* NULL: not listening */
    struct lanes *lanes;
    struct processes *processes; /* of sessions; NULL: their ends are not watched */
    struct launcher_link *launcher;
    uint32_t worker_uid; /* kernels run as this user, which gets no session; 0: none */
    struct compiler *compiler;
    struct monitor *monitor; /* owned; NULL before the start */

    struct tenant *tenants;            /* uthash by key */
    struct session *sessions;          /* uthash by key */
    struct session *by_pipe;           /* uthash of connected sessions */
    struct session *ending;            /* sessions whose end began, oldest first */
    struct table_query *table_queries; /* tables that take several turns, oldest first */
    struct session *sweeping;          /* sessions with a walk of sweep.c */
    struct parking parked;
    unsigned session_count;
    struct freelist job_freelist; /* of struct job */
    struct freelist op_freelist;  /* of struct op */
    uint64_t next_session;
    struct buffer *records_pending; /* buffers whose records go to their workers; command.c's */
    struct agenda lingering;        /* buffers that no session holds, by their ends */
    struct agenda deadlines;        /* queued jobs, by their deadlines */
    struct agenda session_timers;   /* sessions, by the ends of their linger times and WAITs */
    struct idmap buffers;
    struct idmap arenas;
    struct idmap programs;
    struct idmap modules;
    struct idmap kernels;
    struct kernel *builtin_kernels; /* kernels of built-in modules; uthash by name */
    struct module *builtin[BUILTIN_MODULES_MAX];
    unsigned builtin_count;

    struct device *device[DEVICES_MAX]; /* owned */
    unsigned device_count;
    uint64_t next_worker;

    struct snapshot_set *snapshots; /* newest first */
    unsigned snapshot_count;
    uint64_t next_snapshot;

    struct job *jobs; /* uthash by id: unfinished, and the history */
    uint64_t next_job;
    uint64_t input_bytes;    /* of unfinished jobs */
    unsigned job_count;      /* unfinished */
    unsigned adopted_arenas; /* unfinished adopted jobs that use arenas */
    unsigned queued_count;   /* unfinished jobs that no worker has */
    struct heap ready;       /* jobs that are not bound to a device; queue.c's */
    struct job *module_jobs; /* jobs that wait for a kernel; queue.c's */
    unsigned module_count;   /* length of module_jobs */
    unsigned module_offers;  /* the first so many are tried again */
    struct hazards hazards;
    struct job *leaving; /* ended jobs that still block others, oldest first */
    struct job *leaving_tail;
    struct leaving_walk leaving_walk; /* of the first */
    struct job *history;              /* oldest first */
    struct job *history_tail;
    unsigned history_count;
    unsigned kept_count; /* ended jobs out of the history whose answers are not acknowledged */

    uv_check_t kick_check; /* runs postponed work, once a turn */
    uv_idle_t kick_idle;   /* keeps the loop from sleeping before that */
    bool kicked;
    uv_timer_t timer; /* the front's one timer (wake.h) */
    uv_prepare_t arm; /* sets the timer, once a turn */
    uv_signal_t sigterm, sigint, sighup, sigusr1;

    bool listed; /* the launcher has listed the workers that run */
    bool ready_reported;
    enum front_life life; /* changed by front_life_step alone */
    bool launcher_lost;   /* and not replaced */
    bool supervised;      /* the launcher is a unit of its own */
    int exit_code;
    struct turn_clock clock;
    struct turn_work work;
    uint64_t wake_ns;     /* when the timer fires at the latest; NS_NEVER: not at all */
    uint64_t armed_ns;    /* when it fires as it is set */
    uint64_t house_ns;    /* when statistics of pools may be read again */
    uint64_t forget_ns;   /* when unused tenants are searched for; 0: not */
    uint64_t room_ns;     /* when that may be done again to make room for a new tenant */
    bool crowded;         /* room for tenants is short, so that ended jobs do not keep tenants */
    uint64_t watchdog_ns; /* when the service manager gets the next sign of life; NS_NEVER: never */
    uint64_t starting_ns; /* when it gets the next notice that the start continues */
    uint64_t drain_until_ns;
    uint64_t drained_ns; /* since when no job is unfinished while draining; 0: some are */
    struct front_counters count;
    const struct device *fault_device; /* device whose worker ended last; NULL: none did */
    char fault_text[ERR_TEXT_MAX];     /* or another fault, which was the last */
};

/* The time now, for what cannot use the time of the turn (turn_now). */
static inline uint64_t front_now(const struct front *f)
{
    return f->io.now_ns();
}

static inline void turn_begin(struct front *f)
{
    f->clock = (struct turn_clock){.runs = true};
}

static inline void turn_end(struct front *f)
{
    f->clock.runs = false;
}

/* Counts work that is done now. */
static inline void turn_count(struct front *f, uint64_t units)
{
    f->work.done += units;
}

/* Gives the next source of work so many units in this turn, whatever was done before: sockets,
 * rings, workers, the clock and postponed work do not delay each other. */
static inline void turn_allow(struct front *f, uint64_t units)
{
    f->work.budget = f->work.done + units;
}

/* Is there room for another piece of work in this turn, whatever its length? */
static inline bool turn_has_room(const struct front *f)
{
    return f->work.budget == 0 || f->work.done < f->work.budget;
}

/* May so much more be done in this turn? Counts it. false: asks for another turn. */
static inline bool turn_take(struct front *f, uint64_t units)
{
    if (f->work.budget > 0 && f->work.done + units > f->work.budget) {
        f->hooks.kick(f);
        return false;
    }
    f->work.done += units;
    return true;
}

/* The time of this turn. */
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

#define PRESSED_NS (5 * NS_PER_MS) /* until a full channel is checked again */

/* Is the channel to the device's worker full? That is no fault: work that can wait does. */
static inline bool front_pressed(struct front *f, unsigned device)
{
    if (!f->io.pressed(f->device[device]->link)) {
        return false;
    }
    uint64_t at_ns = ns_add(turn_now(f), PRESSED_NS);
    f->wake_ns = at_ns < f->wake_ns ? at_ns : f->wake_ns;
    return true;
}

#endif
