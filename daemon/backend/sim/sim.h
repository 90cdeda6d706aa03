/*
 * Simulated devices: real results in host memory, modelled time. Each stream has a thread that
 * executes its commands in order on the device's engines, and sleeps for the rest of the time of
 * the cost model. For a test that needs a running command, the command's model time is long and the
 * device has a gate: all commands end soon after the gate's file is made.
 *
 * With map_us each call of the page table takes so many microseconds, and then waits for the
 * kernels, fills and copies on the device that ran when it was made, as a driver may. host_us and
 * load_us do the same for registering host memory, by MiB, and for loading modules.
 *
 * Thread: the worker's loop enqueues; another may call the page table; a stream's thread executes.
 * The device's lock guards queues, markers and the script. It also orders the accesses of commands
 * to memory, because each command is taken from its queue and finished under it.
 */
#ifndef BACKEND_SIM_SIM_H
#define BACKEND_SIM_SIM_H

#include <pthread.h>

#include "daemon/backend/backend.h"
#include "daemon/backend/sim/engine.h"
#include "daemon/backend/sim/script.h"

struct signature;
struct host_kernel;

#define SIM_ARGS_MAX     32u
#define SIM_GATE_MAX     128u  /* bytes of a path, including its NUL */
#define SIM_HANDLE_SIZES 10u   /* 2 MiB … 1 GiB */
#define SIM_HOST_MAX     4096u /* limit of pieces of host memory that are registered */

struct sim_config {
    uint64_t devices;
    uint64_t memory; /* bytes of a device */
    uint64_t streams;
    double speed;       /* 1: the model's time; 2: half of it; 0: commands take no time */
    uint64_t bandwidth; /* bytes per second */
    uint64_t items;     /* work items per second */
    uint64_t launch_ns; /* time added to each command */
    uint64_t kernels;   /* number of kernels that run at once */
    uint64_t map_us;  /* above 0: a call of the page table takes so long, and waits for commands */
    uint64_t host_us; /* the same for a MiB of host memory that is registered, or not any more */
    uint64_t load_us; /* the same for a module that is loaded */
    bool pages;       /* memory is mapped in pages: see pages.c */
    char gate[SIM_GATE_MAX]; /* a file; while it exists no command sleeps; "": none */
    struct script script;
};

/* Takes `us` microseconds, and then waits for the commands that ran before. 0: neither. */
void sim_linger(struct backend_device *d, uint64_t us);

int sim_config_parse(const char *options, struct sim_config *ret_config, struct err *e);

struct backend_device {
    struct sim_config config;
    unsigned index;
    uint64_t used;     /* bytes of memory in use */
    int page_file;     /* descriptor, once a range is reserved */
    bool *page_in_use; /* owned, by size of handle and place; NULL: no page file yet */
    uint64_t handle_next[SIM_HANDLE_SIZES]; /* place to look at first, by size */
    backend_wake_fn wake;
    void *wake_data;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a marker settled */
    int dead;               /* ERR_* after a fault: every later command fails with it; 0: none */
    struct sim_engine compute, to_device, from_device;
    uint64_t begun;                  /* commands that `compute` has begun so far */
    uint64_t running[SIM_SLOTS_MAX]; /* which of these runs, by slot; 0: none */
    void *host[SIM_HOST_MAX];        /* registered memory; it does not affect the model */
};

struct backend_block {
    uint64_t size;
    uint8_t *data; /* owned, except for imported memory */
};

/* One kernel of a module. */
struct sim_kernel {
    const struct host_kernel *host;
    const struct signature *signature;
    int dtype; /* type of this member of a family; DTYPE_NONE */
};

struct backend_module {
    struct sim_kernel *kernels; /* sorted by entry */
    unsigned kernel_count;
};

/* Copies of what a launch needs when it runs. */
struct sim_launch {
    const struct host_kernel *host;
    uint64_t global[3];
    uint64_t local[3];
    void *arg[SIM_ARGS_MAX];
    uint64_t value[SIM_ARGS_MAX]; /* the values that `arg` points to */
    unsigned arg_count;
};

enum sim_command_kind {
    SIM_COMMAND_WORK, /* one of enum sim_op */
    SIM_COMMAND_MARK,
    SIM_COMMAND_WAIT
};

struct sim_command {
    struct sim_command *prev, *next;
    enum sim_command_kind kind;
    enum sim_op op;
    enum sim_action action; /* scripted */
    uint64_t enqueued_ns;
    uint8_t *dst;
    const uint8_t *src;
    uint64_t size;
    uint8_t pattern[16];
    size_t pattern_size;
    struct backend_marker *marker; /* for MARK and WAIT: counted as a reference */
    struct sim_launch launch;
};

struct backend_marker {
    struct backend_device *device;
    struct backend_stream *stream;
    unsigned refs;  /* references of the caller and of commands */
    uint64_t first; /* number of the first command since the previous marker */
    bool quiet;     /* its end does not call wake() */
    enum backend_state settled;
    uint64_t begin_ns;
    uint64_t end_ns;
    struct err why;
};

struct backend_stream {
    struct backend_device *device;
    int priority;
    pthread_t thread;
    pthread_cond_t work;
    struct sim_command *queue;
    bool stop;
    uint64_t enqueued; /* count of commands so far */
    uint64_t started;
    uint64_t marked;   /* number of the first command after the last marker */
    uint64_t ready_ns; /* time in the model from which the next command may begin */
    /* the commands since the last marker */
    uint64_t begin_ns; /* 0: none has begun */
    uint64_t end_ns;
    int failed; /* ERR_* of the first that failed; 0: none */
    struct err why;
};

/* Main function of a stream's thread: executes the queue until the stream stops. */
void *sim_stream_main(void *stream);
void sim_marker_unref(struct backend_marker *m); /* the caller has the device's lock */

/* Checks the arguments against the kernel's and copies them. */
int sim_launch_make(const struct backend_module *m, const char *entry,
                    const struct backend_launch *launch, struct sim_launch *ret_launch,
                    struct err *e);

void sim_pages_finish(struct backend_device *d); /* all ranges must be released */

int sim_compile(unsigned index, const struct backend_source *source,
                struct backend_compiled *ret_compiled, struct err *e);

extern const struct backend backend_sim;
extern const struct backend_memory_ops sim_memory_ops;
extern const struct backend_page_ops sim_page_ops;
extern const struct backend_stream_ops sim_stream_ops;
extern const struct backend_marker_ops sim_marker_ops;
extern const struct backend_module_ops sim_module_ops;

#define SIM_MAX_GROUP 1024u /* work items */
#define SIM_ARCH      "sim 1"
#define SIM_MAGIC     "gpudsim1\n"

#endif
