#include "client/src/api/args.h"

#include <string.h>

#include "client/src/objects/arena.h"
#include "client/src/objects/handles.h"
#include "common/shape.h"

static void encode_arena(const struct arena *a, const void *data, const gpud_arg *arg,
                         struct proto_arg *out)
{
    out->tag = ARG_ARENA;
    out->handle = a->object.daemon;
    out->first = (uint64_t)((uintptr_t)data - (uintptr_t)a->base);
    out->bits = arg->bits;
}

/* Encodes an array that lies in an arena, or that finds staging memory; false: neither. */
static bool shared(struct gpud_client *c, const gpud_arg *arg, uint64_t bytes,
                   struct host_uses *uses, uint32_t index, struct proto_arg *out)
{
    struct arena *a = arena_at(c, arg->data, bytes);
    size_t element = gpud_dtype_size((int)arg->dtype);
    if (a != NULL && ((uintptr_t)arg->data - (uintptr_t)a->base) % element == 0 &&
        arena_use_add(uses, a, arg->data, bytes, (int)out->access, index)) {
        encode_arena(a, arg->data, arg, out);
        return true;
    }
    if (a == NULL && arena_stage(c, uses, arg->data, bytes, (uint32_t)out->access, index)) {
        const struct host_use *u = &uses->use[uses->count - 1];
        encode_arena(u->arena, u->arena->base + u->offset, arg, out);
        return true;
    }
    return false;
}

static int encode_inline(struct gpud_client *c, const gpud_arg *arg, struct host_uses *uses,
                         uint32_t index, struct proto_arg *out, struct err *e)
{
    struct shape shape;
    if (arg->dtype > INT8_MAX) {
        return err_set(e, ERR_ARG_TYPE, "unknown element type %u", arg->dtype);
    }
    int rc = shape_make((int)arg->dtype, arg->ndim, arg->dim, &shape, e);
    if (rc != 0) {
        return rc;
    }
    uint64_t bytes = shape_bytes(&shape);
    if (arg->data == NULL && bytes > 0) {
        return err_set(e, ERR_INVALID, "host array without memory");
    }
    out->dtype = arg->dtype;
    out->ndim = arg->ndim;
    out->d0 = shape.dim[0];
    out->d1 = shape.dim[1];
    out->d2 = shape.dim[2];
    out->d3 = shape.dim[3];
    if (uses != NULL && shared(c, arg, bytes, uses, index, out)) {
        return 0;
    }
    if (bytes > PROTO_INLINE_MAX) {
        return err_set(e, ERR_LIMIT, "%llu bytes do not fit into a job, at most %u: use a buffer",
                       (unsigned long long)bytes, PROTO_INLINE_MAX);
    }
    if ((out->access & GPUD_IN) != 0) {
        out->data = bytes_of(arg->data, (size_t)bytes);
    }
    return 0;
}

static int encode_buffer(struct gpud_client *c, const gpud_arg *arg, struct proto_arg *out,
                         struct err *e)
{
    struct buffer *buffer = NULL;
    int rc = buffer_use(c, (gpud_buffer){arg->handle}, &buffer, e);
    if (rc != 0) {
        return rc;
    }
    out->handle = buffer->daemon;
    out->count = arg->count != GPUD_REST ? arg->count : 0;
    if (arg->count == 0) { /* on the wire 0 means "to the end": an empty slice begins at the end */
        uint64_t total = gpud_shape_count(buffer->shape);
        if (arg->first > total) {
            return err_set(e, ERR_RANGE, "element %llu of %llu", (unsigned long long)arg->first,
                           (unsigned long long)total);
        }
        out->first = total;
    }
    return 0;
}

/* A slice of a temporary or parameter, whose number of elements is not known here. */
static int encode_part(const gpud_arg *arg, struct proto_arg *out, struct err *e)
{
    if (arg->count == 0) {
        return err_set(e, ERR_INVALID, "a slice of 0 elements of a %s: GPUD_REST means to its end",
                       arg->kind == ARG_TEMP ? "temporary" : "parameter");
    }
    out->count = arg->count != GPUD_REST ? arg->count : 0;
    return 0;
}

static int encode_struct(const gpud_arg *arg, struct proto_arg *out, struct err *e)
{
    if (arg->data == NULL || arg->bytes == 0 || arg->bytes > PROTO_TEXT_MAX) {
        return err_set(e, ERR_INVALID, "struct of %llu bytes, 1 to %u are possible",
                       (unsigned long long)arg->bytes, PROTO_TEXT_MAX);
    }
    out->data = bytes_of(arg->data, (size_t)arg->bytes);
    return 0;
}

int arg_encode_arena(struct gpud_client *c, const gpud_arg *arg, uint32_t access,
                     struct proto_arg *ret_arg, struct err *e)
{
    struct host_uses uses = {.count = 0};
    struct arena *a = arg->kind == ARG_INLINE ? arena_at(c, arg->data, arg->bytes) : NULL;
    struct proto_arg out = {0};
    if (a == NULL || a->kind == ARENA_STAGING) {
        return err_set(e, ERR_ARG_TYPE,
                       "memory of gpud_host_alloc is needed, or a parameter bound to such memory; "
                       "over tcp and from another container it is not shared with the daemon");
    }
    int rc = arg_encode(c, arg, access, &uses, 0, &out, e);
    if (rc == 0) {
        *ret_arg = out;
    }
    return rc;
}

int arg_encode(struct gpud_client *c, const gpud_arg *arg, uint32_t access, struct host_uses *uses,
               uint32_t index, struct proto_arg *ret_arg, struct err *e)
{
    if (arg->access > GPUD_INOUT) {
        return err_set(e, ERR_INVALID, "unknown access %u", arg->access);
    }
    if (arg->view != GPUD_NONE && c->session.minor < PROTO_MINOR_ARGS) {
        return err_set(e, ERR_UNSUPPORTED,
                       "a view (gpud_arg_as): this daemon speaks protocol %u.%u, "
                       "%u.%u is needed",
                       PROTO_MAJOR, (unsigned)c->session.minor, PROTO_MAJOR, PROTO_MINOR_ARGS);
    }
    struct proto_arg out = {
        .tag = arg->kind,
        .access = arg->access != GPUD_AS_KERNEL ? arg->access : access,
        .handle = arg->handle,
        .first = arg->first,
        .count = arg->count,
        .view = arg->view,
    };
    int rc = 0;
    switch (arg->kind) {
    case ARG_BUFFER:
        rc = encode_buffer(c, arg, &out, e);
        break;
    case ARG_INLINE:
        rc = encode_inline(c, arg, uses, index, &out, e);
        break;
    case ARG_STRUCT:
        rc = encode_struct(arg, &out, e);
        break;
    case ARG_SCALAR:
        out.dtype = arg->dtype;
        out.bits = arg->bits;
        break;
    case ARG_TEMP:
    case ARG_PARAM:
        rc = encode_part(arg, &out, e);
        break;
    case ARG_LOCAL:
        break;
    default:
        rc = err_set(e, ERR_INVALID, "unknown kind of argument");
    }
    if (rc == 0) {
        *ret_arg = out;
    }
    return rc;
}

uint32_t arg_access(const struct kernel *kernel, uint32_t index)
{
    uint32_t access = index < kernel->desc.arg_count ? kernel->args[index].access : 0;
    return access != GPUD_AS_KERNEL ? access : GPUD_INOUT;
}

int step_add(struct proto_step *step, const struct proto_arg *args, uint32_t count,
             struct capbuf *steps, struct err *e)
{
    struct capbuf list;
    capbuf_init(&list, PROTO_MESSAGE_MAX);
    int rc = 0;
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        rc = proto_list_add(&schema_arg, &args[i], &list, e);
    }
    if (rc == 0) {
        step->args = proto_list_of(&list, count);
        rc = proto_list_add(&schema_step, step, steps, e);
    }
    capbuf_finish(&list);
    return rc;
}

static void step_grid(const gpud_grid *grid, struct proto_step *step)
{
    gpud_grid g = {0};
    if (grid == NULL) {
        return;
    }
    memcpy(&g, grid, grid->size < sizeof g ? grid->size : sizeof g);
    step->gx = g.global[0];
    step->gy = g.global[1];
    step->gz = g.global[2];
    step->lx = g.local[0];
    step->ly = g.local[1];
    step->lz = g.local[2];
    step->shared = g.shared_bytes;
}

static int launch_arg(struct gpud_client *c, const struct kernel *kernel, const gpud_arg *arg,
                      uint32_t index, struct host_uses *uses, struct proto_arg *ret_arg,
                      struct err *e)
{
    uint32_t wanted = index < kernel->desc.arg_count ? kernel->args[index].access : 0;
    bool array = arg->kind == ARG_INLINE || arg->kind == ARG_BUFFER || arg->kind == ARG_TEMP ||
                 arg->kind == ARG_PARAM;
    /* a parameter may stand for a scalar; the daemon checks the value that it is bound to */
    uint32_t access = arg->kind == ARG_INLINE ? arg_access(kernel, index) : wanted;
    int rc = arg_encode(c, arg, array ? access : 0, uses, index, ret_arg, e);
    if (rc == 0 && arg->kind == ARG_INLINE && uses == NULL && ret_arg->access != GPUD_IN) {
        rc = err_set(e, ERR_ARG_ACCESS, "a program cannot write to host memory: read a buffer");
    }
    if (rc != 0) {
        const char *name = index < kernel->desc.arg_count ? kernel->args[index].name : "";
        rc = err_wrap(e, "launch %s: argument %u%s%s", kernel->desc.name, index,
                      name[0] != '\0' ? " " : "", name);
        e->arg = (int)index;
    }
    return rc;
}

int step_add_launch(struct gpud_client *c, gpud_kernel kernel, const gpud_arg *args, uint32_t count,
                    const gpud_grid *grid, struct host_uses *uses, struct capbuf *steps,
                    struct err *e)
{
    struct kernel *k = NULL;
    struct proto_arg wire[PROTO_ARGS_MAX];
    int rc = kernel_get(c, kernel, &k, e);
    rc = rc == 0 ? object_check(&k->object, e) : rc;
    if (rc != 0) {
        return rc;
    }
    if (count > PROTO_ARGS_MAX) {
        return err_set(e, ERR_ARG_COUNT, "launch %s: %u arguments, at most %u", k->desc.name, count,
                       PROTO_ARGS_MAX);
    }
    if (grid != NULL && (grid->size < sizeof grid->size || grid->size > 4096)) {
        return err_set(e, ERR_INVALID, "gpud_grid.size is %zu: set it to the struct's sizeof",
                       grid->size);
    }
    for (uint32_t i = 0; i < count; i++) {
        rc = launch_arg(c, k, &args[i], i, uses, &wire[i], e);
        if (rc != 0) {
            return rc;
        }
    }
    struct proto_step step = {.op = OP_LAUNCH, .kernel = k->object.daemon};
    step_grid(grid, &step);
    return step_add(&step, wire, count, steps, e);
}
