#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuctl/ctl/progress.h"
#include "gpuctl/run/run.h"

#define SHOWN_ELEMENTS 8u
#define TEXT_MAX       160u

static bool is_array(const struct run_arg *arg)
{
    return arg->spec.kind == SPEC_ARRAY || arg->spec.kind == SPEC_PUBLISHED;
}

static bool written(const struct run_arg *arg)
{
    return is_array(arg) && arg->spec.access != GPUD_IN;
}

/* Reads a resident array: the whole array if it is saved, otherwise its first elements. */
static int fetch(struct ctl *ctl, struct run_arg *arg, struct ctl_err *e)
{
    gpud_shape shape = arg->array.shape;
    uint64_t count = gpud_shape_count(shape);
    if (arg->buffer.id == 0 || count == 0) {
        return 0;
    }
    if (arg->save == NULL && count > SHOWN_ELEMENTS) {
        count = SHOWN_ELEMENTS;
    }
    if (arg->array.data == NULL) {
        struct array part;
        int rc = array_create(gpud_shape_1d((int)shape.dtype, count), &part, e);
        if (rc != 0) {
            return rc;
        }
        arg->array.data = part.data;
    }
    struct progress bar;
    gpud_transfer transfer = progress_transfer(&bar, "download", ctl->progress);
    int rc =
        gpud_read(ctl->client, arg->buffer, (int)shape.dtype, 0, count, arg->array.data, &transfer);
    progress_finish(&bar);
    return rc == 0 ? 0 : ctl_err_lib(e, rc, "download");
}

static int fetch_and_save(struct ctl *ctl, struct run *run, struct ctl_err *e)
{
    for (uint32_t i = 0; i < run->all_count; i++) {
        struct run_arg *arg = &run->arg[i];
        if (!written(arg) && arg->save == NULL) {
            continue;
        }
        int rc = fetch(ctl, arg, e);
        if (rc == 0 && arg->save != NULL) {
            rc = array_save(&arg->array, &arg->saving, arg->save->raw, e);
        }
        if (rc != 0) {
            return ctl_err_wrap(e, "argument %u", i);
        }
    }
    return 0;
}

static void shape_text(gpud_shape shape, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < shape.ndim && used < size; i++) {
        used +=
            (size_t)snprintf(out + used, size - used, "%s%" PRIu64, i > 0 ? "x" : "", shape.dim[i]);
    }
}

struct row_text {
    char shape[96];
    char values[TEXT_MAX];
};

struct arg_row {
    struct sheet_cell arg, name, access, type, shape, saved, values;
};

static const struct sheet_field fields[] = {
    SHEET_FIELD(struct arg_row, arg, GPUD_COLUMN_UINT, false),
    SHEET_FIELD(struct arg_row, name, GPUD_COLUMN_TEXT, false),
    SHEET_FIELD(struct arg_row, access, GPUD_COLUMN_TEXT, true),
    SHEET_FIELD(struct arg_row, type, GPUD_COLUMN_TEXT, false),
    SHEET_FIELD(struct arg_row, shape, GPUD_COLUMN_TEXT, false),
    SHEET_FIELD(struct arg_row, saved, GPUD_COLUMN_TEXT, false),
    SHEET_FIELD(struct arg_row, values, GPUD_COLUMN_TEXT, false),
};

static struct arg_row row_of(const struct run_arg *arg, uint32_t index, bool values,
                             struct row_text *text)
{
    static const char *const access[] = {
        "-", [GPUD_IN] = "in", [GPUD_OUT] = "out", [GPUD_INOUT] = "inout"};
    int dtype = arg->spec.dtype != GPUD_NONE ? arg->spec.dtype : (int)arg->desc.dtype;
    if (is_array(arg)) {
        dtype = (int)arg->array.shape.dtype;
        shape_text(arg->array.shape, text->shape, sizeof text->shape);
        if (values) {
            array_text(&arg->array, SHOWN_ELEMENTS, text->values, sizeof text->values);
        }
    } else if (arg->spec.kind == SPEC_LOCAL) {
        snprintf(text->values, sizeof text->values, "%" PRIu64 " bytes of local memory",
                 arg->spec.bytes);
    } else if (arg->spec.kind == SPEC_BYTES) {
        snprintf(text->values, sizeof text->values, "%" PRIu64 " bytes of %.*s",
                 gpud_shape_bytes(arg->array.shape), (int)sizeof text->values - 32, arg->spec.file);
    } else {
        snprintf(text->values, sizeof text->values, "%.*s", (int)sizeof text->values - 1,
                 arg->spec.text);
    }
    return (struct arg_row){
        .arg = {.value = index},
        .name = {.text = arg->desc.name},
        .access = {.text = access[is_array(arg) ? arg->spec.access : 0]},
        .type = {.text = dtype != GPUD_NONE ? gpud_dtype_name(dtype) : ""},
        .shape = {.text = text->shape},
        .saved = {.text = arg->save != NULL ? arg->save->file : ""},
        .values = {.text = text->values},
    };
}

/* Shows all arguments, or the arrays that were written. */
static int show(struct ctl *ctl, const struct run *run, const char *name, bool all,
                struct ctl_err *e)
{
    struct arg_row rows[RUN_ARGS + RUN_VARIABLES];
    struct row_text *texts = calloc(RUN_ARGS + RUN_VARIABLES, sizeof *texts);
    if (texts == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < run->all_count; i++) {
        const struct run_arg *arg = &run->arg[i];
        if (all || written(arg)) {
            bool values =
                is_array(arg) && arg->array.data != NULL && (!all || arg->spec.access != GPUD_OUT);
            rows[count] = row_of(arg, i, values, &texts[count]);
            count++;
        }
    }
    const struct sheet_rows table = SHEET_ROWS(name, fields, rows, count);
    int rc = ctl_write_rows(ctl, &table, e);
    free(texts);
    return rc;
}

int run_results(struct ctl *ctl, struct run *run, struct ctl_err *e)
{
    int rc = fetch_and_save(ctl, run, e);
    return rc == 0 ? show(ctl, run, "outputs", false, e) : rc;
}

int run_show_plan(struct ctl *ctl, const struct run *run, struct ctl_err *e)
{
    const uint64_t *g = run->options.grid.global;
    const uint64_t *l = run->options.grid.local;
    ctl_say("%s%s%s would be run, its arrays %s", run->desc.name,
            run->desc.signature[0] != '\0' ? ": " : "", run->desc.signature,
            run->resident ? "in resident buffers" : "inline");
    if (g[0] != 0 && l[0] != 0) {
        ctl_say("global %" PRIu64 ",%" PRIu64 ",%" PRIu64 ", local %" PRIu64 ",%" PRIu64
                ",%" PRIu64,
                g[0], g[1], g[2], l[0], l[1], l[2]);
    } else if (g[0] != 0) {
        ctl_say("global %" PRIu64 ",%" PRIu64 ",%" PRIu64 ", local as the device likes", g[0], g[1],
                g[2]);
    }
    return show(ctl, run, "arguments", true, e);
}

void run_finish(struct ctl *ctl, struct run *run)
{
    gpud_job_free(run->job);
    for (uint32_t i = 0; i < RUN_ARGS + RUN_VARIABLES; i++) {
        struct run_arg *arg = &run->arg[i];
        if (arg->buffer.id != 0) {
            (void)gpud_buffer_free(ctl->client, arg->buffer);
        }
        array_finish(&arg->array);
        array_finish(&arg->first);
        save_finish(&arg->saving);
    }
    if (run->module.id != 0 && !run->options.detach) {
        (void)gpud_module_unload(ctl->client, run->module);
    }
}
