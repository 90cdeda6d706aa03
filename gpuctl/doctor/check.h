/*
 * The checks of `gpuctl doctor`. A check looks at one thing and reports one finding. Checks change
 * nothing on the host. They read files of the system and ask other programs, which they end after a
 * time. Thread: one.
 */
#ifndef GPUCTL_DOCTOR_CHECK_H
#define GPUCTL_DOCTOR_CHECK_H

#include "gpuctl/doctor/facts.h"
#include "gpuctl/doctor/finding.h"
#include "gpuctl/doctor/host.h"

/* What the checks look at. */
struct doctor {
    const struct host *host;
    struct facts facts; /* of the daemon; facts.reached: it answered */
};

/* doctor.c has their table. */
#define CHECK(name) void name(const struct doctor *d, struct finding *f)
CHECK(check_driver);
CHECK(check_kernel_memory);
CHECK(check_devices);
CHECK(check_users);
CHECK(check_group);
CHECK(check_settings);
CHECK(check_socket);
CHECK(check_daemon);
CHECK(check_versions);
CHECK(check_health);
CHECK(check_descriptors);
CHECK(check_memlock);
CHECK(check_cgroup);
CHECK(check_confinement);
CHECK(check_cache);
CHECK(check_opencl);
CHECK(check_compilers);
CHECK(check_libraries);
CHECK(check_nng);
CHECK(check_pocl);
#undef CHECK

#endif
