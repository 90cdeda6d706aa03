#include "daemon/front/settings/tenant_limits.h"

#include "common/saturate.h"
#include "proto/limits.h"

const struct tenant_limits TENANT_UNLIMITED = {.hard = {.bytes = UINT64_MAX},
                                               .soft = {.bytes = UINT64_MAX},
                                               .spilled = {.bytes = UINT64_MAX},
                                               .total = UINT64_MAX,
                                               .arena_bytes = UINT64_MAX,
                                               .weight = TENANT_WEIGHT_USUAL,
                                               .job_class = CLASS_INTERACTIVE};

const char *const tenant_roles[TENANT_ROLES] = {"drain", "reload", "see", "cancel"};

const char *const tenant_settings[TENANT_THINGS] = {
    [TENANT_BUFFERS] = "buffers_max", [TENANT_JOBS] = "jobs_max",
    [TENANT_OPENS] = "opens_max",     [TENANT_PROGRAMS] = "programs_max",
    [TENANT_MODULES] = "modules_max", [TENANT_ARENAS] = "arenas_max",
    [TENANT_KERNELS] = "kernels_max", [TENANT_NOTICES] = "notices_max"};

const char *const tenant_classes[] = {[CLASS_USUAL] = "usual",
                                      [CLASS_REALTIME] = "realtime",
                                      [CLASS_INTERACTIVE] = "interactive",
                                      [CLASS_BATCH] = "batch"};

uint64_t amount_of(const struct amount *a, uint64_t all)
{
    return a->percent == 0 ? a->bytes : percent_of(all, a->percent);
}
