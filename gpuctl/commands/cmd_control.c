/* Commands that send one control request and print only whether it succeeded. */
#include <stdio.h>

#include "gpuctl/ctl/ctl.h"

static int control(struct ctl *ctl, struct options *options, const char *what, const char *done,
                   struct ctl_err *e)
{
    int rc = ctl_words(ctl, options, 0, 0, NULL, e);
    return rc == 0 ? ctl_control(ctl, what, NULL, done, e) : rc;
}

int cmd_reload(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    return control(ctl, options, "reload", "the settings were read again", e);
}

int cmd_pool_trim(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    return control(ctl, options, "pool-trim",
                   "workers were asked to give unused device memory back", e);
}

int cmd_accounts_reset(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    return control(ctl, options, "accounts-reset", "all accounts begin anew", e);
}

int cmd_log_level(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    const char *word[1] = {NULL};
    int rc = ctl_words(ctl, options, 1, 1, word, e);
    if (rc != 0) {
        return rc;
    }
    char done[64];
    snprintf(done, sizeof done, "log level is %.32s", word[0]);
    return ctl_control(ctl, "log-level", word[0], done, e);
}

int cmd_session_kill(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    const char *word[1] = {NULL};
    uint64_t session;
    int rc = ctl_words(ctl, options, 1, 1, word, e);
    if (rc == 0) {
        rc = ctl_number("SESSION", word[0], &session, e);
    }
    if (rc != 0) {
        return rc;
    }
    char value[24];
    snprintf(value, sizeof value, "%llu", (unsigned long long)session);
    return ctl_control(ctl, "session-kill", value, "session ended", e);
}
