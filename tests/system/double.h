/* A daemon whose workers have the double of the CUDA driver; what they do wrong is told in the file
 * "report" of its directory (daemon_end_clean). */
#ifndef SYSTEM_DOUBLE_H
#define SYSTEM_DOUBLE_H

#include <stdio.h>
#include <stdlib.h>

#include "tests/system/harness.h"

/* The devices of a prepared daemon: see tests/fakecuda. */
static inline void double_prepare(const struct daemon *d, const char *script)
{
    char path[DAEMON_PATH + 16];
    (void)snprintf(path, sizeof path, "%s/report", d->dir);
    file_write(path, "", 0);
    (void)setenv("CUDA_FAKE_REPORT", path, 1);
    (void)setenv("CUDA_FAKE", script, 1);
    (void)setenv("LD_LIBRARY_PATH", SYSTEM_FAKECUDA, 1);
}

/* The same, its start, and a client. */
static inline gpud_client *double_begin(struct daemon *d, const char *script)
{
    double_prepare(d, script);
    daemon_spawn(d);
    daemon_wait_ready(d);
    return client_open(d->url);
}

#endif
