/* The items that go through the daemon. Each is a Check test, so that a failing item ends alone. */
#ifndef GPU_SYSTEM_H
#define GPU_SYSTEM_H

#include "tests/gpu/record.h"
#include "tests/system/harness/harness.h"

/* A test as a case that is called like the item that it records: by that name run.sh records one
 * that fails before it could. `i` is its _i. */
void gpu_add(Suite *s, const char *item, const TTest *test, int i);

/* A daemon on the CUDA back end and a client of it. */
gpud_client *gpu_begin(struct daemon *d);
/* The suite's kernels, loaded by this client. */
gpud_module gpu_module(gpud_client *c);
gpud_kernel gpu_kernel(gpud_client *c, gpud_module module, const char *name);
/* Submits a launch of one thread. */
gpud_job *gpu_launch(gpud_client *c, gpud_kernel k, const gpud_arg *args, uint32_t count,
                     uint64_t time_limit_ns);

Suite *faults_suite(void);
Suite *speed_suite(void);
Suite *demo_suite(void);
Suite *parts_suite(void);
Suite *programs_suite(void);

#endif
