/* What the launcher's tests let it start: does what its first argument says. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/seqpacket.h"

static int echo(void)
{
    static uint8_t frame[FRAME_MAX_BYTES];
    for (;;) {
        size_t size = 0;
        struct pollfd p = {.fd = 3, .events = POLLIN};
        if (poll(&p, 1, -1) < 0) {
            return 1;
        }
        int rc = seqpacket_recv(3, frame, sizeof frame, &size, NULL, NULL);
        if (rc == SEQPACKET_EOF) {
            return 0;
        }
        if (rc != 0 || seqpacket_send(3, frame, size, NULL, NULL) != 0) {
            return 1;
        }
    }
}

/* 0 if the process was started correctly; else the number of the first fault */
static int check(void)
{
    struct rlimit core;
    for (int fd = 0; fd < 256; fd++) {
        if ((fcntl(fd, F_GETFD) >= 0) != (fd <= 5)) {
            return 10;
        }
    }
    if (getenv("SECRET_OF_THE_LAUNCHER") != NULL || getenv("PATH") == NULL ||
        getenv("GLIBC_TUNABLES") == NULL || getenv("GPUD_LOG") == NULL) {
        return 11;
    }
    if (getrlimit(RLIMIT_CORE, &core) != 0 || core.rlim_max != 0) {
        return 12;
    }
    sigset_t mask;
    (void)sigprocmask(SIG_SETMASK, NULL, &mask);
    if (sigismember(&mask, SIGTERM) != 0 || sigismember(&mask, SIGCHLD) != 0) {
        return 13;
    }
    return getpgrp() == getpid() ? 0 : 14;
}

static int hang(void)
{
    (void)signal(SIGTERM, SIG_IGN);
    while (pause() != 0) { /* only ever ended */
    }
    return 1;
}

/* Leaves the pid of a child of its own in the response. */
static int breed(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)hang();
    }
    return pwrite(4, &pid, sizeof pid, 0) == (ssize_t)sizeof pid ? hang() : 1;
}

static int spin(void)
{
    for (volatile uint64_t i = 1; i != 0; i++) {
    }
    return 1;
}

/* Is a resource bounded exactly there? */
static bool bound(int resource, uint64_t soft, uint64_t hard)
{
    struct rlimit limit;
    return getrlimit((__rlimit_resource_t)resource, &limit) == 0 && limit.rlim_cur == soft &&
           limit.rlim_max == hard;
}

#define FILE_BYTES (UINT64_C(256) << 20)

/* 0 if a compiler's limits are as they were asked for; else the number of the one that is not */
static int limits(void)
{
    int later = getpriority(PRIO_PROCESS, (id_t)getppid()) + 10; /* the launcher's */
    int files = 0;
    later = later < 19 ? later : 19;
    while (files < 1000 && dup(0) >= 0) {
        files++;
    }
    (void)close_range(5, ~0U, 0);
    if (files != 256 - 5) { /* 0 to 4 are open */
        return 20;
    }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    void *fits = mmap(NULL, UINT64_C(256) << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *more = mmap(NULL, UINT64_C(256) << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fits == MAP_FAILED || more != MAP_FAILED || errno != ENOMEM ||
        !bound(RLIMIT_AS, UINT64_C(512) << 20, UINT64_C(512) << 20)) {
        return 21;
    }
#endif
    return !bound(RLIMIT_CPU, 9, 14)                      ? 22
           : !bound(RLIMIT_FSIZE, FILE_BYTES, FILE_BYTES) ? 23
           : !bound(RLIMIT_CORE, 0, 0)                    ? 24
           : getpriority(PRIO_PROCESS, 0) != later        ? 25
                                                          : 0;
}

/* Writes the last byte that a file may have, then the next. */
static int write_beyond(void)
{
    int fd = memfd_create("large", MFD_CLOEXEC);
    if (fd < 0 || pwrite(fd, "x", 1, (off_t)FILE_BYTES - 1) != 1) {
        return 30;
    }
    return pwrite(fd, "x", 1, (off_t)FILE_BYTES) == 1 ? 31 : 32;
}

/* As a prepared worker: its memory comes with the first frame. */
static bool take_memory(void)
{
    char byte;
    size_t size = 0;
    struct frame_fds fds;
    struct pollfd p = {.fd = 4, .events = POLLIN};
    bool taken = poll(&p, 1, -1) == 1 &&
                 seqpacket_recv(4, &byte, sizeof byte, &size, &fds, NULL) == 0 && fds.count == 2 &&
                 dup2(fds.fd[0], 4) == 4 && dup2(fds.fd[1], 5) == 5;
    frame_fds_close(&fds);
    return taken;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } MODE[] = {{"echo", echo}, {"check", check},   {"hang", hang},         {"breed", breed},
                {"spin", spin}, {"limits", limits}, {"write", write_beyond}};
    if (argc > 2 && strcmp(argv[argc - 1], "--prepared") == 0 && !take_memory()) {
        return 98;
    }
    for (size_t i = 0; argc > 1 && i < sizeof MODE / sizeof MODE[0]; i++) {
        if (strcmp(MODE[i].name, argv[1]) == 0) {
            return MODE[i].run();
        }
    }
    return 99;
}
