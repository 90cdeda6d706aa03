/*
 * A world around the real front, from the decoded request to the links of workers: clients,
 * workers, a launcher, a compiler, files and a clock, in one thread. All that happens follows from
 * the course. sim_run plays a course; a broken rule ends the process (sim_fail).
 *
 *   course      what happens from outside            course.h
 *   agenda    what follows from it, by time        sim_agenda.c
 *   front     the real one, its hooks and its time sim_front.c
 *   clients   sessions, requests, answers          sim_client.c, sim_ask.c
 *   workers   buffers, jobs, frames                sim_worker.c, sim_exec.c
 *   launcher  processes; the compiler              sim_launcher.c
 *   monitor   the health of devices                sim_monitor.c
 *   operator  drains devices                       sim_drain.c
 *   tokens    clients of other hosts               sim_tokens.c, sim_far.c
 *   model     what buffers must contain            rules/sim_model.c
 *   rules     what must hold at every time         rules/
 *
 * Thread: one. Times are virtual and in ns.
 */
#ifndef TEST_SIM_SIM_H
#define TEST_SIM_SIM_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <uthash.h>
#include <uv.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "common/duplex.h"
#include "daemon/front/model/front.h"
#include "daemon/front/settings/tenant_socket.h"
#include "daemon/front/workers/launcher_link.h"
#include "proto/codec.h"
#include "proto/health.h"
#include "tests/sim/chance.h"
#include "tests/sim/course.h"
#include "tests/sim/front/rules/rules.h"
#include "tests/sim/front/sim_drain.h"
#include "tests/sim/front/sim_settings.h"
#include "tests/sim/front/sim_stall.h"
#include "tests/sim/haps.h"
#include "tests/sim/verdict.h"

#define SIM_BEGIN_NS   (1000 * NS_PER_S)
#define SIM_CONTENT    256u /* bytes of a buffer whose content is followed */
#define SIM_STEPS      4u   /* of a job */
#define SIM_STRANGER   999u /* the user of the workers, whose kernels may not connect */
#define SIM_ARENA      4096u
#define SIM_SMALL      64u    /* elements of a small array */
#define SIM_BULK       "bulk" /* a kernel that takes a large argument by value */
#define SIM_BULK_BYTES 96u
#define SIM_SLOTS      (DEVICES_MAX + 512u) /* devices, then tenants with workers of their own */
#define SIM_FOLDER     64u                  /* bytes of a path */
#define SIM_STREAMS    16u                  /* of a device */
#define SIM_COPIES     4096u                /* that the launcher keeps */
#define SIM_ARGS       128u                 /* bytes of a worker's arguments */

struct request;
struct sim;
struct sim_client;
struct sim_job;
struct sim_request;
struct sim_worker;

/* ---- the agenda ------------------------------------------------------------------------------ */

void sim_at(struct sim *s, uint64_t at_ns, void (*run)(struct sim *s, const struct hap *h),
            void *actor, uint64_t a, uint64_t b);
uint64_t sim_next_ns(const struct sim *s); /* NS_NEVER: nothing is planned */
void sim_next(struct sim *s);              /* what is planned next happens */
/* What workers do comes so much later. */
void agenda_delay_workers(struct sim *s, uint64_t ns);

/* ---- buffers and jobs, as clients know them -------------------------------------------------- */

struct sim_buffer {
    uint64_t handle; /* 0: not answered; changed by model_name alone */
    UT_hash_handle hh;
    uint64_t bytes;
    uint64_t era;       /* front that made it */
    uint64_t worker;    /* that had it first */
    uint64_t moved_era; /* front that moved it to the host, as its idle worker was ended; 0: none */
    bool copied;        /* its worker has copied it to the host, and no job has written it since */
    uint64_t alone_era; /* only that front has it, as the launcher ended since; 0: both */
    bool zero;
    bool sealed; /* BUFFER_SEAL was answered */
    uint64_t sealed_era;
    bool sealing;               /* asked for */
    bool known_lost;            /* by a notice or an answer */
    bool freed;                 /* its maker asked for that, or its session ended */
    bool vague;                 /* a job of unknown outcome wrote it: its content may be anything */
    unsigned publishes;         /* requests of its maker to publish it */
    bool published;             /* one of them was answered well */
    bool read_only;             /* published for reading; the only one of them was answered */
    bool parts;                 /* some of its bytes were written without the others */
    bool lied;                  /* its worker lied: it may be lost, or refused, for no reason */
    bool granted;               /* its maker asked for that */
    struct sim_buffer *copy_of; /* a copy that another tenant granted has its content; NULL: none */
    struct sim_client *maker;
    uint8_t value[SIM_CONTENT]; /* sim_model.c's */
    uint8_t state[SIM_CONTENT];
};

struct sim_step {
    unsigned op;                          /* enum proto_op */
    struct sim_buffer *to, *from;         /* to: written (of READ: read) */
    uint64_t to_first, from_first, count; /* elements of 4 bytes */
    bool inout;                           /* LAUNCH: reads `to` as well */
    bool inlined;                         /* LAUNCH: `to` is the job's own: its client gets it */
    bool guarded;                         /* LAUNCH: the client may not write `from` */
    unsigned bad;                         /* LAUNCH: a kernel that ends workers; 0: none */
    bool unknown;                         /* what it writes is not followed */
    uint32_t value;                       /* FILL; each element of WRITE is value + index */
    uint8_t got[SIM_CONTENT];             /* READ: what the client got */
    bool answered;                        /* `got` is valid */
};

enum sim_outcome { OUTCOME_OPEN, OUTCOME_KNOWN, OUTCOME_UNKNOWN };

struct sim_job {
    struct sim_request *request;
    struct sim_client *client;
    struct sim_step step[SIM_STEPS];
    unsigned steps;
    bool async;
    bool writes;          /* outside itself */
    bool loaded;          /* launches a kernel of a loaded module */
    bool guilty;          /* its own kernel ends workers, or never ends */
    bool wrong;           /* the front has to refuse it */
    bool banned;          /* one of its kernels has ended three workers when it is sent */
    uint64_t paused_ns;   /* its tenant is paused until then, as is known when it is sent */
    bool suspect;         /* it was alone in a worker that ended by itself */
    bool overran;         /* it ended as its worker's turn overran */
    bool solo;            /* it began with the device for itself */
    bool lied;            /* its worker lied, or its result was lost: its end is not certain */
    bool cancelled;       /* its client asked for that */
    bool killed;          /* and for the end of its worker */
    bool ended_for;       /* which was ended for that */
    bool stalled;         /* its worker went silent with it */
    bool slept;           /* the front stood still while it ran, and does not know of that */
    bool overslept;       /* and so its worker was ended for its time limit */
    bool blocked;         /* a job beside it never ended, and had all of the device */
    bool vague;           /* its worker lied about it */
    bool last;            /* a last look at a buffer; sim_settle.c's */
    uint64_t refused_era; /* whose front refused it for its deadline; 0: none did */
    bool safe;            /* of the client beside a hostile one: its kernel ends well */
    uint64_t sent_ns, ended_ns; /* its request first; its answer, 0: none */
    int64_t priority;
    unsigned ends; /* of workers, before it was sent */
    uint64_t deadline_ns, limit_ns;
    uint64_t id, id_era; /* as answered; 0: not */
    enum sim_outcome outcome;
    int code;
    unsigned effects;
    unsigned replays;
    unsigned begun;    /* executions that began */
    unsigned external; /* its workers that were ended from outside while they had it */
    unsigned internal; /* by themselves */
    bool adopted;      /* a front ended while a worker had it */
    bool forgotten; /* no record has it, or it is sent again in a session that does not know it */
    uint64_t life;  /* of its client */
    uint64_t r;
    uint64_t run_ns;     /* that it takes on the first device; 0: follows from `r` */
    unsigned flow, kind; /* sim_load.h's; flow: from 1; 0: none */
};

/* ---- clients --------------------------------------------------------------------------------- */

/* What is wrong with a HELLO of a client from another host. */
enum sim_trick {
    TRICK_NONE,
    TRICK_NO_TOKEN,
    TRICK_WRONG, /* a token that no tenant ever had */
    TRICK_THEFT, /* the id of a client of another tenant */
    TRICKS,
};

/* A request of a client, until the end of the world. */
struct sim_request {
    struct sim_client *client;
    uint64_t seq; /* 0: none */
    unsigned kind;
    uint8_t *data; /* owned */
    size_t size;
    bool answered;
    bool dropped; /* its client does not wait for it */
    bool held;    /* too far ahead to be sent */
    unsigned sendings;
    uint64_t answer_era;
    struct hash answer;
    uint64_t sent_era; /* first */
    struct sim_job *job;
    struct sim_buffer *buffer;
    uint64_t what;     /* of a MODULE_LOAD: number of a source whose kernels end workers; 0: none */
    uint64_t asked_ns; /* when it last reached a front */
    unsigned token;    /* of a HELLO: the number of its tenant's token; 0: none */
    enum sim_trick trick;
    const struct sim_client *victim; /* whose id it has; NULL: none's */
    unsigned victim_lives;
    struct sim_request *next; /* all of them */
};

/* A request on its way, over one connection. Its number is the listener's slot. */
struct sim_parcel {
    struct sim_request *request;
    uint32_t pipe;
    uint64_t era;
    bool arrived, over; /* over: answered, or dropped */
    bool lost;          /* with its connection */
};

enum sim_client_state { CLIENT_AWAY, CLIENT_GREETS, CLIENT_ON, CLIENT_GONE };

#define SIM_HANDLES     48u
#define SIM_TWINS       2000u /* tenants with sockets of their own, of which there are two */
#define SIM_FARS        (SIM_TWINS + 2u) /* tenants by token, of which there are SIM_FAR_TENANTS */
#define SIM_FAR_TENANTS 2u
#define SIM_OPEN        8192u /* of a client: unanswered requests; another front may bring some back */
#define SIM_TOKENS      64u /* of a tenant by token, in a world */
#define SIM_TOKEN       32u /* bytes of one */

struct sim_client {
    unsigned index;
    uint32_t uid, gid;
    uint32_t tenant; /* its tenant: its uid, or the first of its section, or SIM_TWINS + the number
                        of its socket, or SIM_FARS + that of its tenant by token */
    unsigned token;  /* the number of the token that it has */
    unsigned shown;  /* and of the one that its connection was admitted with; 0: none */
    enum sim_trick trick;            /* of its next HELLO */
    const struct sim_client *victim; /* whose id that has; NULL: none's */
    uint8_t id[PROTO_CLIENT_ID_BYTES];
    unsigned lives;
    uint64_t last_seq[2]; /* scratch of sim_model.c: number and life of the last job */
    enum sim_client_state state;
    uint32_t pipe;              /* 0: none */
    uint64_t left_ns, left_era; /* when its connection broke */
    uint64_t arrives_ns;        /* its last message, unless it overtakes */
    uint8_t daemon_id[PROTO_CLIENT_ID_BYTES];
    uint64_t session;                   /* its number in the front */
    uint64_t next;                      /* number of its next request */
    struct sim_request *open[SIM_OPEN]; /* unanswered, by number */
    unsigned open_count;
    uint64_t events; /* number of the last EVENTS */
    bool waits;
    bool leaving; /* says BYE when all is answered */
    bool mute;    /* takes no answers */
    bool hasty;   /* asks before its session is there: it acknowledges nothing */
    uint64_t mute_ack;
    bool said_bye;
    bool starved;        /* its libgpud found no memory in this life: an event may be missing */
    uint64_t holiday_ns; /* until it comes back after its next BYE; 0: soon */
    struct sim_buffer *buffer[SIM_HANDLES];
    unsigned buffers;
    uint64_t program[8], module[8], arena[4], kernel[8];
    bool kernel_inout[8];
    unsigned kernel_bad[8]; /* number of its source, from 1; 0: a good one */
    uint64_t kernel_module[8];
    unsigned programs, modules, arenas, kernels;
    struct sim_request *wait;
    uint64_t early[64]; /* buffers that were lost before their answers came */
    unsigned early_count;
    uint64_t axpy;             /* handle of the built-in kernel; 0: not known */
    uint64_t bulk;             /* a kernel with a large argument; 0: none */
    uint64_t bulk_module;      /* its module; UINT64_MAX: it is being loaded */
    struct sim_job *job[2048]; /* asynchronous, without a result */
    struct sim_stray *strays;  /* owned; results that came before the ids of their jobs */
    unsigned jobs;
};

/* Whether it comes by the socket of a tenant: two such clients have one uid, and one client id as
 * long as they began as many lives. */
static inline bool client_twin(const struct sim_client *c)
{
    return c->tenant >= SIM_TWINS && c->tenant < SIM_TWINS + 2;
}

/* Whether it comes from another host, with a token. */
static inline bool client_far(const struct sim_client *c)
{
    return c->tenant >= SIM_FARS && c->tenant < SIM_FARS + SIM_FAR_TENANTS;
}

/* sim_far.c */
/* Its HELLO; `token` is room for what that shows. */
void far_hello(struct sim *s, struct sim_client *c, struct msg_hello *m, char token[SIM_TOKEN]);
void far_sent(struct sim_client *c, struct sim_request *q);
void far_early(struct sim *s, struct sim_client *c); /* asks before its HELLO */
/* true: the session is not the client's, which comes back with its own id. */
bool far_welcome(struct sim *s, struct sim_request *q);
/* true: for its token, with which it comes back later. */
bool far_refused(struct sim *s, const struct sim_request *q, const struct msg_error *m);
void far_event(struct sim *s, struct sim_client *c, enum course_kind kind, struct chance *r);

/* sim_grants.c, in worlds with sockets */
#define SIM_LABEL 16u
void grants_label(const struct sim *s, char out[SIM_LABEL]); /* of the newest buffer; "": none */
void ask_grants(struct sim *s, struct sim_client *c, struct chance *r);
/* The copy that the answer to BUFFER_OPEN with an owner is about. */
struct sim_buffer *grants_opened(struct sim *s, const struct sim_request *q,
                                 const struct msg_buffer *m);

/* As in struct peer. */
static inline uint32_t client_listener(const struct sim_client *c)
{
    return !client_twin(c) ? 0 : tenant_socket_number(c->tenant == SIM_TWINS ? "twin0" : "twin1");
}

void clients_begin(struct sim *s);
void clients_end(struct sim *s);
void client_connect(struct sim *s, struct sim_client *c);
/* The connection breaks. back: the client returns. */
void client_break(struct sim *s, struct sim_client *c, bool back);
void client_event(struct sim *s, const struct course_event *e, struct chance *r);
/* The front answered, or dropped, this parcel. */
void client_answer(struct sim *s, uint64_t parcel, struct bytes message);
void client_drop(struct sim *s, uint64_t parcel);
void client_come_back(struct sim *s, struct sim_client *c, uint64_t in_ns);
void client_closed(struct sim *s, uint32_t pipe); /* by the front */
/* The front takes a request out of the session's ring. */
void client_ring_request(struct sim *s, uint64_t session, const struct request *r);
/* The maker of the buffer frees it soon. */
void client_lets_go(struct sim *s, uint64_t handle);
/* Its content goes to the host, as its worker is to end: its maker may want another one now. */
void client_wants(struct sim *s, uint64_t handle);
/* All clients want something of the device within that time. */
void clients_want(struct sim *s, unsigned device, uint64_t within_ns);
bool client_is_arrival(const struct hap *h); /* of a request, or of the end of a connection */
void client_over(struct sim *s, struct sim_client *c); /* its session is; another follows */
bool client_remembered(const struct sim *s, const struct sim_client *c);
void client_return(struct sim *s, struct sim_client *c); /* one that has gone */
void client_reopen(struct sim_client *c);                /* another front runs */
/* Adds a request and sends it if there is a connection. seq 0 in `msg` stays. */
struct sim_request *client_send(struct sim *s, struct sim_client *c, const struct schema *schema,
                                void *msg);
void client_resend(struct sim *s, struct sim_request *r);
/* Removes a buffer from the client's handles. */
void client_forget(struct sim_client *c, struct sim_buffer *b);
bool client_idle(const struct sim_client *c); /* nothing is unanswered */
uint64_t client_acked(const struct sim *s, const struct sim_client *c);
void strays_drop(struct sim_client *c);
/* sim_answer.c: what an answer means to its client. */
void answer_take(struct sim *s, struct sim_request *r, struct bytes message);

/* sim_ask.c: requests */
uint64_t ask_number(struct sim_client *c);
void ask_encode(struct sim *s, const struct schema *schema, const void *record, struct capbuf *out);
struct sim_job *ask_job(struct sim *s, struct sim_client *c, struct chance *r);
void ask_job_send(struct sim *s, struct sim_job *j, struct msg_submit *m);
/* An array in the request: so many of `data`, which is filled. */
struct proto_arg ask_inline(uint32_t data[SIM_SMALL], uint64_t count);
/* Sends a job with a kernel that ends its worker, or never ends. */
void ask_guilty_send(struct sim *s, struct sim_job *j, const struct capbuf *steps,
                     struct chance *r);
void ask_find(struct sim *s, struct sim_client *c);
void ask_new(struct sim *s, struct sim_client *c, uint64_t elements, bool zero, uint64_t device);
void ask_load_named(struct sim *s, struct sim_client *c, const char *source, unsigned bad);
bool ask_room(const struct sim_client *c); /* for more requests without answers */
void ask_crowd(struct sim *s, struct sim_client *c, struct chance *r);
void ask_guilt_with(struct sim *s, struct sim_client *c, unsigned k, struct chance *r);
void ask_load_bad(struct sim *s, struct sim_client *c, struct chance *r);
#define GUILT_LONG_NS (4 * NS_PER_S) /* of a kernel that ends, and overruns its turn */
/* sim_guilt.c: a launch of a kernel that ends workers. Without such a kernel the client loads some.
 */
void ask_guilt(struct sim *s, struct sim_client *c, struct chance *r);
void ask_cancel_of(struct sim *s, struct sim_job *j, bool kill);
void ask_free(struct sim *s, struct sim_client *c, struct sim_buffer *b);
void ask_something(struct sim *s, struct sim_client *c, struct chance *r);
void ask_unnumbered(struct sim *s, struct sim_client *c, struct chance *r);
void ask_control(struct sim *s, struct sim_client *c, struct chance *r);
void ask_wait(struct sim *s, struct sim_client *c);
void ask_last_look(struct sim *s, struct sim_client *c, struct sim_buffer *b);
void ask_bye(struct sim *s, struct sim_client *c);
/* sim_special.c: what clients do in special worlds */
void special_event(struct sim *s, struct sim_client *c, enum course_kind kind, struct chance *r);
/* A job without buffers. */
struct special_bare {
    bool bulk;
    uint64_t flags, elements, job_class, device; /* elements, device (from 1) 0: any */
    uint64_t run_ns, limit_ns;                   /* of the job, as the next; 0: as of others */
    unsigned flow, kind;
};
struct sim_job *special_bare(struct sim *s, struct sim_client *c, const struct special_bare *how,
                             struct chance *r);
void ask_visit(struct sim *s, struct sim_client *c, struct chance *r); /* sim_visit.c */

/* ---- workers --------------------------------------------------------------------------------- */

struct sim_worker_buffer {
    uint64_t id, size, tenant;
    int copy; /* of a sealed one; -1: none */
    uint8_t content[SIM_CONTENT];
    unsigned readers, writers; /* jobs that run */
    bool freed;                /* when no job uses it any more */
    bool comes;                /* from another device: the worker has yet to answer for it */
};

struct sim_worker_step {
    unsigned op;
    unsigned step; /* of the client's */
    uint64_t stage;
    uint8_t pattern[16];
    unsigned pattern_size;
    unsigned args;
    uint64_t module;
    unsigned after;
    struct {
        unsigned tag, access;
        uint64_t id, offset, size;
    } arg[8];
};

struct sim_worker_job {
    uint64_t id;
    unsigned stream;
    uint64_t after[FRAME_AFTER_MAX];
    unsigned after_count;
    uint64_t deadline_ns;
    struct sim_worker_step *step; /* owned */
    unsigned steps;
    uint8_t *temp[8]; /* owned */
    uint64_t temp_size[8];
    unsigned temps;
    struct sim_job *job; /* NULL: not known */
    enum { WJOB_WAITS, WJOB_RUNS, WJOB_ENDED } state;
    bool cancelled, alone, retired;
    uint64_t era;       /* of the front that sent it */
    bool said;          /* W_STARTED */
    bool paused;        /* it waits between two kernels */
    bool resumed;       /* and did so before */
    bool gave_up;       /* before its turn */
    bool lacks;         /* its worker could not map one of its arenas */
    uint64_t needs;     /* bytes of its worker's lease; 0: not asked yet; UINT64_MAX: not more */
    uint64_t hungry_ns; /* since when it wants to begin */
    bool told;          /* the front knows that it waits */
    bool waited;        /* it did */
    unsigned attempt;
    uint64_t began_ns;
    uint64_t ready_ns;  /* sim_load.c's */
    uint64_t report_ns; /* its end is reported then */
    bool reported;
    int64_t code;
    unsigned effects;
    struct sim_worker_job *next; /* in the order in which they came */
    uint64_t place;              /* in that order */
    UT_hash_handle hh;
};

struct sim_inbox {
    const struct schema *schema;
    uint8_t *data; /* owned */
    size_t size;
    struct frame_fds fds;
    struct sim_job *job; /* of a job's frame; NULL: not known */
    bool alone;          /* that job has to run alone */
    uint64_t sent_ns;
    struct sim_inbox *next;
};

enum sim_worker_state { WORKER_ASKED, WORKER_RUNS, WORKER_GONE };

/* All in bytes, unless stated otherwise. */
struct sim_lease {
    uint64_t limit, most; /* as of the last F_BUDGET; 0: there was none */
    uint64_t held;        /* `limit`, or more while it gives back */
    uint64_t missing;     /* that it cannot give back */
    uint64_t asked;       /* F_BUDGETs so far */
    uint64_t fed_ns;      /* when the last one came */
    uint64_t sent;        /* `limit` of the last F_BUDGET, which may be on its way */
    bool mute;            /* it answers none any more */
    bool owes;            /* a smaller one was sent to it */
    uint64_t recalled_ns; /* when the front sent a smaller one, without an answer; 0: it did not */
};

struct sim_worker {
    uint64_t id;
    struct sim_lease lease;
    unsigned number; /* of its device */
    int pid;
    enum sim_worker_state state;
    int fd[LAUNCHER_WORKER_FDS]; /* the record's is open until the device has another worker */
    bool recorded;               /* it is; the worker has ended */
    struct capbuf device;        /* what the front said of it */
    struct duplex channel;
    bool cut; /* its channel is closed by itself */
    uint8_t *input, *output;
    size_t staging;
    bool killed; /* asked for */
    uint64_t began_ns, killed_ns, ended_ns;
    uint64_t missed_era; /* of a front whose frame it did not get, which ended something in it */
    bool silent;         /* hangs */
    bool starved;        /* silent, as its thread gets no processor, or waits for a disk */
    bool spins;          /* silent, and gets all of a processor */
    bool deaf;           /* no signal ends it */
    bool ready;          /* it has said so */
    bool lied;
    bool taken;       /* it was a spare one, and is a tenant's */
    bool refuses;     /* its next order */
    bool shuffles;    /* reports ends late */
    uint64_t slow_ns; /* until it reads a request for its inventory */
    uint64_t skew_ns; /* of its clock, modulo 2^64 */
    unsigned doom;    /* what happens to it during its next job; 0: nothing */
    uint64_t doom_r;
    unsigned forges;                  /* what its next inventory is wrong in; 0: nothing */
    uint64_t exposed_ns, exposed_era; /* when it sent what the front has to notice; 0: not */
    uint64_t heard_ns;                /* its last frame */
    uint64_t changed_ns;              /* when a job last began or ended to have the device */
    uint64_t ended_for;               /* a job that was to be killed; 0: none */
    uint64_t epoch;                   /* of events that are void after its end */
    struct sim_inbox *inbox, **inbox_end;
    bool inbox_due;
    struct sim_worker_buffer *buffer;
    unsigned buffers, buffers_room;
    uint64_t module[256];
    unsigned modules;
    struct {
        uint64_t id;
        uint8_t *data;
        uint64_t size;
    } arena[64];
    unsigned arenas;
    bool arenas_refused; /* one of them: jobs that name it fail */
    struct {
        uint64_t key, asked, reported;
    } tenant[256];
    unsigned tenants;
    struct sim_worker_job *job, **job_end;
    struct sim_worker_job **live; /* all jobs before it have ended */
    struct sim_worker_job *by_id; /* uthash */
    uint64_t places;
    uint8_t last[1024]; /* its last frame, encoded */
    size_t last_size;
    bool rings_asked;
    uint64_t stream_ns[SIM_STREAMS]; /* when a job of the stream last ended; sim_load.c's */
    bool unread;                     /* the front may have frames to read */
    uint64_t told_era;               /* the front that knows that it has ended; 0: none */
    uint64_t lost_era;               /* the front that it told that its driver is lost; 0: none */
    bool struck;                     /* its end counts as a strike; rules/sim_conduct.c's */
};

struct sim_worker *worker_make(struct sim *s, uint64_t id, unsigned number);
void worker_end_now(struct sim *s, struct sim_worker *x); /* the process is gone */
void worker_drop_record(struct sim_worker *x);
void workers_free(struct sim *s);
/* It begins: opens its device and says that it is ready. */
void worker_begin(struct sim *s, struct sim_worker *x);
/* A frame of the front. */
void worker_take(struct sim *s, struct sim_worker *x, const struct schema *schema, const void *msg,
                 const struct frame_fds *fds);
void worker_send(struct sim *s, struct sim_worker *x, const struct schema *schema, const void *msg,
                 const struct frame_fds *fds);
bool worker_unread(struct sim *s); /* a frame has not reached the front */
void worker_suffers(struct sim *s, struct sim_worker *x, enum course_kind kind, struct chance *r);
/* sim_aim.c: a job begins that takes so long; whether the event waits for the next one. */
void aim_front(struct sim *s); /* at every step */
void aim_begins(struct sim *s, struct sim_worker *x, uint64_t ns);
void aim_writes(struct sim *s, const struct sim_job *j, uint64_t ns); /* it begins */
bool aim_dooms(struct sim *s, const struct course_event *e);          /* true: it comes later */
/* The worker runs a job that does not end. NULL: one that does. */
void aim_endless(struct sim *s, struct sim_worker *x, struct sim_job *j);
/* The worker is silent from now on. */
void aim_hang(struct sim *s, struct sim_worker *x, enum course_kind kind, struct chance *r);
bool aim_takes(const struct sim *s, const struct course_event *e, struct sim_worker *x);
void worker_event(struct sim *s, const struct course_event *e, struct chance *r);
void worker_answer_rings(struct sim *s);
struct sim_worker_buffer *worker_buffer(struct sim_worker *x, uint64_t id);
void worker_drop_buffer(struct sim_worker *x, struct sim_worker_buffer *b);
/* How long a worker takes for the copy of a buffer that it lends, where it is not slow. */
uint64_t worker_lends_ns(const struct sim *s, uint64_t id);
/* Notes which worker has the buffer. */
void buffer_find_worker(struct sim *s, struct sim_buffer *b);
/* Now, if it has not ended. */
uint64_t worker_ended_ns(const struct sim *s, uint64_t id);
struct sim_worker *worker_of_device(struct sim *s, unsigned number); /* that runs; NULL */
/* The slot of a device, or of a tenant's domain there: one worker has it at a time. owner "": none
 */
unsigned worker_slot(struct sim *s, unsigned number, const char *owner);
unsigned worker_slot_of(struct sim *s, const struct device *d);
unsigned worker_hardware(const struct sim *s, unsigned slot);          /* number of the device */
unsigned device_hardware(const struct sim *s, const struct device *d); /* the same; it may have
                                                                          another in the front */
void worker_pin(const struct sim *s, unsigned number, char ret_pin[16]);
/* sim_lie.c: frames that a worker must not send. */
void lie_event(struct sim *s, struct sim_worker *x, struct chance *r);
void lie_again(struct sim *s, struct sim_worker *x);
/* Whether the inventory entry is to be wrong; the entry and its descriptor become so. */
void lie_inventory(struct sim *s, struct sim_worker *x, struct msg_w_inventory_buffer *m,
                   struct frame_fds *fds);
void worker_say_ready(struct sim *s, struct sim_worker *x);
void worker_send_bytes(struct sim *s, struct sim_worker *x, struct bytes frame,
                       const struct frame_fds *fds);
/* sim_exec.c */
void exec_job(struct sim *s, struct sim_worker *x, const struct msg_f_job *m,
              const struct sim_inbox *in);
void exec_more(struct sim *s, struct sim_worker *x); /* starts what may start */
void exec_cancel(struct sim *s, struct sim_worker *x, uint64_t id);
void exec_retire(struct sim *s, struct sim_worker *x, uint64_t id);
void exec_inventory(struct sim *s, struct sim_worker *x);
void exec_free(struct sim_worker_job *j);
void exec_worker_gone(struct sim *s, struct sim_worker *x, bool external);
/* How long the job runs, without pauses. */
uint64_t exec_run_ns(const struct sim *s, const struct sim_job *j, unsigned attempt);
bool exec_busy(const struct sim *s, unsigned device); /* its worker has unfinished jobs */

/* ---- launcher and compiler ------------------------------------------------------------------- */

/* The worker is of another device from now on. */
void launcher_named(struct sim *s, uint64_t id, struct bytes device);
int launcher_asked(struct sim *s, uint64_t id, const char *const *args, struct bytes device,
                   const int *fd, struct err *e);
void launcher_kill_worker(struct sim *s, uint64_t id);
/* Some of the workers end, now. */
void launcher_fall(struct sim *s, struct chance *r);
/* The worker ends with this status of waitpid; the front learns of it. */
void launcher_ends(struct sim *s, struct sim_worker *x, int status, uint64_t in_ns);
void launcher_lists(struct sim *s); /* names all workers to a new front */
void launcher_lost(struct sim *s);  /* the launcher ends, and all workers with it */
/* Copies of buffers that the launcher keeps for the next front. */
void launcher_keep_copy(struct sim *s, uint64_t id, uint64_t worker, int fd);
void launcher_release_copy(struct sim *s, uint64_t id);
/* Without those that the front has released. */
bool launcher_has_copy(const struct sim *s, uint64_t id);
unsigned launcher_copies_kept(const struct sim *s);
void launcher_check_left(struct sim *s); /* it keeps none */
void launcher_finish(struct sim *s);
int channel_open(struct sim *s, struct sim_worker *x); /* the front's end */
void channel_close(struct sim_worker *x);
struct sim_compile {
    void (*done)(void *data, int code, const struct compile_response *response, struct hash key,
                 const struct err *e);
    void *data;
    uint64_t salt;
    bool builtin, over;
    char source[64];
};
int compile_asked(struct sim *s, const struct compiler_request *q,
                  void (*done)(void *, int, const struct compile_response *, struct hash,
                               const struct err *),
                  void *data, struct err *e);
void compiles_drop(struct sim *s); /* the front ends */

/* ---- the monitor ----------------------------------------------------------------------------- */

#define SIM_MONITOR_BIT (UINT64_C(1) << 62) /* of the ids of monitors */

struct sim_monitor {
    uint64_t id;              /* 0: none runs */
    struct health_page *page; /* mapped */
    bool hangs;               /* in a call of the driver, or before the next */
    bool killed, fresh;       /* fresh: it has not reported */
    uint64_t hangs_ns;        /* since when */
    unsigned plight;          /* what happens in its next round; 0: nothing */
    unsigned unstarted;       /* the next ones do not start */
    uint64_t first_ns;        /* when it first reported */
    uint64_t report_ns;       /* when a monitor last reported; 0: none did */
};

int monitor_asked(struct sim *s, uint64_t id, int page);
int monitor_kill(struct sim *s, uint64_t id, struct err *e);
void monitor_drop(struct sim *s); /* its front, or the launcher, has ended */
void monitor_event(struct sim *s, const struct course_event *e, struct chance *r);
void monitor_settle(struct sim *s); /* drivers ask for nothing any more */
void monitor_check(struct sim *s);  /* rules, at every step */
/* The device may be held: not all monitors since have said that its driver asks for nothing. */
bool monitor_holds(const struct sim *s, unsigned number);

/* The front sends a job to the device. */
void monitor_check_job(struct sim *s, unsigned number, uint64_t job);

/* ---- the front ------------------------------------------------------------------------------- */

void front_open(struct sim *s);   /* a new one begins, and asks the launcher */
void front_close(struct sim *s);  /* it ends; what it had of workers is left */
void front_settle(struct sim *s); /* turns of its loop until nothing is left to do */
void front_event(struct sim *s, const struct course_event *e, struct chance *r);
void front_request(struct sim *s, uint64_t parcel);
void front_pipe_closed(struct sim *s, uint32_t pipe);
uint64_t front_due_ns(const struct sim *s);
void front_wakes(struct sim *s);
bool front_alive(const struct sim *s);

/* The settings have changed: writes them, and has the front read them. */
void front_reload(struct sim *s);
/* sim_tokens.c: the tokens of tenants, which settings change */
void tokens_begin(struct sim *s);
void tokens_text(const struct sim *s, unsigned tenant, unsigned token, char ret_text[SIM_TOKEN]);
void tokens_write(const struct sim *s, unsigned tenant); /* the file */
const char *tokens_tenant(unsigned tenant);
bool tokens_there(const struct sim *s, unsigned tenant); /* its section is in the settings */
/* The token may have been valid, or had to be, for a front that judged it then. */
bool tokens_may(const struct sim *s, unsigned tenant, unsigned token, uint64_t at_ns);
bool tokens_must(const struct sim *s, unsigned tenant, unsigned token, uint64_t at_ns);
/* keeps: those that were valid remain so. */
void tokens_rotate(struct sim *s, unsigned tenant, bool keeps);
void tokens_remove(struct sim *s, unsigned tenant); /* or brings it back */
void tokens_settle(struct sim *s);                  /* all sections are there */
void tokens_check(struct sim *s);                   /* rules */

/* sim_memory.c: between memory_inside and memory_outside the code is the front's, in which the
 * allocation after `left` others fails. sim_alloc.c makes it fail, or client/memory.c. */
void memory_reset(void); /* a world begins */
/* The allocation of the front after `left` others fails; 0: none does. tables: those for tables
 * count. */
void memory_fail(long left, bool tables);
void memory_scarce(unsigned more); /* behind that one, so many others fail */
void memory_only(size_t size);     /* and none of another size */
unsigned memory_fails_so_far(void);
bool memory_fails(size_t size); /* an allocation is asked for: does it fail? */
bool memory_here(void);         /* whether it is the thread of the world that asks */
bool memory_failed(void);       /* one has failed in this world */
void memory_inside(void);
void memory_outside(void);

/* ---- the model and the rules ----------------------------------------------------------------- */

struct sim_buffer *model_buffer(struct sim *s);
struct sim_job *model_job(struct sim *s);
struct sim_buffer *model_find(struct sim *s, uint64_t handle);
void model_name(struct sim *s, struct sim_buffer *b, uint64_t handle);
/* After the world: plays all jobs in their order, and compares what clients got. */
void model_check(struct sim *s);
/* Its worker has copied it to the host; copied false: a job writes it, so that copy is void. */
void model_copied(struct sim *s, uint64_t handle, bool copied);
/* What the job writes may hold anything from now on. */
void model_doubt(const struct sim_job *j);
/* The bytes that a launch writes, from all bytes that it reads. */
void model_twist(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size);
void model_free(struct sim *s);

/* Whether it writes a buffer. */
bool step_writes(const struct sim_step *t);

/* ---- the world ------------------------------------------------------------------------------- */

struct sim {
    const struct course *course;
    struct course_params p;
    struct sim_load *load;       /* owned; NULL: no such world */
    struct share_book *book;     /* the same; rules/sim_shares.c's */
    struct charge_book *charges; /* the same; rules/sim_charge.c's */
    FILE *log;                   /* NULL: none */
    uint64_t now_ns;
    bool settling;                     /* the course is over: no more mishaps */
    uint64_t aimed_ns;                 /* when sim_aim.c last had the front end; 0: never */
    const struct course_event *doomed; /* its end that comes with a job; NULL: none */
    struct sim_settings set;
    struct sim_places *places; /* owned; rules/sim_places.c's */
    struct sim_launch {        /* of a device; sim_launches.c's */
        bool waits, leaves;    /* a process waits to replace its worker; that ends */
        char backend[16];
        char args[SIM_ARGS]; /* of its last worker */
    } launch[DEVICES_MAX];
    struct haps agenda;
    uv_loop_t loop;
    char dir[SIM_FOLDER];
    struct front *f;     /* NULL: none runs */
    bool accepts;        /* clients may connect */
    bool closing;        /* the front ends: its answers reach no client */
    uint64_t stalled_ns; /* end of the last time that the front stood still */
    struct sim_stalls stalls;
    uint64_t wakes, woken_ns; /* of the timer at the same time */
    uint64_t era;             /* fronts so far */
    uint64_t launchers;       /* that have ended */
    struct sim_client *client;
    unsigned clients;
    uint32_t pipes;
    struct sim_request *requests;
    struct sim_parcel *parcel; /* from 1 */
    uint64_t parcels, parcels_room;
    const struct sim_parcel *asked; /* what the front takes now; NULL: nothing */
    struct sim_worker **worker;
    unsigned workers;
    struct {
        struct sim_worker *latest;  /* NULL: none was asked for */
        unsigned absent, unstarted; /* the next workers do not open; do not start */
        bool tight; /* its next worker cannot take its first sealed buffer, whose maker frees it */
        unsigned starts; /* since starts_ns, for a second */
        uint64_t starts_ns;
        uint64_t pressed_until_ns;
        bool pinned;       /* a worker has said which device it has */
        bool later;        /* its last worker could not open it, and the next may */
        uint32_t wants;    /* the recovery that its driver asks for; 0: none */
        uint64_t wants_ns; /* since when */
        uint32_t told;     /* what the monitor has last reported of it */
        bool held;         /* the front knows of it, or a former one did */
        uint64_t free_ns;  /* the last report that could not lift a hold */
        bool noted;        /* the front said that it knows it when it last noted a drain */
        bool drained;      /* an operator drains it; sim_drain.c's, as the next */
        uint64_t drained_ns, drain_era, busy_ns, places_ns, copies_ns;
        unsigned drain_jobs; /* that it had when it was last looked at */
    } device[SIM_SLOTS];
    struct { /* of slot DEVICES_MAX + index */
        unsigned number;
        char tenant[PROTO_NAME_MAX + 1];
    } domain[SIM_SLOTS - DEVICES_MAX];
    unsigned domains;
    struct sim_copy {
        uint64_t id, worker;
        int fd;
        uint64_t leaves; /* number of the release that is on its way; 0: none */
        bool left;       /* a release of it is lost, as its front has ended */
    } copy[SIM_COPIES];
    unsigned copies;
    uint64_t releases; /* so far */
    struct sim_monitor monitor;
    struct sim_far {
        bool removed;
        unsigned newest; /* of its tokens, from 1 */
        struct {
            uint64_t from_ns, until_ns; /* NS_NEVER: it is valid */
        } token[SIM_TOKENS];
    } far[SIM_FAR_TENANTS];
    struct sim_arrivals {
        uint64_t *parcel; /* owned */
        size_t first, count, room;
    } arrived, ended; /* requests, and ends of connections, that the loop has yet to take */
    struct sim_compile *compile[4096];
    unsigned compiles;
    unsigned bad_compiles; /* the next ones fail */
    struct sim_buffer **buffer;
    struct sim_buffer *by_handle; /* uthash */
    unsigned buffers;
    struct sim_job **job;
    unsigned jobs;
    /* mishaps that excuse what would else be a fault of the front */
    bool lies; /* a worker lied, so that it was ended */
    struct sim_strikes {
        uint32_t tenant;
        unsigned kernel, count;
        uint64_t era, first_ns, last_ns;
    } strike[256];
    unsigned strikes;
    bool gave_up;        /* a device was absent or stuck */
    bool broke_restore;  /* a worker refused an order */
    bool killed_session; /* an administrator ended one */
    uint64_t steps;
    uint64_t rules_step;       /* of the next look at all */
    uint64_t files;            /* descriptors that the process had before */
    uint64_t submitted_before; /* jobs, as of the last look */
    bool refused_before;
    uint64_t queue_most; /* the largest setting so far */
    uint64_t overdue_ns; /* since when a queued job is past its deadline; 0: none is */
    /* refusals of each user's jobs: the stranger's, root's, and those of the others by number */
    struct sim_crowd {
        uint64_t since_ns, era;
        unsigned count;
    } crowd[2 + SIM_FARS + SIM_FAR_TENANTS - 1000];
    long poor;          /* of the next front this allocation fails; 0: none does */
    size_t poor_size;   /* of those of that size; 0: of all */
    unsigned poor_more; /* and so many behind it */
    uint64_t owed_ns;   /* since when a client that asks for results is owed some; 0: none is */
    uint64_t owed_look_ns;
    uint64_t opened_ns;  /* when the front began */
    uint64_t accepts_ns; /* when clients could connect to it */
    uint64_t closed_ns;  /* when the front before it ended */
    uint64_t awaited_ns; /* since when a job waits for content that is there; 0: none does.
                            rules/sim_waits.c's, as the next */
    struct {
        uint64_t job, since_ns; /* that waits for staging memory which is there; 0: none does */
        unsigned fails;
    } staging;
    struct {
        uint64_t buffer; /* that nothing keeps from moving; 0: none */
        uint64_t since_ns;
        uint64_t moved;        /* buffers that the front has moved */
        uint64_t job, job_era; /* the last one that was looked at, and of which front it is */
        uint64_t looked_ns;    /* when */
    } still;                   /* rules/sim_moves.c's */
    uint64_t idle_ns;          /* since when all is idle, at the end; 0: it is not */
    bool settled;              /* all is over */
    unsigned ends;             /* of workers */
    unsigned hungry;           /* waits for a lease that were announced */
    struct { /* jobs of tenants that have ended, in all fronts; sim_accounts.c's */
        uint64_t device_ns, ends;
        struct sim_ended *ended;                           /* uthash */
        void (*job_ended)(struct front *f, struct job *j); /* the front's own hook */
        bool killed;
    } charged;
};

/* Removes the files of a world that the process has played, or is playing no more. */
void sim_clear(int pid);
/* Plays a course. Returns the time that passed in it, if no rule was broken. */
uint64_t sim_run(const struct course *p, FILE *log);
/* A broken rule: keeps the text for the parent process, and ends this one. */
_Noreturn void sim_fail(struct sim *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void sim_log(struct sim *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Where sim_fail writes; shared memory of the parent. */
extern char *sim_report;

#endif
