#include "gpuctl/doctor/doctor.h"

#include <string.h>

/* In the order in which a start depends on them. */
const struct check doctor_checks[] = {
    {"driver", NEED_NVIDIA, check_driver},
    {"kernel-memory", NEED_NVIDIA, check_kernel_memory},
    {"devices", NEED_NOTHING, check_devices},
    {"opencl", NEED_NOTHING, check_opencl},
    {"users", NEED_UNITS, check_users},
    {"group", NEED_UNITS, check_group},
    {"settings", NEED_NOTHING, check_settings},
    {"socket", NEED_NOTHING, check_socket},
    {"daemon", NEED_NOTHING, check_daemon},
    {"versions", NEED_NOTHING, check_versions},
    {"descriptors", NEED_NOTHING, check_descriptors},
    {"memlock", NEED_NOTHING, check_memlock},
    {"cgroup", NEED_NOTHING, check_cgroup},
    {"confinement", NEED_NOTHING, check_confinement},
    {"cache", NEED_NOTHING, check_cache},
    {"compilers", NEED_NOTHING, check_compilers},
    {"libraries", NEED_NVIDIA, check_libraries},
    {"nng", NEED_NOTHING, check_nng},
    {"pocl", NEED_NOTHING, check_pocl},
    {"health", NEED_NOTHING, check_health},
    {0},
};

const struct check *doctor_check_find(const char *name)
{
    for (const struct check *c = doctor_checks; c->name != NULL; c++) {
        if (strcmp(c->name, name) == 0) {
            return c;
        }
    }
    return NULL;
}

/* Why the check cannot look; NULL: it can. */
static const char *missing(const struct doctor *d, enum check_need need)
{
    switch (need) {
    case NEED_NVIDIA:
        return host_nvidia_gpus(d->host) > 0 ? NULL : "this host has no GPU of NVIDIA";
    case NEED_UNITS:
        return host_has_units(d->host) ? NULL
                                       : "gpud.service is not installed: gpud is started by hand";
    default:
        return NULL;
    }
}

void doctor_look(const struct doctor *d, const struct check *check, struct finding *ret_finding)
{
    struct finding f = {.state = FINDING_OK};
    const char *why = missing(d, check->need);
    if (why != NULL) {
        finding_add(&f, FINDING_SKIPPED, "", "%s", why);
    } else {
        check->look(d, &f);
    }
    *ret_finding = f;
}
