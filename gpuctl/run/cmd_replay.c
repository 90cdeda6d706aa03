/* gpuctl replay: the options. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "gpuctl/ctl/interrupt.h"
#include "gpuctl/run/replay.h"

#define SPEED_MOST 1e6

enum { OPT_SPEED = 1, OPT_JOBS, OPT_DEVICE, OPT_SEED, OPT_JSON };

const struct option replay_option_list[] = {
    {"speed", 0, true, OPT_SPEED}, {"jobs", 0, true, OPT_JOBS},  {"device", 0, true, OPT_DEVICE},
    {"seed", 0, true, OPT_SEED},   {"json", 0, false, OPT_JSON}, {0},
};

static int speed_of(const char *value, double *ret_speed, struct ctl_err *e)
{
    char *end = NULL;
    errno = 0;
    *ret_speed = strtod(value, &end);
    bool good = end != value && *end == '\0' && errno == 0 && isfinite(*ret_speed) &&
                *ret_speed >= 0 && *ret_speed <= SPEED_MOST;
    return good ? 0
                : ctl_err_usage(e, "--speed %s: a factor, such as 2 or 0.5; 0: as fast as possible",
                                value);
}

static int take(struct ctl *ctl, struct replay_options *o, int id, const char *value,
                struct ctl_err *e)
{
    switch (id) {
    case OPTION_WORD:
        if (o->file != NULL) {
            return ctl_err_usage(e, "%s: one file is enough", value);
        }
        o->file = value;
        return 0;
    case OPT_SPEED:
        return speed_of(value, &o->speed, e);
    case OPT_JOBS:
        return spec_number("--jobs", value, 1, UINT32_MAX, &o->jobs, e);
    case OPT_DEVICE:
        return ctl_device(value, &o->device, e);
    case OPT_SEED:
        return spec_number("--seed", value, 0, UINT64_MAX, &o->seed, e);
    default:
        ctl->format = SHEET_JSON;
        return 0;
    }
}

int cmd_replay(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    const char *value = NULL;
    int rc = 0;
    int id;
    struct replay *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    }
    r->ctl = ctl;
    r->options = (struct replay_options){.speed = 1, .seed = 1};
    while (rc == 0 &&
           (id = ctl_option(ctl, options, replay_option_list, &value, e)) != OPTION_END) {
        rc = id == OPTION_BAD ? e->code : take(ctl, &r->options, id, value, e);
    }
    if (rc == 0 && r->options.file == NULL) {
        rc = ctl_err_usage(e, "say which recording: gpuctl replay FILE");
    }
    if (rc == 0) {
        interrupt_catch();
        rc = replay_run(r, e);
        rc = rc == 0 ? replay_report(r, e) : rc;
        interrupt_release();
    }
    replay_forget(r);
    free(r);
    return rc;
}
