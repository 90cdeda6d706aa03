#include <stdio.h>
#include <string.h>

#include "gpuctl/ctl/near.h"
#include "gpuctl/run/run.h"

/* The names of a module's kernels, for messages. */
static void kernel_names(gpud_client *client, gpud_module module, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    gpud_kernel kernel;
    for (uint32_t i = 0; gpud_module_kernel_at(client, module, i, &kernel) == 0; i++) {
        gpud_kernel_desc d = {.size = sizeof d};
        if (gpud_kernel_info(client, kernel, &d) != 0 || used + strlen(d.name) + 3 > size) {
            return;
        }
        used += (size_t)snprintf(out + used, size - used, "%s%s", i > 0 ? ", " : "", d.name);
    }
}

static int find_in_module(struct ctl *ctl, struct run *run, struct ctl_err *e)
{
    const char *name = run->options.kernel;
    char names[512];
    if (name != NULL) {
        int rc = gpud_module_kernel(ctl->client, run->module, name, &run->kernel);
        if (rc == GPUD_ERR_NOT_FOUND) {
            kernel_names(ctl->client, run->module, names, sizeof names);
            return ctl_err_set(e, rc, "%s: there is no kernel %s in it; it has: %s",
                               run->options.source.file, name, names);
        }
        return rc == 0 ? 0 : ctl_err_lib(e, rc, "%s", name);
    }
    gpud_kernel second;
    int rc = gpud_module_kernel_at(ctl->client, run->module, 0, &run->kernel);
    if (rc != 0) {
        return ctl_err_lib(e, rc, "%s: no kernel in it", run->options.source.file);
    }
    if (gpud_module_kernel_at(ctl->client, run->module, 1, &second) == 0) {
        kernel_names(ctl->client, run->module, names, sizeof names);
        return ctl_err_usage(e, "%s: say which kernel: %s", run->options.source.file, names);
    }
    return 0;
}

/* Adds the name of the most similar built-in kernel to the error. */
static void name_meant(gpud_client *client, const char *name, struct ctl_err *e)
{
    gpud_table *t = NULL;
    if (e->code != GPUD_ERR_NOT_FOUND || gpud_query(client, "kernels", NULL, &t) != 0) {
        return;
    }
    struct near near;
    char meant[96];
    near_init(&near, name);
    for (uint32_t r = 0; r < gpud_table_rows(t); r++) {
        near_try(&near, table_text_of(t, r, "name"));
    }
    near_text(&near, "", meant, sizeof meant);
    size_t used = strlen(e->text);
    snprintf(e->text + used, sizeof e->text - used, "%s", meant);
    gpud_table_free(t);
}

int run_find_kernel(struct ctl *ctl, struct run *run, struct ctl_err *e)
{
    int rc;
    if (run->options.source.file != NULL) {
        rc = source_load(ctl->client, &run->options.source, &run->module, e);
        if (rc == 0) {
            rc = find_in_module(ctl, run, e);
        }
    } else {
        rc = gpud_kernel_find(ctl->client, run->options.kernel, &run->kernel);
        if (rc != 0) {
            ctl_err_set(e, rc, "%s", gpud_last_error()->text);
            name_meant(ctl->client, run->options.kernel, e);
        }
    }
    if (rc != 0) {
        return rc;
    }
    run->desc.size = sizeof run->desc;
    rc = gpud_kernel_info(ctl->client, run->kernel, &run->desc);
    for (uint32_t i = 0; rc == 0 && i < run->desc.arg_count && i < RUN_ARGS; i++) {
        run->arg[i].desc.size = sizeof run->arg[i].desc;
        rc = gpud_kernel_arg(ctl->client, run->kernel, i, &run->arg[i].desc);
    }
    return rc == 0 ? 0 : ctl_err_lib(e, rc, "kernel");
}

/* The kernel's arguments for messages: its signature, or their names. */
static void arg_names(const struct run *run, char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "%s", run->desc.signature);
    for (uint32_t i = 0; used == 0 && i < run->desc.arg_count && i < RUN_ARGS; i++) {
        size_t at = strlen(out);
        snprintf(out + at, size - at, "%s%s", i > 0 ? ", " : "", run->arg[i].desc.name);
    }
}

/* Index of the kernel's argument of that name, or of a variable, once these are placed; -1 if
 * nothing has the name. */
static int index_of(const struct run *run, const char *name)
{
    uint32_t count = run->all_count > 0 ? run->all_count : run->desc.arg_count;
    for (uint32_t i = 0; i < count && i < RUN_ARGS + RUN_VARIABLES; i++) {
        if (run->arg[i].desc.name[0] != '\0' && strcmp(run->arg[i].desc.name, name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static int place_named(struct run *run, bool *filled, struct ctl_err *e)
{
    for (uint32_t i = 0; i < run->options.arg_count; i++) {
        const struct spec *spec = &run->options.arg[i];
        if (spec->name[0] == '\0') {
            continue;
        }
        int at = index_of(run, spec->name);
        if (at < 0) {
            char names[512];
            arg_names(run, names, sizeof names);
            return ctl_err_usage(e, "%s has no argument '%s': %s", run->desc.name, spec->name,
                                 names);
        }
        if (filled[at]) {
            return ctl_err_usage(e, "argument '%s' is given twice", spec->name);
        }
        filled[at] = true;
        run->arg[at].spec = *spec;
    }
    return 0;
}

static int place_unnamed(struct run *run, bool *filled, struct ctl_err *e)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < run->options.arg_count; i++) {
        const struct spec *spec = &run->options.arg[i];
        if (spec->name[0] != '\0') {
            continue;
        }
        while (next < run->arg_count && filled[next]) {
            next++;
        }
        if (next >= run->arg_count) {
            return ctl_err_usage(e, "too many arguments");
        }
        filled[next] = true;
        run->arg[next].spec = *spec;
    }
    return 0;
}

/* Is another argument saved to the same file? */
static bool saved_before(const struct run *run, const struct run_arg *arg)
{
    for (uint32_t i = 0; i < run->all_count; i++) {
        const struct run_arg *other = &run->arg[i];
        if (other->save != NULL && strcmp(other->saving.path, arg->saving.path) == 0) {
            return true;
        }
    }
    return false;
}

/* Places the variables after the kernel's arguments. */
static int place_variables(struct run *run, struct ctl_err *e)
{
    run->all_count = run->arg_count;
    for (uint32_t i = 0; i < run->options.variable_count; i++) {
        struct run_arg *arg = &run->arg[run->all_count];
        const struct spec *spec = &run->options.variable[i];
        for (uint32_t k = run->arg_count; k < run->all_count; k++) {
            if (strcmp(run->arg[k].spec.name, spec->name) == 0) {
                return ctl_err_usage(e, "variable '%s' is given twice", spec->name);
            }
        }
        arg->spec = *spec;
        arg->variable = true;
        memcpy(arg->desc.name, spec->name, sizeof arg->desc.name);
        run->all_count++;
    }
    return 0;
}

static int place_saves(struct run *run, struct ctl_err *e)
{
    for (uint32_t i = 0; i < run->options.save_count; i++) {
        const struct spec_save *save = &run->options.save[i];
        int at = save->name[0] != '\0' ? index_of(run, save->name) : (int)save->index;
        uint32_t count = save->name[0] != '\0' ? run->all_count : run->arg_count;
        if (at < 0 || (uint32_t)at >= count) {
            return ctl_err_usage(e, "--save: %s has no argument %s", run->desc.name,
                                 save->name[0] != '\0' ? save->name : "of that index");
        }
        struct run_arg *arg = &run->arg[at];
        if (arg->spec.kind != SPEC_ARRAY && arg->spec.kind != SPEC_PUBLISHED) {
            return ctl_err_usage(e, "--save: argument %d is no array", at);
        }
        if (arg->save != NULL) {
            return ctl_err_usage(e, "--save: argument %d is saved twice", at);
        }
        int rc = save_begin(save->file, &arg->saving, e);
        if (rc == 0 && saved_before(run, arg)) {
            rc = ctl_err_usage(e, "--save: two arrays go to %s", save->file);
        }
        if (rc != 0) {
            return rc;
        }
        arg->save = save;
    }
    return 0;
}

/* A kernel whose sizes follow from the data accepts no others. */
static int check_grid(const struct run *run, struct ctl_err *e)
{
    if (run->desc.auto_grid && run->options.grid.global[0] != 0) {
        return ctl_err_usage(e,
                             "the sizes of %s follow from its arrays: leave --global and --local "
                             "out (its signature: %s)",
                             run->desc.name, run->desc.signature);
    }
    return 0;
}

int run_order_args(struct run *run, struct ctl_err *e)
{
    bool filled[RUN_ARGS] = {false};
    int rc = check_grid(run, e);
    if (rc != 0) {
        return rc;
    }
    if (run->options.arg_count != run->desc.arg_count) {
        char names[512];
        arg_names(run, names, sizeof names);
        return ctl_err_usage(e, "%s takes %u arguments, %u are given: %s", run->desc.name,
                             run->desc.arg_count, run->options.arg_count, names);
    }
    run->arg_count = run->options.arg_count;
    rc = place_named(run, filled, e);
    if (rc == 0) {
        rc = place_unnamed(run, filled, e);
    }
    rc = rc == 0 ? place_variables(run, e) : rc;
    return rc == 0 ? place_saves(run, e) : rc;
}
