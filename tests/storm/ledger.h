/*
 * The memory that the processes of a storm share: what the clients did and saw, the clock of quiet
 * time, the answers of the probes. Thread: any process; each member says which of them writes.
 */
#ifndef STORM_LEDGER_H
#define STORM_LEDGER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define CLIENTS     16u
#define CODES       48u /* more than there are GPUD_ERR_* */
#define DEVICES     2u  /* at most */
#define BROKEN_MAX  64u
#define BROKEN_TEXT 320u

/* What clients do. */
#define DEEDS(X)                                                                                   \
    X(CALL, "call")                                                                                \
    X(ASYNC, "async")                                                                              \
    X(COUNTER, "counter")                                                                          \
    X(PROGRAM, "program")                                                                          \
    X(ARENA, "arena")                                                                              \
    X(SEALED, "sealed")                                                                            \
    X(SHARED, "shared")                                                                            \
    X(TRANSFER, "transfer")                                                                        \
    X(MODULE, "module")                                                                            \
    X(DETACHED, "detached")                                                                        \
    X(LEAVE, "leave")
enum deed {
#define X(name, text) DEED_##name,
    DEEDS(X)
#undef X
        DEED_COUNT
};

/* Kinds of broken promises; each must have no entry. */
#define BREACHES(X)                                                                                \
    X(WRONG, "wrong results")                                                                      \
    X(LOST, "acknowledged jobs lost")                                                              \
    X(DOUBLED, "doubled effects")                                                                  \
    X(HANG, "hangs")                                                                               \
    X(UNEXPECTED, "errors that no mishap explains")                                                \
    X(CRASH, "processes that ended by themselves")                                                 \
    X(LEAK, "descriptors or memory left behind")
enum breach {
#define X(name, text) BREACH_##name,
    BREACHES(X)
#undef X
        BREACH_COUNT
};

/* Processes of the daemon. */
#define VICTIMS(X)                                                                                 \
    X(WORKER, "worker")                                                                            \
    X(FRONT, "front")                                                                              \
    X(LAUNCHER, "launcher")                                                                        \
    X(COMPILER, "compiler")                                                                        \
    X(PREPARED, "prepared worker")
enum victim {
#define X(name, text) VICTIM_##name,
    VICTIMS(X)
#undef X
        VICTIM_COUNT
};

enum probe_kind { PROBE_FRONT, PROBE_COMPILER, PROBE_DEVICE, PROBE_COUNT = PROBE_DEVICE + DEVICES };

struct probe_result {
    _Atomic uint64_t begin_ns; /* of the last answer; written first, so a reader takes it last */
    _Atomic uint64_t end_ns;
    _Atomic uint64_t count;
};

struct tally {
    _Atomic uint64_t done;
    _Atomic uint64_t failed[CODES]; /* by code */
};

struct place {                 /* where a client is */
    _Atomic uint64_t serial;   /* of the call; 0: in none */
    _Atomic uint64_t quiet_ns; /* the clock when the call began */
    _Atomic(const char *) call;
    _Atomic unsigned deed;
};

struct ledger {
    _Atomic bool stop;                       /* clients finish */
    _Atomic uint64_t quiet_ns;               /* time without mishaps: of the storm's process */
    _Atomic uint64_t hang_ns[DEED_COUNT];    /* a call that takes longer in quiet time hangs */
    _Atomic uint64_t longest_ns[DEED_COUNT]; /* call in quiet time so far */
    _Atomic uint64_t harmed[VICTIM_COUNT];   /* mishaps of each kind, counted before they happen */
    _Atomic uint64_t active[VICTIM_COUNT];   /* mishaps that are not over */
    _Atomic uint64_t mishap_ns;              /* when a mishap was undone last, or a kill happened */
    _Atomic uint64_t shared[CLIENTS];        /* newest published buffer of each client, 0: none */
    _Atomic uint64_t breaches[BREACH_COUNT];
    _Atomic uint64_t jobs, sessions;
    _Atomic uint64_t events[16]; /* by kind */
    struct tally tally[DEED_COUNT];
    struct place place[CLIENTS];
    struct probe_result probe[PROBE_COUNT];
    char log[96]; /* of the daemon: broken promises and mishaps are written there, too */
    _Atomic uint64_t broken_count;
    char broken[BROKEN_MAX][BROKEN_TEXT];
};

/* Shared with the children of this process; ends with the last of them. NULL: no memory. */
struct ledger *ledger_create(void);
/* Counts a broken promise and keeps the text of the first ones. */
void ledger_break(struct ledger *l, enum breach breach, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A line in the daemon's log, so that the course can be read in one place. */
void ledger_log(const struct ledger *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const char *deed_name(enum deed deed);
const char *breach_name(enum breach breach);
const char *victim_name(enum victim victim);

#endif
