/* A daemon whose workers use the double of the CUDA driver. The double writes calls that it objects
 * to into the file "report" of the daemon's directory (daemon_end_clean). */
#ifndef SYSTEM_DOUBLE_H
#define SYSTEM_DOUBLE_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/system/harness/harness.h"

#define GATE_ITEMS 64u

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

/* The folder where the doubles of a prepared daemon keep the state that they share. */
static inline void double_state(const struct daemon *d)
{
    char path[DAEMON_PATH + 16];
    (void)snprintf(path, sizeof path, "%s/state", d->dir);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    (void)setenv("CUDA_FAKE_STATE", path, 1);
}

/* A job that runs until gate_open(), on GATE_ITEMS numbers. */
static inline gpud_job *gate_start(const struct daemon *d, gpud_client *c, float *y)
{
    static const char source[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                                 ".visible .entry fake_gate(.param .u64 p)\n{\n\tret;\n}\n";
    gpud_module m = {0};
    gpud_kernel k = {0};
    gpud_job *job = NULL;
    gpud_arg args[] = {gpud_host_inout(y, GATE_ITEMS, GPUD_F32)};
    const gpud_grid one_item = {.size = sizeof one_item, .global = {1}, .local = {1}};
    const gpud_module_options o = {.size = sizeof o, .file = "user.ptx", .name = "user"};
    ck_gpud_ok(gpud_module_load(c, GPUD_LANG_PTX, source, sizeof source - 1, &o, &m));
    ck_gpud_ok(gpud_module_kernel(c, m, "fake_gate", &k));
    ck_gpud_ok(gpud_launch(c, k, args, 1, &one_item, NULL, &job));
    ck_until(gpud_dispatch(c) == 0 && gate_shut(d));
    return job;
}

#endif
