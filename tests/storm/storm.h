/*
 * A storm: the daemon, its clients, its probes and the mishaps, driven by one process. Functions
 * fail the running Check test where the storm itself cannot go on; broken promises go to the
 * ledger. Thread: one.
 */
#ifndef STORM_STORM_H
#define STORM_STORM_H

#include "tests/sim/chance.h"
#include "tests/storm/ledger.h"
#include "tests/storm/probe.h"
#include "tests/storm/usage.h"
#include "tests/system/harness/harness.h"

#define MISHAPS_AT_ONCE 4u
#define RECOVERIES_MAX  8192u
#define FAMINES_MAX     1024u
#define CACHE_BYTES     "24m"

/* What befalls the daemon. SAFE: front and launcher stay the same processes. */
#define MISHAPS(X)                                                                                 \
    X(KILL_WORKER, "kill worker", 8, true)                                                         \
    X(KILL_FRONT, "kill front", 5, false)                                                          \
    X(RESTART_FRONT, "restart front", 3, false)                                                    \
    X(KILL_LAUNCHER, "kill launcher", 2, false)                                                    \
    X(KILL_COMPILER, "kill compiler", 3, true)                                                     \
    X(KILL_ALL, "kill front and launcher", 1, false)                                               \
    X(STOP_WORKER, "stop worker", 3, true)                                                         \
    X(STOP_FRONT, "stop front", 3, true)                                                           \
    X(STOP_LAUNCHER, "stop launcher", 2, true)                                                     \
    X(STOP_COMPILER, "stop compiler", 1, true)                                                     \
    X(RELOAD, "reload", 4, true)                                                                   \
    X(BAD_RELOAD, "reload of bad settings", 1, true)                                               \
    X(FULL_DISK, "full disk", 2, true)                                                             \
    X(FAMINE_FRONT, "front out of descriptors", 2, true)                                           \
    X(FAMINE_WORKER, "worker out of descriptors", 2, true)                                         \
    X(SILENT, "silent client", 3, true)                                                            \
    X(HALF, "half a message", 3, true)                                                             \
    X(GREEDY, "client that takes no answers", 3, true)                                             \
    X(KILL_PREPARED, "kill prepared worker", 4, true)
enum mishap_kind {
#define X(name, text, weight, safe) MISHAP_##name,
    MISHAPS(X)
#undef X
        MISHAP_COUNT
};

enum mishap_state { MISHAP_FREE, MISHAP_GOES_ON, MISHAP_RECOVERS };

struct mishap {
    enum mishap_state state;
    enum mishap_kind kind;
    uint64_t began_ns, end_ns; /* end_ns: when it is undone; then: when it was */
    pid_t pid;                 /* of its process, 0: none */
    int fd;                    /* of its client, -1: none */
    bool renewed;              /* the launcher: another one runs */
    unsigned harms[VICTIM_COUNT];
};

struct storm {
    struct ledger *l;
    struct daemon d;
    struct chance chance; /* of the mishaps */
    uint64_t seed;
    bool compiles; /* the device loads kernels */
    bool own_disk; /* the cache lies on a file system of its own */
    unsigned devices;
    unsigned seconds;
    char config[DAEMON_PATH + 16], cache[DAEMON_PATH + 16];
    struct heap_page *heap; /* mapped for good; NULL: not asked */
    char args[2][2 * DAEMON_PATH];
    pid_t client[CLIENTS];
    pid_t probe[PROBE_COUNT];
    pid_t launcher;
    bool front_explained; /* its end was ours */
    bool front_misreads;  /* it may read bad settings when it begins, and end */
    bool settings_bad;    /* a front that begins now ends */
    uint64_t front_begin_ns, front_end_ns;
    bool only_safe;
    const char *only; /* kind of mishap; NULL: all */
    bool probes_gone; /* recoveries are not measured any more */
    struct mishap mishap[MISHAPS_AT_ONCE];
    uint64_t next_ns;  /* mishap */
    uint64_t every_ns; /* between two; 0: as the seed has it */
    uint64_t tick_ns;
    uint64_t happened[MISHAP_COUNT];
    pid_t starved[FAMINES_MAX]; /* workers that were out of descriptors */
    unsigned starved_count;
    unsigned driver_ends;                            /* lines of the log about aborts of a driver */
    uint64_t recovery[VICTIM_COUNT][RECOVERIES_MAX]; /* ns */
    unsigned recoveries[VICTIM_COUNT];
    uint64_t places[CLIENTS]; /* the call of a client that was reported as hanging */
    bool witnessed;           /* what gpuctl tells of the first hang is in the log */
};

/* ---- people.c: processes ------------------------------------------------------------------ */

void storm_clients_start(struct storm *s);
/* Asks for their end and waits, while the storm ticks. */
void storm_clients_stop(struct storm *s);
/* Children that ended, the front's next process, the clock of quiet time, hanging calls. */
void storm_tick(struct storm *s);
pid_t storm_victim(struct storm *s, enum victim victim, uint64_t choice); /* 0: none */

/* ---- mishaps.c ---------------------------------------------------------------------------- */

const char *mishap_name(enum mishap_kind kind);
bool mishap_exists(const char *name);
/* Begins and ends mishaps as the seed has it; `go` false: none begins. */
void mishaps_turn(struct storm *s, bool go);
bool mishaps_quiet(const struct storm *s);
void config_write(const struct storm *s, const char *text);

/* ---- report.c ----------------------------------------------------------------------------- */

void report_all(struct storm *s);
void report_drift(struct storm *s, const char *what, const struct usage *before,
                  const struct usage *after, bool same_process);

#endif
