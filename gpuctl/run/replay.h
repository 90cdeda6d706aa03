/*
 * `gpuctl replay`: runs a recording (recording.h) against a daemon, and compares. The file is read
 * twice. The first reading checks all lines and collects what has to be known before: modules and
 * programs, how jobs ended, and which sessions share buffers, because those become one client. The
 * second one makes buffers and submits jobs, in the order of the file and at its times.
 *
 * Results can be compared only if all data that led to them is the recorded data. So each buffer
 * has `known`, which the jobs that write it change (replay_follow.c).
 *
 * Thread: one; callbacks of jobs run while it waits.
 */
#ifndef GPUCTL_RUN_REPLAY_H
#define GPUCTL_RUN_REPLAY_H

#include <uthash.h>

#include "gpuctl/run/dumped.h"
#include "gpuctl/run/recording.h"

#define REPLAY_CLIENTS 64u /* sessions of the recording share them */
#define REPLAY_SHOWN   5u  /* differences that are shown */

/* The item of a table with this key; NULL: there is none. */
#define REPLAY_FIND(table, key, ret) HASH_FIND(hh, table, key, sizeof *(key), ret)

struct replay;

/* A block of memory that the daemon shares, of 1 << order bytes. */
struct replay_block {
    void *data; /* key; the client's */
    unsigned order;
    struct replay_block *next; /* of the free ones */
    UT_hash_handle hh;
};

struct replay_client {
    struct dumped_source source; /* first member: `take` finds the client */
    struct replay *replay;
    gpud_client *client;
    struct replay_block *blocks; /* all, owned; by data */
    struct replay_block *spare[64];
    struct dumped *idle; /* owned; for the next job; NULL: none */
    uint64_t flying;     /* jobs that have not ended */
    uint64_t most;       /* of them */
    uint64_t host_most, inline_most;
};

/* A session of the recording. Sessions with a common root are one client. */
struct replay_session {
    uint64_t id; /* key */
    struct replay_session *root;
    struct replay_client *client; /* of a root; NULL: none yet */
    UT_hash_handle hh;
};

struct replay_module {
    uint64_t handle; /* key */
    json_t *root;    /* owned: its line */
    uint64_t line;
    gpud_module module[REPLAY_CLIENTS]; /* id 0: not loaded there */
    UT_hash_handle hh;
};

struct replay_program {
    uint64_t handle; /* key */
    json_t *root;    /* owned: its line */
    uint64_t line;
    struct dumped *built; /* owned; NULL: not yet */
    UT_hash_handle hh;
};

struct replay_buffer {
    uint64_t handle; /* key */
    struct replay_session *session;
    struct replay_client *client;
    gpud_buffer buffer; /* id 0: it is not there (yet) */
    gpud_shape shape;
    bool known;
    bool unfit; /* a variable of a module */
    UT_hash_handle hh;
};

struct replay_result {
    uint64_t arena, offset;
    uint32_t step, arg;
    char hash[33];
};

/* How a job ended when it was recorded. */
struct replay_end {
    uint64_t job; /* key */
    char state[16];
    char error[24];
    bool began;
    uint64_t queued_ns, executed_ns;
    struct replay_result *result; /* owned */
    uint32_t result_count;
    UT_hash_handle hh;
};

/* A job that runs. */
struct replay_job {
    struct replay *replay;
    struct replay_client *client;
    struct dumped *d; /* owned */
    json_t *root;     /* owned: its line */
    const struct replay_program *program;
    const struct replay_end *end; /* NULL: the recording does not have its end */
    uint64_t id, line;
    bool known; /* its results can be compared */
};

struct replay_times {
    uint64_t *ns; /* owned */
    size_t count, room;
};

struct replay_counts {
    uint64_t jobs; /* submitted */
    uint64_t same; /* ended as recorded, with the same results */
    uint64_t differing;
    uint64_t uncompared; /* their end is not in the file, or was not theirs: cancelled, lost */
    uint64_t left_out;   /* cancelled before they began, or with variables of modules */
    uint64_t results, same_results;
    uint64_t unknown_results; /* the recording lacks data that led to them */
    uint64_t lost;            /* lines that the recording lacks */
    uint64_t late_ns;         /* the most that a job was submitted late */
};

struct replay_options {
    const char *file;
    double speed; /* 0: as fast as possible */
    uint64_t jobs;
    uint64_t device; /* GPUD_ON(id); 0: as recorded */
    uint64_t seed;
};

struct replay {
    struct ctl *ctl;
    struct replay_options options;
    struct recording recording;
    struct replay_client client[REPLAY_CLIENTS];
    uint32_t clients;
    uint32_t devices;                /* of the daemon */
    struct replay_session *sessions; /* owned, as the next four */
    struct replay_module *modules;
    struct replay_program *programs;
    struct replay_buffer *buffers;
    struct replay_end *ends;
    struct replay_counts count;
    struct replay_times recorded, replayed;
    uint64_t begin_ns, end_ns; /* of the second reading */
    uint64_t last_ns;          /* at_ns of the last job that was read */
    uint64_t first_ns;
    bool failed; /* in a callback: out of memory */
};

/* ---- what lines define (replay_data.c) ---- */

/* The first reading of a line. */
int replay_learn(struct replay *r, enum recording_line line, json_t *root, struct ctl_err *e);
/* Gives each session its client, opens the clients, and loads the modules. Blocks. */
int replay_open(struct replay *r, struct ctl_err *e);
struct replay_session *replay_session(struct replay *r, uint64_t id); /* NULL: no memory */
struct replay_session *replay_root(struct replay_session *s);
/* Makes the buffer of a line, and frees it. */
int replay_make(struct replay *r, const json_t *root, struct ctl_err *e);
int replay_drop(struct replay *r, const json_t *root, struct ctl_err *e);
/* Calls `visit` for each argument of the job's steps and for its values, until it fails. step:
 * UINT32_MAX for a value. */
typedef int (*replay_visit)(void *user, const json_t *arg, const json_t *step, uint32_t number,
                            uint32_t index, struct ctl_err *e);
int replay_args(const json_t *steps, const json_t *values, replay_visit visit, void *user,
                struct ctl_err *e);
/* Memory for a job of the client, or what an earlier one gave back. NULL: there is none. */
struct dumped *replay_dumped(struct replay_client *c);
/* The steps of a job, or those of its program; p NULL: it has none. */
const json_t *replay_steps(const json_t *root, const struct replay_program *p);
/* A member that recording.c has checked; 0 or "": it is not there. */
uint64_t replay_number(const json_t *o, const char *name);
const char *replay_text(const json_t *o, const char *name);
int replay_no_memory(struct ctl_err *e);
/* What a job needed goes back to its client. */
void replay_give_back(struct replay_client *c, struct dumped *d);
void replay_forget(struct replay *r);

/* ---- jobs (replay_bind.c, replay_follow.c) ---- */

/* Gives the job its buffers and modules. *ret_fits: they are all there. */
int replay_bind(struct replay *r, struct replay_job *j, bool *ret_fits, struct ctl_err *e);
/* Follows what the job reads and writes: sets j->known, and `known` of its buffers. good: it ended
 * well when it was recorded. */
void replay_follow(struct replay *r, struct replay_job *j, bool good);

/* ---- waiting (replay_wait.c) ---- */

int replay_interrupted(struct ctl_err *e);
/* Runs callbacks until the time, at least once; or while *flying is above `most`. Blocks. */
int replay_wait_for(struct replay *r, uint64_t until_ns, const uint64_t *flying, uint64_t most,
                    struct ctl_err *e);
/* Waits for the end of one job of the client. Blocks. */
int replay_wait(struct replay_client *c, struct ctl_err *e);

/* ---- the run (replay_run.c) ---- */

/* Both readings. Blocks. */
int replay_run(struct replay *r, struct ctl_err *e);

/* ---- what came of it (replay_report.c) ---- */

/* Compares a job that has ended. */
void replay_compare(struct replay_job *j, gpud_job *job, int code);
/* Writes the result. Returns EXIT_DIFFERS, said, if a job differs. */
int replay_report(struct replay *r, struct ctl_err *e);

#endif
