/*
 * Starts a program from its descriptor, in a process group of its own, with no inherited
 * descriptors except those in struct spawn. The child is killed when the calling process ends.
 * Blocks until the program runs or has failed, less than a millisecond. Thread: one.
 */
#ifndef LAUNCHER_SPAWN_H
#define LAUNCHER_SPAWN_H

#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "daemon/launcher/identity.h"

#define SPAWN_FDS_MAX 3

struct spawn_limits {
    uint64_t cpu_s;  /* seconds of processor time; 0: no limit */
    uint64_t memory; /* bytes of address space; 0: no limit */
    uint64_t file;   /* bytes of one written file; 0: no limit */
    uint64_t files;  /* open descriptors; 0: the launcher's limit */
    int nice;        /* by so much it comes after the launcher and the workers (nice(2)) */
};

struct spawn {
    int program;       /* descriptor of the executable */
    const char *name;  /* argv[0] */
    char *const *argv; /* the arguments after the name, NULL-terminated */
    int fd[SPAWN_FDS_MAX];
    int fd_count; /* fd[i] becomes descriptor 3 + i */
    struct spawn_limits limits;
    const struct identity *identity;
    /* socket of the journal, for a stream of the child's own; NULL: the launcher's stderr */
    const char *journal;
};

#define SPAWN_ARGS_MAX 66

int spawn_process(const struct spawn *s, pid_t *ret_pid, struct err *e);

#endif
