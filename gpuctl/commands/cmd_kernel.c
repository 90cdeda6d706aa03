#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuctl/ctl/ctl.h"
#include "gpuctl/input/source.h"

enum { OPT_LANG = 1, OPT_DEFINE, OPT_BUILD_OPTION, OPT_COMPILER, OPT_INCLUDE };

const struct option kernel_check_option_list[] = {
    {"lang", 0, true, OPT_LANG},
    {"define", 'D', true, OPT_DEFINE},
    {"build-option", 0, true, OPT_BUILD_OPTION},
    {"-cl-", 0, true, OPT_BUILD_OPTION},
    {"include", 'I', true, OPT_INCLUDE},
    {"compiler", 0, true, OPT_COMPILER},
    {0},
};

static int parse(struct ctl *ctl, struct options *options, struct source *source, struct ctl_err *e)
{
    const char *value = NULL;
    int id;
    int rc = 0;
    while (rc == 0 &&
           (id = ctl_option(ctl, options, kernel_check_option_list, &value, e)) != OPTION_END) {
        switch (id) {
        case OPTION_BAD:
            return e->code;
        case OPTION_WORD:
            rc = source->file == NULL ? 0 : ctl_err_usage(e, "unexpected word '%s'", value);
            source->file = value;
            break;
        case OPT_DEFINE:
            rc = source_define(source, value, e);
            break;
        case OPT_BUILD_OPTION:
            rc = source_build_option(source, value, e);
            break;
        case OPT_COMPILER:
            rc = source_compiler(source, value, e);
            break;
        case OPT_INCLUDE:
            rc = source_include(source, value, e);
            break;
        default:
            rc = source_lang(source, value, e);
            break;
        }
    }
    if (rc == 0 && source->file == NULL) {
        rc = ctl_err_usage(e, "FILE is missing: gpuctl kernel check FILE [OPTION...]");
    }
    return rc;
}

static void arg_text(const gpud_kernel_arg_desc *arg, uint32_t index, char *out, size_t size)
{
    static const char *const kinds[] = {
        "?", [GPUD_ARG_SCALAR] = "scalar", [GPUD_ARG_ARRAY] = "array", [GPUD_ARG_STRUCT] = "struct",
        [GPUD_ARG_LOCAL] = "local"};
    static const char *const access[] = {
        "", [GPUD_IN] = "in ", [GPUD_OUT] = "out ", [GPUD_INOUT] = "inout "};
    char name[GPUD_NAME];
    snprintf(name, sizeof name, "%s", arg->name);
    if (name[0] == '\0') {
        snprintf(name, sizeof name, "arg%u", index);
    }
    const char *type = arg->dtype != GPUD_NONE       ? gpud_dtype_name((int)arg->dtype)
                       : arg->kind <= GPUD_ARG_LOCAL ? kinds[arg->kind]
                                                     : kinds[0];
    snprintf(out, size, "%s%s%s%s %s", index > 0 ? ", " : "",
             arg->access <= GPUD_INOUT ? access[arg->access] : "", type,
             arg->kind == GPUD_ARG_ARRAY && arg->dtype != GPUD_NONE ? "[]" : "", name);
}

struct kernel_text {
    gpud_kernel_desc desc;
    char args[1024];
};

static int read_kernel(gpud_client *client, gpud_kernel kernel, struct kernel_text *text)
{
    text->desc.size = sizeof text->desc;
    int rc = gpud_kernel_info(client, kernel, &text->desc);
    size_t used = 0;
    for (uint32_t i = 0; rc == 0 && i < text->desc.arg_count; i++) {
        gpud_kernel_arg_desc arg = {.size = sizeof arg};
        rc = gpud_kernel_arg(client, kernel, i, &arg);
        arg_text(&arg, i, text->args + used, sizeof text->args - used);
        used += strlen(text->args + used);
    }
    return rc;
}

#define KERNELS_MAX 256u

struct kernel_row {
    struct sheet_cell kernel, arg_count, auto_grid, registers, item_memory, group_memory, max_group,
        group_multiple, occupancy, args, signature;
};

static const struct sheet_field fields[] = {
    SHEET_FIELD(struct kernel_row, kernel, GPUD_COLUMN_TEXT, false),
    SHEET_FIELD(struct kernel_row, arg_count, GPUD_COLUMN_UINT, true),
    SHEET_FIELD(struct kernel_row, auto_grid, GPUD_COLUMN_BOOL, true),
    SHEET_FIELD(struct kernel_row, registers, GPUD_COLUMN_UINT, false),
    SHEET_FIELD(struct kernel_row, item_memory, GPUD_COLUMN_BYTES, false),
    SHEET_FIELD(struct kernel_row, group_memory, GPUD_COLUMN_BYTES, false),
    SHEET_FIELD(struct kernel_row, max_group, GPUD_COLUMN_UINT, false),
    SHEET_FIELD(struct kernel_row, group_multiple, GPUD_COLUMN_UINT, true),
    SHEET_FIELD(struct kernel_row, occupancy, GPUD_COLUMN_PPM, true),
    SHEET_FIELD(struct kernel_row, args, GPUD_COLUMN_TEXT, false),
    SHEET_FIELD(struct kernel_row, signature, GPUD_COLUMN_TEXT, true),
};

/* A cell of a number that is 0 if it is not known. */
static struct sheet_cell known(uint64_t value)
{
    return (struct sheet_cell){.value = value, .text = value != 0 ? NULL : "-"};
}

static int show_kernels(struct ctl *ctl, gpud_module module, struct kernel_text *texts,
                        struct kernel_row *rows, struct ctl_err *e)
{
    uint32_t count = 0;
    gpud_kernel kernel;
    while (count < KERNELS_MAX && gpud_module_kernel_at(ctl->client, module, count, &kernel) == 0) {
        const gpud_kernel_desc *d = &texts[count].desc;
        int rc = read_kernel(ctl->client, kernel, &texts[count]);
        if (rc != 0) {
            return ctl_err_lib(e, rc, "kernel %u", count);
        }
        rows[count] = (struct kernel_row){.kernel = {.text = d->name},
                                          .arg_count = {.value = d->arg_count},
                                          .auto_grid = {.value = d->auto_grid},
                                          .registers = known(d->registers),
                                          .item_memory = known(d->item_bytes),
                                          .group_memory = known(d->group_bytes),
                                          .max_group = known(d->max_group),
                                          .group_multiple = known(d->group_multiple),
                                          .occupancy = known(d->occupancy_ppm),
                                          .args = {.text = texts[count].args},
                                          .signature = {.text = d->signature}};
        count++;
    }
    const struct sheet_rows table = SHEET_ROWS("kernels", fields, rows, count);
    return ctl_write_rows(ctl, &table, e);
}

int cmd_kernel_check(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    struct source source = {0};
    gpud_module module = {0};
    int rc = parse(ctl, options, &source, e);
    if (rc == 0) {
        rc = ctl_connect(ctl, e);
    }
    if (rc == 0) {
        rc = source_load(ctl->client, &source, &module, e);
    }
    if (rc != 0) {
        return rc;
    }
    struct kernel_text *texts = calloc(KERNELS_MAX, sizeof *texts);
    struct kernel_row *rows = calloc(KERNELS_MAX, sizeof *rows);
    rc = texts != NULL && rows != NULL ? show_kernels(ctl, module, texts, rows, e)
                                       : ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    free(texts);
    free(rows);
    (void)gpud_module_unload(ctl->client, module);
    return rc;
}
