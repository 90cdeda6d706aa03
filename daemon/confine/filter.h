/*
 * A seccomp filter over the system calls of a process that runs code of users: files and
 * descriptors that it has, memory, threads, time, and ioctl, which drivers are made of. There are
 * no new sockets, no other processes, no other user, and nothing that changes the system or looks
 * into it. A call outside returns EPERM. A handler of SIGSYS names it in the log once, or the
 * kernel does in its own (audit). Where SIGSYS is blocked, and in programs that the process starts,
 * the first way ends the process.
 */
#ifndef CONFINE_FILTER_H
#define CONFINE_FILTER_H

#include <stdbool.h>

#include "common/err.h"

struct filter {
    bool programs; /* it may start programs, which get the same filter */
    bool named;    /* refused calls raise SIGSYS and are in the process's own log */
};

/* Filters all threads of this process from here on, for good. It also gives up new privileges.
 * *ret_on is false where the kernel or this build has no filter: a build with a sanitizer needs
 * calls that are refused. ERR_INTERNAL. */
int filter_install(const struct filter *f, bool *ret_on, struct err *e);
bool filter_built(void); /* false: this build never filters */

#endif
