/*
 * Memory that the torture program shares with every process under torture: how often each kind of
 * call was made, which call is to fail, and what happened. The program writes the order, the shim
 * (shim.h) in the processes the rest.
 *
 * Thread: any, in any process.
 */
#ifndef TORTURE_PAGE_H
#define TORTURE_PAGE_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define TORTURE_PAGE   "GPUD_TORTURE" /* environment: path of the page */
#define TRACE_TEXT     4096
#define PROCESSES_MAX  4096
#define TORTURE_DRIVER (-1) /* in place of an errno: the driver's own code */

/* Whose calls fail. `own` is the object that has to make the call; NULL: the program itself. */
#define ROLES(X)                                                                                   \
    X(FRONT, "front", "gpud", NULL)                                                                \
    X(WORKER, "worker", "gpud-worker", NULL)                                                       \
    X(LAUNCHER, "launcher", "gpud-launcher", NULL)                                                 \
    X(COMPILER, "compiler", "gpud-compile", NULL)                                                  \
    X(CLIENT, "client", "test_torture", "libgpud.so")
enum role {
#define X(name, text, program, own) ROLE_##name,
    ROLES(X)
#undef X
        ROLE_COUNT
};

/* What fails, and the errno that the call then has. */
#define KINDS(X)                                                                                   \
    X(MALLOC, "malloc", ENOMEM)                                                                    \
    X(CALLOC, "calloc", ENOMEM)                                                                    \
    X(REALLOC, "realloc", ENOMEM)                                                                  \
    X(ALIGNED, "aligned", ENOMEM)                                                                  \
    X(STREAM, "stream", ENOMEM)                                                                    \
    X(MAP, "map", ENOMEM)                                                                          \
    X(OPEN, "open", EMFILE)                                                                        \
    X(SOCKET, "socket", EMFILE)                                                                    \
    X(ACCEPT, "accept", EMFILE)                                                                    \
    X(EVENT, "event", EMFILE)                                                                      \
    X(DUP, "dup", EMFILE)                                                                          \
    X(MEMFD, "memfd", ENFILE)                                                                      \
    X(PIPE, "pipe", EMFILE)                                                                        \
    X(SPACE, "space", ENOSPC)                                                                      \
    X(WRITE, "write", ENOSPC)                                                                      \
    X(READ, "read", EIO)                                                                           \
    X(NAME, "name", EACCES)                                                                        \
    X(SEND, "send", ENOBUFS)                                                                       \
    X(RECV, "recv", ENOMEM)                                                                        \
    X(PEER, "peer", ENOBUFS)                                                                       \
    X(CONTROL, "control", ENOMEM)                                                                  \
    X(PROCESS, "process", EAGAIN)                                                                  \
    X(THREAD, "thread", EAGAIN)                                                                    \
    X(INTERRUPT, "interrupt", EINTR)                                                               \
    X(DRIVER, "driver", TORTURE_DRIVER)
enum kind {
#define X(name, text, number) KIND_##name,
    KINDS(X)
#undef X
        KIND_COUNT
};

/* A process that has the shim. The heap is counted by the shim itself: exact, and without what the
 * C library keeps. */
struct torture_process {
    _Atomic int pid; /* 0: free */
    enum role role;
    _Atomic int64_t blocks, bytes;
};

/* A process that ended by a signal of its own: SIGSEGV, SIGABRT, … */
struct torture_crash {
    _Atomic int count; /* the first one is described */
    int pid, signal;
    enum role role;
    char trace[TRACE_TEXT]; /* lines "OBJECT+0xOFFSET" */
};

/* A process that ended itself, with another status than 0; the last one of each role. */
struct torture_end {
    int status; /* 0: none did */
    char trace[TRACE_TEXT];
};

/* The call that failed. */
struct torture_hit {
    _Atomic int count; /* the first one is described */
    int pid;
    char call[64];
    char trace[TRACE_TEXT];
};

struct torture_page {
    _Atomic uint64_t calls[ROLE_COUNT][KIND_COUNT];
    /* Drivers keep memory for each kernel that they load: only blocks of the worker's own code are
     * counted there. Written before the processes start. */
    bool driver_keeps;
    _Atomic bool armed;
    enum role role; /* the order: changed while it is not armed */
    enum kind kind;
    uint64_t first, count; /* of calls[role][kind], from 0 */
    struct torture_hit hit;
    struct torture_crash crash;
    struct torture_end end[ROLE_COUNT];
    struct torture_process process[PROCESSES_MAX];
};

#endif
