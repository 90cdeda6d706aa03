/*
 * Tenants that load devices: worlds in which each client is a tenant of its own, with a section in
 * the settings, and keeps a number of jobs of known times on their way (WORLD_SHARES). In
 * WORLD_RIVALS most of them have workers of their own, and a device takes time to go from one
 * worker to another. rules/sim_shares.c says what each has to get. Thread: the simulation's.
 */
#ifndef TEST_SIM_LOAD_H
#define TEST_SIM_LOAD_H

#include "daemon/front/model/line.h"
#include "tests/sim/front/sim.h"

#define LOAD_CLIENTS 6u
#define LOAD_KINDS   3u
#define LOAD_FLOWS                                                                                 \
    (LOAD_CLIENTS * CLASS_COUNT) /* a class of a client: client * classes + class                  \
                                  */
#define LOAD_JOBS  4000u
#define LOAD_LEAST 8u /* elements of the first kind of job */

struct load_kind {
    double known_ns[DEVICES_MAX]; /* of its jobs, when one was sent last; 0: not known */
    unsigned ended[DEVICES_MAX];  /* since then */
    uint64_t known_era;           /* of the front that knew them */
};

struct load_client {
    struct load_kind kind[LOAD_KINDS];
    unsigned weight, least_weight; /* least: so far */
    unsigned first_class;          /* that its jobs may have */
    unsigned wish;                 /* class that they ask for */
    bool trusted;
    bool wild;        /* its jobs are brief mostly, and long now and then */
    uint64_t rate;    /* bytes a second that it transfers; 0: no limit */
    uint64_t devices; /* a bit for each that it may use */
    uint64_t hard;    /* bytes of its buffers on a device; 0: no limit */
    unsigned cap;     /* percent of the time of each device that it may have; 0: no limit */
    uint64_t run_ns[LOAD_KINDS];
    unsigned target;           /* jobs that it keeps on their way */
    unsigned mix;              /* kinds of them */
    unsigned sent[LOAD_KINDS]; /* so far */
    double moved;              /* bytes of its transfers that are not paid for */
    uint64_t moved_ns, moved_era;
};

struct sim_load {
    uint64_t anew_ns; /* when a worker last ended, or weights changed */
    unsigned version; /* of the weights */
    unsigned percent; /* of a device, for batch jobs */
    unsigned jobs;    /* so far; no more than LOAD_JOBS */
    bool brief;       /* jobs of some tenants take less than it takes to begin them */
    bool bursts;      /* tenants send some jobs at once, and none until all of them are done */
    bool outliers;    /* some jobs take far longer than others of their kind, and some switches */
    uint64_t switch_ns, gap_ns; /* between two workers, and between two jobs of a stream */
    unsigned slow[DEVICES_MAX]; /* times what the first device takes */
    struct load_client client[LOAD_CLIENTS];
    struct {
        uint64_t worker;   /* that had the device last */
        uint64_t ready_ns; /* when it has it */
        unsigned switches;
    } context[DEVICES_MAX];
};

/* Whether tenants have workers of their own. */
static inline bool load_rivals(const struct sim *s)
{
    return s->p.special == WORLD_RIVALS || s->p.special == WORLD_OVERRUNS;
}

/* Whether few jobs are in flight there, of four tenants: one with many jobs, one with one at a
 * time, another with many, of the batch class where none has a worker of its own, and one that has
 * a few now and then, of the first class. */
static inline bool load_lean(const struct sim *s)
{
    return s->load != NULL && s->p.special != WORLD_OVERRUNS && s->p.window == s->p.streams &&
           s->p.clients == 4 && s->p.devices == 1;
}
#define LEAN_ONE  1u /* the client with one job at a time */
#define LEAN_LATE 3u /* with a few, now and then */

/* Whether the world has such tenants. */
static inline bool load_is(const struct sim *s)
{
    return s->load != NULL;
}

void load_begin(struct sim *s);
void load_finish(struct sim *s);
/* The section of each tenant, for the settings. */
void load_write(const struct sim *s, FILE *out);
/* The client whose tenant has the name; NULL: none. */
struct load_client *load_client_of(const struct sim *s, const char *tenant);
unsigned load_flow(const struct sim *s, unsigned client, unsigned class);
/* The name of the client's tenant; false: it has the usual one. */
bool load_name(const struct sim *s, const struct sim_client *c, char ret_name[SIM_LABEL]);
void load_reweigh(struct sim *s);
/* How long a job of that kind takes this time, on the first device. */
uint64_t load_draw_ns(struct sim *s, unsigned client, unsigned kind, struct chance *r);
/* Whether the job may not begin yet, as its worker gets the device, or goes to its next job. */
bool load_delays(struct sim *s, struct sim_worker *x, struct sim_worker_job *j);
void load_ended(struct sim *s, struct sim_worker *x, const struct sim_worker_job *j);

/* sim_feed.c */
void feed_event(struct sim *s, struct sim_client *c, struct chance *r);
void feed_result(struct sim *s, const struct sim_job *j);

#endif
