/*
 * Jobs on the client's side: a SUBMIT request, and what became of it.
 *
 * A job ends by RESULTS (a held one), by a result in EVENTS, or by an error. It lives until it has
 * ended and the user has given it up.
 *
 * Thread: under the client's lock. Nothing blocks but a callback of the user's. Waiting is in
 * job_wait.h.
 */
#ifndef CLIENT_SESSION_JOB_H
#define CLIENT_SESSION_JOB_H

#include "client/src/session/arena.h"

/* Host memory that a job's output is copied to. */
struct sink {
    uint32_t step;
    uint32_t arg;
    void *data; /* the user's */
    size_t bytes;
};

/* An output where its elements can be read in place: a message aligns nothing. */
struct aligned {
    struct aligned *next;
    uint32_t step;
    uint32_t arg;
    void *data; /* owned */
};

struct gpud_job {
    struct request req;         /* first */
    struct gpud_client *client; /* NULL: it was closed */
    struct gpud_job *prev;      /* in client->jobs */
    struct gpud_job *next;
    struct gpud_job *bucket_next;
    struct gpud_job *queue_prev; /* in client->ended */
    struct gpud_job *queue_next;
    struct job_list *queue;
    uint64_t id;    /* the daemon's, 0: not known */
    uint64_t order; /* counts the client's jobs */
    bool held;
    bool quiet;        /* answered when it has ended only: its id is asked for */
    struct find *find; /* that question, not answered yet */
    bool ended;
    bool released; /* the user has given it up */
    bool lent;     /* the client has its `early` */
    struct early *early;
    struct err error;
    struct message *reply; /* what `result` lies in; NULL: none */
    struct proto_result result;
    struct sink *sinks; /* owned */
    size_t sink_count;
    struct host_use *uses; /* owned */
    unsigned use_count;
    bool unsure;             /* it ended without the daemon's word */
    struct aligned *aligned; /* owned */
    gpud_done_cb done;
    void *user;
};

/* The options as far as the caller knows them, zeros behind. INVALID. */
int submit_options_read(const gpud_submit_options *given, gpud_submit_options *ret_options,
                        struct err *e);
/* Sends a job. msg: complete but for flags and the options' fields; its lists may go when this
 * returns. sinks: copied. uses: the job's from then on, also on failure; NULL: none. Does not
 * block. */
int job_start(struct gpud_client *c, struct msg_submit *msg, const struct sink *sinks,
              size_t sink_count, const struct host_uses *uses, const gpud_submit_options *options,
              struct gpud_job **ret_job, struct err *e);
void job_release(struct gpud_client *c, struct gpud_job *job);
void job_abandon(struct gpud_job *job); /* frees one whose client is gone */
/* The bytes of an output, aligned for any element; they belong to the job. NOT_FOUND, NOMEM. */
int job_output_aligned(struct gpud_job *job, uint32_t step, uint32_t arg, struct bytes *ret_data,
                       struct err *e);
/* The bytes of an output where they lie in the message; false if there is none. */
bool job_output(const struct gpud_job *job, uint32_t step, uint32_t arg, struct bytes *ret_data);

/* Asks for the id of one that is quiet and on its way; job->id is set when the answer is there, and
 * stays 0 if the question came before the job. */
int job_find(struct gpud_client *c, struct gpud_job *job, struct err *e);

/* Ends one that the daemon does not have, with CANCELLED; false: it may have it. */
bool job_cancel_here(struct gpud_client *c, struct gpud_job *job);

/* From EVENTS. `m` holds the result. */
void job_result(struct gpud_client *c, const struct proto_result *result, struct message *m);

/* Another daemon: its numbers are others, or are told again. */
void jobs_forget_ids(struct gpud_client *c);
/* The client goes: jobs stay for their owners. */
void jobs_finish(struct gpud_client *c);
/* Runs one done callback (without the lock); false if none is due. */
bool job_callback_run(struct gpud_client *c);

#endif
