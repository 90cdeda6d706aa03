#include <string.h>

#include "gpuctl/run/run.h"

#define PRIORITY_MOST 16u /* more counts as this */

enum {
    OPT_SOURCE = 1,
    OPT_LANG,
    OPT_DEFINE,
    OPT_BUILD_OPTION,
    OPT_COMPILER,
    OPT_INCLUDE,
    OPT_ARG,
    OPT_VARIABLE,
    OPT_SAVE,
    OPT_GLOBAL,
    OPT_LOCAL,
    OPT_DEVICE,
    OPT_REPEAT,
    OPT_TIMEOUT,
    OPT_MAX_INPUT,
    OPT_CLASS,
    OPT_PRIORITY,
    OPT_DETACH,
    OPT_DRY_RUN,
    OPT_JOB,
    OPT_MODULE,
    OPT_RECORD,
};

const struct option run_option_list[] = {
    {"source", 0, true, OPT_SOURCE},
    {"lang", 0, true, OPT_LANG},
    {"define", 'D', true, OPT_DEFINE},
    {"build-option", 0, true, OPT_BUILD_OPTION},
    {"-cl-", 0, true, OPT_BUILD_OPTION},
    {"include", 'I', true, OPT_INCLUDE},
    {"arg", 'a', true, OPT_ARG},
    {"variable", 0, true, OPT_VARIABLE},
    {"save", 0, true, OPT_SAVE},
    {"global", 0, true, OPT_GLOBAL},
    {"local", 0, true, OPT_LOCAL},
    {"device", 0, true, OPT_DEVICE},
    {"repeat", 0, true, OPT_REPEAT},
    {"timeout", 0, true, OPT_TIMEOUT},
    {"max-input", 0, true, OPT_MAX_INPUT},
    {"class", 0, true, OPT_CLASS},
    {"priority", 0, true, OPT_PRIORITY},
    {"detach", 0, false, OPT_DETACH},
    {"dry-run", 0, false, OPT_DRY_RUN},
    {"compiler", 0, true, OPT_COMPILER},
    {"job", 0, true, OPT_JOB},
    {"module", 0, true, OPT_MODULE},
    {"record", 0, true, OPT_RECORD},
    {0},
};

static int take_arg(struct run_options *o, const char *value, struct ctl_err *e)
{
    if (o->arg_count == RUN_ARGS) {
        return ctl_err_usage(e, "more than %d arguments", RUN_ARGS);
    }
    int rc = spec_parse(value, &o->arg[o->arg_count], e);
    o->arg_count += rc == 0 ? 1 : 0;
    return rc;
}

/* Parses a --variable: the form of an argument with a name that is an array or a typed scalar. */
static int take_variable(struct run_options *o, const char *value, struct ctl_err *e)
{
    if (o->variable_count == RUN_VARIABLES) {
        return ctl_err_usage(e, "more than %d variables", RUN_VARIABLES);
    }
    struct spec *spec = &o->variable[o->variable_count];
    int rc = spec_parse(value, spec, e);
    if (rc != 0) {
        return ctl_err_wrap(e, "--variable");
    }
    bool typed =
        spec->kind == SPEC_ARRAY || (spec->kind == SPEC_SCALAR && spec->dtype != GPUD_NONE);
    if (spec->name[0] == '\0' || !typed || spec->view != GPUD_NONE) {
        return ctl_err_usage(e, "--variable %s: NAME=in:f32=1,2,3, NAME=in:@x.npy or NAME=i32:7",
                             value);
    }
    o->variable_count++;
    return 0;
}

static int take_save(struct run_options *o, const char *value, struct ctl_err *e)
{
    if (o->save_count == RUN_ARGS) {
        return ctl_err_usage(e, "more than %d arrays to save", RUN_ARGS);
    }
    int rc = spec_save_parse(value, &o->save[o->save_count], e);
    o->save_count += rc == 0 ? 1 : 0;
    return rc;
}

static int take_timeout(struct run_options *o, const char *value, struct ctl_err *e)
{
    uint64_t ms;
    int rc = spec_number("--timeout", value, 1, UINT32_MAX, &ms, e);
    if (rc == 0) {
        o->timeout_ns = ms * 1000000u;
    }
    return rc;
}

uint32_t run_class(const char *name)
{
    static const char *const names[] = {[GPUD_CLASS_REALTIME] = "realtime",
                                        [GPUD_CLASS_INTERACTIVE] = "interactive",
                                        [GPUD_CLASS_BATCH] = "batch"};
    for (uint32_t c = GPUD_CLASS_REALTIME; c <= GPUD_CLASS_BATCH; c++) {
        if (strcmp(name, names[c]) == 0) {
            return c;
        }
    }
    return GPUD_CLASS_USUAL;
}

static int take_class(struct run_options *o, const char *value, struct ctl_err *e)
{
    o->job_class = run_class(value);
    return o->job_class != GPUD_CLASS_USUAL
               ? 0
               : ctl_err_usage(e, "--class %s: realtime, interactive or batch", value);
}

static int take_priority(struct run_options *o, const char *value, struct ctl_err *e)
{
    bool below = value[0] == '-';
    uint64_t level = 0;
    if (spec_number("--priority", value + below, 0, PRIORITY_MOST, &level, e) != 0) {
        return ctl_err_usage(e, "--priority %s: a whole number from -16 to 16", value);
    }
    o->priority = below ? -(int32_t)level : (int32_t)level;
    return 0;
}

static int take_module(struct run_options *o, const char *value, struct ctl_err *e)
{
    const char *equals = strchr(value, '=');
    if (equals == NULL || equals == value || equals[1] == '\0') {
        return ctl_err_usage(e, "--module %s: HASH=FILE", value);
    }
    if (o->module_count == RUN_MODULES) {
        return ctl_err_usage(e, "more than %d modules", RUN_MODULES);
    }
    o->module[o->module_count++] =
        (struct run_module){.hash = value, .digits = (size_t)(equals - value), .file = equals + 1};
    return 0;
}

/* Options of a job from a file. */
static int take_job(struct run_options *o, int id, const char *value, struct ctl_err *e)
{
    switch (id) {
    case OPT_MODULE:
        return take_module(o, value, e);
    case OPT_RECORD:
        o->record = value;
        return 0;
    default:
        o->job = value;
        return 0;
    }
}

static int take_source(struct run_options *o, int id, const char *value, struct ctl_err *e)
{
    switch (id) {
    case OPT_LANG:
        return source_lang(&o->source, value, e);
    case OPT_DEFINE:
        return source_define(&o->source, value, e);
    case OPT_BUILD_OPTION:
        return source_build_option(&o->source, value, e);
    case OPT_COMPILER:
        return source_compiler(&o->source, value, e);
    case OPT_INCLUDE:
        return source_include(&o->source, value, e);
    default:
        o->source.file = value;
        return 0;
    }
}

static int take(struct run_options *o, int id, const char *value, struct ctl_err *e)
{
    if (id <= OPT_INCLUDE) {
        return take_source(o, id, value, e);
    }
    if (id >= OPT_JOB) {
        return take_job(o, id, value, e);
    }
    switch (id) {
    case OPT_ARG:
        return take_arg(o, value, e);
    case OPT_VARIABLE:
        return take_variable(o, value, e);
    case OPT_SAVE:
        return take_save(o, value, e);
    case OPT_GLOBAL:
        return spec_grid(value, o->grid.global, e);
    case OPT_LOCAL:
        return spec_grid(value, o->grid.local, e);
    case OPT_DEVICE:
        return ctl_device(value, &o->device, e);
    case OPT_REPEAT:
        return spec_number("--repeat", value, 1, 1000000, &o->repeat, e);
    case OPT_TIMEOUT:
        return take_timeout(o, value, e);
    case OPT_CLASS:
        return take_class(o, value, e);
    case OPT_PRIORITY:
        return take_priority(o, value, e);
    case OPT_MAX_INPUT:
        return spec_size("--max-input", value, 1, ARRAY_BYTES_MAX, &o->max_input, e);
    case OPT_DETACH:
        o->detach = true;
        return 0;
    default:
        o->dry_run = true;
        return 0;
    }
}

static unsigned count_stdin(const struct spec *spec, uint32_t count)
{
    unsigned found = 0;
    for (uint32_t i = 0; i < count; i++) {
        found += spec[i].file != NULL && strcmp(spec[i].file, "-") == 0;
    }
    return found;
}

/* Refuses options that need --source. */
static int check_built_in(const struct run_options *o, struct ctl_err *e)
{
    const struct source *s = &o->source;
    if (o->variable_count > 0) {
        return ctl_err_usage(e, "--variable needs --source: built-in kernels have none");
    }
    if (s->lang != 0 || s->include.count > 0 || s->options[0] != '\0') {
        return ctl_err_usage(e, "--lang, --define, --include, --compiler and --build-option need "
                                "--source: built-in kernels are compiled already");
    }
    return 0;
}

/* The file of a job says what is run. */
static int check_job(const struct run_options *o, struct ctl_err *e)
{
    const struct source *s = &o->source;
    bool source = s->file != NULL || s->lang != 0 || s->include.count > 0 || s->options[0] != '\0';
    bool sizes = o->grid.global[0] != 0 || o->grid.local[0] != 0;
    bool arguments = o->arg_count > 0 || o->variable_count > 0 || o->save_count > 0;
    if (o->kernel != NULL || source || sizes || arguments || o->max_input > 0 || o->dry_run ||
        o->detach || o->repeat > 1) {
        return ctl_err_usage(e, "--job FILE has the kernels and arguments: beside it only "
                                "--device, --timeout, --class, --priority, --module and --record "
                                "are possible");
    }
    return 0;
}

/* Refuses options that contradict each other. */
static int check(const struct run_options *o, struct ctl_err *e)
{
    unsigned from_stdin =
        count_stdin(o->arg, o->arg_count) + count_stdin(o->variable, o->variable_count);
    from_stdin += o->source.file != NULL && strcmp(o->source.file, "-") == 0;
    if (o->job != NULL) {
        return check_job(o, e);
    }
    if (o->module_count > 0 || o->record != NULL) {
        return ctl_err_usage(e, "--module and --record need --job");
    }
    if (o->kernel == NULL && o->source.file == NULL) {
        return ctl_err_usage(e, "KERNEL is missing: a built-in one (gpuctl kernels lists them), or "
                                "--source FILE");
    }
    if (o->source.file == NULL && check_built_in(o, e) != 0) {
        return e->code;
    }
    if (from_stdin > 1) {
        return ctl_err_usage(e, "standard input can be read once only");
    }
    if (o->detach && (o->save_count > 0 || o->repeat > 1)) {
        return ctl_err_usage(e, "--detach does not wait: nothing can be saved or repeated");
    }
    if (o->grid.local[0] != 0 && o->grid.global[0] == 0) {
        return ctl_err_usage(e, "--local needs --global");
    }
    return 0;
}

int run_options_parse(struct ctl *ctl, struct options *options, struct run_options *ret_options,
                      struct ctl_err *e)
{
    *ret_options = (struct run_options){.repeat = 1, .grid = {.size = sizeof(gpud_grid)}};
    int failed = ctl_timeout(&ret_options->timeout_ns, e);
    if (failed != 0) {
        return failed;
    }
    const char *value = NULL;
    int id;
    while ((id = ctl_option(ctl, options, run_option_list, &value, e)) != OPTION_END) {
        if (id == OPTION_BAD) {
            return e->code;
        }
        if (id == OPTION_WORD) {
            if (ret_options->kernel != NULL) {
                return ctl_err_usage(e, "unexpected word '%s'", value);
            }
            ret_options->kernel = value;
            continue;
        }
        int rc = take(ret_options, id, value, e);
        if (rc != 0) {
            return rc;
        }
    }
    return check(ret_options, e);
}
