/* The test's side of fault-preload: the daemons that are spawned after preload_begin() have it. */
#ifndef FAULT_CONTROL_H
#define FAULT_CONTROL_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fault/preload.h"
#include "tests/system/harness/harness.h"

/* For a prepared daemon; until the process ends. */
static inline struct preload *preload_begin(const struct daemon *d)
{
    const struct preload nothing = {.wall_ns = 0};
    char path[DAEMON_PATH + 16];
    (void)snprintf(path, sizeof path, "%s/control", d->dir);
    file_write(path, &nothing, sizeof nothing);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *at = mmap(NULL, sizeof nothing, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    ck_assert_ptr_ne(at, MAP_FAILED);
    ck_assert_int_eq(setenv(PRELOAD_CONTROL, path, 1), 0);
    ck_assert_int_eq(setenv("LD_PRELOAD", FAULT_PRELOAD, 1), 0);
    return at;
}

#endif
