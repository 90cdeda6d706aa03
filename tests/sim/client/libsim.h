/*
 * Worlds whose clients are libgpud itself. The files of this folder take the place of the
 * simulated clients (sim_client.c, sim_ask.c, sim_answer.c), and of sim_alloc.c.
 *
 *   users    a fiber each, which calls libgpud      users.c, acts.c, jobs.c, arrays.c
 *   system   what libgpud asks of the system:
 *            sockets, epoll, timers, the clock      system.c
 *   wires    connections: bytes both ways, and the
 *            front's side of them                   wires.c, rings.c, seen.c
 *   memory   allocations that fail, of the front
 *            and of libgpud; what is left           memory.c
 *
 * libgpud is linked once more, as a shared library whose calls of the system go to system.c and
 * memory.c (--wrap). It is otherwise the same, and does not know that it is simulated.
 *
 * Thread: one. Times are virtual and in ns.
 */
#ifndef TEST_SIM_CLIENT_LIBSIM_H
#define TEST_SIM_CLIENT_LIBSIM_H

#include <gpud/gpud.h>

#include "proto/sp.h"
#include "tests/sim/client/fiber.h"
#include "tests/sim/front/sim.h"

#define USERS_MAX   12u
#define ACTS_MAX    128u /* that wait for their user */
#define SAID_MAX    6u   /* ends of a job that fronts said */
#define KERNELS_MAX 8u
#define LOSSES_MAX  256u
#define ARRAYS_MAX  4u
#define SLACK_NS    (NS_PER_S / 2) /* by which a call may exceed its time */

struct user;

/* ---- connections ----------------------------------------------------------------------------- */

/* A connection, until the end of the world. */
struct wire {
    struct user *user;
    uint32_t pipe;
    int fd; /* libgpud's; -1: it has closed it */
    uint64_t era;
    bool served;      /* the front's side is open */
    bool cut;         /* bytes under way are lost */
    bool told;        /* the front knows that it ended, or will */
    bool ended;       /* libgpud has got the end of the stream */
    uint64_t life;    /* of the user */
    uint64_t session; /* that the front gave it; 0: none */
    uint64_t there_ns, back_ns;
    struct sp_reader reader;
    struct wire *next;
};

/* libgpud connects. NULL: no front listens. */
struct wire *wire_open(struct user *u, int fd);
/* libgpud sends bytes. */
void wire_send(struct wire *w, struct bytes data);
/* libgpud closes its socket. */
void wire_closed(struct wire *w);
/* The connection breaks. lost: bytes under way are lost; quiet: the front sees it much later. */
void wire_break(struct wire *w, bool lost, bool quiet);
void wires_free(struct sim *s);
/* The front takes a request out of the session's ring, or answers it there. */
void wire_take_ring(struct sim *s, uint64_t session, uint32_t id, struct bytes message);
void wire_answer_ring(struct sim *s, uint64_t session, uint32_t id, struct bytes message);
void rings_begin(struct sim *s);

/* ---- the system ------------------------------------------------------------------------------ */

void system_begin(struct sim *s);
/* Nothing of libgpud is left: descriptors. */
void system_end(struct sim *s);
/* Bytes, or the end of the stream, come to a socket of libgpud. error: instead of the end; 0. */
void system_arrives(int fd, struct bytes data);
void system_ends(int fd, int error);
void system_rung(void);    /* the front has rung a bell */
bool system_ready(int fd); /* as poll(POLLIN) says of a descriptor of libgpud */

/* ---- memory ---------------------------------------------------------------------------------- */

void memory_begin(void); /* another world */
/* The code that runs is libgpud's, for this user; NULL: it is not. */
void memory_of(struct user *u);
/* The allocation of libgpud after `left` others, for this user, fails; 0: none does. */
void memory_fail_user(struct user *u, long left);
size_t memory_left(const struct user *u); /* allocations that this user's libgpud has */

/* ---- users ----------------------------------------------------------------------------------- */

/* A job that a user submitted. */
struct lib_job {
    struct sim_job *j;
    struct user *user;
    gpud_job *job; /* NULL: a call that blocks has it */
    uint64_t number;
    bool label;          /* it has its number as a label */
    bool blocks;         /* it is a call that blocks */
    bool runs;           /* gpud_run has it */
    bool bound;          /* a request of it was seen */
    bool twin;           /* which may be that of another call, which asked for the same */
    bool over;           /* libgpud has said its end */
    bool began_before;   /* in a session that is over */
    bool renewed;        /* such a session may have got it */
    bool released;       /* its user has freed it before its end */
    bool done_wanted;    /* has a callback */
    unsigned done_calls; /* of the callback */
    int done_code;
    int code; /* as libgpud said it */
    struct {
        int code;
        unsigned effects;
    } said[SAID_MAX]; /* by fronts */
    unsigned said_count;
    uint32_t host[SIM_STEPS][SIM_CONTENT / 4]; /* arrays of its own */
    uint32_t *at[SIM_STEPS]; /* arrays of its steps: its own or shared ones; NULL: it was freed */
    struct lib_job *next;
};

enum act_kind { ACT_EVENT, ACT_LOOK, ACT_LEAVE, ACT_BYE, ACT_RESUME, ACT_CANCEL };

struct act {
    enum act_kind kind;
    enum course_kind event;
    uint64_t r;
    struct sim_buffer *buffer;
    struct sim_job *job;
};

/* A number of a session, and the request that came with it. */
struct number {
    struct sim_request *q; /* NULL: none came */
    bool got;              /* an answer came back to libgpud */
    uint64_t has_era;      /* the front that admitted it, or may; 0: none */
    uint64_t content_era;  /* front that got it with this content */
    struct hash content;
};

/* A piece of memory that is shared with the daemon. */
struct array {
    uint32_t *memory;    /* libgpud's; NULL: none */
    struct lib_job *job; /* has it; NULL: none */
    bool doubtful;       /* the daemon may still run a job that had it */
};

struct user {
    struct sim *s;
    struct sim_client *c;
    unsigned index;
    struct fiber *fiber;
    gpud_client *lib; /* NULL: none is open */
    const char *call; /* of libgpud, in which the user is; NULL: none */
    uint64_t call_ns;
    bool sleeps;     /* has nothing to do */
    bool poked;      /* will be resumed */
    bool opening;    /* asks for a session, or will */
    bool dying;      /* its process is being killed: no byte leaves it any more */
    bool dispatches; /* its loop waits for gpud_fd */
    bool lacks;      /* a front may not have all of its objects, in this life */
    bool misses;     /* a front has said that one of its buffers is lost, in this life */
    uint64_t mute_until_ns;
    uint64_t until_ns;                 /* when it goes on, if nothing happens; NS_NEVER */
    uint64_t timer_ns;                 /* when the timer of its libgpud fires; NS_NEVER */
    uint64_t wake_ns;                  /* when it will be poked for these; NS_NEVER */
    uint64_t timeout_ns, reconnect_ns; /* 0: libgpud's own */
    struct act act[ACTS_MAX];          /* a ring */
    unsigned act_first, acts;
    gpud_buffer handle[SIM_HANDLES]; /* of c->buffer */
    uint64_t lost[LOSSES_MAX];       /* handles of this life that an event has named as lost */
    unsigned losses;
    gpud_kernel axpy;
    gpud_module module[KERNELS_MAX];
    gpud_kernel kernel[KERNELS_MAX]; /* twist, of each module */
    unsigned bad[KERNELS_MAX];       /* number of its source, from 1; 0: a good one */
    unsigned modules;
    struct array array[ARRAYS_MAX];
    struct lib_job *jobs; /* without an end, newest first */
    unsigned live;
    struct number *number; /* owned; of this life, by number */
    uint64_t numbers;      /* room */
    uint64_t acked;        /* the highest number that it has acknowledged */
    uint64_t down_ns;      /* since when it has no session; 0: it has one */
    bool gave_up;          /* it may have failed its requests in this life */
    struct wire *wires;    /* all */
};

struct user *user_of(const struct sim_client *c);
/* The user that runs. */
struct user *user_now(void);
/* The user looks again at what it waits for. */
void user_poke(struct user *u);
/* Plans when it has to be poked. */
void user_wakes(struct user *u);
/* Stops the user that runs until it is poked, or until then. */
void user_sleep(uint64_t until_ns);

/* Around each call of libgpud. */
void call_begin(struct user *u, const char *name);
/* Returns rc. Reports what all calls must hold. */
int call_end(struct user *u, int rc);
/* A callback of libgpud begins and ends; returns what callback_end takes. */
const char *callback_begin(struct user *u);
void callback_end(struct user *u, const char *call);

#define CALL(u, function, ...) (call_begin(u, #function), call_end(u, function(__VA_ARGS__)))

/* acts.c */
void act_do(struct user *u, const struct act *a);
void acts_forget(struct user *u); /* its session is over */
void act_event(gpud_client *lib, const gpud_event *event, void *user);
/* The user knows that the buffer is lost. */
void buffer_gone(struct user *u, struct sim_buffer *b);
void buffer_forget(struct user *u, unsigned index);

/* jobs.c */
void job_something(struct user *u, struct chance *r);
void job_guilty(struct user *u, struct chance *r);
void job_wait_some(struct user *u, struct chance *r);
void job_flush(struct user *u, uint64_t timeout_ns);
void job_cancel_some(struct user *u, struct chance *r);
void job_cancel_it(struct user *u, struct sim_job *j);
void job_look(struct user *u, struct sim_buffer *b);
void jobs_collect(struct user *u, uint64_t timeout_ns); /* takes the ends of all */
/* The client is closed: takes the ends that libgpud gave them. */
void jobs_closed(struct user *u);
void jobs_free(struct sim *s);
/* Connects the request with the job that it carries, if that is known. */
void job_bind(struct user *u, struct sim_request *q, const struct msg_submit *m);
struct lib_job *job_by_request(struct user *u, const struct sim_request *q); /* NULL: none */
struct lib_job *job_by_id(struct user *u, uint64_t id);                      /* NULL: none */
/* One of its buffers was freed by its maker; or that, is lost, or its session is over. */
bool job_names_freed(const struct sim_job *j);
bool job_names_gone(const struct sim_job *j);
/* A front says the end of a job. */
void job_said(struct lib_job *x, int code, unsigned effects);

/* arrays.c: memory of gpud_host_alloc, which jobs use in place. */
/* Allocates or frees some, now and then. */
void arrays_some(struct user *u);
/* Frees memory that a job which has ended may still write, and allocates as much at once. */
void arrays_replace(struct user *u);
/* The job gets a piece of SIM_CONTENT bytes. NULL: none is free, or the job shall have its own. */
uint32_t *array_take(struct lib_job *x);
/* The job has ended. sure: the daemon does not run it any more. */
void arrays_leave(const struct lib_job *x, bool sure);
void arrays_forget(struct user *u); /* its client is closed */

/* seen.c: what requests and answers say. */
struct sim_request *seen_request(struct wire *w, struct bytes message);
void seen_answer(struct sim *s, struct sim_parcel *p, struct bytes message);
/* The answer comes to libgpud. */
void seen_arrival(struct user *u, const struct sim_request *q, struct bytes message);
void seen_forget(struct user *u); /* another life begins */

#endif
