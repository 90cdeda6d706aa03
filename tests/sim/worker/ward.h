/*
 * Worlds around the worker: the real code of daemon/worker and daemon/pool over a simulated device,
 * with a simulated front and virtual time. One thread; all follows from one number.
 *
 *   ward_time      the agenda, the clock, and what threads become: steps of the agenda
 *   ward_memory    the memory of the process, which is kept from world to world
 *   ward_pages     the device's memory: handles, ranges, blocks, and the shadow of its uses
 *   ward_apart     memory that is exported, managed, or a module's
 *   ward_host      host memory that is registered
 *   ward_device    the back end's table: streams, markers, modules, host memory
 *   ward_front     the front: frames of the worker, adoption
 *   ward_link      its end of the channel
 *   ward_events    what it does at an event
 *   ward_jobs      the buffers and jobs that it asks for
 *   ward_model     what buffers must hold
 *   ward_leave     the end, when all is freed
 *   ward_course    what the parameters and events of a world are, as numbers and as text
 *   ward_shrink    a course that breaks a rule becomes shorter
 *   ward_run       a world from its beginning to its end
 *
 * Thread: one.
 */
#ifndef TEST_SIM_WARD_H
#define TEST_SIM_WARD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <uv.h>

#include "common/clock.h"
#include "daemon/backend/backend.h"
#include "tests/sim/haps.h"
#include "tests/sim/verdict.h"
#include "tests/sim/worker/ward_course.h"

#define WARD_STREAMS 10u /* of a device */
#define WARD_GRAIN   256u
#define WARD_CALLS   4096u

struct ward;

struct ward_fiber;
struct ward_work;
struct ward_front;
struct server;

struct ward {
    struct ward_params params;
    const struct ward_course *course;
    uint64_t now_ns;
    struct ward_call {
        uint64_t from_ns, to_ns;
    } call[WARD_CALLS]; /* the last calls of the driver that kept the loop, as a ring */
    unsigned calls;
    struct haps agenda;
    struct chance chance; /* of times and refusals; the front has numbers by event */
    FILE *log;            /* NULL: none */
    struct ward_fiber *fiber;
    struct ward_work *works, **works_end; /* what threads have done, for the loop to hear */
    struct backend_device *device;
    struct ward_front *front;
    struct server *server;
    uv_loop_t loop;
    bool closing;    /* the worker closes its parts */
    bool front_open; /* the front takes frames; calls may be refused */
};

extern char *ward_report; /* VERDICT_BYTES, for the parent */

/* ---- ward_run.c ---- */

/* Plays a world in this process, and ends the process if a rule is broken. The worker may end it,
 * too. log NULL: none. Returns the virtual time, ns. */
uint64_t ward_run(const struct ward_course *c, FILE *log);
/* A rule is broken: says so, and ends the process. */
void ward_broken(struct ward *w, const char *rule, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), noreturn));
void ward_log(struct ward *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- ward_time.c ---- */

/* The world of this process, for the functions of libc that the worker calls. */
void ward_time_begin(struct ward *w);
void ward_time_end(struct ward *w);
void ward_at(struct ward *w, uint64_t at_ns, void (*run)(struct ward *w, void *actor, uint64_t a),
             void *actor, uint64_t a);
/* A time around `usual` ns, sometimes far from it. */
uint64_t ward_while(struct ward *w, uint64_t usual_ns);
/* The caller takes `ns`: the worker's loop stands still, or a thread of the worker does. */
void ward_pass(struct ward *w, uint64_t ns);
/* The same, in a call of the driver that maps memory. */
void ward_call(struct ward *w, uint64_t ns);
/* How much of the time since then such calls have kept the loop. */
uint64_t ward_kept_ns(const struct ward *w, uint64_t since_ns);
uint64_t ward_next_ns(const struct ward *w); /* of the agenda; NS_NEVER: nothing */
void ward_advance(struct ward *w, uint64_t to_ns);
/* Tells the loop what threads have done. Returns whether there was anything. */
bool ward_works_end(struct ward *w);
bool ward_threads_work(const struct ward *w);
bool ward_on_loop(const struct ward *w); /* does the worker's loop run, or a thread? */
bool ward_sent(void);                    /* was a frame sent since the last call? */

/* ---- ward_memory.c ---- */

uint64_t
ward_heap_blocks(void); /* blocks of the heap that the program has, but not its libraries */
struct memfd;
/* Staging memory, full of zeros; it remains the process's. */
int ward_staging(struct memfd *ret_input, struct memfd *ret_output, struct err *e);
void ward_staging_clear(uint64_t input, uint64_t output); /* so many bytes were used */

/* ---- ward_pages.c ---- */

struct ward_grain {
    uint8_t wrote;               /* 1 + the stream that wrote it last; 0: none */
    uint32_t write;              /* number of its command */
    uint32_t read[WARD_STREAMS]; /* numbers of the last commands that read it */
};

/* Bytes of the device, or of the host. */
struct ward_mem {
    uint64_t bytes;
    uint8_t *data;
    uint8_t *seen;            /* owned: by grain, has a command used it? */
    struct ward_grain *grain; /* owned; of one that was not seen without value */
    unsigned maps;
    bool host;      /* the bytes are the host's */
    bool elsewhere; /* they are not counted: the driver moves them to the host */
    bool stuck;     /* an end of a mapping was refused */
    struct ward_mem *prev, *next;
};

struct ward_page {
    struct ward_mem *mem; /* NULL: nothing is mapped */
    uint64_t at;          /* in mem */
    bool access;
    uint32_t last[WARD_STREAMS]; /* numbers of the last commands that name it */
};

enum ward_block_kind { WARD_ORDINARY, WARD_EXPORTED, WARD_MANAGED, WARD_VARIABLES };

struct backend_block {
    struct backend_device *device;
    enum ward_block_kind kind;
    uint64_t bytes, page_bytes;
    struct ward_page *page; /* owned */
    bool range;             /* of handles */
    struct backend_block *prev, *next;
};

/* What a stream, or the host, knows to be over: numbers of commands. */
struct ward_known {
    uint32_t at[WARD_STREAMS];
};

/* A stretch of memory in one piece. */
struct ward_span {
    struct ward_mem *mem;
    uint64_t at;
    uint8_t *data;
    uint64_t bytes;
};

/* The first piece of [at, at + bytes) of a block. */
struct ward_span ward_span(struct ward *w, const struct backend_block *b, uint64_t at,
                           uint64_t bytes, const char *who);
/* A command that is enqueued names the memory. */
void ward_name(struct ward *w, struct backend_block *b, uint64_t at, uint64_t bytes,
               unsigned stream, uint32_t number);
/* A command that knows `known` uses the memory. */
void ward_touch(struct ward *w, const struct ward_span *s, unsigned stream, uint32_t number,
                const struct ward_known *known, bool writes, const char *who);
struct backend_block *ward_block_of(struct backend_device *d, struct ward_mem *m);
void ward_block_end(struct backend_device *d, struct backend_block *b);
struct ward_mem *ward_mem_make(struct backend_device *d, uint64_t bytes, uint8_t *host);
/* Bytes that the worker wrote to check the device belong to no tenant. */
void ward_mems_checked(struct backend_device *d);
void ward_mem_end(struct backend_device *d, struct ward_mem *m);
void ward_device_empty(struct backend_device *d); /* frees all of its memory */
extern const struct backend_page_ops ward_page_ops;
extern const struct backend_memory_ops ward_block_ops; /* the ordinary ones */

/* ---- ward_host.c ---- */

void ward_host_ops(const struct ward_params *p, struct backend_memory_ops *m);

/* ---- ward_apart.c ---- */

#define WARD_VARIABLE ((uint64_t)16 << 10) /* bytes of a module's variable */

void ward_apart_ops(const struct ward_params *p, struct backend_memory_ops *m);
struct backend_block *ward_variable_make(struct backend_device *d);

/* ---- ward_device.c ---- */

struct ward_host;
struct ward_stream;

struct backend_device {
    struct ward *w;
    backend_wake_fn wake;
    void *wake_data;
    struct backend_stream *stream[WARD_STREAMS];
    unsigned streams;
    struct ward_known host; /* what the host knows to be over */
    struct ward_mem *mems;
    struct backend_block *blocks;
    struct ward_host *hosts; /* owned: registered memory */
    unsigned modules, markers;
    bool library;             /* it is prepared */
    uint64_t library_next_ns; /* when it is tried again; 0: not at all */
    uint64_t used;            /* bytes */
    uint64_t foreign;         /* bytes that other processes have */
    uint64_t launches;
    unsigned unheard; /* commands since the last frame of the worker, or of the front */
    struct err dead;  /* code 0: it works */
    uint64_t blamed;  /* job whose kernel has faulted */
    uint64_t idle_ns; /* when nothing ran last */
};

/* The value of a kernel's last argument. */
struct ward_value {
    uint32_t tenant;
    uint32_t k;
    uint64_t job;
};

/* A call of the driver that waits for all that runs, where the device has release_waits. */
void ward_wait_for_all(struct backend_device *d, const char *what);
/* As the driver's call, which may wait for what runs. */
void ward_block_free(struct backend_device *d, struct backend_block *b);
const struct backend *ward_backend(struct ward *w); /* its table; valid until the next call */
bool ward_refuses(struct ward *w, uint64_t permille);
bool ward_device_idle(const struct backend_device *d);
void ward_device_check(struct ward *w); /* at its end: nothing is left */
/* Bytes that the library needs beside a kernel's memory. */
static inline uint64_t ward_workspace(uint64_t bytes)
{
    return bytes % 3 == 0 ? 0 : bytes / 2 + 64;
}
/* What a kernel makes of a byte. */
static inline uint8_t ward_tagged(uint32_t tenant, uint32_t value)
{
    return (uint8_t)(tenant << 5 | (value & 31));
}

/* ---- the front: see ward_front.h, too ---- */

void ward_front_begin(struct ward *w);
int ward_front_fd(struct ward *w, int which); /* of the worker: 0 the channel, 1 input, 2 output */
void ward_front_hear(struct ward *w);         /* takes the frames that the worker has sent */
void ward_front_send(struct ward *w);         /* sends what the channel had no room for */
void ward_front_act(struct ward *w, const struct ward_event *e);
/* After the last event: one step of the end. Returns true when the worker was told to quit. */
bool ward_front_leave(struct ward *w);
void ward_front_end(struct ward *w);
/* The worker ended itself with this status. */
void ward_front_lost(struct ward *w, int status);
/* Has it asked for a buffer whose memory is about that large? */
bool ward_front_asked(const struct ward *w, uint64_t bytes);
/* A job's kernel begins on the device. */
void ward_front_begins(struct ward *w, const struct ward_value *v);

#endif
