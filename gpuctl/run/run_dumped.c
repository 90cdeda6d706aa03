#include "gpuctl/run/dumped.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONTENT_MOST ((size_t)64 << 20)  /* bytes of one buffer in the file */
#define CREATED_MOST (UINT64_C(1) << 40) /* bytes of a buffer; the daemon has its own limits */

/* ---- buffers --------------------------------------------------------------------------------- */

/* Writes what the file has of the buffer. *ret_has: something. */
static int write_buffer(struct dumped *d, const json_t *o, const struct dumped_buffer *b,
                        bool *ret_has, struct ctl_err *e)
{
    char *data = NULL;
    size_t size = 0;
    uint64_t bytes = gpud_shape_bytes(b->shape);
    int rc = dumped_content(o, "data", CONTENT_MOST, &data, &size, e);
    *ret_has = data != NULL;
    if (rc == 0 && data != NULL && size != bytes) {
        rc =
            ctl_err_set(e, GPUD_ERR_INVALID, "data has %zu bytes, its shape %" PRIu64, size, bytes);
    }
    if (rc == 0 && data != NULL) {
        rc = gpud_write(d->client, b->buffer, GPUD_NONE, 0, GPUD_REST, data, NULL);
        rc = rc == 0 ? 0 : ctl_err_lib(e, rc, "write");
    }
    free(data);
    return rc;
}

static int make_buffer(struct dumped *d, const json_t *o, struct ctl_err *e)
{
    struct dumped_buffer *b = &d->buffer[d->buffer_count];
    const char *access = "";
    uint64_t flags = 0;
    int rc = dumped_number(o, "buffer", UINT64_MAX, &b->handle, e);
    rc = rc == 0 ? dumped_shape(o, false, &b->shape, e) : rc;
    rc = rc == 0 ? dumped_text(o, "access", 64, &access, e) : rc;
    rc = rc == 0 ? dumped_number(o, "flags", UINT64_MAX, &flags, e) : rc;
    if (rc == 0 && (flags & GPUD_BUFFER_VARIABLE) != 0) {
        rc = ctl_err_set(e, GPUD_ERR_UNSUPPORTED, "it is a variable of a module");
    }
    if (rc == 0 && gpud_shape_bytes(b->shape) > CREATED_MOST) {
        rc = ctl_err_set(e, GPUD_ERR_LIMIT, "%" PRIu64 " bytes", gpud_shape_bytes(b->shape));
    }
    if (rc != 0) {
        return rc;
    }
    b->written = strcmp(access, "in") != 0;
    uint64_t on = d->options->device;
    rc = on != 0 ? gpud_buffer_create_on(d->client, on - 1, b->shape, GPUD_BUFFER_ZERO,
                                         "gpuctl run --job", &b->buffer)
                 : gpud_buffer_create(d->client, b->shape, GPUD_BUFFER_ZERO, "gpuctl run --job",
                                      &b->buffer);
    if (rc != 0) {
        return ctl_err_lib(e, rc, "create");
    }
    bool has = false;
    d->buffer_count++;
    rc = write_buffer(d, o, b, &has, e);
    d->zeros += !has && strcmp(access, "out") != 0;
    return rc;
}

static int make_buffers(struct dumped *d, struct ctl_err *e)
{
    const json_t *list = NULL;
    int rc = dumped_list(d->root, "buffers", GPUD_MAX_JOB_BUFFERS, &list, e);
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        rc = make_buffer(d, json_array_get(list, i), e);
        rc = rc == 0 ? 0 : ctl_err_wrap(e, "buffer %zu", i);
    }
    return rc;
}

/* ---- program --------------------------------------------------------------------------------- */

static int declare(struct dumped *d, struct ctl_err *e)
{
    static const char *const kinds[] = {"", [GPUD_PARAM_BUFFER] = "buffer",
                                        [GPUD_PARAM_SCALAR] = "scalar", [GPUD_PARAM_DATA] = "data"};
    const json_t *params = NULL;
    const json_t *temps = NULL;
    gpud_shape shape;
    int rc = dumped_list(d->root, "params", GPUD_MAX_PARAMS, &params, e);
    rc = rc == 0 ? dumped_list(d->root, "temps", GPUD_MAX_TEMPS, &temps, e) : rc;
    for (size_t i = 0; rc == 0 && i < json_array_size(params); i++) {
        const json_t *o = json_array_get(params, i);
        const char *name = "";
        const char *what = "";
        int kind = GPUD_PARAM_DATA;
        rc = dumped_text(o, "name", GPUD_NAME - 1, &name, e);
        rc = rc == 0 ? dumped_text(o, "what", 64, &what, e) : rc;
        rc = rc == 0 ? dumped_shape(o, true, &shape, e) : rc;
        while (rc == 0 && kind > 0 && strcmp(kinds[kind], what) != 0) {
            kind--;
        }
        rc = rc == 0 && kind == 0
                 ? ctl_err_set(e, GPUD_ERR_INVALID, "there is no parameter \"%s\"", what)
                 : rc;
        if (rc != 0) {
            return ctl_err_wrap(e, "parameter %zu", i);
        }
        d->param[d->param_count++] = gpud_program_param(d->program, name, kind, shape);
    }
    d->own_params = d->param_count;
    for (size_t i = 0; rc == 0 && i < json_array_size(temps); i++) {
        rc = dumped_shape(json_array_get(temps, i), false, &shape, e);
        if (rc != 0) {
            return ctl_err_wrap(e, "temporary %zu", i);
        }
        d->temp[d->temp_count++] = gpud_program_temp(d->program, shape);
    }
    return rc;
}

static int grid_of(const json_t *step, gpud_grid *ret_grid, struct ctl_err *e)
{
    const char *const names[2] = {"global", "local"};
    *ret_grid = (gpud_grid){.size = sizeof *ret_grid};
    uint64_t *const axes[2] = {ret_grid->global, ret_grid->local};
    int rc = dumped_number(step, "shared", UINT64_MAX, &ret_grid->shared_bytes, e);
    for (unsigned i = 0; rc == 0 && i < 2; i++) {
        const json_t *list = NULL;
        rc = dumped_list(step, names[i], 3, &list, e);
        for (size_t k = 0; rc == 0 && k < json_array_size(list); k++) {
            json_int_t value = json_integer_value(json_array_get(list, k));
            if (!json_is_integer(json_array_get(list, k)) || value < 0) {
                return ctl_err_set(e, GPUD_ERR_INVALID, "%s has an entry that is no number",
                                   names[i]);
            }
            axes[i][k] = (uint64_t)value;
        }
    }
    return rc;
}

static int add_launch(struct dumped *d, const json_t *step, const gpud_arg *args, uint32_t count,
                      struct ctl_err *e)
{
    gpud_kernel kernel = {0};
    gpud_grid grid;
    int rc = dumped_kernel(d, step, &kernel, e);
    rc = rc == 0 ? grid_of(step, &grid, e) : rc;
    if (rc != 0) {
        return rc;
    }
    bool sized = grid.global[0] != 0 || grid.shared_bytes != 0;
    rc = gpud_program_launch(d->program, kernel, args, count, sized ? &grid : NULL);
    return rc >= 0 ? 0 : ctl_err_lib(e, rc, "launch");
}

static int add_step(struct dumped *d, const json_t *step, const gpud_arg *args, uint32_t count,
                    struct ctl_err *e)
{
    const char *op = "";
    int rc = dumped_text(step, "op", 64, &op, e);
    if (rc != 0) {
        return rc;
    }
    bool reads = strcmp(op, "read") == 0 && (count == 1 || count == 2);
    if (strcmp(op, "launch") == 0) {
        return add_launch(d, step, args, count, e);
    }
    if (!reads && count != 2) {
        return ctl_err_set(e, GPUD_ERR_INVALID, "\"%s\" with %u arguments", op, count);
    }
    if (reads) {
        rc = count == 1 ? gpud_program_read(d->program, args[0])
                        : gpud_program_read_to(d->program, args[1], args[0]);
    } else if (strcmp(op, "write") == 0) {
        rc = gpud_program_write(d->program, args[0], args[1]);
    } else if (strcmp(op, "copy") == 0) {
        rc = gpud_program_copy(d->program, args[0], args[1]);
    } else if (strcmp(op, "fill") == 0) {
        rc = gpud_program_fill(d->program, args[0], args[1]);
    } else {
        return ctl_err_set(e, GPUD_ERR_INVALID, "there is no step \"%s\"", op);
    }
    return rc >= 0 ? 0 : ctl_err_lib(e, rc, "%s", op);
}

static int read_args(struct dumped *d, const json_t *list, int access, const char *prefix,
                     gpud_arg *args, struct ctl_err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        char where[DUMPED_WORDS];
        (void)snprintf(where, sizeof where, "%s %zu", prefix, i);
        rc = dumped_arg(d, json_array_get(list, i), access, where, &args[i], e);
        rc = rc == 0 ? 0 : ctl_err_wrap(e, "%s", where);
    }
    return rc;
}

static int add_steps(struct dumped *d, struct ctl_err *e)
{
    const json_t *steps = NULL;
    int rc = dumped_list(d->root, "steps", GPUD_MAX_STEPS, &steps, e);
    for (size_t i = 0; rc == 0 && i < json_array_size(steps); i++) {
        const json_t *step = json_array_get(steps, i);
        const json_t *list = NULL;
        gpud_arg args[GPUD_MAX_ARGS];
        char prefix[DUMPED_WORDS / 2];
        (void)snprintf(prefix, sizeof prefix, "step %zu argument", i);
        const char *op = "";
        rc = dumped_list(step, "args", GPUD_MAX_ARGS, &list, e);
        rc = rc == 0 ? dumped_text(step, "op", 64, &op, e) : rc;
        if (rc == 0) {
            int access = strcmp(op, "write") == 0  ? GPUD_IN
                         : strcmp(op, "read") == 0 ? GPUD_OUT
                                                   : GPUD_INOUT;
            rc = read_args(d, list, access, prefix, args, e);
        }
        if (rc == 0) {
            rc = add_step(d, step, args, (uint32_t)json_array_size(list), e);
            rc = rc == 0 ? 0 : ctl_err_wrap(e, "step %zu", i);
        }
    }
    return rc;
}

int dumped_build(struct dumped *d, struct ctl_err *e)
{
    int rc = gpud_program_create(d->client, "gpuctl", &d->program);
    if (rc != 0) {
        return ctl_err_lib(e, rc, "program");
    }
    rc = declare(d, e);
    rc = rc == 0 ? add_steps(d, e) : rc;
    if (rc == 0) {
        d->built = true;
        rc = gpud_program_seal(d->program);
        rc = rc == 0 ? 0 : ctl_err_lib(e, rc, "program");
    }
    return rc;
}

/* ---- job ------------------------------------------------------------------------------------- */

/* Class and priority of the job, unless options give others. Its deadline is not repeated: it
 * counted from another moment. */
static int submit_options(const struct dumped *d, gpud_submit_options *ret_options,
                          struct ctl_err *e)
{
    const json_t *job = json_object_get(d->root, "job");
    const char *class = "";
    json_int_t priority = json_integer_value(json_object_get(job, "priority"));
    int rc = dumped_text(job, "class", 64, &class, e);
    if (rc == 0 && (priority < -1000 || priority > 1000)) {
        rc = ctl_err_set(e, GPUD_ERR_INVALID, "priority %lld", (long long)priority);
    }
    const struct run_options *o = d->options;
    *ret_options =
        (gpud_submit_options){.size = sizeof *ret_options,
                              .deadline_ns = o->timeout_ns,
                              .time_limit_ns = o->timeout_ns,
                              .device = o->device,
                              .label = "gpuctl run --job",
                              .priority = o->priority != 0 ? o->priority : (int32_t)priority,
                              .job_class = o->job_class != 0 ? o->job_class : run_class(class)};
    return rc;
}

int dumped_values(struct dumped *d, const json_t *root, struct ctl_err *e)
{
    const json_t *values = NULL;
    int rc = dumped_list(root, "values", GPUD_MAX_PARAMS, &values, e);
    if (rc == 0 && json_array_size(values) != d->own_params) {
        rc = ctl_err_set(e, GPUD_ERR_INVALID, "%zu values for %u parameters",
                         json_array_size(values), d->own_params);
    }
    return rc == 0 ? read_args(d, values, GPUD_IN, "value", d->value, e) : rc;
}

static int submit(struct dumped *d, struct ctl_err *e)
{
    gpud_submit_options o;
    int rc = dumped_values(d, d->root, e);
    rc = rc == 0 ? submit_options(d, &o, e) : rc;
    if (rc != 0) {
        return rc;
    }
    if (d->zeros > 0) {
        ctl_say("%u buffers and arrays start as zeros: the file does not have their content",
                d->zeros);
    }
    rc = gpud_submit(d->client, d->program, d->value, d->param_count, &o, &d->run->job);
    return rc == 0 ? 0 : ctl_err_lib(e, rc, "submit");
}

void dumped_release(struct dumped *d)
{
    gpud_program_free(d->program);
    d->program = NULL;
    for (uint32_t i = 0; i < d->memory_count; i++) {
        if (!d->memory[i].host) { /* gpud_host_free would wait for a job that hangs */
            free(d->memory[i].data);
        }
    }
    d->memory_count = 0;
}

static void finish(struct dumped *d)
{
    gpud_job_free(d->run->job);
    d->run->job = NULL;
    dumped_release(d);
    for (uint32_t i = 0; i < d->buffer_count; i++) {
        (void)gpud_buffer_free(d->client, d->buffer[i].buffer);
    }
    for (uint32_t i = 0; i < d->module_count; i++) {
        (void)gpud_module_unload(d->client, d->module[i].module);
    }
    json_decref(d->root);
}

static int repeat(struct ctl *ctl, struct dumped *d, struct ctl_err *e)
{
    gpud_limits_desc limits = {.size = sizeof limits};
    int rc = gpud_limits(ctl->client, &limits);
    if (rc != 0) {
        return ctl_err_lib(e, rc, "limits");
    }
    d->client = ctl->client;
    d->host_most = limits.max_arena > limits.max_inline ? limits.max_arena : limits.max_inline;
    rc = dumped_modules(d, e);
    rc = rc == 0 ? make_buffers(d, e) : rc;
    rc = rc == 0 ? dumped_build(d, e) : rc;
    rc = rc == 0 ? submit(d, e) : rc;
    rc = rc == 0 ? run_await(d->run, e) : rc;
    return rc == 0 ? dumped_results(ctl, d, e) : rc;
}

int run_dumped(struct ctl *ctl, struct run *run, struct ctl_err *e)
{
    struct dumped *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    }
    d->options = &run->options;
    d->run = run;
    (void)snprintf(run->desc.name, sizeof run->desc.name, "%s", "job");
    int rc = dumped_load(run->options.job, &d->root, e);
    rc = rc == 0 ? ctl_connect(ctl, e) : rc;
    if (rc == 0) {
        rc = repeat(ctl, d, e);
        rc = rc < 0 && e->code != CTL_INTERRUPTED ? ctl_err_wrap(e, "%s", run->options.job) : rc;
    }
    finish(d);
    free(d);
    return rc;
}
