/* What the launcher's tests let it start: does what its first argument says. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
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

/* 0 if the process was started as it is to be; else the number of what is wrong */
static int check(void)
{
    struct rlimit core;
    for (int fd = 0; fd < 256; fd++) {
        if ((fcntl(fd, F_GETFD) >= 0) != (fd <= 5)) {
            return 10;
        }
    }
    if (getenv("SECRET_OF_THE_LAUNCHER") != NULL || getenv("PATH") == NULL) {
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

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } MODE[] = {{"echo", echo}, {"check", check}, {"hang", hang}, {"breed", breed}, {"spin", spin}};
    for (size_t i = 0; argc > 1 && i < sizeof MODE / sizeof MODE[0]; i++) {
        if (strcmp(MODE[i].name, argv[1]) == 0) {
            return MODE[i].run();
        }
    }
    return 99;
}
