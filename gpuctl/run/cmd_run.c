#include <stdlib.h>

#include "gpuctl/run/run.h"

/* Shows a detached job: people have seen its number in a message, programs get it as a row. */
static int show_job(struct ctl *ctl, const struct run *run, struct ctl_err *e)
{
    struct detached {
        struct sheet_cell job;
    };
    static const struct sheet_field fields[] = {
        SHEET_FIELD(struct detached, job, GPUD_COLUMN_HANDLE, false)};
    const struct detached row = {.job = {.value = run->job_id}};
    const struct sheet_rows rows = SHEET_ROWS("job", fields, &row, 1);
    return ctl->format == SHEET_TABLE || ctl->format == SHEET_WIDE ? 0
                                                                   : ctl_write_rows(ctl, &rows, e);
}

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
    if (rc != 0) {
        return rc;
    }
    return run->options.detach ? show_job(ctl, run, e) : run_results(ctl, run, e);
}

int cmd_run(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    struct run *run = calloc(1, sizeof *run);
    if (run == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    }
    int rc = run_options_parse(ctl, options, &run->options, e);
    if (rc == 0) {
        rc = run->options.job != NULL ? run_dumped(ctl, run, e) : run_all(ctl, run, e);
    }
    run_finish(ctl, run);
    free(run);
    return rc;
}
