/* The fake daemon's inside. What is not declared here is private to its file. All functions but
 * those of fake.h are called with the lock held. */
#ifndef TESTS_CLIENT_FAKE_INT_H
#define TESTS_CLIENT_FAKE_INT_H

#include <nng/nng.h>
#include <pthread.h>

#include "common/shape.h"
#include "proto/codec.h"
#include "tests/unit/client/fake.h"

#define SLOTS       96
#define BUFFERS     256
#define SEQS        (1u << 20)
#define BUFFER_SIZE (48u << 20)
#define GREETED     64

enum slot_state { SLOT_RECV, SLOT_SEND, SLOT_HELD };

struct slot {
    _Atomic(struct fake *) fake; /* atomic, so that TSan sees it handed to NNG's threads */
    nng_ctx ctx;
    nng_aio *aio;
    enum slot_state state;
    nng_msg *msg; /* held request */
    uint64_t order;
};

struct fake_buffer {
    uint64_t handle;
    struct msg_buffer_create shape;
    uint8_t *data;
    size_t size;
};
/* A connection that said hello, and in which life. */
struct greeted {
    int pipe;
    uint64_t life;
};

struct fake {
    char dir[64], url[128];
    nng_socket socket;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct slot slots[SLOTS];
    enum fake_mode mode;
    enum fake_garble garble;
    uint64_t seed; /* of the next garbled answer */
    uint64_t max_inflight, max_message, order;
    uint64_t minor; /* of the next WELCOME */
    uint64_t linger_ns;
    uint64_t lineage;
    uint64_t up_ns;
    uint64_t life; /* grows with each restart; part of handles and of the daemon's id */
    struct greeted greeted[GREETED]; /* the last ones, as a ring */
    unsigned greeted_count;
    unsigned not_admitted; /* so many of the next requests, with this code */
    int not_admitted_code;
    int fails; /* the next job ends with this code; 0: well */
    bool fails_on_device;
    int refuses_loads; /* with this code; 0: it does not */
    bool knows_session, results_first, shares, forgets_jobs;
    struct slot *waiting; /* a held WAIT */
    uint64_t event_number;
    uint64_t lost[16], lost_count;
    uint64_t done[4096];       /* jobs that EVENTS tells */
    unsigned done_count, told; /* told: in the last EVENTS, kept until it was taken */
    uint8_t *seen;             /* by sequence number */
    uint64_t highest;
    uint64_t expect; /* every number before it is admitted, or taken */
    struct fake_buffer buffers[BUFFERS];
    uint64_t next;
    uint64_t executed;
    uint64_t twice;
    uint64_t stale;
    uint64_t next_job;
    uint64_t arenas;
    struct fake *left_before;
};

union any {
    struct msg_hello hello;
    struct msg_ping ping;
    struct msg_buffer_create buffer_create;
    struct msg_buffer_free buffer_free;
    struct msg_buffer_info buffer_info;
    struct msg_kernel_find kernel_find;
    struct msg_module_load module_load;
    struct msg_program_create program_create;
    struct msg_submit submit;
    struct msg_cancel cancel;
    struct msg_wait wait;
    struct msg_arena_create arena_create;
};

/* fake_answer.c: answers go out, the slot may receive when they are gone */
void fake_answer(struct slot *s, const struct schema *schema, const void *msg);
void fake_answer_error(struct slot *s, int code, const char *text);
void fake_answer_open(struct slot *s, int code); /* the request was not admitted */
/* Was the handle made in this life? Counts those that were not. */
bool fake_fresh(struct fake *f, uint64_t handle);
void fake_hello(struct slot *s, struct bytes message);
/* Answers a decoded request. */
void fake_serve(struct slot *s, unsigned kind, const union any *msg);

/* fake_buffer.c */
struct fake_buffer *fake_buffer_find(struct fake *f, uint64_t handle); /* NULL: none */
void fake_buffer_create(struct slot *s, const struct msg_buffer_create *msg);
void fake_buffer_free(struct slot *s, uint64_t handle);
void fake_buffer_info(struct slot *s, uint64_t handle);

/* fake_run.c */
void fake_submit(struct slot *s, const struct msg_submit *msg);
/* Answers the held WAIT with what there is. */
void fake_events(struct fake *f);

#endif
