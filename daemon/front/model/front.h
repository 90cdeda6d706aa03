/*
 * The front's state: one struct, made in main.c, handed to every room. A room uses those below it
 * (docs/architecture.md, Rooms). What it has to tell one above goes through `hooks`, which
 * pipeline.c fills in.
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
#include "daemon/front/model/job.h"
#include "daemon/front/model/module.h"
#include "daemon/front/model/program.h"
#include "daemon/front/model/rights.h"
#include "daemon/front/model/session.h"
#include "daemon/front/model/spans.h"
#include "daemon/front/model/spare.h"
#include "daemon/front/model/tenant.h"
#include "daemon/front/settings/config.h"
#include "daemon/front/settings/tenant_rules.h"
#include "proto/frames.h"

#define BUILTIN_MODULES_MAX 64u
#define HISTORY_MAX         1024u /* ended jobs that can be asked about */
#define KEPT_MAX            4096u /* and older ones, of all tenants, whose answer was not taken */

struct compile_response;
struct compiler;
struct front;
struct lanes;
struct launcher_link;
struct listener;
struct look;
struct monitor;
struct picture_set;
struct processes;
struct reload;
struct shm;

struct front_hooks {
    /* A job came to its end: state, error and outputs are set. Called once for each. */
    void (*job_ended)(struct front *f, struct job *j);
    /* Its client is to hear j->error now; its end comes later. Called once at most. */
    void (*job_answered)(struct front *f, struct job *j);
    /* It is in nobody's way any more: what it used may be sealed, or goes if it was freed. */
    void (*job_left)(struct front *f, struct job *j);
    /* Its client is to hear this error before the device is done with the job. */
    void (*job_answer_early)(struct front *f, struct job *j, const struct err *error);
    /* The same with DEADLINE, if that has passed and the client has no answer yet. */
    void (*job_late)(struct front *f, struct job *j, uint64_t now_ns);
    /* A job or a tenant leaves its table; `next`: what follows it in the way that looks go. */
    void (*gone)(struct front *f, const void *what, const void *next);
    /* Something changed that may let jobs run. Coalesced: runs at the end of this turn of the loop.
     */
    void (*kick)(struct front *f);
    /* Commands to a device's worker, hooks for the tests' sake. They do nothing when it has none:
     * what it must know is told to the next one when that is ready. */
    void (*buffer_create)(struct front *f, struct buffer *b);
    void (*buffer_free)(struct front *f, struct buffer *b);
    void (*buffer_meta)(struct front *f, struct buffer *b);
    void (*arena_drop)(const struct device *d, const struct arena *a);
    /* The module is needed on a device: builds, loads, then kicks. */
    void (*module_need)(struct front *f, struct module *m, struct device *d);
    void (*module_build_done)(struct front *f, struct build *b, const struct compile_response *r);
    /* It was loaded somewhere, or was not. */
    void (*module_settled)(struct front *f, struct module *m);
    /* See command_job. */
    int (*job_send)(struct front *f, struct job *j, const struct hazard_preds *preds,
                    struct err *e);
    void (*job_cancel)(struct front *f, struct job *j); /* its worker ends it if it has not begun */
    void (*job_retire)(struct front *f, struct job *j);
    /* Its staging memory goes to others: the next front is to know. */
    void (*job_outputs_gone)(struct front *f, struct job *j);
    /* End a device's worker; `culprit` (may be NULL) is the job that is to blame. */
    void (*worker_end)(struct front *f, struct device *d, struct job *culprit, const char *why);
    /* Has the channel to its worker so much to take that what can wait has to? NULL: never. */
    bool (*pressed)(const struct device *d);
    /* The settings were read again. */
    void (*settings_changed)(struct front *f);
    /* There is one more: what is divided among all is divided anew. */
    void (*device_added)(struct front *f);
    /* A device changed between serving and not. */
    void (*device_changed)(struct front *f, struct device *d);
    /* It is absent or stuck: nothing waits for it any longer. */
    void (*device_given_up)(struct front *f, struct device *d);
    /* What a worker told; the stages behind take it from there. */
    void (*worker_lost)(struct front *f, struct device *d, bool external, const char *why);
    void (*worker_done)(struct front *f, struct device *d, const struct msg_w_done *m);
    void (*worker_buffer)(struct front *f, struct device *d, const struct msg_w_buffer *m);
    /* The descriptor (-1: none came) is the receiver's. */
    void (*worker_exported)(struct front *f, struct device *d, const struct msg_w_exported *m,
                            int fd);
    void (*worker_arena)(struct front *f, const struct device *d, const struct msg_w_arena *m);
    void (*worker_module)(struct front *f, struct device *d, const struct msg_w_module *m);
    void (*worker_tenant)(struct front *f, struct device *d, const struct msg_w_tenant *m);
    void (*worker_tenant_refused)(struct front *f, struct device *d,
                                  const struct msg_w_tenant_refused *m);
    void (*worker_ready)(struct front *f, struct device *d);
    /* Its pool is there: it hears what tenants may have. False: the device cannot serve so. */
    bool (*worker_opened)(struct front *f, struct device *d);
    /* The worker of a device that could not has ended. */
    void (*guarantees_retry)(struct front *f);
    /* How many devices its back end has was told, and that this one does not open now. */
    void (*worker_siblings)(struct front *f, struct device *d);
    void (*worker_absent)(struct front *f, struct device *d, const struct err *e);
    /* What an adopted worker holds. The descriptor (-1 or a host copy) is the receiver's. */
    int (*held_buffer)(struct front *f, struct device *d, const struct msg_w_held_buffer *m, int fd,
                       struct err *e);
    void (*held_module)(struct front *f, struct device *d, const struct msg_w_held_module *m);
    void (*held_job)(struct front *f, struct device *d, const struct msg_w_held_job *m);
    void (*held_end)(struct front *f, struct device *d);
    /* There are notices for sessions: those that wait for events hear of them. */
    void (*sessions_tell)(struct front *f);
    /* A picture of its pool. The descriptor (-1: none) is the receiver's. */
    void (*picture)(struct front *f, struct device *d, const struct msg_w_picture *m, int fd);
};

struct front_counters {
    uint64_t submitted, done, failed, cancelled, lost, refused, deduplicated, replayed;
};

/* The time of a turn: what comes together is stamped alike, and the clock is read once. */
struct turn_clock {
    unsigned looks;  /* left until it is read again */
    bool runs;       /* a turn is under way; outside of one each look is at the clock */
    uint64_t now_ns; /* as it was read last */
};

#define TURN_UNITS 4096u              /* at most 1 ms */
#define TURN_SHARE (TURN_UNITS / 16u) /* of each that gives the loop work, see turn_allow */
#define TURN_LOOKS 32u                /* in a long turn time does not stand still */

/* How far the walk to the jobs behind one that did not run has come; conclude.c's. */
struct leaving_walk {
    bool begun;
    unsigned use;     /* of the job's */
    struct spans bad; /* what it would have written, and nobody behind it has so far */
};

/*
 * Work that can be long is cut in units: a step of a walk, a buffer that is let go of. What a turn
 * of the loop has no units left for is done in the next one, and others' requests run between.
 * A request counts for each element that it visits. One request is bounded by its own limits;
 * those of a turn together by its units, but for the last of them.
 */
struct turn_work {
    uint64_t budget; /* units that may be `done` now; 0: no limit */
    uint64_t done;   /* in this turn */
    uint64_t most;   /* in any turn; `longest_turn` of gpuctl status */
};

struct front {
    uv_loop_t *loop;
    struct config config;
    char settings_bad[ERR_TEXT_MAX]; /* what is wrong with the files of settings, which do not count
                                        therefore; "": nothing that is known */
    struct rights rights;
    struct tenant_rules rules; /* of tenants, as the settings have them */
    /* Reads all settings anew, as at the start: files, then the command line. */
    int (*read_settings)(void *data, struct config *ret_config, struct err *e);
    void *settings_data;
    struct reload *reload; /* owned, reload.c's; NULL: there was none */
    const char *build;
    uint8_t daemon_id[PROTO_CLIENT_ID_BYTES];
    uint64_t started_ns;
    struct front_hooks hooks;

    struct listener *listener;
    struct shm *shm; /* NULL: not listening */
    struct lanes *lanes;
    struct processes *processes; /* of sessions; NULL: nobody tells when one ends */
    struct launcher_link *launcher;
    uint32_t worker_uid; /* kernels run as this user, which gets no session; 0: none */
    struct compiler *compiler;
    struct monitor *monitor; /* owned; NULL before the start */

    struct tenant *tenants;   /* uthash by key */
    struct session *sessions; /* uthash by key */
    struct session *by_pipe;  /* uthash of those with a connection */
    struct session *ending;   /* those whose end began, oldest first; in no table */
    struct look *looks;       /* tables that take several turns, oldest first; look.c's */
    struct session *sweeping; /* whose answers are being forgotten; sweep.c's */
    struct parking parked;
    unsigned session_count;
    struct spare spare_jobs; /* of struct job */
    struct spare spare_ops;  /* of struct op */
    uint64_t next_session;
    struct buffer *metas;    /* their descriptions go to their workers; command.c's */
    struct agenda lingering; /* buffers that nobody holds: when they go */
    struct agenda deadlines; /* of jobs that were queued */
    struct agenda standings; /* sessions: when one that lingers ends, or a WAIT */
    struct idmap buffers;
    struct idmap arenas;
    struct idmap programs;
    struct idmap modules;
    struct idmap kernels;
    struct kernel *builtin_kernels; /* of these; uthash by name */
    struct module *builtin[BUILTIN_MODULES_MAX];
    unsigned builtin_count;

    struct device *device[DEVICES_MAX]; /* owned */
    unsigned device_count;
    uint64_t next_worker;

    struct picture_set *pictures; /* newest first */
    unsigned picture_count;
    uint64_t next_picture;

    struct job *jobs; /* uthash by id: unfinished, and the history */
    uint64_t next_job;
    uint64_t input_bytes;    /* of unfinished jobs */
    unsigned job_count;      /* unfinished */
    unsigned adopted_arenas; /* of them, adopted ones that use arenas */
    unsigned queued_count;   /* of them, not given to a worker */
    struct heap ready;       /* jobs that are not bound to a device; queue.c's */
    struct job *module_jobs; /* that wait for a kernel; queue.c's */
    unsigned module_count;   /* of these, */
    unsigned module_offers;  /* and so many of the first are to be offered again */
    struct hazards hazards;
    struct job *leaving; /* ended, and in the way of others still; oldest first */
    struct job *leaving_tail;
    struct leaving_walk leaving_walk; /* of the first of them */
    struct job *history;              /* oldest first */
    struct job *history_tail;
    unsigned history_count;
    unsigned kept_count; /* out of the history, but their answer was not taken yet */

    uv_check_t kick_check; /* runs what was kicked, once a turn */
    uv_idle_t kick_idle;   /* keeps the loop from sleeping before that */
    bool kicked;
    uv_timer_t timer; /* the one; see due.h */
    uv_prepare_t arm; /* sets it, once a turn */
    uv_signal_t sigterm, sigint, sighup, sigusr1;

    bool listed; /* the launcher has told which workers run already */
    bool ready_told;
    bool draining;
    bool stopping;
    bool exit_after_drain;
    bool handing_over;  /* ends, and launcher and workers stay for the next front */
    bool launcher_lost; /* and not replaced yet */
    bool supervised;    /* the launcher is a unit of its own */
    int exit_code;
    struct turn_clock clock;
    struct turn_work work;
    uint64_t due_ns;      /* when the clock is to be looked at, NS_NEVER */
    uint64_t armed_ns;    /* for when the timer is set */
    uint64_t house_ns;    /* when statistics may be asked for again */
    uint64_t forget_ns;   /* when tenants are looked at that nobody may need, 0: none */
    uint64_t room_ns;     /* when that may be done again for one who is to have room */
    bool crowded;         /* then there was little: ended jobs keep tenants no longer */
    uint64_t watchdog_ns; /* when the service manager is to hear of us, NS_NEVER */
    uint64_t starting_ns; /* when it is to hear that the start goes on, while it does */
    uint64_t drain_until_ns;
    uint64_t drained_ns; /* since when no job is unfinished while draining; 0: not */
    struct front_counters count;
    const struct device *trouble_of; /* whose worker ended last, NULL: none did */
    char trouble[ERR_TEXT_MAX];      /* or what else went wrong last */
};

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

/* What comes next gets so many units of its own in this turn, whatever was done before it: of
 * sockets, rings, workers, the clock, and what was put off, none holds up the others. */
static inline void turn_allow(struct front *f, uint64_t units)
{
    f->work.budget = f->work.done + units;
}

/* Is there room for another piece of work in this turn, however long it is? */
static inline bool turn_has_room(const struct front *f)
{
    return f->work.budget == 0 || f->work.done < f->work.budget;
}

/* May so much more be done in this turn? Counts it. false: the next turn goes on, which is asked
 * for here. */
static inline bool turn_take(struct front *f, uint64_t units)
{
    if (f->work.budget > 0 && f->work.done + units > f->work.budget) {
        f->hooks.kick(f);
        return false;
    }
    f->work.done += units;
    return true;
}

/* What time it is, for all that happens in one turn. */
static inline uint64_t turn_now(struct front *f)
{
    struct turn_clock *c = &f->clock;
    if (!c->runs || c->looks == 0) {
        c->now_ns = clock_now_ns();
        c->looks = TURN_LOOKS;
    }
    c->looks--;
    return c->now_ns;
}

#define PRESSED_NS (5 * NS_PER_MS) /* until a channel is looked at again */

/* A full channel is no fault: what can wait does until the worker has caught up. */
static inline bool front_pressed(struct front *f, unsigned device)
{
    if (f->hooks.pressed == NULL || !f->hooks.pressed(f->device[device])) {
        return false;
    }
    uint64_t at_ns = ns_add(turn_now(f), PRESSED_NS);
    f->due_ns = at_ns < f->due_ns ? at_ns : f->due_ns;
    return true;
}

#endif
