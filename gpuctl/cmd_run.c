#include <stdlib.h>

#include "gpuctl/run.h"

static int run_all(struct ctl *ctl, struct run *run, struct ctl_err *e)
{
    int rc = ctl_connect(ctl, e);
    if (rc == 0) {
        rc = run_find_kernel(ctl, run, e);
    }
    if (rc == 0) {
        rc = run_order_args(run, e);
    }
    if (rc == 0) {
        rc = run_load_args(ctl, run, e);
    }
    if (rc != 0 || run->options.dry_run) {
        return rc == 0 ? run_show_plan(ctl, run, e) : rc;
    }
    rc = run_jobs(ctl, run, e);
    return rc == 0 && !run->options.detach ? run_results(ctl, run, e) : rc;
}

int cmd_run(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    struct run *run = calloc(1, sizeof *run);
    if (run == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    }
    int rc = run_options_parse(ctl, options, &run->options, e);
    if (rc == 0) {
        rc = run_all(ctl, run, e);
    }
    run_finish(ctl, run);
    free(run);
    return rc;
}
