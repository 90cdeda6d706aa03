/* What the sources of the simulated front share. Thread: one. */
#ifndef TEST_SIM_WARD_FRONT_H
#define TEST_SIM_WARD_FRONT_H

#include "common/duplex.h"
#include "common/memfd.h"
#include "daemon/worker/memory/memory.h"
#include "proto/codec.h"
#include "tests/sim/worker/ward.h"

#define WARD_TENANTS       6u
#define WARD_MODULE_TENANT 1u /* of all modules */
#define WARD_STEPS         8u
#define WARD_TEMPS         3u
#define WARD_STAGE         ((uint64_t)8 << 20) /* bytes of staging memory, each way */

enum thing_state {
    THING_ASKED, /* the worker has not answered */
    THING_READY,
    THING_SEALING, /* no job is sent that uses it */
    THING_GONE,    /* freed, refused, or forgotten; kept while jobs use it */
};

/* A buffer or an arena. */
struct thing {
    uint64_t id;
    uint32_t tenant;
    bool arena, sealed, restored;
    enum thing_state state;
    uint64_t bytes;
    uint8_t *data;     /* owned: what it must hold */
    uint8_t *defined;  /* owned, by grain: is that known? */
    unsigned uses;     /* jobs that have not ended */
    struct memfd host; /* of an arena, a seal or a restoration */
    uint64_t align;    /* of an arena: where kernels can use it; 0: nowhere */
    bool answered;     /* W_ARENA came */
    bool stays;        /* on the device */
    bool exported, managed;
    bool variable; /* of a module */
    bool listed;   /* by an inventory */
    bool lost;     /* it got no memory, after this front took it over */
    struct thing *prev, *next;
};

enum side_kind { SIDE_NONE, SIDE_THING, SIDE_TEMP, SIDE_STAGE };

/* An operand of a step. */
struct side {
    enum side_kind kind;
    struct thing *thing;
    unsigned temp;
    uint64_t at, bytes;
};

enum step_kind { STEP_WRITE, STEP_READ, STEP_FILL, STEP_COPY, STEP_SET, STEP_MIX };

struct step {
    enum step_kind kind;
    struct side dst, src;
    uint32_t k;
};

struct asked_module {
    uint64_t id;
    bool named;  /* its variable is a buffer, or was */
    bool listed; /* by an inventory */
    enum thing_state state;
    struct asked_module *prev, *next;
};

struct asked_job {
    uint64_t id;
    uint32_t tenant;
    unsigned stream;
    int64_t rank;
    uint64_t program;
    uint64_t deadline_ns, sent_ns;
    struct step step[WARD_STEPS];
    unsigned steps;
    uint64_t temp[WARD_TEMPS]; /* bytes */
    unsigned temps;
    uint64_t module; /* id; 0: none */
    uint64_t after[FRAME_AFTER_MAX];
    unsigned afters;
    int64_t code;
    uint64_t effects;
    bool settled; /* the model has its effects; until then what it uses is in use */
    bool ended, cancelled, late, waits;
    bool small;   /* it needs a small part of the device's memory, and nothing is in its way */
    bool repeats; /* its end may be reported again, to another front */
    bool listed;
    struct asked_job *prev, *next;
};

struct tenant {
    struct memory_limits limits;
    uint64_t most; /* bytes: the highest limit that was in force; UINT64_MAX: there was none */
    struct msg_w_tenant use;
    bool acts; /* it asked for something since its use was reported */
};

struct ward_front {
    int fd, worker_fd;
    struct memfd input, output; /* the process's */
    uint64_t staged[2];         /* bytes of them that were used */
    int worker_input, worker_output;
    struct thing *things;
    struct asked_job *jobs;
    struct asked_module *modules;
    struct tenant tenant[WARD_TENANTS + 1];
    struct duplex duplex;
    uint64_t rings; /* nonce of those that it has offered */
    uint64_t ids;
    uint64_t nonce; /* of the inventory that is under way; 0: none */
    bool ready;     /* W_READY came */
    bool pool;      /* W_POOL came */
    struct msg_w_pool pool_says;
    bool budgets;     /* the worker's memory was limited otherwise, too */
    unsigned leaving; /* how far the end is */
    uint64_t leaves_ns;
    uint64_t jobs_done, jobs_failed, jobs_waited;
};

/* ---- ward_link.c ---- */

/* fd -1: none. It remains the caller's. */
void front_send(struct ward *w, const struct schema *schema, const void *msg, int fd);
void front_send_all(struct ward *w, const struct schema *schema, const void *msg,
                    const struct frame_fds *fds);
void front_packet_begin(struct ward *w); /* frames from now on share a packet */
void front_packet_end(struct ward *w);
void front_turn(struct ward *w, bool ends); /* of taking frames */
/* The descriptors are the caller's. False: there is no frame now. */
bool front_next(struct ward *w, struct bytes *ret_frame, struct frame_fds *ret_fds);
void front_rings_offer(struct ward *w);
void front_rings_answered(struct ward *w, const struct msg_w_rings *m);
/* Another front has the socket, and no rings. It takes over what the former one has sent, which
 * sends some more jobs where it has rings. What the worker has sent there is lost, and mostly what
 * it has sent by the socket. False: the former one still has frames to send. */
bool front_link_inherit(struct ward *w, struct chance *c);

/* ---- ward_front.c ---- */

struct thing *front_thing(const struct ward_front *f, uint64_t id, bool arena);
struct asked_job *front_job(const struct ward_front *f, uint64_t id);
/* Forgets a thing that is gone and that no job uses. */
void front_forget(struct ward_front *f, struct thing *t);

void front_limits(struct ward *w, uint64_t tenant); /* sends a tenant's limits */
void front_seal(struct ward *w, struct thing *t);
/* Another front takes the worker over. */
void front_adopts(struct ward *w, struct chance *c);

/* ---- ward_events.c ---- */

void front_module_drop(struct ward *w, struct asked_module *x);
void front_arena_drop(struct ward *w, struct thing *t);

/* ---- ward_jobs.c ---- */

void front_new_job(struct ward *w, struct chance *c);
void front_new_buffer(struct ward *w, struct chance *c);
void front_free_buffer(struct ward *w, struct thing *t);
struct thing *front_pick(struct ward *w, struct chance *c, uint32_t tenant, bool arena);
uint64_t front_bytes(const struct ward_front *f); /* of all buffers */

/* ---- ward_model.c ---- */

void thing_define(struct thing *t, uint64_t at, uint64_t bytes, bool defined);
/* The job has ended well: its steps are done in the model, and what it read is compared. */
void model_apply(struct ward *w, const struct asked_job *j);
/* It may have begun: what it would have written is unknown. */
void model_spoil(const struct asked_job *j);
/* Are the bytes at `data` what [at, at + bytes) of the thing holds? */
void model_compare(struct ward *w, const struct thing *t, uint64_t at, const uint8_t *data,
                   uint64_t bytes, const char *who, uint64_t id);
/* Bytes of a tenant, by chance. */
void model_random(struct chance *c, uint32_t tenant, uint8_t *data, uint64_t bytes);

#endif
