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
    static const char *const kinds[] = {"?", "scalar", "array", "struct", "local"};
    static const char *const access[] = {"", "in ", "out ", "inout "};
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

struct kernel_row {
    gpud_kernel_desc desc;
    char args[1024];
};

static int read_kernel(gpud_client *client, gpud_kernel kernel, struct kernel_row *row)
{
    row->desc.size = sizeof row->desc;
    int rc = gpud_kernel_info(client, kernel, &row->desc);
    size_t used = 0;
    for (uint32_t i = 0; rc == 0 && i < row->desc.arg_count; i++) {
        gpud_kernel_arg_desc arg = {.size = sizeof arg};
        rc = gpud_kernel_arg(client, kernel, i, &arg);
        arg_text(&arg, i, row->args + used, sizeof row->args - used);
        used += strlen(row->args + used);
    }
    return rc;
}

#define COLUMNS     11
#define KERNELS_MAX 256u

static struct sheet_cell known(uint64_t value)
{
    return (struct sheet_cell){.value = value, .text = value != 0 ? NULL : "-"};
}

static int show_kernels(struct ctl *ctl, gpud_module module, struct kernel_row *rows,
                        struct sheet_cell *cells, struct ctl_err *e)
{
    static const struct sheet_column columns[COLUMNS] = {
        {"kernel", GPUD_COLUMN_TEXT, false},       {"arg_count", GPUD_COLUMN_UINT, true},
        {"auto_grid", GPUD_COLUMN_BOOL, true},     {"registers", GPUD_COLUMN_UINT, false},
        {"item_memory", GPUD_COLUMN_BYTES, false}, {"group_memory", GPUD_COLUMN_BYTES, false},
        {"max_group", GPUD_COLUMN_UINT, false},    {"group_multiple", GPUD_COLUMN_UINT, true},
        {"occupancy", GPUD_COLUMN_PPM, true},      {"args", GPUD_COLUMN_TEXT, false},
        {"signature", GPUD_COLUMN_TEXT, true},
    };
    uint32_t count = 0;
    gpud_kernel kernel;
    while (count < KERNELS_MAX && gpud_module_kernel_at(ctl->client, module, count, &kernel) == 0) {
        struct kernel_row *row = &rows[count];
        int rc = read_kernel(ctl->client, kernel, row);
        if (rc != 0) {
            return ctl_err_lib(e, rc, "kernel %u", count);
        }
        const struct sheet_cell line[COLUMNS] = {
            {.text = row->desc.name},       {.value = row->desc.arg_count},
            {.value = row->desc.auto_grid}, known(row->desc.registers),
            known(row->desc.item_bytes),    known(row->desc.group_bytes),
            known(row->desc.max_group),     known(row->desc.group_multiple),
            known(row->desc.occupancy_ppm), {.text = row->args},
            {.text = row->desc.signature}};
        memcpy(&cells[count * COLUMNS], line, sizeof line);
        count++;
    }
    struct sheet sheet = {.name = "kernels",
                          .columns = columns,
                          .column_count = COLUMNS,
                          .cells = cells,
                          .row_count = count};
    return ctl_write(ctl, &sheet, e);
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
    struct kernel_row *rows = calloc(KERNELS_MAX, sizeof *rows);
    struct sheet_cell *cells = calloc((size_t)KERNELS_MAX * COLUMNS, sizeof *cells);
    rc = rows != NULL && cells != NULL ? show_kernels(ctl, module, rows, cells, e)
                                       : ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    free(rows);
    free(cells);
    (void)gpud_module_unload(ctl->client, module);
    return rc;
}
