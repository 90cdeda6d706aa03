#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpuctl/ctl/progress.h"
#include "gpuctl/input/number.h"
#include "gpuctl/run/run.h"

#define STREAM_BYTES_MAX (UINT64_C(1) << 30)

/* Puts the argument's name in front of the error: "argument 2 (y)". */
static int wrap(struct ctl_err *e, const struct run *run, uint32_t index)
{
    const char *name = run->arg[index].desc.name;
    if (run->arg[index].variable) {
        return ctl_err_wrap(e, "variable %s", name);
    }
    return ctl_err_wrap(e, "argument %u%s%s%s", index, name[0] != '\0' ? " (" : "", name,
                        name[0] != '\0' ? ")" : "");
}

static gpud_arg scalar_arg(int dtype, uint64_t bits)
{
    float single;
    double wide;
    switch (dtype) {
    case GPUD_I8:
        return gpud_i8((int8_t)bits);
    case GPUD_U8:
        return gpud_u8((uint8_t)bits);
    case GPUD_I16:
        return gpud_i16((int16_t)bits);
    case GPUD_U16:
        return gpud_u16((uint16_t)bits);
    case GPUD_I32:
        return gpud_i32((int32_t)bits);
    case GPUD_U32:
        return gpud_u32((uint32_t)bits);
    case GPUD_I64:
        return gpud_i64((int64_t)bits);
    case GPUD_U64:
        return gpud_u64(bits);
    case GPUD_F16:
        return gpud_f16((uint16_t)bits);
    case GPUD_F32:
        memcpy(&single, &bits, sizeof single);
        return gpud_f32(single);
    default:
        memcpy(&wide, &bits, sizeof wide);
        return gpud_f64(wide);
    }
}

/* A number without a type gets the kernel's type. For a family of types it is sent as i64 if it is
 * a whole number in that range, otherwise as f64, and the daemon converts it. */
static int make_scalar(const struct run *run, struct run_arg *arg, struct ctl_err *e)
{
    int dtype = arg->spec.dtype != GPUD_NONE ? arg->spec.dtype : (int)arg->desc.dtype;
    uint64_t bits = 0;
    if (dtype == GPUD_NONE && run->desc.signature[0] != '\0') {
        struct ctl_err ignored;
        dtype = spec_scalar(GPUD_I64, arg->spec.text, &bits, &ignored) == 0 ? GPUD_I64 : GPUD_F64;
    }
    if (dtype == GPUD_NONE) {
        return ctl_err_usage(e,
                             "the kernel's type%s%s is not known to gpud: say the value's, as in "
                             "f32:%s or i32:%s",
                             arg->desc.type[0] != '\0' ? " " : "", arg->desc.type, arg->spec.text,
                             arg->spec.text);
    }
    int rc = spec_scalar(dtype, arg->spec.text, &bits, e);
    if (rc == 0) {
        arg->value = scalar_arg(dtype, bits);
    }
    return rc;
}

/* A variable that is one number: an array of one element. */
static int make_variable(struct run_arg *arg, struct ctl_err *e)
{
    uint64_t bits = 0;
    int rc = spec_scalar(arg->spec.dtype, arg->spec.text, &bits, e);
    rc = rc == 0 ? array_create(gpud_shape_1d(arg->spec.dtype, 1), &arg->array, e) : rc;
    if (rc == 0) {
        memcpy(arg->array.data, &bits, gpud_shape_bytes(arg->array.shape)); /* low bytes first */
        arg->spec.kind = SPEC_ARRAY;
        arg->spec.access = GPUD_IN;
    }
    return rc;
}

/* The type of a vector type's elements ("float4": f32); GPUD_NONE for other names. */
static int vector_dtype(const char *type)
{
    static const struct {
        const char *name;
        int dtype;
    } names[] = {
        {"char", GPUD_I8},   {"uchar", GPUD_U8}, {"short", GPUD_I16},  {"ushort", GPUD_U16},
        {"int", GPUD_I32},   {"uint", GPUD_U32}, {"long", GPUD_I64},   {"ulong", GPUD_U64},
        {"float", GPUD_F32}, {"half", GPUD_F16}, {"double", GPUD_F64},
    };
    size_t size = strcspn(type, "0123456789");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (type[size] != '\0' && strlen(names[i].name) == size &&
            strncmp(names[i].name, type, size) == 0) {
            return names[i].dtype;
        }
    }
    return GPUD_NONE;
}

/* Converts the numbers to the kernel's type, as for scalars, if the type's name is known. */
static int make_vector(struct run_arg *arg, struct ctl_err *e)
{
    uint64_t count = spec_list_count(arg->spec.text);
    int dtype = arg->desc.kind == GPUD_ARG_STRUCT ? vector_dtype(arg->desc.type) : GPUD_NONE;
    int rc = array_create(gpud_shape_1d(arg->spec.dtype, count), &arg->array, e);
    if (rc == 0) {
        rc = spec_list(arg->spec.dtype, arg->spec.text, count, arg->array.data, e);
    }
    if (rc == 0 && dtype != GPUD_NONE && dtype != arg->spec.dtype) {
        array_finish(&arg->array);
        rc = array_create(gpud_shape_1d(dtype, count), &arg->array, e);
        rc = rc == 0 ? spec_list(dtype, arg->spec.text, count, arg->array.data, e) : rc;
    }
    if (rc == 0) {
        arg->value = gpud_bytes(arg->array.data, gpud_shape_bytes(arg->array.shape));
    }
    return rc;
}

/* A struct by value: the kernel gets the bytes of the file. */
static int load_bytes(struct run_arg *arg, struct ctl_err *e)
{
    struct file file;
    int rc =
        file_load(arg->spec.file, (struct file_limit){SPEC_BYTES_MAX, SPEC_BYTES_MAX}, &file, e);
    if (rc != 0) {
        return rc == GPUD_ERR_LIMIT ? ctl_err_wrap(e, "a value") : rc;
    }
    if (file.size == 0) {
        rc = ctl_err_set(e, GPUD_ERR_INVALID, "%s: the file is empty", arg->spec.file);
        file_finish(&file);
        return rc;
    }
    arg->array = (struct array){.shape = gpud_shape_1d(GPUD_U8, file.size), .data = file.data};
    arg->value = gpud_bytes(file.data, file.size);
    return 0;
}

static int open_published(struct ctl *ctl, struct run_arg *arg, struct ctl_err *e)
{
    int rc = gpud_buffer_open(ctl->client, arg->spec.text, &arg->buffer);
    gpud_buffer_desc d = {.size = sizeof d};
    if (rc == 0) {
        rc = gpud_buffer_info(ctl->client, arg->buffer, &d);
    }
    if (rc != 0) {
        return ctl_err_lib(e, rc, "published buffer %s", arg->spec.text);
    }
    arg->array.shape = d.shape;
    return 0;
}

/* The memory of the largest device, because no array can be larger. A stream of unknown size takes
 * this machine's memory while it is read, so its limit is lower unless the user gives one. */
static struct file_limit input_limit(struct ctl *ctl, const struct run *run)
{
    struct file_limit limit = {run->options.max_input, run->options.max_input};
    if (run->options.max_input > 0) {
        return limit;
    }
    uint64_t most = 0;
    gpud_device_desc d = {.size = sizeof d};
    for (uint32_t i = 0; gpud_device_info(ctl->client, i, &d) == 0; i++) {
        most = d.memory_bytes > most ? d.memory_bytes : most;
    }
    most = most > 0 && most < ARRAY_BYTES_MAX ? most : ARRAY_BYTES_MAX;
    return (struct file_limit){most, most < STREAM_BYTES_MAX ? most : STREAM_BYTES_MAX};
}

static int load_array(struct ctl *ctl, const struct run *run, struct run_arg *arg,
                      struct ctl_err *e)
{
    struct file_limit limit = {0};
    arg->array.shape = arg->spec.shape;
    if (arg->spec.access == GPUD_OUT) {
        return 0; /* an array that is only written gets its memory later */
    }
    if (arg->spec.file != NULL) {
        limit = input_limit(ctl, run);
    }
    return array_load(&arg->spec, limit, &arg->array, e);
}

static int load_arg(struct ctl *ctl, struct run *run, struct run_arg *arg, struct ctl_err *e)
{
    switch (arg->spec.kind) {
    case SPEC_SCALAR:
        return arg->variable ? make_variable(arg, e) : make_scalar(run, arg, e);
    case SPEC_VECTOR:
        return make_vector(arg, e);
    case SPEC_BYTES:
        return load_bytes(arg, e);
    case SPEC_LOCAL:
        arg->value = gpud_local(arg->spec.bytes);
        return 0;
    case SPEC_PUBLISHED:
        return open_published(ctl, arg, e);
    default:
        return load_array(ctl, run, arg, e);
    }
}

/* Arrays travel with the job if all of them fit into one message and its answer. */
static int choose_way(struct ctl *ctl, struct run *run, struct ctl_err *e)
{
    gpud_limits_desc limits = {.size = sizeof limits};
    int rc = gpud_limits(ctl->client, &limits);
    if (rc != 0) {
        return ctl_err_lib(e, rc, "limits");
    }
    uint64_t room =
        limits.max_inline < limits.max_message / 2 ? limits.max_inline : limits.max_message / 2;
    uint64_t total = 0;
    for (uint32_t i = 0; i < run->arg_count; i++) {
        if (run->arg[i].spec.kind == SPEC_ARRAY) {
            total += gpud_shape_bytes(run->arg[i].array.shape);
        }
    }
    run->resident = total > room;
    return 0;
}

int run_load_args(struct ctl *ctl, struct run *run, struct ctl_err *e)
{
    for (uint32_t i = 0; i < run->all_count; i++) {
        int rc = load_arg(ctl, run, &run->arg[i], e);
        if (rc != 0) {
            return wrap(e, run, i);
        }
    }
    if (!run->desc.auto_grid && run->options.grid.global[0] == 0) {
        return ctl_err_usage(
            e, "the sizes of %s do not follow from its arguments: give --global X[,Y[,Z]]",
            run->desc.name);
    }
    return choose_way(ctl, run, e);
}

static int create_buffer(struct ctl *ctl, const struct run *run, struct run_arg *arg)
{
    if (arg->buffer.id != 0) {
        return 0;
    }
    if (arg->variable) {
        int kernels = arg->spec.access == GPUD_IN ? GPUD_IN : GPUD_INOUT;
        return gpud_module_variable(ctl->client, run->module, arg->spec.name, arg->array.shape,
                                    kernels, run->options.device, &arg->buffer);
    }
    if (run->options.device != 0) {
        return gpud_buffer_create_on(ctl->client, run->options.device - 1, arg->array.shape, 0,
                                     "gpuctl run", &arg->buffer);
    }
    return gpud_buffer_create(ctl->client, arg->array.shape, 0, "gpuctl run", &arg->buffer);
}

static int upload(struct ctl *ctl, const struct run *run, struct run_arg *arg, struct ctl_err *e)
{
    gpud_shape shape = arg->array.shape;
    int rc = create_buffer(ctl, run, arg);
    if (rc == 0 && arg->spec.access != GPUD_OUT && gpud_shape_bytes(shape) > 0) {
        struct progress bar;
        gpud_transfer transfer = progress_transfer(&bar, "upload", ctl->progress);
        rc = gpud_write(ctl->client, arg->buffer, (int)shape.dtype, 0, GPUD_REST, arg->array.data,
                        &transfer);
        progress_finish(&bar);
    }
    return rc == 0 ? 0 : ctl_err_lib(e, rc, "upload");
}

static gpud_arg buffer_arg(gpud_buffer buffer, int access)
{
    return access == GPUD_IN    ? gpud_in(buffer)
           : access == GPUD_OUT ? gpud_out(buffer)
                                : gpud_inout(buffer);
}

/* Allocates memory for an output. A job overwrites an inout array, so this keeps a copy of its
 * input for repeated runs. */
static int prepare_inline(const struct run *run, struct run_arg *arg, struct ctl_err *e)
{
    uint64_t bytes = gpud_shape_bytes(arg->array.shape);
    if (arg->array.data == NULL) {
        return array_create(arg->array.shape, &arg->array, e);
    }
    if (run->options.repeat == 1 || arg->spec.access != GPUD_INOUT || bytes == 0) {
        return 0;
    }
    if (arg->first.data == NULL) {
        arg->first.data = malloc(bytes);
        if (arg->first.data == NULL) {
            return ctl_err_set(e, GPUD_ERR_NOMEM, "no memory for %" PRIu64 " bytes", bytes);
        }
        memcpy(arg->first.data, arg->array.data, bytes);
    }
    memcpy(arg->array.data, arg->first.data, bytes);
    return 0;
}

int run_place_args(struct ctl *ctl, struct run *run, struct ctl_err *e)
{
    for (uint32_t i = 0; i < run->all_count; i++) {
        struct run_arg *arg = &run->arg[i];
        bool array = arg->spec.kind == SPEC_ARRAY;
        int rc = 0;
        if (array) {
            rc = run->resident || arg->variable ? upload(ctl, run, arg, e)
                                                : prepare_inline(run, arg, e);
        }
        if (rc != 0) {
            return wrap(e, run, i);
        }
        if (arg->buffer.id != 0) {
            arg->value = buffer_arg(arg->buffer, arg->spec.access);
        } else if (array) {
            arg->value = gpud_host_shaped(arg->array.data, arg->array.shape, arg->spec.access);
        }
        arg->value = gpud_arg_as(arg->value, arg->spec.view);
    }
    return 0;
}
