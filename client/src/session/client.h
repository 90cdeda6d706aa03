/*
 * What the files of libgpud share: the client and its lock. The files of wire/ do not know it.
 *
 * Lock: one mutex per client. Functions that take a `struct gpud_client *` here run under it unless
 * they say otherwise; callbacks of the user never do.
 */
#ifndef CLIENT_SESSION_CLIENT_H
#define CLIENT_SESSION_CLIENT_H

#include <pthread.h>
#include <sys/types.h>

#include "client/include/gpud/gpud.h"
#include "client/src/session/lane.h"
#include "client/src/session/session.h"
#include "client/src/wire/origin.h"
#include "client/src/wire/request.h"
#include "common/idmap.h"

struct waiter;
struct gpud_job;

#define JOB_BUCKETS 256

struct job_list {
    struct gpud_job *first;
    struct gpud_job *last;
};

/* A notice that the user's callback has not seen yet. */
struct event {
    struct event *next;
    int kind;
    gpud_buffer buffer;
    char text[256];
};

struct gpud_client {
    pthread_mutex_t lock;
    struct origin origin; /* the process that opened it */
    struct address address;
    uint64_t timeout_ns;
    uint64_t reconnect_ns;

    struct conn conn;
    struct requests requests;
    struct session session;
    struct lane lane;

    /* waiting: one thread at a time watches the connection, the others wait for it */
    struct waiter *waiters;
    bool leading;
    struct waiter *leader; /* who does; NULL: nobody */
    unsigned glances;
    bool closing;

    /* objects: public handle → struct; see handles.h */
    struct idmap buffers;
    struct idmap kernels;
    struct idmap modules;
    struct object *objects; /* all that is restored after a restart */
    uint64_t given_up;      /* the least of these objects' freed_seq; 0: there is none */
    struct arena **arenas;  /* owned array; not owned: objects. By address. */
    unsigned arena_count;
    unsigned arena_room;
    uint64_t stage_after_ns; /* staging memory was refused: not asked for before */
    uint64_t stage_making;   /* bytes of staging memory that is under way */
    uint64_t stage_wish;     /* bytes of an array that found no staging memory; 0: none did */

    struct gpud_program *programs; /* all that exist */
    struct gpud_job *jobs;         /* all that exist */
    uint64_t jobs_live;            /* not ended */
    uint64_t jobs_made;
    struct gpud_job *bucket[JOB_BUCKETS]; /* accepted ones by the daemon's number */
    struct early *early;                  /* for results that come before their ACCEPTED */
    struct job_list ended;                /* whose done callback has not run */

    gpud_event_cb event_cb;
    void *event_user;
    struct event *event_first;
    struct event *event_last;
};

/* The deadline of a blocking call that starts now: a function of the user's that blocks in several
 * places takes one for all of them. */
uint64_t client_deadline(const struct gpud_client *c);
/* In `patience_ns` from now, but not behind the deadline. */
uint64_t client_sooner(uint64_t deadline_ns, uint64_t patience_ns);

/* Makes `rc` and `e` this thread's last error if rc is a failure. Returns rc. No lock needed. */
int error_report(int rc, const struct err *e);
void error_restore(const gpud_error *kept);
void error_fill(gpud_error *ret_error, const struct err *e);

/*
 * Blocks until ready(arg) or the deadline (ERR_TIMEOUT). Gives the lock up while it waits. Answers
 * are taken by whichever thread watches the connection.
 */
int client_wait(struct gpud_client *c, bool (*ready)(void *arg), void *arg, uint64_t deadline_ns,
                struct err *e);
/* Takes what has arrived, without blocking; from the socket only if it is ready. */
void client_process(struct gpud_client *c, bool socket);
/* The same, and wakes those whose wait is over by it. */
void client_poll(struct gpud_client *c);
/* The same for one who is about to wait: at times only what costs no system call. */
void client_glance(struct gpud_client *c);
/* Before a request that nobody waits for: takes answers if many are due. They would fill the way
 * back, and the daemon closes connections that let its answers lie. */
void client_make_room(struct gpud_client *c);
/* Runs the callbacks that are due; gives the lock up while they run. */
void client_callbacks(struct gpud_client *c);
/* Notes an event for the user's callback. */
void client_event(struct gpud_client *c, int kind, gpud_buffer buffer, const char *text);
/* Sets the descriptors' timer and readiness to what is pending. */
void client_arm(struct gpud_client *c);

/* A request that its caller waits for. `flags` below. ret_reply: decoded as `reply`, lies in
 * *ret_message, which the caller unrefs (both untouched on failure). An ERROR reply is the error.
 */
enum call_flag { CALL_PLAIN = 0, CALL_SEQUENCED = 1 };
int client_call(struct gpud_client *c, const struct schema *request, void *msg,
                enum call_flag flags, const struct schema *reply, void *ret_reply,
                struct message **ret_message, struct err *e);
/* The same with the deadline of a function that has blocked before. */
int client_call_until(struct gpud_client *c, uint64_t deadline_ns, const struct schema *request,
                      void *msg, enum call_flag flags, const struct schema *reply, void *ret_reply,
                      struct message **ret_message, struct err *e);
/* For a caller that needs nothing but success. reply: DONE or BUFFER. */
int client_call_done(struct gpud_client *c, const struct schema *request, void *msg,
                     enum call_flag flags, const struct schema *reply, struct err *e);
/* Sends a sequenced request whose answer nobody needs. */
int client_post(struct gpud_client *c, const struct schema *request, void *msg, uint64_t *ret_seq,
                struct err *e);

/* The same with the answer as it came, which may be an ERROR. */
int client_exchange(struct gpud_client *c, const struct schema *request, void *msg,
                    enum call_flag flags, struct message **ret_message, struct err *e);
/* A request that is answered by TABLE. */
int table_call(struct gpud_client *c, const struct schema *request, void *msg,
               gpud_table **ret_table, struct err *e);

/* Copies text into out[size], cut where it does not fit. */
void text_copy(char *out, size_t size, struct bytes text);
/* A text that only tells people something, as the daemon takes it: bytes that are no UTF-8 become
 * '?', in `room`. One that is too long stays as it is. */
struct bytes text_mended(struct bytes text, char room[PROTO_LABEL_MAX]);
/* What served a job's operations, of its TIMING records; see gpud_job_times. */
void timings_served_by(struct proto_list timings, char *out, size_t size);
/* Copies the caller's struct back as far as the caller knows it: its `size` member stays. */
int desc_return(void *ret_desc, const void *desc, size_t size, struct err *e);

#endif
