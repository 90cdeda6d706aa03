/*
 * The stages of `gpuctl run`: options → kernel → arguments → job → results. Only cmd_run.c knows
 * their order.
 */
#ifndef GPUCTL_RUN_RUN_H
#define GPUCTL_RUN_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include <gpud/gpud.h>

#include "gpuctl/base/save.h"
#include "gpuctl/ctl/ctl.h"
#include "gpuctl/input/array.h"
#include "gpuctl/input/source.h"
#include "gpuctl/input/spec.h"

#define RUN_ARGS      128
#define RUN_VARIABLES 16
#define RUN_MODULES   64

/* --module HASH=FILE */
struct run_module {
    const char *hash; /* not terminated: `digits` characters */
    size_t digits;
    const char *file;
};

/* The options of the command line. Texts point into it. */
struct run_options {
    const char *kernel; /* NULL: the only one of the source */
    struct source source;
    struct spec arg[RUN_ARGS]; /* in the order of the command line */
    uint32_t arg_count;
    struct spec variable[RUN_VARIABLES]; /* of the source's module */
    uint32_t variable_count;
    struct spec_save save[RUN_ARGS];
    uint32_t save_count;
    gpud_grid grid;
    uint64_t device; /* GPUD_ON(id); 0: the daemon chooses */
    uint64_t repeat;
    uint64_t timeout_ns; /* 0: none */
    uint32_t job_class;  /* enum gpud_class */
    int32_t priority;
    uint64_t max_input; /* bytes of one file; 0: as large as the devices */
    bool detach;
    bool dry_run;
    const char *job; /* a file of `gpuctl job dump`; NULL: a kernel is run */
    struct run_module module[RUN_MODULES];
    uint32_t module_count;
    const char *record; /* NULL: results are not recorded */
};

/* An argument of the kernel, in the kernel's order; after the arguments, a variable of its module.
 */
struct run_arg {
    struct spec spec;
    gpud_kernel_arg_desc desc; /* kind 0: the daemon does not know the argument */
    struct array array;        /* SPEC_ARRAY: the input; after the job, the output */
    struct array first; /* of a repeated inout array that is not resident: the input of each run */
    gpud_buffer
        buffer; /* published, resident because the arrays are large, or a variable; 0: none */
    gpud_arg value;
    bool variable;
    const struct spec_save *save; /* NULL: not saved */
    struct save saving;           /* begun if it is saved */
};

struct run {
    struct run_options options;
    gpud_module module; /* id 0: a built-in kernel */
    gpud_kernel kernel;
    gpud_kernel_desc desc;
    struct run_arg arg[RUN_ARGS + RUN_VARIABLES];
    uint32_t arg_count; /* arguments of the kernel */
    uint32_t all_count; /* arguments and variables */
    bool resident;      /* arrays go through buffers instead of with the job */
    gpud_job *job;      /* of the last run */
    uint64_t job_id;
};

int run_options_parse(struct ctl *ctl, struct options *options, struct run_options *ret_options,
                      struct ctl_err *e);
/* "batch": enum gpud_class; GPUD_CLASS_USUAL: it is no class. */
uint32_t run_class(const char *name);

/* Compiles or finds the kernel. Blocks. */
int run_find_kernel(struct ctl *ctl, struct run *run, struct ctl_err *e);
/* Sorts the arguments into the kernel's order, assigns the --save options to them and begins the
 * files. run->arg[].desc must be filled. */
int run_order_args(struct run *run, struct ctl_err *e);
/* Reads files and lists, opens published buffers, chooses inline or resident. Blocks. */
int run_load_args(struct ctl *ctl, struct run *run, struct ctl_err *e);
/* Opens variables, uploads resident arrays and makes the values of the call. Blocks. */
int run_place_args(struct ctl *ctl, struct run *run, struct ctl_err *e);
/* Submits the job and waits, as often as --repeat says. Blocks. */
int run_jobs(struct ctl *ctl, struct run *run, struct ctl_err *e);
/* Waits for run->job, for which the user may interrupt it, and says its times. Blocks. */
int run_await(struct run *run, struct ctl_err *e);
/* --job: all stages of a job that was dumped. Blocks. */
int run_dumped(struct ctl *ctl, struct run *run, struct ctl_err *e);
/* Fetches, saves and shows the outputs. Blocks. */
int run_results(struct ctl *ctl, struct run *run, struct ctl_err *e);
/* Shows the job without running it. */
int run_show_plan(struct ctl *ctl, const struct run *run, struct ctl_err *e);
void run_finish(struct ctl *ctl, struct run *run);

#endif
