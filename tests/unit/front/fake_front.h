/*
 * A front without a loop: devices that serve, buffers and jobs made by hand, hooks that only
 * note what they were called for, and a world (front_io) to which nothing goes. Everything fails
 * the test rather than returning an error.
 */
#ifndef TEST_FAKE_FRONT_H
#define TEST_FAKE_FRONT_H

#include "daemon/front/model/front.h"
#include "daemon/front/workers/record.h"

#define FAKE_DEVICES  2u
#define FAKE_JOBS     20000u
#define FAKE_STAGING  4096u
#define FAKE_BEGIN_NS (1000 * NS_PER_S) /* the clock when the front is made */

struct fake {
    struct front f; /* first: hooks get its address */
    struct device device[FAKE_DEVICES];
    struct session *session;
    struct tenant *tenant;
    struct module *module; /* a user's, loaded everywhere */
    bool kicked;
    unsigned sent;        /* jobs, to workers */
    unsigned frames[256]; /* to workers, by their kind */
    unsigned needed, readies;
    uint32_t epoch;                  /* of the newest record */
    unsigned ends[FAKE_JOBS];        /* by job id: how often it ended */
    unsigned answers[FAKE_JOBS];     /* and was answered before that */
    enum job_state state[FAKE_JOBS]; /* with what */
    struct err error[FAKE_JOBS];     /* and why */
    uint64_t order[FAKE_JOBS];       /* ids in order of dispatch, replays included */
};

/* The front's clock: it stands still but for fake_pass. */
uint64_t fake_now(void);
void fake_pass(uint64_t ns);

/* Copies that the launcher keeps for the next front. */
unsigned fake_copies(void);

struct fake *fake_create(void);
void fake_destroy(struct fake *k); /* checks that nothing is left over */

struct buffer *fake_buffer(struct fake *k, unsigned device, uint64_t bytes, bool defined);
/* One of a domain, which can go to the host. */
struct buffer *fake_movable(struct fake *k, const struct device *d);
/* Takes the handle away; freed once no job names it. */
void fake_drop(struct fake *k, struct buffer *b);

/* A job of the session in the making; `device` as in struct work. */
struct job *fake_job(struct fake *k, int device);
void fake_reads(struct job *j, struct buffer *b, uint64_t begin, uint64_t end);
void fake_writes(struct job *j, struct buffer *b, uint64_t begin, uint64_t end);
void fake_launches(struct fake *k, struct job *j, const char *entry);
/* Enters and offers it. Its id. */
uint64_t fake_submit(struct fake *k, struct job *j);
void fake_turn(struct fake *k); /* dispatches as long as there are kicks */

/* The device's record says that its worker was given this, for a front that takes it over. */
void fake_given(struct fake *k, unsigned device, enum record_kind kind, uint64_t id,
                struct bytes record);
/* What the record of its device tells the next front of a buffer. */
struct fake_recorded {
    bool found, defined, left;
    uint64_t freed_by;
};
/* Does the record tell the next front that the job has read what a failed job should have
 * written? */
bool fake_tainted(struct fake *k, const struct job *j);
struct fake_recorded fake_recorded(struct fake *k, const struct buffer *b);
/* Does the record say that the job's outputs are overwritten? */
bool fake_outputs_lost(struct fake *k, unsigned device, uint64_t job);
/* The links of fake devices: counts the frame. */
int fake_send(struct link *l, const struct schema *schema, const void *msg,
              const struct frame_fds *fds, struct err *e);
void fake_done(struct fake *k, struct job *j, int code);
/* With an error and no effects. */
void fake_refused(struct fake *k, struct job *j, int code);
/* The worker is gone, and another one comes at once. */
void fake_lose(struct fake *k, unsigned device, bool external);
/* Does it wait for the other one, or for one that does? */
bool fake_after(const struct job *succ, const struct job *pred);
struct job *fake_find(struct fake *k, uint64_t id);

#endif
