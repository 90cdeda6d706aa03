/* The log of the daemon and its helpers in systemd's journal, through journalctl. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "gpuctl/ctl/ctl.h"
#include "gpuctl/ctl/logs.h"

enum {
    OPT_FOLLOW = 1,
    OPT_TENANT,
    OPT_DEVICE,
    OPT_JOB,
    OPT_SINCE,
    OPT_LINES,
    OPT_LEVEL,
    OPT_EXPLAIN
};

const struct option logs_option_list[] = {
    {"follow", 'f', false, OPT_FOLLOW},
    {"tenant", 0, true, OPT_TENANT},
    {"device", 0, true, OPT_DEVICE},
    {"job", 0, true, OPT_JOB},
    {"since", 0, true, OPT_SINCE},
    {"lines", 'n', true, OPT_LINES},
    {"level", 0, true, OPT_LEVEL},
    {"explain", 0, false, OPT_EXPLAIN},
    {0},
};

static int take_level(struct logs_request *r, const char *value, struct ctl_err *e)
{
    r->level = log_level_from_name(value);
    return r->level >= 0
               ? 0
               : ctl_err_usage(e, "--level %s: not one of error, warn, info, debug", value);
}

static int take(struct logs_request *r, int id, const char *value, struct ctl_err *e)
{
    switch (id) {
    case OPT_FOLLOW:
        r->follow = true;
        return 0;
    case OPT_TENANT:
        r->tenant = value;
        return 0;
    case OPT_DEVICE:
        r->by_device = true;
        return ctl_number("--device", value, &r->device, e);
    case OPT_JOB:
        r->by_job = true;
        return ctl_number("--job", value, &r->job, e);
    case OPT_SINCE:
        r->since = value;
        return 0;
    case OPT_LINES:
        r->limited = true;
        return ctl_number("--lines", value, &r->lines, e);
    case OPT_LEVEL:
        return take_level(r, value, e);
    default:
        r->explain = true;
        return 0;
    }
}

static int take_all(struct ctl *ctl, struct options *options, struct logs_request *r,
                    struct ctl_err *e)
{
    const char *value = NULL;
    int id;
    while ((id = ctl_option_only(ctl, options, logs_option_list, &value, e)) != OPTION_END) {
        if (id == OPTION_BAD) {
            return e->code;
        }
        int rc = take(r, id, value, e);
        if (rc != 0) {
            return rc;
        }
    }
    if (ctl->format == SHEET_CSV) {
        return ctl_err_usage(e, "the log is no table: take -o json, or leave -o out");
    }
    r->format = ctl->format == SHEET_JSON   ? "json"
                : ctl->format == SHEET_WIDE ? "verbose"
                                            : "short";
    return 0;
}

/* The journal of each system is a folder in there. */
static bool has_journal(const char *path)
{
    bool found = false;
    DIR *folder = opendir(path);
    const struct dirent *entry;
    while (folder != NULL && !found && (entry = readdir(folder)) != NULL) {
        found = entry->d_name[0] != '.';
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return found;
}

int cmd_logs(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    static const char without[] =
        "without a journal the log is the standard error of gpud and gpud-launcher: podman logs or "
        "docker logs for a container, else where they were started";
    struct logs_request r = {.level = -1};
    struct logs_arguments a;
    int rc = take_all(ctl, options, &r, e);
    if (rc != 0) {
        return rc;
    }
    if (ctl_other_host(ctl)) {
        return ctl_err_usage(e, "the log is read on the daemon's own host only: use gpuctl logs "
                                "there, without a URL of tls+tcp");
    }
    if ((rc = logs_arguments(&r, &a, e)) != 0) {
        return rc;
    }
    if (!has_journal("/run/log/journal") && !has_journal("/var/log/journal")) {
        return ctl_err_set(e, GPUD_ERR_NOT_FOUND, "this host has no journal; %s", without);
    }
    (void)execvp(a.argv[0], (char *const *)(uintptr_t)a.argv);
    return ctl_err_set(e, GPUD_ERR_NOT_FOUND, "journalctl: %s; %s", strerror(errno), without);
}
