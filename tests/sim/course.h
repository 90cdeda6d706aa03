/*
 * The course of a world: its parameters, and what happens in it from outside, with times. All else
 * follows from it. A course comes from a seed, or from a text (tests/sim/seeds), and can lose
 * events and still be played. Thread: any.
 */
#ifndef TEST_SIM_COURSE_H
#define TEST_SIM_COURSE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* name, least, most: what a text may say. A time ends in _ms. */
#define COURSE_PARAMS(X)                                                                           \
    X(devices, 1, 64)                                                                              \
    X(clients, 1, 1000)                                                                            \
    X(tenants, 1, 1000)                                                                            \
    X(streams, 1, 16)                                                                              \
    X(urgent, 0, 15)           /* of the streams */                                                \
    X(memory_kib, 1, 1u << 30) /* of a device */                                                   \
    X(window, 0, 4096)                                                                             \
    X(time_limit_ms, 100, 60000)                                                                   \
    X(linger_ms, 100, 600000)                                                                      \
    X(queue_max, 1, 65536)                                                                         \
    X(inflight_max, 1, 65536)                                                                      \
    X(staging_kib, 1, 65536)                                                                       \
    X(kept_bytes, 1024, 1u << 30)                                                                  \
    X(buffers_max, 1, 65536)                                                                       \
    X(beat_ms, 500, 60000)  /* between signs of life of a worker */                                \
    X(run_us, 10, 10000000) /* usual time of a job */                                              \
    X(compile_ms, 1, 60000)                                                                        \
    X(wire_us, 0, 1000000)      /* longest time of a message on its way */                         \
    X(faults, 0, 100)           /* percent of jobs that do not end as they should */               \
    X(reads, 0, 1)              /* 1: clients acknowledge and fetch results */                     \
    X(pauses, 0, 100)           /* percent of jobs that wait between two of their kernels */       \
    X(message_kib, 1, 1u << 30) /* kept for the sessions of a tenant */                            \
    X(arrays, 0, 100)           /* percent of steps with shared memory, in client_sim */           \
    X(rings, 0, 100)            /* percent of lives that ask for ring lanes, in client_sim */      \
    X(flight, 0, 65536)         /* jobs of a tenant in flight; 0: no limit */                      \
    X(rate_kib, 0, 65536)       /* KiB a second that a tenant transfers; 0: no limit */            \
    X(sockets, 0, 1)            /* 1: clients come by two sockets, with equal ids and users */     \
    X(tokens, 0, 1)             /* 1: clients come from other hosts, with tokens of two tenants */ \
    X(places, 0, 64)     /* for workers of single tenants; 0: as the number of clients says */     \
    X(slow, 0, 100)      /* percent of recalls and copies that take seconds, or have no answer */  \
    X(divided, 0, 1)     /* 1: devices are instances of one GPU; a process sees one */             \
    X(automatic, 0, 1)   /* 1: the front chooses the back end, and has none of the first */        \
    X(guaranteed, 0, 40) /* percent of a device, to each tenant with a socket or tokens */         \
    X(spread, 0, 90)     /* percent of buffers that name a device, beyond 10 */                    \
    X(special, 0, 15)    /* enum course_world */                                                   \
    X(roles, 0, 1)       /* 1: tenants differ in their rights, and ask for more than those */      \
    X(watch, 0, 1)       /* 1: what jobs do is recorded, and logged */                             \
    X(aim, 0, 100)       /* percent of ends of workers that come while a job runs */               \
    X(scarce, 0, 64)     /* allocations in a row that fail behind the first, at most */            \
    X(stalls, 0, 100)    /* percent of standstills of the front that another one follows */

/* What a world has more of than others, so that it comes to limits that the usual ones do not see.
 * Its own kinds of events are those from COURSE_USUAL on. */
enum course_world {
    WORLD_USUAL,
    WORLD_HELD,     /* a monitor, and drivers that ask for a recovery of their devices */
    WORLD_TURNS,    /* many requests arrive while the front stands still */
    WORLD_UNREAD,   /* clients acknowledge thousands of answers at once, at the end */
    WORLD_HOARD,    /* thousands of buffers, which are lost together */
    WORLD_PAUSED,   /* kernels that never end beside jobs that pause between two of theirs */
    WORLD_BARE,     /* jobs without buffers, which any device may run; large arguments */
    WORLD_HOLIDAY,  /* tenants without sessions leave buffers that are lost */
    WORLD_SEALS,    /* few descriptors, and many sealed buffers */
    WORLD_HOSTILE,  /* one client has all mishaps; another has small jobs, and waits */
    WORLD_LARGE,    /* as many devices and tenants as there may be */
    WORLD_DOMAINS,  /* tenants with workers of their own, which end and idle */
    WORLD_DUE,      /* jobs of known times with deadlines, some of which cannot be met */
    WORLD_SHARES,   /* tenants with weights and classes, which always have jobs, or none */
    WORLD_RIVALS,   /* the same, with workers of their own, which take turns */
    WORLD_OVERRUNS, /* and with kernels that do not end, and workers that hang */
    COURSE_WORLDS,
};

struct course_params {
#define X(name, least, most) uint64_t name;
    COURSE_PARAMS(X)
#undef X
};

/* What happens. kind, name, weight of 1000, whether its actor is a device (else a client). */
#define COURSE_EVENTS(X)                                                                           \
    X(ASK, "ask", 760, false)        /* a numbered request */                                      \
    X(INQUIRE, "inquire", 60, false) /* a request without a number */                              \
    X(AGAIN, "again", 20, false)     /* sends an unanswered request a second time */               \
    X(BREAK, "break", 24, false)     /* its connection breaks, and it comes back */                \
    X(MOVE, "move", 8, false)        /* comes back before the end of its connection is seen */     \
    X(LEAVE, "leave", 4, false)      /* ends without a word */                                     \
    X(BYE, "bye", 3, false)          /* ends its session, and begins another */                    \
    X(DIE, "die", 10, true)          /* the worker ends */                                         \
    X(HANG, "hang", 5, true)         /* the worker is silent from now on */                        \
    X(DEAF, "deaf", 2, true)      /* the worker hangs in the driver: not even a signal ends it */  \
    X(CUT, "cut", 2, true)        /* the worker closes its channel */                              \
    X(LIE, "lie", 12, true)       /* a frame that the worker must not send */                      \
    X(REPEAT, "repeat", 10, true) /* the worker says its last frame once more */                   \
    X(REFUSE, "refuse", 6, true)  /* the worker refuses its next order */                          \
    X(PRESS, "press", 6, true)    /* the channel to the worker is full for a while */              \
    X(ABSENT, "absent", 2, true)  /* the next worker finds no device */                            \
    X(UNSTARTED, "unstarted", 4, true) /* the next worker does not start */                        \
    X(COMPILE, "compile", 6, false)    /* the next compilation fails */                            \
    X(CONTROL, "control", 12, false)   /* an administrator's request */                            \
    X(HANDOVER, "handover", 6, false)  /* the front hands over to another */                       \
    X(CRASH, "crash", 6, false)        /* the front ends at once; another follows */               \
    X(STALL, "stall", 8, false)        /* the front stands still */                                \
    X(LAUNCHER, "launcher", 3, false)  /* the launcher ends, and all workers with it */            \
    X(NOMEM, "nomem", 20, false)       /* an allocation of the front fails soon */                 \
    X(PAUSE, "pause", 1, false)        /* nothing happens */                                       \
    X(CROWD, "crowd", 6, false)        /* many requests at once */                                 \
    X(GUILT, "guilt", 10, false)       /* a job whose kernel ends workers */                       \
    X(MUTE, "mute", 4, false)          /* the client takes no answers any more */                  \
    X(FORGE, "forge", 6, true)         /* the worker's next inventory is wrong */                  \
    X(SLOW, "slow", 4, true)           /* the worker's next inventory comes late */                \
    X(SHUFFLE, "shuffle", 3, true)     /* the worker reports ends of jobs late, in any order */    \
    X(SKEW, "skew", 3, true)           /* the worker's clock jumps */                              \
    X(DARK, "dark", 1, true)           /* all workers end, and the next find no device */          \
    X(FALL, "fall", 6, false)       /* the front ends at once, and workers before the next one */  \
    X(RECOVER, "recover", 0, true)  /* its driver asks for a recovery, or does so no more */       \
    X(BLIND, "blind", 0, false)     /* the monitor hangs or ends */                                \
    X(CHATTER, "chatter", 0, false) /* thousands of small requests */                              \
    X(HEAP, "heap", 0, false)       /* hundreds of buffers */                                      \
    X(LOOK, "look", 0, false)       /* asks for the state of many buffers */                       \
    X(BARE, "bare", 0, false)       /* a job without buffers */                                    \
    X(HOLIDAY, "holiday", 0, false) /* ends its session, and comes back long after */              \
    X(SEAL, "seal", 0, false)       /* makes and seals a buffer */                                 \
    X(HONEST, "honest", 0, false)   /* the other client's job, if it has none */                   \
    X(RUSH, "rush", 0, false)       /* all ask much, and the front stands still meanwhile */       \
    X(FLOOD, "flood", 0, false)     /* hundreds of jobs that take their time */                    \
    X(DUE, "due", 0, false)         /* some jobs with deadlines */                                 \
    X(ROTATE, "rotate", 0, false)   /* a tenant gets another token by a reload */                  \
    X(REMOVE, "remove", 0, false) /* a reload takes a tenant's section away, or brings it back */  \
    X(TRICK, "trick", 0, false)   /* a HELLO with no token, a wrong one, or an id of others */     \
    X(DRAIN, "drain", 0, true)    /* an operator drains the device */                              \
    X(RESUME, "resume", 0, true)  /* and ends that */                                              \
    X(LOAD, "load", 0, false)     /* a tenant keeps more jobs, fewer or none on their way */       \
    X(REWEIGH, "reweigh", 0, false)   /* a reload changes weights of tenants */                    \
    X(SETTINGS, "settings", 0, false) /* a reload changes whom to trust, or places for workers */  \
    X(MEDDLE, "meddle", 0, false)     /* a request that may be refused to this client */           \
    X(VISIT, "visit", 0, false)       /* jobs that are cancelled while they wait, and come again */

enum course_kind {
#define X(KIND, name, weight, device) COURSE_##KIND,
    COURSE_EVENTS(X)
#undef X
        COURSE_KINDS,
    COURSE_USUAL = COURSE_RECOVER, /* the kinds of usual worlds are below it */
};

struct course_event {
    uint64_t at_us; /* from the begin of the world */
    enum course_kind kind;
    unsigned actor; /* number of a client or device */
    uint64_t r;     /* its random numbers follow from this */
};

struct course {
    uint64_t seed;
    struct course_params params;
    struct course_event *event; /* owned, by time */
    unsigned count;
};

void course_make(uint64_t seed, struct course *ret_plan);
/* How many events, and how much time is between two of them, mostly. */
struct course_pace {
    uint64_t usual_us;
    unsigned events;
    bool steady; /* no long pauses */
};
/* course_worlds.c: the world of this seed, if it is a special one: changes what usual ones have. */
void course_special(uint64_t seed, struct course_params *p, unsigned weight[COURSE_KINDS],
                    struct course_pace *pace);
/* course_lone.c: adds what comes at the end, when nothing else happens. */
void course_lone(uint64_t seed, struct course *p);
void course_finish(struct course *p);
void course_copy(const struct course *p, struct course *ret_plan);
void course_write(const struct course *p, FILE *out);
/* false: the text is no course; says why on stderr. */
bool course_read(FILE *in, struct course *ret_plan);
const char *course_kind_name(enum course_kind kind);
bool course_of_device(enum course_kind kind);

#endif
