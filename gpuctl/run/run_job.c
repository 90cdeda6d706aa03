#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpuctl/run/run.h"

#define LOOK_NS   50000000u            /* interval of the checks whether the job has its number */
#define LISTEN_NS 200000000u           /* interval of the checks whether the user interrupted */
#define LEAVE_NS  UINT64_C(2000000000) /* longest wait for the end of a cancelled job */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

static int submit(struct ctl *ctl, struct run *run, struct ctl_err *e)
{
    gpud_arg args[RUN_ARGS];
    for (uint32_t i = 0; i < run->arg_count; i++) {
        args[i] = run->arg[i].value;
    }
    gpud_submit_options o = {
        .size = sizeof o,
        .deadline_ns = run->options.timeout_ns,
        .time_limit_ns = run->options.timeout_ns,
        .job_class = run->options.job_class,
        .priority = run->options.priority,
        .flags = run->options.detach ? GPUD_SUBMIT_DETACHED : 0,
        .device = run->options.device,
        .label = "gpuctl run",
    };
    const gpud_grid *grid = run->options.grid.global[0] != 0 ? &run->options.grid : NULL;
    gpud_job_free(run->job);
    run->job = NULL;
    int rc = gpud_launch(ctl->client, run->kernel, args, run->arg_count, grid, &o, &run->job);
    return rc == 0 ? 0 : ctl_err_lib(e, rc, "%s", run->desc.name);
}

/* Waits until the daemon has given the job its number, or refused the job. */
static int wait_number(struct run *run)
{
    int rc = GPUD_ERR_TIMEOUT;
    while (rc == GPUD_ERR_TIMEOUT && gpud_job_id(run->job) == 0 && !interrupted) {
        rc = gpud_wait(run->job, LOOK_NS);
    }
    run->job_id = gpud_job_id(run->job);
    if (run->job_id != 0) {
        ctl_say("job %llu", (unsigned long long)run->job_id);
    }
    return rc;
}

static int job_failed(struct run *run, int rc, struct ctl_err *e)
{
    gpud_error error = {.size = sizeof error};
    if (gpud_job_error(run->job, &error) == 0 && error.code != 0) {
        return ctl_err_set(e, error.code, "%s", error.text);
    }
    return ctl_err_lib(e, rc, "%s", run->desc.name);
}

static int wait_job(struct run *run, struct ctl_err *e)
{
    int rc = wait_number(run);
    bool accepted = rc == 0 || (rc == GPUD_ERR_TIMEOUT && run->job_id != 0);
    if (run->options.detach && accepted) {
        return 0;
    }
    while (rc == GPUD_ERR_TIMEOUT && !interrupted) {
        rc = gpud_wait(run->job, LISTEN_NS);
    }
    if (rc == GPUD_ERR_TIMEOUT) {
        (void)gpud_cancel(run->job);
        rc = gpud_wait(run->job, LEAVE_NS);
        return rc == GPUD_ERR_TIMEOUT
                   ? ctl_err_set(e, CTL_INTERRUPTED, "interrupted; the job was asked to end")
                   : ctl_err_set(e, CTL_INTERRUPTED, "interrupted");
    }
    return rc == 0 ? 0 : job_failed(run, rc, e);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Sorts the times. */
static void say_times(uint64_t *executed, uint64_t count)
{
    char least[32], middle[32], most[32];
    qsort(executed, count, sizeof *executed, compare);
    ctl_say("executed %llu times: least %s, median %s, most %s", (unsigned long long)count,
            sheet_text(GPUD_COLUMN_NS, executed[0], least, sizeof least),
            sheet_text(GPUD_COLUMN_NS, executed[(count - 1) / 2], middle, sizeof middle),
            sheet_text(GPUD_COLUMN_NS, executed[count - 1], most, sizeof most));
}

static void say_time(const gpud_job_times *times)
{
    char waited[32], executed[32];
    ctl_say("device %llu, waited %s, executed %s%s%s%s", (unsigned long long)times->device,
            sheet_text(GPUD_COLUMN_NS, times->queued_ns, waited, sizeof waited),
            sheet_text(GPUD_COLUMN_NS, times->executed_ns, executed, sizeof executed),
            times->implementation[0] != '\0' ? " by " : "", times->implementation,
            times->replays > 0 ? ", run again after its worker ended" : "");
}

static int run_repeated(struct ctl *ctl, struct run *run, uint64_t *executed, struct ctl_err *e)
{
    for (uint64_t i = 0; i < run->options.repeat; i++) {
        int rc = run_place_args(ctl, run, e);
        if (rc == 0 && interrupted) {
            rc = ctl_err_set(e, CTL_INTERRUPTED, "interrupted");
        }
        if (rc == 0) {
            rc = submit(ctl, run, e);
        }
        if (rc == 0) {
            rc = wait_job(run, e);
        }
        if (rc != 0) {
            return rc;
        }
        gpud_job_times times = {.size = sizeof times};
        if (!run->options.detach && gpud_job_timing(run->job, &times) == 0) {
            executed[i] = times.executed_ns;
            if (run->options.repeat == 1) {
                say_time(&times);
            }
        }
    }
    return 0;
}

/* A second SIGINT ends gpuctl at once. */
static void catch_interrupt(struct sigaction *ret_before)
{
    const struct sigaction handler = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    (void)sigaction(SIGINT, &handler, ret_before);
}

int run_await(struct run *run, struct ctl_err *e)
{
    struct sigaction before;
    gpud_job_times times = {.size = sizeof times};
    catch_interrupt(&before);
    int rc = wait_job(run, e);
    (void)sigaction(SIGINT, &before, NULL);
    if (rc == 0 && !run->options.detach && gpud_job_timing(run->job, &times) == 0) {
        say_time(&times);
    }
    return rc;
}

int run_jobs(struct ctl *ctl, struct run *run, struct ctl_err *e)
{
    uint64_t *executed = calloc(run->options.repeat, sizeof *executed);
    if (executed == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    }
    struct sigaction before;
    catch_interrupt(&before);
    int rc = run_repeated(ctl, run, executed, e);
    (void)sigaction(SIGINT, &before, NULL);
    if (rc == 0 && run->options.repeat > 1) {
        say_times(executed, run->options.repeat);
    }
    free(executed);
    return rc;
}
