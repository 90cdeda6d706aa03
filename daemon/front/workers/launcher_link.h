/*
 * The front's connection to gpud-launcher. The launcher starts and ends workers, compilers and the
 * monitor, and outlives the front. Thread: the loop's. launcher_link_open blocks, for some 100 ms
 * when it starts a launcher.
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

/* Descriptors of a worker that front and launcher both keep. */
enum launcher_fd { WORKER_INPUT, WORKER_OUTPUT, WORKER_RECORD, LAUNCHER_WORKER_FDS };

/* A worker of an earlier front. The receiver owns the descriptors. */
struct launcher_inventory {
    uint64_t id;
    pid_t pid;           /* 0: it has ended, and of the descriptors only WORKER_RECORD is open */
    struct bytes device; /* RECORD_WORKER of proto/frames.h */
    int channel;         /* the front's end */
    int fd[LAUNCHER_WORKER_FDS];
};

struct launcher_callbacks {
    /* code 0: the process runs. fd: the front's end of a worker's channel, owned by the receiver;
     * -1 for a compiler or the monitor. */
    void (*started)(void *data, uint64_t id, pid_t pid, int fd, int code, const char *text);
    void (*ended)(void *data, uint64_t id, int status, bool timed_out);
    /* Answers to launcher_list. A copy that launcher_keep has left for this front; the receiver
     * owns fd. Then a call for the last worker of each device, then `listed` with their number. */
    void (*kept)(void *data, uint64_t id, int fd);
    void (*inventory)(void *data, const struct launcher_inventory *inventory);
    void (*listed)(void *data, uint64_t count);
    /* Answers launcher_vacate. left: processes that have yet to end. */
    void (*vacated)(void *data, uint64_t id, uint64_t left);
    /* The launcher ended, and its children with it. */
    void (*lost)(void *data, const struct err *e);
};

struct launcher_options {
    const char *runtime_dir;
    const char *program;  /* path of gpud-launcher; NULL: where launcher_start.h says */
    bool start;           /* start one if none listens; false where it is a service of its own */
    uint64_t patience_ns; /* how long to retry while the launcher serves another gpud; 0: 5 s */
};

/* Connects to <runtime-dir>/launcher.sock. If no launcher listens and options->start, it starts
 * one, detached from this process, and waits for up to 5 s. It retries for patience_ns while the
 * launcher serves another front (ERR_BUSY), which may have just ended. A stale socket file is
 * replaced. ERR_VERSION: the launcher is of another build. */
int launcher_link_open(uv_loop_t *loop, const struct launcher_options *options, const char *build,
                       const struct launcher_callbacks *callbacks, void *data,
                       struct launcher_link **ret_link, struct err *e);
/* The hash of the gpud-compile that the launcher starts, as text; "": not known. */
const char *launcher_compiler_hash(const struct launcher_link *l);
/* The uid of workers and compilers, whose connections the listener refuses; 0: the daemon's own. */
uint32_t launcher_worker_uid(const struct launcher_link *l);
/* Its number: no record of a worker's jobs is older than its launcher. */
uint64_t launcher_lineage(const struct launcher_link *l);
/* The group of all users of workers, whose connections are refused, too; 0: the daemon's own. */
uint32_t launcher_worker_gid(const struct launcher_link *l);
/* How many copies it keeps at most. */
unsigned launcher_copies(const struct launcher_link *l);
void launcher_link_close(struct launcher_link *l); /* workers keep running; NULL is accepted */

/* A worker to start. */
struct worker_order {
    uint64_t id;
    const char *const *args; /* NULL-terminated */
    struct bytes device;     /* a RECORD_WORKER */
    int fd[LAUNCHER_WORKER_FDS];
    bool prepare; /* its successor is to be kept ready */
};
int launcher_worker(struct launcher_link *l, const struct worker_order *w, struct err *e);
/* The worker is of another device from now on: the next front learns that. */
int launcher_device(struct launcher_link *l, uint64_t id, struct bytes device, struct err *e);
struct launcher_limits {
    uint64_t cpu_s;
    uint64_t memory; /* bytes of address space */
    uint64_t wall_ns;
};
int launcher_compiler(struct launcher_link *l, uint64_t id, const char *const *args,
                      const struct launcher_limits *limits, int request, int response,
                      struct err *e);
/* Starts gpud-monitor with its page (proto/health.h). `started` and `ended` report it like a
 * compiler. */
int launcher_monitor(struct launcher_link *l, uint64_t id, int page, struct err *e);
int launcher_kill(struct launcher_link *l, uint64_t id, int signal, struct err *e);
/* The launcher keeps the copy of buffer `id` for the next front. worker: the last one that got the
 * record which names the buffer. The caller keeps fd. */
int launcher_keep(struct launcher_link *l, uint64_t id, uint64_t worker, int fd, struct err *e);
int launcher_release(struct launcher_link *l, uint64_t id, struct err *e);
/* Ends processes that wait to replace a worker of the device, a RECORD_WORKER. `vacated` follows,
 * unless the launcher is busy: then the caller asks again. */
int launcher_vacate(struct launcher_link *l, uint64_t id, struct bytes device, struct err *e);
int launcher_list(struct launcher_link *l, struct err *e);
int launcher_quit(struct launcher_link *l, struct err *e); /* ends all children and the launcher */

#endif
