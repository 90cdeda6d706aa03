/*
 * Jobs on the client's side: a SUBMIT request and its result.
 *
 * A job ends with RESULTS (a held job), with a result in EVENTS, or with an error. Its struct lives
 * until it has ended and the user has freed it.
 *
 * Thread: under the client's lock. Only the user's callbacks can block. Waiting is in job_wait.h.
 */
#ifndef CLIENT_OBJECTS_JOB_H
#define CLIENT_OBJECTS_JOB_H

#include "client/src/objects/arena.h"

/* Host memory that a job's output is copied to. */
struct sink {
    uint32_t step;
    uint32_t arg;
    void *data; /* the user's */
    size_t bytes;
};

/* An aligned copy of an output, because outputs in a message are not aligned. */
struct aligned {
    struct aligned *next;
    uint32_t step;
    uint32_t arg;
    void *data; /* owned */
};

/*
 * The life of a job's struct. job.c has the table of steps.
 *
 *   live → ended        the result or an error is there; the user frees the job
 *   live → released     the user gave it up before its end; the end frees the job
 *   ended → released    the user freed it in a forked child; gpud_close frees the memory
 */
enum job_state { JOB_LIVE, JOB_ENDED, JOB_RELEASED };

struct gpud_job {
    struct request req;         /* first */
    struct gpud_client *client; /* NULL: the client was closed */
    struct gpud_job *prev;      /* in client->jobs */
    struct gpud_job *next;
    struct gpud_job *bucket_next;
    struct gpud_job *queue_prev; /* in client->ended */
    struct gpud_job *queue_next;
    struct job_list *queue;
    uint64_t id;    /* the daemon's, 0: not known */
    uint64_t order; /* counts the client's jobs */
    bool held;
    bool quiet;           /* its one answer comes at its end, so its id is requested separately */
    struct find *find;    /* the unanswered request for the id; NULL: none */
    enum job_state state; /* changed by job_step alone */
    bool lent;            /* its `early` is in the client's list */
    struct early *early;
    struct err error;
    struct message *reply; /* owned: the message that `result` points into; NULL: none */
    struct proto_result result;
    struct sink *sinks; /* owned */
    size_t sink_count;
    struct host_use *uses; /* owned */
    unsigned use_count;
    uint64_t lineage;        /* of the daemon that got it first, or again; 0: unknown */
    bool unsure;             /* it ended without an answer: the daemon may still run it */
    bool doubtful;           /* a session that is over got it, and may have run it */
    struct aligned *aligned; /* owned */
    gpud_done_cb done;
    void *user;
};

/* Copies the options of the caller's size, with zeros for newer members. INVALID. */
int submit_options_read(const gpud_submit_options *given, gpud_submit_options *ret_options,
                        struct err *e);
/* Sends a job. msg: complete but for flags and the options' fields; its lists are not needed
 * afterwards. sinks: copied. uses: ended by the job, also on failure; NULL: none. Does not block.
 */
int job_start(struct gpud_client *c, struct msg_submit *msg, const struct sink *sinks,
              size_t sink_count, const struct host_uses *uses, const gpud_submit_options *options,
              struct gpud_job **ret_job, struct err *e);
/* The step has to exist in the table. */
void job_step(struct gpud_job *job, enum job_state to);
void job_release(struct gpud_client *c, struct gpud_job *job);
void job_abandon(struct gpud_job *job); /* frees a job whose client was closed */
/* The bytes of an output, aligned for any element; they belong to the job. NOT_FOUND, NOMEM. */
int job_output_aligned(struct gpud_job *job, uint32_t step, uint32_t arg, struct bytes *ret_data,
                       struct err *e);
/* The bytes of an output in the message, not aligned; false if there is no such output. */
bool job_output(const struct gpud_job *job, uint32_t step, uint32_t arg, struct bytes *ret_data);

/* Requests the id of an unanswered quiet job. The answer sets job->id, which remains 0 if the
 * request overtook the job. */
int job_find(struct gpud_client *c, struct gpud_job *job, struct err *e);

/* Ends a job that the daemon does not have with CANCELLED; false: the daemon may have it. */
bool job_cancel_here(struct gpud_client *c, struct gpud_job *job);

/* Takes a result of EVENTS. `m` is the message that it points into. */
void job_result(struct gpud_client *c, const struct proto_result *result, struct message *m);

/* Forgets the ids of a daemon: another daemon gives new ids, or sends the same ids again. */
void jobs_forget_ids(struct gpud_client *c);
/* What the daemon that answered HELLO knows of the jobs that were sent. */
struct meeting {
    bool other;     /* the daemon or the session is another one */
    bool anew;      /* the session knows nothing of what they have done in the one before */
    bool forgotten; /* the former session may have ended with their answers */
    uint64_t lineage;
};

/* A job that must not run twice is not sent again if a daemon has forgotten it, or the record of it
 * ended with its launcher: it ends with CLOSED, and may have had effects. */
void jobs_meet(struct gpud_client *c, const struct meeting *m);
/* The client closes: jobs remain for their owners. */
void jobs_finish(struct gpud_client *c);
/* Runs one pending done callback (without the lock); false if there is none. */
bool job_callback_run(struct gpud_client *c);

#endif
