/*
 * Settings: built-in defaults, then /etc/gpud/gpud.conf and those of gpud.conf.d (or --config
 * FILE), then the command line. INI read with libeconf. Unknown keys and bad values are errors that
 * name file and line. Pure but for reading files, that of groups among them; blocks on them.
 */
#ifndef FRONT_SETTINGS_CONFIG_H
#define FRONT_SETTINGS_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

#define CONFIG_PATH        108 /* bytes: fits a unix socket's path */
#define CONFIG_LISTEN_MAX  8
#define CONFIG_SYSTEM_ROOT "/etc/gpud"
/* in it */
#define CONFIG_FILE     "gpud.conf"
#define CONFIG_DROP_INS "gpud.conf.d"
#define CONFIG_TENANTS  "tenants.d"
#define CONFIG_TENANT   "tenant " /* how the name of a tenant's section begins */

struct config {
    char listen[CONFIG_LISTEN_MAX][CONFIG_PATH + 8];
    unsigned listen_count;
    char runtime_dir[CONFIG_PATH];
    char cache_dir[CONFIG_PATH];
    char backend[16];          /* auto, cuda, opencl, sim */
    char devices[128];         /* "" = all, else "0,2" */
    char backend_options[256]; /* handed to the back end ("devices=2,…" for sim) */
    uint64_t min_devices;
    uint64_t start_timeout_s;
    char admin_group[33]; /* its members may control the daemon, "" = none */
    char look[8];         /* own, all: whose sessions and jobs others see */
    char load_group[33];  /* its members may load kernels, "" = none */
    int log_level;
    uint64_t connections_max;
    uint64_t handshake_timeout_ms;
    uint64_t sessions_max;
    uint64_t user_sessions_max;    /* of one user; 0: three quarters of sessions_max */
    uint64_t queue_max;            /* jobs admitted and not ended */
    uint64_t session_inflight_max; /* unanswered requests, and unfinished jobs, of one session */
    uint64_t time_limit_ms;        /* default and ceiling of a job's */
    uint64_t window;               /* jobs given to one worker at once, 0: found from completions */
    uint64_t coalesce_window_us;   /* how long brief jobs wait for more of them; 0: not at all */
    uint64_t keep_results_bytes;   /* unanswered results of one session */
    uint64_t ring_spin_us;         /* how long the loop looks at rings before it sleeps */
    uint64_t session_linger_ms;    /* a session without a connection lives so long */
    uint64_t buffers_max;          /* of one session */
    uint64_t arenas_max;           /* of one session */
    uint64_t session_arena_bytes;  /* of all arenas of one session */
    uint64_t tenant_arena_bytes;   /* of all arenas of one tenant */
    uint64_t tenant_buffers_max;   /* of one tenant, as those below */
    uint64_t tenant_jobs_max;      /* unfinished; 0: all but a sixteenth of queue_max */
    uint64_t tenant_opens_max;     /* of published buffers */
    uint64_t tenant_programs_max;
    uint64_t tenant_modules_max;
    uint64_t tenant_arenas_max;
    uint64_t tenant_kernels_max;
    uint64_t tenant_notices_max;   /* that its sessions were not told yet */
    uint64_t tenant_message_bytes; /* answers, early requests, programs and sources of all its
                                      sessions */
    uint64_t device_memory_max;    /* bytes one device's pool may take; 0: 15/16 of it */
    uint64_t spill_limit;   /* bytes of host memory for what full devices hold; see device.h */
    uint64_t managed_limit; /* bytes of managed memory on one device */
    uint64_t staging_input_bytes;
    uint64_t staging_output_bytes;
    uint64_t compile_wall_ms;
    uint64_t compile_cpu_s;
    uint64_t compile_memory_bytes;
    char compile_cuda[8]; /* "auto", "nvrtc" or "nvcc": what CUDA C is given to */
    bool foreground;
    char file[256];         /* what was read, "" if none */
    char root[CONFIG_PATH]; /* the folder of all files, unless one was chosen */
    bool chosen;            /* it was named on the command line: the system's files do not count */
};

void config_defaults(struct config *ret_config);
/* path NULL: the system's files, absent ones are fine. A path that is given must exist. On failure
 * *config is as before. */
int config_load(struct config *config, const char *path, struct err *e);
/* Is there such a section? */
bool config_section(const char *name);
/* Requests of one connection that may be unanswered: its jobs, and REQUESTS_SPARE others. */
#define REQUESTS_SPARE 512u
uint64_t config_requests_max(const struct config *config);
/* One setting by "section.key", as from a file; used by the command line. */
int config_set(struct config *config, const char *key, const char *value, struct err *e);

/* A number; with `units` K, M, G or T (powers of 1024) may follow. What is too large is UINT64_MAX.
 */
int config_number(const char *key, const char *value, bool units, uint64_t *ret_number,
                  struct err *e);

/* Takes over what may change while devices run, and writes the names of other settings that differ,
 * separated by spaces, into ret_waiting ("": none): they count from the next start, and those that
 * workers are started with when these start anew. Pure. */
void config_take_live(struct config *config, const struct config *fresh, char *ret_waiting,
                      unsigned size);

/* Fills in what follows from the rest, once all is set: without `listen`, gpud.sock in runtime_dir.
 * ERR_RANGE where settings do not go together. */
int config_complete(struct config *config, struct err *e);

/* For `gpuctl config show`: every key with its value as text; false at the end. */
bool config_at(const struct config *config, unsigned index, const char **ret_section,
               const char **ret_key, char *ret_value, unsigned size);

#endif
