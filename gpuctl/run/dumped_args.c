#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuctl/run/dumped.h"

static int access_of(const json_t *o, int *ret_access, struct ctl_err *e)
{
    static const char *const names[] = {
        "", [GPUD_IN] = "in", [GPUD_OUT] = "out", [GPUD_INOUT] = "inout"};
    const char *text = "";
    int rc = dumped_text(o, "access", 64, &text, e);
    for (int i = 0; rc == 0 && i <= GPUD_INOUT; i++) {
        if (strcmp(names[i], text) == 0) {
            *ret_access = i;
            return 0;
        }
    }
    return rc == 0 ? ctl_err_set(e, GPUD_ERR_INVALID, "access \"%s\": in, out or inout", text) : rc;
}

/* Reserves a place for memory of an argument. */
static int memory_of(struct dumped *d, uint64_t bytes, const char *where,
                     struct dumped_memory **ret_memory, struct ctl_err *e)
{
    if (d->memory_count == DUMPED_MEMORY) {
        return ctl_err_set(e, GPUD_ERR_LIMIT, "more than %u arrays travel with the job",
                           DUMPED_MEMORY);
    }
    struct dumped_memory *m = &d->memory[d->memory_count];
    *m = (struct dumped_memory){.bytes = bytes};
    (void)snprintf(m->name, sizeof m->name, "%s", where);
    *ret_memory = m;
    return 0;
}

static int struct_arg(struct dumped *d, const json_t *o, gpud_arg *ret_arg, struct ctl_err *e)
{
    char *data = NULL;
    size_t size = 0;
    struct dumped_memory *m = NULL;
    int rc = memory_of(d, 0, "", &m, e);
    rc = rc == 0 ? dumped_content(o, "data", GPUD_MAX_STRUCT, &data, &size, e) : rc;
    if (rc == 0) {
        m->data = data;
        d->memory_count++;
        *ret_arg = gpud_bytes(data, size);
    }
    return rc;
}

/* The content of an array. Without it in the file the array starts as zeros, or invented. */
static int fill(struct dumped *d, const json_t *o, gpud_shape shape, int access,
                struct dumped_memory *m, struct ctl_err *e)
{
    char *data = NULL;
    size_t size = 0;
    int rc = dumped_content(o, "data", GPUD_MAX_INLINE, &data, &size, e);
    if (rc != 0) {
        return rc;
    }
    if (data != NULL && size != m->bytes) {
        rc = ctl_err_set(e, GPUD_ERR_INVALID, "data has %zu bytes, its shape %" PRIu64, size,
                         m->bytes);
    } else if (data != NULL) {
        memcpy(m->data, data, size);
    } else if (d->source != NULL) {
        dumped_invent(&d->source->seed, shape, m->data);
    } else {
        memset(m->data, 0, m->bytes);
        d->zeros += access != GPUD_OUT && m->bytes > 0;
    }
    free(data);
    return rc;
}

void dumped_invent(uint64_t *seed, gpud_shape shape, void *data)
{
    uint64_t count = gpud_shape_count(shape);
    size_t size = gpud_dtype_size((int)shape.dtype);
    for (uint64_t i = 0; i < count; i++) {
        *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint32_t bits = (uint32_t)(*seed >> 40); /* 24 of them */
        float f = (float)bits / 16777216.0F;
        double g = f;
        uint16_t half = (uint16_t)(0x3000U | (bits & 0x3ffU)); /* f16: from 1/8 to 1/4 */
        uint64_t whole = bits & 15U;
        const void *from = shape.dtype == GPUD_F32   ? (const void *)&f
                           : shape.dtype == GPUD_F64 ? (const void *)&g
                           : shape.dtype == GPUD_F16 ? (const void *)&half
                                                     : (const void *)&whole;
        memcpy((char *)data + i * size, from, size);
    }
}

/* Where an array lies: in memory that the daemon shares, unless it only travels with the job. */
static int place(struct dumped *d, uint64_t bytes, bool shared, struct dumped_memory *m,
                 struct ctl_err *e)
{
    uint64_t room = bytes > 0 ? bytes : 1;
    m->host = d->source == NULL || shared;
    if (d->source != NULL && shared) {
        return d->source->take(d->source, room, &m->data, e);
    }
    if (d->source != NULL) {
        m->data = malloc(room);
        return m->data != NULL ? 0 : ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    }
    int rc = gpud_host_alloc(d->client, room, &m->data);
    return rc == 0 ? 0 : ctl_err_lib(e, rc, "%" PRIu64 " bytes", bytes);
}

/* Replaces an array to which a step writes by a parameter. */
static int add_param(struct dumped *d, gpud_shape shape, int access, gpud_arg *arg,
                     struct ctl_err *e)
{
    if (d->param_count == GPUD_MAX_PARAMS) {
        return ctl_err_set(e, GPUD_ERR_LIMIT,
                           "parameters and arrays to which steps write are more than %d together",
                           GPUD_MAX_PARAMS);
    }
    gpud_arg param = gpud_program_param(d->program, NULL, GPUD_PARAM_DATA, shape);
    d->value[d->param_count] = *arg;
    d->param[d->param_count++] = param;
    *arg = gpud_arg_with(param, access);
    return 0;
}

/* Arrays that travelled with the job, or lay in memory that its client shared with the daemon. */
static int array_arg(struct dumped *d, const json_t *o, int usual, const char *where,
                     gpud_arg *ret_arg, struct ctl_err *e)
{
    gpud_shape shape;
    int access = 0;
    struct dumped_memory *m = NULL;
    int rc = dumped_shape(o, false, &shape, e);
    rc = rc == 0 ? access_of(o, &access, e) : rc;
    if (rc != 0) {
        return rc;
    }
    access = access != GPUD_AS_KERNEL ? access : usual;
    uint64_t bytes = gpud_shape_bytes(shape);
    if (bytes > d->host_most) {
        return ctl_err_set(e, GPUD_ERR_LIMIT,
                           "%" PRIu64 " bytes, at most %" PRIu64 " may travel with a job", bytes,
                           d->host_most);
    }
    rc = memory_of(d, bytes, where, &m, e);
    if (rc != 0) {
        return rc;
    }
    m->written = access != GPUD_IN;
    rc = place(d, bytes, m->written || bytes > d->inline_most, m, e);
    if (rc != 0) {
        return rc;
    }
    d->memory_count++;
    *ret_arg = gpud_host_shaped(m->data, shape, access);
    rc = fill(d, o, shape, access, m, e);
    return rc == 0 && m->written && !d->built ? add_param(d, shape, access, ret_arg, e) : rc;
}

static int scalar_arg(const json_t *o, gpud_arg *ret_arg, struct ctl_err *e)
{
    const char *type = "";
    uint64_t bits = 0;
    int rc = dumped_text(o, "type", GPUD_NAME, &type, e);
    rc = rc == 0 ? dumped_number(o, "bits", UINT64_MAX, &bits, e) : rc;
    int dtype = gpud_dtype_from_name(type);
    if (rc == 0 && dtype == GPUD_NONE) {
        rc = ctl_err_set(e, GPUD_ERR_INVALID, "there is no type \"%s\"", type);
    }
    if (rc == 0) {
        *ret_arg = gpud_u64(bits);
        ret_arg->dtype = (uint32_t)dtype;
    }
    return rc;
}

static int add_view(const json_t *o, gpud_arg *arg, struct ctl_err *e)
{
    const char *view = "";
    int rc = dumped_text(o, "view", GPUD_NAME, &view, e);
    if (rc != 0 || view[0] == '\0') {
        return rc;
    }
    if (gpud_dtype_from_name(view) == GPUD_NONE) {
        return ctl_err_set(e, GPUD_ERR_INVALID, "there is no type \"%s\"", view);
    }
    *arg = gpud_arg_as(*arg, gpud_dtype_from_name(view));
    return 0;
}

/* The part and access of a buffer, parameter or temporary. */
static int refine(const json_t *o, gpud_arg *arg, struct ctl_err *e)
{
    uint64_t first = 0;
    uint64_t count = 0;
    int access = 0;
    int rc = dumped_number(o, "first", UINT64_MAX, &first, e);
    rc = rc == 0 ? dumped_number(o, "count", UINT64_MAX, &count, e) : rc;
    rc = rc == 0 ? access_of(o, &access, e) : rc;
    if (rc != 0) {
        return rc;
    }
    if (first > 0 || count > 0) {
        *arg = gpud_arg_slice(*arg, first, count > 0 ? count : GPUD_REST);
    }
    *arg = gpud_arg_with(*arg, access);
    return 0;
}

static int buffer_arg(const struct dumped *d, const json_t *o, gpud_arg *ret_arg, struct ctl_err *e)
{
    uint64_t handle = 0;
    int rc = dumped_number(o, "buffer", UINT64_MAX, &handle, e);
    for (uint32_t i = 0; rc == 0 && i < d->buffer_count; i++) {
        if (d->buffer[i].handle == handle) {
            *ret_arg = gpud_slice(d->buffer[i].buffer, 0, GPUD_REST);
            return 0;
        }
    }
    return rc == 0 ? ctl_err_set(e, GPUD_ERR_INVALID, "the file has no buffer %#" PRIx64, handle)
                   : rc;
}

static int listed_arg(const json_t *o, const gpud_arg *list, uint32_t count, gpud_arg *ret_arg,
                      struct ctl_err *e)
{
    uint64_t index = 0;
    int rc = dumped_number(o, "index", UINT32_MAX, &index, e);
    if (rc == 0 && index >= count) {
        rc = ctl_err_set(e, GPUD_ERR_INVALID, "index %" PRIu64 " of %u", index, count);
    }
    if (rc == 0) {
        *ret_arg = list[index];
    }
    return rc;
}

static int array_refined(const struct dumped *d, const json_t *o, const char *what,
                         gpud_arg *ret_arg, struct ctl_err *e)
{
    int rc;
    if (strcmp(what, "buffer") == 0) {
        rc = buffer_arg(d, o, ret_arg, e);
    } else if (strcmp(what, "temp") == 0) {
        rc = listed_arg(o, d->temp, d->temp_count, ret_arg, e);
    } else if (strcmp(what, "param") == 0) {
        rc = listed_arg(o, d->param, d->own_params, ret_arg, e);
    } else {
        rc = ctl_err_set(e, GPUD_ERR_INVALID, "there is no argument \"%s\"", what);
    }
    return rc == 0 ? refine(o, ret_arg, e) : rc;
}

int dumped_arg(struct dumped *d, const json_t *o, int access, const char *where, gpud_arg *ret_arg,
               struct ctl_err *e)
{
    const char *what = "";
    uint64_t bytes = 0;
    int rc = dumped_text(o, "what", 64, &what, e);
    if (rc != 0) {
        return rc;
    }
    if (strcmp(what, "scalar") == 0) {
        return scalar_arg(o, ret_arg, e);
    }
    if (strcmp(what, "struct") == 0) {
        return struct_arg(d, o, ret_arg, e);
    }
    if (strcmp(what, "local") == 0) {
        rc = dumped_number(o, "bytes", UINT64_MAX, &bytes, e);
        *ret_arg = gpud_local(bytes);
        return rc;
    }
    if (strcmp(what, "array") == 0 || strcmp(what, "shared") == 0) {
        rc = array_arg(d, o, access, where, ret_arg, e);
    } else {
        rc = array_refined(d, o, what, ret_arg, e);
    }
    return rc == 0 ? add_view(o, ret_arg, e) : rc;
}
