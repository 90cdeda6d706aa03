/* How journalctl is asked for the log of gpud. Thread: one. */
#ifndef GPUCTL_CTL_LOGS_H
#define GPUCTL_CTL_LOGS_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuctl/base/ctl_err.h"

#define LOGS_ARGUMENTS_MAX 24u
#define LOGS_TEXT          512u

struct logs_request {
    bool follow;
    bool explain;       /* with the catalogue's texts */
    const char *format; /* of journalctl */
    const char *since;  /* as journalctl takes it; NULL: from the begin */
    int level;          /* the least urgent one, LOG_LEVEL_*; -1: all */
    bool limited;
    uint64_t lines;     /* the newest ones */
    const char *tenant; /* NULL: of any tenant and none */
    bool by_device;
    uint64_t device;
    bool by_job;
    uint64_t job;
};

struct logs_arguments {
    const char *argv[LOGS_ARGUMENTS_MAX + 1]; /* ends with NULL */
    unsigned count;
    char text[LOGS_TEXT]; /* of those that were made; the rest are static or the request's */
    unsigned used;
};

/* INVALID: texts that are too long. */
int logs_arguments(const struct logs_request *r, struct logs_arguments *ret_arguments,
                   struct ctl_err *e);

#endif
