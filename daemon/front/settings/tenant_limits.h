/*
 * What a tenant may have, as the settings say it. Thread: any; nothing here changes.
 */
#ifndef FRONT_SETTINGS_TENANT_LIMITS_H
#define FRONT_SETTINGS_TENANT_LIMITS_H

#include <stdint.h>

/* Memory of one device: bytes, or a share of what its pool may take. */
struct amount {
    uint64_t bytes;
    unsigned percent; /* 1 … 100; 0: bytes counts */
};

#define AMOUNT_NONE      ((struct amount){.bytes = 0})
#define AMOUNT_UNLIMITED ((struct amount){.bytes = UINT64_MAX})

/* What a tenant has a number of at most, beside what each of its sessions has. */
enum tenant_thing {
    TENANT_BUFFERS,
    TENANT_JOBS, /* unfinished */
    TENANT_OPENS,
    TENANT_PROGRAMS,
    TENANT_MODULES,
    TENANT_ARENAS,
    TENANT_KERNELS, /* of its modules, those that only jobs use still among them */
    TENANT_NOTICES, /* that its sessions were not told yet */
    TENANT_THINGS,
};

extern const char *const tenant_settings[TENANT_THINGS]; /* "buffers_max" */

enum tenant_load { TENANT_LOAD_BY_GROUP, TENANT_LOAD_YES, TENANT_LOAD_NO };

struct tenant_limits {
    struct amount hard;           /* at most, on one device */
    struct amount soft;           /* what is above goes to the host first */
    struct amount guaranteed;     /* what is kept free for it, and not moved for others */
    struct amount spilled;        /* at most on the host, for one device */
    uint64_t total;               /* bytes of its buffers on all devices; UINT64_MAX: no limit */
    uint64_t arena_bytes;         /* UINT64_MAX: as [tenants] arena_bytes_max says */
    uint64_t sessions;            /* 0: as [jobs] user_sessions_max says */
    uint64_t most[TENANT_THINGS]; /* 0: as [tenants] says */
    enum tenant_load load;        /* of kernels of its own */
};

extern const struct tenant_limits TENANT_UNLIMITED; /* but by what all share */

/* `all`: what the device's pool may take, in bytes; so is the result. */
uint64_t amount_of(const struct amount *a, uint64_t all);

#endif
