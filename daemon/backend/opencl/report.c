#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/shape.h"
#include "daemon/backend/opencl/report.h"

#define RAW_LOG_MAX (1024u * 1024u) /* bytes */
#define KERNELS_MAX 256u

/* ---- arguments ----------------------------------------------------------------------------- */

static const struct {
    const char *name;
    enum dtype dtype;
} types[] = {
    {"char", DTYPE_I8},    {"uchar", DTYPE_U8},       {"unsigned char", DTYPE_U8},
    {"short", DTYPE_I16},  {"ushort", DTYPE_U16},     {"unsigned short", DTYPE_U16},
    {"int", DTYPE_I32},    {"uint", DTYPE_U32},       {"unsigned int", DTYPE_U32},
    {"long", DTYPE_I64},   {"ulong", DTYPE_U64},      {"unsigned long", DTYPE_U64},
    {"half", DTYPE_F16},   {"float", DTYPE_F32},      {"double", DTYPE_F64},
    {"size_t", DTYPE_U64}, {"signed char", DTYPE_I8}, {"unsigned", DTYPE_U32},
};

/* The type without pointer and vector width: "float4*" is f32, width 4. */
static int type_read(const char *text, unsigned *ret_width)
{
    char name[64];
    snprintf(name, sizeof name, "%s", text);
    size_t size = strcspn(name, "*");
    while (size > 0 && name[size - 1] == ' ') {
        size--;
    }
    name[size] = '\0';
    size_t digits = size;
    while (digits > 0 && isdigit((unsigned char)name[digits - 1])) {
        digits--;
    }
    unsigned width = digits < size ? (unsigned)strtoul(name + digits, NULL, 10) : 1;
    name[digits] = '\0';
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i].name, name) == 0) {
            *ret_width = width;
            return types[i].dtype;
        }
    }
    *ret_width = 1;
    return DTYPE_NONE;
}

static void arg_text(const struct opencl_api *cl, cl_kernel kernel, cl_uint index,
                     cl_kernel_arg_info what, char *out, size_t size)
{
    char text[256] = "";
    cl_int rc = cl->GetKernelArgInfo(kernel, index, what, sizeof text - 1, text, NULL);
    snprintf(out, size, "%s", rc == CL_SUCCESS ? text : "");
}

enum opencl_arg_kind opencl_arg_kind(const struct opencl_api *cl, cl_kernel kernel, cl_uint index)
{
    cl_kernel_arg_address_qualifier space = 0;
    cl_int rc = cl->GetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof space,
                                     &space, NULL);
    if (rc != CL_SUCCESS) {
        return OPENCL_ARG_ANY;
    }
    cl_kernel_arg_access_qualifier image = CL_KERNEL_ARG_ACCESS_NONE;
    cl->GetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ACCESS_QUALIFIER, sizeof image, &image, NULL);
    if (image != CL_KERNEL_ARG_ACCESS_NONE) {
        return OPENCL_ARG_OTHER;
    }
    switch (space) {
    case CL_KERNEL_ARG_ADDRESS_GLOBAL:
    case CL_KERNEL_ARG_ADDRESS_CONSTANT:
        return OPENCL_ARG_MEMORY;
    case CL_KERNEL_ARG_ADDRESS_LOCAL:
        return OPENCL_ARG_LOCAL;
    default:
        return OPENCL_ARG_VALUE;
    }
}

static void arg_value(struct backend_compiled_arg *arg)
{
    unsigned width = 1;
    int dtype = type_read(arg->type, &width);
    arg->kind = dtype != DTYPE_NONE && width == 1 ? BACKEND_KIND_SCALAR : BACKEND_KIND_STRUCT;
    arg->dtype = arg->kind == BACKEND_KIND_SCALAR ? dtype : DTYPE_NONE;
    /* a vector of three is as long as one of four */
    arg->bytes = dtype_size(dtype) * (width == 3 ? 4 : width);
}

static void arg_array(const struct opencl_api *cl, cl_kernel kernel, cl_uint index,
                      struct backend_compiled_arg *arg)
{
    cl_kernel_arg_address_qualifier space = 0;
    cl_kernel_arg_type_qualifier type = 0;
    unsigned width = 1;
    cl->GetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof space, &space,
                         NULL);
    cl->GetKernelArgInfo(kernel, index, CL_KERNEL_ARG_TYPE_QUALIFIER, sizeof type, &type, NULL);
    arg->kind = BACKEND_KIND_ARRAY;
    arg->dtype = type_read(arg->type, &width);
    bool constant =
        space == CL_KERNEL_ARG_ADDRESS_CONSTANT || (type & CL_KERNEL_ARG_TYPE_CONST) != 0;
    arg->access = constant ? ACCESS_IN : ACCESS_INOUT;
}

static bool type_image(const char *type)
{
    return strncmp(type, "image", 5) == 0 && isdigit((unsigned char)type[5]);
}

/* Returns false if gpud cannot pass such an argument. */
static bool arg_report(const struct opencl_api *cl, cl_kernel kernel, cl_uint index,
                       struct backend_compiled_arg *ret_arg)
{
    struct backend_compiled_arg arg = {0};
    arg_text(cl, kernel, index, CL_KERNEL_ARG_NAME, arg.name, sizeof arg.name);
    arg_text(cl, kernel, index, CL_KERNEL_ARG_TYPE_NAME, arg.type, sizeof arg.type);
    switch (opencl_arg_kind(cl, kernel, index)) {
    case OPENCL_ARG_MEMORY:
        arg_array(cl, kernel, index, &arg);
        break;
    case OPENCL_ARG_LOCAL:
        arg.kind = BACKEND_KIND_LOCAL;
        break;
    case OPENCL_ARG_VALUE:
        arg_value(&arg);
        break;
    default:
        break;
    }
    *ret_arg = arg;
    return arg.kind != BACKEND_KIND_UNKNOWN && !type_image(arg.type) &&
           strcmp(arg.type, "sampler_t") != 0;
}

/* ---- kernels ------------------------------------------------------------------------------- */

static void unfit_arg(struct backend_compiled_kernel *out, cl_uint index)
{
    const struct backend_compiled_arg *arg = &out->arg[index];
    bool image = type_image(arg->type);
    snprintf(out->unfit, sizeof out->unfit,
             "argument %u%s%.32s%s is %s %.32s, which gpud does not "
             "take; use a buffer%s",
             index, arg->name[0] ? " (" : "", arg->name, arg->name[0] ? ")" : "",
             image ? "an" : "a", arg->type[0] ? arg->type : "special type",
             image ? " and index it" : "");
}

/* Fills in the arguments, or `unfit`. */
static int kernel_args(const struct opencl_api *cl, cl_kernel kernel,
                       struct backend_compiled_kernel *out, struct err *e)
{
    cl_uint count = 0;
    cl_int rc = cl->GetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL);
    if (rc != CL_SUCCESS) {
        return opencl_error(rc, "clGetKernelInfo", e);
    }
    if (count > OPENCL_ARGS_MAX) {
        snprintf(out->unfit, sizeof out->unfit,
                 "it takes %u arguments, gpud passes at most %u; put values into a struct", count,
                 OPENCL_ARGS_MAX);
        return 0;
    }
    for (cl_uint i = 0; i < count; i++) {
        if (!arg_report(cl, kernel, i, &out->arg[i])) {
            unfit_arg(out, i);
            return 0;
        }
    }
    out->arg_count = count;
    return 0;
}

uint64_t opencl_group_number(const struct opencl_api *cl, cl_kernel kernel, cl_device_id device,
                             cl_kernel_work_group_info what)
{
    uint64_t value = 0; /* the driver writes a size_t or a ulong */
    cl_int rc = cl->GetKernelWorkGroupInfo(kernel, device, what, sizeof value, &value, NULL);
    return rc == CL_SUCCESS ? value : 0;
}

static void kernel_needs(const struct opencl_api *cl, cl_kernel kernel, cl_device_id device,
                         struct backend_compiled_kernel *out)
{
    size_t local[3] = {0};
    cl->GetKernelWorkGroupInfo(kernel, device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof local,
                               local, NULL);
    for (unsigned i = 0; i < 3; i++) {
        out->required_local[i] = local[i];
    }
    out->local_bytes = opencl_group_number(cl, kernel, device, CL_KERNEL_PRIVATE_MEM_SIZE);
    out->shared_bytes = opencl_group_number(cl, kernel, device, CL_KERNEL_LOCAL_MEM_SIZE);
    out->max_group = opencl_group_number(cl, kernel, device, CL_KERNEL_WORK_GROUP_SIZE);
    out->preferred_multiple =
        opencl_group_number(cl, kernel, device, CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE);
}

static int kernel_report(const struct opencl_api *cl, cl_program program, cl_device_id device,
                         const char *name, struct backend_compiled_kernel *out, struct err *e)
{
    cl_int status = CL_SUCCESS;
    if (strlen(name) >= sizeof out->entry) {
        return err_set(e, ERR_LIMIT, "kernel %.40s…: its name has %zu bytes, at most %zu", name,
                       strlen(name), sizeof out->entry - 1);
    }
    cl_kernel kernel = cl->CreateKernel(program, name, &status);
    *out = (struct backend_compiled_kernel){0};
    snprintf(out->entry, sizeof out->entry, "%s", name);
    if (status != CL_SUCCESS) {
        snprintf(out->unfit, sizeof out->unfit, "the driver does not make it: %s (%d)",
                 opencl_error_name(status), status);
        return 0;
    }
    int rc = kernel_args(cl, kernel, out, e);
    kernel_needs(cl, kernel, device, out);
    cl->ReleaseKernel(kernel);
    return rc;
}

static int names_report(const struct opencl_api *cl, cl_program program, cl_device_id device,
                        char *names, struct backend_compiled *out, struct capbuf *log,
                        struct err *e)
{
    unsigned count = 0;
    struct backend_compiled_kernel *kernels = calloc(KERNELS_MAX, sizeof *kernels);
    if (!kernels) {
        return err_set(e, ERR_NOMEM, "no memory for a program's kernels");
    }
    char *rest = names;
    for (char *name = strsep(&rest, ";"); name && name[0]; name = strsep(&rest, ";")) {
        if (count == KERNELS_MAX) {
            free(kernels);
            return err_set(e, ERR_LIMIT, "more than %u kernels", KERNELS_MAX);
        }
        struct backend_compiled_kernel *k = &kernels[count];
        int rc = kernel_report(cl, program, device, name, k, e);
        if (rc != 0) {
            free(kernels);
            return rc;
        }
        if (k->unfit[0]) {
            capbuf_printf(log, "kernel %s cannot be launched: %s\n", name, k->unfit);
        }
        count++;
    }
    out->kernels = kernels;
    out->kernel_count = count;
    return 0;
}

int opencl_report_kernels(const struct opencl_api *cl, cl_program program, cl_device_id device,
                          struct backend_compiled *out, struct capbuf *log, struct err *e)
{
    size_t size = 0;
    cl_int rc = cl->GetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, 0, NULL, &size);
    if (rc != CL_SUCCESS || size > RAW_LOG_MAX) {
        return rc != CL_SUCCESS ? opencl_error(rc, "clGetProgramInfo", e)
                                : err_set(e, ERR_LIMIT, "the kernels' names take %zu bytes", size);
    }
    char *names = calloc(1, size + 1);
    if (!names) {
        return err_set(e, ERR_NOMEM, "no memory for a program's names");
    }
    rc = cl->GetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, size, names, NULL);
    int result = rc == CL_SUCCESS ? names_report(cl, program, device, names, out, log, e)
                                  : opencl_error(rc, "clGetProgramInfo", e);
    free(names);
    return result;
}

/* ---- log ----------------------------------------------------------------------------------- */

/* The place of a message: "file:2:7"; for text from a macro also the place in the macro. */
struct place {
    const char *at;
    int size;
    const char *macro;
    int macro_size; /* 0: none, or not a place in a file */
};

/* PoCL writes "file:2:7 <Spelling=file:1:11>" for text that comes from a macro. */
static struct place place_read(const char *text, size_t size)
{
    static const char mark[] = " <Spelling=";
    struct place p = {.at = text, .size = (int)size};
    const char *macro = memmem(text, size, mark, sizeof mark - 1);
    if (macro == NULL || text[size - 1] != '>') {
        return p;
    }
    p.size = (int)(macro - text);
    p.macro = macro + sizeof mark - 1;
    p.macro_size = p.macro[0] == '<' ? 0 : (int)(text + size - 1 - p.macro);
    return p;
}

static void message_append(struct capbuf *log, const char *level, struct place p,
                           struct bytes message)
{
    capbuf_printf(log, "%.*s: %s%.*s", p.size, p.at, level, (int)message.size,
                  (const char *)message.data);
    if (p.macro_size > 0) {
        capbuf_printf(log, " (macro at %.*s)", p.macro_size, p.macro);
    }
    capbuf_printf(log, "\n");
}

/* Turns "error: file:2:7: text" into "file:2:7: error: text", the usual form of compilers. */
static void line_append(struct capbuf *log, const char *line, size_t size)
{
    static const char *const levels[] = {"fatal error: ", "error: ", "warning: ", "note: "};
    if (size > 7 && memcmp(line, "Device ", 7) == 0) {
        return;
    }
    for (unsigned i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        size_t n = strlen(levels[i]);
        if (size <= n || memcmp(line, levels[i], n) != 0) {
            continue;
        }
        const char *colon = memmem(line + n, size - n, ": ", 2);
        if (colon && colon > line + n) {
            message_append(log, levels[i], place_read(line + n, (size_t)(colon - line) - n),
                           bytes_of(colon + 2, (size_t)(line + size - colon) - 2));
            return;
        }
    }
    if (size > 0) {
        capbuf_printf(log, "%.*s\n", (int)size, line);
    }
}

static void log_append(struct capbuf *log, const char *raw)
{
    for (const char *at = raw; *at && !log->failed;) {
        size_t n = strcspn(at, "\n");
        line_append(log, at, n < OPENCL_LOG_MAX ? n : OPENCL_LOG_MAX);
        at += n + (at[n] == '\n');
    }
}

int opencl_report_log(const struct opencl_api *cl, cl_program program, cl_device_id device,
                      struct capbuf *log, struct err *e)
{
    size_t size = 0;
    cl_int rc = cl->GetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
    if (rc != CL_SUCCESS || size > RAW_LOG_MAX) {
        return rc != CL_SUCCESS
                   ? opencl_error(rc, "clGetProgramBuildInfo", e)
                   : err_set(e, ERR_COMPILE_LIMIT, "the compiler's log takes %zu bytes", size);
    }
    char *raw = calloc(1, size + 1);
    if (!raw) {
        return err_set(e, ERR_NOMEM, "no memory for a compiler's log");
    }
    rc = cl->GetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, raw, NULL);
    if (rc == CL_SUCCESS) {
        log_append(log, raw);
    }
    free(raw);
    return rc == CL_SUCCESS ? 0 : opencl_error(rc, "clGetProgramBuildInfo", e);
}
