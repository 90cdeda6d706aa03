/* Commands that show one of the daemon's tables. */
#include "gpuctl/ctl.h"

static int show(struct ctl *ctl, struct options *options, const char *what, bool filter,
                struct ctl_err *e)
{
    const char *word[1] = {NULL};
    int rc = ctl_words(ctl, options, 0, filter ? 1 : 0, word, e);
    return rc == 0 ? ctl_show(ctl, what, word[0], e) : rc;
}

int cmd_devices(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    return show(ctl, options, "devices", false, e);
}

int cmd_kernels(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    return show(ctl, options, "kernels", true, e);
}

int cmd_jobs(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    return show(ctl, options, "jobs", true, e);
}

int cmd_sessions(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    return show(ctl, options, "sessions", false, e);
}

int cmd_tenants(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    return show(ctl, options, "tenants", false, e);
}
