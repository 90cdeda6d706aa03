/*
 * The daemon's settings. Defaults come first, then /etc/gpud/gpud.conf with gpud.conf.d (or
 * --config FILE), then the command line. The files are INI, read with libeconf. An error for an
 * unknown key or a bad value names file and line. Blocks on files, among them the system's groups.
 * Thread: any, one at a time for each struct config.
 */
#ifndef FRONT_SETTINGS_CONFIG_H
#define FRONT_SETTINGS_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "daemon/front/settings/metrics_address.h"

#define CONFIG_PATH        108 /* bytes: fits a unix socket's path */
#define CONFIG_LISTEN_MAX  8
#define CONFIG_SYSTEM_ROOT "/etc/gpud"
/* names of files and folders below the root */
#define CONFIG_FILE     "gpud.conf"
#define CONFIG_DROP_INS "gpud.conf.d"
#define CONFIG_TENANTS  "tenants.d"
#define CONFIG_TENANT   "tenant " /* begins the name of a tenant's section */
/* sockets in runtime_dir */
#define CONFIG_SHM      "shm.sock"      /* for descriptors (clients/shm.h) */
#define CONFIG_LAUNCHER "launcher.sock" /* the launcher's */

struct config {
    char listen[CONFIG_LISTEN_MAX][CONFIG_PATH + 8];
    unsigned listen_count;
    bool listen_tls;    /* one of them is tls+tcp:// */
    char tls_cert[256]; /* files or credentials (secret_file.h); "": none */
    char tls_key[256];
    char tls_client_ca[256]; /* of clients, which need certificates then */
    char runtime_dir[CONFIG_PATH];
    char cache_dir[CONFIG_PATH];
    char backend[16];          /* auto, cuda, opencl, sim */
    char devices[128];         /* indices as "0,2"; "": all */
    char backend_options[256]; /* the back end's own ("devices=2,…" for sim) */
    uint64_t min_devices;
    uint64_t start_timeout_s;
    char admin_group[33]; /* its members may control the daemon; "": none */
    char look[8];         /* sessions and jobs that clients see: own, all */
    char load_group[33];  /* its members may load kernels; "": none */
    int log_level;
    char access[CONFIG_PATH]; /* where a line for each ended job goes: off, journal, a file */
    uint64_t record_bytes;    /* of the file of a recording */
    char metrics_listen[METRICS_LISTEN_TEXT]; /* where metrics are served; "": nowhere */
    uint64_t connections_max;
    uint64_t handshake_timeout_ms;
    uint64_t prepared_workers; /* processes that wait to replace a device's shared worker: 0 or 1 */
    uint64_t sessions_max;
    uint64_t user_sessions_max;    /* sessions of one user; 0: three quarters of sessions_max */
    uint64_t queue_max;            /* jobs admitted and not ended */
    uint64_t session_inflight_max; /* unanswered requests, and unfinished jobs, of one session */
    uint64_t time_limit_ms;        /* default and ceiling of a job's time limit */
    uint64_t window;               /* jobs in one worker at once; 0: derived from completions */
    uint64_t batch_percent;        /* of a device that others want, for batch jobs, at least */
    uint64_t coalesce_window_us;   /* how long brief jobs wait to be coalesced; 0: they do not */
    uint64_t keep_results_bytes;   /* bytes of answers that are kept for one session */
    uint64_t ring_spin_us;         /* how long the loop polls rings before it sleeps */
    uint64_t session_linger_ms;    /* lifetime of a session without a connection */
    uint64_t buffers_max;          /* of one session */
    uint64_t arenas_max;           /* of one session */
    uint64_t session_arena_bytes;  /* of all arenas of one session */
    uint64_t tenant_arena_bytes;   /* of all arenas of one tenant */
    uint64_t tenant_buffers_max;   /* of one tenant, as the next eight */
    uint64_t tenant_jobs_max;      /* unfinished jobs; 0: all but a sixteenth of queue_max */
    uint64_t tenant_opens_max;     /* published buffers that it has opened */
    uint64_t tenant_programs_max;
    uint64_t tenant_modules_max;
    uint64_t tenant_arenas_max;
    uint64_t tenant_kernels_max;
    uint64_t tenant_notices_max;   /* that its sessions have not received */
    uint64_t tenant_message_bytes; /* bytes of answers, early requests, programs and sources */
    uint64_t device_memory_max;    /* bytes of one device's pool; 0: 15/16 of the device */
    uint64_t spill_limit;       /* bytes of host memory for buffers of full devices; see device.h */
    uint64_t domains_max;       /* workers of single tenants on one device; 0: none */
    uint64_t domain_percent;    /* of a device's memory, for each of them */
    uint64_t domain_idle_s;     /* after which an idle one ends */
    uint64_t domain_place_s;    /* for which one keeps its place, while others wait for one */
    uint64_t domain_spare;      /* workers on a device that no tenant has yet: 0 or 1 */
    uint64_t turn_overrun_ms;   /* after the end of a turn: then its domain's worker is ended */
    char mps_devices[256];      /* indices of devices whose workers take no turns */
    uint64_t domain_host_bytes; /* of host memory for buffers of ended ones; as spill_limit */
    uint64_t recall_ms;         /* how long a worker has to give memory above a new limit back */
    uint64_t stay_percent;      /* of a device, for buffers that stay there, without guarantees */
    uint64_t managed_limit;     /* bytes of managed memory on one device */
    uint64_t staging_input_bytes;
    uint64_t staging_output_bytes;
    uint64_t compile_wall_ms;
    uint64_t compile_cpu_s;
    uint64_t compile_memory_bytes;
    char compile_cuda[8]; /* the compiler of CUDA C: auto, nvrtc, nvcc */
    bool foreground;
    char file[256];         /* the first file that was read; "": none */
    char root[CONFIG_PATH]; /* the folder of all files, unless `chosen` */
    bool chosen;            /* `file` was named on the command line, and no other file is read */
};

void config_defaults(struct config *ret_config);
/* path NULL: the system's files, which may be absent. A path that is given must exist. On failure
 * *config is unchanged. */
int config_load(struct config *config, const char *path, struct err *e);
/* Do the daemon's settings have a section of this name? */
bool config_section(const char *name);
/* Limit of unanswered requests of one connection: session_inflight_max and REQUESTS_SPARE others,
 * but at least 1,024. */
#define REQUESTS_SPARE 512u
uint64_t config_requests_max(const struct config *config);
/* Limit of unfinished jobs of a tenant without a limit of its own. */
static inline uint64_t config_tenant_jobs(const struct config *config)
{
    uint64_t all = config->queue_max;
    return config->tenant_jobs_max > 0 ? config->tenant_jobs_max : all - all / 16;
}
/* Sets "section.key" from text, as in a file. The command line uses it as well. */
int config_set(struct config *config, const char *key, const char *value, struct err *e);

/* A number; with `units`, K, M, G or T (powers of 1024) may follow. A number that does not fit
 * becomes UINT64_MAX. */
int config_number(const char *key, const char *value, bool units, uint64_t *ret_number,
                  struct err *e);

/* Takes over the settings that may change while devices run. Writes the names of other settings
 * that differ into ret_waiting, with spaces between them ("": none). Those count from the next
 * start of the daemon, or of a worker. Pure. */
void config_take_live(struct config *config, const struct config *fresh, char *ret_waiting,
                      unsigned size);

/* Derives settings from others once all are set: `listen` defaults to gpud.sock in runtime_dir.
 * ERR_RANGE for settings that contradict each other. */
int config_complete(struct config *config, struct err *e);

/* For the table `config`: the key at this index, with its value as text; false: no such index. */
bool config_at(const struct config *config, unsigned index, const char **ret_section,
               const char **ret_key, char *ret_value, unsigned size);

#endif
