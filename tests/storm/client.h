/*
 * A client of the storm: a process with one session at a time, which does random deeds and checks
 * every result against what it knows itself. It never ends a deed with a Check assertion: what it
 * finds goes to the ledger. Thread: one.
 */
#ifndef STORM_CLIENT_H
#define STORM_CLIENT_H

#include <gpud/gpud.h>

#include "tests/sim/chance.h"
#include "tests/storm/ledger.h"

#define ITEMS_MAX   4096u
#define TASKS_MAX   8u
#define SEALED_MAX  4u
#define COUNT_ITEMS 64u
#define ARENA_ITEMS 32768u
/* A call that takes longer fails with TIMEOUT, which no mishap explains. */
#define CLIENT_PATIENCE (UINT64_C(240) * 1000000000)

struct mark { /* the mishaps before something began */
    uint64_t harmed[VICTIM_COUNT];
    bool within[VICTIM_COUNT]; /* one was under way: its effect may come later */
};

struct sealed {
    gpud_buffer buffer; /* id 0: none */
    uint32_t count;
    uint32_t first; /* content: first, first + 1, … */
    struct mark mark;
};

struct client {
    struct ledger *l;
    unsigned index;
    bool modules; /* the device loads kernels */
    const char *url;
    struct chance chance;
    uint64_t serial; /* of names */
    enum deed deed;
    /* of the session */
    gpud_client *c;
    gpud_kernel axpy, add;
    gpud_buffer counter;
    struct mark counter_mark;
    uint64_t low, high; /* what the counter may show */
    bool tainted;       /* a job may have left it undefined */
    char failed[256];   /* how its jobs failed since it was made */
    gpud_program *program;
    float *arena;
    float arena_value;
    struct sealed sealed[SEALED_MAX];
    gpud_buffer shared;
};

/* One job of several that a deed sends. */
struct task {
    gpud_job *job;
    unsigned answers;
    int code;
    int effects;
    bool acknowledged; /* it had a number before its end */
    float value;
    float x[ITEMS_MAX], y[ITEMS_MAX];
};

/* Runs until the ledger says stop; for process_start. */
struct client_start {
    struct ledger *l;
    const char *url;
    unsigned index;
    uint64_t seed;
    bool modules;
};
int client_work(void *data);

/* ---- for the deeds ------------------------------------------------------------------------ */

/* A session and its kernels; false: there is none, which the ledger knows. */
bool client_begin(struct client *k);
/* Closes the session and forgets what was its own. */
void client_end(struct client *k);
/* Around each call that blocks: a call that takes too long in quiet time is a hang. */
void call_begin(struct client *k, const char *call);
void call_end(struct client *k);
#define CALL(k, name, expression) (call_begin((k), (name)), call_result((k), (expression)))
int call_result(struct client *k, int code);

/* Counts the result of a deed's step. `codes`, ended by 0, are the errors that a caller has to
 * expect; others break a promise. Returns whether the code is 0. */
bool expect(struct client *k, int code, const char *what, const int *codes);
extern const int expect_pure[];     /* a request that holds nothing in a worker */
extern const int expect_resident[]; /* one that needs a resident buffer */
extern const int expect_arena[];    /* one that adds in place to memory of the client */
struct mark mark_now(const struct client *k);
/* Whether a worker may have ended since: it, the front or the launcher had a mishap. */
bool harmed_worker(const struct client *k, const struct mark *m);
bool harmed(const struct client *k, const struct mark *m, enum victim victim);
/* Front and worker both: what the front keeps for a worker may be gone with both. */
bool harmed_both(const struct client *k, const struct mark *m);

void task_prepare(struct task *t);
void task_options(struct task *t, gpud_submit_options *o);
/* Waits; 0, or its error, which is counted. `answers` must be 1 then. */
int task_finish(struct client *k, struct task *t, const int *codes);

void deed_call(struct client *k);
void deed_async(struct client *k);
void deed_counter(struct client *k);
void deed_program(struct client *k);
void deed_arena(struct client *k);
void deed_sealed(struct client *k);
void deed_shared(struct client *k);
void deed_transfer(struct client *k);
void deed_module(struct client *k);
void deed_detached(struct client *k);
void deed_leave(struct client *k);

#endif
