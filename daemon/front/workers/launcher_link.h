/*
 * The front's connection to gpud-launcher, which starts and ends workers and compilers and outlives
 * the front. Thread: the loop's. launcher_link_open may block for some 100 ms when it starts one.
 */
#ifndef FRONT_WORKERS_LAUNCHER_LINK_H
#define FRONT_WORKERS_LAUNCHER_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "common/bytes.h"
#include "common/err.h"

struct launcher_link;

/* Descriptors of a worker, as both sides keep them. */
enum launcher_fd { WORKER_INPUT, WORKER_OUTPUT, WORKER_RECORD, LAUNCHER_WORKER_FDS };

/* A worker that runs already. The descriptors are the receiver's; channel: the front's end. */
struct launcher_held {
    uint64_t id;
    pid_t pid;
    struct bytes meta;
    int channel;
    int fd[LAUNCHER_WORKER_FDS];
};

struct launcher_callbacks {
    /* code 0: runs; fd is the front's end of a worker's channel (the receiver's), -1 for a compiler
     */
    void (*started)(void *data, uint64_t id, pid_t pid, int fd, int code, const char *text);
    void (*ended)(void *data, uint64_t id, int status, bool timed_out);
    void (*held)(void *data, const struct launcher_held *held); /* answers launcher_list */
    void (*listed)(void *data, uint64_t count);
    void (*lost)(void *data,
                 const struct err *e); /* the launcher is gone, and all workers with it */
};

struct launcher_options {
    const char *runtime_dir;
    const char
        *program; /* path of gpud-launcher to start when none listens; NULL: beside this one */
    bool start;   /* may be started (false under systemd, where it is a unit of its own) */
    uint64_t patience_ns; /* with one that serves another gpud; 0: 5 s */
};

/* Connects to <runtime-dir>/launcher.sock; if nobody listens and options->start, starts one
 * (detached from this process, so that it outlives it) and waits for up to 5 s. One that serves
 * another front (ERR_BUSY) is asked again for patience_ns: that front may have just ended. A stale
 * socket file is replaced. ERR_VERSION when the launcher is of another build. */
int launcher_link_open(uv_loop_t *loop, const struct launcher_options *options, const char *build,
                       const struct launcher_callbacks *callbacks, void *data,
                       struct launcher_link **ret_link, struct err *e);
/* The hash of the gpud-compile that it starts, as text; "": it did not tell. */
const char *launcher_compiler_hash(const struct launcher_link *l);
/* The uid of workers and compilers, whose connections are refused; 0: this process's own. */
uint32_t launcher_worker_uid(const struct launcher_link *l);
void launcher_link_close(struct launcher_link *l); /* workers go on; NULL is accepted */

int launcher_worker(struct launcher_link *l, uint64_t id, const char *const *args,
                    struct bytes meta, const int fd[LAUNCHER_WORKER_FDS], struct err *e);
struct launcher_limits {
    uint64_t cpu_s;
    uint64_t memory; /* bytes of address space */
    uint64_t wall_ns;
};
int launcher_compiler(struct launcher_link *l, uint64_t id, const char *const *args,
                      const struct launcher_limits *limits, int request, int response,
                      struct err *e);
/* gpud-monitor, with its page (proto/health.h); told as started and ended like a compiler. */
int launcher_monitor(struct launcher_link *l, uint64_t id, int page, struct err *e);
int launcher_kill(struct launcher_link *l, uint64_t id, int signal, struct err *e);
int launcher_list(struct launcher_link *l, struct err *e);
int launcher_quit(struct launcher_link *l, struct err *e); /* ends all children and the launcher */

#endif
