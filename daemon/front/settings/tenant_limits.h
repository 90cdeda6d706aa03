/*
 * The limits of a tenant, as the settings give them. Thread: any; all is constant.
 */
#ifndef FRONT_SETTINGS_TENANT_LIMITS_H
#define FRONT_SETTINGS_TENANT_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

/* Memory of one device: bytes, or a share of what its pool may take. */
struct amount {
    uint64_t bytes;
    unsigned percent; /* 1 … 100; 0: `bytes` counts */
};

#define AMOUNT_NONE      ((struct amount){.bytes = 0})
#define AMOUNT_UNLIMITED ((struct amount){.bytes = UINT64_MAX})

/* Things of which a tenant may have a limited number, over all its sessions. */
enum tenant_thing {
    TENANT_BUFFERS,
    TENANT_JOBS, /* unfinished */
    TENANT_OPENS,
    TENANT_PROGRAMS,
    TENANT_MODULES,
    TENANT_ARENAS,
    TENANT_KERNELS, /* of its modules, also of freed ones that jobs still use */
    TENANT_NOTICES, /* that its sessions have not received */
    TENANT_THINGS,
};

extern const char *const tenant_settings[TENANT_THINGS]; /* the setting's key: "buffers_max" */

#define TENANT_WEIGHT_USUAL 100u
#define TENANT_WEIGHT_MAX   10000u

extern const char *const tenant_classes[]; /* names of enum proto_class: "batch" */

enum tenant_load { TENANT_LOAD_BY_GROUP, TENANT_LOAD_YES, TENANT_LOAD_NO };

/* What a tenant may do that is else for administrators. */
enum tenant_role {
    ROLE_DRAIN = 1,  /* drain and resume */
    ROLE_RELOAD = 2, /* read the settings again */
    ROLE_SEE = 4,    /* see the work of others */
    ROLE_CANCEL = 8, /* see and cancel it */
};

#define TENANT_ROLES 4u
extern const char *const tenant_roles[TENANT_ROLES]; /* names, by bit: "drain" */

struct tenant_limits {
    struct amount hard;           /* at most, on one device */
    struct amount soft;           /* buffers above it move to the host first */
    struct amount guaranteed;     /* reserved for it, and never moved to the host for others */
    struct amount spilled;        /* at most on the host, for one device */
    uint64_t total;               /* bytes of its buffers on all devices; UINT64_MAX: no limit */
    uint64_t arena_bytes;         /* UINT64_MAX: [tenants] arena_bytes_max */
    uint64_t sessions;            /* 0: [jobs] user_sessions_max */
    uint64_t most[TENANT_THINGS]; /* 0: the setting of [tenants] */
    enum tenant_load load;        /* whether it may load kernels */
    bool trusted;                 /* its kernels may run in the workers that tenants share */
    uint64_t weight;              /* its part of devices, against that of others */
    uint64_t job_class;           /* the smallest of its jobs (enum proto_class) */
    uint64_t in_flight;           /* jobs that workers have at once; 0: no limit */
    uint64_t devices;             /* a bit for each that it may use; 0: all */
    unsigned roles;               /* bits of enum tenant_role */
    bool barred;                  /* gets no new sessions */
    unsigned device_share;        /* percent of each device's time; 0: no limit */
    uint64_t transfer_rate;       /* bytes a second between host and devices; 0: no limit */
};

/* No limits of its own; those of all tenants still apply. */
extern const struct tenant_limits TENANT_UNLIMITED;

/* The amount in bytes. all: bytes of the device's pool. */
uint64_t amount_of(const struct amount *a, uint64_t all);

#endif
