/* Commands that show one of the daemon's tables. */
#include "gpuctl/ctl/ctl.h"
#include "gpuctl/input/spec.h"

static int show(struct ctl *ctl, struct options *options, const char *what, bool filter,
                struct ctl_err *e)
{
    const char *word[1] = {NULL};
    int rc = ctl_words(ctl, options, 0, filter ? 1 : 0, word, e);
    const gpud_query_options q = {.size = sizeof q, .filter = word[0]};
    return rc == 0 ? ctl_show(ctl, what, &q, e) : rc;
}

int cmd_devices(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    return show(ctl, options, "devices", false, e);
}

int cmd_domains(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    return show(ctl, options, "domains", false, e);
}

int cmd_kernels(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    return show(ctl, options, "kernels", true, e);
}

int cmd_buffers(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    return show(ctl, options, "buffers", true, e);
}

enum { OPT_STATE = 1, OPT_SESSION, OPT_TENANT, OPT_LIMIT };

const struct option jobs_option_list[] = {
    {"state", 0, true, OPT_STATE},
    {"session", 0, true, OPT_SESSION},
    {"tenant", 0, true, OPT_TENANT},
    {"limit", 0, true, OPT_LIMIT},
    {0},
};

static int take_jobs_option(int id, const char *value, gpud_query_options *q, struct ctl_err *e)
{
    switch (id) {
    case OPT_STATE:
        q->state = value;
        return 0;
    case OPT_SESSION:
        return spec_number("--session", value, 1, UINT64_MAX, &q->session, e);
    case OPT_TENANT:
        q->tenant = value;
        return 0;
    case OPT_LIMIT:
        return spec_number("--limit", value, 1, UINT64_MAX, &q->limit, e);
    default:
        if (q->filter != NULL) {
            return ctl_err_usage(e, "unexpected word '%s'", value);
        }
        q->filter = value;
        return 0;
    }
}

int cmd_jobs(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    gpud_query_options q = {.size = sizeof q};
    const char *value = NULL;
    int id;
    while ((id = ctl_option(ctl, options, jobs_option_list, &value, e)) != OPTION_END) {
        int rc = id != OPTION_BAD ? take_jobs_option(id, value, &q, e) : e->code;
        if (rc != 0) {
            return rc;
        }
    }
    return ctl_show(ctl, "jobs", &q, e);
}

int cmd_sessions(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    return show(ctl, options, "sessions", false, e);
}

int cmd_accounts(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    return show(ctl, options, "accounts", false, e);
}

int cmd_tenants(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    return show(ctl, options, "tenants", false, e);
}
